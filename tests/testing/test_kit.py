"""Tests of the kit for plugin authors: manifests, calls of a single plugin, a cluster in virtual time, scenarios."""

from pathlib import Path
from typing import Any, ClassVar

import pytest
import trio

from kschedd import Cluster, CommandFailedError, node, pod
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.plugin import SKIP, Bind, CycleState, NodeInfo, Plan, Pod, RawArgs, Status, unresolvable, unschedulable
from kschedd.testing.judging import Judgement, judge
from kschedd.testing.scenarios import UnexpectedOutput, check_scenario
from tests.examples.plugin_files import module

EXAMPLES = Path(__file__).parents[2] / "examples"


class NoFoes:
    """A plugin that rejects pods labeled `foe`, places those labeled `picky` on nodes named n1, and scores by pods."""

    name: ClassVar = "NoFoes"

    def pre_filter(self, state: CycleState, pod: Pod, cluster: Any) -> Status | None:
        if "foe" in pod.labels:
            return unresolvable("foes are not welcome")
        return None if "picky" in pod.labels else SKIP

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        return None if node.name == "n1" else unschedulable("not n1")

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return min(10 * len(node.pods), 100)


def config(plugins: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration with one profile of these plugins."""
    api = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return {**api, "profiles": [{"plugins": plugins}]}


def test_a_plugin_is_asked_alone() -> None:
    nodes = [node("n1"), node("n2")]
    assert judge(NoFoes, pod("a", labels={"picky": ""}), nodes) == {
        "n1": Judgement(score=0),
        "n2": Judgement("not n1"),
    }
    on_n2 = [pod("x", node_name="n2"), pod("y", node_name="n2")]
    assert judge(NoFoes, pod("a"), nodes, on_n2) == {"n1": Judgement(score=0), "n2": Judgement(score=20)}
    answer = judge(NoFoes, pod("a", labels={"foe": ""}), nodes)
    assert {name: each.reason for name, each in answer.items()} == dict.fromkeys(("n1", "n2"), "foes are not welcome")


def test_columns_are_judged_as_well() -> None:
    cheap_nodes = module("cheap_nodes.py").CheapNodes
    nodes = [node(name, labels={"example.com/price": price}) for name, price in (("a", "0.40"), ("b", "0.80"))]
    answer = judge(cheap_nodes, pod("p", labels={"example.com/most": "0.50"}), [*nodes, node("c")])
    assert answer["b"].reason == "node(s) cost more than 0.50"
    assert answer["c"].reason == "node(s) had no price"
    assert answer["a"].fits


def test_arguments_are_given_as_in_a_profile() -> None:
    one_per_team = module("one_per_team.py").OnePerTeam
    here = [pod("a", labels={"team": "x"}, node_name="n1")]
    requests = pod("b", labels={"team": "x"})
    assert not judge(one_per_team, requests, [node("n1")], here)["n1"].fits
    assert judge(one_per_team, requests, [node("n1")], here, args={"podsOfATeam": 2})["n1"].fits
    assert judge(one_per_team, requests, [node("n1")], here, args=RawArgs({"podsOfATeam": 2}))["n1"].fits


def test_a_cluster_in_three_lines() -> None:
    cluster = Cluster(plugins=[NoFoes])
    cluster.apply(node("n1"), node("n2"), pod("a", labels={"picky": ""}), pod("b", labels={"foe": ""}))
    assert cluster.placements() == {"a": "n1", "b": None}
    assert "foes are not welcome" in cluster.message("b")
    assert cluster.message("a") == ""
    assert "foes are not welcome" in cluster.run("explain b")
    with pytest.raises(CommandFailedError, match='pods "nobody" not found'):
        cluster.run("explain nobody")


def test_time_passes_and_pods_go() -> None:
    cluster = Cluster(plugins=[module("one_per_team.py").OnePerTeam], plugin_args={"OnePerTeam": {"podsOfATeam": 1}})
    cluster.apply(node("n1"), pod("a", labels={"team": "x"}), pod("b", labels={"team": "x"}))
    assert cluster.placements() == {"a": "n1", "b": None}
    cluster.delete("Pod", "a", grace_period_s=0)
    cluster.advance(60)
    assert cluster.placements() == {"b": "n1"}


def test_a_profile_of_ones_own_and_more_plugins() -> None:
    class Second:
        name: ClassVar = "Second"

        def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
            return unschedulable("the second says no") if node.name == "n1" else None

    enabled = [{"name": "NoFoes"}, {"name": "Second"}]
    cluster = Cluster(plugins=[NoFoes, Second], config=config({"multiPoint": {"enabled": enabled}}))
    cluster.apply(node("n1"), node("n2"), pod("a", labels={"picky": ""}))
    assert "1 not n1" in cluster.message("a")
    assert "1 the second says no" in cluster.message("a")


def test_a_profile_that_names_nobody_is_refused() -> None:
    with pytest.raises(ConfigErrors, match="Nobody"):
        Cluster(plugins=[NoFoes], config=config({"filter": {"enabled": [{"name": "Nobody"}]}}))


def test_resources_and_taints_of_the_manifests_count() -> None:
    taint = {"key": "k", "effect": "NoSchedule"}
    cluster = Cluster(plugins=[NoFoes])
    cluster.apply(
        node("n1", taints=[taint], resources={"example.com/gpu": "2"}),
        node("n2", cpu="1", resources={"example.com/gpu": "1"}),
        pod("a", resources={"example.com/gpu": "2"}),
        pod("b", cpu="2"),
        pod("c", cpu="2", spec={"tolerations": [{"operator": "Exists"}]}),
    )
    assert cluster.placements() == {"a": None, "b": None, "c": "n1"}


def test_a_scenario_is_checked(tmp_path: Path) -> None:
    check_scenario(EXAMPLES / "scenarios" / "gang.txt")
    wrong = tmp_path / "wrong.txt"
    wrong.write_text("get nodes\n----\nsomething else\n")
    with pytest.raises(UnexpectedOutput, match=r"(?s)wrong.txt:1: get nodes.*-something else.*\+No resources found"):
        check_scenario(wrong)


class AsyncBind:
    """Binds by an `async def`."""

    name: ClassVar = "AsyncBind"

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        await trio.lowlevel.checkpoint()
        return unschedulable("not today") if pod.name == "unlucky" else None

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Plan:
        await trio.lowlevel.checkpoint()
        return Plan((Bind(pod.namespace, pod.name, pod.uid, node_name),))


def test_a_plugin_may_bind_by_a_coroutine() -> None:
    plugins = {
        "preBind": {"enabled": [{"name": "AsyncBind"}]},
        "bind": {"enabled": [{"name": "AsyncBind"}], "disabled": [{"name": "DefaultBinder"}]},
    }
    cluster = Cluster(plugins=[AsyncBind], config=config(plugins))
    cluster.apply(node("n1"), pod("web"), pod("unlucky"))
    assert cluster.placements() == {"unlucky": None, "web": "n1"}
    assert "message: not today" in cluster.run("get pod unlucky -o yaml")
