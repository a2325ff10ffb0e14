"""Remedies whose pods preempt a pod of lower priority: they come last and name that pod."""

from pathlib import Path
from typing import Any

import pytest

from kschedd.scenarios.commands import ScenarioCluster

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {disk: ssd}}
status: {allocatable: {cpu: "2", memory: 8Gi, pods: "9"}, capacity: {cpu: "2", memory: 8Gi, pods: "9"}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: patient}
value: 1000
preemptionPolicy: Never
---
apiVersion: v1
kind: Pod
metadata: {name: low}
spec: {containers: [{name: a, image: i, resources: {requests: {cpu: 2}}}]}
---
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: typo}
spec:
  priorityClassName: %s
  nodeSelector: {disk: sdd}
  containers: [{name: a, image: i, resources: {requests: {cpu: 2}}}]
"""


def _remedies(tmp_path: Path, priority: str) -> list[dict[str, Any]]:
    cluster = ScenarioCluster(tmp_path)
    cluster.do("apply", CLUSTER)
    cluster.do("advance 10s", "")
    cluster.do("apply", POD % priority)
    cluster.do("advance 10s", "")
    remedies: list[dict[str, Any]] = cluster.connect().call("causes.explain", kind="Pod", name="typo")["remedies"]
    return remedies


def test_a_corrected_value_that_preempts_one_pod_is_offered_last(tmp_path: Path) -> None:
    *others, last = _remedies(tmp_path, "high")
    assert all(each["verified"] and not each["displaced"] for each in others)
    assert last["summary"] == "use disk=ssd, which preempts pod default/low"
    assert (last["verified"], last["displaced"], last["scheduled"]) == (False, ["default/low"], "1 of 1")


@pytest.mark.parametrize("priority", ["patient", "system-node-critical"])
def test_pods_that_never_preempt_are_not_offered_it(tmp_path: Path, priority: str) -> None:
    found = [each["summary"] for each in _remedies(tmp_path, priority)]
    assert any("preempts" in summary for summary in found) is (priority != "patient")
