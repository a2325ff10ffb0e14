"""Tests that the predicted number of fitting pods is correct."""

from random import Random
from typing import Any

import attrs
import pytest

from kschedd.api.pods import Pod
from kschedd.controllers.embedded import embedded_controllers
from kschedd.simulation.comparing.capacity import NotAPodError, fit_count, pod_of
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
