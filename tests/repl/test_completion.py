"""Tests of the completions of an incomplete line."""

import pytest

from kschedd.verbs.command_line.grammar import LiveState
from kschedd.verbs.completing import split
from kschedd_repl.prompt.checking import line_faults
from kschedd_repl.prompt.completion import line_candidates
from kschedd_repl.prompt.highlighting import colored
from kschedd_repl.prompt.names import Names

NAMES = Names(
    objects={
        "Pod": ("default/db-0", "default/web-0", "default/web-1", "team/api-0"),
        "Node": ("/node-a", "/node-b"),
        "Deployment": ("default/shop",),
        "Namespace": ("/default", "/team"),
    },
    label_keys={"Pod": ("app", "tier"), "Node": ("disk",)},
    labels={"Pod": ("app=db", "app=web", "tier=x")},
    profiles=("default-scheduler",),
    plugins=("ImageLocality", "NodeAffinity"),
    plugins_on={"ImageLocality": True, "MyPlugin": False, "NodeAffinity": True},
    states={
        LiveState.PENDING: ("default/web-0", "default/web-1", "team/big-0"),
        LiveState.BOUND: ("default/db-0", "team/api-0"),
        LiveState.WAITING: ("default/web-1",),
        LiveState.CORDONED: ("/node-b",),
        LiveState.UNCORDONED: ("/node-a",),
    },
    taints={"node-b": ("gpu:NoSchedule", "slow:NoExecute")},
    counts=(("Namespace", 2), ("Node", 2), ("Pod", 4)),
)


MACROS = {"where": "get pod $1 -o wide"}


def _next(line: str, namespace: str = "default") -> list[str]:
    return [candidate.text for candidate in line_candidates(line, NAMES, namespace, MACROS)[0]]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param("expl", ["explain"], id="verb"),
        pytest.param("un", ["uncordon"], id="verb-of-several-letters"),
        pytest.param("help ex", ["exit", "expect", "explain"], id="help-takes-a-verb"),
        pytest.param("get po", ["pods", "poddisruptionbudgets", "podtemplates"], id="kind-live-ones-first"),
        pytest.param("get pods,no", ["pods,nodes"], id="second-kind"),
        pytest.param("get pods ", ["db-0", "web-0", "web-1"], id="names-of-the-namespace"),
        pytest.param("get pods web-0 ", ["db-0", "web-1"], id="names-not-taken-yet"),
        pytest.param("get pods -n team ", ["api-0"], id="names-of-the-namespace-said"),
        pytest.param("get pod/w", ["pod/web-0", "pod/web-1"], id="kind-slash-name"),
        pytest.param("describe node node-", ["node-a", "node-b"], id="nodes"),
        pytest.param("drain ", ["node-a", "node-b"], id="nodes-of-a-node-verb"),
        pytest.param("plan drain ", ["node-a", "node-b"], id="planned-verb"),
        pytest.param("plan --within 1h drai", ["drain"], id="planned-verb-after-a-flag"),
        pytest.param("config c", ["check", "convert", "changes"], id="action-of-config"),
        pytest.param("plan pl", ["plugin"], id="plan-is-not-planned"),
        pytest.param("capacity deployment/", ["deployment/shop"], id="workload-to-count"),
        pytest.param("plan --detailed", ["--detailed-exitcode"], id="flag-of-plan"),
        pytest.param("plan drain --time", ["--timeout"], id="flag-of-a-planned-verb"),
        pytest.param("watch -i 1s get pod/w", ["pod/web-0", "pod/web-1"], id="watched-verb-after-a-flag"),
        pytest.param("explain deployment/", ["deployment/shop"], id="workload-to-explain"),
        pytest.param("debug fo", ["force"], id="verb-of-a-group"),
        pytest.param("debug force ", ["node-a", "node-b"], id="nodes-of-a-verb-of-a-group"),
        pytest.param("kubectl describe node node-", ["node-a", "node-b"], id="after-kubectl"),
        pytest.param("node st", ["stop", "start"], id="what-a-node-may-do"),
        pytest.param("node stop node-a ", ["node-b"], id="nodes-to-stop"),
        pytest.param("node zones ", [], id="zones-take-nothing"),
        pytest.param("node pressure ", ["node-a", "node-b"], id="nodes-to-put-under-pressure"),
        pytest.param("node pressure node-a m", ["memory"], id="what-a-node-is-short-of"),
        pytest.param("node pressure node-a disk ", ["on", "off"], id="pressure-begins-or-ends"),
        pytest.param("explain web", ["web-0", "web-1"], id="pods-of-a-pod-verb"),
        pytest.param("explain ", ["web-0", "web-1", "team/big-0"], id="explain-pending-pods-of-all-namespaces"),
        pytest.param("explain team/", ["team/big-0"], id="explain-pods-of-another-namespace"),
        pytest.param(
            "explain -n team ", ["big-0", "default/web-0", "default/web-1"], id="those-of-the-namespace-first"
        ),
        pytest.param("explain db", ["db-0"], id="explain-others-where-no-pending-one-begins-like-that"),
        pytest.param("evict ", ["db-0"], id="evict-bound-pods"),
        pytest.param("evict web", [], id="evict-no-others"),
        pytest.param("evict -n team ", ["api-0"], id="evict-bound-pods-of-the-namespace-said"),
        pytest.param("activate ", ["web-0", "web-1"], id="activate-pending-pods"),
        pytest.param("allow ", ["web-1"], id="allow-pods-at-permit"),
        pytest.param("reject w", ["web-1"], id="reject-pods-at-permit"),
        pytest.param("uncordon ", ["node-b"], id="uncordon-cordoned-nodes"),
        pytest.param("cordon ", ["node-a"], id="cordon-the-others"),
        pytest.param("taint ", ["node-a", "node-b"], id="taint-any-node"),
        pytest.param(
            "taint node-b ", ["gpu-", "slow-", "gpu:NoSchedule-", "slow:NoExecute-"], id="taints-of-a-tainted-node"
        ),
        pytest.param("taint node-a g", [], id="no-taints-of-an-untainted-node"),
        pytest.param("taint gpu- ", ["node-b"], id="nodes-that-have-the-taint"),
        pytest.param("taint slow:NoExecute- ", ["node-b"], id="nodes-that-have-the-taint-with-its-effect"),
        pytest.param("taint other- ", [], id="no-node-has-the-taint"),
        pytest.param("set plugin My", ["MyPlugin"], id="plugins-that-are-off"),
        pytest.param("set plugin MyPlugin ", ["on"], id="a-plugin-that-is-off-goes-on"),
        pytest.param("set plugin NodeAffinity ", ["off"], id="a-plugin-that-is-on-goes-off"),
        pytest.param("set profile ", ["default-scheduler"], id="profile-to-set"),
        pytest.param("get pods -o js", ["json", "jsonpath="], id="output"),
        pytest.param("get pods --output=ya", ["--output=yaml"], id="flag-with-equals"),
        pytest.param("get pods --show-l", ["--show-labels"], id="flag"),
        pytest.param("get pods -l ", ["app", "tier"], id="label-keys"),
        pytest.param("get pods -l app=", ["app=db", "app=web"], id="label-values"),
        pytest.param("get pods -l tier=x,app=w", ["tier=x,app=web"], id="second-label"),
        pytest.param("label pods web-0 t", ["tier="], id="label-key-to-set"),
        pytest.param("queue ba", ["backoff"], id="place-of-the-queue"),
        pytest.param("queue pod web-", ["web-0", "web-1"], id="queue-of-a-pod"),
        pytest.param("events no", ["node/"], id="object-of-events"),
        pytest.param("set weight Im", ["ImageLocality"], id="plugin"),
        pytest.param("allow web-0 --plugin-name N", ["NodeAffinity"], id="plugin-of-a-flag"),
        pytest.param("compare --weight N", ["NodeAffinity="], id="weight-of-a-plugin"),
        pytest.param("watch get no", ["nodes"], id="watched-verb"),
        pytest.param("rollout re", ["restart", "resume"], id="action-of-rollout"),
        pytest.param(
            "rollout undo d", ["deployments", "daemonsets", "deployment/", "daemonset/"], id="kind-rolled-out"
        ),
        pytest.param("rollout status deployment/", ["deployment/shop"], id="name-after-a-rolled-out-kind"),
        pytest.param("rollout history deploy ", ["shop"], id="names-of-a-rolled-out-kind"),
        pytest.param("use t", ["team"], id="namespace"),
        pytest.param("nonsense ", [], id="nothing-after-an-unknown-verb"),
        pytest.param("get nothing x", [], id="nothing-of-an-unknown-kind"),
    ],
)
def test_candidates(line: str, words: list[str]) -> None:
    found = _next(line)
    assert found[: len(words)] == words
    if not words:
        assert found == []


def test_files_of_a_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pods.yaml").touch()
    (tmp_path / "notes.txt").touch()
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.json").touch()
    assert _next("apply -f ") == ["more/", "pods.yaml"]
    assert _next("apply -f more/") == ["more/a.json"]
    assert _next(f"apply -f {tmp_path}/p") == [f"{tmp_path}/pods.yaml"]


def test_open_quotes_do_not_disturb() -> None:
    assert split("get 'a b") == (["get"], "a b")
    assert split('x "" ') == (["x", ""], "")


def test_unknown_verbs_stand_out() -> None:
    assert colored("gte pods", line_faults("gte pods", NAMES))[0] == ("class:unknown", "gte")
    pieces = colored("watch get pods -n x  # why")
    assert pieces[0] == ("class:verb", "watch")
    assert pieces[2] == ("class:verb", "get")
    assert ("class:kind", "pods") in pieces
    assert ("class:flag", "-n") in pieces
    assert pieces[-1] == ("class:comment", "# why")
    assert "".join(text for _, text, *_ in pieces) == "watch get pods -n x  # why"
