"""Objects that are applied together have the same result as one by one: in simulate, check, test and the daemon."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trio
import yaml

from kschedd.actors.cluster import LiveCluster
from kschedd.api.pods import Pod
from kschedd.cli import main
from kschedd.controllers.embedded import embedded_controllers
from kschedd.controllers.running.awaited import controllers_run_between
from kschedd.daemon import cluster_actors
from kschedd.methods import daemon_methods
from kschedd.rpc.client import Client
from kschedd.rpc.sessions.built_in import method_table
from kschedd.rpc.sessions.listener import unix_listener
from kschedd.rpc.sessions.server import Server
from kschedd.scenarios.commands import ScenarioCluster
from kschedd.service.daemon.process import DaemonState
from kschedd.store.cluster_api import ClusterReader
from tests.actors.clusters import deployment, node, pod, until

Raw = dict[str, Any]
Placements = Mapping[str, str]

QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "q"},
    "spec": {"hard": {"pods": "2"}},
}
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "b"},
    "spec": {"minAvailable": 0, "selector": {"matchLabels": {"app": "guarded"}}},
}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}},
}
VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "disk"},
    "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/disk"}},
}


def _class(name: str, value: int) -> Raw:
    meta = {"name": name}
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": meta, "value": value}


def _user() -> Raw:
    return pod("user", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}])


def _victims() -> list[Raw]:
    guarded = pod("guarded", cpu="1", nodeName="n1", priorityClassName="low")
    guarded["metadata"]["labels"] = {"app": "guarded"}
    return [guarded, pod("other", cpu="1", nodeName="n2", priorityClassName="middle")]


CASES: dict[str, tuple[list[Raw], Placements]] = {
    # The quota allows two pods.
    "quota": ([node("n1"), QUOTA, pod("a"), pod("b"), pod("c")], {"a": "n1", "b": "n1"}),
    # The Deployment's pods were created before the quota, and use it up.
    "workload": ([node("n1"), deployment(replicas=3), QUOTA, pod("a")], {"web-0": "n1", "web-1": "n1", "web-2": "n1"}),
    # The budget allows one disruption, so the pod of the least priority is the victim.
    "budget": (
        [
            node("n1", cpu="1"),
            node("n2", cpu="1"),
            *(_class(name, value) for name, value in (("low", 1), ("middle", 2), ("high", 3))),
            *_victims(),
            BUDGET,
            pod("first", cpu="1", priorityClassName="high"),
        ],
        {"other": "n2", "first": "n1"},
    ),
    # the claim is bound before the pod is attempted
    "claim": ([node("n1"), VOLUME, CLAIM, _user()], {"user": "n1"}),
}


def _numbered(placements: Placements) -> Placements:
    """Return the placements with numbers in place of the random names of a Deployment's pods."""
    web = sorted(name for name in placements if name.startswith("web-"))
    names = {name: f"web-{number}" for number, name in enumerate(web)}
    return {names.get(name, name): node_name for name, node_name in placements.items()}


def _placed(store: ClusterReader) -> Placements:
    pods = (one for one in store.list("Pod") if isinstance(one, Pod))
    return _numbered({one.name: one.node_name for one in pods if one.node_name and not one.deleting})


def _written(folder: Path, raws: list[Raw]) -> str:
    file = folder / "given.yaml"
    file.write_text(yaml.safe_dump_all(raws))
    return str(file)


@pytest.mark.parametrize(("raws", "expected"), CASES.values(), ids=CASES)
def test_by_simulate(raws: list[Raw], expected: Placements, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["simulate", "-f", _written(tmp_path, raws), "-o", "json"])
    reported = json.loads(capsys.readouterr().out)
    assert _numbered({key.removeprefix("default/"): name for key, name in reported["placements"].items()}) == expected


@pytest.mark.parametrize(("raws", "expected"), CASES.values(), ids=CASES)
def test_by_check(raws: list[Raw], expected: Placements, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "-f", _written(tmp_path, raws), "-o", "json"])
    reported = json.loads(capsys.readouterr().out)
    placed = {one["name"]: one["to"] for one in reported["pods"] if one["change"] in ("placed", "there")}
    assert _numbered(placed) == expected


@pytest.mark.parametrize(("raws", "expected"), CASES.values(), ids=CASES)
def test_by_a_scenario(raws: list[Raw], expected: Placements) -> None:
    cluster = ScenarioCluster(Path())
    cluster.execute("apply", yaml.safe_dump_all(raws))
    cluster.execute("rest", "")
    assert _placed(cluster.cluster.engine.store) == expected


async def _applied_by_a_daemon(cluster: LiveCluster, socket: Path, raws: list[Raw]) -> Any:
    daemon = DaemonState("1.2.3", str(socket), cluster.clock.now())
    server = Server(method_table(daemon_methods(cluster, daemon)))
    async with unix_listener(socket) as listener, trio.open_nursery() as nursery:
        await nursery.start(server.serve, [listener])
        async with Client.connect(socket) as client:
            answer = await client.call("objects.apply", manifests=raws)
        nursery.cancel_scope.cancel()
    return answer


@pytest.mark.parametrize(("raws", "expected"), CASES.values(), ids=CASES)
async def test_by_the_daemon(raws: list[Raw], expected: Placements, tmp_path: Path) -> None:
    async with cluster_actors(controllers=embedded_controllers()) as cluster:
        await _applied_by_a_daemon(cluster, tmp_path / "k.sock", raws)
        await until(cluster, lambda store: _placed(store) == expected)
        attempts = await cluster.log.query(lambda log: [one.outcome for one in log.attempts()])
    assert all(one[4] or one[0] == "default/first" for one in attempts), "no attempt was made too early"


@pytest.mark.parametrize(
    ("before", "after", "run"),
    [
        (QUOTA, pod("a"), True),
        (deployment(replicas=1), QUOTA, True),
        (CLAIM, QUOTA, False),
        (QUOTA, BUDGET, False),
        (deployment(replicas=1), pod("a"), True),
        (pod("a"), deployment(replicas=1), False),
        (pod("a"), CLAIM, False),
        (pod("a"), BUDGET, False),
        (pod("a"), pod("b"), False),
        ({**QUOTA, "apiVersion": "example.com/v1"}, pod("a"), False),
    ],
)
def test_where_controllers_run_between_two_objects(before: Raw, after: Raw, *, run: bool) -> None:
    assert controllers_run_between(before, after) is run
