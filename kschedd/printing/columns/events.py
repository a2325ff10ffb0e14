"""Cells of the table of Events, both of the core group and of events.k8s.io.

Source: Kubernetes v1.34, pkg/printers/internalversion/printers.go.
"""

from kschedd.printing.columns.ages import age
from kschedd.printing.columns.by_kind import Cells, Raw, RowContext, meta


def event_moment(event: Raw) -> str:
    """Return the time at which the event was last observed, as text that can be sorted."""
    times = ((event.get("series") or {}).get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return str(next((time for time in times if time), meta(event).get("creationTimestamp") or ""))


def _event_object(event: Raw, around: RowContext) -> str:
    about = event.get("involvedObject") or event.get("regarding") or {}
    kind, name = str(about.get("kind", "")).lower(), about.get("name")
    return f"{kind}/{name}" if name else kind


def _event_subobject(event: Raw, around: RowContext) -> str:
    about = event.get("involvedObject") or event.get("regarding") or {}
    return str(about.get("fieldPath") or "")


def _event_source(event: Raw, around: RowContext) -> str:
    source = event.get("source") or event.get("deprecatedSource") or {}
    component = source.get("component") or event.get("reportingComponent") or event.get("reportingController")
    host = source.get("host") or event.get("reportingInstance")
    return ", ".join(str(part) for part in (component, host) if part)


def _event_first(event: Raw, around: RowContext) -> str:
    times = (event.get("firstTimestamp"), event.get("deprecatedFirstTimestamp"), event.get("eventTime"))
    return age(next((time for time in times if time), None), around.now)


def _event_last(event: Raw, around: RowContext) -> str:
    series = event.get("series") or {}
    times = (
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("deprecatedLastTimestamp"),
        event.get("eventTime"),
    )
    found = next((time for time in times if time), None)
    return age(found, around.now) if found else _event_first(event, around)


def _event_count(event: Raw, around: RowContext) -> int:
    count = (event.get("series") or {}).get("count") or event.get("count") or event.get("deprecatedCount")
    return int(count or 1)


def _event_message(event: Raw, around: RowContext) -> str:
    return str(event.get("message") or event.get("note") or "").strip()


EVENTS: Cells = {
    "Last Seen": _event_last,
    "Type": lambda raw, around: str(raw.get("type", "")),
    "Reason": lambda raw, around: str(raw.get("reason", "")),
    "Object": _event_object,
    "Subobject": _event_subobject,
    "Source": _event_source,
    "Message": _event_message,
    "First Seen": _event_first,
    "Count": _event_count,
}
