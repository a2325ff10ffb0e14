"""Tests that configuration files of public projects load, schedule a small cluster, and convert to v1."""

from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

from kschedd.config.changing.files import convert
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import load_config
from kschedd.config.model import Config
from kschedd.framework.interface import PostFilterResult
from kschedd.framework.registry import Registry
from kschedd.framework.status import unschedulable
from kschedd.simulation.engine import Engine

DATA = Path(__file__).parent / "data"
FILES = sorted(path for path in DATA.iterdir() if path.suffix in (".yaml", ".json"))


class Coscheduling:
    """A replacement for the plugin of scheduler-plugins, with the same extension points and no effect."""

    name: ClassVar = "Coscheduling"

    def sort_key(self, entry: Any) -> Any:
        return -entry.pod.priority, entry.timestamp

    def pre_filter(self, state: Any, pod: Any, cluster: Any) -> None:
        return None

    def post_filter(self, state: Any, pod: Any, cluster: Any, view: Any) -> PostFilterResult:
        return PostFilterResult(unschedulable("nothing to do"))

    def reserve(self, state: Any, pod: Any, node: str) -> None:
        return None

    def unreserve(self, state: Any, pod: Any, node: str) -> None:
        return None

    def permit(self, state: Any, pod: Any, node: str) -> None:
        return None

    def post_bind(self, state: Any, pod: Any, node: str) -> None:
        return None


class CapacityScheduling:
    """A replacement for the CapacityScheduling plugin, like Coscheduling."""

    name: ClassVar = "CapacityScheduling"
    pre_filter = Coscheduling.pre_filter
    post_filter = Coscheduling.post_filter
    reserve = Coscheduling.reserve
    unreserve = Coscheduling.unreserve


class TargetLoadPacking:
    """A replacement for the TargetLoadPacking plugin, like Coscheduling."""

    name: ClassVar = "TargetLoadPacking"

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 0


REGISTRY = Registry({cls.name: cls for cls in (Coscheduling, CapacityScheduling, TargetLoadPacking)})
CATALOGUE = {**IN_TREE, **REGISTRY.catalogue()}


def loaded(path: Path) -> Config:
    return load_config(path.read_text(encoding="utf-8"), str(path), catalogue=CATALOGUE)


def node(number: int) -> dict[str, Any]:
    labels = {
        "kubernetes.io/hostname": f"node-{number}",
        "topology.kubernetes.io/zone": "ab"[number % 2],
        "region": "r",
        "zone": "ab"[number % 2],
        "rack": str(number),
        "scheduler-profile": "foo",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number}", "labels": labels},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10", "intel.com/foo": "4"}},
    }


def pod(name: str, scheduler: str, cpu: str = "500m") -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": "256Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "x"}},
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests, "limits": requests}}],
        },
    }


SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "s", "namespace": "default"},
    "spec": {"selector": {"app": "x"}, "ports": [{"port": 80}]},
}


def test_there_are_enough_of_them() -> None:
    assert len(FILES) >= 25


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.name))
def test_a_public_file_schedules_a_small_cluster(path: Path) -> None:
    config = attrs.evolve(loaded(path), extenders=())
    engine = Engine(config, seed=1, registry=REGISTRY)
    for raw in (*map(node, range(3)), SERVICE):
        engine.store.create(raw)
    for profile in config.profiles:
        for number in range(4):
            engine.store.create(pod(f"{profile.scheduler_name}-{number}", profile.scheduler_name))
        engine.store.create(pod(f"{profile.scheduler_name}-large", profile.scheduler_name, cpu="64"))
    engine.run_until_idle()
    pods = {pod.name: pod for pod in engine.store.list("Pod", "default")}
    pending = {name for name, pod in pods.items() if not pod.node_name}
    assert pending == {f"{profile.scheduler_name}-large" for profile in config.profiles}
    for name in pending:
        [condition] = pods[name].status["conditions"]
        assert "Insufficient cpu" in condition["message"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.name))
def test_a_public_file_converts_to_v1_and_comes_to_the_same(path: Path) -> None:
    text = convert(path.read_text(encoding="utf-8"), str(path), CATALOGUE)
    again = load_config(text, "converted", catalogue=CATALOGUE)
    before = loaded(path)
    extenders = tuple(attrs.evolve(one, nodes_lose_pods=True) for one in before.extenders)
    assert again == attrs.evolve(before, extenders=extenders)
    lose = [
        one for one in before.extenders if one.filter_verb and not one.node_cache_capable and not one.nodes_lose_pods
    ]
    assert text.count("are scored without their pods") == len(lose)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.name))
def test_a_public_file_says_after_which_one_it_is_written(path: Path) -> None:
    if path.suffix == ".yaml":
        assert path.read_text(encoding="utf-8").startswith("# After ")
    else:
        assert f"| {path.name} | " in (DATA / "README.md").read_text(encoding="utf-8")
