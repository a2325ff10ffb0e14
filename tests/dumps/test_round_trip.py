"""A cluster saved and taken again is the same cluster; redacted, it decides the same."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kschedd.api.manifests import read_paths
from kschedd.api.pods import Pod
from kschedd.config.loading.load import default_config
from kschedd.controllers.embedded import embedded_controllers
from kschedd.dumps.loading import read_dump
from kschedd.dumps.redaction import redacted
from kschedd.dumps.saving import dump_objects, json_chunks, yaml_chunks
from kschedd.framework.registry import Registry
from kschedd.simulation.engine import LoggedAttempt
from kschedd.simulation.simulation import Simulation
from kschedd.store.store import Store

EXAMPLES = Path(__file__).parents[2] / "examples"
_ASIDE = ("Event", "Lease")
Raw = dict[str, Any]


def _simulation(start_s: float, log: list[LoggedAttempt] | None = None, *, frozen: bool = False) -> Simulation:
    return Simulation(
        default_config(),
        seed=7,
        registry=Registry(),
        controllers=() if frozen else embedded_controllers(),
        start_s=start_s,
        on_decision=None if log is None else log.append,
    )


@pytest.fixture(scope="module")
def cluster() -> Simulation:
    """Run the example workloads on two zones until no work is pending; some pods do not fit."""
    found = _simulation(1.7e9)
    found.load(read_paths([EXAMPLES / "clusters" / "two-zones.yaml", EXAMPLES / "workloads"]))
    assert found.applied.errors == []
    found.finish(3600)
    return found


def _saved(store: Store) -> list[Raw]:
    everything = (dict(obj.raw) for kind in store.kinds() if kind not in _ASIDE for obj in store.list(kind))
    return [dict(raw) for raw in dump_objects(everything)]


def taken(file: Path, start_s: float, log: list[LoggedAttempt] | None = None, *, frozen: bool = False) -> Simulation:
    found = _simulation(start_s, log, frozen=frozen)
    found.take(read_dump([str(file)]))
    return found


def _named(raws: Iterable[Raw]) -> dict[tuple[str, str, str], Raw]:
    named = {}
    for raw in raws:
        meta = {field: value for field, value in raw["metadata"].items() if field != "resourceVersion"}
        named[raw["kind"], meta.get("namespace", ""), meta["name"]] = {**raw, "metadata": meta}
    return named


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_cluster_is_the_same_after_saving_and_taking_it(cluster: Simulation, form: str, tmp_path: Path) -> None:
    before = _saved(cluster.store)
    file = tmp_path / f"dump.{form}"
    chunks = json_chunks(before) if form == "json" else yaml_chunks(before)
    file.write_text("".join(chunks), encoding="utf-8")
    again = taken(file, cluster.now)
    assert again.applied.errors == []
    assert _named(_saved(again.store)) == _named(before)
    pods = {pod.uid: pod.node_name for pod in cluster.store.list("Pod") if isinstance(pod, Pod)}
    again.finish(60)
    left = {pod.uid: pod.node_name for pod in again.store.list("Pod") if isinstance(pod, Pod)}
    assert left == pods  # nothing was made twice, nothing that was bound has moved, nothing new was placed


def _further() -> list[Raw]:
    """Pods that are created after the dump was taken."""
    made = []
    for number in range(30):
        asks = {"cpu": f"{number * 40 + 100}m", "memory": "64Mi"}
        container = {"name": "c", "image": "i", "resources": {"requests": asks}}
        meta = {"name": f"new-{number}", "labels": {"app": "new"}}
        made.append({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}})
    return made


def test_a_redacted_cluster_decides_the_same(cluster: Simulation, tmp_path: Path) -> None:
    plain = _saved(cluster.store)
    hidden, _ = redacted(plain)
    placements = []
    for name, raws in (("plain", plain), ("hidden", hidden)):
        file = tmp_path / f"{name}.json"
        file.write_text("".join(json_chunks(raws)), encoding="utf-8")
        log: list[LoggedAttempt] = []
        again = taken(file, cluster.now, log, frozen=True)
        assert again.applied.errors == []
        nodes = [node.uid for node in again.store.list("Node")]
        again.run_until_idle()
        again.store.delete("Node", "", again.store.list("Node")[0].name)  # it is lost, and more pods come
        for raw in _further():
            again.store.create(raw)
        again.finish(1200)
        uids = {node.name: node.uid for node in again.store.list("Node")}
        decided = [(one.attempt, uids.get(one.node, ""), one.feasible, one.visited, one.ties, one.score) for one in log]
        placements.append((nodes, decided))
    assert len(placements[0][1]) > 10
    assert placements[0] == placements[1]


def test_nothing_of_ones_own_is_left_in_what_is_redacted(cluster: Simulation) -> None:
    text = json.dumps(redacted(_saved(cluster.store))[0])
    for word in ("cassandra", "guestbook", "wordpress", "mysql", "fluentd", "change-me"):
        assert word not in text
    for word in ("kubernetes.io/hostname", "node.kubernetes.io/not-ready", "default-scheduler", "500m"):
        assert word in text


def test_what_names_each_other_still_does() -> None:
    claim = {"name": "data-web-db-0", "namespace": "team-a"}
    spec = {
        "nodeName": "n-1.example",
        "containers": [],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data-web-db-0"}}],
    }
    raws: list[Raw] = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n-1.example", "labels": {"team/tier": "gold"}}},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": claim, "spec": {}},
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "web-db", "namespace": "team-a"},
            "spec": {},
        },
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-db-0", "namespace": "team-a"}, "spec": spec},
    ]
    (node, pvc, workload, pod), _ = redacted(raws)
    assert pod["metadata"]["name"] == f"{workload['metadata']['name']}-0"
    assert pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == pvc["metadata"]["name"]
    assert pvc["metadata"]["name"].endswith(pod["metadata"]["name"])
    assert pod["spec"]["nodeName"] == node["metadata"]["name"]
    assert "gold" not in json.dumps(node)
