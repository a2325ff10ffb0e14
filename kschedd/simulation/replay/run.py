"""A recording that is replayed up to a stop point, with a log of its decisions."""

from collections.abc import Callable

import attrs

from kschedd.api.text.durations import DurationError, parse_span
from kschedd.api.text.numbers import whole_number
from kschedd.api.text.similar import did_you_mean
from kschedd.api.text.times import seconds, stamp
from kschedd.errors import KscheddError
from kschedd.scheduling.records import AttemptRecord, Happened
from kschedd.simulation.engine import LoggedAttempt
from kschedd.simulation.replay.player import Player


@attrs.define(eq=False)
class StopError(KscheddError):
    """The error for a stop point that is invalid or that the recording does not reach."""

    why: str


@attrs.frozen
class StopAt:
    """The point at which a replay stops.

    The replay stops before the first note later than `time_s`, after `decisions` attempts, or before an attempt of a
    pod or the cycle of its PodGroup. (`attempt` is the number of the attempt; 0 means the first recorded attempt.) If
    no field is set, the replay runs to its end.
    """

    time_s: float | None = None
    attempts: int | None = None
    pod: str = ""
    attempt: int = 0

    @classmethod
    def parse(cls, until: str | None, to: str | None, start_s: float) -> "StopAt":
        """`until` is a number of attempts, the duration since the start of the run, or a time. Raises StopError."""
        if until is not None and to is not None:
            raise StopError("--until and --to: give one of them")
        if to is not None:
            pod, _, number = to.partition("#")
            if number and whole_number(number) is None:
                raise StopError(f"--to {to!r}: POD or POD#ATTEMPT is expected, such as web/app-1#2")
            return cls(pod=pod if "/" in pod else f"default/{pod}", attempt=int(number or 0))
        if until is None:
            return cls()
        if (attempts := whole_number(until)) is not None:
            return cls(attempts=attempts)
        try:
            return cls(time_s=start_s + parse_span(until))
        except DurationError:
            pass
        try:
            return cls(time_s=seconds(until))
        except ValueError:
            raise StopError(
                f"--until {until[:60]!r}: a number of attempts is expected, a duration since the start such as 1m30s, "
                "or a time such as 2025-01-01T00:00:00Z"
            ) from None


class Replay:
    """A player, with the log of the replayed decisions.

    `on_decision` is called with each attempt, in order.
    """

    def __init__(self, player: Player, on_decision: Callable[[LoggedAttempt], None] = lambda attempt: None) -> None:
        self.player = player
        self.placed = self.failed = 0
        self._on_decision = on_decision
        self._start_s = player.recording.header.start_s
        self._tried: dict[str, int] = {}  # by pod: number of attempts that have begun
        player.on_happened(self._happened)

    def _happened(self, record: Happened) -> None:
        if isinstance(record, AttemptRecord) and not record.of_binding:
            self.placed += bool(record.node)
            self.failed += not record.node
            self._on_decision(LoggedAttempt.of(record, self._start_s))

    def run(self, stop: StopAt) -> None:
        """Run the replay up to its stop point.

        Raises ReplayDiverged, and StopError if the recording ends before the stop point.
        """
        while not self._there(stop):
            if not self.player.step():
                self._missed(stop)
                return

    def _there(self, stop: StopAt) -> bool:
        player = self.player
        if stop.attempts is not None:
            return self.placed + self.failed >= stop.attempts
        if stop.time_s is not None:
            at = player.next_s()
            return at is not None and at > stop.time_s
        next_pods = player.next_pods
        self._tried.update((entry.key, entry.attempts) for entry in next_pods)
        return any(entry.key == stop.pod and stop.attempt in (0, entry.attempts) for entry in next_pods)

    def _missed(self, stop: StopAt) -> None:
        player = self.player
        ends = f"the recording ends at {stamp(player.now_s)}, {player.now_s - self._start_s:.3f} s after its start"
        if stop.attempts is not None:
            raise StopError(f"--until {stop.attempts}: {ends}, with {self.placed + self.failed} attempts")
        if stop.time_s is not None:
            raise StopError(f"--until {stamp(stop.time_s)}: {ends}")
        if not stop.pod:
            return
        tried = self._tried.get(stop.pod)
        if tried is not None:
            raise StopError(f"--to {stop.pod}#{stop.attempt}: the last attempt of that pod in the recording is {tried}")
        hint = did_you_mean(stop.pod, self._tried)
        raise StopError(f"--to {stop.pod}: the recording has no attempt of such a pod{hint}")
