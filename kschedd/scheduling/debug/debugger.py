"""Debugger: decides whether scheduling continues, where it stops, and which client controls it.

    running ──pause──▶ stopped between two attempts ──step N──▶ runs N attempts, then stops
       ▲  │                │        ▲                ──next──▶ stops at the next plugin, or extension point
       │  ╰─breakpoint──▶ stopped within an attempt ──until──▶ runs up to a time, a condition, a number of pods
       ╰──────resume───────╯

The driver calls `lets_begin` before each attempt. An attempt that may have to stop uses a `Stepper`, which calls
`arrives` at each stop point. If `arrives` returns True, the stepper yields the point to its caller, which continues
when `stop` is None again. Only attempts stop: events, bindings and requests are processed as usual.

The cycle of a PodGroup can stop before it begins (`enters_group`): by `next`, or by a breakpoint that matches one of
its pods. Within the cycle, `next` runs to the attempt of the next pod (`before_member`), and stops after the cycle. A
member's attempt cannot stop before its end, because other members are then assumed on trial, and clients must not see
assumptions on trial.

One client controls the debugger at a time; other clients may only read. When the client's connection ends, scheduling
continues and the client's breakpoints are disabled, unless the client set `keep`.

The class reads no clock: its owner (the driver) passes the time. If `engaged` is False, the debugger never stops an
attempt. `changes` counts the changes that are reported to watchers. Errors: DebuggerHeld, NotStopped; adding a
breakpoint also raises BreakpointRefused, CelCompileError, SelectorError.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import attrs

from kschedd.api.pods import Pod
from kschedd.api.selecting.selector_text import parse_selector_text
from kschedd.cel.errors import LONGEST_EXPRESSION, CelCompileError, CelFailure
from kschedd.errors import KscheddError
from kschedd.scheduling.debug.breakpoints import VARIABLES, Breakpoint, BreakpointSpec, StopPoint

if TYPE_CHECKING:
    from kschedd.cel.program import CelCondition

#: the variables of a run condition, with their CEL types
STATE_VARIABLES: Final[Mapping[str, str]] = {
    "attempts": "int",
    "scheduled": "int",
    "failed": "int",
    "pending": "int",
    "waiting": "int",
    "binding": "int",
    "nodes": "int",
    "pods": "int",
    "time": "double",
}

MOST_BREAKPOINTS: Final = 100  # largest number of breakpoints; every attempt checks all of them
MOST_CONDITION_COST: Final = 10_000  # CEL cost; evaluation takes about 1 ms
LONGEST_PATTERN: Final = 2 * 253 + 1  # largest number of characters of a pod's namespace/name


@attrs.define(eq=False)
class BreakpointRefused(KscheddError, rpc_code="invalid"):
    """The error for a breakpoint beyond the limit, or a breakpoint that no pod can match."""

    why: str


def compile_state_condition(expression: str) -> "CelCondition":
    """Compile a condition on `STATE_VARIABLES`. Raises CelCompileError."""
    return _compiled(expression, STATE_VARIABLES)


def _compiled(expression: str, variables: Mapping[str, str]) -> "CelCondition":
    """Compile a condition. The CelCompileError lists the available variables."""
    from kschedd.cel.program import compile_condition  # imported on demand, because most runs have no condition

    try:
        return compile_condition(expression, variables, most_cost=MOST_CONDITION_COST)
    except CelCompileError as wrong:
        why = f"{wrong.why}\na condition is CEL on {', '.join(variables)}"
        raise CelCompileError(expression, why) from None


@attrs.define(eq=False)
class DebuggerHeld(KscheddError, rpc_code="conflict"):
    """The error for a request of a client that does not control the debugger."""

    holder: str

    def __str__(self) -> str:
        return f"client {self.holder} holds the debugger: `pause --take` (`debug.attach`) takes it over"


@attrs.define(eq=False)
class NotStopped(KscheddError, rpc_code="conflict"):
    """The error for a request that requires scheduling to be stopped."""

    why: str


class Run(Enum):
    """A condition other than a breakpoint that ends a run."""

    FREE = "free"
    ATTEMPTS = "attempts"  # a number of attempts
    POINT = "point"  # run until the next extension point
    PLUGIN = "plugin"  # up to the next plugin


@attrs.frozen(eq=False)
class SchedulingStop:
    """A stop of scheduling. The place at which scheduling has stopped; `point` is None between two attempts."""

    why: str
    since_s: float
    point: StopPoint | None = None
    breakpoint: int | None = None


@attrs.frozen
class Intervention:
    """A user's change to a stopped attempt. `verb` is force, veto, score or drop."""

    verb: str
    node: str = ""
    plugin: str = ""
    score: int = 0


@attrs.frozen(eq=False)
class Reentry:
    """The place at which an attempt is stopped, and the user's changes to it: the state from which a fork continues."""

    uid: str  # of the pod
    point: int  # number of the stop point; 0: before the pod's attempt in the cycle of its PodGroup
    changes: Mapping[int, Sequence[Intervention]]  # by number of the stop point
    stop: SchedulingStop


@attrs.frozen(eq=False)
class Until:
    """The conditions that end a run; unset conditions are None."""

    what: str  # description for users
    time_s: float | None = None
    scheduled: int | None = None  # number of bound pods, since the start, at which the run ends
    condition: "CelCondition | None" = None
    breakpoint: int | None = None  # number of a temporary breakpoint for this run


@attrs.define(eq=False)
class Debugger:
    """The debugger: decides where scheduling stops.

    `state` returns the values of `STATE_VARIABLES`, except for the time.
    """

    state: Callable[[], dict[str, Any]]
    engaged: bool = False
    stop: SchedulingStop | None = None
    holder: str = ""  # client in control; "" if there is none
    keep: bool = False  # true if breakpoints stay when the client disconnects
    breakpoints: dict[int, Breakpoint] = attrs.field(factory=dict)
    most_breakpoints: int = MOST_BREAKPOINTS
    most_set: int = 0  # highest number of breakpoints at one time
    until: Until | None = None
    reentry: Reentry | None = None  # set in a fork until its attempt reaches the place at which the original stopped
    changes: int = 0
    stops: int = 0  # number of stops so far
    now_s: float = 0.0  # time of the latest call, in seconds
    cycle: int = 0  # number of the latest attempt
    _run: Run = Run.FREE
    _attempts_left: int = 0
    _why: str = ""  # why the run ends
    _last: tuple[int, str] = (0, "")  # cycle and extension point of the last stop point
    _entered: tuple[int, str] = (0, "")  # number of attempts, and PodGroup, at the last stop before a group's cycle
    _made: int = 0  # number of breakpoints created so far

    # -- control ------------------------------------------------------------------------------------------

    def attach(self, client: str, *, take: bool = False, keep: bool | None = None) -> None:
        """Give this client control of the debugger. Raises DebuggerHeld if another client has control."""
        if self.holder not in ("", client) and not take:
            raise DebuggerHeld(self.holder)
        if self.holder != client:
            self.holder, self.keep = client, False
        if keep is not None:
            self.keep = keep
        self._changed()

    def detach(self, client: str) -> None:
        """Release the client's control of the debugger."""
        if self.holder != client:
            return
        self.holder = ""
        if not self.keep:
            for each in self.breakpoints.values():
                if each.by == client and each.enabled:
                    each.disable("the client that set it has gone")
            self.resume()
        self._changed()

    # -- running and stopping ---------------------------------------------------------------------------------

    def pause(self, now_s: float, *, attempting: bool = False) -> None:
        """Stop now, or after the running attempt."""
        self.now_s = now_s
        self._forget_until()
        if self.stop is None:
            self._go(Run.ATTEMPTS, "paused", attempts=0)
            if not attempting:
                self._halt(SchedulingStop("paused", now_s))

    def resume(self) -> None:
        self._forget_until()
        self._go(Run.FREE)

    def step(self, attempts: int) -> None:
        """Run a number of attempts, including an attempt in progress."""
        within = self.stop is not None and self.stop.point is not None
        self._forget_until()
        self._go(Run.ATTEMPTS, "step", attempts=attempts - within)

    def next(self, *, point: bool = False) -> None:
        """Run until the next plugin call, or until the next extension point with a plugin."""
        self._forget_until()
        self._go(Run.POINT if point else Run.PLUGIN, "next")

    def run_until(self, until: Until) -> None:
        self._forget_until()
        self.until = until
        self._go(Run.FREE)

    def end(self) -> None:
        """Never stop from now on, because no client can control the debugger any more."""
        self.breakpoints.clear()
        self.resume()

    # -- forks ------------------------------------------------------------------------------------------------

    def copy(self, reentry: Reentry | None) -> "Debugger":
        """Return the debugger of a fork, which no client controls.

        The copy is stopped if this debugger is stopped. With `reentry`, it stops when the repeated attempt reaches that
        place.
        """
        breakpoints = {number: attrs.evolve(each) for number, each in self.breakpoints.items()}
        copied = attrs.evolve(self, holder="", keep=False, breakpoints=breakpoints, reentry=reentry)
        if reentry is not None:
            copied.stop, copied._run, copied.cycle = None, Run.FREE, self.cycle - 1
        copied._changed()
        return copied

    def enters(self, pod: Pod) -> bool:
        """Return whether the attempt of this pod must stop again where the original attempt stopped."""
        return self.reentry is not None and self.reentry.uid == pod.uid

    def reentered(self, at: StopPoint) -> None:
        """Stop at the place at which the original attempt stopped."""
        assert self.reentry is not None, "an attempt is repeated"
        stop, self.reentry = attrs.evolve(self.reentry.stop, point=at), None
        self._halt(stop)

    def missed_reentry(self) -> None:
        """Stop after a repeated attempt that ended before the place at which the original attempt stopped."""
        self.reentry = None
        self._halt(SchedulingStop("the repeated attempt ended earlier than the original one", self.now_s))

    def _forget_until(self) -> None:
        if self.until is not None and self.until.breakpoint is not None:
            self.breakpoints.pop(self.until.breakpoint, None)
        self.until = None

    def _go(self, run: Run, why: str = "", *, attempts: int = 0) -> None:
        self.stop, self._run, self._why, self._attempts_left = None, run, why, attempts
        self._changed()

    def _halt(self, stop: SchedulingStop) -> None:
        self.stop = stop
        self._forget_until()
        self.stops += 1
        self._run = Run.ATTEMPTS  # the debugger allows no attempt until the client continues
        self._attempts_left, self._why = 0, stop.why
        self._changed()

    def _changed(self) -> None:
        self.changes += 1
        self.engaged = (
            self.stop is not None
            or self._run is not Run.FREE
            or self.until is not None
            or self.reentry is not None
            or any(each.enabled for each in self.breakpoints.values())
        )

    # -- called by the driver ---------------------------------------------------------------------------------

    def tick(self, now_s: float) -> None:
        """Stop if a condition that ends the run is met; called between two attempts."""
        self.now_s = now_s
        if self.stop is not None or self.until is None:
            return
        try:
            reached = self._reached(self.until)
        except CelFailure as failure:
            self._halt(SchedulingStop(f"{self.until.what}: {failure}", now_s))
            return
        if reached:
            self._halt(SchedulingStop(self.until.what, now_s))

    def _reached(self, until: Until) -> bool:
        if until.time_s is not None and self.now_s >= until.time_s:
            return True
        if until.scheduled is None and until.condition is None:
            return False
        values = self.state()
        if until.scheduled is not None and values["scheduled"] >= until.scheduled:
            return True
        return until.condition is not None and until.condition.holds({**values, "time": self.now_s})

    def lets_begin(self, now_s: float) -> bool:
        """Return whether an attempt may begin. Stop if a condition that ends the run is met."""
        self.tick(now_s)
        if self.stop is None and self._run is Run.ATTEMPTS and self._attempts_left <= 0:
            self._halt(SchedulingStop(self._why, now_s))
        return self.stop is None

    def enters_group(self, group: str, pods: Mapping[Pod, int], now_s: float) -> bool:
        """Return whether the cycle of these pods of one PodGroup may begin. Stop once before it.

        `pods` maps each pod to its number of attempts.
        """
        entering = (self.cycle, group)
        if self._entered == entering:
            return True
        why, number = self._why if self._run in (Run.POINT, Run.PLUGIN) else "", None
        for pod, attempt in pods.items():
            at = StopPoint(self.cycle + 1, pod, attempt, "", "")
            for each in list(self.breakpoints.values()):
                if number is None and each.reached(at, now_s):
                    why, number = f"breakpoint {each.number}", each.number
                    if each.once:
                        del self.breakpoints[each.number]
        if not why:
            return True
        self._entered = entering
        self._halt(SchedulingStop(why, now_s, None, number))
        return False

    def before_member(self, at: StopPoint) -> bool:
        """Return whether to stop within the cycle of a PodGroup, before the attempt of this pod."""
        if self.reentry is not None:
            if self.enters(at.pod):
                self.reentered(at)
            return self.stop is not None
        if self._run not in (Run.POINT, Run.PLUGIN):
            return False
        self._halt(SchedulingStop(self._why, self.now_s, at))
        return True

    def left_group(self, now_s: float) -> None:
        """Stop after the cycle of a PodGroup if the user requested a stop at the next plugin or extension point."""
        if self._run in (Run.POINT, Run.PLUGIN):
            self._halt(SchedulingStop(self._why, now_s))

    def began(self, pod: Pod) -> bool:
        """Count the attempt that begins now. Return whether the attempt needs a stepper."""
        self.cycle += 1
        if self._run is Run.ATTEMPTS:
            self._attempts_left -= 1
        return self.may_stop_within(pod)

    def may_stop_within(self, pod: Pod) -> bool:
        """Return whether an attempt of this pod may stop before its outcome."""
        stepping = self._run in (Run.POINT, Run.PLUGIN) or self.enters(pod)
        return stepping or any(each.may_match(pod) for each in self.breakpoints.values())

    @property
    def watches_outcomes(self) -> bool:
        """True if a breakpoint depends on the outcomes of plugins."""
        return any(each.enabled and each.spec.outcome for each in self.breakpoints.values())

    def arrives(self, at: StopPoint) -> bool:
        """Return whether to stop at this point of an attempt or a binding cycle."""
        if not self.engaged:
            return False
        place, last = (at.cycle, at.point), self._last
        self._last = place
        why, number = "", None
        for each in list(self.breakpoints.values()):
            was_enabled = each.enabled
            if each.reached(at, self.now_s):
                why, number = f"breakpoint {each.number}", each.number
                if each.once:
                    del self.breakpoints[each.number]
            if was_enabled and not each.enabled:
                self._changed()
        if not why and at.outcome not in ("", *_ENDS):
            return False
        if not why and (self._run is Run.PLUGIN or (self._run is Run.POINT and place != last)):
            why = self._why
        if not why:
            return False
        self._halt(SchedulingStop(why, self.now_s, at, number))
        return True

    # -- breakpoints ------------------------------------------------------------------------------------------

    def add(self, spec: BreakpointSpec, *, by: str = "", ignore: int = 0, once: bool = False) -> Breakpoint:
        """Add a breakpoint. Raises CelCompileError, SelectorError, BreakpointRefused."""
        if len(self.breakpoints) >= self.most_breakpoints:
            raise BreakpointRefused(f"there are {self.most_breakpoints} breakpoints, the maximum: delete one first")
        _check_lengths(spec)
        selector = parse_selector_text(spec.selector) if spec.selector else None
        condition = _compiled(spec.condition, VARIABLES) if spec.condition else None
        self._made += 1
        made = Breakpoint(self._made, spec, by, ignore, once, selector=selector, condition=condition)
        self.breakpoints[made.number] = made
        self.most_set = max(self.most_set, len(self.breakpoints))
        self._changed()
        return made

    def change(self, number: int, *, enabled: bool | None = None, ignore: int | None = None) -> Breakpoint:
        """Change a breakpoint. Raises KeyError."""
        found = self.breakpoints[number]
        if enabled is not None:
            found.enable() if enabled else found.disable()
        if ignore is not None:
            found.ignore = ignore
        self._changed()
        return found

    def delete(self, number: int) -> None:
        """Delete a breakpoint. Raises KeyError."""
        del self.breakpoints[number]
        self._changed()


_ENDS: Final = ("scheduled", "unschedulable", "preempting", "error")


def _check_lengths(spec: BreakpointSpec) -> None:
    for name, most in (
        ("pod", LONGEST_PATTERN),
        ("node", 253),
        ("plugin", 253),
        ("selector", LONGEST_EXPRESSION),
    ):
        if (length := len(getattr(spec, name))) > most:
            raise BreakpointRefused(f"{name}: {length} characters are too long: at most {most}")
