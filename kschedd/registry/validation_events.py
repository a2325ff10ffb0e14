"""Validation of Events: the rules of the core group, and the stricter rules of events.k8s.io.

An Event with `eventTime` has the new form in both groups: it contains the reporter, the action and the reason. The
errors of an Event do not contain values.

An update in the core group may change everything; an update in events.k8s.io may change only the metadata and the
series.

Source: Kubernetes v1.34, pkg/apis/core/validation/events.go (ValidateEventCreate, ValidateEventUpdate,
legacyValidateEvent).
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, invalid, required
from kschedd.api.selecting.names import qualified_name
from kschedd.registry.go_structs import go_struct

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
_CORE: Final = {  # field in the core group -> field in events.k8s.io
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    **{called: field for field, called in _UNSET.items()},
}
_IMMUTABLE: Final = (
    "involvedObject reason message source firstTimestamp lastTimestamp count reason type eventTime action related "
    "reportingComponent reportingInstance"
).split()
_STRUCTS: Final = {"involvedObject": "ObjectReference", "related": "ObjectReference", "source": "EventSource"}
_EMPTY: Final = {"count": 0, "firstTimestamp": None, "lastTimestamp": None, "eventTime": None, "related": None}


def validate_event(event: Raw, faults: Faults) -> None:
    """Append the errors of a new Event, by the rules of the API group of the request."""
    validate_updated_event(event, faults)
    if event.get("apiVersion") != "v1":
        _validate_strictly(event, faults)


def validate_updated_event(event: Raw, faults: Faults) -> None:
    """Append the errors of a new or changed Event by the rules of both groups."""
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


def validate_event_changes(old: Raw, new: Raw, faults: Faults) -> None:
    """Append errors for immutable fields of an Event in events.k8s.io; `old` may be in either group."""
    if new.get("apiVersion") == "v1":
        return
    if old.get("series") != new.get("series"):
        _validate_series(new, faults)
    for field in _IMMUTABLE:
        before, after = (_internal(event, field) for event in (old, new))
        if before != after:
            called = "reportingController" if field == "reportingComponent" else field
            faults.append(invalid(called, after, "field is immutable"))


def _internal(event: Raw, field: str) -> Any:
    """Return a field's value, by its name in the core group, in upstream's internal form."""
    value = event.get(field if event.get("apiVersion") == "v1" else _CORE.get(field, field))
    if field in _STRUCTS and (value is not None or field not in _EMPTY):
        return go_struct(_STRUCTS[field], value)
    return value or _EMPTY.get(field, "")


def _validate_report(event: Raw, core: bool, faults: Faults) -> None:
    controller = event.get("reportingComponent" if core else "reportingController") or ""
    if not controller:
        faults.append(required("reportingController"))
    faults += [invalid("reportingController", controller, why) for why in qualified_name(controller)]
    for field in ("reportingInstance", "action", "reason"):
        value = event.get(field) or ""
        if not value:
            faults.append(required(field))
        if len(value.encode()) > _LONGEST:
            faults.append(invalid(field, "", f"can have at most {_LONGEST} characters"))
    if len((event.get("message" if core else "note") or "").encode()) > _LONGEST_NOTE:
        faults.append(invalid("message", "", f"can have at most {_LONGEST_NOTE} characters"))


def _validate_series(event: Raw, faults: Faults) -> None:
    if (series := event.get("series")) is not None:
        if (series.get("count") or 0) < 2:
            faults.append(invalid("series.count", "", "should be at least 2"))
        if not series.get("lastObservedTime"):
            faults.append(required("series.lastObservedTime"))


def _validate_strictly(event: Raw, faults: Faults) -> None:
    _validate_series(event, faults)
    if not event.get("eventTime"):
        faults.append(required("eventTime"))
    kind = event.get("type") or ""
    if kind not in ("Normal", "Warning"):
        faults.append(invalid("type", "", f"has invalid value: {kind}"))
    for field, called in _UNSET.items():
        value = event.get(field)
        if any(value.values()) if isinstance(value, Mapping) else value:
            faults.append(invalid(called, "", "needs to be unset"))
