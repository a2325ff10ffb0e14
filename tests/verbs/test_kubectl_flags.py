"""Flags as kubectl parses them: `--flag=true` and `--flag=false` (the last one wins), and flags of single verbs."""

from pathlib import Path

import pytest

from kschedd.scenarios.commands import ScenarioCluster
from kschedd.verbs.command_line.grammar import UsageError, Verb, VerbParser
from kschedd.verbs.table import VERBS

SWITCHES = [
    pytest.param(verb, name, id=f"{verb.name}{name}")
    for verb in VERBS
    for flag in verb.parser().noted
    if flag.names and not flag.metavar
    for name in flag.names
]
NODE = """apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}
status: {capacity: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: a, labels: {app: a, tier: web}}
spec: {containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: b, labels: {app: b}}
spec: {nodeSelector: {disk: ssd}, containers: [{name: c, image: i}]}
"""


@pytest.fixture
def cluster(tmp_path: Path) -> ScenarioCluster:
    made = ScenarioCluster(tmp_path)
    assert made.execute("apply", NODE).status == 0
    assert made.execute("advance 3s", "").status == 0
    return made


def _set(parser: VerbParser, words: list[str]) -> bool:
    """Return whether the rewritten switch in `words` is on."""
    rewritten = parser.switched(words)
    assert len(rewritten) <= 1
    return bool(rewritten)


@pytest.mark.parametrize(("verb", "name"), SWITCHES)
def test_every_flag_without_a_value_takes_true_and_false(verb: Verb, name: str) -> None:
    parser = verb.parser()
    assert _set(parser, [f"{name}=true"])
    assert not _set(parser, [f"{name}=false"])
    assert not _set(parser, [name, f"{name}=0"])
    assert _set(parser, [f"{name}=F", f"{name}=T"])
    with pytest.raises(UsageError, match='"maybe": expected true or false'):
        parser.switched([f"{name}=maybe"])


def test_what_stands_after_two_dashes_or_belongs_to_another_verb_stays() -> None:
    parser = next(verb for verb in VERBS if verb.name == "drain").parser()
    assert parser.switched(["n1", "--", "--force=false"]) == ["n1", "--", "--force=false"]
    assert parser.switched(["--force=true", "n1", "--force=false"], leading=True) == ["--force", "n1", "--force=false"]


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        pytest.param("label nodes n1 x=1 --overwrite=true", "node/n1 labeled: metadata.labels.x\n", id="label"),
        pytest.param(
            "drain n1 --force=true --ignore-daemonsets=true --delete-emptydir-data=true --disable-eviction=false",
            "node/n1 cordoned\nWarning: deleting Pods that declare no controller: default/a\n"
            "evicting pod default/a\npod/a evicted\nnode/n1 drained\n",
            id="drain",
        ),
        pytest.param("get pods a -w=false --no-headers=true -A=false -o=name", "pod/a\n", id="get"),
        pytest.param("delete pod zz --ignore-not-found=true", "", id="delete"),
        pytest.param(
            "delete pods --field-selector=status.phase=Running --force=true",
            "Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. "
            "The resource may continue to run on the cluster indefinitely.\n"
            'pod "a" force deleted from default namespace\n',
            id="delete-by-field",
        ),
        pytest.param(
            "delete pods -l app --field-selector status.phase=Pending --now=false",
            'pod "b" deleted from default namespace\n',
            id="delete-by-both",
        ),
        pytest.param("label pod a --list", "app=a\ntier=web\n", id="list-labels"),
        pytest.param(
            "label pods --all --list=true",
            "Listing labels for Pod./a:\n app=a\n tier=web\nListing labels for Pod./b:\n app=b\n",
            id="list-labels-of-several",
        ),
        pytest.param("get pod a --template '{{.metadata.name}}'", "a", id="template"),
        pytest.param("get pod a -o jsonpath --template={.spec.nodeName}", "n1", id="template-of-a-form"),
        pytest.param("get pods --chunk-size=500 -o name", "pod/a\npod/b\n", id="chunk-size"),
    ],
)
def test_a_line_as_for_kubectl(cluster: ScenarioCluster, line: str, printed: str) -> None:
    result = cluster.execute(line, "")
    assert (result.text, result.status) == (printed, 0)


def test_a_field_that_a_kind_does_not_select_by_deletes_nothing(cluster: ScenarioCluster) -> None:
    result = cluster.execute("delete pods --field-selector spec.containers=x", "")
    assert result.status == 1
    assert "field label not supported" in result.text
    assert cluster.execute("get pods -o name", "").text == "pod/a\npod/b\n"
