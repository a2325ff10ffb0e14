"""Tests of the verb `scale-up`, and of `plan scale-up`, which compares an autoscaler with the scheduler."""

import json
from pathlib import Path
from typing import Any

import pytest

from kschedd.scenarios.commands import ScenarioCluster

POOLS = """\
pools:
- {name: small, shape: "cpu=4,memory=16Gi", price: 0.2, limit: 3}
- {name: large, shape: "cpu=16,memory=64Gi", price: 0.7, limit: 2}
"""
WEB = """{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 4,
 selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [
 {name: a, image: a, resources: {requests: {cpu: 1500m, memory: 1Gi}}}]}}}}"""
POD = "{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {app: %s}}, spec: %s}"
BIG = POD % ("big", "big", "{containers: [{name: a, image: a, resources: {requests: {cpu: '30'}}}]}")
PICKY = POD % ("picky", "picky", "{nodeSelector: {disk: fast}, containers: [{name: a, image: a}]}")
DAEMON = """{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {
 selector: {matchLabels: {app: agent}}, template: {metadata: {labels: {app: agent}}, spec: {containers: [
 {name: a, image: a, resources: {requests: {cpu: '2'}}}]}}}}"""


@pytest.fixture
def cluster(tmp_path: Path) -> ScenarioCluster:
    (tmp_path / "pools.yaml").write_text(POOLS)
    return ScenarioCluster(tmp_path)


def plan(cluster: ScenarioCluster, line: str, *manifests: str) -> dict[str, Any]:
    if manifests:
        cluster.do("apply", "\n---\n".join(manifests))
    found: dict[str, Any] = json.loads(cluster.do(f"plan -o json scale-up --pools pools.yaml {line}", ""))["pools"]
    return found


@pytest.mark.parametrize(
    ("flags", "launched", "price"),
    [
        pytest.param("karpenter", [("small", 2), ("small", 2)], 0.4, id="karpenter-takes-the-cheapest-types"),
        pytest.param("cluster-autoscaler", [("small", 2), ("small", 2)], 0.4, id="least-waste-is-the-default"),
        pytest.param("cluster-autoscaler --expander least-nodes", [("large", 4)], 0.7, id="least-nodes"),
    ],
)
def test_launches_and_their_price(
    cluster: ScenarioCluster, flags: str, launched: list[tuple[str, int]], price: float
) -> None:
    found = plan(cluster, f"--autoscaler {flags}", WEB)
    assert [(each["pool"], len(each["pods"])) for each in found["launches"]] == launched
    assert found["price"] == pytest.approx(price)
    assert (found["expected"], found["disagreements"], found["unused"]) == (4, [], [])
    assert cluster.do("get nodes", "").startswith("No resources"), "a plan launches nothing"


def test_the_chosen_expander_decides(cluster: ScenarioCluster) -> None:
    found = plan(cluster, "--autoscaler cluster-autoscaler --expander price", WEB)
    assert [each["pool"] for each in found["launches"]] == ["small", "small"]


def test_pods_of_daemon_sets_take_room_on_new_nodes(cluster: ScenarioCluster) -> None:
    for autoscaler in ("karpenter", "cluster-autoscaler"):
        found = plan(cluster, f"--autoscaler {autoscaler}", WEB, DAEMON)
        assert (found["disagreements"], found["unused"]) == ([], [])
        pods = [len(each["pods"]) for each in found["launches"] if each["pool"] == "small"]
        assert all(count == 1 for count in pods), "2 of 4 cores are left for a pod of 1.5 cores"


@pytest.mark.parametrize(
    ("autoscaler", "pod", "pool", "rule", "words"),
    [
        ("karpenter", BIG, "large", "resources", "need 30; the largest instance type has 16"),
        ("karpenter", PICKY, "small", "requirement", "the pod needs disk In (fast), and the pool does not define"),
        ("cluster-autoscaler", BIG, "large", "template", "its template rejects the pod: Insufficient cpu"),
        ("cluster-autoscaler", PICKY, "small", "template", "didn't match Pod's node affinity/selector"),
    ],
)
def test_a_pod_without_a_launch_names_each_pool_and_its_rule(
    cluster: ScenarioCluster, autoscaler: str, pod: str, pool: str, rule: str, words: str
) -> None:
    found = plan(cluster, f"--autoscaler {autoscaler}", pod)
    (refused,) = found["refused"]
    why = {each["pool"]: each for each in refused["pools"]}
    assert why.keys() == {"small", "large"}
    assert (why[pool]["rule"], words in why[pool]["why"]) == (rule, True), why


@pytest.mark.parametrize("autoscaler", ["karpenter", "cluster-autoscaler"])
def test_the_limit_of_a_pool_is_named(cluster: ScenarioCluster, tmp_path: Path, autoscaler: str) -> None:
    (tmp_path / "pools.yaml").write_text("pools: [{name: p, shape: 'cpu=4,memory=16Gi', limit: 1}]")
    found = plan(cluster, f"--autoscaler {autoscaler}", WEB)
    assert [each["pods"] for each in found["launches"]] == [found["launches"][0]["pods"]]
    reasons = {why["why"] for each in found["refused"] for why in each["pools"]}
    assert (len(found["refused"]), len(reasons)) == (2, 1)
    assert "1 node" in reasons.pop()


def test_a_constraint_that_the_autoscaler_does_not_know_is_a_disagreement(cluster: ScenarioCluster) -> None:
    """The configuration of the scheduler has a constraint for pods without one; Karpenter reads only the pods."""
    config = """{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: [{
     pluginConfig: [
      {name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: [
       {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]}}]}]}"""
    cluster.do("config apply -f -", config)
    service = "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}}}"
    found = plan(cluster, "--autoscaler karpenter", WEB, service)
    assert len(found["launches"]) == 2
    assert len(found["disagreements"]) == 4
    assert "didn't match pod topology spread constraints" in found["disagreements"][0]["why"]
    assert found["unused"] == ["small-1", "small-2"]


def test_manifests_are_applied_before_the_decision(cluster: ScenarioCluster, tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(WEB)
    assert len(plan(cluster, "-f web.yaml")["launches"]) == 2
    assert cluster.do("get deployments", "").startswith("No resources")
    done = cluster.execute("scale-up --pools pools.yaml -f web.yaml", "")
    assert (done.status, done.text.count("small-")) == (0, 2)
    cluster.do("rest", "")
    assert cluster.do("get pods --no-headers", "").count("Running") == 4


def test_a_dry_run_launches_nothing(cluster: ScenarioCluster) -> None:
    cluster.do("apply", WEB)
    assert "price per hour: 0.4" in cluster.do("scale-up --pools pools.yaml --dry-run", "")
    assert cluster.do("get nodes", "").startswith("No resources")
    assert "small-2" in cluster.do("scale-up --pools pools.yaml", "")
    assert "4 pods fit on the present nodes" in cluster.do("scale-up --pools pools.yaml", "")
    cluster.do("rest", "")
    assert "no pod is unschedulable: nothing is launched" in cluster.do("scale-up --pools pools.yaml", "")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("scale-up", "--pools FILE is required"),
        ("scale-up --pools none.yaml", "none.yaml: cannot be read"),
        ("scale-up --pools wrong.yaml", "wrong.yaml:1: $.pool: no such field"),
        ("scale-up --pools pools.yaml --autoscaler none", "karpenter, cluster-autoscaler"),
        ("scale-up --pools pools.yaml --expander best", '"best" is not one of least-waste'),
        ("scale-up --pools karpenter.yaml --autoscaler cluster-autoscaler", "NodePools are pools of Karpenter"),
    ],
)
def test_input_that_cannot_be_used(cluster: ScenarioCluster, tmp_path: Path, line: str, words: str) -> None:
    (tmp_path / "wrong.yaml").write_text("pool: []")
    types = "- {name: t, resources: {cpu: '1'}, offerings: []}"
    (tmp_path / "karpenter.yaml").write_text(f"kind: NodePool\nmetadata: {{name: pool}}\nspec: {{}}\n---\n{types}")
    found = cluster.execute(line, "")
    assert (found.status, words in found.text) == (2, True), found.text
