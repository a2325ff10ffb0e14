"""Tests of the diagnosis of nodes: why no pods are scheduled to a node, and why a drain does not end."""

import json
from pathlib import Path
from typing import Any

import pytest

from kschedd.scenarios.commands import ScenarioCluster
from kschedd.sdk.objects import node, pod


@pytest.fixture
def cluster(tmp_path: Path) -> ScenarioCluster:
    cluster = ScenarioCluster(tmp_path)
    tainted = node("gpu", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
    lost = pod("lost", cpu="1", spec={"nodeSelector": {"pool": "b"}})
    applied(cluster, node("n1"), tainted, lost)
    return cluster


def applied(cluster: ScenarioCluster, *objects: dict[str, Any]) -> None:
    assert "error" not in cluster.do("apply", "\n---\n".join(map(json.dumps, objects)))
    cluster.do("advance 10s", "")


def cause(cluster: ScenarioCluster, name: str) -> dict[str, Any]:
    found: dict[str, Any] = cluster.connect().call("causes.explain", kind="Node", name=name)["cause"]
    return found


def test_what_keeps_the_pending_pods_from_a_node_is_told(cluster: ScenarioCluster) -> None:
    reason = "NodeAffinity: node(s) didn't match Pod's node affinity/selector"
    assert cause(cluster, "n1")["evidence"] == [f"default/pod/lost (1 pending): {reason}"]
    found = cause(cluster, "gpu")
    assert found["code"] == "NodeTainted"
    (line,) = found["evidence"]
    assert reason in line
    assert "TaintToleration" in line
    cluster.do("delete pod lost", "")
    assert cause(cluster, "n1")["evidence"] == ["no pod is pending in the cluster"]


def test_a_drain_waits_for_pods_that_do_not_end(cluster: ScenarioCluster) -> None:
    held = pod("held", node_name="n1")
    applied(cluster, {**held, "metadata": {**held["metadata"], "finalizers": ["example.com/backup"]}})
    assert cause(cluster, "n1")["code"] == "NothingIsWrong"
    cluster.do("drain n1 --force --timeout=20s", "")
    found = cause(cluster, "n1")
    assert found["code"] == "DrainWaitsForPods"
    assert found["message"] == "a drain of n1 does not end yet: example.com/backup keeps default/held there"
    assert [(each["kind"], each["name"]) for each in found["objects"]] == [("Node", "n1"), ("Pod", "held")]
