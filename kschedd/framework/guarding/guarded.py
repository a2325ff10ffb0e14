"""GuardedPlugin: an out-of-tree plugin with guarded versions of its methods.

`GuardedRegistry.make` constructs the plugin inside the guard. The registry reads every attribute of the plugin that the
scheduler needs (methods, dependencies, registered events) once. The returned GuardedPlugin has only these attributes. A
call passes read-only views instead of the scheduler's own objects (`views`), and its return value is validated and
copied (`answers`) before the scheduler uses it. In-tree plugins are not guarded, because they are part of the program.

Errors: construction raises PluginLoadError, and the methods raise PluginError.
"""

import inspect
import math
from collections import deque
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol, get_args, get_origin, get_type_hints

import attrs
import numpy as np

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod, PodSignature
from kschedd.api.read_only import read_only, read_only_signature
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Ints, NodeTable, TableCopy
from kschedd.config.args import RawArgs, written
from kschedd.framework import fast_path
from kschedd.framework.costs import CallCosts
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.fast_path import DEPENDENCIES
from kschedd.framework.faults import BadAnswer, PluginError, shown
from kschedd.framework.guard import PLUGIN_LIMIT_S, START_LIMIT_S, PluginGuard, PluginTraceback
from kschedd.framework.guarding import answers
from kschedd.framework.guarding.views import (
    ClusterView,
    HandleView,
    PostFilterViewView,
    StateView,
    TableView,
    array,
    data_of,
    node_info,
)
from kschedd.framework.handle import Handle
from kschedd.framework.interface import (
    POINTS,
    EnqueueExtensions,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    Plugin,
    PostFilterResult,
    PreFilterResult,
    QueueSortPlugin,
    methods_of,
    missing_methods,
)
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.plugin_file import PluginRecipe, file_of
from kschedd.framework.registry import Registry, RunAsync, no_async
from kschedd.framework.status import Code, Status
from kschedd.framework.writes import Plan
from kschedd.values import frozen

if TYPE_CHECKING:
    from kschedd.framework.guarding.processes import ProcessPlugin, WorkerProcesses

Check = Callable[["GuardedPlugin", str, tuple[Any, ...], Any], Any]
"""Arguments: the plugin, the method, the scheduler's original arguments of the call, and the return value."""

_MOST_RAISED: Final = 100  # maximum number of stored plugin exceptions
# Protocols that are guarded elsewhere, or that out-of-tree plugins cannot implement.
_UNCHECKED: Final = (QueueSortPlugin, EnqueueExtensions, PlacementGeneratePlugin, PlacementScorePlugin)

# return annotation -> check of the return value; an Annotated type lists codes that are also allowed
_CHECKS: Final[Mapping[Any, Callable[["GuardedPlugin", str, tuple[Any, ...], Any, tuple[Code, ...]], Any]]] = {
    type(None): lambda plugin, method, args, value, codes: None,
    Status | None: lambda plugin, method, args, value, codes: answers.status(method, value, plugin.name, *codes),
    Status: lambda plugin, method, args, value, codes: answers.rejection(method, value, plugin.name),
    Status | PreFilterResult | None: lambda plugin, method, args, value, codes: answers.pre_filter(
        method, value, plugin.name
    ),
    Ints | None: lambda plugin, method, args, value, codes: answers.codes(method, value, len(args[-1])),
    Ints: lambda plugin, method, args, value, codes: answers.column(method, value, len(args[-1])),
    int | Status: lambda plugin, method, args, value, codes: answers.score(method, value, plugin.name),
    PostFilterResult: lambda plugin, method, args, value, codes: answers.post_filter(
        method, value, plugin.name, args[2].pod
    ),
    Plan | None: lambda plugin, method, args, value, codes: answers.unreserve(method, value),
    tuple[Status | None, float] | Status | None: lambda plugin, method, args, value, codes: answers.permit(
        method, value, plugin.name
    ),
    Plan | Status | None: lambda plugin, method, args, value, codes: answers.plan(
        method, value, plugin.name, plugin.ready
    ),
    Collection[str]: lambda plugin, method, args, value, codes: answers.idle_points(method, value),
    Hashable: lambda plugin, method, args, value, codes: answers.plain_key(method, value),
}


def _check_of(protocol: type[Plugin], method: str) -> Check:
    returns = get_type_hints(getattr(protocol, method), include_extras=True)["return"]
    codes: tuple[Code, ...] = ()
    if get_origin(returns) is Annotated:
        returns, *extra = get_args(returns)
        codes = tuple(code for code in extra if isinstance(code, Code))
    check = _CHECKS[returns]
    return lambda plugin, name, args, value: check(plugin, name, args, value, codes)


def _guarded_methods() -> dict[str, Check]:
    protocols: list[type[Plugin]] = [
        protocol for point in POINTS.values() for protocol in (*point.any_of, *point.extensions)
    ]
    return {
        method: _check_of(protocol, method)
        for protocol in [*protocols, *fast_path.METHODS]
        if protocol not in _UNCHECKED
        for method in methods_of(protocol)
    }


GUARDED_METHODS: Final[Mapping[str, Check]] = _guarded_methods()
"""The methods of a plugin that are called for a pod, with the checks of their return values.

They are derived from the Protocols of the extension points and of the fast path.
"""

_MAY_BE_ASYNC: Final = ("pre_bind", "bind", "post_bind")
_WITHOUT_CONSEQUENCE: Final = ("unreserve", "post_bind")  # methods whose faults are only reported


# -- arguments of calls ----------------------------------------------------------------------------------------------


def _entry(entry: Any) -> Any:
    """Return a copy of a QueuedPod, because the queue modifies the original."""
    return attrs.evolve(entry, pod=read_only(entry.pod))


_OUTGOING: Final[Mapping[type, Callable[[Any, PluginGuard], Any]]] = {
    Pod: lambda pod, guard: read_only(pod),
    Node: lambda node, guard: read_only(node),
    Object: lambda obj, guard: read_only(obj),
    PodSignature: lambda signature, guard: read_only_signature(signature),
    CycleState: StateView,
    SchedulerCache: lambda cluster, guard: ClusterView(cluster),
    NodeTable: lambda table, guard: TableView(table),
    TableCopy: lambda table, guard: TableView(table),
    NodeInfo: lambda info, guard: node_info(info),
    np.ndarray: lambda values, guard: array(values),
}


def _outgoing(args: tuple[Any, ...], guard: PluginGuard) -> list[Any]:
    out = []
    for arg in args:
        convert = _OUTGOING.get(type(arg))
        out.append(arg if convert is None else convert(arg, guard))
    return out


# -- the plugin ------------------------------------------------------------------------------------------------------


class AnswerListener(Protocol):
    """An observer of the return values of out-of-tree plugins, such as a recording."""

    def answered(self, plugin: str, method: str, call: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Make the call and return its result."""


class GuardedPlugin:
    """An out-of-tree plugin with the methods that it had at construction, each guarded.

    Construct it inside the guard.
    """

    name: str
    listener: AnswerListener | None = None

    def __init__(self, name: str, plugin: Any, guard: PluginGuard, run_async: RunAsync) -> None:
        self.name = name
        self.guard = guard
        self._run_async = run_async
        self.depends_on = _depends_on(getattr(plugin, "depends_on", None))
        self.worker_processes = answers.process_count(getattr(plugin, "worker_processes", 0))
        self.elsewhere: tuple[WorkerProcesses, ProcessPlugin] | None = None
        for method, check in GUARDED_METHODS.items():
            found = getattr(plugin, method, None)
            if callable(found):
                setattr(self, method, self._heard(method, self._guarded(method, found, check)))
        sort_key = getattr(plugin, "sort_key", None)
        if callable(sort_key):
            self.sort_key = self._heard("sort_key", self._sorting(sort_key))
        register = getattr(plugin, "events_to_register", None)
        if callable(register):
            events = answers.registrations("events_to_register", register(), self._hint)
            self.events_to_register = lambda: events
        if missing := missing_methods(self):
            raise BadAnswer(f"{missing}; both are required")

    def limit(self, by_point: Mapping[str, float]) -> None:
        """Set the time limits of the plugin's calls by extension point; other calls have the daemon's limit."""
        self.guard.limits = {
            method: seconds
            for point, seconds in by_point.items()
            for protocol in (*POINTS[point].any_of, *POINTS[point].extensions)
            for method in methods_of(protocol)
        }

    def batch(self, method: str, work: Callable[[], Any], pod: Pod) -> Any:
        """Run work that makes many calls of this plugin for one pod, with one limit."""
        return self._heard("batch", self.guard.batch)(method, work, pod)

    def call_elsewhere(
        self, method: str, state: CycleState, pod: Pod, table: NodeTable, rows: Sequence[int]
    ) -> list[answers.Answer | PluginError]:
        """Return the result of the plugin's `filter` or `score` for each row, from a worker process.

        Raises PluginError.
        """
        assert self.elsewhere is not None, "a plugin that has worker processes is expected"
        processes, plugin = self.elsewhere
        guard = self.guard
        data = data_of(state, guard)
        call = self._heard("elsewhere", processes.call)
        value: list[answers.Answer | PluginError] = call(
            plugin, method, data, pod, table, rows, guard.limit_of(method), guard.costs
        )
        return value

    def _heard(self, method: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return the call, wrapped so that the listener observes it, if there is a listener."""

        def heard(*args: Any) -> Any:
            listener = self.listener
            return call(*args) if listener is None else listener.answered(self.name, method, call, args)

        heard.__name__ = method
        return heard

    def _guarded(self, name: str, method: Callable[..., Any], check: Check) -> Callable[..., Any]:
        guard = self.guard
        is_async = name in _MAY_BE_ASYNC and inspect.iscoroutinefunction(method)

        def work(*args: Any) -> Any:
            out = _outgoing(args, guard)
            if is_async:
                try:
                    value = self._run_async(method, out, guard.limit_of(name))
                except TimeoutError:
                    raise guard.timeout(name) from None
                return check(self, name, args, value)
            if name == "post_filter":
                out[3] = PostFilterViewView(args[3], args[1])
            elif name == "normalize":
                out[2] = args[2].copy()  # a copy, because plugins often write into this array
            return check(self, name, args, method(*out))

        def call(*args: Any) -> Any:
            return guard.call(name, work, *args)

        def counted(*args: Any) -> Any:
            try:
                return guard.call(name, work, *args)
            except PluginError as fault:
                guard.report(fault)
                return None

        return counted if name in _WITHOUT_CONSEQUENCE else call

    def ready(self, ready: Callable[..., Any]) -> Callable[[SchedulerCache], Any]:
        """Return a plan's `ready` callback, guarded."""

        def work(cluster: SchedulerCache) -> Any:
            return answers.status("ready", ready(ClusterView(cluster)), self.name)

        return self._heard("ready", lambda cluster: self.guard.call("ready", work, cluster))

    def _hint(self, hint: Callable[..., Any]) -> Callable[[Any, Any, Any], Any]:
        def work(pod: Any, old: Any, new: Any) -> Any:
            return answers.hint("a queueing hint", hint(*_outgoing((pod, old, new), self.guard)))

        return self._heard("hint", lambda pod, old, new: self.guard.call("hint", work, pod, old, new))

    def _sorting(self, sort_key: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
        """Return a function that computes the plugin's sort key, as comparable built-in values.

        If the computation fails, the pod sorts after all other pods; these pods are sorted by priority and time.
        """

        def work(entry: Any) -> Any:
            return answers.sort_key("sort_key", sort_key(_entry(entry)))

        def key(entry: Any) -> tuple[Any, ...]:
            otherwise = -entry.pod.priority, entry.timestamp
            try:
                return 0, self.guard.call("sort_key", work, entry), *otherwise
            except PluginError as fault:
                self.guard.report(fault)
                return 1, (), *otherwise

        return key


def _depends_on(value: object) -> frozenset[str] | None:
    if value is None:
        return None
    if not isinstance(value, set | frozenset | tuple | list) or not all(
        isinstance(item, str) and item in DEPENDENCIES for item in value
    ):
        raise BadAnswer(f"depends_on is {shown(value)}; None, or a frozenset of {sorted(DEPENDENCIES)} is expected")
    return frozenset(str(item) for item in value) or None


# -- the registry ----------------------------------------------------------------------------------------------------


class GuardedRegistry(Registry):
    """A registry that guards out-of-tree plugins.

    `limit_s` is the time limit of one call in seconds. If the limit is infinite, plugins are called in the caller's
    thread, and their latest exceptions are stored in `raised`. `on_fault` receives faults that do not fail a call.
    If `processes` is None, no plugin uses worker processes.
    """

    def __init__(
        self,
        added: Mapping[str, type[Any]] | None = None,
        *,
        limit_s: float = PLUGIN_LIMIT_S,
        start_limit_s: float = START_LIMIT_S,
        sources: Mapping[str, str] | None = None,
        on_fault: Callable[[PluginError], None] | None = None,
        run_async: RunAsync = no_async,
        processes: "WorkerProcesses | None" = None,
    ) -> None:
        super().__init__(dict(added or {}), dict(sources or {}), start_limit_s, run_async)
        self.processes = processes
        self.limit_s = limit_s
        self.on_fault = on_fault
        self.costs = CallCosts()
        self.raised: deque[PluginTraceback] | None = deque(maxlen=_MOST_RAISED) if limit_s == math.inf else None

    def make(self, name: str, args: Any, handle: Handle) -> Any:
        """Return a plugin ready for use. Raise PluginLoadError if an out-of-tree plugin cannot be constructed."""
        if name not in self.added:
            return super().make(name, args, handle)
        guard = PluginGuard(name, self.limit_s, self.on_fault, self.costs, self.raised)
        try:
            return guard.call(
                "from_args",
                self._made,
                name,
                args,
                handle,
                guard,
                limit_s=self.start_limit_s,
                noted=False,
                source=f"{name} ({self.sources[name]})" if name in self.sources else name,
            )
        except PluginError as fault:
            raise self.cannot_make(name, fault) from None

    def _made(self, name: str, args: Any, handle: Handle, guard: PluginGuard) -> GuardedPlugin:
        if isinstance(args, RawArgs):
            args = attrs.evolve(args, values=frozen(args.values))
        view: Any = HandleView(handle)
        plugin = GuardedPlugin(name, self.construct(name, args, view), guard, self.run_async)
        if plugin.worker_processes and self.processes is not None:
            cls = self.added[name]
            value = None if args is None else written(args)
            recipe = PluginRecipe(
                name, cls.__module__, cls.__qualname__, file_of.get(cls), value, dict(handle.feature_gates), handle.seed
            )
            plugin.elsewhere = self.processes, self.processes.plugin(recipe, plugin.worker_processes)
        return plugin


def guarded(registry: Registry | None) -> GuardedRegistry:
    """Return the registry if it guards its plugins; otherwise return a guarding registry with the same plugins."""
    if isinstance(registry, GuardedRegistry):
        return registry
    if registry is None:
        return GuardedRegistry()
    made = GuardedRegistry(
        registry.added,
        sources=registry.sources,
        start_limit_s=registry.start_limit_s,
        run_async=registry.run_async,
    )
    made.validating.update(registry.validating)
    made.validating_sources.update(registry.validating_sources)
    return made
