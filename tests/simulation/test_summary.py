"""Tests that utilization over time, counted incrementally, equals utilization counted from scratch."""

from collections.abc import Callable

import pytest

from kschedd.cache.table import NodeTable
from kschedd.config.loading.load import default_config
from kschedd.framework.registry import Registry
from kschedd.sdk.objects import node, pod
from kschedd.simulation.simulation import Simulation
from kschedd.simulation.summary import Utilisation
from kschedd.store.store import Store

GPU = "example.com/gpu"


def _with_gpus(store: Store) -> None:
    raw = node("n3", cpu="2", memory="4Gi")
    room = {**raw["status"]["allocatable"], GPU: "4"}
    store.apply({**raw, "status": {**raw["status"], "allocatable": room, "capacity": room}})


def _asking_for_gpus(store: Store) -> None:
    raw = pod("gpus", cpu="1")
    requests = {"requests": {"cpu": "1", GPU: "3"}, "limits": {GPU: "3"}}
    container = {**raw["spec"]["containers"][0], "resources": requests}
    store.create({**raw, "spec": {**raw["spec"], "containers": [container]}})


STEPS: list[Callable[[Store], object]] = [
    lambda store: store.apply(node("n1", cpu="4", memory="8Gi")),
    lambda store: store.create(pod("a", cpu="1")),
    lambda store: store.apply(node("n2", cpu="8", memory="8Gi")),
    lambda store: [store.create(pod(f"b{number}", cpu="500m", memory="1Gi")) for number in range(6)],
    _with_gpus,
    _asking_for_gpus,
    lambda store: store.delete("Pod", "default", "a", grace_period_s=0),
    lambda store: store.delete("Node", "", "n2"),
    lambda store: [store.delete("Pod", "default", f"b{number}", grace_period_s=0) for number in range(3)],
    lambda store: store.apply(node("n4", cpu="1", memory="1Gi")),
]


@pytest.mark.parametrize("most_resources", [None, 0])
def test_what_changed_comes_to_the_same_as_all_of_it(most_resources: int | None) -> None:
    """Drop the table's columns of resources that no pod requests, which renumbers the other columns."""
    simulation = Simulation(default_config(), seed=1, registry=Registry(), controllers=())
    table = simulation.machine.cluster.table
    if most_resources is not None:
        table.most_resources = most_resources
    kept = Utilisation(table)
    most: dict[str, float] = {}
    held: dict[str, float] = {}
    for second, write in enumerate(STEPS):
        write(simulation.store)
        simulation.run_until_idle()
        kept.sample(float(second))
        whole = Utilisation(table)
        whole.sample(0.0)
        expected = whole.by_resource()
        found = kept.by_resource()
        assert {name: (use.last, use.capacity) for name, use in found.items()} == {
            name: (use.last, use.capacity) for name, use in expected.items()
        }
        most = {name: max(most.get(name, 0.0), use.last) for name, use in expected.items()} | {
            name: share for name, share in most.items() if name not in expected
        }
        assert {name: use.most for name, use in found.items()} == {name: most[name] for name in found}
        if second < len(STEPS) - 1:
            held = {name: held.get(name, 0.0) + use.last for name, use in expected.items()}
    means = {name: use.mean for name, use in kept.by_resource().items()}
    assert means.keys() == held.keys()
    assert all(abs(means[name] - total / (len(STEPS) - 1)) < 1e-9 for name, total in held.items())
    assert most["cpu"] > 0 < most[GPU]


def test_the_nodes_are_not_looked_through_for_a_change_of_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[NodeTable] = []
    look = NodeTable.make_every_resource

    def counted(table: NodeTable) -> None:
        looks.append(table)
        look(table)

    monkeypatch.setattr(NodeTable, "make_every_resource", counted)
    simulation = Simulation(default_config(), seed=1, registry=Registry(), controllers=())
    simulation.store.apply(node("n1", cpu="4", memory="8Gi"))
    for second in range(5):
        simulation.store.create(pod(f"p{second}", cpu="100m"))
        simulation.run_until_idle()
    assert len(looks) == 1
    assert simulation.summary(0.0).utilisation["cpu"].last == 0.125
