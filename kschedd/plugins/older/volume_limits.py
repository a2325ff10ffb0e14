"""Common base class of EBSLimits, GCEPDLimits, AzureDiskLimits and CinderLimits, which limit in-tree volumes per node.

A volume used by several pods on the node is counted once. A volume that is not provisioned yet is counted if the
provisioner of its StorageClass is of the plugin's kind. The limit is the node's allocatable `attachable-volumes-*`,
otherwise the value of `KUBE_MAX_PD_VOLS`, otherwise a default. If the CSINode shows that this kind of volume has been
migrated to its CSI driver, NodeVolumeLimits counts the volumes.

Source: Kubernetes v1.30, plugins/nodevolumelimits/non_csi.go.
Errors: a missing claim rejects the pod.
"""

import os
from collections.abc import Sequence
from typing import Any, ClassVar, Final, Self

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import ActionType, ClusterEventWithHint, EventResource, on
from kschedd.framework.handle import Handle
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.status import Status, error, unresolvable, unschedulable
from kschedd.storage.claims import class_of, ephemeral_claim, missing, not_made_for, volume_of
from kschedd.storage.migration import BY_PLUGIN, InTree, migrated_plugins

_EXCEEDED: Final = unschedulable("node(s) exceed max volume count")
LIMIT_VARIABLE: Final = "KUBE_MAX_PD_VOLS"


@attrs.frozen(eq=False)
class InTreeVolumeLimits:
    name: ClassVar[str]
    plugin: ClassVar[str]
    """The in-tree volume plugin, such as kubernetes.io/aws-ebs."""
    volume_id: ClassVar[str]
    """The field of a source that identifies the volume."""
    limit_key: ClassVar[str]
    """The allocatable resource with the limit."""
    _cluster: SchedulerCache
    _limit: int | None  # value of the environment variable KUBE_MAX_PD_VOLS

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        return cls(handle.cluster, _limit_from(os.environ.get(LIMIT_VARIABLE, "")))

    def default_limit(self, node: Node) -> int:
        raise NotImplementedError

    def idle_for(self, pod: Pod) -> Sequence[str]:
        return () if pod.signature.spec.restricting_volumes else ("filter",)

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        if not pod.signature.spec.restricting_volumes:
            return None
        new = self._volumes(pod, new=True)
        if isinstance(new, Status):
            return new
        csi_node = self._cluster.of_kind("CSINode").get(node.name)
        if not new or self.plugin in migrated_plugins(csi_node):
            return None
        present: set[str] = set()
        for other in node.pods:
            used = self._volumes(other, new=False)
            if isinstance(used, Status):
                return used
            present |= used
        return _EXCEEDED if len(present | new) > self._limit_on(node.node) else None

    def _limit_on(self, node: Node) -> int:
        allocatable = node.allocatable.get(self.limit_key)
        if allocatable is not None:
            return allocatable
        return self.default_limit(node) if self._limit is None else self._limit

    def _volumes(self, pod: Pod, *, new: bool) -> set[str] | Status:
        found = set()
        for volume in pod.signature.spec.restricting_volumes:
            inline = self._id_in(volume)
            if inline is not None:
                found.add(inline)
                continue
            claimed = self._claimed(pod, volume, new)
            if isinstance(claimed, Status):
                return claimed
            if claimed is not None:
                found.add(claimed)
        return found

    def _claimed(self, pod: Pod, volume: Raw, new: bool) -> str | Status | None:
        """Return the id under which the volume's claim is counted; None if the claim is of another kind."""
        source = volume.get("persistentVolumeClaim")
        ephemeral = source is None and volume.get("ephemeral") is not None
        if source is None and not ephemeral:
            return None
        name = ephemeral_claim(pod, volume.get("name") or "") if source is None else source.get("claimName") or ""
        if not name:
            return error("PersistentVolumeClaim had no name")
        key = f"{pod.namespace}/{name}"
        claim = self._cluster.of_kind("PersistentVolumeClaim").get(key)
        if claim is None:
            # A running pod may have lost its claim, but a new pod cannot start without it.
            return unresolvable(f"looking up PVC {key}: {missing('PersistentVolumeClaim', name)}") if new else None
        if ephemeral and (why := not_made_for(pod, claim)):
            return error(why)
        bound = volume_of(claim)
        persistent = self._cluster.of_kind("PersistentVolume").get(bound) if bound else None
        if persistent is not None:
            return self._id_in(persistent.spec)
        return f"\0claim {key}" if self._is_provisioned(claim) else None

    def _is_provisioned(self, claim: Object) -> bool:
        storage_class = self._cluster.of_kind("StorageClass").get(class_of(claim))
        return storage_class is not None and storage_class.raw.get("provisioner") == self.plugin

    def _id_in(self, volume: Raw) -> str | None:
        """Return the id of a pod's volume or of a PersistentVolume's spec; None if it is of another kind."""
        kind: InTree = BY_PLUGIN[self.plugin]
        source: Any = volume.get(kind.source)
        return None if source is None else str(source.get(self.volume_id) or "")

    def events_to_register(self) -> list[ClusterEventWithHint]:
        return [
            on(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE),
            on(EventResource.POD, ActionType.DELETE),
            on(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD),
            on(EventResource.CSI_NODE, ActionType.ADD | ActionType.UPDATE),
        ]


def _limit_from(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else None
