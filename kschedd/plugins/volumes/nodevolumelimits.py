"""NodeVolumeLimits: a node passes if its CSI drivers can attach the pod's volumes in addition to the attached ones.

A volume that is also used by another pod on the node is counted once. There is no limit for a driver that the node's
CSINode lists without a limit, or for any driver if the node has no CSINode. Rules: portworx_volumes_counted,
volumes_need_driver.
Source: Kubernetes v1.34, v1.36 and v1.37, plugins/nodevolumelimits/csi.go. Errors: a missing claim rejects the pod; a
failed CSI translation is an error on nodes that need the translation.
"""

from collections.abc import Sequence
from typing import ClassVar, Final, Self

import attrs
import numpy as np

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod, PodSpec
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Bools, NodeTable, Rows, TableCopy
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
from kschedd.framework.status import SKIP, Status, error, unresolvable, unschedulable
from kschedd.storage.attachable import (
    Attachable,
    Fault,
    IsMigrated,
    has_attachable,
    limits,
    migrated_on_csi_nodes,
    migrated_or_annotated,
)
from kschedd.storage.attached import Attached, AttachedVolumes, counted
from kschedd.storage.claims import claims_used
from kschedd.storage.migration import InTree, in_tree
from kschedd.storage.volumes import StorageError

_EXCEEDED: Final = unschedulable("node(s) exceed max volume count")


@attrs.frozen
class _Wanted:
    """The volumes that must be attached to the node for the pod."""

    volumes: list[Attachable | Fault]
    at_most: Attached | None  # upper bound, if all in-tree plugins are migrated; None: a volume is invalid
    everywhere: bool  # True if all of these volumes are counted on every node
    is_migrated: IsMigrated

    def on(self, csi_node: Object | None) -> Attached | Fault:
        if self.everywhere and self.at_most is not None:
            return self.at_most
        return counted(self.volumes, csi_node, self.is_migrated)


@attrs.define(eq=False)
class NodeVolumeLimits:
    name: ClassVar = "NodeVolumeLimits"
    _cluster: SchedulerCache
    _is_migrated: IsMigrated
    _attached: AttachedVolumes
    _needs_drivers: bool

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        by_rule = handle.rules.portworx_volumes_counted
        is_migrated = migrated_on_csi_nodes if by_rule else migrated_or_annotated
        return cls(
            handle.cluster, is_migrated, AttachedVolumes(handle.cluster, is_migrated), handle.rules.volumes_need_driver
        )

    def idle_for(self, pod: Pod) -> Sequence[str]:
        return () if pod.signature.spec.restricting_volumes else ("pre_filter",)

    def pre_filter(self, state: CycleState, pod: Pod, cluster: SchedulerCache) -> Status | None:
        if not pod.signature.spec.restricting_volumes or not has_attachable(pod):
            return SKIP
        state.data[self.name] = self._wanted(pod)
        return None

    def affected_by(self, spec: PodSpec) -> bool:
        return bool(spec.restricting_volumes)

    def known_to_pass(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Bools:
        """Return the nodes that can attach all volumes of the pod, even if no volume is attached yet.

        If no node has limits, all nodes are returned. In a what-if copy, these are nodes that passed with all their
        pods, and to which no pod was added.
        """
        wanted: _Wanted | None = state.data.get(self.name)
        own = self._cluster.table
        if wanted is not None and self._needed(wanted):
            return np.zeros(len(rows), dtype=np.bool_)
        if wanted is not None and not self._cluster.of_kind("CSINode"):
            return np.full(len(rows), not isinstance(wanted.on(None), Fault))
        if wanted is None or wanted.at_most is None:
            return np.zeros(len(rows), dtype=np.bool_)
        if table is own:
            return self._attached.room_for(wanted.at_most, rows)
        if not isinstance(table, TableCopy) or table.whole is not own:
            return np.zeros(len(rows), dtype=np.bool_)
        passes = self._attached.room_for(wanted.at_most, table.rows_of_whole[rows])
        return passes & np.isin(rows, list(table.joined), invert=True) if table.joined else passes

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        if not pod.signature.spec.restricting_volumes:
            return None
        wanted: _Wanted = state.data.get(self.name) or self._wanted(pod)
        csi_node = self._cluster.of_kind("CSINode").get(node.name)
        new = wanted.on(csi_node)
        if isinstance(new, Fault):
            return _status(new)
        if new and (missing := self._missing(new, csi_node)):
            return unschedulable(f"{missing} CSI driver is not installed on the node")
        if not new or csi_node is None:
            return None
        at_most = self._attached.limits_of(csi_node)
        if not at_most:
            return None
        present = self._attached.on(node.table, node.row, csi_node)
        if isinstance(present, Fault):
            return _status(present)
        for driver in {driver for driver, _ in new}:
            limit = at_most.get(driver)
            if limit is not None:
                added = sum(volume[0] == driver and volume not in present.by_pods for volume in new)
                if added and present.per_driver.get(driver, 0) + added > limit:
                    return _EXCEEDED
        return None

    def _needed(self, wanted: _Wanted) -> bool:
        """Return whether nodes that lack a driver of the volumes are infeasible."""
        if not self._needs_drivers:
            return False
        drivers = {each.driver for each in wanted.volumes if isinstance(each, Attachable)}
        return any(map(self._prevents, drivers))

    def _missing(self, new: Attached, csi_node: Object | None) -> str:
        """Return a driver that a volume needs but the node lacks, or ""."""
        needed = {driver for driver, _ in new if self._prevents(driver)} if self._needs_drivers else set()
        if needed and csi_node is not None:
            needed.difference_update(driver.get("name") for driver in csi_node.spec.get("drivers") or ())
        return min(needed, default="")

    def _prevents(self, driver: str) -> bool:
        found = self._cluster.of_kind("CSIDriver").get(driver)
        return found is not None and bool(found.spec.get("preventPodSchedulingIfMissing"))

    def _wanted(self, pod: Pod) -> _Wanted:
        volumes = self._attached.storage().attachables(pod, new=True)
        known = [(each.driver, each.handle) for each in volumes if isinstance(each, Attachable)]
        at_most = frozenset(known) if len(known) == len(volumes) else None
        everywhere = all(each.plugin is None for each in volumes)
        return _Wanted(volumes, at_most, everywhere, self._is_migrated)

    # --- queueing hints -------------------------------------------------------------------------------------

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (
            on(EventResource.CSI_NODE, ActionType.ADD),
            on(EventResource.CSI_NODE, ActionType.UPDATE, _after_csi_node_changed, by_signature=True),
            on(EventResource.POD, ActionType.DELETE, _after_pod_deleted, by_signature=True),
            on(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, _after_claim_added),
            on(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE, _after_detached, by_signature=True),
        )


def _status(fault: Fault) -> Status:
    return unresolvable(fault.why) if fault.missing else error(fault.why)


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
    for volume in pod.signature.spec.restricting_volumes:
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
