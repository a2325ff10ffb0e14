"""Tests of generated workloads: the arrival and run times of their pods, and invalid shapes."""

from collections.abc import Callable
from typing import Any

import pytest

from kschedd.config.loading.load import default_config
from kschedd.framework.registry import Registry
from kschedd.simulation.simulation import Simulation
from kschedd.simulation.workloads.generated import (
    NODE_SHAPE,
    POD_SHAPES,
    GeneratedPods,
    GeneratedWorkload,
    GeneratedWorkloadError,
    generated_nodes,
)


def shapes(*texts: str) -> list[GeneratedPods]:
    return [GeneratedPods.parse("--pod-shape", text, number) for number, text in enumerate(texts, start=1)]


def workload(pods: int = 2000, *texts: str, seed: int = 3, nodes: int = 4, **fields: Any) -> GeneratedWorkload:
    given = {"rate": 5.0, "lifetime_s": 60.0, **fields}
    return GeneratedWorkload(
        generated_nodes(nodes, NODE_SHAPE), pods, shapes=shapes(*(texts or POD_SHAPES)), seed=seed, **given
    )


def test_every_pod_comes_once_and_leaves_once_in_order_of_time() -> None:
    made = workload()
    events = list(made.events())
    assert len(events) == made.event_count == 4000
    assert [event.time_s for event in events] == sorted(event.time_s for event in events)
    there: set[str] = set()
    for event in events:
        if event.action == "create":
            assert event.raw is not None
            assert event.key == f"default/{event.raw['metadata']['name']}"
            assert event.key not in there
            there.add(event.key)
        else:
            there.remove(event.key)
    assert not there


def test_rate_and_lifetime_are_means() -> None:
    events = list(workload(20_000).events())
    born = {event.key: event.time_s for event in events if event.action == "create"}
    lived = [event.time_s - born[event.key] for event in events if event.action == "delete"]
    assert 20_000 / max(born.values()) == pytest.approx(5.0, rel=0.05)
    assert sum(lived) / len(lived) == pytest.approx(60.0, rel=0.05)


def test_kinds_come_by_their_weight_and_share_one_spec() -> None:
    made = workload(6000, "cpu=1,weight=2", "memory=1Gi", "cpu=2,weight=0")
    pods = [event.raw for event in made.events() if event.raw is not None]
    first = [pod for pod in pods if pod["metadata"]["labels"]["kind"] == "kind-1"]
    assert len(first) / len(pods) == pytest.approx(2 / 3, rel=0.1)
    assert {id(pod["spec"]) for pod in pods} == {id(shape.spec) for shape in made.shapes[:2]}


def test_the_seed_decides() -> None:
    assert list(workload(50).events()) == list(workload(50).events())
    assert list(workload(50).events()) != list(workload(50, seed=4).events())


def test_resources_that_cannot_be_shared_have_a_limit() -> None:
    [shape] = shapes("cpu=1,nvidia.com/gpu=2")
    resources = {"requests": {"cpu": "1", "nvidia.com/gpu": "2"}, "limits": {"nvidia.com/gpu": "2"}}
    assert shape.spec["containers"][0]["resources"] == resources


def test_nodes_have_what_their_shape_says_and_are_spread_over_the_zones() -> None:
    nodes = generated_nodes(5, "cpu=8,memory=16Gi,pods=20,zones=2")
    assert {repr(node["status"]["allocatable"]) for node in nodes} == {
        repr({"cpu": "8", "memory": "16Gi", "pods": "20"})
    }
    zones = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes]
    assert zones == ["zone-0", "zone-1", "zone-0", "zone-1", "zone-0"]


MANY_DIGITS = "9" * 5000


@pytest.mark.parametrize(
    ("make", "text"),
    [
        pytest.param(
            lambda: shapes("cpu"), "--pod-shape cpu: 'cpu' must be NAME=VALUE, as cpu=500m,memory=1Gi", id="no-value"
        ),
        pytest.param(lambda: shapes("cpu=1,cpu=2"), "--pod-shape cpu=1,cpu=2: cpu is given twice", id="twice"),
        pytest.param(lambda: shapes("cpu=-1"), "--pod-shape cpu=-1: cpu must not be negative", id="negative"),
        pytest.param(
            lambda: shapes("cpu=1,weight=x"),
            "--pod-shape cpu=1,weight=x: weight must be a whole number, 0 to 1000000000",
            id="weight",
        ),
        pytest.param(
            lambda: shapes(f"weight={MANY_DIGITS}"),
            f"--pod-shape weight={MANY_DIGITS}: weight must be a whole number, 0 to 1000000000",
            id="more-digits-than-int-takes",
        ),
        pytest.param(
            lambda: generated_nodes(1, "cpu=1,zones=-1"),
            "--node-shape cpu=1,zones=-1: zones must be a whole number, 0 to 1000000000",
            id="zones",
        ),
    ],
)
def test_what_no_workload_can_be_made_of(make: Callable[[], object], text: str) -> None:
    with pytest.raises(GeneratedWorkloadError) as refusal:
        make()
    assert str(refusal.value) == text


def test_a_shape_with_no_quantity_names_it() -> None:
    with pytest.raises(GeneratedWorkloadError, match=r"cpu: .*lots"):
        shapes("cpu=lots")


def test_a_run_places_them_all_and_is_empty_again() -> None:
    run = Simulation(default_config(), seed=1, registry=Registry(), controllers=())
    run.play(workload(300, "cpu=1,priority=100", "cpu=500m,memory=1Gi", rate=1.0))
    assert run.finish()
    found = run.summary(1.0)
    assert (found.placed, found.pending, found.errors, found.placements) == (300, [], [], {})
    assert run.store.count("Pod") == 0
    assert found.utilisation["cpu"].last == 0
    assert 0 < found.utilisation["cpu"].mean <= found.utilisation["cpu"].most < 1
