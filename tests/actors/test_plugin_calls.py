"""Tests of out-of-tree plugins with slow calls, and of the work that continues meanwhile.

The tests wait for events only.
"""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import pytest
import trio

from kschedd.actors.cluster import LiveCluster
from kschedd.api.pods import Pod
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw
from kschedd.config.model import Config
from kschedd.daemon import cluster_actors
from kschedd.framework.interface import PostFilterResult
from kschedd.framework.registry import Registry
from kschedd.framework.status import Status, unschedulable
from kschedd.framework.writes import Bind, Plan
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.store.cluster_api import ClusterWatch
from kschedd.store.store import Store
from tests.actors.clusters import comes_to, node, placed, pod, rejected

PATIENCE_S = 30.0  # time limit in seconds for expected events


class Gate:
    """A gate at which plugin calls wait until it opens; `pods` are the pods of waiting calls."""

    def __init__(self) -> None:
        self.pods: list[str] = []
        self.open = threading.Event()
        self._arrivals = threading.Semaphore(0)

    def pass_through(self, name: str) -> None:
        self.pods.append(name)
        self._arrivals.release()
        self.open.wait(PATIENCE_S)

    async def arrival(self) -> None:
        """Wait for the next call at the gate."""
        assert await trio.to_thread.run_sync(partial(self._arrivals.acquire, timeout=PATIENCE_S)), "no call came"


GATE = [Gate()]


@pytest.fixture
def gate() -> Any:
    GATE[0] = Gate()
    yield GATE[0]
    GATE[0].open.set()


def profiles(cls: type[Any], **points: Any) -> tuple[Config, Registry]:
    """Return the default profile and a profile "slow" to which this plugin is added."""
    plugins = {"multiPoint": {"enabled": [{"name": cls.name}]}, **points}
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": "slow", "plugins": plugins}],
    }
    registry = Registry({cls.name: cls})
    return config_from_raw(raw, catalogue={**IN_TREE, **registry.catalogue()}), registry


def slow(name: str, **spec: Any) -> dict[str, Any]:
    return pod(name, schedulerName="slow", **spec)


INSTEAD_OF_DEFAULT = {"bind": {"disabled": [{"name": "DefaultBinder"}]}}


class SlowBind:
    name: ClassVar = "SlowBind"

    def bind(self, state: Any, pod: Pod, node_name: str) -> Plan | Status:
        GATE[0].pass_through(pod.name)
        if pod.name.startswith("unlucky"):
            return unschedulable("not now")
        return Plan((Bind(pod.namespace, pod.name, pod.uid, node_name),))


def _called(driver: SchedulingDriver) -> list[str]:
    """Return the pods whose binding waits for a plugin."""
    return sorted(cycle.assumed.pod.name for cycle in driver.bindings.cycles.values() if cycle.call is not None)


async def test_bindings_run_beside_each_other_and_beside_everything_else(gate: Gate) -> None:
    config, registry = profiles(SlowBind, **INSTEAD_OF_DEFAULT)
    names = ["a", "b", "c", "d"]
    async with cluster_actors(config, registry=registry, plugin_limit_s=PATIENCE_S) as cluster:
        await cluster.store.create(node())
        await cluster.store.create_many([slow(name) for name in names])
        for _ in names:
            await gate.arrival()  # the fourth call arrives while three calls are waiting
        await cluster.store.create(pod("unrelated"))
        await placed(cluster, "unrelated")
        called = await cluster.scheduler.query(_called)
        assert called == names
        gate.open.set()
        await placed(cluster, *names)
    assert sorted(gate.pods) == names


async def test_no_more_of_them_run_at_a_time_than_there_are_threads(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kschedd.daemon.PLUGIN_CALLS", 2)
    config, registry = profiles(SlowBind, **INSTEAD_OF_DEFAULT)
    async with cluster_actors(config, registry=registry, plugin_limit_s=PATIENCE_S) as cluster:
        await cluster.store.create(node())
        await cluster.store.create_many([slow(name) for name in "abcd"])
        await gate.arrival()
        await gate.arrival()
        await cluster.store.create(pod("unrelated"))
        await placed(cluster, "unrelated")  # by then all four have been attempted
        assert len(gate.pods) == 2
        gate.open.set()
        await placed(cluster, *"abcd")


async def test_ending_waits_for_bindings_that_run(gate: Gate) -> None:
    config, registry = profiles(SlowBind, **INSTEAD_OF_DEFAULT)
    store = Store(now=lambda: 0.0)

    async def open_at_the_end(watch: ClusterWatch) -> None:
        while await watch.wait():
            watch.take()
        gate.open.set()

    async with trio.open_nursery() as nursery:
        async with cluster_actors(config, registry=registry, plugin_limit_s=PATIENCE_S, store=store) as cluster:
            await cluster.store.create(node())
            nursery.start_soon(open_at_the_end, await cluster.store.watch())
            await cluster.store.create(slow("a"))
            await gate.arrival()
    bound = store.get("Pod", "default", "a")
    assert isinstance(bound, Pod)
    assert bound.node_name == "n1"


# -- attempts ---------------------------------------------------------------------------------------------------------


def ones(state: Any, pod: Pod, table: Any, rows: Any) -> Any:
    return [1] * len(rows)


def zeros(state: Any, pod: Pod, table: Any, rows: Any) -> Any:
    return [0] * len(rows)


def no_room(*args: Any) -> PostFilterResult:
    return PostFilterResult(unschedulable("no room"))


METHODS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    # method -> its result, and further attributes of its plugin
    "pre_filter": (lambda *args: None, {}),
    "filter": (lambda *args: None, {}),
    "filter_rows": (lambda *args: None, {"code_status": lambda *args: unschedulable("no")}),
    "post_filter": (no_room, {}),
    "pre_score": (lambda *args: None, {"score": lambda *args: 1}),
    "score": (lambda *args: 1, {}),
    "score_rows": (ones, {}),
    "normalize": (lambda state, pod, scores: scores, {"score_rows": zeros}),
    "reserve": (lambda *args: None, {}),
    "permit": (lambda *args: None, {}),
}


def slow_at(method: str) -> type[Any]:
    answer, others = METHODS[method]

    def wait(*args: Any) -> Any:
        pod = args[1]
        if pod.name == "slow":
            GATE[0].pass_through(pod.name)
        return answer(*args)

    members = {name: staticmethod(value) for name, value in {**others, method: wait}.items()}
    return type("Slow", (), {"name": "Slow", **members})


@pytest.mark.parametrize("method", METHODS)
async def test_a_slow_attempt_holds_up_no_question(method: str, gate: Gate) -> None:
    plugin = slow_at(method)
    points = {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}} if method == "post_filter" else {}
    config, registry = profiles(plugin, **points)
    async with cluster_actors(config, registry=registry, plugin_limit_s=PATIENCE_S) as cluster:
        await cluster.store.create_many([node("n1"), node("n2")])
        await cluster.store.create(slow("slow", cpu="100" if method == "post_filter" else "1"))
        await gate.arrival()
        assert await cluster.scheduler.query(lambda driver: driver.attempts.running)
        assert await cluster.scheduler.query(lambda driver: driver.machine.cluster.table.node_count) == 2
        gate.open.set()
        if method == "post_filter":
            assert "no room" in await rejected(cluster, "slow")
        else:
            await placed(cluster, "slow")


class SlowTwice:
    """A plugin with a gate in Bind and another in Filter."""

    name: ClassVar = "SlowTwice"
    binding: ClassVar[Gate]

    def filter(self, state: Any, pod: Pod, node: Any) -> Status | None:
        if pod.name == "slow":
            GATE[0].pass_through(pod.name)
        return None

    def pre_bind(self, state: Any, pod: Pod, node_name: str) -> Status | None:
        self.binding.pass_through(pod.name)
        return unschedulable("not now") if pod.name == "unlucky" else None


async def _at_both_gates(cluster: LiveCluster, gate: Gate, name: str) -> None:
    """Wait until this pod is being bound and the pod "slow" is being attempted."""
    await cluster.store.create(node())
    await cluster.store.create(slow(name))
    await SlowTwice.binding.arrival()
    await cluster.store.create(slow("slow"))
    await gate.arrival()


async def test_a_slow_attempt_holds_up_no_binding(gate: Gate) -> None:
    SlowTwice.binding = Gate()
    config, registry = profiles(SlowTwice)
    async with cluster_actors(config, registry=registry, plugin_limit_s=PATIENCE_S) as cluster:
        await _at_both_gates(cluster, gate, "first")
        SlowTwice.binding.open.set()
        await placed(cluster, "first")
        assert await cluster.scheduler.query(lambda driver: driver.attempts.running)
        gate.open.set()
        await placed(cluster, "slow")


async def test_a_binding_that_fails_meanwhile_is_undone_when_the_attempt_has_ended(gate: Gate) -> None:
    SlowTwice.binding = Gate()
    config, registry = profiles(SlowTwice)
    async with cluster_actors(config, registry=registry, plugin_limit_s=PATIENCE_S) as cluster:
        await _at_both_gates(cluster, gate, "unlucky")
        SlowTwice.binding.open.set()

        def assumed(driver: Any) -> list[str]:
            return [one.name for one in driver.machine.cluster.assumed_pods()]

        await comes_to(cluster.scheduler, lambda driver: len(driver.bindings.cycles), 0)
        assert await cluster.scheduler.query(assumed) == ["unlucky"]  # the cluster does not change during an attempt
        gate.open.set()
        await placed(cluster, "slow")
        assert await rejected(cluster, "unlucky") == "not now"


async def test_a_call_that_hangs_in_a_binding_cycle_fails_its_pod_alone(gate: Gate) -> None:
    config, registry = profiles(SlowBind, **INSTEAD_OF_DEFAULT)
    async with cluster_actors(config, registry=registry, plugin_limit_s=0.2) as cluster:
        await cluster.store.create(node())
        await cluster.store.create(slow("a"))
        assert (await rejected(cluster, "a")).startswith('running Bind plugin "SlowBind": bind ')
        await cluster.store.create(pod("other"))
        await placed(cluster, "other")
        gate.open.set()
        await placed(cluster, "a")


async def test_limits_of_the_profile_hold_by_plugin_and_point_and_costs_are_counted(gate: Gate) -> None:
    limited = {"bind": {**INSTEAD_OF_DEFAULT["bind"], "enabled": [{"name": "SlowBind", "timeoutSeconds": 0.2}]}}
    config, registry = profiles(SlowBind, **limited)
    async with cluster_actors(config, registry=registry, plugin_limit_s=PATIENCE_S) as cluster:
        await cluster.store.create(node())
        await cluster.store.create(slow("a"))
        assert (await rejected(cluster, "a")).startswith('running Bind plugin "SlowBind": bind ')
        [cost] = await cluster.scheduler.query(lambda driver: driver.machine.registry.costs.all())
        assert (cost.name, cost.method, cost.timeouts > 0) == ("SlowBind", "bind", True)
        gate.open.set()


@pytest.mark.parametrize("method", ["filter", "score"])
async def test_so_they_do_for_a_whole_shard_of_nodes(method: str, gate: Gate) -> None:
    config, registry = profiles(slow_at(method), **{method: {"enabled": [{"name": "Slow", "timeoutSeconds": 0.2}]}})
    async with cluster_actors(config, registry=registry, plugin_limit_s=PATIENCE_S) as cluster:
        await cluster.store.create_many([node("n1"), node("n2")])
        await cluster.store.create(slow("slow"))
        assert method in await rejected(cluster, "slow")
        costs = await cluster.scheduler.query(lambda driver: driver.machine.registry.costs.all())
        assert [cost.method for cost in costs if cost.timeouts] == [method]
        gate.open.set()


@pytest.mark.parametrize("method", ["pre_filter", "filter", "score", "reserve"])
async def test_a_call_that_hangs_in_an_attempt_fails_its_pod_alone(method: str, gate: Gate) -> None:
    config, registry = profiles(slow_at(method), multiPoint={"enabled": [{"name": "Slow", "timeoutSeconds": 1}]})
    async with cluster_actors(config, registry=registry) as cluster:
        await cluster.store.create_many([node("n1"), node("n2")])
        await cluster.store.create(slow("slow"))
        assert f"{method} did not return within 1s" in await rejected(cluster, "slow")
        await cluster.store.create(slow("other"))
        await placed(cluster, "other")
        assert not gate.open.is_set()


class AsyncBind:
    """A plugin with an `async def` Bind, which never ends for some pods."""

    name: ClassVar = "AsyncBind"
    ended: ClassVar[list[str]] = []
    cancelled: ClassVar[threading.Event]

    async def bind(self, state: Any, pod: Pod, node_name: str) -> Plan:
        try:
            await trio.lowlevel.checkpoint()
            if pod.name == "endless":
                await trio.sleep_forever()
            return Plan((Bind(pod.namespace, pod.name, pod.uid, node_name),))
        finally:
            self.ended.append(pod.name)
            if pod.name == "endless":
                self.cancelled.set()


async def test_a_plugin_may_bind_by_a_coroutine_which_is_cancelled_at_its_limit() -> None:
    AsyncBind.ended.clear()
    AsyncBind.cancelled = threading.Event()
    limited = {"bind": {**INSTEAD_OF_DEFAULT["bind"], "enabled": [{"name": "AsyncBind", "timeoutSeconds": 0.5}]}}
    config, registry = profiles(AsyncBind, **limited)
    async with cluster_actors(config, registry=registry) as cluster:
        await cluster.store.create(node())
        await cluster.store.create(slow("endless"))
        assert (await rejected(cluster, "endless")).startswith('running Bind plugin "AsyncBind": bind ')
        # In this attempt, or on a slow machine in a later one.
        assert await trio.to_thread.run_sync(AsyncBind.cancelled.wait, 60)
        await cluster.store.delete("Pod", "default", "endless")
        await cluster.store.create(slow("web"))
        await placed(cluster, "web")
    assert AsyncBind.ended[0] == "endless"
