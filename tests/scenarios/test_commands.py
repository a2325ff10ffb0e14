"""Tests of scenario commands: the command line's verbs in virtual time, and the scenario's own commands."""

import json
from pathlib import Path
from typing import Any

import pytest

from kschedd.config.versions.kube_versions import DEFAULT, V1_34, KubernetesVersion
from kschedd.errors import KscheddError
from kschedd.scenarios.commands import CommandError, ScenarioCluster, duration
from kschedd.service.errors import RpcError
from kschedd.simulation.engine import LoggedAttempt
from kschedd.verbs.table import VERBS
from tests.extenders.servers import serving
from tests.rpc.documented import as_documented
from tests.verbs.test_live import CLUSTER, ELSEWHERE, LINES

GANG = """\
from kschedd.framework.status import Code, Status

class Hold:
    name = "Hold"

    def permit(self, state, pod, node_name):
        return (Status(Code.WAIT), 60.0) if pod.name.startswith("held") else None
"""
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: default-scheduler, plugins: {multiPoint: {enabled: [{name: Hold}]}}}]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> ScenarioCluster:
    """Build the cluster of the verbs' live tests, in virtual time."""
    return begun(tmp_path, DEFAULT)


def begun(tmp_path: Path, version: KubernetesVersion) -> ScenarioCluster:
    (tmp_path / "hold.py").write_text(GANG)
    cluster = ScenarioCluster(tmp_path, version=version)
    assert cluster.do("plugin hold.py", "") == "plugins Hold\n"
    assert cluster.do("config", CONFIG) == ""
    assert "error" not in cluster.do("apply", CLUSTER)
    return cluster


def test_every_verb_does_what_it_does_on_a_live_daemon(scenario: ScenarioCluster) -> None:
    used = set()
    for line, words in LINES:
        verb = line.split()[0]
        used.add(verb)
        answer = scenario.do(line, CLUSTER if "-f -" in line else "")
        if verb in ("stop", "watch"):
            assert answer.startswith(f"error: {verb}: ")
        else:
            assert words in answer, line
            assert "error:" not in answer, line
    assert {verb.name for verb in VERBS} - used == {"apply", *ELSEWHERE}


def test_what_lies_below_a_line_is_the_manifest_of_diff_and_replace(scenario: ScenarioCluster) -> None:
    text = scenario.do("get pod little -o yaml", "").replace("app: little", "app: other")
    assert "+    app: other\n" in scenario.do("diff -f -", text)
    assert scenario.do("replace -f -", text) == "pod/little replaced\n"
    assert scenario.do("edit pod little", "").startswith("error: edit requires a terminal")


def test_answers_are_as_the_method_table_documents_them(scenario: ScenarioCluster) -> None:
    daemon = scenario.connect()
    calls: list[tuple[str, dict[str, Any]]] = [
        ("daemon.info", {}),
        ("objects.list", {"kind": "Pod"}),
        ("objects.get", {"kind": "pod", "name": "big"}),
        ("objects.kinds", {}),
        ("events.list", {}),
        ("queue.list", {}),
        ("queue.pod", {"pod": "default/big"}),
        ("waiting.list", {}),
        ("scheduler.status", {}),
        ("scheduler.config", {}),
        ("scheduler.decisions", {}),
        ("scheduler.explain", {"pod": "default/little"}),
        ("objects.label", {"kind": "Pod", "name": "big", "set": {"a": "b"}}),
    ]
    for method, named in calls:
        assert as_documented(daemon.methods[method].answer, daemon.call(method, **named)), method


def test_parameters_are_checked_as_the_socket_checks_them(scenario: ScenarioCluster) -> None:
    daemon = scenario.connect()
    with pytest.raises(KscheddError, match='did you mean "name"'):
        daemon.call("objects.get", kind="Pod", nam="big")
    with pytest.raises(RpcError) as refused:
        daemon.call("objects.get", kind="Pod", name="nobody")
    assert refused.value.code == "not_found"
    with pytest.raises(RpcError, match="look again after"), daemon.subscribe("objects.watch", kind="Pod"):
        pytest.fail("a stream was opened")
    with pytest.raises(RpcError, match="look again after"):
        daemon.call("events.watch")


def test_what_was_answered_is_a_copy(scenario: ScenarioCluster) -> None:
    daemon = scenario.connect()
    daemon.call("objects.get", kind="Node", name="node-a")["object"]["metadata"]["name"] = "other"
    assert daemon.call("objects.get", kind="Node", name="node-a")["object"]["metadata"]["name"] == "node-a"


def test_time_passes_only_when_it_is_told_to(tmp_path: Path) -> None:
    scenario = begun(tmp_path, V1_34)
    assert "60s" in scenario.do("waiting", "")
    assert scenario.do("advance 20s", "") == ""
    assert "40s" in scenario.do("waiting", "")
    assert scenario.do("reject held --reason 'not today'", "") == "pod/default/held rejected\n"
    assert "not today" in scenario.do("describe pod held", "")
    assert scenario.do("rest 1s", "") == "+20s still busy\n"
    assert scenario.do("rest 3m", "") == "+2m20s at rest\n"


def test_a_rejected_pod_whose_nomination_is_cleared_is_tried_again_at_once(scenario: ScenarioCluster) -> None:
    # Since 1.35 a waiting pod's status has its node; a plugin without registered events gets every update.
    assert scenario.do("reject held", "") == "pod/default/held rejected\n"
    assert scenario.do("advance 2s", "") == ""
    assert "58s" in scenario.do("waiting", "")


def test_a_weight_counts_from_the_next_attempt_on(scenario: ScenarioCluster) -> None:
    assert "1 -> 7" in scenario.do("set weight ImageLocality 7", "")
    assert "ImageLocality                     7" in scenario.do("weights", "")
    assert "weight: 7" in scenario.do("config convert", "")


def test_lines_that_follow_are_standard_input(scenario: ScenarioCluster) -> None:
    manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: m}}"
    assert scenario.do("create", manifest) == "configmap/m created\n"
    assert scenario.do("patch configmap m", "data: {a: b}") == "configmap/m patched: data\n"
    assert scenario.do("delete -f -", manifest) == 'configmap "m" deleted from default namespace\n'


def test_files_are_looked_for_beside_the_scenario(scenario: ScenarioCluster, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "bad.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: B}}")
    answer = scenario.do("apply -f more", "")
    assert answer.startswith("error: more/bad.yaml:1: ConfigMap B: metadata.name")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        pytest.param("advance soon", "'soon' is not a duration", id="duration"),
        pytest.param("advance", "expected: advance 10s", id="nothing-to-advance-by"),
        pytest.param("rest x", "'x' is not a duration", id="limit-of-rest"),
        pytest.param("advance 99999999999h", "cannot advance beyond 9999-12-31T23:59:59Z", id="beyond-all-time"),
        pytest.param(f"expect {'9' * 5_000} pods pending", "expect", id="more-pods-than-there-are-numbers"),
        pytest.param("seed 3", "must precede the first command that needs a cluster", id="seed-too-late"),
        pytest.param("plugin hold.py", "must precede the first command", id="plugin-too-late"),
        pytest.param("advanc 1s", 'did you mean "advance"?', id="own-command-misspelt"),
        pytest.param("get 'pods", "No closing quotation", id="quotes"),
        pytest.param("get pods -w", "look again after", id="watch"),
        pytest.param("spread", "LABEL is required", id="spread"),
    ],
)
def test_what_cannot_be_done_is_part_of_what_is_printed(scenario: ScenarioCluster, command: str, words: str) -> None:
    answer = scenario.do(command, "")
    assert "error: " in answer
    assert words in answer


@pytest.mark.parametrize(
    "command",
    ["seed x", "seed --3", "seed", f"seed {'9' * 5_000}", "seed ²", "plugin nowhere.py", "config -f nowhere.yaml"],
)
def test_what_cannot_be_read_before_the_beginning(tmp_path: Path, command: str) -> None:
    assert ScenarioCluster(tmp_path).do(command, "").startswith("error: ")


def test_decisions_are_told_to_who_wants_to_hear(tmp_path: Path) -> None:
    heard: list[LoggedAttempt] = []
    cluster = ScenarioCluster(tmp_path, heard.append)
    cluster.do("apply", CLUSTER)
    assert [attempt.pod for attempt in heard] == ["default/little", "default/big", "default/held"]


def test_the_same_seed_gives_the_same_answers(tmp_path: Path) -> None:
    def printed(seed: int) -> str:
        cluster = ScenarioCluster(tmp_path)
        cluster.do(f"seed {seed}", "")
        return "".join(cluster.do(line, CLUSTER) for line in ("apply", "get pods -o yaml", "queue", "decisions"))

    assert printed(1) == printed(1)


def test_a_seed_may_be_negative(tmp_path: Path) -> None:
    assert ScenarioCluster(tmp_path).do("seed -3", "") == ""


@pytest.mark.parametrize(("text", "seconds"), [("500ms", 0.5), ("1m30s", 90), ("2h", 7200), ("1d", 86400)])
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "s", "1x", "10s!"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(CommandError):
        duration(text)


def test_the_configuration_of_a_scenario_may_name_extenders(tmp_path: Path) -> None:
    verbs: dict[str, Any] = {"filter": lambda args: {"NodeNames": ["n2"], "FailedNodes": {"n1": "no card"}}}
    config = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders: [{urlPrefix: URL, filterVerb: filter, nodeCacheCapable: true, httpTimeout: 60s}]
"""
    node = {"apiVersion": "v1", "kind": "Node", "status": {"allocatable": {"cpu": "4", "pods": "110"}}}
    containers = [{"name": "a", "image": "a"}]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": containers}}
    with serving(verbs) as extender:
        scenario = ScenarioCluster(tmp_path)
        assert scenario.do("config", config.replace("URL", extender.url)) == ""
        for name in ("n1", "n2"):
            scenario.do("apply", json.dumps({**node, "metadata": {"name": name}}))
        assert scenario.do("apply", json.dumps(pod)) == "pod/web created\n"
        assert scenario.do("get pod web -o jsonpath={.spec.nodeName}", "") == "n2"
        assert "no card" in scenario.do("explain web", "")
        assert extender.of("filter")[0]["NodeNames"] == ["n1", "n2"]
