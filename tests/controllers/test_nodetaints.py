from typing import Any

import pytest

from kschedd.controllers.nodes.nodetaints import NodeTaints, tainted
from kschedd.controllers.runner import ControllerRunner
from kschedd.store.errors import Conflict, NotFound
from kschedd.store.store import Store
from tests.store.manifests import Clock, node

AT = "2023-11-14T22:13:20Z"


def taint(key: str, effect: str) -> dict[str, str]:
    return {"key": f"node.kubernetes.io/{key}", "effect": effect, "timeAdded": AT}


@pytest.mark.parametrize(
    ("conditions", "spec", "expected"),
    [
        pytest.param({"Ready": "True"}, {}, [], id="healthy"),
        pytest.param({"Ready": "False"}, {}, [taint("not-ready", "NoSchedule")], id="not-ready"),
        pytest.param({"Ready": "Unknown"}, {}, [taint("unreachable", "NoSchedule")], id="unreachable"),
        pytest.param({"MemoryPressure": "True"}, {}, [taint("memory-pressure", "NoSchedule")], id="memory"),
        pytest.param({"DiskPressure": "True"}, {}, [taint("disk-pressure", "NoSchedule")], id="disk"),
        pytest.param({"PIDPressure": "True"}, {}, [taint("pid-pressure", "NoSchedule")], id="pid"),
        pytest.param({"NetworkUnavailable": "True"}, {}, [taint("network-unavailable", "NoSchedule")], id="network"),
        pytest.param({"MemoryPressure": "Unknown", "DiskPressure": "False"}, {}, [], id="only-true-counts-as-pressure"),
        pytest.param({"Ready": "True"}, {"unschedulable": True}, [taint("unschedulable", "NoSchedule")], id="cordoned"),
        pytest.param({"OutOfDisk": "True"}, {}, [], id="other-conditions-mean-nothing"),
    ],
)
def test_conditions_become_taints(conditions: dict[str, str], spec: dict[str, Any], expected: list[Any]) -> None:
    assert (tainted(node(conditions=conditions, **spec), AT) or []) == expected


OTHER = {"key": "dedicated", "value": "gpu", "effect": "NoExecute"}
CLOUD = {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}
SOFT = {"key": "node.kubernetes.io/memory-pressure", "effect": "PreferNoSchedule"}


@pytest.mark.parametrize(
    ("taints", "conditions", "expected"),
    [
        pytest.param([OTHER, CLOUD, SOFT], {"Ready": "True"}, None, id="other-taints-are-not-touched"),
        pytest.param([taint("disk-pressure", "NoSchedule"), OTHER], {"Ready": "True"}, [OTHER], id="cleared"),
        pytest.param([taint("not-ready", "NoSchedule")], {"Ready": "True"}, [], id="ready-again"),
        pytest.param(
            [taint("not-ready", "NoSchedule")],
            {"Ready": "Unknown"},
            [taint("unreachable", "NoSchedule")],
            id="one-gives-way-to-the-other",
        ),
        pytest.param([taint("unreachable", "NoExecute")], {"Ready": "True"}, None, id="noexecute-is-not-touched"),
        pytest.param([taint("disk-pressure", "NoSchedule")], {"DiskPressure": "True"}, None, id="there-already"),
    ],
)
def test_taints_follow_the_conditions(
    taints: list[Any], conditions: dict[str, str], expected: list[Any] | None
) -> None:
    assert tainted(node(conditions=conditions, taints=taints), AT) == expected


def test_the_controller_taints_and_frees_nodes_in_the_store() -> None:
    store = Store(now=Clock())
    cluster = ControllerRunner(store, [NodeTaints()])
    store.create(node(conditions={"Ready": "True"}))
    assert cluster.run_until_idle() == 0
    store.merge_patch("Node", "", "node-1", {"spec": {"unschedulable": True}})
    assert cluster.run_until_idle() == 1
    assert store.get("Node", "", "node-1").spec["taints"] == [taint("unschedulable", "NoSchedule")]
    store.merge_patch("Node", "", "node-1", {"spec": {"unschedulable": None}})
    assert cluster.run_until_idle() == 1
    assert "taints" not in store.get("Node", "", "node-1").spec


def test_a_taint_added_in_between_is_not_lost() -> None:
    store = Store(now=Clock())
    controller = NodeTaints()
    created = store.create(node(conditions={"DiskPressure": "True"}))
    watch = store.watch(None, created.resource_version - 1)
    (write,) = controller.reconcile(watch.take(), store, 0)
    store.merge_patch("Node", "", "node-1", {"spec": {"taints": [OTHER]}})
    refused = Conflict("Node", "node-1")
    [again] = controller.on_refused(write, refused, store, 0)
    assert again.patch["metadata"]["resourceVersion"] == str(store.get("Node", "", "node-1").resource_version)
    assert controller.on_refused(write, NotFound("Node", "node-1"), store, 0) == []
    cluster = ControllerRunner(store, [controller])
    cluster.run_until_idle()
    keys = [t["key"] for t in store.get("Node", "", "node-1").spec["taints"]]
    assert keys == ["dedicated", "node.kubernetes.io/disk-pressure"]
    assert write.patch["metadata"]["resourceVersion"] == str(created.resource_version)


def test_only_a_taint_of_the_same_effect_is_the_taint_of_a_condition() -> None:
    assert tainted({"metadata": {"name": "n"}}, AT) is None, "a node without conditions"
    pressed = node(conditions={"DiskPressure": "True"})
    evicting = taint("disk-pressure", "NoExecute")
    added = tainted({**pressed, "spec": {"taints": [evicting]}}, AT)
    assert added == [evicting, taint("disk-pressure", "NoSchedule")]


def test_a_node_without_taints_has_no_empty_list_of_them() -> None:
    store = Store(now=Clock())
    raw = node(conditions={"DiskPressure": "False"})
    created = store.create({**raw, "spec": {"taints": [taint("disk-pressure", "NoSchedule")]}})
    watch = store.watch(None, created.resource_version - 1)
    (write,) = NodeTaints().reconcile(watch.take(), store, 0)
    assert write.patch["spec"] == {"taints": None}
