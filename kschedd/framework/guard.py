"""PluginGuard: calls an out-of-tree plugin with a time limit and turns every failure into an error with its name.

A call runs in a thread of the plugin's own while its caller waits, at most for the limit. A call that has not
returned by then is abandoned (a thread cannot be stopped) and its thread replaced. Until it returns, further calls of
that plugin for the same pod fail at once, so that one pod costs one wait; those for other pods are made. Once
MOST_HUNG calls are abandoned the plugin is refused: every call fails at once until one of them returns. Callers are
in worker threads themselves where the daemon's loop must not block; a step of an attempt lets others work on the
scheduler's state while it waits (`exclusion`).

`filter` and `score`, which see one node at a time, are called thousands of times for one pod: there the limit is
on a whole shard of nodes (`GuardedCall`), enforced by the filter workers, or by `PluginGuard.batch` where they are not
used. PreBind, Bind and PostBind are called in a thread for each pod that is being bound, likewise (`GuardedCall`).

`OWNERS_METHODS` are called by the scheduling queue and the store, which do nothing else meanwhile: their limit is
short, and after a call that took too long the method is refused for all objects until it has returned, and for a pause
that doubles each time. So the first call of `validate` that hangs stops the daemon's loop for one second. It is called
in the middle of a write, which nobody else's may come into, so a thread would hold up all other writes as long. A
shorter limit would refuse objects whose plugin is merely slow to be scheduled: on a machine with other work a thread
may wait for hundreds of milliseconds.

Whatever a plugin raises, even `SystemExit` and `KeyboardInterrupt`, reaches the caller as a PluginError, whose text
was formatted in the plugin's thread: an exception's `__str__` is plugin code, too.

What cannot be contained within one process: a crash of the interpreter (`os._exit`, a fault in C code), C code that
never releases the interpreter's lock, and memory.

Source: none upstream; a plugin that hangs blocks kube-scheduler.
"""

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from queue import SimpleQueue
from time import perf_counter
from typing import Any, Final, TypeVar

import attrs

from kschedd.api.pods import Pod
from kschedd.framework.costs import CallCosts
from kschedd.framework.exclusion import SchedulerLock, passed_on, to_be_taken
from kschedd.framework.faults import BadAnswer, PluginError, PluginTimeout
from kschedd.framework.status import fault_text

T = TypeVar("T")

PLUGIN_LIMIT_S: Final = 5.0  # how long a call of an out-of-tree plugin may take
OWNERS_LIMIT_S: Final = 1.0  # the same of a method that the scheduling queue or the store calls
OWNERS_METHODS: Final = frozenset(("pre_enqueue", "hint", "sort_key", "validate"))
_LONGEST_PAUSE: Final = 6  # 2 ** 6 seconds
START_LIMIT_S: Final = 30.0  # limit on importing its module, or constructing it
SLOW_START_S: Final = 3.0  # after which whoever waits for that is told which plugin it is
MOST_HUNG: Final = 32  # abandoned calls of one plugin, a thread each; those for the nodes of one pod may be several


@attrs.define(eq=False)
class GuardedCall:
    """Work that calls plugins in another thread, under its caller's time limit; records the plugin being called."""

    done: threading.Event = attrs.field(factory=threading.Event)
    calling: "PluginGuard | None" = None
    method: str = ""
    args: tuple[Any, ...] = ()
    given_up: bool = False
    begun: bool = False
    # Held while a plugin's call changes a cache of ours (a label column requested for the first time).
    lock: threading.Lock = attrs.field(factory=threading.Lock)
    scheduler: SchedulerLock | None = None  # to be taken for the same, unless who waits for the call holds it
    limited: bool = True  # False: nobody waits, and Ctrl-C is the user's, not a fault of the plugin

    def run(self, work: Callable[[], T]) -> T:
        """Do the work; called in the worker thread. Raises PluginTimeout where the thread comes too late."""
        with self.lock:
            if self.given_up:
                raise PluginTimeout("", "", "it was given up before it began")
            self.begun = True
        _this_thread.call = self
        try:
            return work()
        finally:
            _this_thread.call = None
            self.done.set()

    def give_up(self, limit_s: float) -> PluginTimeout:
        """The limit has passed: the error names the running plugin, which is not called again until it returns."""
        with self.lock:
            self.given_up = True
            hangs = self.begun
        if self.calling is not None:
            self.calling.costs.timed_out(self.calling.plugin, self.method)
        if self.calling is None:
            return PluginTimeout("", "", f"a plugin did not return within {limit_s:g}s")
        if hangs:
            self.calling.hanging.append(HungCall(_pod_of(self.args), self.done, self.method))
        self.calling.pause(self.method)
        return self.calling.timeout(self.method, limit_s)


@attrs.frozen(eq=False)
class HungCall:
    """A call that was abandoned."""

    pod: str  # uid; "" if it was about none
    returned: threading.Event
    method: str = ""


def _pod_of(args: tuple[Any, ...]) -> str:
    """The uid of the pod that a call with these arguments is about."""
    return next((arg.uid for arg in args if isinstance(arg, Pod)), "")


_this_thread = threading.local()


@contextmanager
def without_limits() -> Iterator[None]:
    """In this context plugins are called in this very thread: several times faster, and one that hangs hangs it."""
    _this_thread.call = GuardedCall(limited=False)
    try:
        yield
    finally:
        _this_thread.call = None


@contextmanager
def waited_for() -> Iterator[None]:
    """In this context nobody but this thread's plugin call changes the scheduler's state.

    Raises RuntimeError in an abandoned call, and in a thread that a plugin started.
    """
    call: GuardedCall | None = getattr(_this_thread, "call", None)
    if call is None:
        raise RuntimeError("only within a call that the scheduler makes")
    with nullcontext() if call.scheduler is None else call.scheduler.taken(), call.lock:
        if call.given_up:
            raise RuntimeError("this call took too long and was given up")
        yield


@contextmanager
def alone(scheduler: SchedulerLock | None) -> Iterator[None]:
    """As `waited_for`, for what a plugin may call from any thread, its own and abandoned calls included.

    `scheduler`: the lock that such a thread takes; None where one thread does everything.
    """
    call: GuardedCall | None = getattr(_this_thread, "call", None)
    if call is not None and call.scheduler is None:
        with call.lock:  # it is not given up meanwhile, so its caller holds the lock for it
            if not call.given_up:
                yield
                return
    with nullcontext() if scheduler is None else scheduler.taken():
        yield


class PluginGuard:
    """One plugin's time limits and its threads; `on_fault` receives faults that fail no call."""

    def __init__(
        self,
        plugin: str,
        limit_s: float = PLUGIN_LIMIT_S,
        on_fault: Callable[[PluginError], None] | None = None,
        costs: CallCosts | None = None,
    ) -> None:
        self.plugin = plugin
        self.limit_s = limit_s
        self.limits: Mapping[str, float] = {}  # by method, where they differ from `limit_s`
        self.costs = CallCosts() if costs is None else costs
        self.hanging: list[HungCall] = []
        self._paused: dict[str, tuple[float, int]] = {}  # by method: until when, and how often it took too long
        self._on_fault = on_fault
        self._idle: list[SimpleQueue[_Call | None]] = []  # the queues of threads that have nothing to do

    def call(
        self,
        name: str,
        work: Callable[..., T],
        *args: Any,
        limit_s: float | None = None,
        noted: bool = True,
        source: str = "",
    ) -> T:
        """Call the plugin's method `name`; what it takes is `noted`. Raises PluginError, and nothing else.

        `source`: where the plugin comes from, for a call at the start; one that takes long is named on standard error.
        """
        if self.hanging:
            self._refuse_hung(name, args)
        if self._paused:
            self._refuse_paused(name)
        current: GuardedCall | None = getattr(_this_thread, "call", None)
        if current is not None:
            return self._inline(current, name, work, args, noted)
        call = _Call(self, name, work, args)
        limit_s = self.limit_of(name) if limit_s is None else limit_s
        started = perf_counter()
        with passed_on():
            thread = self._thread()
            thread.put(call)
            if not _waited(call.guarded, name, limit_s, source):
                thread.put(None)  # it ends when it is back
                raise call.guarded.give_up(limit_s)
            self._idle.append(thread)
        if noted:
            self._note(name, started, call.fault is not None)
        if call.fault is not None:
            raise call.fault
        if self._paused:
            self._paused.pop(name, None)
        result: T = call.value
        return result

    def _refuse_hung(self, name: str, args: tuple[Any, ...]) -> None:
        self.hanging = [hung for hung in self.hanging if not hung.returned.is_set()]
        if len(self.hanging) >= MOST_HUNG:
            why = f"{len(self.hanging)} earlier calls have not returned, and no more threads are spent on it"
        elif (pod := _pod_of(args)) in [hung.pod for hung in self.hanging]:
            why = f"an earlier call{' for this pod' if pod else ''} has not returned yet"
        elif name in OWNERS_METHODS and name in [hung.method for hung in self.hanging]:
            why = "an earlier call has not returned yet, and what calls it waits for no other"
        else:
            return
        raise PluginTimeout(self.plugin, name, f"{name} was not called: {why}")

    def pause(self, name: str) -> None:
        """Note that a call took too long: one of an owner's is not made again for a while."""
        if name in OWNERS_METHODS:
            times = self._paused.get(name, (0.0, 0))[1] + 1
            self._paused[name] = perf_counter() + 2.0 ** min(times, _LONGEST_PAUSE), times

    def _refuse_paused(self, name: str) -> None:
        until, times = self._paused.get(name, (0.0, 0))
        if (left := until - perf_counter()) > 0:
            why = f"{times} calls took too long, and it is called again in {left:.0f}s"
            raise PluginTimeout(self.plugin, name, f"{name} was not called: {why}")

    def batch(self, name: str, work: Callable[[], T], pod: Pod) -> T:
        """Run work that makes many calls of this plugin, all about one pod, as one call with one limit."""
        return self.call(name, lambda pod: work(), pod, noted=False)

    def limit_of(self, name: str) -> float:
        """How long a call of this method may take."""
        return self.limits.get(name, min(self.limit_s, OWNERS_LIMIT_S) if name in OWNERS_METHODS else self.limit_s)

    def _note(self, name: str, started: float, failed: bool) -> None:
        self.costs.returned(self.plugin, name, perf_counter() - started, failed=failed)

    def report(self, fault: PluginError) -> None:
        """Report a fault that fails no call."""
        if self._on_fault is not None:
            self._on_fault(fault)

    def timeout(self, name: str, limit_s: float | None = None) -> PluginTimeout:
        limit_s = self.limit_of(name) if limit_s is None else limit_s
        return PluginTimeout(self.plugin, name, f"{name} did not return within {limit_s:g}s")

    def _inline(self, current: GuardedCall, name: str, work: Callable[..., T], args: tuple[Any, ...], noted: bool) -> T:
        if current.given_up:
            raise self.timeout(name)
        before = current.calling, current.method, current.args
        current.calling, current.method, current.args = self, name, args
        started, failed = perf_counter(), True
        try:
            said = work(*args)
            failed = False
            return said
        except BaseException as fault:
            if isinstance(fault, KeyboardInterrupt) and not current.limited:
                raise
            raise self.error(name, fault) from None
        finally:
            current.calling, current.method, current.args = before
            if noted and not current.given_up:
                self._note(name, started, failed)

    def error(self, name: str, fault: BaseException) -> PluginError:
        """The plugin's exception as a PluginError. To be called in the plugin's thread."""
        if isinstance(fault, PluginError):
            return fault
        if isinstance(fault, BadAnswer):
            return PluginError(self.plugin, name, str(fault))
        return PluginError(self.plugin, name, fault_text(fault))

    def __del__(self) -> None:
        for calls in self._idle:
            calls.put(None)

    def _thread(self) -> "SimpleQueue[_Call | None]":
        """The queue of a thread that has nothing to do: several where the queue and the scheduler call at once."""
        try:
            return self._idle.pop()
        except IndexError:
            calls = SimpleQueue[_Call | None]()
            threading.Thread(target=_serve, args=(calls,), name=f"plugin {self.plugin}", daemon=True).start()
            return calls


def _waited(call: GuardedCall, name: str, limit_s: float, source: str) -> bool:
    """Wait for a call, at most for the limit; returns whether it is done."""
    if not source or limit_s <= SLOW_START_S:
        return call.done.wait(limit_s)
    if call.done.wait(SLOW_START_S):
        return True
    why = f"{name} has not returned after {SLOW_START_S:g}s, and is given up after {limit_s:g}s"
    print(f"waiting for plugin {source}: {why}", file=sys.stderr, flush=True)
    return call.done.wait(limit_s - SLOW_START_S)


class _Call:
    """One call passed to the plugin's thread, and its result."""

    __slots__ = ("args", "fault", "guarded", "value", "work")

    def __init__(self, guard: PluginGuard, name: str, work: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.work, self.args = work, args
        self.guarded = GuardedCall(calling=guard, method=name, args=args, scheduler=to_be_taken())
        self.value: Any = None
        self.fault: PluginError | None = None

    def run(self) -> None:
        guard, name = self.guarded.calling, self.guarded.method
        assert guard is not None, "a call is some plugin's"
        try:
            self.value = self.work(*self.args)
        except BaseException as fault:  # raised again in the caller
            self.fault = guard.error(name, fault)


def _serve(calls: "SimpleQueue[_Call | None]") -> None:
    while (call := calls.get()) is not None:
        with suppress(PluginTimeout):  # what it raises by itself is kept in the call
            call.guarded.run(call.run)
        del call  # it references the guard, whose garbage collection ends the thread
