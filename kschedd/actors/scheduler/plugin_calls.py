"""PluginCall: one task for each call of a plugin or extender by a binding cycle, so that bindings run concurrently.

Receives: nothing. Sends: `Called`, with the plugin's result or the Status of its fault. Owns: nothing. Ends:
when the plugin returns, or when its time limit has passed and its thread is abandoned.

A plugin's call runs in a thread. Only a limited number of calls have a thread at the same time (`PluginThreads`). The
time limit begins when a call gets its thread. A call of an extender needs no thread.

Source: Kubernetes v1.34, scheduler/schedule_one.go (ScheduleOne: one goroutine for each binding cycle).
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import attrs
import trio

from kschedd.actors.mailbox import Doorbell
from kschedd.actors.scheduler.extenders import ExtenderClients
from kschedd.framework.exclusion import SchedulerLock
from kschedd.framework.faults import PluginTimeout
from kschedd.framework.guard import GuardedCall
from kschedd.framework.status import Status
from kschedd.framework.writes import Plan
from kschedd.lazy_log import LazyLogger
from kschedd.scheduling.binding.cycle import CallExtender, CallPlugin
from kschedd.threads import in_thread

log = LazyLogger("kschedd.plugins")


def run_async(method: Callable[..., Any], args: Sequence[Any], limit_s: float) -> Any:
    """Run a plugin's `async def` in this thread on a separate event loop, so that no other task is blocked.

    At the limit the coroutine is cancelled, which is impossible for a plain method. Raises TimeoutError.
    """

    async def main() -> Any:
        with trio.fail_after(limit_s):
            return await method(*args)

    try:
        return trio.run(main)
    except trio.TooSlowError:
        raise TimeoutError from None


@attrs.frozen(eq=False)
class Called:
    """The answer to one call of a binding cycle."""

    uid: str  # uid of the pod that is being bound
    answer: Plan | Status | None


@attrs.frozen(eq=False)
class PluginThreads:
    """The threads for binding cycles' calls, at most `at_a_time`; hanging threads are not counted."""

    at_a_time: trio.CapacityLimiter
    lock: SchedulerLock
    _unlimited: trio.CapacityLimiter = attrs.field(factory=lambda: trio.CapacityLimiter(math.inf))

    async def answer(self, wanted: CallPlugin) -> Plan | Status | None:
        """Call the plugin or extender within the time limit of the call."""
        call = GuardedCall(calling=wanted.guard, method=wanted.method, args=(wanted.pod,), scheduler=self.lock)
        async with self.at_a_time:
            with trio.move_on_after(wanted.limit_s):
                return await in_thread(partial(call.run, wanted.run), abandon_on_cancel=True, limiter=self._unlimited)
        call.give_up(wanted.limit_s)
        why = f"{wanted.method} did not return within {wanted.limit_s:g}s"
        log.warning("plugin_fault", plugin=wanted.plugin, method=wanted.method, why=why)
        return wanted.failed(PluginTimeout(wanted.plugin, wanted.method, why))


@attrs.frozen(eq=False)
class PluginCall:
    _wanted: CallPlugin | CallExtender
    _threads: PluginThreads
    _extenders: ExtenderClients
    _called: "trio.MemorySendChannel[Called]"
    _bell: Doorbell

    async def run(self) -> None:
        with self._called:
            await self._called.send(Called(self._wanted.uid, await self._answer(self._wanted)))
            self._bell.ring()

    async def _answer(self, wanted: CallPlugin | CallExtender) -> Plan | Status | None:
        if isinstance(wanted, CallExtender):
            return wanted.answered(await self._extenders.answer(wanted.call))
        return await self._threads.answer(wanted)
