"""Validation of statuses: counts, conditions, addresses, allocations, and immutable parts.

Source: Kubernetes v1.34, the Validate*StatusUpdate functions of pkg/apis/*/validation, apimachinery meta/v1/validation
(ValidateConditions). The functions require statuses that match the schema, and append errors to `faults`. The rules for
a pod's status are in `validation_pod`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kschedd.api.quantity import nanos, value
from kschedd.api.schemas.fields import FieldError, duplicate, invalid, required, unsupported
from kschedd.api.selecting.names import between, qualified_name
from kschedd.registry.policy.quota import validate_quota_amounts
from kschedd.registry.validation_resources import NOT_NEGATIVE, is_native, validate_resource_list

Raw = Mapping[str, Any]
Faults = list[FieldError]

# For each kind: counts in its status, counts that may not exceed the replicas, and counts that may not exceed the ready
# replicas.
_COUNTS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]]] = {
    kind: (tuple(counts.split()), tuple(below.split()), tuple(ready.split()))
    for kind, (counts, below, ready) in {
        "Deployment": (
            "observedGeneration replicas updatedReplicas readyReplicas availableReplicas unavailableReplicas "
            "collisionCount",
            "updatedReplicas readyReplicas availableReplicas",
            "availableReplicas",
        ),
        "ReplicaSet": (
            "replicas fullyLabeledReplicas readyReplicas availableReplicas observedGeneration",
            "fullyLabeledReplicas readyReplicas availableReplicas",
            "availableReplicas",
        ),
        "ReplicationController": (
            "replicas fullyLabeledReplicas readyReplicas availableReplicas observedGeneration",
            "fullyLabeledReplicas readyReplicas availableReplicas",
            "availableReplicas",
        ),
        "StatefulSet": (
            "replicas readyReplicas currentReplicas updatedReplicas availableReplicas observedGeneration "
            "collisionCount",
            "readyReplicas currentReplicas updatedReplicas availableReplicas",
            "availableReplicas",
        ),
        "DaemonSet": (
            "currentNumberScheduled numberMisscheduled desiredNumberScheduled numberReady observedGeneration "
            "updatedNumberScheduled numberAvailable numberUnavailable collisionCount",
            "",
            "",
        ),
        "Job": ("active succeeded failed ready terminating", "", ""),
        "PodDisruptionBudget": ("disruptionsAllowed currentHealthy desiredHealthy expectedPods", "", ""),
    }.items()
}


def validate_status_alone(kind: str, status: Raw, faults: Faults) -> None:
    """Append the errors of a status that do not depend on the previous object."""
    counts, below, ready = _COUNTS.get(kind, ((), (), ()))
    for field in counts:
        if (status.get(field) or 0) < 0:
            faults.append(invalid(f"status.{field}", status[field], NOT_NEGATIVE))
    _at_most(status, below, status.get("replicas") or 0, "status.replicas", faults)
    _at_most(status, ready, status.get("readyReplicas") or 0, _READY.get(kind, "readyReplicas"), faults)
    check = _BY_KIND.get(kind)
    if check is not None:
        check(status, faults)


_FEATURE: Final = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*")
_LONGEST_FEATURE: Final = 253
_FEATURE_FORM: Final = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or "
    "MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
)
_READY: Final[Mapping[str, str]] = {"StatefulSet": "status.readyReplicas"}


def _at_most(status: Raw, fields: Sequence[str], most: int, called: str, faults: Faults) -> None:
    for field in fields:
        if (count := status.get(field) or 0) > most:
            faults.append(invalid(f"status.{field}", count, f"cannot be greater than {called}"))


def _node(status: Raw, faults: Faults) -> None:
    for field in ("capacity", "allocatable"):
        if resources := status.get(field):
            validate_resource_list(resources, f"status.{field}", faults)
    _declared_features(status.get("declaredFeatures") or (), "status.declaredFeatures", faults)


def _declared_features(names: Sequence[str], path: str, faults: Faults) -> None:
    """Append the errors in the features that a node declares (since 1.36), which must be sorted and unique."""
    for index, name in enumerate(names):
        if len(name) > _LONGEST_FEATURE:
            why = f'invalid feature name "{name}": must be no more than {_LONGEST_FEATURE} characters'
            faults.append(invalid(f"{path}[{index}]", name, why))
        elif not _FEATURE.fullmatch(name):
            why = f'invalid feature name "{name}": {_FEATURE_FORM}'
            faults.append(invalid(f"{path}[{index}]", name, why))
        if index + 1 < len(names) and name == names[index + 1]:
            faults.append(duplicate(f"{path}[{index + 1}]", name))
        elif index + 1 < len(names) and name > names[index + 1]:
            faults.append(invalid(f"{path}[{index + 1}]", names[index + 1], "list must be sorted alphabetically"))


def node_addresses(status: Raw, faults: Faults) -> None:
    """Append a fault for each duplicate address, which is checked only in updates."""
    seen: set[tuple[str, str]] = set()
    for index, address in enumerate(status.get("addresses") or ()):
        key = (address.get("type") or "", address.get("address") or "")
        if key in seen:
            faults.append(duplicate(f"status.addresses[{index}]", {"Type": key[0], "Address": key[1]}))
        seen.add(key)


def _quota(status: Raw, faults: Faults) -> None:
    for field in ("hard", "used"):
        validate_quota_amounts(status.get(field) or {}, f"status.{field}", faults)


_RESIZE_STATES: Final = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)


def _volume_claim(status: Raw, faults: Faults) -> None:
    for name, amount in (status.get("capacity") or {}).items():
        _basic(amount, f"status.capacity[{name}]", faults)
    path = "status.allocatedResourceStatuses"
    for name, state in (status.get("allocatedResourceStatuses") or {}).items():
        faults += _claim_resource(name, path)
        if state not in _RESIZE_STATES:
            faults.append(unsupported(path, name, _RESIZE_STATES))
    for name, amount in (status.get("allocatedResources") or {}).items():
        if wrong := _claim_resource(name, "status.allocatedResources"):
            faults += wrong
        else:
            _basic(amount, f"status.allocatedResources[{name}]", faults)


def _basic(amount: Any, path: str, faults: Faults) -> None:
    if nanos(amount) < 0:
        faults.append(invalid(path, value(amount), "must be a valid resource quantity"))


def _claim_resource(name: str, path: str) -> Faults:
    """Return the errors of a claim's resource name, which must be storage or outside the Kubernetes domains."""
    if wrong := qualified_name(name):
        return [invalid(path, name, why) for why in wrong]
    return [unsupported(path, name, ("storage",))] if is_native(name) and name != "storage" else []


def _budget(status: Raw, faults: Faults) -> None:
    validate_conditions(status.get("conditions") or (), "status.conditions", faults)


_LARGEST_ATTACHED: Final = 256 * 1024  # bytes
_LONGEST_ERROR: Final = 1024  # bytes


def _attachment(status: Raw, faults: Faults) -> None:
    too_long = f"Too long: may not be more than {_LARGEST_ATTACHED} bytes"
    size = sum(len(text.encode()) for pair in (status.get("attachmentMetadata") or {}).items() for text in pair)
    if size > _LARGEST_ATTACHED:
        faults.append(FieldError("status.attachmentMetadata", None, too_long))
    for field in ("attachError", "detachError"):
        error = status.get(field) or {}
        if len((error.get("message") or "").encode()) > _LONGEST_ERROR:
            # upstream's message contains another limit than its check
            faults.append(FieldError(f"status.{field}.message", None, too_long))
        if (code := error.get("errorCode") or 0) < 0:
            faults.append(invalid(f"status.{field}.errorCode", code, between(0, 2**31 - 1)))


_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_RE: Final = re.compile(_REASON, re.ASCII)
_STATES: Final = ("False", "True", "Unknown")
_LONGEST: Final = {"reason": 1024, "message": 32 * 1024}  # bytes


def validate_conditions(conditions: Sequence[Raw], path: str, faults: Faults) -> None:
    """Validate a list of metav1.Condition."""
    seen = set()
    for index, condition in enumerate(conditions):
        here, kind = f"{path}[{index}]", condition.get("type") or ""
        if kind in seen:
            faults.append(duplicate(f"{here}.type", kind))
        seen.add(kind)
        faults += [invalid(f"{here}.type", kind, why) for why in qualified_name(kind)]
        if (state := condition.get("status") or "") not in _STATES:
            faults.append(unsupported(f"{here}.status", state, _STATES))
        if (condition.get("observedGeneration") or 0) < 0:
            why = "must be greater than or equal to zero"
            faults.append(invalid(f"{here}.observedGeneration", condition["observedGeneration"], why))
        if condition.get("lastTransitionTime") is None:
            faults.append(required(f"{here}.lastTransitionTime"))
        reason = condition.get("reason") or ""
        if not reason:
            faults.append(required(f"{here}.reason"))
        elif not _REASON_RE.fullmatch(reason):
            why = (
                "a condition reason must start with alphabetic character, optionally followed by a string of "
                "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. "
                f"'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used "
                f"for validation is '{_REASON}')"
            )
            faults.append(invalid(f"{here}.reason", reason, why))
        for field, most in _LONGEST.items():
            if len((condition.get(field) or "").encode()) > most:
                faults.append(FieldError(f"{here}.{field}", None, f"Too long: may not be more than {most} bytes"))


_BY_KIND: Final[Mapping[str, Callable[[Raw, Faults], None]]] = {
    "Node": _node,
    "ResourceQuota": _quota,
    "PersistentVolumeClaim": _volume_claim,
    "PodDisruptionBudget": _budget,
    "VolumeAttachment": _attachment,
}

# --- changes ----------------------------------------------------------------------------------------------------------


def validate_pod_claims(old: Raw, new: Raw, faults: Faults) -> None:
    """Check that the claims in a pod's status are claims of its spec."""
    names = {claim.get("name") for claim in (old.get("spec") or {}).get("resourceClaims") or ()}
    seen = set()
    for index, status in enumerate((new.get("status") or {}).get("resourceClaimStatuses") or ()):
        here, name = f"status.resourceClaimStatuses[{index}].name", status.get("name") or ""
        if name not in names:
            faults.append(invalid(here, name, "must match the name of an entry in `spec.resourceClaims`"))
        if name in seen:
            faults.append(duplicate(here, name))
        seen.add(name)
