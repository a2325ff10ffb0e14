"""Tests of out-of-tree plugins with guarded methods: what they receive, what becomes of faults, and who listens."""

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

from kschedd.api.read_only import ReadOnlyPod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.args import RawArgs
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import QUEUE, ActionType, EventResource, on
from kschedd.framework.faults import PluginError, PluginTimeout
from kschedd.framework.guarding.guarded import GuardedRegistry, guarded
from kschedd.framework.guarding.views import ClusterView, HandleView, StateView
from kschedd.framework.handle import Handle
from kschedd.framework.registry import PluginLoadError, Registry
from kschedd.framework.status import Code, Status, unschedulable
from kschedd.framework.writes import Plan
from kschedd.queue.entry import QueuedPod
from tests.framework.pods import make_pod

POD = make_pod("web")


def made(cls: type[Any], **options: Any) -> Any:
    """Return the plugin, guarded."""
    return GuardedRegistry({"Mine": cls}, **options).make("Mine", None, Handle(SchedulerCache()))


class Mine:
    name: ClassVar = "Mine"

    def filter(self, state: Any, pod: Any, node: Any) -> Any:
        return None


class Listener:
    """A listener that stores the calls and makes them."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, Any]] = []

    def answered(self, plugin: str, method: str, call: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        answer = call(*args)
        self.calls.append((plugin, method, answer))
        return answer


def test_a_method_receives_views_and_its_result_is_converted() -> None:
    seen: list[Any] = []

    class Filters(Mine):
        def pre_filter(self, state: Any, pod: Any, cluster: Any) -> Any:
            seen.extend((state, pod, cluster))
            return Status(Code.UNSCHEDULABLE, ["no"], "Other")

    answer = made(Filters).pre_filter(CycleState(), POD, SchedulerCache())
    assert answer == Status(Code.UNSCHEDULABLE, ("no",), "Mine")
    assert list(map(type, seen)) == [StateView, ReadOnlyPod, ClusterView]


def test_normalize_receives_scores_that_it_may_change() -> None:
    class Normalizes(Mine):
        def score(self, state: Any, pod: Any, node: Any) -> int:
            return 1

        def normalize(self, state: Any, pod: Any, scores: Any) -> Any:
            scores += 1
            return scores

    scores = np.array([1, 2])
    assert made(Normalizes).normalize(CycleState(), POD, scores).tolist() == [2, 3]
    assert scores.tolist() == [1, 2]


def test_faults_of_unreserve_and_post_bind_are_reported_and_fail_no_pod() -> None:
    class Fails(Mine):
        def reserve(self, state: Any, pod: Any, node_name: str) -> None:
            raise ValueError("reserve")

        def unreserve(self, state: Any, pod: Any, node_name: str) -> None:
            raise ValueError("unreserve")

        def post_bind(self, state: Any, pod: Any, node_name: str) -> None:
            raise ValueError("post_bind")

    faults: list[PluginError] = []
    plugin = made(Fails, on_fault=faults.append)
    with pytest.raises(PluginError, match="ValueError: reserve"):
        plugin.reserve(CycleState(), POD, "n1")
    assert plugin.unreserve(CycleState(), POD, "n1") is None
    assert plugin.post_bind(CycleState(), POD, "n1") is None
    assert [(fault.plugin, fault.method) for fault in faults] == [("Mine", "unreserve"), ("Mine", "post_bind")]


def test_an_async_method_is_run_within_the_limit_of_its_call() -> None:
    class Binds(Mine):
        async def bind(self, state: Any, pod: Any, node_name: str) -> None: ...

    runs: list[tuple[str, Any, float]] = []

    def run(method: Callable[..., Any], args: Any, limit_s: float) -> Any:
        runs.append((method.__name__, args[2], limit_s))
        if args[2] == "slow":
            raise TimeoutError
        return Status(Code.SKIP)

    plugin = made(Binds, run_async=run, limit_s=7.0)
    assert plugin.bind(CycleState(), POD, "n1") == Status(Code.SKIP, (), "Mine")
    with pytest.raises(PluginTimeout, match="plugin Mine: bind did not return within 7s"):
        plugin.bind(CycleState(), POD, "slow")
    assert runs == [("bind", "n1", 7.0), ("bind", "slow", 7.0)]


def test_a_listener_observes_every_call() -> None:
    class Everything(Mine):
        def sort_key(self, entry: Any) -> Any:
            return entry.pod.name

        def pre_bind(self, state: Any, pod: Any, node_name: str) -> Any:
            return Plan((), lambda cluster: unschedulable(type(cluster).__name__))

        def events_to_register(self) -> Any:
            return [on(EventResource.POD, ActionType.ADD, lambda pod, old, new: QUEUE if new is None else None)]

    plugin = made(Everything)
    for listener in (None, Listener()):
        plugin.listener = listener
        assert plugin.filter(CycleState(), POD, None) is None
        assert plugin.batch("filter", lambda: 7, POD) == 7
        assert plugin.sort_key(QueuedPod(POD, POD.key, 5)) == (0, (2, "web"), 0, 5)
        [registered] = plugin.events_to_register()
        assert registered.hint(POD, None, None) is QUEUE
        with pytest.raises(PluginError, match="a queueing hint returned None; QUEUE or QUEUE_SKIP is expected"):
            registered.hint(POD, None, POD)
        plan = plugin.pre_bind(CycleState(), POD, "n1")
        assert plan.ready(SchedulerCache()) == Status(Code.UNSCHEDULABLE, ("ClusterView",), "Mine")
    assert isinstance(listener, Listener)
    assert [(name, method) for name, method, _ in listener.calls] == [
        ("Mine", method) for method in ("filter", "batch", "sort_key", "hint", "pre_bind", "ready")
    ]


def test_a_pod_whose_sort_key_fails_comes_last_by_priority_and_time() -> None:
    class Sorts(Mine):
        def sort_key(self, entry: Any) -> Any:
            entry.timestamp = 0  # of a copy
            return 1 / (entry.pod.name != "bad")

    def entry(name: str, priority: int, timestamp: int) -> QueuedPod:
        pod = make_pod(name)
        return QueuedPod(type(pod).from_raw({**pod.raw, "spec": {"priority": priority}}), name, timestamp)

    faults: list[PluginError] = []
    plugin = made(Sorts, on_fault=faults.append)
    entries = [entry("bad", 1, 5), entry("good", 1, 7), entry("bad", 2, 6), entry("good", 2, 8), entry("bad", 2, 5)]
    in_order = sorted(entries, key=plugin.sort_key)
    assert [(each.key, each.priority, each.timestamp) for each in in_order] == [
        *(("good", 2, 8), ("good", 1, 7)),
        *(("bad", 2, 5), ("bad", 2, 6), ("bad", 1, 5)),
    ]
    assert [fault.method for fault in faults] == ["sort_key"] * 3


def test_limits_are_set_by_extension_point() -> None:
    plugin = made(Mine, limit_s=9.0)
    plugin.limit({"score": 2.0, "pre_filter": 3.0})
    limits = [plugin.guard.limit_of(method) for method in ("score", "score_rows", "normalize", "add_pod", "filter")]
    assert limits == [2.0, 2.0, 2.0, 3.0, 9.0]


@pytest.mark.parametrize("value", [None, (), frozenset()])
def test_a_plugin_that_declares_no_inputs_is_always_called(value: Any) -> None:
    assert made(type("Declares", (Mine,), {"depends_on": value})).depends_on is None


def test_declared_inputs_are_known_ones() -> None:
    plugin = made(type("Declares", (Mine,), {"depends_on": ["node", "pods"]}))
    assert plugin.depends_on == frozenset({"node", "pods"})
    for value in ("node", {"moon"}, [7]):
        with pytest.raises(PluginLoadError, match=r"depends_on is .*; None, or a frozenset of \['node', 'pods', 'req"):
            made(type("Declares", (Mine,), {"depends_on": value}))


# -- the registry ----------------------------------------------------------------------------------------------------


class Takes(Mine):
    def __init__(self, args: Any, handle: Any) -> None:
        if args == "bad":
            raise ValueError("boom")
        self.args, self.handle = args, handle
        TAKEN[:] = args, handle

    @classmethod
    def from_args(cls, args: Any, handle: Any) -> "Takes":
        return cls(args, handle)


TAKEN: list[Any] = []


def test_a_plugin_is_constructed_with_read_only_arguments_and_a_view_of_the_handle() -> None:
    registry, handle = GuardedRegistry({"Mine": Takes}, sources={"Mine": "mine.py"}), Handle(SchedulerCache(), seed=7)
    registry.make("Mine", RawArgs({"zones": ["a"]}), handle)
    args, view = TAKEN
    with pytest.raises(TypeError):
        args.values["zones"].append("b")
    assert (args.values, view.seed, type(view)) == ({"zones": ["a"]}, 7, HandleView)
    registry.make("Mine", 7, handle)
    assert TAKEN[0] == 7
    with pytest.raises(PluginLoadError, match=r"^mine\.py: plugin Mine cannot be created: ValueError: boom"):
        registry.make("Mine", "bad", handle)
    assert registry.make("NodeName", None, handle).name == "NodeName"


def test_exceptions_are_stored_only_without_a_limit() -> None:
    class Raises(Mine):
        def filter(self, state: Any, pod: Any, node: Any) -> Any:
            raise ValueError("boom")

    for limit_s, stored in ((5.0, None), (math.inf, ["ValueError: boom"])):
        registry = GuardedRegistry({"Mine": Raises}, limit_s=limit_s)
        plugin = registry.make("Mine", None, Handle(SchedulerCache()))
        with pytest.raises(PluginError):
            plugin.filter(CycleState(), POD, None)
        raised = None if registry.raised is None else [each.message.partition(" (")[0] for each in registry.raised]
        assert raised == stored


def test_a_registry_is_guarded_once() -> None:
    class Labels:
        name = "Labels"

        def validate(self, operation: str, new: Any, old: Any) -> None: ...

    def run(method: Any, args: Any, limit_s: float) -> None: ...

    plain = Registry(start_limit_s=3.0, run_async=run)
    plain.add(Mine, "mine.py")
    plain.add(Labels, "labels.py")
    found = guarded(plain)
    assert guarded(found) is found
    assert (found.added, found.source_of("Mine")) == ({"Mine": Mine}, "mine.py")
    assert (found.validating, found.source_of("Labels")) == ({"Labels": Labels}, "labels.py")
    assert (found.start_limit_s, found.run_async) == (3.0, run)
    assert guarded(None).added == {}
