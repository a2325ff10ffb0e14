"""The volumes of pods as Karpenter reads them: where they can be attached, and how many a node can attach.

A pod whose claims kube-scheduler would reject on every node gets no launch. The zones of a bound volume, or the allowed
topologies of a class, restrict the nodes of the pod; the hostname of a local or hostPath volume does not, because the
pod is expected to move to a new node.

Source: sigs.k8s.io/karpenter, pkg/controllers/provisioning/scheduling/volumetopology.go, pkg/scheduling/volumeusage.go.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.storage.attachable import limits
from kschedd.storage.claims import claims_used, volume_of
from kschedd.storage.migration import BY_PLUGIN

#: kinds of objects from which the volumes are resolved
VOLUME_KINDS: Final = ("PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSINode")
_HOSTNAME: Final = "kubernetes.io/hostname"
_EBS: Final = "kubernetes.io/aws-ebs"

Raw = Mapping[str, Any]
Expressions = Sequence[Raw]  # {key, operator, values}, all of which a node must meet


@attrs.frozen(eq=False)
class ClaimedVolumes:
    """Claims by namespace and name, and volumes, classes and CSINodes by name."""

    claims: Mapping[str, Object] = attrs.field(factory=dict)
    volumes: Mapping[str, Object] = attrs.field(factory=dict)
    classes: Mapping[str, Object] = attrs.field(factory=dict)
    csi_nodes: Mapping[str, Object] = attrs.field(factory=dict)

    @classmethod
    def of(cls, objects: Iterable[Object]) -> "ClaimedVolumes":
        found: dict[str, dict[str, Object]] = {kind: {} for kind in VOLUME_KINDS}
        for obj in objects:
            if obj.kind in found:
                found[obj.kind][obj.key] = obj
        return cls(*found.values())

    def why_left_out(self, pod: Pod) -> str:
        """Return why no node is launched for the pod, or "" if its claims allow a launch."""
        return next((why for use in claims_used(pod) if (why := self._fault(use.key))), "")

    def _fault(self, key: str) -> str:
        claim = self.claims.get(key)
        name = key.partition("/")[2]
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if claim.deleting:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if claim.status.get("phase") == "Lost":
            return f'persistentvolumeclaim "{name}" is bound to a volume that does not exist'
        if volume_name := volume_of(claim):
            volume = self.volumes.get(volume_name)
            if volume is None:
                return f'the volume "{volume_name}" of persistentvolumeclaim "{name}" does not exist'
            return f'the volume "{volume_name}" is being deleted' if volume.deleting else ""
        class_name = _class_of(claim)
        if not class_name:
            return f'persistentvolumeclaim "{name}" is not bound and has no StorageClass'
        storage_class = self.classes.get(class_name)
        if storage_class is None:
            return f'the StorageClass "{class_name}" of persistentvolumeclaim "{name}" does not exist'
        if storage_class.raw.get("volumeBindingMode") == "Immediate":
            return f'persistentvolumeclaim "{name}" is not bound, and its StorageClass binds immediately'
        return ""

    def node_terms(self, pod: Pod) -> list[list[Expressions]]:
        """Return the alternatives of each claim that restricts the nodes of the pod; a node must meet one of each."""
        claims = [claim for use in claims_used(pod) if (claim := self.claims.get(use.key)) is not None]
        return [terms for claim in claims if (terms := [*self._terms(claim)])]

    def _terms(self, claim: Object) -> Iterator[Expressions]:
        if volume_name := volume_of(claim):
            volume = self.volumes.get(volume_name)
            if volume is not None:
                yield from _terms_of(volume)
            return
        storage_class = self.classes.get(_class_of(claim))
        for topology in () if storage_class is None else storage_class.raw.get("allowedTopologies") or ():
            labels = topology.get("matchLabelExpressions") or ()
            if labels:
                yield [{**each, "operator": "In"} for each in labels]

    def exceeds(self, node_limits: Mapping[str, int], pods: Iterable[Pod]) -> bool:
        """Return whether the pods together use more volumes of a driver than its limit; keys of limits are drivers."""
        used: dict[str, set[str]] = {}
        for pod in pods:
            for use in claims_used(pod):
                claim = self.claims.get(use.key)
                if claim is not None and (driver := self._driver(claim)):
                    used.setdefault(driver, set()).add(use.key)
        return any(driver in node_limits and len(keys) > node_limits[driver] for driver, keys in used.items())

    def _driver(self, claim: Object) -> str:
        """Return the CSI driver of the claim; "" if volumes of this kind are not counted."""
        if volume_name := volume_of(claim):
            volume = self.volumes.get(volume_name)
            spec: Raw = {} if volume is None else volume.spec
            if spec.get("csi") is not None:
                return str(spec["csi"].get("driver") or "")
            return BY_PLUGIN[_EBS].driver if spec.get("awsElasticBlockStore") is not None else ""
        storage_class = self.classes.get(_class_of(claim))
        provisioner = "" if storage_class is None else str(storage_class.raw.get("provisioner") or "")
        return BY_PLUGIN[provisioner].driver if provisioner in BY_PLUGIN else provisioner

    def limits_of(self, node_name: str) -> Mapping[str, int]:
        """Return the number of volumes that the node can attach, for each driver that has a limit."""
        csi_node = self.csi_nodes.get(node_name)
        return {} if csi_node is None else limits(csi_node)


NO_VOLUMES: Final = ClaimedVolumes()


def _terms_of(volume: Object) -> Iterator[Expressions]:
    required = (volume.spec.get("nodeAffinity") or {}).get("required") or {}
    movable = volume.spec.get("local") is not None or volume.spec.get("hostPath") is not None
    for term in required.get("nodeSelectorTerms") or ():
        stated = term.get("matchExpressions") or ()
        kept = [each for each in stated if not (movable and each["key"] == _HOSTNAME)]
        if kept or (movable and stated):
            yield kept


def _class_of(claim: Object) -> str:
    return str(claim.spec.get("storageClassName") or "")
