"""The number of times that upstream validates each part of an object during an update.

Upstream reports an error once for each of these validations.
Source: Kubernetes v1.34, the Validate*Update functions of pkg/apis/*/validation, apiserver/pkg/registry/rest/update.go.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kschedd.api.schemas.fields import FieldError
from kschedd.api.schemas.kinds import Kind
from kschedd.registry.storage.validation import MOUNT_OPTIONS
from kschedd.registry.validation_meta import NOT_STANDARD, validate_meta

Raw = dict[str, Any]
Faults = list[FieldError]


@attrs.frozen
class _Times:
    """The number of validations by the update rules of a kind, in addition to the general validation."""

    meta: int = 0  # of the whole metadata
    changes: int = 1  # number of validations of the metadata's changes
    spec: int = 1  # of everything else


_UPDATED: Final[Mapping[str, _Times]] = {
    **dict.fromkeys(("Pod", "Namespace", "ConfigMap", "Secret", "RuntimeClass", "StorageClass"), _Times(meta=1)),
    **dict.fromkeys(("Ingress", "IngressClass", "Endpoints", "ControllerRevision"), _Times(meta=1)),
    **dict.fromkeys(
        (
            "EndpointSlice",
            "ValidatingAdmissionPolicy",
            "ValidatingWebhookConfiguration",
            "MutatingWebhookConfiguration",
        ),
        _Times(meta=1, changes=0),
    ),
    **dict.fromkeys(("ReplicationController", "Job", "DeviceClass", "Node"), _Times(1, 1, 2)),
    **dict.fromkeys(("ResourceClaim", "ResourceClaimTemplate"), _Times(1, 1, 2)),
    **dict.fromkeys(("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"), _Times(2, 1, 2)),
    "NetworkPolicy": _Times(1, 1, 2),
    "PriorityClass": _Times(spec=0),
    "PersistentVolumeClaim": _Times(2, 1, 2),
    **dict.fromkeys(("PersistentVolume", "CSINode", "VolumeAttachment"), _Times(2, 0, 2)),
    **dict.fromkeys(("LimitRange", "CSIStorageCapacity"), _Times(1, 0, 1)),
    "PodDisruptionBudget": _Times(changes=0),
    **dict.fromkeys(("ServiceAccount", "CertificateSigningRequest"), _Times(meta=1)),
    **dict.fromkeys(("FlowSchema", "PriorityLevelConfiguration"), _Times(meta=1, changes=0)),
}
_CHECKED_ONCE: Final = ("spec.podCIDRs", f"metadata.annotations.{MOUNT_OPTIONS}")
_CHECKED_AGAIN: Final = ("metadata.labels", "metadata.annotations", "metadata.ownerReferences")


def times_validated(kind: str) -> int:
    """Return how often the validation of an update validates, and reports, the spec of an object of this kind."""
    return _UPDATED.get(kind, _Times()).spec


def validates_meta(kind: str) -> bool:
    """Return whether the update rules of the kind validate all metadata, including the name."""
    return _UPDATED.get(kind, _Times()).meta > 0


def updated_faults(kind: str, meta: Faults, changes: Faults, spec: Faults) -> Faults:
    """Return the errors of an updated object, each as often as upstream reports it.

    The general rules first check the metadata and its changes. The rules of the kind follow, and validate some parts
    several times. Labels, annotations and owners are validated again with the changes.
    """
    again = [fault for fault in meta if fault.path.startswith(_CHECKED_AGAIN)]
    own = [fault for fault in meta if fault.why.endswith(NOT_STANDARD)]  # the general rules do not report these errors
    of_all_kinds = [fault for fault in meta if not fault.why.endswith(NOT_STANDARD)]
    times = _UPDATED.get(kind, _Times())
    once = [fault for fault in spec if fault.path.startswith(_CHECKED_ONCE)]
    more = [fault for fault in spec if not fault.path.startswith(_CHECKED_ONCE)] * times.spec
    changed = (again + changes + own) * times.changes
    return [*of_all_kinds, *again, *changes, *(meta * times.meta), *changed, *once, *more]


_WITHOUT_RULES: Final = ("CronJob", "PodDisruptionBudget")


def status_meta_faults(kind: Kind, meta: Raw, changes: Faults) -> Faults:
    """Return the metadata errors of a status update, each as often as upstream reports it.

    The general rules validate the metadata; then the rules of most kinds validate its changes again.
    """
    found = validate_meta(meta, kind, any_name=kind.known)
    own = [fault for fault in found if fault.why.endswith(NOT_STANDARD)]
    again = [fault for fault in found if fault.path.startswith(_CHECKED_AGAIN)]
    once = [*(fault for fault in found if not fault.why.endswith(NOT_STANDARD)), *again, *changes]
    return once if kind.name in _WITHOUT_RULES else [*once, *again, *changes, *own]
