"""The manifests of well-known public examples reach Running in the clusters of examples/, in virtual time."""

from pathlib import Path

import pytest

from kschedd.api.manifests import read_paths
from kschedd.api.pods import Pod
from kschedd.config.loading.load import default_config
from kschedd.controllers.embedded import embedded_controllers
from kschedd.framework.registry import Registry
from kschedd.simulation.simulation import Simulation

EXAMPLES = Path(__file__).parents[2] / "examples"
CLUSTERS = ("clusters/three-nodes.yaml", "demo/01-cluster.yaml")


def _after(cluster: str, *files: str, seconds: float = 600) -> Simulation:
    simulation = Simulation(default_config(), seed=1, registry=Registry(), controllers=embedded_controllers())
    reading = read_paths([str(EXAMPLES / name) for name in (cluster, "workloads/storage.yaml", *files)])
    applied = simulation.load(reading)
    assert applied.errors == []
    assert [warning for warning in applied.warnings if "no load balancer is created" not in warning] == []
    simulation.advance(simulation.now + seconds)
    return simulation


def _pods(simulation: Simulation) -> dict[str, int]:
    """Return the number of running pods by the name of their creator; other pods are counted by phase."""
    counts: dict[str, int] = {}
    for pod in simulation.store.list("Pod"):
        assert isinstance(pod, Pod)
        running = pod.phase == "Running" and any(
            entry["type"] == "Ready" and entry["status"] == "True" for entry in pod.status["conditions"]
        )
        owner = pod.owner
        assert owner is not None
        name = owner.name.rpartition("-")[0] if owner.kind == "ReplicaSet" else owner.name
        counts[name if running else f"{pod.name} is {pod.phase}"] = counts.get(name, 0) + 1
    return counts


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("guestbook.yaml", {"redis-leader": 1, "redis-follower": 2, "frontend": 3}),
        ("wordpress-mysql.yaml", {"wordpress-mysql": 1, "wordpress": 1}),
        ("cassandra.yaml", {"cassandra": 3}),
        ("zookeeper.yaml", {"zk": 3}),
        ("logging.yaml", {"elasticsearch-logging": 2, "kibana-logging": 1}),
    ],
)
def test_a_public_example_reaches_running(cluster: str, file: str, expected: dict[str, int]) -> None:
    simulation = _after(cluster, f"workloads/{file}")
    found = _pods(simulation)
    if file == "logging.yaml":  # a collector on each node that it tolerates
        assert found.pop("fluentd-es") == {CLUSTERS[0]: 3, CLUSTERS[1]: 6}[cluster]
    assert found == expected


def test_all_of_them_at_once() -> None:
    names = sorted(path.name for path in (EXAMPLES / "workloads").glob("*.yaml") if path.name != "storage.yaml")
    assert len(names) == 5
    found = _pods(_after("demo/01-cluster.yaml", *(f"workloads/{name}" for name in names)))
    assert sum(found.values()) == 6 + 2 + 3 + 3 + 2 + 1 + 6
    assert not [name for name in found if " is " in name]


def test_stateful_pods_come_in_order_and_one_to_a_node() -> None:
    simulation = _after(CLUSTERS[0], "workloads/zookeeper.yaml")
    pods = [pod for pod in simulation.store.list("Pod") if isinstance(pod, Pod)]
    assert [pod.name for pod in pods] == ["zk-0", "zk-1", "zk-2"]
    assert len({pod.node_name for pod in pods}) == 3
    started = [pod.start_time for pod in pods]
    assert started == sorted(started)
    claims = simulation.store.list("PersistentVolumeClaim")
    assert [(claim.name, claim.status["phase"]) for claim in claims] == [
        (f"datadir-zk-{number}", "Bound") for number in range(3)
    ]
