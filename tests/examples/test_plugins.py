"""The example plugins behave as documented, in a cluster in virtual time."""

from pathlib import Path
from typing import Any

import pytest

from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import load_config
from kschedd.framework.registry import PluginLoadError, Registry
from kschedd.simulation.engine import Engine, LoggedAttempt

ROOT = Path(__file__).parents[2]
PLUGINS = ROOT / "examples" / "plugins"


class ScenarioCluster:
    """A cluster that runs one of the example plugins."""

    def __init__(self, plugin: str, config: str) -> None:
        registry = Registry()
        registry.add_file(PLUGINS / plugin)
        self.decisions: list[LoggedAttempt] = []
        loaded = load_config(config, "test", catalogue={**IN_TREE, **registry.catalogue()})
        self.engine = Engine(loaded, registry=registry, on_decision=self.decisions.append)

    def node(self, name: str, cpu: str = "1", **labels: str) -> None:
        raw = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
            "status": {"allocatable": {"cpu": cpu, "memory": "4Gi", "pods": "10"}},
        }
        self.engine.store.apply(raw)

    def pod(self, name: str, cpu: str = "1", annotations: dict[str, str] | None = None, **labels: str) -> None:
        container = {"name": "a", "image": "b", "resources": {"requests": {"cpu": cpu}}}
        meta: dict[str, Any] = {"name": name, "labels": labels, "annotations": annotations or {}}
        self.engine.store.apply(
            {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}}
        )

    def run(self, seconds: float) -> None:
        self.engine.advance(self.engine.now + seconds)

    def delete(self, name: str) -> None:
        self.engine.store.delete("Pod", "default", name, grace_period_s=0)

    @property
    def places(self) -> dict[str, str]:
        return {pod.name: pod.node_name for pod in self.engine.store.list("Pod")}

    def message(self, name: str) -> str:
        return [decision.message for decision in self.decisions if decision.pod == f"default/{name}"][-1]


def _config(name: str, args: str = "{}") -> str:
    return (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        f"- plugins: {{multiPoint: {{enabled: [{{name: {name}, weight: 50}}]}}}}\n"
        f"  pluginConfig: [{{name: {name}, args: {args}}}]\n"
    )


GANG = {"kschedd.io/gang": "train", "kschedd.io/gang-size": "3"}


@pytest.fixture
def gang() -> ScenarioCluster:
    world = ScenarioCluster("gang.py", (ROOT / "profiles" / "gang.yaml").read_text())
    world.node("n1")
    world.node("n2")
    return world


def test_a_gang_that_is_complete_runs(gang: ScenarioCluster) -> None:
    gang.node("n3")
    for name in ("a", "b"):
        gang.pod(name, **GANG)
    gang.run(5)
    assert set(gang.places.values()) == {""}
    gang.pod("c", **GANG)
    gang.run(1)
    assert sorted(gang.places.values()) == ["n1", "n2", "n3"]


def test_a_gang_without_room_for_all_gives_back_what_it_held(gang: ScenarioCluster) -> None:
    for name in ("a", "b", "c"):
        gang.pod(name, **GANG)
    gang.run(0.5)
    assert not gang.engine.machine.waiting.pods
    assert "gang train rests until the cluster changes: pod " in gang.message("a")
    gang.pod("other", cpu="1")
    gang.run(30)
    assert gang.places["other"] in ("n1", "n2")
    assert [gang.places[name] for name in "abc"] == ["", "", ""]


def test_a_gang_whose_last_pod_never_comes_waits_for_so_long(gang: ScenarioCluster) -> None:
    for name in ("a", "b"):
        gang.pod(name, **GANG)
    gang.run(59)
    assert len(gang.engine.machine.waiting.pods) == 2
    gang.run(2)
    assert not gang.engine.machine.waiting.pods
    assert set(gang.places.values()) == {""}


def test_the_member_that_was_missing_wakes_those_that_were_sent_back(gang: ScenarioCluster) -> None:
    for name in ("a", "b", "c"):
        gang.pod(name, **GANG)
    gang.run(90)
    gang.node("n3")
    gang.run(5)
    assert sorted(gang.places.values()) == ["n1", "n2", "n3"]


def test_pods_without_a_gang_do_not_wait(gang: ScenarioCluster) -> None:
    gang.pod("alone")
    gang.run(1)
    assert gang.places["alone"] != ""


def test_one_that_is_replaced_joins_those_that_run(gang: ScenarioCluster) -> None:
    gang.node("n3")
    for name in ("a", "b", "c"):
        gang.pod(name, **GANG)
    gang.run(1)
    gang.delete("b")
    gang.pod("b2", **GANG)
    gang.run(1)
    assert gang.places["b2"] != ""


def test_a_group_that_does_not_say_how_many_it_is(gang: ScenarioCluster) -> None:
    gang.pod("a", **{"kschedd.io/gang": "train", "kschedd.io/gang-size": "many"})
    gang.run(1)
    assert "kschedd.io/gang-size is no number of pods: many" in gang.message("a")


def test_patience_of_its_own_and_size_as_an_annotation(gang: ScenarioCluster) -> None:
    notes = {"kschedd.io/gang-size": "3", "kschedd.io/gang-timeout": "5"}
    for name in ("a", "b"):
        gang.pod(name, annotations=notes, **{"kschedd.io/gang": "train"})
    gang.run(4)
    assert len(gang.engine.machine.waiting.pods) == 2
    gang.run(2)
    assert not gang.engine.machine.waiting.pods


@pytest.mark.parametrize("value", ["0", "-1", "soon", "true"])
def test_a_gang_timeout_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(PluginLoadError, match="a number of seconds above 0 is expected"):
        ScenarioCluster("gang.py", _config("Gang", f"{{timeoutSeconds: {value}}}"))


def test_a_team_spreads_over_nodes_and_waits_when_each_has_its_share() -> None:
    world = ScenarioCluster("one_per_team.py", _config("OnePerTeam"))
    world.node("n1", cpu="8")
    world.node("n2", cpu="8")
    for name in ("a", "b", "c"):
        world.pod(name, team="red")
    world.pod("x", team="blue")
    world.pod("y")
    world.run(1)
    assert {world.places["a"], world.places["b"]} == {"n1", "n2"}
    assert world.places["c"] == ""
    assert "2 node(s) had enough pods of the team" in world.message("c")
    assert world.places["x"] != ""
    assert world.places["y"] != ""
    world.delete("a")
    world.run(15)
    assert world.places["c"] != ""


def test_its_arguments_are_checked() -> None:
    with pytest.raises(PluginLoadError, match="podsOfATeam: 0"):
        ScenarioCluster("one_per_team.py", _config("OnePerTeam", "{podsOfATeam: 0}"))


def test_pods_go_where_it_is_cheap_and_not_where_it_is_too_dear() -> None:
    world = ScenarioCluster("cheap_nodes.py", _config("CheapNodes"))
    world.node("dear", cpu="64", **{"example.com/price": "2.00"})
    world.node("fair", cpu="2", **{"example.com/price": "0.50"})
    world.node("silent", cpu="64")
    for name in ("a", "b", "c"):
        world.pod(name, **{"example.com/most": "0.50"})
    world.pod("d")
    world.run(1)
    assert [world.places[name] for name in "abc"] == ["fair", "fair", ""]
    assert world.places["d"] in ("dear", "silent")
    message = world.message("c")
    assert "1 node(s) cost more than 0.50" in message
    assert "1 node(s) had no price" in message
    world.node("new", cpu="1", **{"example.com/price": "0.25"})
    world.run(15)
    assert world.places["c"] == "new"
