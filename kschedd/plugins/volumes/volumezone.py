"""VolumeZone: a node passes if its zone and region labels match the labels of the pod's bound volumes.

A node without any zone or region label passes, because upstream assumes a single-zone cluster.
Source: Kubernetes v1.34, plugins/volumezone/volume_zone.go, cloud-provider/volume/helpers (LabelZonesToSet).
Errors: a claim, class or volume that does not exist rejects the pod in PreFilter.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Final, Self

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod, PodSpec
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import (
    QUEUE,
    QUEUE_SKIP,
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    on,
)
from kschedd.framework.handle import Handle
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.status import SKIP, Status, unresolvable
from kschedd.storage.claims import WAIT_FOR_FIRST_CONSUMER, claims_named, class_of, missing, volume_of
from kschedd.storage.migration import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONE_DELIMITER

TOPOLOGY_LABELS: Final = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_PRESENT_NAME: Final = {BETA_ZONE: ZONE, BETA_REGION: REGION}
_CONFLICT: Final = unresolvable("node(s) had no available volume zone")


@attrs.frozen
class Topology:
    """One topology label of a volume; a node must have one of the label's values."""

    key: str
    values: frozenset[str]


def topologies(volume: Object) -> list[Topology]:
    """Return the topology labels of a PersistentVolume. Labels that cannot be parsed are ignored."""
    found = []
    for key in TOPOLOGY_LABELS:
        text = volume.labels.get(key)
        if text is not None:
            values = frozenset(part.strip() for part in text.split(ZONE_DELIMITER))
            if "" not in values:
                found.append(Topology(key, values))
    return found


@attrs.frozen(eq=False)
class VolumeZone:
    name: ClassVar = "VolumeZone"
    _cluster: SchedulerCache

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        return cls(handle.cluster)

    def idle_for(self, pod: Pod) -> Sequence[str]:
        return () if pod.signature.spec.restricting_volumes else ("pre_filter",)

    def pre_filter(self, state: CycleState, pod: Pod, cluster: SchedulerCache) -> Status | None:
        if not pod.signature.spec.restricting_volumes:
            return SKIP
        demanded = self._demanded(pod, cluster)
        if isinstance(demanded, Status):
            return demanded
        if not demanded:
            return SKIP
        state.data[self.name] = demanded
        return None

    def affected_by(self, spec: PodSpec) -> bool:
        return False

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        if not pod.signature.spec.restricting_volumes:
            return None
        demanded: Any = state.data.get(self.name)
        if demanded is None:
            demanded = self._demanded(pod, self._cluster)
            if isinstance(demanded, Status):
                return demanded
        labels = node.labels
        if not any(key in labels for key in TOPOLOGY_LABELS):
            return None
        for topology in demanded:
            here = labels.get(topology.key)
            if here is None:
                here = labels.get(_PRESENT_NAME.get(topology.key, ""))
            if here not in topology.values:
                return _CONFLICT
        return None

    def _demanded(self, pod: Pod, cluster: SchedulerCache) -> tuple[Topology, ...] | Status:
        claims = cluster.of_kind("PersistentVolumeClaim")
        volumes = cluster.of_kind("PersistentVolume")
        found: list[Topology] = []
        for name in claims_named(pod):
            if not name:
                return unresolvable("PersistentVolumeClaim had no name")
            claim = claims.get(f"{pod.namespace}/{name}")
            if claim is None:
                return unresolvable(missing("PersistentVolumeClaim", name))
            volume_name = volume_of(claim)
            if not volume_name:
                if (fault := _waits(claim, cluster)) is not None:
                    return fault
                continue
            volume = volumes.get(volume_name)
            if volume is None:
                return unresolvable(missing("PersistentVolume", volume_name))
            found += topologies(volume)
        return tuple(found)

    # --- queueing hints -------------------------------------------------------------------------------------

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        add, update = ActionType.ADD, ActionType.UPDATE
        return (
            on(EventResource.STORAGE_CLASS, add, _after_class_added, by_signature=True),
            on(EventResource.NODE, add | ActionType.UPDATE_NODE_LABEL),
            on(EventResource.PERSISTENT_VOLUME_CLAIM, add | update, _after_claim_changed, by_signature=True),
            on(EventResource.PERSISTENT_VOLUME, add | update, _after_volume_changed, by_signature=True),
        )


def _waits(claim: Object, cluster: SchedulerCache) -> Status | None:
    """Return why an unbound claim rejects the pod on every node; None if its class has WaitForFirstConsumer."""
    name = class_of(claim)
    if not name:
        return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
    storage_class = cluster.of_kind("StorageClass").get(name)
    if storage_class is None:
        return unresolvable(missing("StorageClass", name))
    mode = storage_class.raw.get("volumeBindingMode")
    if not mode:
        return unresolvable(f'VolumeBindingMode not set for StorageClass "{name}"')
    return None if mode == WAIT_FOR_FIRST_CONSUMER else unresolvable("PersistentVolume had no name")


def _after_class_added(pod: Pod, old: Object | None, new: Object) -> QueueingHint:
    return QUEUE if new.raw.get("volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER else QUEUE_SKIP


def _after_claim_changed(pod: Pod, old: Object | None, new: Object) -> QueueingHint:
    return QUEUE if pod.namespace == new.namespace and new.name in claims_named(pod) else QUEUE_SKIP


def _after_volume_changed(pod: Pod, old: Object | None, new: Object) -> QueueingHint:
    return QUEUE if old is None or topologies(old) != topologies(new) else QUEUE_SKIP
