"""Tests of the number of forks in a diagnosis: none for causes, and few for remedies."""

from pathlib import Path
from typing import Any

import attrs
import pytest

from kschedd.answers import plain
from kschedd.api.selecting.terms import PodAffinityTerm
from kschedd.cache.counts import PodCounts
from kschedd.causes.diagnosis import diagnosis
from kschedd.causes.pending import pending_groups
from kschedd.explain.judging import NodeVerdict
from kschedd.methods import daemon_methods
from kschedd.scenarios.commands import ScenarioCluster
from kschedd.scheduling.snapshots.cluster import ClusterSnapshot
from kschedd.simulation.engine import Engine

NODES = "".join(
    f"""
apiVersion: v1
kind: Node
metadata: {{name: n{number}, labels: {{node-pool: general}}}}
status: {{allocatable: {{cpu: "4", memory: 8Gi, pods: "20"}}, capacity: {{cpu: "4", memory: 8Gi, pods: "20"}}}}
---
"""
    for number in range(6)
)
TEN_REPLICAS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 10
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {node-pool: genral}
      containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]
"""


@pytest.fixture
def snapshots(monkeypatch: pytest.MonkeyPatch) -> list[ClusterSnapshot]:
    """Collect every snapshot from which a fork is created."""
    made: list[ClusterSnapshot] = []
    original = Engine.snapshot

    def noted(engine: Engine) -> ClusterSnapshot:
        made.append(original(engine))
        return made[-1]

    monkeypatch.setattr(Engine, "snapshot", noted)
    return made


@pytest.fixture
def cluster(tmp_path: Path) -> ScenarioCluster:
    made = ScenarioCluster(tmp_path)
    assert "error" not in made.do("apply", NODES + TEN_REPLICAS)
    made.do("advance 60s", "")
    return made


def explained(cluster: ScenarioCluster, **how: Any) -> dict[str, Any]:
    found: dict[str, Any] = cluster.connect().call("causes.explain", kind="Deployment", name="web", **how)
    return found


def test_a_cause_takes_no_fork(cluster: ScenarioCluster, snapshots: list[ClusterSnapshot]) -> None:
    assert explained(cluster, remedies=False)["cause"]["code"] == "NodeLabelMisspelled"
    assert [group["count"] for group in cluster.connect().call("causes.pending")] == [10]
    assert snapshots == []


def test_the_remedies_of_ten_replicas_take_few_forks(
    cluster: ScenarioCluster, snapshots: list[ClusterSnapshot]
) -> None:
    first = explained(cluster)["remedies"][0]
    assert (first["verified"], first["scheduled"]) == (True, "10 of 10")
    assert 0 < len(snapshots) <= 5


def test_a_diagnosis_changes_no_later_name(tmp_path: Path) -> None:
    scaled: list[list[str]] = []
    for examined in (False, True):
        cluster = ScenarioCluster(tmp_path)
        cluster.do("apply", NODES + TEN_REPLICAS)
        cluster.do("advance 60s", "")
        if examined:
            explained(cluster)
            cluster.connect().call(
                "scheduler.explain", pod={"kind": "Pod", "spec": {"containers": [{"name": "c", "image": "i"}]}}
            )
        cluster.do("scale deployment web --replicas=12", "")
        scaled.append([pod["metadata"]["name"] for pod in cluster.connect().call("objects.list", kind="Pod")["items"]])
    assert scaled[0] == scaled[1]


def test_a_snapshot_for_reading_gives_the_same_diagnosis_and_counts_no_pod(
    cluster: ScenarioCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = cluster.cluster.engine
    snapshot = attrs.evolve(engine.snapshot(), controllers=(), reading=True)

    def refuse(*given: Any) -> None:
        raise AssertionError("a pod is counted")

    monkeypatch.setattr(PodCounts, "add", refuse)
    read = Engine(resumed=snapshot)
    for each in (engine, read):
        assert [group.code for group in pending_groups(each, None, lambda: None)] == ["NodeLabelMisspelled"]
    obj = engine.store.get("Deployment", "default", "web")
    answers = [plain(diagnosis(each, obj, daemon_methods, trying=False)) for each in (engine, read)]
    assert answers[0] == answers[1]


def test_a_trial_checks_after_each_decision(cluster: ScenarioCluster) -> None:
    engine = cluster.cluster.engine
    obj = engine.store.get("Deployment", "default", "web")
    checks: list[None] = []
    found = diagnosis(engine, obj, daemon_methods, most=1, check=lambda: checks.append(None))
    assert found.remedies[0].scheduled == "10 of 10"
    assert len(checks) >= 10


@pytest.mark.parametrize("replicas", [4, 40])
def test_a_selector_that_no_pod_matches_is_evaluated_once_for_pods_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replicas: int
) -> None:
    cluster = ScenarioCluster(tmp_path)
    others = TEN_REPLICAS.replace("web", "api").replace("genral", "general").replace("10", str(replicas))
    term = "{topologyKey: node-pool, labelSelector: {matchLabels: {app: apj}}}"
    affinity = f"affinity: {{podAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{term}]}}}}"
    lonely = TEN_REPLICAS.replace("nodeSelector: {node-pool: genral}", affinity)
    assert "error" not in cluster.do("apply", f"{NODES}{others}---{lonely}")
    cluster.do("advance 60s", "")
    evaluated: list[PodAffinityTerm] = []
    original = PodAffinityTerm.matches

    def counting(term: PodAffinityTerm, *given: Any) -> bool:
        evaluated.append(term)
        return original(term, *given)

    monkeypatch.setattr(PodAffinityTerm, "matches", counting)
    assert explained(cluster, remedies=False)["cause"]["code"] == "PodAffinityMatchesNothing"
    assert len(evaluated) == 4, "of one class of pods, and of the pod itself"


def test_nodes_that_are_rejected_alike_are_grouped_without_a_verdict_for_each(
    cluster: ScenarioCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: Any) -> None:
        raise AssertionError("a node has its own verdict")

    monkeypatch.setattr(NodeVerdict, "__init__", refuse)
    assert explained(cluster, remedies=False)["cause"]["code"] == "NodeLabelMisspelled"
