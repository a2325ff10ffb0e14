"""SimKube's trace files: MessagePack of the objects that were applied and deleted in a cluster, event by event.

As a dump, a trace contains the objects that exist at its end; a simulation replays the events of the trace. Maps in the
unused parts of a trace may have keys that are not strings, for example in the list of the lifecycles of pods. SimKube
removes the service account from pods, but not the volume with its token: such pods get the default service account.

Source: acrlabs/simkube, docs on the trace format (version 2).
"""

import json
from collections.abc import Iterable
from typing import Any

import attrs
import msgpack

from kschedd.errors import KscheddError


@attrs.define(eq=False)
class UnusableTrace(KscheddError):
    """An error for a file that is not a SimKube trace, or for a trace without objects."""

    why: str

    def __str__(self) -> str:
        return f"SimKube trace: {self.why}"


@attrs.frozen(kw_only=True)
class TraceChange:
    """An event of a trace. `time_s`: seconds since the first event."""

    time_s: float
    applied: list[dict[str, Any]]
    deleted: list[dict[str, Any]]


def changes(data: bytes) -> list[TraceChange]:
    """Return the events of a trace, in order of time. Raises UnusableTrace."""
    try:
        trace = msgpack.unpackb(data, strict_map_key=False, object_pairs_hook=_map)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise UnusableTrace(f"not MessagePack: {error}") from error
    events = trace.get("events") if isinstance(trace, dict) else None
    if not isinstance(events, list):
        raise UnusableTrace("it has no list of events")
    found = []
    for number, event in enumerate(events):
        if not isinstance(event, dict):
            raise UnusableTrace(f"events[{number}]: not a map with ts, applied_objs and deleted_objs")
        time_s = event.get("ts", 0)
        if not isinstance(time_s, int | float) or not 0 <= time_s < 1e15:
            raise UnusableTrace(f"events[{number}].ts: not a time in seconds")
        applied, deleted = _objects(event, "applied_objs", number), _objects(event, "deleted_objs", number)
        for raw in (*applied, *deleted):
            _check(raw, number)
        applied = [_with_service_account(raw) for raw in applied]
        found.append(TraceChange(time_s=float(time_s), applied=applied, deleted=deleted))
    found.sort(key=lambda change: change.time_s)
    return [attrs.evolve(change, time_s=change.time_s - found[0].time_s) for change in found]


def objects(data: bytes) -> list[dict[str, Any]]:
    """Return the objects that exist at the end of the trace.

    Raises UnusableTrace, also if no object exists at the end.
    """
    there: dict[tuple[str, str, str, str], dict[str, Any]] = {}
    events = changes(data)
    for change in events:
        there |= {_key(raw): raw for raw in change.applied}
        for raw in change.deleted:
            there.pop(_key(raw), None)
    if not there and any(change.applied for change in events):
        raise UnusableTrace("no object is left at its end: each applied object is deleted in a later event")
    return list(there.values())


def _with_service_account(raw: dict[str, Any]) -> dict[str, Any]:
    spec = raw.get("spec")
    if raw.get("kind") != "Pod" or not isinstance(spec, dict) or spec.get("serviceAccountName"):
        return raw
    return {**raw, "spec": {**spec, "serviceAccountName": "default"}}


def _map(pairs: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    return {key if isinstance(key, str) else str(key): value for key, value in pairs}


def _objects(event: dict[str, Any], field: str, number: int) -> list[Any]:
    found = event.get(field)
    if not isinstance(found, list | None):
        raise UnusableTrace(f"events[{number}].{field}: not a list of objects")
    return found or []


def _check(raw: Any, number: int) -> None:
    """Raise UnusableTrace for a value that is not an object."""
    meta = raw.get("metadata") if isinstance(raw, dict) else None
    if not isinstance(meta, dict):
        raise UnusableTrace(f"events[{number}]: an object is a map with metadata")
    try:
        json.dumps(raw, allow_nan=False)
    except (TypeError, ValueError) as error:  # binary data, timestamps, and numbers such as infinity
        raise UnusableTrace(f"events[{number}]: an object with a value that JSON does not have: {error}") from error


def _key(raw: dict[str, Any]) -> tuple[str, str, str, str]:
    meta = raw["metadata"]
    group = str(raw.get("apiVersion")).rpartition("/")[0]
    return group, str(raw.get("kind")), str(meta.get("namespace") or ""), str(meta.get("name"))
