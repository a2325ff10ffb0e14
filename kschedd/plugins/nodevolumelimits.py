"""NodeVolumeLimits: a node passes when its CSI drivers can attach the pod's volumes in addition to those attached.

A volume that a pod on the node also uses is counted once. A driver without a limit on the node's CSINode, or a node
without a CSINode, has no limit.
Rules: portworx_volumes_counted.
Source: Kubernetes v1.34 and v1.36, plugins/nodevolumelimits/csi.go.
Errors: a missing claim rejects the pod; a failing CSI translation is an error on nodes that need it.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, Self

import attrs
import numpy as np

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod, PodSignature, PodSpec
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Bools, Ints, NodeTable, Rows, TableCopy
from kschedd.cache.versions import LABELS
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
from kschedd.framework.remedies import Remedy, RemedyContext
from kschedd.framework.status import SKIP, Status, error, unresolvable, unschedulable
from kschedd.plugins.volume_remedies import volume_remedies
from kschedd.storage.attachable import (
    Attachable,
    Fault,
    IsMigrated,
    Storage,
    attachments_by_node,
    has_attachable,
    limits,
    migrated_on_csi_nodes,
    migrated_or_annotated,
)
from kschedd.storage.claims import claims_used
from kschedd.storage.migration import InTree, in_tree
from kschedd.storage.volumes import StorageError

_EXCEEDED: Final = unschedulable("node(s) exceed max volume count")

_COUNTED_KINDS: Final = ("PersistentVolumeClaim", "PersistentVolume", "StorageClass", "VolumeAttachment")

Attached = frozenset[tuple[str, str]]  # (driver, handle)
_NOTHING: Final[Attached] = frozenset()
_NO_DRIVERS: Final[Mapping[str, int]] = {}
_ANY: Final = 1 << 63  # volumes: more than there are
_MOST_ROOMS: Final = 16


@attrs.frozen
class _Wanted:
    """The volumes the pod needs attached."""

    volumes: list[Attachable | Fault]
    at_most: Attached | None  # what counts where every in-tree plugin is migrated; None if a volume has a fault
    everywhere: bool  # whether all of that counts on every node
    objects_at: int  # last change of the objects that determine the volumes
    is_migrated: IsMigrated

    def on(self, csi_node: Object | None) -> Attached | Status:
        if self.everywhere and self.at_most is not None:
            return self.at_most
        return _attached(self.volumes, csi_node, self.is_migrated)


@attrs.frozen
class _Present:
    """The volumes attached to a node, as of `stamp`."""

    csi_node: Object
    stamp: int
    pods: Sequence[Pod]  # those with volumes
    by_pods: Attached
    per_driver: Mapping[str, int]  # including volumes attached for no pod on the node


class _Room:
    """Which nodes have room for so many more volumes of these drivers. By row; `at` are stamps."""

    def __init__(self, new: frozenset[tuple[str, int]], objects_at: int, rows: int) -> None:
        self.new = new
        self.objects_at = objects_at
        self.at: Ints = np.full(rows, -1, dtype=np.int64)
        self._enough: Bools = np.zeros(rows, dtype=np.bool_)

    def on(self, rows: Rows, has_room: Callable[[int, frozenset[tuple[str, int]]], bool], table: NodeTable) -> Bools:
        """Of these rows of the cluster's table."""
        stale = rows[self.at[rows] < table.versions.row_pods_at[rows]]
        if len(stale):
            self._enough[stale] = [has_room(row, self.new) for row in stale.tolist()]
            self.at[stale] = table.versions.now
        enough: Bools = self._enough[rows]
        return enough


@attrs.define(eq=False)
class NodeVolumeLimits:
    name: ClassVar = "NodeVolumeLimits"
    _cluster: SchedulerCache
    _is_migrated: IsMigrated
    _present: dict[int, _Present] = attrs.field(factory=dict)  # by row, of the cluster's own table
    _limits: dict[str, tuple[Object, dict[str, int]]] = attrs.field(factory=dict)
    _room: dict[frozenset[tuple[str, int]], _Room] = attrs.field(factory=dict)  # by volumes of each driver
    _attachments: tuple[int, Mapping[str, set[tuple[str, str]]]] = (-1, {})  # stamp, by node

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        by_rule = handle.rules.portworx_volumes_counted
        return cls(handle.cluster, migrated_on_csi_nodes if by_rule else migrated_or_annotated)

    def skips_pre_filter(self, signature: PodSignature) -> bool:
        return not signature.spec.volumes

    def pre_filter(self, state: CycleState, pod: Pod, cluster: SchedulerCache) -> Status | None:
        if not pod.signature.spec.volumes or not has_attachable(pod):
            return SKIP
        state.data[self.name] = self._wanted(pod)
        return None

    def affected_by(self, spec: PodSpec) -> bool:
        return bool(spec.volumes)

    def known_to_pass(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Bools:
        """The nodes with room for the volumes even if all of them count and none is attached; in a what-if copy those
        that had it with all their pods, and got no other ones. Where no node has limits, all."""
        wanted: _Wanted | None = state.data.get(self.name)
        own = self._cluster.table
        if wanted is not None and not self._cluster.of_kind("CSINode"):
            return np.full(len(rows), not isinstance(wanted.on(None), Status))
        if wanted is None or wanted.at_most is None:
            return np.zeros(len(rows), dtype=np.bool_)
        if table is own:
            return self._room_for(wanted.at_most).on(rows, self._has_room, own)
        if not isinstance(table, TableCopy) or table.whole is not own:
            return np.zeros(len(rows), dtype=np.bool_)
        passes = self._room_for(wanted.at_most).on(table.rows_of_whole[rows], self._has_room, own)
        return passes & np.isin(rows, list(table.joined), invert=True) if table.joined else passes

    def _room_for(self, new: Attached) -> "_Room":
        """What is known of the room for so many volumes of these drivers."""
        key, versions = frozenset(Counter([driver for driver, _ in new]).items()), self._cluster.versions
        objects_at = versions.latest(LABELS, "CSINode", *_COUNTED_KINDS)
        room = self._room.get(key)
        if room is None or room.objects_at < objects_at or len(room.at) != self._cluster.table.capacity:
            if len(self._room) >= _MOST_ROOMS:
                self._room.clear()
            room = self._room[key] = _Room(key, objects_at, self._cluster.table.capacity)
        return room

    def _has_room(self, row: int, new: frozenset[tuple[str, int]]) -> bool:
        table = self._cluster.table
        csi_node = self._cluster.of_kind("CSINode").get(table.names[row])
        at_most = {} if csi_node is None else self._limits_of(csi_node)
        if csi_node is None or not at_most:
            return True
        present = self._present_on(NodeInfo(table, row), csi_node, self._cluster.versions.latest(*_COUNTED_KINDS))
        if isinstance(present, Status):
            return False
        attached = present.per_driver
        return all(attached.get(driver, 0) + count <= at_most.get(driver, _ANY) for driver, count in new)

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        if not pod.signature.spec.volumes:
            return None
        wanted: _Wanted = state.data.get(self.name) or self._wanted(pod)
        csi_node = self._cluster.of_kind("CSINode").get(node.name)
        new = wanted.on(csi_node)
        if isinstance(new, Status):
            return new
        if not new or csi_node is None:
            return None
        at_most = self._limits_of(csi_node)
        if not at_most:
            return None
        present = self._present_on(node, csi_node, wanted.objects_at)
        if isinstance(present, Status):
            return present
        for driver in {driver for driver, _ in new}:
            limit = at_most.get(driver)
            if limit is not None:
                added = sum(volume[0] == driver and volume not in present.by_pods for volume in new)
                if added and present.per_driver.get(driver, 0) + added > limit:
                    return _EXCEEDED
        return None

    def _wanted(self, pod: Pod) -> _Wanted:
        volumes = self._storage().attachables(pod, new=True)
        counted = [(each.driver, each.handle) for each in volumes if isinstance(each, Attachable)]
        at_most = frozenset(counted) if len(counted) == len(volumes) else None
        everywhere = all(each.plugin is None for each in volumes)
        return _Wanted(volumes, at_most, everywhere, self._cluster.versions.latest(*_COUNTED_KINDS), self._is_migrated)

    def _storage(self) -> Storage:
        of_kind = self._cluster.of_kind
        return Storage(of_kind("PersistentVolumeClaim"), of_kind("PersistentVolume"), of_kind("StorageClass"))

    def _limits_of(self, csi_node: Object) -> Mapping[str, int]:
        known = self._limits.get(csi_node.name)
        if known is None or known[0] is not csi_node:
            if len(self._limits) > 2 * len(self._cluster.of_kind("CSINode")):  # nodes are added and removed
                self._limits.clear()
            known = self._limits[csi_node.name] = (csi_node, limits(csi_node))
        return known[1]

    def _present_on(self, node: NodeInfo, csi_node: Object, objects_at: int) -> _Present | Status:
        """The volumes attached to the node; cached until its pods or any claim or volume change.

        A node of a what-if copy has them as long as its pods with volumes are the same.
        """
        table, versions = self._cluster.table, self._cluster.versions
        own = node.table is table
        row = node.row if own else table.row_of.get(node.name)
        known = None if row is None else self._present.get(row)
        if known is not None and (known.csi_node is not csi_node or known.stamp < objects_at):
            known = None
        if own and known is not None and known.stamp >= versions.row_pods_at[node.row]:
            return known
        pods = [other for other in node.pods if other.signature.spec.volumes]
        if not own and known is not None and known.pods == pods:
            return known
        by_pods = self._used(pods, csi_node)
        if isinstance(by_pods, Status):
            return by_pods
        attached = self._attachments_on(node.name, objects_at)
        per_driver = Counter(driver for driver, _ in by_pods | attached) if by_pods or attached else _NO_DRIVERS
        found = _Present(csi_node, versions.now, pods, by_pods, per_driver)
        if own:
            self._present[node.row] = found
        return found

    def _used(self, pods: Sequence[Pod], csi_node: Object) -> Attached | Status:
        if not pods:
            return _NOTHING
        storage = self._storage()
        used: set[tuple[str, str]] = set()
        for other in pods:
            theirs = _attached(storage.attachables(other, new=False), csi_node, self._is_migrated)
            if isinstance(theirs, Status):
                return theirs
            used |= theirs
        return frozenset(used)

    def _attachments_on(self, node_name: str, objects_at: int) -> set[tuple[str, str]]:
        if self._attachments[0] < objects_at:
            of_kind = self._cluster.of_kind
            found = attachments_by_node(of_kind("VolumeAttachment"), of_kind("PersistentVolume"))
            self._attachments = (self._cluster.versions.now, found)
        return self._attachments[1].get(node_name, set())

    # --- queueing hints and remedies -------------------------------------------------------------------------

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (
            on(EventResource.CSI_NODE, ActionType.ADD),
            on(EventResource.CSI_NODE, ActionType.UPDATE, _after_csi_node_changed, by_signature=True),
            on(EventResource.POD, ActionType.DELETE, _after_pod_deleted, by_signature=True),
            on(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, _after_claim_added),
            on(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE, _after_detached, by_signature=True),
        )

    def remedies(self, context: RemedyContext, row: int | None, status: Status) -> list[Remedy]:
        return volume_remedies(context, row, status)


def _attached(wanted: list[Attachable | Fault], csi_node: Object | None, is_migrated: IsMigrated) -> Attached | Status:
    """The volumes that count on the node; or the error of one of them."""
    found = set()
    for each in wanted:
        if each.plugin is not None and not is_migrated(each.plugin, csi_node):
            continue
        if isinstance(each, Fault):
            return unresolvable(each.why) if each.missing else error(each.why)
        found.add((each.driver, each.handle))
    return frozenset(found)


def _after_csi_node_changed(pod: Pod, old: Object, new: Object) -> QueueingHint:
    before = limits(old)
    grew = any(count > before.get(driver, 0) for driver, count in limits(new).items())
    return QUEUE if grew else QUEUE_SKIP


def _after_pod_deleted(pod: Pod, old: Pod, new: Pod | None) -> QueueingHint:
    on_a_node = old.node_name or old.nominated_node_name
    return QUEUE if on_a_node and has_attachable(old) else QUEUE_SKIP


def _after_claim_added(pod: Pod, old: Object | None, new: Object) -> QueueingHint:
    ours = new.namespace == pod.namespace and any(use.name == new.name for use in claims_used(pod))
    return QUEUE if ours else QUEUE_SKIP


def _after_detached(pod: Pod, old: Object, new: Object | None) -> QueueingHint:
    attacher = old.spec.get("attacher")
    for volume in pod.signature.spec.volumes:
        if volume.get("persistentVolumeClaim") is not None:
            return QUEUE
        plugin = in_tree(volume)
        if plugin is not None and (plugin.driver == attacher or _untranslatable(plugin, volume)):
            return QUEUE
    return QUEUE_SKIP


def _untranslatable(plugin: InTree, volume: Raw) -> bool:
    try:
        plugin.handle(volume[plugin.source], None)
    except StorageError:
        return True
    return False
