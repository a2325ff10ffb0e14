"""Actions and observations of clients: the checker's only input, without the daemon's own state.

Everything has a place in one order, `at`: of two things of which one ended before the other began, the first has the
smaller number. An era is a time of which every change was seen; how the next one begins is said below.
"""

from typing import Any, Final

import attrs

Key = tuple[str, str, str]  # kind, namespace, name


@attrs.frozen
class Seen:
    """One state of an object. `version` is its resourceVersion; `value` what its last write gave it."""

    key: Key
    version: int
    value: str = ""
    node: str = ""  # of a pod: where it is bound


@attrs.frozen
class Change:
    """One event of a watch."""

    type: str
    seen: Seen


@attrs.define(eq=False)
class Operation:
    """A call of a client. Without `ended` nobody knows what came of it."""

    client: str
    what: str  # create, replace, apply, patch, delete, get, list
    era: int
    began: int
    key: Key | None = None
    value: str = ""  # written
    expected: int | None = None  # the version that a replace is based on
    ended: int | None = None
    refused: str = ""  # the code of the error
    seen: list[Seen] = attrs.field(factory=list)  # answered
    version: int | None = None  # of a list

    def __str__(self) -> str:
        what = f"{self.began}-{self.ended} {self.client} {self.what} {self.key} {self.value} on {self.expected}"
        seen = [(each.key[2], each.version, each.value) for each in self.seen]
        return f"{what}: {self.refused or seen} {self.version}"


@attrs.define(eq=False)
class Stream:
    """A watch: of one kind, or all (""), after `since`; what came, until it ended by whatever cause."""

    client: str
    kind: str
    era: int
    since: int
    changes: list[Change] = attrs.field(factory=list)
    at: list[int] = attrs.field(factory=list)  # when each came


FIRST: Final = "first"
RESUMED: Final = "resumed"  # the events in between are no longer kept: some versions nobody has seen
REWOUND: Final = (
    "rewound"  # the disk has lied, or the log's end was damaged: it goes on from a state that it had before
)
SALVAGED: Final = "salvaged"  # words have told what was lost


@attrs.define(eq=False)
class Era:
    """Period of the history that begins with the state `start` at version `base`.

    For a salvaged era, `lost` holds the reported losses. `end_is_told` is true if the report must cover every
    acknowledged write, because no power loss has set back the record of them.
    """

    kind: str = FIRST
    base: int = 0
    start: dict[Key, Seen] = attrs.field(factory=dict)
    lost: tuple[str, ...] = ()
    end_is_told: bool = False


@attrs.define(eq=False)
class History:
    operations: list[Operation] = attrs.field(factory=list)
    streams: list[Stream] = attrs.field(factory=list)
    eras: list[Era] = attrs.field(factory=lambda: [Era()])
    starts: list[int] = attrs.field(factory=list)  # when a daemon began to serve
    faults: list[str] = attrs.field(factory=list)  # what no answer may be, in words
    notes: list[str] = attrs.field(factory=list)  # what was done to the daemon, for the reader
    lost: list[str] = attrs.field(factory=list)  # what the daemon's log has told since the era began
    broken_off: bool = False  # nobody could see the last changes: nothing is left of the journal
    _at: int = 0

    @property
    def era(self) -> int:
        return len(self.eras) - 1

    def now(self) -> int:
        self._at += 1
        return self._at

    def begin(self, client: str, what: str, **about: Any) -> Operation:
        operation = Operation(client, what, self.era, self.now(), **about)
        self.operations.append(operation)
        return operation

    def note(self, what: str) -> None:
        self.notes.append(f"{self.now()} {what}")

    def text(self) -> str:
        lines = [*self.notes, *map(str, self.operations)]
        for stream in self.streams:
            lines.append(f"{stream.client} watches {stream.kind or 'all'} after {stream.since}")
            lines += [
                f"  {at} {change.type} {change.seen}" for at, change in zip(stream.at, stream.changes, strict=True)
            ]
        return "\n".join(lines)
