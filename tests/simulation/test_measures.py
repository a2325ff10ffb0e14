"""Tests of measures of a run: fragmentation against its definition, waits, slowdowns, disruptions and balance."""

from random import Random
from typing import Any

import pytest

from kschedd.api.nodes import ZONE_LABEL, Node
from kschedd.api.pods import Pod
from kschedd.cache.table import NodeTable
from kschedd.config.loading.load import default_config
from kschedd.framework.registry import Registry
from kschedd.sdk.objects import node, pod
from kschedd.simulation.results.fragmentation import Fragmentation, TargetSet
from kschedd.simulation.results.measures import RunMeasures, short_names
from kschedd.simulation.simulation import Simulation
from kschedd.simulation.workloads.trace import Trace, TracePod

GPU = "example.com/gpu"


def gpu_node(name: str, cpu: str, gpus: str = "", model: str = "") -> dict[str, Any]:
    made = node(name, cpu=cpu, memory="64Gi", labels={"model": model} if model else {})
    if gpus:
        for part in ("capacity", "allocatable"):
            made["status"][part][GPU] = gpus
    return made


def gpu_pod(name: str, cpu: str, gpus: str = "", **spec: Any) -> dict[str, Any]:
    made = pod(name, cpu=cpu)
    if gpus:
        made["spec"]["containers"][0]["resources"].setdefault("requests", {})[GPU] = gpus
        made["spec"]["containers"][0]["resources"]["limits"] = {GPU: gpus}
    made["spec"] |= spec
    return made


def by_definition(table: NodeTable, targets: list[dict[str, Any]], resource: str) -> float:
    """Return the expected free amount that a target cannot use, as a share of the capacity, node by node."""
    lost = there = 0.0
    number = table.resources[resource]
    for row in range(len(table.alive)):
        if not table.alive[row]:
            continue
        there += int(table.allocatable[number, row])
        free = {name: int(table.allocatable[n, row] - table.requested[n, row]) for name, n in table.resources.items()}
        labels = table.nodes[row].labels  # type: ignore[union-attr]  # of a row that is alive
        for raw in targets:
            one = Pod.from_raw(raw)
            fits = all(amount <= free.get(name, 0) for name, amount in one.requests.items())
            fits = fits and all(labels.get(k) == v for k, v in (raw["spec"].get("nodeSelector") or {}).items())
            if not (fits and one.requests.get(resource, 0) > 0):
                lost += max(free[resource], 0) / len(targets)  # the requests may exceed the capacity
    return lost / there


@pytest.mark.parametrize("seed", range(5))
def test_fragmentation_is_the_expected_free_amount_that_a_target_cannot_use(seed: int) -> None:
    random = Random(seed)
    table = NodeTable()
    for number in range(12):
        model = random.choice(("a", "b", ""))
        table.put_node(Node.from_raw(gpu_node(f"n{number}", str(random.randint(1, 16)), random.choice("0248"), model)))
    table.make_every_resource()
    for number in range(12):
        used = gpu_pod(f"u{number}", f"{random.randint(0, 900)}m", random.choice(("", "1", "2")))
        table.add_pod(random.randrange(12), Pod.from_raw(used))
    targets = [
        gpu_pod(f"t{number}", str(random.randint(1, 12)), random.choice(("", "1", "4")), nodeSelector=selector)
        for number, selector in enumerate(random.choices(({}, {"model": "a"}), k=8))
    ]
    found = Fragmentation.of(table, TargetSet.of((target, 1) for target in targets))
    for resource in ("cpu", GPU):
        assert found.fragmented[resource] == pytest.approx(by_definition(table, targets, resource))


def test_a_node_on_which_no_target_fits_is_unusable() -> None:
    table = NodeTable()
    table.put_node(Node.from_raw(gpu_node("small", "1")))
    table.put_node(Node.from_raw(gpu_node("large", "8")))
    found = Fragmentation.of(table, TargetSet.of([(pod("t", cpu="2"), 1)]))
    assert (found.unusable, found.fragmented["cpu"]) == (0.5, pytest.approx(1 / 9))


def test_without_targets_nothing_is_fragmented() -> None:
    table = NodeTable()
    table.put_node(Node.from_raw(gpu_node("n", "1")))
    found = Fragmentation.of(table, TargetSet())
    assert (found.unusable, set(found.fragmented.values())) == (0.0, {0.0})


def measured(nodes: list[dict[str, Any]], pods: list[tuple[dict[str, Any], float, float | None]]) -> dict[str, float]:
    simulation = Simulation(default_config(), seed=0, registry=Registry(), controllers=())
    measures = RunMeasures(simulation)
    rows = [
        TracePod(f"default/{raw['metadata']['name']}", {**raw, "metadata": {**raw["metadata"], "namespace": "default"}},
                 created, deleted, None, "Running")
        for raw, created, deleted in pods
    ]  # fmt: skip
    simulation.play(Trace(tuple(nodes), tuple(rows)))
    simulation.finish()
    return measures.values()


def test_a_pod_waits_from_its_creation_to_its_node() -> None:
    found = measured([node("n", cpu="1")], [(pod("a", cpu="1"), 0, 100), (pod("b", cpu="1"), 40, 140)])
    # b waits for 60 s until a ends, and runs for 40 of its 100 s.
    assert (found["placed"], found["pending"], found["wait_s_max"], found["wait_s_p50"]) == (2, 0, 60, 30)
    assert (found["slowdown_max"], found["slowdown_mean"]) == (2.5, 1.75)
    assert found["cpu_used_max"] == 1.0


def test_a_pod_that_never_gets_a_node_is_pending_and_has_no_wait() -> None:
    found = measured([node("n", cpu="1")], [(pod("a", cpu="2"), 0, None)])
    assert (found["placed"], found["pending"], "wait_s_max" in found) == (0, 1, False)


def test_zones_that_are_used_alike_have_no_imbalance() -> None:
    nodes = [node(f"n{number}", cpu="4", labels={ZONE_LABEL: zone}) for number, zone in enumerate("aab")]
    assert measured(nodes, [])["zone_imbalance"] == 0
    assert 0 < measured(nodes, [(pod("a", cpu="1"), 0, None)])["zone_imbalance"] <= 0.25
    assert "zone_imbalance" not in measured(nodes[:2], [])


def test_a_short_name_is_the_last_part_unless_two_resources_share_it() -> None:
    assert short_names(["cpu", "alibabacloud.com/gpu-milli"]) == {
        "cpu": "cpu",
        "alibabacloud.com/gpu-milli": "gpu_milli",
    }
    assert short_names(["a/x", "b/x"]) == {"a/x": "a/x", "b/x": "b/x"}
