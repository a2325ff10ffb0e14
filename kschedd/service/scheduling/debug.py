"""Methods of the debugger: stop scheduling, step through it, inspect an attempt, and change its outcome.

One client at a time controls the debugger; all clients may read. When the connection of this client ends, scheduling
continues and its breakpoints are disabled, unless it set `keep`.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import attrs
import trio

from kschedd.actors.mailbox import Ending
from kschedd.actors.time_control import Moved
from kschedd.answers import extended
from kschedd.api.text.times import stamp
from kschedd.scheduling.debug.breakpoints import OUTCOMES, POINTS, VARIABLES, BreakpointSpec
from kschedd.scheduling.debug.debugger import STATE_VARIABLES, Until, compile_state_condition
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.stops import interventions
from kschedd.scheduling.stops.view import (
    BreakpointAnswer,
    BreakpointTargets,
    DebuggerState,
    MovedState,
    WhereAnswer,
    debugger_state,
    described_breakpoint,
    where,
)
from kschedd.service.cluster import ClusterBackend
from kschedd.service.errors import RpcError
from kschedd.service.params import Param
from kschedd.service.scheduling.answers import (
    DeletedBreakpoint,
    ForcedNode,
    PodAnswer,
    ReplacedScoreAnswer,
    VetoedNode,
)
from kschedd.service.table import Call, Methods, Stream, StreamAnswer, method

_MOST_NODES = 10_000
_LAST_WORDS_S = 1.0
_SOON_S = 30.0
_NODE = Param("node", "string", doc="name of the node")
_NUMBER = Param("id", "integer", doc="id of the breakpoint", minimum=1)
_OUTCOMES = "; ".join(f"{name}: {what}" for name, what in OUTCOMES.items())
_CONDITION = f"a CEL expression on {', '.join(VARIABLES)}"
_GOALS = (
    Param("seconds", "number", False, doc="cluster time from now", minimum=0),
    Param("time_s", "number", False, doc="a cluster time, in seconds since the epoch"),
    Param(
        "pod", "string", False, doc="until an attempt begins for a pod that matches this pattern of `namespace/name`"
    ),
    Param("scheduled", "integer", False, doc="until this number of further pods is bound", minimum=1),
    Param(
        "condition",
        "string",
        False,
        doc=f"until this CEL expression on {', '.join(STATE_VARIABLES)} is true between two attempts",
    ),
)


@attrs.frozen(eq=False)
class DebugMethods(Methods):
    _cluster: ClusterBackend

    # -- looking ----------------------------------------------------------------------------------------------

    @method("debug.state", reads=True, doc="Returns whether scheduling is stopped, and where.", answer=DebuggerState)
    async def state(self, call: Call) -> Any:
        return await self._cluster.scheduler.query(debugger_state)

    @method(
        "debug.where",
        (Param("nodes", "integer", False, 20, "maximum length of each list", (), 0, _MOST_NODES),),
        reads=True,
        doc="Returns the full state of the stopped attempt, or of the cycle of a PodGroup.",
        answer=WhereAnswer,
    )
    async def where(self, call: Call) -> Any:
        return await self._cluster.scheduler.query(lambda driver: where(driver, call["nodes"]))

    @method(
        "debug.watch",
        reads=True,
        doc=(
            "Sends the debugger's state now, and at each change. There is no position to resume from: each item is "
            "the whole state. After a break, call this method again."
        ),
        answer=StreamAnswer,
        item=DebuggerState,
    )
    async def watch(self, call: Call) -> Any:
        async def feed(stream: Stream) -> None:
            last: Any = None
            while True:
                number = self._cluster.stops.number
                state = await self.state(call)
                if state != last:
                    await stream.send(state)
                    last = state
                await self._cluster.stops.wait_past(number)

        return StreamAnswer(call.open_stream(feed))

    # -- control --------------------------------------------------------------------------------------------------

    @method(
        "debug.attach",
        (
            Param("take", "boolean", False, False, "take it from the client that holds it"),
            Param(
                "keep", "boolean", False, doc="keep this client's settings after its connection ends; null: unchanged"
            ),
        ),
        doc=(
            "Gives this client control of the debugger. Every method that controls the debugger does the same if no "
            "client controls the debugger."
        ),
        answer=DebuggerState,
    )
    async def attach(self, call: Call) -> Any:
        def take(driver: SchedulingDriver) -> Any:
            driver.debugger.attach(call.client, take=call["take"], keep=call["keep"])
            return debugger_state(driver)

        state = await self._cluster.scheduler.query(take)
        self._heed_end(call)
        return state

    @method(
        "debug.detach", doc="Gives up control of the debugger, like the end of the connection.", answer=DebuggerState
    )
    async def detach(self, call: Call) -> Any:
        return await self._cluster.scheduler.query(partial(_leave, call.client))

    def _heed_end(self, call: Call) -> None:
        async def left() -> None:
            with suppress(Ending):  # the driver has ended, so no attempt can continue
                await self._cluster.scheduler.query(partial(_leave, call.client))

        call.services.at_end("debugger", left)

    async def _control(self, call: Call, change: Callable[[SchedulingDriver], Any]) -> Any:
        """Run `change` on behalf of the controlling client; return its result."""

        def run(driver: SchedulingDriver) -> Any:
            driver.debugger.attach(call.client)
            return change(driver)

        answer = await self._cluster.scheduler.query(run)
        self._heed_end(call)
        return answer

    # -- running ----------------------------------------------------------------------------------------------

    @method("debug.pause", doc="Stops scheduling before the next attempt.", answer=DebuggerState)
    async def pause(self, call: Call) -> Any:
        return await self._control(call, partial(_paused, self._cluster.clock.now()))

    @method("debug.resume", doc="Resumes scheduling.", answer=DebuggerState)
    async def resume(self, call: Call) -> Any:
        return await self._control(call, _resumed)

    @method(
        "debug.step",
        (Param("attempts", "integer", False, 1, "number of attempts", minimum=1),),
        doc="Runs a number of attempts, and stops before the next attempt. If an attempt is stopped, it counts as one "
        "of them.",
        answer=DebuggerState,
    )
    async def step(self, call: Call) -> Any:
        def run(driver: SchedulingDriver) -> Any:
            driver.debugger.step(call["attempts"])
            return driver.debugger.changes

        return await self._stopped_soon(call, run)

    @method(
        "debug.next",
        (
            Param(
                "to",
                "string",
                False,
                "plugin",
                "stop at the next plugin or extension point",
                choices=("plugin", "point"),
            ),
        ),
        doc="Runs scheduling up to the next call of a plugin, the next extension point that calls a plugin, or the "
        "end of the attempt.",
        answer=DebuggerState,
    )
    async def next(self, call: Call) -> Any:
        def run(driver: SchedulingDriver) -> Any:
            driver.debugger.next(point=call["to"] == "point")
            return driver.debugger.changes

        return await self._stopped_soon(call, run)

    async def _stopped_soon(self, call: Call, run: Callable[[SchedulingDriver], int]) -> Any:
        """Run scheduling.

        Answer when scheduling is stopped, when no work is pending at the present time, or after a time limit.
        """
        before = await self._control(call, run)
        await self._cluster.stops.wait_stopped_or_idle(before, self._cluster.time.until_idle, _SOON_S)
        return await self.state(call)

    @method(
        "debug.until",
        _GOALS,
        doc=(
            "Runs scheduling, and stops it when the first of these conditions is met. The method does not advance "
            "virtual time; `debug.wait` does, with the same parameters."
        ),
        answer=DebuggerState,
    )
    async def until(self, call: Call) -> Any:
        if not _goals(call):
            raise RpcError("bad_params", f"debug.until: give one of {', '.join(each.name for each in _GOALS)}")
        return await self._control(call, self._run_until(call))

    def _run_until(self, call: Call) -> Callable[[SchedulingDriver], Any]:
        """Return the function that starts a run, which ends when the condition in the call is met.

        Raises RpcError and CelCompileError for an invalid condition.
        """
        if call["pod"] == "":
            why = 'pod: must be a pattern of `namespace/name`, such as "web/*"'
            raise RpcError("bad_params", f"{call.method}: {why}")
        at = call["time_s"] if call["seconds"] is None else self._cluster.clock.now() + call["seconds"]
        condition = None if call["condition"] is None else compile_state_condition(call["condition"])
        what = [] if at is None else [f"until {stamp(at)}"]
        what += [] if call["scheduled"] is None else [f"until {call['scheduled']} more pods are bound"]
        what += [] if condition is None else [f"until {condition.expression}"]
        what += [] if call["pod"] is None else [f"until pod {call['pod']}"]

        def run(driver: SchedulingDriver) -> Any:
            more = call["scheduled"]
            scheduled = None if more is None else driver.bindings.pods_bound + more
            there = None
            if call["pod"] is not None:
                there = driver.debugger.add(BreakpointSpec(pod=call["pod"]), by=call.client, once=True).number
            driver.debugger.run_until(Until(" or ".join(what), at, scheduled, condition, there))
            return debugger_state(driver)

        return run

    @method(
        "debug.wait",
        _GOALS,
        doc="Waits until scheduling is stopped. With parameters, the method first runs scheduling until the "
        "first condition is true, like `debug.until`. Virtual time advances as far as needed. If the stream is "
        "cancelled or disconnected, scheduling stops where it is, and the stream cannot be resumed; `debug.state` "
        "returns the position.",
        answer=StreamAnswer,
        item=MovedState,
        items="a single item",
    )
    async def wait(self, call: Call) -> Any:
        run = self._run_until(call) if _goals(call) else debugger_state
        await self._control(call, debugger_state)

        async def feed(stream: Stream) -> None:
            moved: Moved | None = None
            stopped = False
            try:
                # The run is started in this task, so that cancelling the stream ends it.
                await self._control(call, run)
                while True:
                    number = self._cluster.stops.number
                    state = await self.state(call)
                    stopped = state.stopped is not None
                    if stopped or moved is Moved.NOTHING_DUE:
                        break
                    if self._cluster.clock.is_virtual:
                        moved = await self._cluster.time.advance(None, _nothing)
                    else:
                        await self._cluster.stops.wait_past(number)
                why = None if stopped or moved is None else moved.value
                await stream.send(extended(MovedState, state, moved=why))
                stopped = True
            finally:
                if not stopped:
                    await self._stop_here()

        return StreamAnswer(call.open_stream(feed))

    async def _stop_here(self) -> None:
        with trio.move_on_after(_LAST_WORDS_S, shield=True), suppress(Ending):
            await self._cluster.scheduler.query(partial(_paused, self._cluster.clock.now()))

    # -- breakpoints ------------------------------------------------------------------------------------------

    @method(
        "debug.break_add",
        (
            Param("pod", "string", False, "", "a pattern of `namespace/name`"),
            Param("selector", "string", False, "", "a selector of the pod's labels"),
            Param("node", "string", False, "", "a node that a plugin judges, or that is chosen"),
            Param("plugin", "string", False, "", "before this plugin is called"),
            Param("point", "string", False, "", "at this extension point", choices=("", *POINTS)),
            Param("outcome", "string", False, "", _OUTCOMES, choices=("", *OUTCOMES)),
            Param("condition", "string", False, "", _CONDITION),
            Param("ignore", "integer", False, 0, "number of hits before it stops", minimum=0),
            Param("once", "boolean", False, False, "delete it after it has stopped scheduling"),
        ),
        doc=(
            "Sets a breakpoint: scheduling stops where all given criteria are met. Without a plugin the breakpoint "
            "stops once for each extension point; without an extension point it stops once for each attempt."
        ),
        answer=BreakpointAnswer,
    )
    async def break_add(self, call: Call) -> Any:
        spec = BreakpointSpec(
            **{name: call[name] for name in ("pod", "selector", "node", "plugin", "point", "outcome", "condition")}
        )
        if not spec:
            raise RpcError(
                "bad_params", "debug.break_add: a breakpoint names a pod, a node, a plugin, or anything else"
            )

        def add(driver: SchedulingDriver) -> Any:
            made = driver.debugger.add(spec, by=call.client, ignore=call["ignore"], once=call["once"])
            return described_breakpoint(made, BreakpointTargets(driver))

        return await self._control(call, add)

    @method("debug.break_list", reads=True, doc="Lists the breakpoints.", answer=Sequence[BreakpointAnswer])
    async def break_list(self, call: Call) -> Any:
        def read(driver: SchedulingDriver) -> Any:
            known = BreakpointTargets(driver)
            return [described_breakpoint(each, known) for each in driver.debugger.breakpoints.values()]

        return await self._cluster.scheduler.query(read)

    @method(
        "debug.break_set",
        (
            _NUMBER,
            Param("enabled", "boolean", False, doc="null: unchanged"),
            Param("ignore", "integer", False, doc="null: unchanged", minimum=0),
        ),
        doc="Enables or disables a breakpoint, or sets the number of hits to ignore.",
        answer=BreakpointAnswer,
    )
    async def break_set(self, call: Call) -> Any:
        def change(driver: SchedulingDriver) -> Any:
            _there(driver, call["id"])
            changed = driver.debugger.change(call["id"], enabled=call["enabled"], ignore=call["ignore"])
            return described_breakpoint(changed, BreakpointTargets(driver))

        return await self._control(call, change)

    @method("debug.break_delete", (_NUMBER,), doc="Deletes a breakpoint.", answer=DeletedBreakpoint)
    async def break_delete(self, call: Call) -> Any:
        def delete(driver: SchedulingDriver) -> Any:
            _there(driver, call["id"])
            driver.debugger.delete(call["id"])
            return DeletedBreakpoint(call["id"])

        return await self._control(call, delete)

    # -- changing the attempt ---------------------------------------------------------------------------------

    @method(
        "debug.force",
        (_NODE, Param("yes", "boolean", False, False, "even if the pod does not fit")),
        doc="Makes the stopped attempt choose a given node. If the node does not fit, the error has the code "
        "`conflict`, unless `yes` is set.",
        answer=ForcedNode,
    )
    async def force(self, call: Call) -> Any:
        def run(driver: SchedulingDriver) -> Any:
            reasons = interventions.force(driver, call["node"], even_if_unfit=call["yes"])
            return ForcedNode(_pod(driver), call["node"], reasons)

        return await self._control(call, run)

    @method(
        "debug.veto",
        (_NODE,),
        doc="Makes the stopped attempt choose a node other than the given one.",
        answer=VetoedNode,
    )
    async def veto(self, call: Call) -> Any:
        def run(driver: SchedulingDriver) -> Any:
            interventions.veto(driver, call["node"])
            return VetoedNode(_pod(driver), call["node"])

        return await self._control(call, run)

    @method(
        "debug.score",
        (
            _NODE,
            Param("plugin", "string", doc="a score plugin"),
            Param("score", "integer", doc="the normalized score, from 0 to 100"),
        ),
        doc="Replaces a plugin's score of a node in the stopped attempt.",
        answer=ReplacedScoreAnswer,
    )
    async def score(self, call: Call) -> Any:
        def run(driver: SchedulingDriver) -> Any:
            interventions.score(driver, call["node"], call["plugin"], call["score"])
            return ReplacedScoreAnswer(_pod(driver), call["node"], call["plugin"], call["score"])

        return await self._control(call, run)

    @method(
        "debug.drop",
        doc="Aborts the stopped attempt: it fails, and its pod returns to the queue.",
        answer=PodAnswer,
    )
    async def drop(self, call: Call) -> Any:
        def run(driver: SchedulingDriver) -> Any:
            interventions.drop(driver)
            return PodAnswer(_pod(driver))

        return await self._control(call, run)


def _goals(call: Call) -> bool:
    """Return whether the call contains a condition that ends a run."""
    return any(call[each.name] is not None for each in _GOALS)


async def _nothing() -> None:
    """Do nothing; a callback for advancing time."""


def _leave(client: str, driver: SchedulingDriver) -> Any:
    driver.debugger.detach(client)
    return debugger_state(driver)


def _paused(now_s: float, driver: SchedulingDriver) -> Any:
    driver.debugger.pause(now_s, attempting=driver.attempts.running)
    return debugger_state(driver)


def _resumed(driver: SchedulingDriver) -> Any:
    driver.debugger.resume()
    return debugger_state(driver)


def _pod(driver: SchedulingDriver) -> str:
    assert driver.attempts.stepper is not None, "an attempt is stopped"
    return driver.attempts.stepper.pod.key


def _there(driver: SchedulingDriver, number: int) -> None:
    if number not in driver.debugger.breakpoints:
        known = sorted(driver.debugger.breakpoints)
        raise RpcError("not_found", f"there is no breakpoint {number}", {"id": number, "known": known})
