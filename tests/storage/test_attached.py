"""Tests that AttachedVolumes, updated incrementally, equals one computed from scratch."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.storage.attachable import Fault, migrated_or_annotated
from kschedd.storage.attached import Attached, AttachedVolumes
from tests.full_run import examples

NAMES = ["a", "b", "c", "lost"]
DRIVERS = ["csi.one", "csi.two", "pxd.portworx.com"]
WANTED: list[Attached] = [
    frozenset(),
    frozenset({("csi.one", "new")}),
    frozenset({("csi.one", "new"), ("csi.one", "newer"), ("csi.two", "new")}),
    frozenset({("pxd.portworx.com", "new"), ("csi.none", "new")}),
]


def make(kind: str, name: str, namespace: str = "", **fields: Any) -> Object:
    meta = {"name": name, "uid": f"{kind}-{name}", **fields.pop("metadata", {})}
    if namespace:
        meta["namespace"] = namespace
    return parse({"kind": kind, "metadata": meta, **fields})


def csi_node(number: int, limits: list[int | None], migrated: str) -> Object:
    drivers = [
        {"name": name, "allocatable": {} if count is None else {"count": count}}
        for name, count in zip(DRIVERS, limits, strict=True)
    ]
    meta = {"annotations": {"storage.alpha.kubernetes.io/migrated-plugins": migrated}}
    return make("CSINode", f"n{number}", metadata=meta, spec={"drivers": drivers})


def claim(name: str, volume: str) -> Object:
    owner = {"kind": "Pod", "name": "0-a", "uid": "Pod-0-a", "controller": True, "apiVersion": "v1"}
    owned = {"ownerReferences": [owner]} if volume == "b" else {}
    spec = {"volumeName": f"pv-{volume}" if volume else "", "storageClassName": "class"}
    return make("PersistentVolumeClaim", name, "default", metadata=owned, spec=spec)


def volume(name: str, kind: str) -> Object:
    source = {"portworxVolume": {"volumeID": name}} if kind == "portworx" else {"csi": {"driver": kind}}
    if "csi" in source:
        source["csi"]["volumeHandle"] = name
    return make("PersistentVolume", f"pv-{name}", spec=source)


def pod(number: int, used: str) -> Pod:
    volumes: list[dict[str, Any]] = [{"name": "v", "persistentVolumeClaim": {"claimName": used}}]
    if used == "a":
        volumes.append({"name": "x", "ephemeral": {}})
    made = make("Pod", f"{number}-{used}", "default", spec={"nodeName": f"n{number}", "volumes": volumes})
    assert isinstance(made, Pod)
    return made


def attachment(name: str, number: int, attacher: str) -> Object:
    spec = {"attacher": attacher, "nodeName": f"n{number}", "source": {"persistentVolumeName": f"pv-{name}"}}
    return make("VolumeAttachment", f"va-{name}", spec=spec)


NUMBERS, LIMITS = st.integers(0, 2), st.sampled_from([None, 0, 1, 2, 3])
PLUGINS = st.sampled_from(["", "kubernetes.io/portworx-volume"])
OBJECTS = st.one_of(
    st.builds(csi_node, NUMBERS, st.lists(LIMITS, min_size=3, max_size=3), PLUGINS),
    st.builds(claim, st.sampled_from([*NAMES, "0-a-x", "1-a-x"]), st.sampled_from(["", *NAMES])),
    st.builds(volume, st.sampled_from(NAMES), st.sampled_from(["csi.one", "csi.two", "portworx"])),
    st.builds(pod, NUMBERS, st.sampled_from(NAMES)),
    st.builds(attachment, st.sampled_from(NAMES), NUMBERS, st.sampled_from(["csi.one", "csi.two"])),
    st.builds(lambda provisioner: make("StorageClass", "class", provisioner=provisioner), st.sampled_from(DRIVERS)),
    st.builds(lambda number: make("Node", f"n{number}"), st.integers(0, 4)),
)
CHANGES = st.lists(st.tuples(st.sampled_from(["put", "put", "put", "remove"]), OBJECTS), max_size=8)


def reported(of: AttachedVolumes, cluster: SchedulerCache) -> list[object]:
    """Return all that it reports about the cluster's nodes."""
    table = cluster.table
    rows = np.array(sorted(table.row_of.values()), dtype=np.int64)
    found: list[object] = [of.room_for(wanted, rows).tolist() for wanted in WANTED]
    for row in rows.tolist():
        node = cluster.of_kind("CSINode").get(table.names[row])
        present = None if node is None else of.on(table, row, node)
        if present is None or isinstance(present, Fault):
            found.append(present)
        else:
            assert {other: present.of_pods[other] for other in table.pods[row]} == present.of_pods
            found.append((present.by_pods, dict(present.per_driver)))
    return found


@given(st.lists(CHANGES, min_size=1, max_size=8))
@settings(max_examples=examples(150), deadline=None)
def test_what_is_remembered_is_what_would_be_worked_out_anew(rounds: list[list[tuple[str, Object]]]) -> None:
    cluster = SchedulerCache()
    cluster.load([make("Node", f"n{number}") for number in range(3)])
    cluster.load([csi_node(number, [2, 2, 2], "") for number in range(3)])
    cluster.load([each for name in "ab" for each in (claim(name, name), volume(name, "csi.one"))])
    remembering = AttachedVolumes(cluster, migrated_or_annotated)
    for changes in rounds:
        for what, changed in changes:
            (cluster.put if what == "put" else cluster.remove)(changed)
        assert reported(remembering, cluster) == reported(AttachedVolumes(cluster, migrated_or_annotated), cluster)


def test_a_change_of_a_claim_is_worked_out_anew_where_a_pod_uses_it() -> None:
    cluster = SchedulerCache()
    cluster.load([make("Node", f"n{number}") for number in range(3)])
    cluster.load([csi_node(number, [2, 2, 2], "") for number in range(3)])
    cluster.load([each for name in "ab" for each in (claim(name, name), volume(name, "csi.one"))])
    cluster.load([pod(0, "b"), pod(1, "c")])
    attached = AttachedVolumes(cluster, migrated_or_annotated)

    def known(number: int) -> object:
        return attached.on(cluster.table, cluster.table.row_of[f"n{number}"], cluster.objects["CSINode"][f"n{number}"])

    before = [known(number) for number in range(3)]
    cluster.load([claim("c", "c"), volume("c", "csi.one")])
    assert [known(number) is before[number] for number in range(3)] == [True, False, True]
    cluster.put(volume("b", "csi.two"))
    cluster.put(attachment("b", 2, "csi.two"))
    assert [known(number) is before[number] for number in range(3)] == [False, False, False]


def test_a_row_that_another_node_has_now_has_that_ones_limits() -> None:
    cluster = SchedulerCache()
    cluster.load([make("Node", "n0"), csi_node(0, [0, 0, 0], "")])
    attached, (row,) = AttachedVolumes(cluster, migrated_or_annotated), cluster.table.row_of.values()
    assert attached.room_for(WANTED[1], np.array([row])).tolist() == [False]
    cluster.remove(make("Node", "n0"))
    cluster.put(make("Node", "n1"))
    assert cluster.table.row_of == {"n1": row}
    assert attached.room_for(WANTED[1], np.array([row])).tolist() == [True]


def test_rows_that_are_added_are_counted() -> None:
    cluster = SchedulerCache()
    cluster.load([make("Node", "n0"), csi_node(0, [0, 0, 0], "")])
    attached, before = AttachedVolumes(cluster, migrated_or_annotated), cluster.table.capacity
    assert attached.room_for(WANTED[1], np.array([cluster.table.row_of["n0"]])).tolist() == [False]
    for number in range(1, before + 1):
        cluster.load([make("Node", f"n{number}"), csi_node(number, [number % 2, 0, 0], "")])
    rows = np.array([cluster.table.row_of[f"n{number}"] for number in range(before + 1)])
    assert attached.room_for(WANTED[1], rows).tolist() == [bool(number % 2) for number in range(before + 1)]
