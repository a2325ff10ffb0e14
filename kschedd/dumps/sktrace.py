"""SimKube's trace files: MessagePack of what was applied and deleted in a cluster, event by event.

A trace is taken for what is there at its end. Its times are not played.
Source: acrlabs/simkube, docs on the trace format (version 2).
"""

from typing import Any

import attrs
import msgpack

from kschedd.errors import KscheddError


@attrs.define(eq=False)
class NotATrace(KscheddError):
    why: str

    def __str__(self) -> str:
        return f"not a SimKube trace: {self.why}"


def objects(data: bytes) -> list[dict[str, Any]]:
    """The objects that are there at the trace's end. Raises NotATrace."""
    try:
        trace = msgpack.unpackb(data, strict_map_key=False)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise NotATrace(f"not MessagePack: {error}") from error
    events = trace.get("events") if isinstance(trace, dict) else None
    if not isinstance(events, list):
        raise NotATrace("it has no list of events")
    there: dict[tuple[str, str, str], dict[str, Any]] = {}
    for event in events:
        if not isinstance(event, dict):
            raise NotATrace("an event is a map with ts, applied_objs and deleted_objs")
        for raw in event.get("applied_objs") or ():
            there[_key(raw)] = raw
        for raw in event.get("deleted_objs") or ():
            there.pop(_key(raw), None)
    return list(there.values())


def _key(raw: Any) -> tuple[str, str, str]:
    meta = raw.get("metadata") if isinstance(raw, dict) else None
    if not isinstance(meta, dict):
        raise NotATrace("an object is a map with metadata")
    return str(raw.get("kind")), str(meta.get("namespace") or ""), str(meta.get("name"))
