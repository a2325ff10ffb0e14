"""Tests of rules for PersistentVolumes and claims that concern several fields or the previous object."""

from typing import Any

import pytest

from kschedd.store.errors import Invalid
from kschedd.store.store import Store
from tests.api.objects import Raw, named

MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"
CLASS = "volume.beta.kubernetes.io/storage-class"
ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
CLAIM = {"kind": "PersistentVolumeClaim", "name": "src"}
OTHER = {"apiGroup": "x.y", "kind": "Z", "name": "n"}
ELSEWHERE = {**CLAIM, "namespace": "there"}


@pytest.fixture
def store() -> Store:
    return Store()


def claim(annotations: Raw | None = None, **spec: Any) -> Raw:
    requests = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
    raw = named("PersistentVolumeClaim", spec={**requests, **spec})
    raw["metadata"] |= {"namespace": "default", "annotations": annotations or {}}
    return raw


def volume(annotations: Raw | None = None, **spec: Any) -> Raw:
    raw = named("PersistentVolume", spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **spec})
    raw["metadata"]["annotations"] = annotations or {}
    return raw


def in_zone(key: str) -> Raw:
    expressions = [{"key": key, "operator": "In", "values": ["z"]}]
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}


def fields(act: Any) -> list[str]:
    """Return the path of each invalid field once."""
    with pytest.raises(Invalid) as refusal:
        act()
    return list(dict.fromkeys(fault.path for fault in refusal.value.faults))


def changed(store: Store, made: Any, **spec: Any) -> Any:
    return store.update({**made.raw, "spec": {**made.raw["spec"], **spec}})


def sources(made: Any) -> tuple[Any, Any]:
    named_by = (made.spec.get(field) for field in ("dataSource", "dataSourceRef"))
    first, second = ({k: v for k, v in (each or {}).items() if v is not None} for each in named_by)
    return first, second


def test_mount_options_by_annotation_are_for_volumes_that_are_mounted_with_options(store: Store) -> None:
    noted = {MOUNT_OPTIONS: "ro"}
    path = f"metadata.annotations.{MOUNT_OPTIONS}"
    assert fields(lambda: store.create(volume(noted, hostPath={"path": "/x"}))) == [path]
    made = store.create(volume(noted, nfs={"server": "s", "path": "/x"}))
    assert made.metadata["annotations"] == noted

    bare = store.create({**volume(hostPath={"path": "/x"}), "metadata": {"name": "bare"}})
    with pytest.raises(Invalid) as refusal:
        store.update({**bare.raw, "metadata": {**bare.metadata, "annotations": noted}})
    assert [str(fault) for fault in refusal.value.faults] == [
        f"{path}: Forbidden: may not specify mount options for this volume type"
    ]


def test_labels_of_a_volumes_nodes_are_renamed_to_the_new_names_only(store: Store) -> None:
    old = store.create(volume(hostPath={"path": "/x"}, nodeAffinity=in_zone(OLD_ZONE)))
    new = changed(store, old, nodeAffinity=in_zone(ZONE))
    assert new.spec["nodeAffinity"] == in_zone(ZONE)
    assert fields(lambda: changed(store, new, nodeAffinity=in_zone(OLD_ZONE))) == ["nodeAffinity"]


@pytest.mark.parametrize(
    ("requests", "stored"),
    [
        pytest.param({"dataSource": CLAIM}, (CLAIM, CLAIM), id="a-claim"),
        pytest.param({"dataSourceRef": OTHER}, (OTHER, OTHER), id="anything-by-reference"),
        pytest.param({"dataSource": OTHER}, ({}, {}), id="no-claim-and-no-snapshot"),
        pytest.param({"dataSource": OTHER, "dataSourceRef": OTHER}, (OTHER, OTHER), id="both-the-same"),
        pytest.param({"dataSourceRef": ELSEWHERE}, ({}, {}), id="in-another-namespace"),
        pytest.param({"dataSource": CLAIM, "dataSourceRef": ELSEWHERE}, (CLAIM, CLAIM), id="the-older-one-remains"),
    ],
)
def test_what_a_new_claim_is_filled_from(store: Store, requests: Raw, stored: Any) -> None:
    assert sources(store.create(claim(**requests))) == stored


def test_two_names_of_what_a_claim_is_filled_from_must_agree_whatever_they_name(store: Store) -> None:
    assert fields(lambda: store.create(claim(dataSource=OTHER, dataSourceRef=CLAIM))) == ["spec"]


def test_a_claim_that_is_filled_from_something_keeps_it_where_an_old_client_names_it_by_the_older_field(
    store: Store,
) -> None:
    made = store.create(claim(dataSourceRef=OTHER))
    spec = {field: value for field, value in made.raw["spec"].items() if field != "dataSourceRef"}
    assert sources(store.update({**made.raw, "spec": spec})) == (OTHER, OTHER)


def test_a_claim_that_is_filled_from_something_cannot_name_a_namespace_later(store: Store) -> None:
    made = store.create(claim(dataSourceRef=CLAIM))
    with pytest.raises(Invalid) as refusal:
        changed(store, made, dataSourceRef={**CLAIM, "namespace": "Not This"})
    assert [str(fault).partition(": a lowercase")[0] for fault in refusal.value.faults[:2]] == [
        'spec.dataSourceRef.namespace: Invalid value: "Not This"',
        "spec: Invalid value: {}: may not be specified when dataSourceRef.namespace is specified",
    ]


def test_a_claim_with_a_class_by_annotation_takes_that_class_alone_by_its_field(store: Store) -> None:
    made = store.create(claim({CLASS: "one"}))
    assert fields(lambda: changed(store, made, storageClassName="two")) == ["spec"]
    assert changed(store, made, storageClassName="one").spec["storageClassName"] == "one"


@pytest.mark.parametrize("phase", ["Pending", "Bound"])
def test_a_claim_that_asks_for_no_storage_any_more_asks_for_less(store: Store, phase: str) -> None:
    made = store.create(claim())
    made = store.update_status({**made.raw, "status": {"phase": phase, "capacity": {"storage": "1Gi"}}})
    assert fields(lambda: changed(store, made, resources={})) == [
        "spec.resources[storage]",
        "spec",
        "spec.resources.requests.storage",
    ]
