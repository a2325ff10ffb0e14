"""PluginGuard: calls of an out-of-tree plugin with a time limit. Each failure becomes an error that names the plugin.

A call runs in one of the plugin's threads; its caller waits until the call returns or the limit is reached. After the
limit the call is abandoned and its thread is replaced, because a thread cannot be stopped. Until an abandoned call
returns, further calls of the plugin for the same pod fail immediately. Calls for other pods continue. If MOST_HUNG
calls are abandoned, every call of the plugin fails immediately until one of them returns. In a daemon, the callers run
in worker threads, so that the event loop does not block. While a step of an attempt waits, other threads may use the
scheduler's state (`exclusion`).

`filter` and `score`, which evaluate one node at a time, are called thousands of times for one pod. For these methods
the limit applies to a whole shard of nodes (`GuardedCall`). The limit is enforced by the filter workers, or else by
`PluginGuard.batch`. PreBind, Bind and PostBind are called in a separate thread for each pod, also with a limit
(`GuardedCall`).

The scheduling queue and the store wait for the methods in `OWNERS_METHODS`, and cannot do other work during the call.
Their limit is short. After a call of such a method has exceeded its limit, the method is not called until the call has
returned and a pause has passed, which doubles each time. Meanwhile its objects are rejected. The first `validate` call
that hangs therefore blocks the daemon's event loop for one second. A separate thread for the call would not help,
because the call is part of a write that no other write may interrupt. A shorter limit would reject objects on a busy
machine, where a thread may wait hundreds of milliseconds for the CPU.

Any exception of a plugin, even `SystemExit` and `KeyboardInterrupt`, reaches the caller as a PluginError. The
exception's text is formatted in the plugin's thread, because its `__str__` also runs plugin code.

With an infinite limit, a plugin is called in the caller's thread, so that debuggers and Ctrl-C work.

Some failures cannot be contained within a process: a crash of the interpreter (`os._exit`, a fault in C code), C code
that never releases the interpreter lock, and excessive memory use.

Upstream has no guard: a plugin that hangs blocks kube-scheduler.
"""

import math
import sys
import threading
import traceback
from collections import deque
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
from kschedd.framework.status import fault_text, is_ours

T = TypeVar("T")

PLUGIN_LIMIT_S: Final = 5.0  # time limit for a call of an out-of-tree plugin
OWNERS_LIMIT_S: Final = 1.0  # time limit for a method called by the scheduling queue or the store
OWNERS_METHODS: Final = frozenset(("pre_enqueue", "hint", "sort_key", "validate"))
_LONGEST_PAUSE: Final = 6  # exponent: 2 ** 6 seconds
START_LIMIT_S: Final = 30.0  # time limit for importing the module, or constructing the plugin
SLOW_START_S: Final = 3.0  # time after which a message names the plugin that delays the start
_QUITS: Final = ("BdbQuit", "Exit")  # raised by `q` in pdb; not an error of the plugin
MOST_HUNG: Final = 32  # maximum number of abandoned calls of one plugin; each occupies a thread


@attrs.define(eq=False)
class GuardedCall:
    """Work with a time limit in another thread that calls plugins; the object records which plugin is being called."""

    done: threading.Event = attrs.field(factory=threading.Event)
    calling: "PluginGuard | None" = None
    method: str = ""
    args: tuple[Any, ...] = ()
    given_up: bool = False
    begun: bool = False
    # held while a plugin call changes a cache of the scheduler, such as adding a label column
    lock: threading.Lock = attrs.field(factory=threading.Lock)
    scheduler: SchedulerLock | None = None  # lock to take for such changes, unless the caller holds it
    limited: bool = True  # False: calls have no time limit, and Ctrl-C is not a fault of the plugin

    def run(self, work: Callable[[], T]) -> T:
        """Run the work in the worker thread. Raise PluginTimeout if the limit has passed before the thread begins."""
        with self.lock:
            if self.given_up:
                raise PluginTimeout("", "", "the call was abandoned before it began")
            self.begun = True
        _this_thread.call = self
        try:
            return work()
        finally:
            _this_thread.call = None
            self.done.set()

    def give_up(self, limit_s: float) -> PluginTimeout:
        """Abandon the call at the limit, and return an error that names the plugin that was being called.

        The plugin is not called again for the same pod until the abandoned call returns.
        """
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


@attrs.frozen(kw_only=True)
class PluginTraceback:
    """An exception that a plugin raised.

    `traceback` contains only the lines outside kschedd.
    """

    plugin: str
    method: str
    message: str
    traceback: str


@attrs.frozen(eq=False)
class HungCall:
    """A call that was abandoned."""

    pod: str  # uid of the pod of this call, or ""
    returned: threading.Event
    method: str = ""


def _pod_of(args: tuple[Any, ...]) -> str:
    """Return the uid of the pod among the arguments of a call, or ""."""
    return next((arg.uid for arg in args if isinstance(arg, Pod)), "")


_this_thread = threading.local()


@contextmanager
def without_limits() -> Iterator[None]:
    """Call plugins in this thread without a time limit, inside the context.

    Calls without limits are much faster, but a hanging plugin blocks the thread.
    """
    _this_thread.call = GuardedCall(limited=False)
    try:
        yield
    finally:
        _this_thread.call = None


@contextmanager
def waited_for() -> Iterator[None]:
    """Give this thread's plugin call exclusive access to the scheduler's state.

    Raise RuntimeError in an abandoned call, or in a thread that a plugin started.
    """
    call: GuardedCall | None = getattr(_this_thread, "call", None)
    if call is None:
        raise RuntimeError("allowed only within a call by the scheduler")
    with nullcontext() if call.scheduler is None else call.scheduler.taken(), call.lock:
        if call.given_up:
            raise RuntimeError("this call took too long and was abandoned")
        yield


@contextmanager
def alone(scheduler: SchedulerLock | None) -> Iterator[None]:
    """Give the caller exclusive access to the scheduler's state from any thread.

    Unlike `waited_for`, this function also works in a plugin's own threads and in abandoned calls. `scheduler` is the
    lock for a plugin's own thread; None if one thread does all work.
    """
    call: GuardedCall | None = getattr(_this_thread, "call", None)
    if call is not None and call.scheduler is None:
        with call.lock:  # the call was not abandoned, so the caller holds the lock for the call
            if not call.given_up:
                yield
                return
    with nullcontext() if scheduler is None else scheduler.taken():
        yield


class PluginGuard:
    """One plugin's time limits and its threads.

    `on_fault` receives faults that do not fail a call; `raised` receives every exception of the plugin.
    """

    def __init__(
        self,
        plugin: str,
        limit_s: float = PLUGIN_LIMIT_S,
        on_fault: Callable[[PluginError], None] | None = None,
        costs: CallCosts | None = None,
        raised: deque[PluginTraceback] | None = None,
    ) -> None:
        self._raised = raised
        self.plugin = plugin
        self.limit_s = limit_s
        self.limits: Mapping[str, float] = {}  # time limits in seconds by method, if they differ from `limit_s`
        self.costs = CallCosts() if costs is None else costs
        self.hanging: list[HungCall] = []
        # by method: end of the pause in seconds, and number of calls that exceeded the limit
        self._paused: dict[str, tuple[float, int]] = {}
        self._on_fault = on_fault
        self._idle: list[SimpleQueue[_Call | None]] = []  # queues of idle threads

    def call(
        self,
        name: str,
        work: Callable[..., T],
        *args: Any,
        limit_s: float | None = None,
        noted: bool = True,
        source: str = "",
    ) -> T:
        """Call the plugin's method `name`. Record the duration if `noted` is true. Raises only PluginError.

        `source` is the plugin's origin; if the call takes long at the start of the daemon, a message names it.
        """
        if self.hanging:
            self._refuse_hung(name, args)
        if self._paused:
            self._refuse_paused(name)
        current: GuardedCall | None = getattr(_this_thread, "call", None)
        if current is not None:
            return self._inline(current, name, work, args, noted)
        if self.limit_s == math.inf:
            with without_limits():
                return self._inline(_this_thread.call, name, work, args, noted)
        call = _Call(self, name, work, args)
        limit_s = self.limit_of(name) if limit_s is None else limit_s
        started = perf_counter()
        with passed_on():
            thread = self._thread()
            thread.put(call)
            if not _waited(call.guarded, name, limit_s, source):
                thread.put(None)  # the thread ends after its call
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
            why = f"{len(self.hanging)} earlier calls have not returned, and no more threads are started for it"
        elif (pod := _pod_of(args)) in [hung.pod for hung in self.hanging]:
            why = f"an earlier call{' for this pod' if pod else ''} has not returned yet"
        elif name in OWNERS_METHODS and name in [hung.method for hung in self.hanging]:
            why = "an earlier call has not returned yet, and what calls it waits for no other"
        else:
            return
        raise PluginTimeout(self.plugin, name, f"{name} was not called: {why}")

    def pause(self, name: str) -> None:
        """Record that a call exceeded its limit; a method in `OWNERS_METHODS` is then not called for a while."""
        if name in OWNERS_METHODS:
            times = self._paused.get(name, (0.0, 0))[1] + 1
            self._paused[name] = perf_counter() + 2.0 ** min(times, _LONGEST_PAUSE), times

    def _refuse_paused(self, name: str) -> None:
        until, times = self._paused.get(name, (0.0, 0))
        if (left := until - perf_counter()) > 0:
            why = f"{times} calls took too long, and it is called again in {left:.0f}s"
            raise PluginTimeout(self.plugin, name, f"{name} was not called: {why}")

    def batch(self, name: str, work: Callable[[], T], pod: Pod) -> T:
        """Run work with many calls of this plugin for one pod, with one time limit."""
        return self.call(name, lambda pod: work(), pod, noted=False)

    def limit_of(self, name: str) -> float:
        """Return the time limit for a call of this method."""
        if self.limit_s == math.inf:
            return math.inf
        return self.limits.get(name, min(self.limit_s, OWNERS_LIMIT_S) if name in OWNERS_METHODS else self.limit_s)

    def _note(self, name: str, started: float, failed: bool) -> None:
        self.costs.returned(self.plugin, name, perf_counter() - started, failed=failed)

    def report(self, fault: PluginError) -> None:
        """Report a fault that does not fail a call."""
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
            result = work(*args)
            failed = False
            return result
        except BaseException as fault:
            if not current.limited and isinstance(fault, KeyboardInterrupt):
                raise
            if not current.limited and type(fault).__name__ in _QUITS:
                raise KeyboardInterrupt("the debugger was quit") from fault
            raise self.error(name, fault) from None
        finally:
            current.calling, current.method, current.args = before
            if noted and not current.given_up:
                self._note(name, started, failed)

    def error(self, name: str, fault: BaseException) -> PluginError:
        """Return the plugin's exception as a PluginError. This method must run in the plugin's thread."""
        if isinstance(fault, PluginError):
            return fault
        error = PluginError(self.plugin, name, str(fault) if isinstance(fault, BadAnswer) else fault_text(fault))
        if self._raised is not None:
            self._raised.append(
                PluginTraceback(plugin=self.plugin, method=name, message=error.why, traceback=_trace(fault))
            )
        return error

    def __del__(self) -> None:
        for calls in self._idle:
            calls.put(None)

    def _thread(self) -> "SimpleQueue[_Call | None]":
        """Return the queue of an idle thread, or of a new one.

        The plugin may have several threads, because the queue and the scheduler call it concurrently.
        """
        try:
            return self._idle.pop()
        except IndexError:
            calls = SimpleQueue[_Call | None]()
            threading.Thread(target=_serve, args=(calls,), name=f"plugin {self.plugin}", daemon=True).start()
            return calls


def _trace(fault: BaseException) -> str:
    """Return the exception's traceback without lines of kschedd."""
    trace = traceback.TracebackException.from_exception(fault)
    trace.stack = traceback.StackSummary.from_list([frame for frame in trace.stack if not is_ours(frame.filename)])
    try:
        return "".join(trace.format())
    except Exception as broken:  # the exception's __str__ runs plugin code, which may fail
        return f"{type(fault).__name__}, whose traceback cannot be shown: {type(broken).__name__}\n"


def _waited(call: GuardedCall, name: str, limit_s: float, source: str) -> bool:
    """Wait until a call ends or its limit is reached. Return whether the call has ended."""
    if not source or limit_s <= SLOW_START_S:
        return call.done.wait(limit_s)
    if call.done.wait(SLOW_START_S):
        return True
    why = f"{name} has not returned after {SLOW_START_S:g}s, and is given up after {limit_s:g}s"
    print(f"waiting for plugin {source}: {why}", file=sys.stderr, flush=True)
    return call.done.wait(limit_s - SLOW_START_S)


class _Call:
    """A call in the plugin's thread, with its result."""

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
        except BaseException as fault:  # raised again in the caller's thread
            self.fault = guard.error(name, fault)


def _serve(calls: "SimpleQueue[_Call | None]") -> None:
    while (call := calls.get()) is not None:
        with suppress(PluginTimeout):  # the exception is stored in the call
            call.guarded.run(call.run)
        # The call refers to the guard; without this line, the guard would not be garbage-collected, and its thread
        # would not end.
        del call
