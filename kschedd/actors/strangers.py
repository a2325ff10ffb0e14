"""Plugins from elsewhere, kept on a leash: no call of theirs lasts longer than a limit, and every fault bears their
name.

A call runs in a thread of the plugin's own while its caller waits, at most for the limit. A call that is not back by
then is given up (nothing can stop a thread), and until it does come back every further call of that plugin fails at
once, so that one hang costs one wait and one thread. Callers are in worker threads themselves where the daemon's
loop must go on.

`filter` and `score`, which look at one node at a time, are called thousands of times for one pod: the filter workers
put the limit around a whole shard of nodes instead (`Errand`).

Source: none upstream; a plugin of kube-scheduler that hangs, hangs it.
"""

import threading
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any, ClassVar, Final, TypeVar

import attrs

from kschedd.errors import KscheddError
from kschedd.framework.events import ClusterEventWithHint
from kschedd.framework.handle import Handle
from kschedd.framework.registry import Registry
from kschedd.queue.scheduling_queue import by_priority

T = TypeVar("T")

LEASHED: Final = frozenset(
    (
        "pre_enqueue",
        "pre_filter",
        "filter",
        "filter_rows",
        "code_status",
        "add_pod",
        "remove_pod",
        "post_filter",
        "pre_score",
        "score",
        "score_rows",
        "normalize",
        "epoch",
        "reserve",
        "unreserve",
        "permit",
        "pre_bind_pre_flight",
        "pre_bind",
        "bind",
        "post_bind",
    )
)
"""The methods of a plugin that are called on behalf of a pod."""

_BLAME: Final = "kschedd_plugin"  # attribute of an exception: "plugin.method" that raised it


@attrs.define(eq=False)
class PluginHangs(KscheddError):
    """A call that was given up, or was not made because an earlier one still runs."""

    plugin: str
    method: str
    limit_s: float
    rpc_code: ClassVar[str] = "timeout"

    def __str__(self) -> str:
        whose = f"plugin {self.plugin}: {self.method}" if self.plugin else self.method
        return f"{whose} did not return within {self.limit_s:g}s"


def blamed(fault: BaseException) -> str:
    """`plugin.method` if a plugin from elsewhere raised this; "" if it is ours."""
    if isinstance(fault, PluginHangs):
        return f"{fault.plugin}.{fault.method}"
    return str(getattr(fault, _BLAME, ""))


@attrs.define(eq=False)
class Errand:
    """A piece of work that calls plugins, in a thread where somebody else keeps the limit; says whom it is calling."""

    done: threading.Event = attrs.field(factory=threading.Event)
    calling: "Leash | None" = None
    method: str = ""

    def run(self, work: Callable[[], T]) -> T:
        """In the thread."""
        _this_thread.errand = self
        try:
            return work()
        finally:
            _this_thread.errand = None
            self.done.set()

    def give_up(self, limit_s: float) -> "PluginHangs":
        """It lasted longer than the limit: whom to blame. That plugin is not called again before this is done."""
        if self.calling is None:
            return PluginHangs("", "a plugin", limit_s)
        self.calling.given_up.append(self.done)
        return PluginHangs(self.calling.plugin, self.method, limit_s)


_this_thread = threading.local()


@attrs.define(eq=False)
class _Call:
    method: Callable[..., Any]
    args: tuple[Any, ...]
    errand: Errand = attrs.field(factory=Errand)
    value: Any = None
    fault: BaseException | None = None

    def run(self) -> None:
        try:
            self.value = self.method(*self.args)
        except BaseException as fault:  # carried to the caller
            self.fault = fault


class Leash:
    """The limit on one plugin's calls, and the thread that makes them."""

    def __init__(self, plugin: str, limit_s: float) -> None:
        self.plugin = plugin
        self.limit_s = limit_s
        self.given_up: list[threading.Event] = []  # set when the call comes back after all
        self._calls: SimpleQueue[_Call] | None = None

    def call(self, name: str, method: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Call the plugin; raises what it raises, blamed on it, or PluginHangs."""
        if self.given_up:
            self.given_up = [done for done in self.given_up if not done.is_set()]
            if self.given_up:
                raise PluginHangs(self.plugin, name, self.limit_s)
        errand: Errand | None = getattr(_this_thread, "errand", None)
        if errand is not None:
            errand.calling, errand.method = self, name
            return method(*args)
        call = _Call(method, args)
        call.errand.calling, call.errand.method = self, name
        self._thread().put(call)
        if not call.errand.done.wait(self.limit_s):
            self._calls = None  # that thread is lost to us
            raise call.errand.give_up(self.limit_s)
        if call.fault is not None:
            _blame(call.fault, f"{self.plugin}.{name}")
            raise call.fault
        return call.value

    def _thread(self) -> "SimpleQueue[_Call]":
        if self._calls is None:
            self._calls = calls = SimpleQueue[_Call]()
            threading.Thread(target=_serve, args=(calls,), name=f"plugin {self.plugin}", daemon=True).start()
        return self._calls


def _serve(calls: "SimpleQueue[_Call]") -> None:
    while True:
        call = calls.get()
        call.errand.run(call.run)


def _blame(fault: BaseException, whom: str) -> None:
    try:
        setattr(fault, _BLAME, whom)
    except (AttributeError, TypeError):
        pass  # an exception class without room for it stays anonymous


class Stranger:
    """A plugin from elsewhere as the scheduler sees it: the same methods, on a leash."""

    def __init__(self, plugin: Any, leash: Leash) -> None:
        self._plugin = plugin
        self._leash = leash
        self._wrapped: dict[str, Callable[..., Any]] = {}
        self.name: str = plugin.name

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._plugin, name)
        if name in LEASHED and callable(found):
            return self._on_leash(name, found)
        if name == "sort_key" and callable(found):
            return self._sorting(found)
        if name == "events_to_register" and callable(found):
            return lambda: [self._listening(entry) for entry in found()]
        return found

    def _on_leash(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        wrapped = self._wrapped.get(name)
        if wrapped is None:
            wrapped = self._wrapped[name] = lambda *args: self._leash.call(name, method, args)
        return wrapped

    def _listening(self, entry: ClusterEventWithHint) -> ClusterEventWithHint:
        if entry.hint is None:
            return entry
        hint = entry.hint
        return attrs.evolve(entry, hint=lambda pod, old, new: self._leash.call("hint", hint, (pod, old, new)))

    def _sorting(self, sort_key: Callable[[Any], Any]) -> Callable[[Any], "SafeKey"]:
        def key(entry: Any) -> SafeKey:
            try:
                own = self._leash.call("sort_key", sort_key, (entry,))
            except Exception:  # a plugin's fault ends here: the pod stands where PrioritySort would put it
                own = None
            return SafeKey(own, by_priority(entry))

        return key


@attrs.define(eq=False)
class SafeKey:
    """A stranger's sort key; where two of them cannot be compared, priority and time decide."""

    own: Any
    otherwise: tuple[int, int]

    def __lt__(self, other: "SafeKey") -> bool:
        try:
            return bool(self.own < other.own)
        except Exception:  # whatever their comparison raises
            return self.otherwise < other.otherwise

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SafeKey) and not self < other and not other < self

    __hash__ = None  # type: ignore[assignment]


class LeashedRegistry(Registry):
    """A registry whose plugins from elsewhere come on a leash."""

    def __init__(self, added: Mapping[str, type[Any]], limit_s: float) -> None:
        super().__init__(dict(added))
        self.limit_s = limit_s

    def make(self, name: str, args: Any, handle: Handle) -> Any:
        made = super().make(name, args, handle)
        return Stranger(made, Leash(name, self.limit_s)) if name in self.added else made
