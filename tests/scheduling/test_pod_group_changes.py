"""Tests of changes to a PodGroup or its pods during its cycle, which take effect at the end of the cycle."""

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from kschedd.api.pods import Pod
from kschedd.clusters.virtual import VirtualCluster
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw
from kschedd.config.versions.kube_versions import V1_36
from kschedd.framework.registry import Registry
from kschedd.simulation.engine import Engine
from tests.scheduling.test_pod_group_cycle import GATES, group, node, pod

Raw = dict[str, Any]


class Meddler:
    """A plugin whose first Reserve of the pod `a` changes the cluster."""

    name: ClassVar = "Meddler"
    steps: ClassVar[list[Any]] = []

    @classmethod
    def from_args(cls, args: object, handle: object) -> "Meddler":
        return cls()

    def reserve(self, state: Any, pod: Pod, node_name: str) -> None:
        if pod.name == "a" and self.steps:
            self.steps.pop()()


@pytest.fixture
def engine() -> Iterator[Engine]:
    registry = Registry({"Meddler": Meddler})
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Meddler"}]}}}],
    }
    config = config_from_raw(raw, catalogue={**IN_TREE, **registry.catalogue()}, version=V1_36, feature_gates=GATES)
    made = VirtualCluster(config, registry=registry).engine
    yield made
    Meddler.steps = []
    made.close()


def add(engine: Engine, *raws: Raw) -> None:
    for raw in raws:
        engine.store.create(raw)
    engine.run_until_idle()


def nodes(engine: Engine) -> dict[str, str]:
    return {each.name: each.node_name for each in engine.store.list("Pod") if isinstance(each, Pod)}


def test_a_group_that_is_deleted_during_its_cycle_is_placed_or_not_as_it_was(engine: Engine) -> None:
    Meddler.steps = [lambda: engine.store.delete("PodGroup.scheduling.k8s.io", "default", "gang")]
    add(engine, node("n", "2"), group(2), pod("a"), pod("b"))
    assert not Meddler.steps, "it was deleted on the way"
    assert engine.store.find("PodGroup.scheduling.k8s.io", "default", "gang") is None
    assert nodes(engine) == {"a": "n", "b": "n"}
    add(engine, pod("late"))
    assert nodes(engine)["late"] == "", "without its PodGroup no further pod is tried"


def test_a_pod_that_grows_during_the_cycle_is_bound_all_the_same_and_its_kubelet_turns_it_away(engine: Engine) -> None:
    def grow() -> None:
        containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "50"}}}]
        engine.store.merge_patch("Pod", "default", "b", {"spec": {"containers": containers}}, subresource="resize")

    Meddler.steps = [grow]
    add(engine, node("n", "2"), group(2), pod("a"), pod("b"))
    assert nodes(engine) == {"a": "n", "b": "n"}
    status = engine.store.get("Pod", "default", "b").status
    assert (status["phase"], status["reason"]) == ("Failed", "OutOfcpu")
    assert not engine.machine.cluster.assumed_pods()
    add(engine, pod("other", group=""))
    assert nodes(engine)["other"] == "n", "nothing of it is left on the node"


def test_a_pod_that_is_deleted_during_the_cycle_is_not_bound_and_the_others_are(engine: Engine) -> None:
    Meddler.steps = [lambda: engine.store.delete("Pod", "default", "b", grace_period_s=0)]
    add(engine, node("n", "2"), group(2), pod("a"), pod("b"))
    assert nodes(engine) == {"a": "n"}
    assert not engine.machine.cluster.assumed_pods()
