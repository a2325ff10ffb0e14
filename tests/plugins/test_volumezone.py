"""Tests of VolumeZone: the zone and region labels of bound volumes."""

from typing import Any

import pytest

from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import QUEUE, QUEUE_SKIP, EventResource
from kschedd.framework.handle import Handle
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.status import SKIP, Status, unresolvable
from kschedd.plugins.volumes.volumezone import VolumeZone

ZONE, BETA_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
CONFLICT = unresolvable("node(s) had no available volume zone")


def pod(claim: str = "data") -> Pod:
    spec = {"containers": [], "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}
    made = parse({"kind": "Pod", "metadata": {"name": "web", "namespace": "default", "uid": "u"}, "spec": spec})
    assert isinstance(made, Pod)
    return made


def claim(name: str = "data", namespace: str = "default", **spec: Any) -> Object:
    meta = {"name": name, "namespace": namespace}
    return Object.from_raw({"kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec})


def volume(labels: dict[str, str]) -> Object:
    return Object.from_raw({"kind": "PersistentVolume", "metadata": {"name": "v", "labels": labels}})


def storage_class(mode: str | None) -> Object:
    raw: dict[str, Any] = {"kind": "StorageClass", "metadata": {"name": "c"}}
    return Object.from_raw(raw if mode is None else {**raw, "volumeBindingMode": mode})


def judge(*objects: Object, node: dict[str, str] | None = None) -> Status | None:
    cluster = SchedulerCache()
    cluster.load([parse({"kind": "Node", "metadata": {"name": "n", "labels": node or {}}}), *objects])
    plugin, state = VolumeZone.from_args(None, Handle(cluster)), CycleState()
    status = plugin.pre_filter(state, pod(), cluster)
    return status if status is not None else plugin.filter(state, pod(), NodeInfo(cluster.table, 0))


@pytest.mark.parametrize(
    ("labels", "node", "passes"),
    [
        pytest.param({ZONE: "a"}, {ZONE: "a"}, True, id="same-zone"),
        pytest.param({ZONE: "a"}, {ZONE: "b"}, False, id="another-zone"),
        pytest.param({ZONE: "a__b"}, {ZONE: "b"}, True, id="one-of-several"),
        pytest.param({ZONE: "a"}, {}, True, id="node-without-any-zone-or-region"),
        pytest.param({ZONE: "a"}, {REGION: "r"}, False, id="node-with-a-region-only"),
        pytest.param({BETA_ZONE: "a"}, {ZONE: "a"}, True, id="old-label-on-the-volume"),
        pytest.param({ZONE: "a"}, {BETA_ZONE: "a"}, False, id="old-label-on-the-node"),
        pytest.param({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "s"}, False, id="all-labels-count"),
        pytest.param({ZONE: "a__", REGION: "r"}, {REGION: "r"}, True, id="unreadable-label-is-left-out"),
    ],
)
def test_labels(labels: dict[str, str], node: dict[str, str], passes: bool) -> None:
    assert judge(claim(volumeName="v"), volume(labels), node=node) == (None if passes else CONFLICT)


def test_nothing_to_look_at_is_skipped() -> None:
    assert judge(claim(volumeName="v"), volume({"app": "db"})) is SKIP
    assert judge(claim(storageClassName="c"), storage_class("WaitForFirstConsumer")) is SKIP


def test_pods_on_a_node_do_not_affect_its_verdict() -> None:
    assert not VolumeZone.from_args(None, Handle(SchedulerCache())).affected_by(pod().pod_spec)


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        ([], 'persistentvolumeclaim "data" not found'),
        ([claim(volumeName="v")], 'persistentvolume "v" not found'),
        ([claim()], "PersistentVolumeClaim had no pv name and storageClass name"),
        ([claim(storageClassName="c")], 'storageclass.storage.k8s.io "c" not found'),
        ([claim(storageClassName="c"), storage_class(None)], 'VolumeBindingMode not set for StorageClass "c"'),
        ([claim(storageClassName="c"), storage_class("Immediate")], "PersistentVolume had no name"),
    ],
)
def test_rejected_before_any_node(objects: list[Object], why: str) -> None:
    assert judge(*objects) == unresolvable(why)


@pytest.mark.parametrize(
    ("resource", "old", "new", "answer"),
    [
        (EventResource.STORAGE_CLASS, None, storage_class("WaitForFirstConsumer"), QUEUE),
        (EventResource.STORAGE_CLASS, None, storage_class("Immediate"), QUEUE_SKIP),
        (EventResource.PERSISTENT_VOLUME, None, volume({}), QUEUE),
        (EventResource.PERSISTENT_VOLUME, volume({ZONE: "a"}), volume({ZONE: "b"}), QUEUE),
        (EventResource.PERSISTENT_VOLUME, volume({ZONE: "a"}), volume({ZONE: "a", "x": "y"}), QUEUE_SKIP),
        (EventResource.PERSISTENT_VOLUME_CLAIM, None, claim(), QUEUE),
        (EventResource.PERSISTENT_VOLUME_CLAIM, None, claim("other"), QUEUE_SKIP),
        (EventResource.PERSISTENT_VOLUME_CLAIM, None, claim(namespace="other"), QUEUE_SKIP),
    ],
)
def test_hints(resource: EventResource, old: Object | None, new: Object, answer: object) -> None:
    plugin = VolumeZone.from_args(None, Handle(SchedulerCache()))
    (found,) = [e for e in plugin.events_to_register() if e.event.resource is resource]
    assert found.hint is not None
    assert found.hint(pod(), old, new) is answer
