"""Conversion of an object between the versions of its kind.

An Event may belong to the core group or to events.k8s.io. An autoscaler has version v1 or v2. Objects are stored in
the version in which they were written, and converted for requests in another version.

Source: Kubernetes v1.34, pkg/apis/core/v1, pkg/apis/events/v1 and pkg/apis/autoscaling/v1 (conversion.go).
"""

from typing import Any, Final

import attrs

from kschedd.api.container_ids import with_container_ids
from kschedd.api.objects import Raw
from kschedd.api.schemas.field_labels import FieldLabelError
from kschedd.api.selecting.selector_text import FieldSelector
from kschedd.store.managing import with_resolved_entries

_TO_EVENTS: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
#: fields that are present even if they are empty
_EVENT_FIELDS: Final[tuple[tuple[str, Any], ...]] = (
    ("source", {}),
    ("firstTimestamp", None),
    ("lastTimestamp", None),
    ("eventTime", None),
    ("reportingComponent", ""),
    ("reportingInstance", ""),
)
_EVENTS_FIELDS: Final[tuple[tuple[str, Any], ...]] = (
    ("eventTime", None),
    ("deprecatedSource", {}),
    ("deprecatedFirstTimestamp", None),
    ("deprecatedLastTimestamp", None),
)
_TO_CORE: Final = {new: old for old, new in _TO_EVENTS.items()}


#: selectable field of an Event in events.k8s.io -> field in the core group
_SELECTED: Final[dict[str, str]] = {
    **{
        f"regarding.{field}": f"involvedObject.{field}"
        for field in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    },
    "reportingController": "reportingComponent",
    **{same: same for same in ("reason", "type", "metadata.name", "metadata.namespace")},
}


def stored_selector(selector: FieldSelector | None, api_version: str) -> FieldSelector | None:
    """Convert a field selector of this version to the fields of the stored version. Raises FieldLabelError."""
    if selector is None or not api_version.startswith("events.k8s.io/"):
        return selector
    for each in selector.requirements:
        if each.path not in _SELECTED:
            raise FieldLabelError("Event", each.path, tuple(_SELECTED))
    named = (attrs.evolve(each, path=_SELECTED[each.path]) for each in selector.requirements)
    return FieldSelector(tuple(named))


def converted(raw: Raw, api_version: str) -> Raw:
    """Return the object in this API version, including its managed fields and the IDs of simulated containers.

    If no conversion is needed, the result is the given object.
    """
    raw = with_container_ids(with_resolved_entries(raw))
    kind = raw.get("kind")
    if kind == "Event":
        return _event(raw, api_version)
    if kind == "HorizontalPodAutoscaler":
        return _without_zero(raw if raw.get("apiVersion") == api_version else _autoscaler(raw, api_version))
    if raw.get("apiVersion") == api_version:
        return raw
    return {**raw, "apiVersion": api_version}


def _event(raw: Raw, api_version: str) -> dict[str, Any]:
    changed = dict(raw)
    if raw.get("apiVersion") != api_version:
        names = _TO_EVENTS if api_version.startswith("events") else _TO_CORE
        changed = {names.get(name, name): value for name, value in raw.items()}
        changed["apiVersion"] = api_version
    if api_version != "v1":
        for name in ("reportingController", "reportingInstance"):
            if changed.get(name) == "":
                del changed[name]
    for name, empty in _EVENT_FIELDS if api_version == "v1" else _EVENTS_FIELDS:
        if changed.get(name) is None:
            changed[name] = empty
    return changed


def _without_zero(raw: Raw) -> Raw:
    """Return a v2 autoscaler without a zero `currentReplicas`, which only v1 contains."""
    status = raw.get("status") or {}
    if raw["apiVersion"] == "autoscaling/v1" or status.get("currentReplicas", 1) != 0:
        return raw
    return {**raw, "status": {name: value for name, value in status.items() if name != "currentReplicas"}}


def _autoscaler(raw: Raw, api_version: str) -> dict[str, Any]:
    changed = {**raw, "apiVersion": api_version}
    spec = dict(raw.get("spec") or {})
    if api_version == "autoscaling/v1":
        metrics = spec.pop("metrics", None) or ()
        spec.pop("behavior", None)
        for metric in metrics:
            target = (metric.get("resource") or {}).get("target") or {}
            if metric.get("type") == "Resource" and metric["resource"].get("name") == "cpu":
                spec["targetCPUUtilizationPercentage"] = target.get("averageUtilization")
        status = dict(raw.get("status") or {})
        status.pop("conditions", None)
        for metric in status.pop("currentMetrics", None) or ():
            found = metric.get("resource") or {}
            if found.get("name") == "cpu" and "averageUtilization" in (found.get("current") or {}):
                status["currentCPUUtilizationPercentage"] = found["current"]["averageUtilization"]
        status.setdefault("currentReplicas", 0)
        status.setdefault("desiredReplicas", 0)
        changed["status"] = status
    else:
        percent = spec.pop("targetCPUUtilizationPercentage", None)
        if percent is not None:
            target = {"type": "Utilization", "averageUtilization": percent}
            spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
        status = dict(raw.get("status") or {})
        status.pop("currentCPUUtilizationPercentage", None)
        status.setdefault("currentMetrics", None)
        status.setdefault("desiredReplicas", 0)
        changed["status"] = status
    changed["spec"] = spec
    return changed
