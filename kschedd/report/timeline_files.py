"""Files of a timeline: Perfetto's own format, and the JSON format of Chrome's tracing, which Perfetto also reads.

Perfetto's format requires the package `perfetto` (the extra with that name), which includes protobuf. The files of both
formats are written during the run. Tracks are numbered from 1. An arrow is a number that both its first slice and its
last slice contain.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final, Protocol

from kschedd.errors import KscheddError

PERFETTO_SUFFIXES: Final = (".pftrace", ".perfetto-trace")
JSON_SUFFIXES: Final = (".json",)
Facts = Mapping[str, str | int]
NO_FACTS: Final[Facts] = {}


class TimelineFormatError(KscheddError):
    """The file name has an unknown format, or its format requires a missing package."""


class TimelineFile(Protocol):
    """Slices of one track are properly nested, and begin in chronological order."""

    def group(self, name: str) -> int: ...

    def track(self, group: int, name: str) -> int: ...

    def counter(self, group: int, name: str) -> int: ...

    def begin(
        self, track: int, at_ns: int, name: str, facts: Facts = NO_FACTS, *, starts: int = 0, ends: int = 0
    ) -> None: ...

    def end(self, track: int, at_ns: int) -> None: ...

    def count(self, counter: int, at_ns: int, value: float) -> None: ...

    def close(self) -> None: ...


def timeline_file(path: Path) -> TimelineFile:
    """Open a timeline for writing; the suffix of its name determines the format.

    Raises TimelineFormatError, OSError.
    """
    if path.suffix in JSON_SUFFIXES:
        return ChromeJson(path.open("w", encoding="utf-8", newline="\n"))
    if path.suffix not in PERFETTO_SUFFIXES:
        known = ", ".join((*PERFETTO_SUFFIXES, *JSON_SUFFIXES))
        raise TimelineFormatError(f"{path}: a trace's name ends in one of {known}")
    try:
        from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder
    except ImportError as missing:
        raise TimelineFormatError(
            f"{path}: Perfetto's own format takes the package perfetto (pip install 'kschedd[perfetto]'); a name that "
            "ends in .json needs none, and Perfetto shows it as well"
        ) from missing
    file = path.open("wb")
    return PerfettoProto(file, StreamingTraceProtoBuilder(file))


class ChromeJson:
    """The Trace Event Format: a group is a process and a track is a thread; times are in microseconds."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._groups = 0
        self._tracks: list[tuple[int, str]] = []  # (process, name)
        file.write('{"displayTimeUnit":"ns","traceEvents":[\n')
        self._first = True

    def group(self, name: str) -> int:
        self._groups += 1
        self._write({"ph": "M", "name": "process_name", "pid": self._groups, "args": {"name": name}})
        self._write(
            {"ph": "M", "name": "process_sort_index", "pid": self._groups, "args": {"sort_index": self._groups}}
        )
        return self._groups

    def track(self, group: int, name: str) -> int:
        number = self._new(group, name)
        self._write({"ph": "M", "name": "thread_name", "pid": group, "tid": number, "args": {"name": name}})
        return number

    def counter(self, group: int, name: str) -> int:
        return self._new(group, name)

    def begin(
        self, track: int, at_ns: int, name: str, facts: Facts = NO_FACTS, *, starts: int = 0, ends: int = 0
    ) -> None:
        self._event("B", track, at_ns, {"name": name, **({"args": dict(facts)} if facts else {})})
        if starts:
            self._event("s", track, at_ns, {"name": "wakes", "cat": "wakes", "id": starts})
        if ends:
            self._event("f", track, at_ns, {"name": "wakes", "cat": "wakes", "id": ends, "bp": "e"})

    def end(self, track: int, at_ns: int) -> None:
        self._event("E", track, at_ns, {})

    def count(self, counter: int, at_ns: int, value: float) -> None:
        group, name = self._tracks[counter - 1]
        self._write({"ph": "C", "name": name, "pid": group, "ts": at_ns / 1000, "args": {"value": value}})

    def close(self) -> None:
        self._file.write("\n]}\n")
        self._file.close()

    def _new(self, group: int, name: str) -> int:
        self._tracks.append((group, name))
        return len(self._tracks)

    def _event(self, phase: str, track: int, at_ns: int, more: dict[str, Any]) -> None:
        group, _ = self._tracks[track - 1]
        self._write({"ph": phase, "pid": group, "tid": track, "ts": at_ns / 1000, **more})

    def _write(self, event: dict[str, Any]) -> None:
        self._file.write(("" if self._first else ",\n") + json.dumps(event, separators=(",", ":")))
        self._first = False


class PerfettoProto:
    """Perfetto's protobuf packets; the uuid of a track is its number."""

    def __init__(self, file: IO[bytes], builder: Any) -> None:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages

        self._file = file
        self._builder = builder
        self._event = messages.TrackEvent
        self._numbers = 0
        self._begun = False

    def group(self, name: str) -> int:
        return self._described(0, name)

    def track(self, group: int, name: str) -> int:
        return self._described(group, name)

    def counter(self, group: int, name: str) -> int:
        return self._described(group, name, counter=True)

    def begin(
        self, track: int, at_ns: int, name: str, facts: Facts = NO_FACTS, *, starts: int = 0, ends: int = 0
    ) -> None:
        packet, event = self._packet(track, at_ns, self._event.TYPE_SLICE_BEGIN)
        event.name = name
        for key, value in facts.items():
            noted = event.debug_annotations.add()
            noted.name = key
            if isinstance(value, int):
                noted.int_value = value
            else:
                noted.string_value = value
        if starts:
            event.flow_ids.append(starts)
        if ends:
            event.terminating_flow_ids.append(ends)
        self._builder.write_packet(packet)

    def end(self, track: int, at_ns: int) -> None:
        packet, _ = self._packet(track, at_ns, self._event.TYPE_SLICE_END)
        self._builder.write_packet(packet)

    def count(self, counter: int, at_ns: int, value: float) -> None:
        packet, event = self._packet(counter, at_ns, self._event.TYPE_COUNTER)
        event.double_counter_value = value
        self._builder.write_packet(packet)

    def close(self) -> None:
        self._file.close()

    def _described(self, parent: int, name: str, *, counter: bool = False) -> int:
        self._numbers += 1
        packet = self._new()
        packet.track_descriptor.uuid = self._numbers
        packet.track_descriptor.name = name
        if parent:
            packet.track_descriptor.parent_uuid = parent
        if counter:
            packet.track_descriptor.counter.SetInParent()
        self._builder.write_packet(packet)
        return self._numbers

    def _packet(self, track: int, at_ns: int, kind: int) -> tuple[Any, Any]:
        packet = self._new()
        packet.timestamp = at_ns
        packet.track_event.type = kind
        packet.track_event.track_uuid = track
        return packet, packet.track_event

    def _new(self) -> Any:
        packet = self._builder.create_packet()
        packet.trusted_packet_sequence_id = 1
        if not self._begun:
            self._begun = True
            packet.sequence_flags = 1  # SEQ_INCREMENTAL_STATE_CLEARED
        return packet
