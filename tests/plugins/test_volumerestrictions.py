"""Tests of VolumeRestrictions: disks that only one pod per node can use, and claims that only one pod can use."""

from typing import Any

import pytest

from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import QUEUE, QUEUE_SKIP, EventResource
from kschedd.framework.handle import Handle
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.status import SKIP, Status, unresolvable, unschedulable
from kschedd.plugins.volumes.volumerestrictions import VolumeRestrictions, disks

DISK = unschedulable("node(s) had no available disk")
CLAIM = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


def pod(name: str, *volumes: dict[str, Any], node: str = "", namespace: str = "default") -> Pod:
    spec: dict[str, Any] = {"containers": [], "volumes": [{"name": f"v{n}", **v} for n, v in enumerate(volumes)]}
    if node:
        spec["nodeName"] = node
    made = parse({"kind": "Pod", "metadata": {"name": name, "namespace": namespace, "uid": name}, "spec": spec})
    assert isinstance(made, Pod)
    return made


def uses(name: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": name}}


def claim(name: str, *modes: str, namespace: str = "default") -> Object:
    meta = {"name": name, "namespace": namespace}
    return Object.from_raw({"kind": "PersistentVolumeClaim", "metadata": meta, "spec": {"accessModes": list(modes)}})


def cluster_of(*objects: Object) -> SchedulerCache:
    cluster = SchedulerCache()
    cluster.load([parse({"kind": "Node", "metadata": {"name": "n"}}), *objects])
    return cluster


PLUGIN = VolumeRestrictions.from_args(None, Handle(SchedulerCache()))


def judge(cluster: SchedulerCache, wanted: Pod) -> Status | None:
    state = CycleState()
    status = PLUGIN.pre_filter(state, wanted, cluster)
    return status if status is not None else PLUGIN.filter(state, wanted, NodeInfo(cluster.table, 0))


def pd(name: str, *, read_only: bool = False) -> dict[str, Any]:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def ebs(name: str, *, read_only: bool = False) -> dict[str, Any]:
    return {"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}}


def iscsi(portal: str, iqn: str, *, read_only: bool = False) -> dict[str, Any]:
    return {"iscsi": {"targetPortal": portal, "iqn": iqn, "lun": 0, "readOnly": read_only}}


def rbd(monitors: str, image: str, *, read_only: bool = False) -> dict[str, Any]:
    return {"rbd": {"monitors": list(monitors), "pool": "rbd", "image": image, "readOnly": read_only}}


def image(monitors: str, name: str, pool: str = "") -> dict[str, Any]:
    return {"rbd": {"monitors": list(monitors), "image": name, **({"pool": pool} if pool else {})}}


@pytest.mark.parametrize(
    ("ours", "theirs", "conflicts"),
    [
        pytest.param(pd("d"), pd("d"), True, id="same-disk"),
        pytest.param(pd("d"), pd("e"), False, id="another-disk"),
        pytest.param(pd("d", read_only=True), pd("d", read_only=True), False, id="both-read"),
        pytest.param(pd("d", read_only=True), pd("d"), True, id="one-writes"),
        pytest.param(ebs("v", read_only=True), ebs("v", read_only=True), True, id="ebs-even-if-both-read"),
        pytest.param(iscsi("1", "q"), iscsi("2", "q"), True, id="iscsi-by-name-whatever-the-portal"),
        pytest.param(iscsi("1", "q", read_only=True), iscsi("1", "q", read_only=True), False, id="iscsi-both-read"),
        pytest.param(rbd("ab", "i"), rbd("bc", "i"), True, id="rbd-a-monitor-in-common"),
        pytest.param(rbd("ab", "i"), rbd("cd", "i"), False, id="rbd-no-monitor-in-common"),
        pytest.param(rbd("ab", "i"), rbd("ab", "j"), False, id="rbd-another-image"),
        pytest.param(rbd("ab", "i"), image("ab", "i"), True, id="rbd-is-the-default-pool"),
        pytest.param(rbd("ab", "i"), image("ab", "i", "other"), False, id="rbd-another-pool"),
        pytest.param(image("ab", "i", "own"), image("ab", "i", "own"), True, id="rbd-the-same-pool"),
        pytest.param(pd("x"), ebs("x"), False, id="another-sort"),
    ],
)
def test_disks(ours: dict[str, Any], theirs: dict[str, Any], conflicts: bool) -> None:
    cluster = cluster_of(pod("there", theirs, node="n"))
    assert judge(cluster, pod("new", ours)) == (DISK if conflicts else None)


def test_one_common_disk_of_several_is_a_conflict() -> None:
    cluster = cluster_of(pod("there", pd("a"), pd("b"), node="n"))
    assert judge(cluster, pod("new", pd("b"), pd("c"))) == DISK


def test_only_disks_can_conflict() -> None:
    of = pod("a", uses("data"), pd("d"), {"emptyDir": {}}, rbd("ab", "i"))
    assert [volume["name"] for volume in disks(of)] == ["v1", "v3"]


def test_pods_without_such_volumes_are_skipped() -> None:
    cluster = cluster_of(claim("data", "ReadWriteOnce"), claim("mine", "ReadWriteOncePod"))
    assert judge(cluster, pod("a")) is SKIP
    assert judge(cluster, pod("b", {"emptyDir": {}}, uses("data"))) is SKIP
    assert judge(cluster, pod("c", uses("mine"))) is SKIP


def test_missing_claim_rejects_the_pod() -> None:
    assert judge(cluster_of(), pod("a", uses("data"))) == unresolvable('persistentvolumeclaim "data" not found')


def test_claim_of_one_pod_is_refused_to_a_second_until_the_first_is_preempted() -> None:
    user = pod("user", uses("mine"), node="n")
    cluster = cluster_of(claim("mine", "ReadWriteOncePod"), user)
    wanted, state = pod("new", uses("mine")), CycleState()
    assert PLUGIN.pre_filter(state, wanted, cluster) is None
    here = NodeInfo(cluster.table, 0)
    assert PLUGIN.filter(state, wanted, here) == CLAIM
    what_if = state.clone()
    PLUGIN.remove_pod(what_if, wanted, user, here)
    assert PLUGIN.filter(what_if, wanted, here) is None
    assert PLUGIN.filter(state, wanted, here) == CLAIM
    PLUGIN.add_pod(what_if, wanted, user, here)
    assert PLUGIN.filter(what_if, wanted, here) == CLAIM


def test_claim_of_that_name_elsewhere_or_of_an_ephemeral_volume_is_no_use() -> None:
    elsewhere = pod("user", uses("mine"), node="n", namespace="other")
    owner = pod("user2", {"ephemeral": {}}, node="n")
    exclusive = claim("mine", "ReadWriteOncePod"), claim("user2-v0", "ReadWriteOncePod")
    cluster = cluster_of(*exclusive, elsewhere, owner)
    assert judge(cluster, pod("new", uses("mine"), uses("user2-v0"))) is SKIP


@pytest.mark.parametrize(
    ("deleted", "answer"),
    [
        (pod("x", uses("data"), node="n"), QUEUE),
        (pod("x", pd("d"), node="n"), QUEUE),
        (pod("x", pd("e"), uses("other"), node="n"), QUEUE_SKIP),
        (pod("x", uses("data"), node="n", namespace="other"), QUEUE_SKIP),
    ],
)
def test_hint_on_deleted_pods(deleted: Pod, answer: object) -> None:
    (found,) = [e for e in PLUGIN.events_to_register() if e.event.resource is EventResource.POD]
    assert found.hint is not None
    assert found.hint(pod("new", uses("data"), pd("d")), deleted, None) is answer


def test_hint_on_new_claims() -> None:
    (found,) = [e for e in PLUGIN.events_to_register() if e.event.resource is EventResource.PERSISTENT_VOLUME_CLAIM]
    assert found.hint is not None
    assert found.hint(pod("new", uses("data")), None, claim("data")) is QUEUE
    assert found.hint(pod("new", uses("data")), None, claim("data", namespace="other")) is QUEUE_SKIP
