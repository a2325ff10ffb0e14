"""Tests of misbehaving out-of-tree plugins."""

import threading
import time
from typing import Any, ClassVar

import pytest
import trio

from kschedd.api.pods import Pod
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw
from kschedd.config.plugin_info import PluginInfo
from kschedd.daemon import cluster_actors
from kschedd.framework.status import unschedulable
from tests.actors.clusters import node, placed, pod, rejected, with_plugins

let_go = threading.Event()
PATIENCE_S = 60.0  # time limit in seconds of a call that does not hang


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    let_go.clear()
    yield
    let_go.set()  # hanging threads end with the test


class Bad:
    """A plugin that fails in the method with the name of the pod."""

    name: ClassVar = "Bad"


class BadFilter(Bad):
    def filter(self, state: Any, pod: Pod, node: Any) -> Any:
        if pod.name == "raises":
            raise ValueError("boom")
        if pod.name == "hangs":
            let_go.wait()
        if pod.name == "picky" and node.name != "n2":
            return unschedulable("not n2")
        return "yes" if pod.name == "talks" else None


class BadColumns(Bad):
    def filter_rows(self, state: Any, pod: Pod, table: Any, rows: Any) -> Any:
        if pod.name == "raises":
            raise ValueError("boom")
        return None

    def code_status(self, state: Any, pod: Pod, code: int) -> Any:
        raise AssertionError("never asked")


class BadScore(Bad):
    def score(self, state: Any, pod: Pod, node: Any) -> Any:
        if pod.name == "raises":
            raise ValueError("boom")
        return 1000 if pod.name == "boasts" else 5


class BadPreFilter(Bad):
    def pre_filter(self, state: Any, pod: Pod, cluster: Any) -> Any:
        if pod.name == "raises":
            raise ValueError("boom")
        if pod.name == "hangs":
            let_go.wait()


class BadReserve(Bad):
    def reserve(self, state: Any, pod: Pod, node_name: str) -> Any:
        if pod.name == "raises":
            raise ValueError("boom")

    def unreserve(self, state: Any, pod: Pod, node_name: str) -> Any:
        raise ValueError("boom again")


class BadPermit(Bad):
    def permit(self, state: Any, pod: Pod, node_name: str) -> Any:
        if pod.name == "raises":
            raise ValueError("boom")
        return None


class BadPreBind(Bad):
    def pre_bind(self, state: Any, pod: Pod, node_name: str) -> Any:
        if pod.name == "raises":
            raise ValueError("boom")
        if pod.name == "hangs":
            let_go.wait()


class BadPreEnqueue(Bad):
    def pre_enqueue(self, pod: Pod) -> Any:
        if pod.name == "raises":
            raise ValueError("boom")


@pytest.mark.parametrize(
    ("plugin", "name", "message"),
    [
        pytest.param(BadFilter, "raises", 'running "Bad" filter plugin: ValueError: boom', id="filter-raises"),
        pytest.param(BadFilter, "talks", "filter returned 'yes'; a Status or None is expected", id="filter-talks"),
        pytest.param(BadFilter, "hangs", "filter", id="filter-hangs"),
        pytest.param(BadColumns, "raises", "ValueError: boom", id="columns-raise"),
        pytest.param(BadScore, "raises", 'plugin "Bad" failed with: ValueError: boom', id="score-raises"),
        pytest.param(BadScore, "boasts", 'plugin "Bad" returns an invalid score 1000', id="score-of-1000"),
        pytest.param(BadPreFilter, "raises", "ValueError: boom", id="prefilter-raises"),
        pytest.param(BadPreFilter, "hangs", "did not return within 0.2s", id="prefilter-hangs"),
        pytest.param(BadReserve, "raises", 'running Reserve plugin "Bad": ValueError: boom', id="reserve-raises"),
        pytest.param(BadPermit, "raises", 'running Permit plugin "Bad": ValueError: boom', id="permit-raises"),
        pytest.param(BadPreBind, "raises", 'running PreBind plugin "Bad": ValueError: boom', id="prebind-raises"),
        pytest.param(BadPreBind, "hangs", "did not return within 0.2s", id="prebind-hangs"),
    ],
)
async def test_a_fault_is_the_pods_and_names_the_plugin(plugin: type[Any], name: str, message: str) -> None:
    config, registry = with_plugins(plugin)
    limit_s = 0.2 if name == "hangs" else PATIENCE_S
    async with cluster_actors(config, registry=registry, plugin_limit_s=limit_s) as cluster:
        await cluster.store.create_many([node("n1"), node("n2")])
        await cluster.store.create(pod(name))
        answer = await rejected(cluster, name)
        assert message in answer
        assert "Bad" in answer
        status = await cluster.store.do(lambda store: store.get("Pod", "default", name).status)
        assert status["conditions"][0]["reason"] == "SchedulerError"
        let_go.set()
        await cluster.store.create(pod("good"))
        assert await placed(cluster, "good")


async def test_a_pod_whose_preenqueue_raises_is_gated_by_that() -> None:
    config, registry = with_plugins(BadPreEnqueue)
    async with cluster_actors(config, registry=registry) as cluster:
        await cluster.store.create(node())
        await cluster.store.create_many([pod("raises"), pod("good")])
        await placed(cluster, "good")
        entry = await cluster.queue.query(lambda owner: owner.queue.entry("default/raises"))
        assert entry is not None
        assert entry.gating_plugin == "Bad"
        assert entry.gating_status is not None
        assert "ValueError: boom" in entry.gating_status.message


async def test_a_plain_plugin_is_as_good_as_any() -> None:
    config, registry = with_plugins(BadFilter)
    async with cluster_actors(config, registry=registry) as cluster:
        await cluster.store.create_many([node(f"n{number}") for number in range(200)])
        await cluster.store.create(pod("picky"))
        assert await placed(cluster, "picky") == {"picky": "n2"}


async def test_a_slow_plugin_does_not_hold_the_others() -> None:
    turns = 0
    turns_at_calls: list[int] = []

    class Slow:
        name: ClassVar = "Slow"

        def filter(self, state: Any, pod: Pod, node: Any) -> Any:
            turns_at_calls.append(turns)
            time.sleep(0.002)

    config, registry = with_plugins(Slow)
    async with cluster_actors(config, registry=registry) as cluster:
        await cluster.store.create_many([node(f"n{number}") for number in range(60)])
        await cluster.store.create(pod("p"))
        async with trio.open_nursery() as beside:

            async def ask() -> None:
                nonlocal turns
                while True:
                    await cluster.store.find("Node", "", "n1")
                    turns += 1

            beside.start_soon(ask)
            await placed(cluster, "p")
            beside.cancel_scope.cancel()
        assert len(turns_at_calls) == 60
        assert turns_at_calls[0] < turns_at_calls[-1]


class Backwards:
    """A QueueSort plugin whose keys for some pods cannot be compared."""

    name: ClassVar = "Backwards"

    def sort_key(self, entry: Any) -> Any:
        if entry.pod.name == "raises":
            raise ValueError("boom")
        return None


async def test_a_queue_sort_from_elsewhere_that_raises_costs_nobody_his_turn() -> None:
    config, registry = with_plugins()
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {"queueSort": {"disabled": [{"name": "*"}], "enabled": [{"name": "Backwards"}]}},
            }
        ],
    }
    registry.add(Backwards, "test")
    config = config_from_raw(raw, catalogue={**IN_TREE, "Backwards": PluginInfo(frozenset({"queue_sort"}))})
    async with cluster_actors(config, registry=registry) as cluster:
        await cluster.store.create(node())
        await cluster.store.create_many([pod("a"), pod("raises"), pod("b")])
        assert len(await placed(cluster, "a", "raises", "b")) == 3
