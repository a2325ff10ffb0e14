"""NodeVolumeLimits: a node passes when its CSI drivers can attach the pod's volumes beside those attached already.

A volume that a pod on the node uses too is attached once. A driver without a limit on the node's CSINode, or a node
without a CSINode, has no limit.
Source: Kubernetes v1.34, plugins/nodevolumelimits/csi.go.
Errors: a missing claim rejects the pod; what cannot be translated is an error, on the nodes where it would have to be.
"""

from collections import Counter
from collections.abc import Mapping
from typing import ClassVar, Final, Self

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod, PodShape
from kschedd.cache.cluster import Cluster
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
from kschedd.storage.attachable import Attachable, Fault, Storage, attachments_by_node, has_attachable, limits
from kschedd.storage.claims import claims_used
from kschedd.storage.migration import InTree, in_tree
from kschedd.storage.volumes import StorageError

_EXCEEDED: Final = unschedulable("node(s) exceed max volume count")

Attached = set[tuple[str, str]]  # (driver, handle)


@attrs.frozen
class _Counted:
    """What the pods of a node attach, and what that was worked out from."""

    csi_node: Object
    versions: tuple[int, ...]
    attached: Attached | Status


@attrs.define(eq=False)
class NodeVolumeLimits:
    name: ClassVar = "NodeVolumeLimits"
    _cluster: Cluster
    _counted: dict[int, _Counted] = attrs.field(factory=dict)  # by row, of the cluster's own table
    _limits: dict[str, tuple[Object, dict[str, int]]] = attrs.field(factory=dict)
    _attachments: tuple[tuple[int, int], dict[str, Attached]] = ((-1, -1), {})

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        return cls(handle.cluster)

    def idle_for(self, shape: PodShape) -> bool:
        return not shape.spec.volumes

    def pre_filter(self, state: CycleState, pod: Pod, cluster: Cluster) -> Status | None:
        if not pod.shape.spec.volumes or not has_attachable(pod):
            return SKIP
        state.data[self.name] = self._storage().attachables(pod, new=True)
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        if not pod.shape.spec.volumes:
            return None
        wanted = state.data.get(self.name)
        if wanted is None:
            wanted = self._storage().attachables(pod, new=True)
        csi_node = self._cluster.of_kind("CSINode").get(node.name)
        new = _attached(wanted, csi_node)
        if isinstance(new, Status):
            return new
        if not new or csi_node is None:
            return None
        at_most = self._limits_of(csi_node)
        if not at_most:
            return None
        attached = self._attached_on(node, csi_node)
        if isinstance(attached, Status):
            return attached
        present = Counter(driver for driver, _ in attached)
        present.update(driver for driver, _ in self._attachments_on(node.name) - attached)
        for driver, count in Counter(driver for driver, _ in new - attached).items():
            limit = at_most.get(driver)
            if limit is not None and present[driver] + count > limit:
                return _EXCEEDED
        return None

    def _storage(self) -> Storage:
        of_kind = self._cluster.of_kind
        return Storage(of_kind("PersistentVolumeClaim"), of_kind("PersistentVolume"), of_kind("StorageClass"))

    def _limits_of(self, csi_node: Object) -> Mapping[str, int]:
        known = self._limits.get(csi_node.name)
        if known is None or known[0] is not csi_node:
            known = self._limits[csi_node.name] = (csi_node, limits(csi_node))
        return known[1]

    def _attached_on(self, node: NodeInfo, csi_node: Object) -> Attached | Status:
        """What the pods on the node attach; remembered as long as neither they nor any claim or volume changed."""
        if node.table is not self._cluster.table:
            return self._count(node, csi_node)
        versions = self._cluster.objects_version
        now = (
            int(node.table.pods_version[node.row]),
            versions.get("PersistentVolumeClaim", 0),
            versions.get("PersistentVolume", 0),
            versions.get("StorageClass", 0),
        )
        known = self._counted.get(node.row)
        if known is None or known.csi_node is not csi_node or known.versions != now:
            known = self._counted[node.row] = _Counted(csi_node, now, self._count(node, csi_node))
        return known.attached

    def _count(self, node: NodeInfo, csi_node: Object) -> Attached | Status:
        storage = self._storage()
        attached: Attached = set()
        for other in node.pods:
            if other.shape.spec.volumes:
                theirs = _attached(storage.attachables(other, new=False), csi_node)
                if isinstance(theirs, Status):
                    return theirs
                attached |= theirs
        return attached

    def _attachments_on(self, node_name: str) -> Attached:
        versions = self._cluster.objects_version
        now = (versions.get("VolumeAttachment", 0), versions.get("PersistentVolume", 0))
        if self._attachments[0] != now:
            of_kind = self._cluster.of_kind
            self._attachments = (now, attachments_by_node(of_kind("VolumeAttachment"), of_kind("PersistentVolume")))
        return self._attachments[1].get(node_name, set())

    # --- what may help a rejected pod ------------------------------------------------------------------------

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (
            on(EventResource.CSI_NODE, ActionType.ADD),
            on(EventResource.CSI_NODE, ActionType.UPDATE, _after_csi_node_changed, by_shape=True),
            on(EventResource.POD, ActionType.DELETE, _after_pod_deleted, by_shape=True),
            on(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, _after_claim_added),
            on(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE, _after_detached, by_shape=True),
        )


def _attached(wanted: list[Attachable | Fault], csi_node: Object | None) -> Attached | Status:
    """Those that count on the node; or what is wrong with one of them."""
    found: Attached = set()
    for each in wanted:
        if not each.counts_on(csi_node):
            continue
        if isinstance(each, Fault):
            return unresolvable(each.why) if each.missing else error(each.why)
        found.add((each.driver, each.handle))
    return found


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
    for volume in pod.shape.spec.volumes:
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
