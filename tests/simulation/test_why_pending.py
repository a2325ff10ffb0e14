"""At the end of a simulation: why the first pending pod stays so, and how many nodes of its kind are missing."""

from typing import Any

from kschedd.config.loading.load import default_config
from kschedd.framework.registry import Registry
from kschedd.library.objects import node, pod
from kschedd.simulation.simulation import Simulation
from kschedd.simulation.why_pending import why_pending


def simulated(*raws: dict[str, Any]) -> Simulation:
    simulation = Simulation(default_config(), seed=1, registry=Registry(), controllers=())
    for raw in raws:
        simulation.store.create(raw)
        simulation.run_until_idle()
        simulation.advance(simulation.now + 1)
    return simulation


def test_the_smallest_kind_of_node_that_would_take_it_is_counted() -> None:
    large, small = node("large", cpu="8"), node("small", cpu="2")
    pods = [pod(f"p{number}", cpu="1500m") for number in range(9)]
    simulation = simulated(large, small, *pods, pod("giant", cpu="64"))
    found = why_pending(simulation)
    assert found is not None
    assert found.pod == "default/p6"
    assert found.explanation["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
    missing = found.missing
    assert (missing.like, missing.pending, missing.could, missing.for_all, missing.at_least) == ("small", 4, 3, 3, 3)
    assert "One more node like small would take it." in found.text()
    assert found.as_json()["missing"]["for_all"] == 3


def test_a_pod_that_no_kind_of_node_would_take_is_told_as_such() -> None:
    found = why_pending(simulated(node("n1"), pod("giant", cpu="64")))
    assert found is not None
    assert "No kind of node that is there would take it" in found.text()


def test_nothing_is_said_where_nothing_is_pending() -> None:
    simulation = simulated(node("n1"), pod("p1"))
    assert why_pending(simulation) is None
    assert "stays pending" not in simulation.summary(0.1, why=True).text()


def test_the_simulation_itself_is_not_changed() -> None:
    simulation = simulated(node("n1", cpu="1"), pod("p1", cpu="2"))
    before = simulation.store.version
    assert "The first pod that stays pending:" in simulation.summary(0.1, why=True).text()
    assert simulation.store.version == before
    assert simulation.store.count("Node") == 1
