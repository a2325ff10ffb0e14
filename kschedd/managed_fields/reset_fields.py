"""Fields that a write to a kind, or to one of its subresources, cannot change and therefore does not own.

Source: Kubernetes v1.34, GetResetFields and GetResetFieldsFilter of the strategies in pkg/registry.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kschedd.managed_fields.field_set import FieldSet, Path, only_below, recursive_difference, set_of
from kschedd.managed_fields.updater import Filter

_STATUS: Final = set_of(("f:status",))
_SPEC: Final = set_of(("f:spec",))
_NOTHING: Final = set_of()
_ALL_BUT_STATUS: Final = set_of(("f:spec",), ("f:metadata",))

# Kinds whose status a write of the object itself cannot change.
_WITH_STATUS: Final = frozenset(
    "CronJob CustomResourceDefinition DaemonSet Deployment FlowSchema HorizontalPodAutoscaler Ingress Job Namespace"
    " Node PersistentVolume PersistentVolumeClaim Pod PodDisruptionBudget PriorityLevelConfiguration ReplicaSet"
    " ReplicationController ResourceClaim ResourceQuota Service ServiceCIDR StatefulSet ValidatingAdmissionPolicy"
    " VolumeAttachment".split()
)
_OF_STATUS: Final[Mapping[str, FieldSet]] = {
    "Pod": set_of(("f:spec",), ("f:metadata", "f:deletionTimestamp"), ("f:metadata", "f:ownerReferences")),
    "Deployment": set_of(("f:spec",), ("f:metadata", "f:labels")),
    "ResourceClaim": _ALL_BUT_STATUS,
    "VolumeAttachment": _ALL_BUT_STATUS,
    "CustomResourceDefinition": _ALL_BUT_STATUS,
    "FlowSchema": _ALL_BUT_STATUS,
    "PriorityLevelConfiguration": _ALL_BUT_STATUS,
    "ValidatingAdmissionPolicy": _ALL_BUT_STATUS,
    "APIService": _NOTHING,
    "CertificateSigningRequest": set_of(("f:spec",), ("f:status", "f:conditions")),
}
_OF_APPROVAL: Final = set_of(("f:spec",), ("f:status", "f:certificate"))
_SPEC_AND_STATUS: Final = set_of(("f:spec",), ("f:status",))
_ONLY: Final[Mapping[str, tuple[Path, ...]]] = {
    "resize": tuple(
        ("f:spec", f"f:{containers}", "*", f"f:{field}")
        for containers in ("containers", "initContainers")
        for field in ("resources", "resizePolicy")
    ),
    "ephemeralcontainers": (("f:spec", "f:ephemeralContainers"),),
}


def kept_fields(
    kind: str, subresource: str, *, status: bool | None = None, replicas: Sequence[str] = ("spec", "replicas")
) -> Filter:
    """Return a filter that removes from a set the fields that this write resets.

    For a custom resource, `status` is true if the kind has a status subresource, and `replicas` is the path of the
    field that its scale subresource changes.
    """
    if subresource == "scale":
        number = tuple(f"f:{step}" for step in replicas)
        return lambda fields: only_below(fields, (number,))
    if subresource in _ONLY:
        roots = _ONLY[subresource]
        return lambda fields: only_below(fields, roots)
    if subresource == "status":
        reset = _OF_STATUS.get(kind, _SPEC)
    elif subresource == "approval":
        reset = _OF_APPROVAL
    elif kind == "CertificateSigningRequest":
        reset = _SPEC_AND_STATUS
    elif kind in _WITH_STATUS if status is None else status:
        reset = _STATUS
    else:
        return lambda fields: fields
    return lambda fields: recursive_difference(fields, reset)
