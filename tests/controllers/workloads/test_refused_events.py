"""Tests that a controller continues if the store rejects the Event about a rejected pod."""

from typing import Any

import pytest

from kschedd.controllers.running.controller import Controller
from kschedd.controllers.workloads.daemonsets import DaemonSets
from kschedd.controllers.workloads.replicasets import ReplicaSets
from kschedd.controllers.workloads.statefulsets import StatefulSets
from tests.controllers.workloads.clusters import WorkloadCluster
from tests.store.manifests import workload


@pytest.mark.parametrize(
    ("kind", "controller", "spec"),
    [
        ("ReplicaSet", ReplicaSets, {"replicas": 1}),
        ("DaemonSet", DaemonSets, {}),
        ("StatefulSet", StatefulSets, {"replicas": 1, "serviceName": "web"}),
    ],
)
def test_a_refused_event_is_lost_and_faults_nothing(kind: str, controller: type[Any], spec: dict[str, Any]) -> None:
    working: Controller = controller()
    cluster = WorkloadCluster([working])
    hard = {"pods": "0", "count/events": "0"}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none", "namespace": "default"},
        "spec": {"hard": hard},
        "status": {"hard": hard, "used": hard},
    }
    cluster.store.create(quota)
    cluster.store.update(quota, with_status=True)
    cluster.store.create(workload(kind, **spec))
    cluster.rest(20)
    assert cluster.pods() == []
    assert list(cluster.store.list("Event")) == []
    assert working.faults.faults() == []
