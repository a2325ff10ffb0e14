"""Remedies for volume rejections, shared by the four volume plugins."""

from typing import Final

from kschedd.framework.remedies import Remedy, RemedyContext, by_pattern, by_reason
from kschedd.framework.status import Status

_BEFORE_FILTER: Final = (
    (r'persistentvolumeclaim "(.+)" not found', "the PersistentVolumeClaim {} existed"),
    (r'waiting for ephemeral volume controller to create the persistentvolumeclaim "(.+)"', "the claim {} were made"),
    (r'persistentvolumeclaim "(.+)" is being deleted', "the PersistentVolumeClaim {} were not being deleted"),
    (r"pod has unbound immediate PersistentVolumeClaims", "its immediate PersistentVolumeClaims were bound"),
    (r'persistentvolume "(.+)" not found', "the PersistentVolume {} existed"),
    (r'storageclass(?:\.storage\.k8s\.io)? "(.+)" not found', "the StorageClass {} existed"),
)
_ALONE: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
_VANISHED: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
_ON_A_NODE: Final = {
    "node(s) didn't find available persistent volumes to bind": "a free volume for its claims could be had on the node",
    "node(s) didn't match PersistentVolume's node affinity": "the volumes of its claims could be reached from the node",
    "node(s) did not have enough free storage": "the node had the storage its claims ask for",
    _VANISHED: "the volumes its claims are bound to existed",
    "node(s) had no available volume zone": "its volumes were in the zone of the node",
    "node(s) had no available disk": "no other pod used its disks on the node",
    "node(s) exceed max volume count": "the node could attach more volumes",
    _ALONE: "no other pod used its ReadWriteOncePod claim",
}


def volume_remedies(context: RemedyContext, row: int | None, status: Status) -> list[Remedy]:
    """See `kschedd.framework.remedies.RemedyPlugin`."""
    return by_pattern(status, _BEFORE_FILTER) if row is None else by_reason(status, _ON_A_NODE)
