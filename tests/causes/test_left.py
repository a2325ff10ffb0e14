"""Tests of deleted pods: the preemptor, the taint, or a deletion by a user."""

from pathlib import Path

import pytest

from kschedd.scenarios.commands import ScenarioCluster

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "2", memory: 8Gi, pods: "9"}, capacity: {cpu: "2", memory: 8Gi, pods: "9"}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
"""
POD = (
    "{{apiVersion: v1, kind: Pod, metadata: {{name: {}}}, "
    "spec: {{{} containers: [{{name: a, image: i, resources: {}}}]}}}}"
)
TWO = "{requests: {cpu: 2}}"
LIMITED = "tolerations: [{key: x, operator: Exists, effect: NoExecute, tolerationSeconds: 20}],"


def answer(cluster: ScenarioCluster, name: str = "low") -> str:
    found = cluster.connect().call("causes.explain", kind="Pod", name=name)
    assert found["remedies"] == []
    return f"{found['cause']['code']}: {found['cause']['message']}"


@pytest.fixture
def cluster(tmp_path: Path) -> ScenarioCluster:
    cluster = ScenarioCluster(tmp_path)
    cluster.do("apply", CLUSTER + POD.format("low", "", TWO))
    cluster.do("advance 10s", "")
    return cluster


def test_a_preempted_pod_names_its_preemptor(cluster: ScenarioCluster) -> None:
    cluster.do("apply", POD.format("top", "priorityClassName: high,", TWO))
    cluster.do("advance 60s", "")
    text = answer(cluster)
    assert text.startswith("PodPreempted: default/low (priority 0) was preempted on n1 at ")
    assert text.endswith(" by default/top (priority 1000)")
    found = cluster.connect().call("causes.explain", kind="Pod", name="low")
    command = "explain top -n default --attempt 1"
    assert found["cause"]["evidence"] == [f"`{command}` lists the victims it could have had instead"]
    assert "on n1, default/low would make way" in cluster.do(command, "")
    assert "pod/low: it is gone.\nCause: default/low (priority 0) was preempted" in cluster.do("explain low", "")


def test_a_taint_names_itself(cluster: ScenarioCluster) -> None:
    cluster.do("taint nodes n1 x=y:NoExecute", "")
    cluster.do("advance 60s", "")
    text = answer(cluster)
    assert text.startswith("PodEvicted: default/low was evicted from n1 at ")
    assert text.endswith(" for the taint x=y:NoExecute, which it does not tolerate")


def test_a_taint_that_was_tolerated_for_a_time_says_so(tmp_path: Path) -> None:
    cluster = ScenarioCluster(tmp_path)
    cluster.do("apply", CLUSTER + POD.format("low", LIMITED, TWO))
    cluster.do("advance 10s", "")
    cluster.do("taint nodes n1 x=y:NoExecute", "")
    cluster.do("advance 90s", "")
    assert answer(cluster).endswith(" for the taint x=y:NoExecute, which it tolerated for 20 s")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("drain n1 --force", "PodEvicted: default/low was evicted through the API, as a drain does on n1"),
        ("delete pod low", "PodDeleted: default/low was deleted on n1"),
    ],
)
def test_who_asked_for_it_is_told_from_the_condition(cluster: ScenarioCluster, command: str, words: str) -> None:
    cluster.do(command, "")
    cluster.do("advance 60s", "")
    assert answer(cluster).startswith(words)
