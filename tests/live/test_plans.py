"""Tests that `plan` gives the same answers on a mirror of a cluster and on a dump of that cluster."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pytest

from kschedd.api.conditions import is_true
from kschedd.api.pods import Pod
from kschedd.clusters.virtual import VirtualCluster
from kschedd.controllers.embedded import embedded_controllers
from kschedd.live.mirror import MIRRORED
from kschedd.scenarios.commands import ScenarioCluster
from kschedd.simulation.engine import Engine
from tests.apiserver.asking import node
from tests.full_run import everyday
from tests.live.test_mirror import Origin, mirror_of, served, until

Raw = dict[str, Any]
VERBS = (
    "apply",
    "delete node n1",
    "delete node n1 n2 n3 n4",
    "scale deployment web --replicas 9",
    "rollout restart deployment web",
    "drain n2 --ignore-daemonsets --force",
    "taint nodes n3 gone=yes:NoExecute",
    "delete pod db-0",
    "scale statefulset db --replicas 4",
    "delete deployment web",
    "node stop n2",
)


def workload(chance: random.Random, kind: str, name: str, **spec: object) -> Raw:
    requests = {"cpu": f"{chance.randrange(1, 16)}00m", "memory": f"{chance.randrange(1, 8)}00Mi"}
    labels = {"app": name}
    pod: Raw = {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}
    if chance.random() < 0.4:
        term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
        pod["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    if kind == "Job":
        pod["restartPolicy"] = "Never"
    else:
        spec["selector"] = {"matchLabels": labels}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**spec, "template": {"metadata": {"labels": labels}, "spec": pod}},
    }


def objects(chance: random.Random) -> list[Raw]:
    budget = {"minAvailable": chance.randrange(1, 4), "selector": {"matchLabels": {"app": "web"}}}
    return [
        *map(node, ("n2", "n3", "n4")),  # n1 already exists
        workload(chance, "Deployment", "web", replicas=chance.randrange(1, 6)),
        workload(chance, "StatefulSet", "db", replicas=chance.randrange(1, 4), serviceName="db"),
        workload(chance, "DaemonSet", "agent"),
        workload(chance, "Job", "crunch", parallelism=2, completions=3),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": budget,
        },
    ]


def answer(
    folder: Path, cluster: ScenarioCluster, verb: str, manifest: Raw
) -> tuple[int, Raw, Counter[tuple[str, ...]]]:
    """Return the exit status, the result, and the number of pods with each change.

    Names of new pods and the choice among equally good nodes are random, and therefore left out.
    """
    (folder / "change.yaml").write_text(json.dumps(manifest))
    given = cluster.execute(f"plan -o json {verb}" + (" -f change.yaml" if verb == "apply" else ""), "")
    found, _ = json.JSONDecoder().raw_decode(given.text)  # warnings may follow
    fields = ("sign", "change", "why", "cause", "workload")
    return given.status, found["result"], Counter(tuple(map(pod.get, fields)) for pod in found["pods"])


async def begun(origin: Origin) -> bool:
    """Return whether each workload has its pods, and each pod runs or has been found unschedulable."""
    read = origin.cluster.store
    pods = await read.list("Pod")
    counts = Counter(pod.metadata["labels"]["app"] for pod in pods)
    complete = [
        counts[one.name] == one.raw["spec"]["replicas"] or (one.kind == "StatefulSet" and 0 < counts[one.name])
        for kind in ("Deployment", "StatefulSet")
        for one in await read.list(kind)
    ]
    settled = (pod.status.get("phase") == "Running" or "Unschedulable" in str(pod.status) for pod in pods)
    return len(counts) == 4 and all(complete) and all(settled)


@pytest.mark.parametrize("seed", everyday(range(4), lambda seed: seed == 2))
async def test_a_plan_is_the_same_on_a_mirror_and_on_a_dump(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    async with served(Origin, 0, controllers=embedded_controllers()) as real:
        for raw in objects(chance):
            await real.cluster.store.create(raw)
        await until(lambda: begun(real))
        manifest = workload(chance, "Deployment", "huge", replicas=2)
        manifest["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "9"
        changed: Counter[tuple[str, ...]] = Counter()
        async with mirror_of(tmp_path, real) as (cluster, _):
            for verb in VERBS:
                snapshot = await cluster.snapshot()
                items = [obj.raw for kind in MIRRORED for obj in snapshot.store.list(kind)]
                (tmp_path / "dump.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
                mirror = ScenarioCluster(tmp_path, cluster=VirtualCluster(resumed=snapshot))
                loaded = ScenarioCluster(tmp_path, cluster=VirtualCluster(start_s=mirror.cluster.engine.start_s))
                loaded.do("load dump.json", "")
                of_mirror = answer(tmp_path, mirror, verb, manifest)
                assert of_mirror == answer(tmp_path, loaded, verb, manifest), verb
                changed += of_mirror[2]
            assert {"placed", "pending", "moved", "gone"} <= {change for _, change, *_ in changed}


def test_a_silent_node_stays_silent_in_a_fork() -> None:
    """A mirror has no simulated kubelets, and the real kubelet of a node may have stopped."""
    mirrored = Engine()
    taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
    for name, status in (("n1", "True"), ("n2", "Unknown")):
        raw = node(name)
        conditions = [
            {"type": "Ready", "status": status, "reason": "NodeStatusUnknown" if name == "n2" else "KubeletReady"}
        ]
        mirrored.store.create({**raw, "spec": {"taints": [taint] if name == "n2" else []}}, restore=True)
        mirrored.store.merge_patch("Node", "", name, {"status": {"conditions": conditions}}, subresource="status")
    fork = Engine(resumed=attrs.evolve(mirrored.snapshot(), fresh=embedded_controllers()))
    fork.store.create(workload(random.Random(1), "DaemonSet", "agent"))
    fork.run_to_rest(600)
    found = fork.store.get("Node", "", "n2")
    assert not is_true(found.status, "Ready")
    assert taint in [{key: each[key] for key in taint} for each in found.spec["taints"]]
    assert [pod.node_name for pod in fork.store.list("Pod") if isinstance(pod, Pod) and pod.phase == "Running"] == [
        "n1"
    ]
