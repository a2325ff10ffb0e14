"""Checker of a history against rules that are independent of the daemon's implementation.

- a version identifies one change for every observer; versions follow each other without a gap;
- a watch delivers every change of its kinds, once, in order;
- acknowledged and observed writes are part of the order of all changes, and exist at the end;
- a rejected write never happened; a write happened once, and not before it was requested;
- a read or list returns a state that existed at some moment between request and response (linearizable): it includes
  everything that any client had observed before the request;
- a list is the complete state at its version; a replace on a version replaced exactly that version;
- after a salvage the state is the one before the first write that is reported lost, without the objects that the
  report names; the report lists each acknowledged write up to the last one, or states that it is unknown.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import partial

import attrs

from tests.faults.history import RESUMED, REWOUND, SALVAGED, Change, Era, History, Key, Operation, Seen, Stream

DELETED = "DELETED"
# Codes of refusals that say nothing of whether the write happened.
UNKNOWN = frozenset({"connection_lost", "shutting_down", "too_slow"})

# What a salvage tells.
_LOST = re.compile(r"lost: the writes from version (\d+) to version (\d+)")
_LAST = re.compile(r"writes after version (\d+) may be lost as well")
_NAMED = re.compile(r'lost from the snapshot: (\w+) "(?:([^"]*)/)?([^"]*)"')
_DEFAULTS = ("Namespace", "PriorityClass")
_VAGUE = re.compile(
    "number of objects|whose name cannot|more damaged|missing objects|read completely|number is unknown"
)


def violations(history: History) -> list[str]:
    """Return a description of each violated rule; empty if all rules hold."""
    found = [*history.faults]
    before: _Order | None = None
    earlier: list[Operation] = []
    for number, era in enumerate(history.eras):
        streams = [each for each in history.streams if each.era == number]
        cut = number < history.era or history.broken_off
        order = _Order(era, streams, _seen_to(era, streams) if cut else (math.inf, math.inf))
        operations = [each for each in history.operations if each.era == number]
        found += order.faults
        found += order.gaps()
        for stream in order.streams:
            found += order.stream(stream)
        known = _Known(order.streams, operations)
        written = {each.value: each for each in history.operations if each.value}
        found += order.writes(written, partial(_came_back, history))
        for operation in operations:
            found += order.operation(operation, known.before(operation.began))
            if operation.refused == "internal":
                found.append(f"a fault of the daemon's own: {operation}")
        if before is not None:
            found += before.followed_by(era, earlier)
        before, earlier = order, operations
    return found


def _seen_to(era: Era, streams: list[Stream]) -> tuple[float, float]:
    """Up to which version those who watch everything have seen all, and when."""
    seen = [
        (change.seen.version, at)
        for stream in streams
        if not stream.kind
        for at, change in zip(stream.at, stream.changes, strict=True)
    ]
    return max(seen, default=(era.base, 0))


def _came_back(history: History, refused: Operation) -> bool:
    """Return whether a write that the journal failed to persist may exist all the same.

    This happens if the daemon restarted before the disk recovered: the partly written data could not be rolled back.
    """
    assert refused.ended is not None
    started = next((at for at in history.starts if at > refused.ended), None)
    if refused.refused != "journal" or started is None:
        return False
    kept = (each for each in history.operations if each.value and not each.refused and each.ended is not None)
    return not any(refused.ended < each.began and (each.ended or 0) < started for each in kept)


def _difference(expected: "dict[Key, Seen]", there: "dict[Key, Seen]") -> str:
    wrong = [
        f"{key} is {there.get(key)}, not {expected.get(key)}"
        for key in sorted(expected.keys() | there.keys())
        if expected.get(key) != there.get(key)
    ]
    return "; ".join(wrong[:3])


@attrs.define(eq=False)
class _Known:
    """The latest version that anybody had seen, by when."""

    _at: list[int] = attrs.field(init=False)
    _versions: list[int] = attrs.field(init=False)

    def __init__(self, streams: list[Stream], operations: list[Operation]) -> None:
        seen = [
            (at, change.seen.version)
            for stream in streams
            for at, change in zip(stream.at, stream.changes, strict=True)
        ]
        for each in operations:
            if each.ended is not None:
                versions = [one.version for one in each.seen] + ([] if each.version is None else [each.version])
                seen += [(each.ended, version) for version in versions]
        seen.sort()
        self._at, self._versions, highest = [], [], 0
        for at, version in seen:
            highest = max(highest, version)
            self._at.append(at)
            self._versions.append(highest)

    def before(self, at: int) -> int:
        place = bisect_right(self._at, at)
        return self._versions[place - 1] if place else 0


@attrs.define(eq=False)
class _Order:
    """All changes of an era, as all watches together have seen them."""

    era: Era
    streams: list[Stream]
    # The version up to which somebody has seen everything, and when that was: after that changes may be missing here,
    # if another era follows.
    seen_to: tuple[float, float]
    changes: dict[int, Change] = attrs.field(factory=dict)
    faults: list[str] = attrs.field(factory=list)
    _of_key: dict[Key, list[int]] = attrs.field(factory=dict)
    _versions: list[int] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        for stream in self.streams:
            for change in stream.changes:
                known = self.changes.setdefault(change.seen.version, change)
                if known != change:
                    self.faults.append(f"{change.seen.version} is {change} to {stream.client} and {known} to another")
        self._versions = sorted(self.changes)
        for version in self._versions:
            self._of_key.setdefault(self.changes[version].seen.key, []).append(version)

    def gaps(self) -> Iterator[str]:
        """Somebody watches everything from the first version to the last."""
        for last, version in zip([self.era.base, *self._versions], self._versions, strict=False):
            if version != last + 1 and version <= self.seen_to[0]:
                yield f"there is nothing between version {last} and version {version}"

    def at(self, key: Key, version: int) -> Seen | None:
        """Return the object at a version, or None if it did not exist."""
        versions = self._of_key.get(key, [])
        place = bisect_right(versions, version)
        if not place:
            return self.era.start.get(key)
        change = self.changes[versions[place - 1]]
        return None if change.type == DELETED else change.seen

    def next_change(self, key: Key, version: int) -> int | None:
        versions = self._of_key.get(key, [])
        place = bisect_right(versions, version)
        return versions[place] if place < len(versions) else None

    def state(self, version: int, kind: str = "") -> "dict[Key, Seen]":
        keys = {key for key in self._of_key.keys() | self.era.start.keys() if kind in ("", key[0])}
        return {key: seen for key in keys if (seen := self.at(key, version)) is not None}

    def stream(self, stream: Stream) -> Iterator[str]:
        got = [change.seen.version for change in stream.changes if change.seen.version <= self.seen_to[0]]
        if not got:
            return
        if got[0] <= stream.since:
            yield f"{stream.client} watches after {stream.since} and gets {got[0]}"
        wanted = [
            version
            for version in self._versions
            if stream.since < version <= got[-1] and stream.kind in ("", self.changes[version].seen.key[0])
        ]
        if got != wanted:
            odd = sorted(set(got) ^ set(wanted))
            yield f"{stream.client} watches {stream.kind or 'all'} after {stream.since}: {odd or 'the order'} is wrong"

    def writes(self, written: "dict[str, Operation]", came_back: "Callable[[Operation], bool]") -> Iterator[str]:
        happened: dict[str, int] = {}
        for version in self._versions:
            change = self.changes[version]
            value, was = change.seen.value, self.at(change.seen.key, version - 1)
            if was is not None and was.node and was.node != change.seen.node:
                yield f"version {version} moves {was} to {change.seen.node or 'no node'}"
            if change.type == DELETED or not value:
                continue
            if was is not None and was.value == value:
                continue  # another field has changed
            if value in happened:
                yield f"{value} was written at version {happened[value]} and again at {version}"
            happened[value] = version
            requests = written.get(value)
            if requests is None or change.seen.key != requests.key:
                yield f"version {version} has {value} in {change.seen.key}, which nobody wrote there"
            elif requests.refused and requests.refused not in UNKNOWN and not came_back(requests):
                yield f"version {version} has {value}, whose write was refused: {requests}"

    def operation(self, operation: Operation, known: int) -> Iterator[str]:
        if _unknown(operation):
            return
        if operation.what == "list":
            version = operation.version or 0
            if version < known:
                yield f"stale, version {known} was known: {operation}"
            if version > self.seen_to[0]:
                return
            assert operation.key is not None
            wrong = _difference(self.state(version, operation.key[0]), {each.key: each for each in operation.seen})
            if wrong:
                yield f"{wrong}: {operation}"
            return
        for seen in operation.seen:
            if seen.version > self.seen_to[0]:
                continue
            if self.at(seen.key, seen.version) != seen:
                yield f"{self.at(seen.key, seen.version)} is in the order of changes: {operation}"
            elif operation.what == "get":
                later = self.next_change(seen.key, seen.version)
                if later is not None and later <= known:
                    yield f"stale, version {later} was known: {operation}"
            else:
                yield from self._written(operation, seen, known)
        key = operation.key
        if operation.ended > self.seen_to[1]:
            return
        if key is not None and operation.refused in ("not_found", "already_exists"):
            moments = [known, *(version for version in self._of_key.get(key, []) if version > known)]
            there = [self.at(key, version) is not None for version in moments]
            if all(there) if operation.refused == "not_found" else not any(there):
                yield f"it was never so: {operation}"
        if key is not None and operation.refused == "conflict" and operation.expected is not None:
            now = self.at(key, known)
            same = now is not None and now.version == operation.expected
            if same and self.next_change(key, known) is None:
                yield f"there was no other version: {operation}"

    def _written(self, operation: Operation, seen: Seen, known: int) -> Iterator[str]:
        change = self.changes.get(seen.version)
        if change is None or seen.value != operation.value:
            yield f"answered, and not among the changes: {operation}"
            return
        if seen.version <= known:
            yield f"version {known} was known before: {operation}"
        before = self.at(seen.key, seen.version - 1)
        if operation.what == "create" and before is not None:
            yield f"there was one already, {before}: {operation}"
        if operation.what == "replace" and (before is None or before.version != operation.expected):
            yield f"it replaced {before}: {operation}"

    def followed_by(self, era: Era, operations: list[Operation]) -> Iterator[str]:
        """Yield the violations in the start of the next era."""
        last = int(self.seen_to[0])
        if era.kind == REWOUND and era.base <= last and (wrong := _difference(self.state(era.base), era.start)):
            yield f"after the loss of power there is no state of before, at version {era.base}: {wrong}"
        if era.kind == SALVAGED:
            yield from self._salvaged(era, last, operations)
        if era.kind != RESUMED:
            return
        seen = [*self.state(last).values(), *(one for each in operations for one in each.seen)]
        for each in seen:
            now = era.start.get(each.key)
            if era.base < each.version:
                yield f"{each} is lost: it begins at version {era.base}"
            elif now != each and era.base == last:
                yield f"{each} is {now} at the same version {last}"
            elif now is not None and now.version < each.version:
                yield f"{each} went back to {now}"

    def _salvaged(self, era: Era, known: int, operations: list[Operation]) -> Iterator[str]:
        """Yield the violations in a salvage's report of the state that it lost."""
        words = "; ".join(era.lost)
        if not words:
            yield "it goes on from a damaged journal, and no words tell"
        if _VAGUE.search(words):
            return
        # A salvage that was killed has told what it had found, too, and the next one may find less.
        lost = [(int(first), int(end)) for first, end in _LOST.findall(words)]
        ends = [int(end) for end in _LAST.findall(words)]
        if lost and not ends and known > (reported := max(end for _, end in lost)) and era.end_is_told:
            yield f"version {known} was known, and words tell of losses up to version {reported} only: {words}"
        # Without a word of its end it goes on to the last write, of which perhaps nobody had heard.
        whole = min(first for first, _ in lost) - 1 if lost else min(ends, default=math.inf)
        if whole < self.era.base:
            return
        named = {(kind, namespace, name) for kind, namespace, name in _NAMED.findall(words)}
        deleted = {each.key for each in operations if each.what == "delete" and _unknown(each)} if whole > known else ()
        versions = [int(min(whole, known))]
        if not era.end_is_told and whole > known:  # the power took its end, and what knew of that
            versions += range(versions[0] - 1, self.era.base - 1, -1)

        def wrong(version: int) -> str:
            expected, there = self.state(version), dict(era.start)
            for key, seen in era.start.items():
                # After what was known: a write that nobody has heard of, or what every cluster has, made anew.
                if seen.version > known and (whole > known or (key not in expected and key[0] in _DEFAULTS)):
                    expected.pop(key, None)
                    del there[key]
            for key in {*deleted} - there.keys():
                expected.pop(key, None)
            for key in named:  # a later write of it may be there
                expected.pop(key, None)
                there.pop(key, None)
            return _difference(expected, there)

        if all(map(wrong, versions)):
            yield f"version {versions[0]} is whole by what words tell, and {wrong(versions[0])}: {words}"


def _unknown(operation: Operation) -> bool:
    """Return whether the outcome of the operation is unknown to its client."""
    return operation.ended is None or operation.refused in UNKNOWN
