"""The expansion of a bound claim: the claim's status while the volume and its file system are resized.

Source: Kubernetes v1.36, pkg/volume/util/resize_util.go; external-resizer, pkg/controller/resize_status.go.
"""

from typing import Any, Final

from kschedd.api.objects import Object, Raw
from kschedd.api.quantity import nanos
from kschedd.storage.claims import requested

PENDING: Final = "NodeResizePending"
_IN_PROGRESS: Final = "NodeResizeInProgress"
_WAITING: Final = "Waiting for user to (re-)start a pod to finish file system resize of volume on node."
_CONDITIONS: Final = frozenset(("Resizing", "FileSystemResizePending", "ControllerResizeError", "NodeResizeError"))


def wants_more(claim: Object) -> bool:
    """Return whether a bound claim requests more storage than its status shows."""
    status = claim.status
    has = (status.get("capacity") or {}).get("storage")
    return status.get("phase") == "Bound" and has is not None and requested(claim) > nanos(has)


def waits_for_node(claim: Object) -> bool:
    """Return whether the claim's volume is resized, but its file system is not."""
    return (claim.status.get("allocatedResourceStatuses") or {}).get("storage") in (PENDING, _IN_PROGRESS)


def pending_status(claim: Object, size: Any, at: str) -> dict[str, Any]:
    """Return the status of a claim with a resized volume, but without a resized file system."""
    waiting = {
        "type": "FileSystemResizePending",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": at,
        "message": _WAITING,
    }
    return {
        "conditions": [*_others(claim), waiting],
        "allocatedResources": {"storage": size},
        "allocatedResourceStatuses": {"storage": PENDING},
    }


def finished_status(claim: Object, size: Any) -> dict[str, Any]:
    """Return the status of a claim whose expansion is complete."""
    others = len(claim.status.get("allocatedResourceStatuses") or ()) > 1
    return {
        "capacity": {"storage": size},
        "conditions": _others(claim) or None,
        "allocatedResources": {"storage": size},
        "allocatedResourceStatuses": {"storage": None} if others else None,
    }


def _others(claim: Object) -> list[Raw]:
    """Return the conditions that are not about the expansion."""
    return [entry for entry in claim.status.get("conditions") or () if entry.get("type") not in _CONDITIONS]
