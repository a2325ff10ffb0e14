"""Tests that the predicted numbers of required nodes are correct, and that their price is the lowest possible one."""

from itertools import product
from random import Random
from typing import Any

import pytest

from kschedd.controllers.embedded import embedded_controllers
from kschedd.simulation.comparing.needed_nodes import NodeShape, NodesNeeded, nodes_needed, pending
from kschedd.simulation.engine import Engine
from tests.full_run import every
from tests.simulation.test_capacity import ALONE, SPREAD, node, pod


def begun(pods: list[dict[str, Any]]) -> Engine:
    engine = Engine(seed=3, controllers=embedded_controllers())
    engine.store.create(node("n", "1"))
    for raw in pods:
        engine.store.create(raw)
        engine.run_to_rest()
    return engine


def needed(
    pods: list[dict[str, Any]], *shapes: NodeShape, most: int = 64, limits: dict[str, float] | None = None
) -> NodesNeeded:
    return nodes_needed(begun(pods), set(), shapes, most, lambda: None, limits)


SMALL, LARGE = NodeShape("small", node("s", "2"), 1.0), NodeShape("large", node("l", "8"), 3.0)


@pytest.mark.parametrize(
    ("pods", "count"),
    [
        pytest.param([pod("a", "1")], 0, id="none where everything fits already"),
        pytest.param([pod(f"p{n}", "1") for n in range(10)], 5, id="nine more at two a node"),
        pytest.param([pod(f"p{n}", "1500m") for n in range(4)], 4, id="what is left over on each is of no use"),
        pytest.param([pod(f"p{n}", "100m", **ALONE) for n in range(5)], 4, id="one a node, though all have room"),
    ],
)
def test_the_fewest_nodes_of_one_shape(pods: list[dict[str, Any]], count: int) -> None:
    found = needed(pods, SMALL)
    assert (found.counts, found.price, found.exact, found.unplaced) == ({"small": count}, float(count), True, ())


def test_of_several_shapes_the_cheaper_mixture_is_found() -> None:
    found = needed([pod(f"p{n}", "1") for n in range(19)], SMALL, LARGE)  # 18 more: two large nodes and one small node
    assert (found.counts, found.price, found.exact) == ({"small": 1, "large": 2}, 7.0, True)


def test_pods_that_no_number_of_nodes_helps_are_told() -> None:
    found = needed([pod("huge", "9"), pod("b", "1")], SMALL)
    assert [key for key, _ in found.unplaced] == ["default/huge"]
    assert "Insufficient cpu" in found.unplaced[0][1]


def test_a_daemon_pod_on_each_new_node_takes_its_share() -> None:
    daemon = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "d"}},
            "template": {"metadata": {"labels": {"app": "d"}}, "spec": pod("d", "600m")["spec"]},
        },
    }
    found = needed([daemon, *(pod(f"p{n}", "1") for n in range(3))], SMALL)
    assert found.counts == {"small": 3}


def fits(pods: list[dict[str, Any]], shapes: list[NodeShape], counts: tuple[int, ...]) -> bool:
    engine = begun(pods)
    for shape, count in zip(shapes, counts, strict=True):
        for raw in shape.nodes(count):
            engine.store.create(raw)
    engine.run_to_rest()
    return not pending(engine, set())


@pytest.mark.parametrize("more", [{}, SPREAD, ALONE], ids=["plain", "spread", "alone"])
@pytest.mark.parametrize("seed", every(3, range(6)))
def test_no_cheaper_set_of_nodes_is_enough(seed: int, more: dict[str, Any]) -> None:
    random = Random(seed)
    pods = [pod(f"p{n}", random.choice(("500m", "1", "1500m")), **more) for n in range(random.randint(3, 6))]
    shapes = [
        NodeShape(f"s{place}", node("s", cpu, zone), price)
        for place, (cpu, zone, price) in enumerate(random.sample([*product("24", "ab", (1.0, 1.5, 1.75))], 3))
    ]
    found = needed(pods, *shapes, most=3)
    tried = sorted(
        product(range(4), repeat=3), key=lambda counts: sum(c * s.price for c, s in zip(counts, shapes, strict=True))
    )
    cheapest = next((counts for counts in tried if fits(pods, shapes, counts)), None)
    if cheapest is None:
        assert found.unplaced
        return
    lowest = sum(count * shape.price for count, shape in zip(cheapest, shapes, strict=True))
    assert found.bound <= lowest + 1e-9
    assert found.price == pytest.approx(lowest) if found.exact else found.price >= lowest
    assert fits(pods, shapes, tuple(found.counts[shape.name] for shape in shapes))


def test_shapes_share_limits() -> None:
    shapes = [NodeShape(each.name, each.raw, each.price, {"cpu": cpu}) for each, cpu in ((SMALL, 2.0), (LARGE, 8.0))]
    pods = [pod(f"p{n}", "1") for n in range(7)]
    assert needed(pods, *shapes).counts == {"small": 0, "large": 1}
    found = needed(pods, *shapes, limits={"cpu": 7.0})
    assert (found.counts, found.price, found.exact) == ({"small": 3, "large": 0}, 3.0, True)
    assert needed(pods, *shapes, limits={"cpu": 5.0}).unplaced


def test_of_two_shapes_the_larger_one_that_is_not_more_expensive_is_used() -> None:
    found = needed([pod(f"p{n}", "1") for n in range(3)], SMALL, NodeShape("medium", node("m", "4"), 1.0))
    assert (found.counts, found.exact) == ({"small": 0, "medium": 1}, True)


def test_pods_that_must_be_spread_get_nodes_in_several_zones() -> None:
    shapes = [NodeShape(f"z{zone}", node("s", "2", zone), 1.0) for zone in "bcd"]
    found = needed([pod(f"p{n}", "1", **SPREAD) for n in range(6)], *shapes)
    assert not found.unplaced
    assert sum(found.counts.values()) == found.price >= 3


@pytest.mark.parametrize("count", every(3, (20, 40, 200)))
def test_the_price_of_many_pods_has_a_bound(count: int) -> None:
    random = Random(count)
    pods = [pod(f"p{n}", f"{random.randint(5, 35)}00m") for n in range(count)]
    shapes = [NodeShape(f"c{cpu}", node("s", str(cpu)), round(0.1 * cpu**0.97, 4)) for cpu in (2, 4, 8, 16, 32)]
    found = needed(pods, *shapes)
    assert not found.unplaced
    assert found.bound <= found.price <= found.bound * 1.3
