"""Tests that pods that a taint evicts immediately are created again, but not endlessly at one point in time."""

from itertools import pairwise

import pytest

from kschedd.api.text.times import seconds
from kschedd.controllers.nodes.tainteviction import TaintEviction
from kschedd.controllers.workloads.daemonsets import DaemonSets
from kschedd.controllers.workloads.statefulsets import StatefulSets
from tests.controllers.workloads.clusters import WorkloadCluster
from tests.store.manifests import workload


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_a_pod_that_tolerates_its_nodes_taint_for_no_time_is_made_again_ever_less_often(kind: str) -> None:
    cluster = WorkloadCluster([TaintEviction(), StatefulSets(), DaemonSets()])
    taint = {"key": "x", "effect": "NoExecute"}
    cluster.patch("Node", "n0", {"spec": {"taints": [taint]}}, namespace="")
    raw = workload(kind)
    if kind == "StatefulSet":
        raw["spec"]["serviceName"] = "web"
    else:
        del raw["spec"]["replicas"]
    tolerated = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}
    raw["spec"]["template"]["spec"]["tolerations"] = [tolerated]
    pods = cluster.store.watch({"Pod"})
    cluster.store.create(raw)
    cluster.rest(within_s=100)
    made = [seconds(event.new.metadata["creationTimestamp"]) for event in pods.take() if event.type == "ADDED"]
    waits = [after - before for before, after in pairwise(made)]
    assert waits == [0, 1, 2, 4, 8, 16, 32, 64]
