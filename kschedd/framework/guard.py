"""The guard around one out-of-tree plugin: no call of it lasts longer than a limit, and every fault bears its name.

A call runs in a thread of the plugin's own while its caller waits, at most for the limit. A call that is not back by
then is given up (nothing can stop a thread), and until it does come back every further call of that plugin fails at
once, so that one hang costs one wait and one thread. Callers are in worker threads themselves where the daemon's
loop must go on.

`filter` and `score`, which look at one node at a time, are called thousands of times for one pod: there the limit is
around a whole shard of nodes (`GuardedCall`), kept by the filter workers, or by `PluginGuard.batch` where nobody else
keeps it.

Whatever a plugin raises, `SystemExit` and `KeyboardInterrupt` among it, reaches the caller as a PluginError, whose text
was made in the plugin's thread: an exception's own `__str__` is the plugin's code, too.

What cannot be contained within one process: a crash of the interpreter (`os._exit`, a fault in C code), C code that
never releases the interpreter's lock, and memory.

Source: none upstream; a plugin of kube-scheduler that hangs, hangs it.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, Final, TypeVar

import attrs

from kschedd.framework.faults import BadAnswer, PluginError, PluginTimeout
from kschedd.framework.status import fault_text

T = TypeVar("T")

PLUGIN_LIMIT_S: Final = 5.0  # how long a call of an out-of-tree plugin may take
START_LIMIT_S: Final = 30.0  # how long its module may take to be imported, or itself to be made


@attrs.define(eq=False)
class GuardedCall:
    """A piece of work that calls plugins, in a thread where somebody keeps the limit; says whom it is calling."""

    done: threading.Event = attrs.field(factory=threading.Event)
    calling: "PluginGuard | None" = None
    method: str = ""
    given_up: bool = False
    # Held while the plugin has us change what we cache (a column of labels that nobody asked for before).
    lock: threading.Lock = attrs.field(factory=threading.Lock)

    def run(self, work: Callable[[], T]) -> T:
        """In the thread."""
        _this_thread.call = self
        try:
            return work()
        finally:
            _this_thread.call = None
            self.done.set()

    def give_up(self, limit_s: float) -> PluginTimeout:
        """It lasted longer than the limit: whom to blame. That plugin is not called again before this is done."""
        with self.lock:
            self.given_up = True
        if self.calling is None:
            return PluginTimeout("", "", f"a plugin did not return within {limit_s:g}s")
        self.calling.hanging.append(self.done)
        return self.calling.timeout(self.method, limit_s)


_this_thread = threading.local()


@contextmanager
def waited_for() -> Iterator[None]:
    """While this lasts the caller of the plugin that runs in this thread waits for it, and changes nothing.

    Raises RuntimeError in a call that was given up, and in a thread that a plugin started.
    """
    call: GuardedCall | None = getattr(_this_thread, "call", None)
    if call is None:
        raise RuntimeError("only within a call that the scheduler makes")
    with call.lock:
        if call.given_up:
            raise RuntimeError("this call took too long and was given up")
        yield


class PluginGuard:
    """The limit on one plugin's calls, and the thread that makes them; `on_fault` hears what has no consequence."""

    def __init__(
        self, plugin: str, limit_s: float = PLUGIN_LIMIT_S, on_fault: Callable[[PluginError], None] | None = None
    ) -> None:
        self.plugin = plugin
        self.limit_s = limit_s
        self.hanging: list[threading.Event] = []  # set when a call that was given up comes back after all
        self._on_fault = on_fault
        self._calls: SimpleQueue[_Call | None] | None = None

    def call(self, name: str, work: Callable[..., T], *args: Any, limit_s: float | None = None) -> T:
        """Run this for the plugin's method `name`. Raises PluginError, and nothing else."""
        if self.hanging:
            self.hanging = [done for done in self.hanging if not done.is_set()]
            if self.hanging:
                raise PluginTimeout(self.plugin, name, f"{name} was not called: an earlier call has not returned yet")
        current: GuardedCall | None = getattr(_this_thread, "call", None)
        if current is not None:
            return self._inline(current, name, work, args)
        call = _Call(self, name, work, args)
        self._thread().put(call)
        limit_s = self.limit_s if limit_s is None else limit_s
        if not call.guarded.done.wait(limit_s):
            self._calls = None  # that thread is lost to us
            raise call.guarded.give_up(limit_s)
        if call.fault is not None:
            raise call.fault
        return call.value  # type: ignore[no-any-return]

    def batch(self, name: str, work: Callable[[], T]) -> T:
        """Run work that makes many calls of this plugin as one call: if it lasts too long, that is this plugin's."""
        return self.call(name, work)

    def report(self, fault: PluginError) -> None:
        """A fault that stays without consequence."""
        if self._on_fault is not None:
            self._on_fault(fault)

    def timeout(self, name: str, limit_s: float | None = None) -> PluginTimeout:
        limit_s = self.limit_s if limit_s is None else limit_s
        return PluginTimeout(self.plugin, name, f"{name} did not return within {limit_s:g}s")

    def _inline(self, current: GuardedCall, name: str, work: Callable[..., T], args: tuple[Any, ...]) -> T:
        if current.given_up:
            raise self.timeout(name)
        before = current.calling, current.method
        current.calling, current.method = self, name
        try:
            return work(*args)
        except BaseException as fault:
            raise self.error(name, fault) from None
        finally:
            current.calling, current.method = before

    def error(self, name: str, fault: BaseException) -> PluginError:
        """What this plugin raised, as ours. To be called in the plugin's thread."""
        if isinstance(fault, PluginError):
            return fault
        if isinstance(fault, BadAnswer):
            return PluginError(self.plugin, name, str(fault))
        return PluginError(self.plugin, name, fault_text(fault))

    def __del__(self) -> None:
        if self._calls is not None:
            self._calls.put(None)

    def _thread(self) -> "SimpleQueue[_Call | None]":
        if self._calls is None:
            self._calls = calls = SimpleQueue[_Call | None]()
            threading.Thread(target=_serve, args=(calls,), name=f"plugin {self.plugin}", daemon=True).start()
        return self._calls


class _Call:
    """One call on its way to the plugin's thread and back."""

    __slots__ = ("args", "fault", "guarded", "value", "work")

    def __init__(self, guard: PluginGuard, name: str, work: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.work, self.args = work, args
        self.guarded = GuardedCall(calling=guard, method=name)
        self.value: Any = None
        self.fault: PluginError | None = None

    def run(self) -> None:
        guard, name = self.guarded.calling, self.guarded.method
        assert guard is not None, "a call is some plugin's"
        try:
            self.value = self.work(*self.args)
        except BaseException as fault:  # carried to the caller
            self.fault = guard.error(name, fault)


def _serve(calls: "SimpleQueue[_Call | None]") -> None:
    while (call := calls.get()) is not None:
        call.guarded.run(call.run)
        if call.guarded.given_up:
            return  # another thread has taken over
        del call  # it holds the guard, whose end is the thread's
