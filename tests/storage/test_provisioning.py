"""Tests of whether a volume can be provisioned for a claim on a node."""

from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.storage.provisioning import CapacityOutcome, allowed_topologies, provisioning, waits_for_consumer
from kschedd.storage.volumes import StorageError


def claim(size: str = "5Gi", **spec: Any) -> Object:
    base = {"storageClassName": "fast", "resources": {"requests": {"storage": size}}}
    meta = {"name": "data", "namespace": "default"}
    return Object.from_raw({"kind": "PersistentVolumeClaim", "metadata": meta, "spec": {**base, **spec}})


def fast(**fields: Any) -> dict[str, Object]:
    raw = {"kind": "StorageClass", "metadata": {"name": "fast"}, "provisioner": "csi.example.com", **fields}
    return {"fast": Object.from_raw(raw)}


def driver(storage_capacity: bool) -> dict[str, Object]:
    raw = {"kind": "CSIDriver", "metadata": {"name": "csi.example.com"}, "spec": {"storageCapacity": storage_capacity}}
    return {"csi.example.com": Object.from_raw(raw)}


def capacities(*fields: dict[str, Any]) -> dict[str, Object]:
    made = {}
    for number, each in enumerate(fields):
        raw = {"kind": "CSIStorageCapacity", "metadata": {"name": f"c{number}", "namespace": "kube-system"}}
        made[f"kube-system/c{number}"] = Object.from_raw({**raw, "storageClassName": "fast", **each})
    return made


def in_zone(zone: str) -> dict[str, Any]:
    return {"nodeTopology": {"matchLabels": {"zone": zone}}}


@pytest.mark.parametrize(
    ("fields", "room"),
    [
        pytest.param({"capacity": "5Gi"}, CapacityOutcome.POSSIBLE, id="just-enough"),
        pytest.param({"capacity": "4Gi"}, CapacityOutcome.NO_SPACE, id="too-little"),
        pytest.param(
            {"capacity": "100Gi", "maximumVolumeSize": "4Gi"}, CapacityOutcome.NO_SPACE, id="each-volume-is-limited"
        ),
        pytest.param(
            {"capacity": "1Gi", "maximumVolumeSize": "5Gi"}, CapacityOutcome.POSSIBLE, id="the-limit-counts-alone"
        ),
        pytest.param({}, CapacityOutcome.NO_SPACE, id="nothing-said"),
        pytest.param({"capacity": "9Gi", "storageClassName": "other"}, CapacityOutcome.NO_SPACE, id="of-another-class"),
    ],
)
def test_room_that_the_driver_reports(fields: dict[str, Any], room: CapacityOutcome) -> None:
    making = provisioning(claim(), fast(), driver(True), capacities({**in_zone("a"), **fields}))
    assert making.on({"zone": "a"})[0] is room
    assert making.on({"zone": "b"})[0] is CapacityOutcome.NO_SPACE


def test_topology_absent_is_reached_by_no_node_and_empty_by_all() -> None:
    unreachable = provisioning(claim(), fast(), driver(True), capacities({"capacity": "9Gi"}))
    assert unreachable.on({})[0] is CapacityOutcome.NO_SPACE
    everywhere = provisioning(claim(), fast(), driver(True), capacities({"capacity": "9Gi", "nodeTopology": {}}))
    assert everywhere.on({})[0] is CapacityOutcome.POSSIBLE


def test_driver_that_reports_no_capacity_has_room() -> None:
    assert provisioning(claim(), fast(), driver(False), {}).on({})[0] is CapacityOutcome.POSSIBLE
    assert provisioning(claim(), fast(), {}, {}).on({})[0] is CapacityOutcome.POSSIBLE


def test_allowed_topologies_are_alternatives_of_which_each_demands_all() -> None:
    terms = [
        {"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}, {"key": "rack", "values": ["1"]}]},
        {"matchLabelExpressions": [{"key": "zone", "values": ["c"]}]},
        {"matchLabelExpressions": []},
        {"matchLabelExpressions": [{"key": "bad key", "values": ["x"]}]},
    ]
    making = provisioning(claim(), fast(allowedTopologies=terms), {}, {})
    assert making.on({"zone": "a", "rack": "1"})[0] is CapacityOutcome.POSSIBLE
    assert making.on({"zone": "a", "rack": "2"})[0] is CapacityOutcome.NOT_HERE
    assert making.on({"zone": "c"})[0] is CapacityOutcome.POSSIBLE
    assert making.on({"bad key": "x"})[0] is CapacityOutcome.NOT_HERE
    assert allowed_topologies(None) is None
    assert allowed_topologies([{}]) == ()


@pytest.mark.parametrize(
    ("wanted", "classes", "why"),
    [
        (claim(storageClassName=""), fast(), 'no class for claim "default/data"'),
        (claim(), {}, 'failed to find storage class "fast"'),
    ],
)
def test_claim_whose_class_is_missing(wanted: Object, classes: dict[str, Object], why: str) -> None:
    with pytest.raises(StorageError, match=why):
        provisioning(wanted, classes, {}, {}).on({})


def test_class_without_provisioner_makes_nothing_anywhere() -> None:
    making = provisioning(claim(), fast(provisioner="kubernetes.io/no-provisioner"), {}, {})
    assert making.on({})[0] is CapacityOutcome.NOT_HERE


def test_binding_mode() -> None:
    assert waits_for_consumer(claim(), fast(volumeBindingMode="WaitForFirstConsumer"))
    assert not waits_for_consumer(claim(), fast(volumeBindingMode="Immediate"))
    assert not waits_for_consumer(claim(), {})
    with pytest.raises(StorageError, match='VolumeBindingMode not set for StorageClass "fast"'):
        waits_for_consumer(claim(), fast())
