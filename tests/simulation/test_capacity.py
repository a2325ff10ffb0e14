"""Tests that the predicted numbers of fitting pods and of required nodes are correct."""

from random import Random
from typing import Any

import attrs
import pytest

from kschedd.api.pods import Pod
from kschedd.controllers.embedded import embedded_controllers
from kschedd.simulation.comparing.capacity import NodeShape, NodesNeeded, NotAPodError, fit_count, nodes_needed, pod_of
from kschedd.simulation.engine import Engine

ZONE = "topology.kubernetes.io/zone"


def node(name: str, cpu: str, zone: str = "a", **labels: str) -> dict[str, Any]:
    meta = {"name": name, "labels": {ZONE: zone, **labels}}
    status = {"allocatable": {"cpu": cpu, "memory": "64Gi", "pods": "110"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}


def pod(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    meta = {"name": name, "namespace": "default", "labels": {"app": "web"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container], **spec}}


SELECTOR = {"matchLabels": {"app": "web"}}
SPREAD = {
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
    ]
}
ALONE = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": SELECTOR}
            ]
        }
    }
}


def begun(random: Random) -> Engine:
    engine = Engine(seed=3, controllers=embedded_controllers())
    for number in range(random.randint(2, 6)):
        engine.store.create(node(f"n{number}", random.choice(("1", "2", "5")), random.choice("ab")))
    engine.run_until_idle()
    for number in range(random.randint(0, 4)):
        engine.store.create(pod(f"p{number}", "500m"))
    engine.run_until_idle()
    return engine


@pytest.mark.parametrize("more", [{}, SPREAD, ALONE], ids=["plain", "spread", "alone"])
@pytest.mark.parametrize("seed", range(6))
def test_as_many_pods_fit_as_are_told(seed: int, more: dict[str, Any]) -> None:
    random = Random(seed)
    engine = begun(random)
    spec = pod("more", random.choice(("300m", "700m", "2")), **more)
    checked = engine.store.create(spec, dry_run=True)
    assert isinstance(checked, Pod)
    requested = engine.machine.cluster.table.requested.copy()
    reported = fit_count(engine.machine, [checked], 1_000, engine.now, lambda: None)
    assert (engine.machine.cluster.table.requested == requested).all()
    assert engine.machine.cluster.assumed_pods() == []
    for number in range(reported.count + 1):
        engine.store.create(attrs.evolve(checked).raw | {"metadata": {"name": f"x{number}", "labels": {"app": "web"}}})
        engine.run_until_idle()
    pending = [each.name for each in engine.driver.pending.pods.values()]
    assert pending == [f"x{reported.count}"]
    assert reported.why


def test_counting_ends_at_the_limit() -> None:
    engine = Engine(seed=3)
    engine.store.create(node("n", "8"))
    engine.run_until_idle()
    checked = engine.store.create(pod("more", "100m"), dry_run=True)
    assert isinstance(checked, Pod)
    reported = fit_count(engine.machine, [checked], 5, engine.now, lambda: None)
    assert (reported.count, reported.why, reported.nodes) == (5, "", 1)


def needed(pods: list[dict[str, Any]], *shapes: NodeShape, most: int = 64) -> NodesNeeded:
    engine = Engine(seed=3, controllers=embedded_controllers())
    engine.store.create(node("n", "1"))
    for raw in pods:
        engine.store.create(raw)
        engine.run_to_rest()
    return nodes_needed(engine, set(), shapes, most, lambda: None)


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
    assert (found.counts, found.price, found.exact) == ({"small": 1, "large": 2}, 7.0, False)


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


@pytest.mark.parametrize("kind", ["Deployment", "Job", "StatefulSet"])
def test_the_pod_of_a_workload_is_that_of_its_template(kind: str) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}
    made = pod_of({"kind": kind, "metadata": {"name": "w", "namespace": "team"}, "spec": {"template": template}})
    assert made["metadata"] == {"labels": {"a": "b"}, "generateName": "w-", "namespace": "team"}
    assert made["spec"] == {"containers": []}


def test_what_makes_no_pods_is_refused() -> None:
    with pytest.raises(NotAPodError, match="a Service is no pod and has no pod template"):
        pod_of({"kind": "Service", "metadata": {"name": "s"}, "spec": {}})


@pytest.mark.parametrize(
    "spec", ["x", None, ["x"], {"template": "x"}, {"jobTemplate": "x"}, {"jobTemplate": {"spec": "x"}}]
)
@pytest.mark.parametrize("kind", ["Deployment", "CronJob", ""])
def test_what_is_no_template_is_refused_whatever_it_is(kind: str, spec: Any) -> None:
    with pytest.raises(NotAPodError, match="is no pod and has no pod template"):
        pod_of({"kind": kind, "metadata": {"name": "s"}, "spec": spec})


def test_metadata_that_are_none_are_left_to_validation() -> None:
    made = pod_of({"kind": "Job", "metadata": "x", "spec": {"template": {"metadata": ["y"], "spec": "z"}}})
    assert (made["metadata"], made["spec"]) == ({"generateName": "pod-"}, "z")
