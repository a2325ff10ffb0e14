"""Events: what one of the core group must be, and what more is asked of those of events.k8s.io.

An Event that states `eventTime` is a new one, whichever group it was written in: it says who reports what was done and
why. Values are not shown in its faults.

Source: Kubernetes v1.34, pkg/apis/core/validation/events.go (ValidateEventCreate, legacyValidateEvent).
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.fields import FieldError, invalid, required
from kschedd.api.validation_names import qualified_name

Raw = Mapping[str, Any]
Faults = list[FieldError]

_LONGEST: Final = 128
_LONGEST_NOTE: Final = 1024
_UNSET: Final = {
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "deprecatedSource": "source",
}


def validate_event(event: Raw, faults: Faults) -> None:
    """The faults of an Event as it was written: in the core group, or in events.k8s.io."""
    core = event.get("apiVersion") == "v1"
    about = event.get("involvedObject" if core else "regarding") or {}
    namespace = (event.get("metadata") or {}).get("namespace") or ""
    space = about.get("namespace") or ""
    new = bool(event.get("eventTime"))
    allowed = (space,) if space and not new else ("default", "kube-system") if new else ("", "default")
    if (not space or not new) and namespace not in allowed:
        faults.append(invalid("involvedObject.namespace", space, "does not match event.namespace"))
    if new:
        _validate_report(event, core, faults)
    if not core:
        _validate_strictly(event, faults)


def _validate_report(event: Raw, core: bool, faults: Faults) -> None:
    who = "reportingComponent" if core else "reportingController"
    controller = event.get(who) or ""
    if not controller:
        faults.append(required(who))
    faults += [invalid(who, controller, why) for why in qualified_name(controller)]
    for field in ("reportingInstance", "action", "reason"):
        value = event.get(field) or ""
        if not value:
            faults.append(required(field))
        if len(value.encode()) > _LONGEST:
            faults.append(invalid(field, "", f"can have at most {_LONGEST} characters"))
    if len((event.get("message" if core else "note") or "").encode()) > _LONGEST_NOTE:
        faults.append(invalid("message", "", f"can have at most {_LONGEST_NOTE} characters"))


def _validate_strictly(event: Raw, faults: Faults) -> None:
    if (series := event.get("series")) is not None:
        if (series.get("count") or 0) < 2:
            faults.append(invalid("series.count", "", "should be at least 2"))
        if not series.get("lastObservedTime"):
            faults.append(required("series.lastObservedTime"))
    if not event.get("eventTime"):
        faults.append(required("eventTime"))
    kind = event.get("type") or ""
    if kind not in ("Normal", "Warning"):
        faults.append(invalid("type", "", f"has invalid value: {kind}"))
    for field, called in _UNSET.items():
        if event.get(field):
            faults.append(invalid(called, "", "needs to be unset"))
