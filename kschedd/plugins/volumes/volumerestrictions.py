"""VolumeRestrictions: rejects a node if one of its pods uses a disk of the incoming pod that cannot be shared.

Disks that cannot be shared are GCE persistent disks, iSCSI targets and RBD images (unless both pods only read), and EBS
volumes. A claim with access mode ReadWriteOncePod can have only one user in the cluster. While another pod uses the
claim, no node passes; preempting that pod helps. Source: Kubernetes v1.34,
plugins/volumerestrictions/volume_restrictions.go. Errors: a claim that does not exist rejects the pod in PreFilter.
"""

from collections.abc import Iterable, Sequence
from typing import ClassVar, Final, Self

import attrs
import numpy as np

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Ints, Rows, TableCopy
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
from kschedd.framework.status import SKIP, Status, unresolvable, unschedulable
from kschedd.storage.claims import READ_WRITE_ONCE_POD, claims_named, missing

_DISK_CONFLICT: Final = unschedulable("node(s) had no available disk")
_CLAIM_CONFLICT: Final = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
DISK_CONFLICT, CLAIM_CONFLICT = 1, 2  # codes of the dry run
_DISKS: Final = ("gcePersistentDisk", "awsElasticBlockStore", "rbd", "iscsi")


def disks(pod: Pod) -> list[Raw]:
    """Return the pod's volumes that can conflict with volumes of another pod."""
    return [
        volume
        for volume in pod.signature.spec.restricting_volumes
        if any(volume.get(kind) is not None for kind in _DISKS)
    ]


def conflict(ours: Iterable[Raw], others: Iterable[Raw]) -> bool:
    """Return whether two pods with these volumes cannot run on one node."""
    return any(_same_disk(one, other) for one in ours for other in others)


def _same_disk(one: Raw, other: Raw) -> bool:
    for kind in _DISKS:
        a, b = one.get(kind), other.get(kind)
        if a is None or b is None:
            continue
        only_read = bool(a.get("readOnly")) and bool(b.get("readOnly"))
        if kind == "gcePersistentDisk" and a.get("pdName") == b.get("pdName") and not only_read:
            return True
        if kind == "awsElasticBlockStore" and a.get("volumeID") == b.get("volumeID"):
            return True
        if kind == "iscsi" and a.get("iqn") == b.get("iqn") and not only_read:
            return True
        if kind == "rbd" and _same_image(a, b) and not only_read:
            return True
    return False


def _same_image(a: Raw, b: Raw) -> bool:
    return (
        not set(a.get("monitors") or ()).isdisjoint(b.get("monitors") or ())
        and (a.get("pool") or "rbd") == (b.get("pool") or "rbd")
        and a.get("image") == b.get("image")
    )


@attrs.define(eq=False)
class _Wanted:
    disks: list[Raw]
    claims: frozenset[str]  # names of the pod's ReadWriteOncePod claims
    users: int  # number of uses of these claims by assigned pods

    def clone(self) -> "_Wanted":
        return _Wanted(self.disks, self.claims, self.users)

    def uses(self, other: Pod) -> int:
        # Only names are compared, because upstream does not compare namespaces here.
        return sum(name in self.claims for name in claims_named(other)) if self.claims else 0


class _DiskColumns:
    """The plugin's dry-run columns: each row's pods with a conflicting disk, and the uses of the claims."""

    def __init__(self, wanted: _Wanted, table: TableCopy) -> None:
        self._wanted = wanted
        self._of: Sequence[Pod] = ()
        self._effects_of = np.zeros((0, 2), dtype=np.int64)
        # by signature id: whether the pod conflicts, and its number of uses of the claims
        self._effects: dict[int, tuple[bool, int]] = {}
        self._conflicts = np.array([sum(self._effect(pod)[0] for pod in pods) for pods in table.pods], dtype=np.int64)
        self._users = np.full(len(table.pods), wanted.users, dtype=np.int64)

    def follow(self, rows: Rows, kinds: Ints, of: Sequence[Pod], amount: int) -> None:
        if of is not self._of:
            self._of, self._effects_of = of, np.array([self._effect(other) for other in of], dtype=np.int64)
        effects = self._effects_of[kinds] * amount
        np.add.at(self._conflicts, rows, effects[:, 0])
        np.add.at(self._users, rows, effects[:, 1])

    def _effect(self, other: Pod) -> tuple[bool, int]:
        number = other.signature.id
        found = self._effects.get(number)
        if found is None:
            theirs = other.signature.spec.restricting_volumes
            conflicts = bool(theirs) and conflict(self._wanted.disks, theirs)
            found = self._effects[number] = (conflicts, self._wanted.uses(other))
        return found

    def codes(self, rows: Rows) -> Ints:
        codes: Ints = np.where(self._users[rows] > 0, CLAIM_CONFLICT, 0)
        codes[self._conflicts[rows] > 0] = DISK_CONFLICT
        return codes

    def status(self, code: int) -> Status:
        return _DISK_CONFLICT if code == DISK_CONFLICT else _CLAIM_CONFLICT


@attrs.frozen(eq=False)
class VolumeRestrictions:
    name: ClassVar = "VolumeRestrictions"

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        return cls()

    def idle_for(self, pod: Pod) -> Sequence[str]:
        return () if pod.signature.spec.restricting_volumes else ("pre_filter",)

    def pre_filter(self, state: CycleState, pod: Pod, cluster: SchedulerCache) -> Status | None:
        if not pod.signature.spec.restricting_volumes:
            return SKIP
        known = cluster.of_kind("PersistentVolumeClaim")
        exclusive = set()
        for name in claims_named(pod):
            claim = known.get(f"{pod.namespace}/{name}")
            if claim is None:
                return unresolvable(missing("PersistentVolumeClaim", name))
            if READ_WRITE_ONCE_POD in (claim.spec.get("accessModes") or ()):
                exclusive.add(name)
        users = sum(_used(cluster, pod.namespace, name) for name in exclusive)
        ours = disks(pod)
        if not ours and not users:
            return SKIP
        state.data[self.name] = _Wanted(ours, frozenset(exclusive), users)
        return None

    def add_pod(self, state: CycleState, pod: Pod, other: Pod, node: NodeInfo) -> Status | None:
        wanted = state.data.get(self.name)
        if wanted is not None:
            wanted.users += wanted.uses(other)
        return None

    def remove_pod(self, state: CycleState, pod: Pod, other: Pod, node: NodeInfo) -> Status | None:
        wanted = state.data.get(self.name)
        if wanted is not None:
            wanted.users -= wanted.uses(other)
        return None

    def dry_run_columns(self, state: CycleState, pod: Pod, table: TableCopy) -> "_DiskColumns | None":
        wanted: _Wanted | None = state.data.get(self.name)
        return None if wanted is None else _DiskColumns(wanted, table)

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        wanted = state.data.get(self.name)
        if wanted is None:
            return None
        if wanted.disks:
            for other in node.pods:
                theirs = other.signature.spec.restricting_volumes
                if theirs and conflict(wanted.disks, theirs):
                    return _DISK_CONFLICT
        return _CLAIM_CONFLICT if wanted.users > 0 else None

    # --- queueing hints -------------------------------------------------------------------------------------

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (
            on(EventResource.POD, ActionType.DELETE, _after_pod_deleted, by_signature=True),
            on(EventResource.NODE, ActionType.ADD),
            on(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, _after_claim_added, by_signature=True),
        )


def _used(cluster: SchedulerCache, namespace: str, name: str) -> bool:
    """Return whether an assigned pod names the claim; claims for its ephemeral volumes are not included."""
    rows = cluster.table.claims.get(f"{namespace}/{name}", ())
    return any(
        other.namespace == namespace and name in claims_named(other)
        for row in rows
        for other in cluster.table.pods[row]
    )


def _after_pod_deleted(pod: Pod, old: Pod, new: Pod | None) -> QueueingHint:
    if old.namespace != pod.namespace:
        return QUEUE_SKIP
    if conflict(disks(pod), old.signature.spec.restricting_volumes):
        return QUEUE
    return QUEUE if not set(claims_named(pod)).isdisjoint(claims_named(old)) else QUEUE_SKIP


def _after_claim_added(pod: Pod, old: Object | None, new: Object) -> QueueingHint:
    return QUEUE if new.namespace == pod.namespace and new.name in claims_named(pod) else QUEUE_SKIP
