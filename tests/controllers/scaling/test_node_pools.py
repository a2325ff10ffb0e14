"""Tests of node pools in virtual time: launches, failures, removals, and their times."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import attrs
import pytest

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.controllers.running.controller import View
from kschedd.controllers.scaling.node_pools import NodePools
from kschedd.pools.cluster import PooledCluster
from kschedd.pools.decisions import autoscaler
from kschedd.pools.decisions.loops import RemovalLoop
from kschedd.pools.reading import PoolFile, read_pools
from kschedd.scenarios.commands import ScenarioCluster
from kschedd.scheduling.trial_cluster import TrialCluster
from kschedd.simulation.engine import Engine
from kschedd.store.objects.log import WatchEvent
from kschedd.store.writes import Patch, Write
from kschedd.values import run_steps
from tests.bench.node_pools import NOW_S, objects, pod

POOLS = """\
pools:
- {name: small, shape: "cpu=4,memory=16Gi", price: 0.2}
- {name: large, shape: "cpu=16,memory=64Gi", price: 0.7}
autoscaler: {name: %s, bootTime: 60s%s}
"""
KARPENTER = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: batch}
spec:
  template: {spec: {startupTaints: [{key: cold, effect: NoSchedule}]}}
  disruption: {consolidateAfter: 5m, consolidationPolicy: WhenEmpty, budgets: [{nodes: "%s"}]}
---
[{"name": "t", "resources": {"cpu": "4", "memory": "16Gi"}, "offerings": [{"Price": 1, "Requirements": []}]}]
"""
WEB = """{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: %d,
 selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {
 terminationGracePeriodSeconds: 0, containers: [
 {name: a, image: a, resources: {requests: {cpu: 1500m, memory: 1Gi}}}]}}}}"""
HUGE = """{apiVersion: v1, kind: Pod, metadata: {name: huge}, spec: {containers: [
 {name: a, image: a, resources: {requests: {cpu: "40"}}}]}}"""
BUDGET = """{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {maxUnavailable: 0,
 selector: {matchLabels: {app: web}}}}"""


def cluster_of(folder: Path, text: str) -> ScenarioCluster:
    (folder / "pools.yaml").write_text(text)
    cluster = ScenarioCluster(folder)
    cluster.do("controllers --pools pools.yaml", "")
    return cluster


def nodes(cluster: ScenarioCluster) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(cluster.do("get nodes -o json", ""))["items"]
    return found


def names(cluster: ScenarioCluster) -> list[str]:
    return [each["metadata"]["name"] for each in nodes(cluster)]


def running(cluster: ScenarioCluster) -> int:
    return cluster.do("get pods --no-headers", "").count("Running")


def test_karpenter_waits_for_its_batch_and_the_boot_of_the_node(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, POOLS % ("karpenter", ""))
    cluster.do("apply", WEB % 2)
    cluster.do("advance 30s", "")
    assert names(cluster) == []
    cluster.do("advance 2s", "")
    assert names(cluster) == ["small-1"], "registered after 1 s of the batch and half of the boot time"
    assert "karpenter.sh/unregistered" in {taint["key"] for taint in nodes(cluster)[0]["spec"]["taints"]}
    assert running(cluster) == 0
    cluster.do("advance 30s", "")
    cluster.do("rest", "")
    assert (running(cluster), nodes(cluster)[0]["spec"].get("taints")) == (2, None)


def test_startup_taints_are_removed_when_the_node_is_ready(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, KARPENTER % "10%")
    cluster.do("apply", WEB % 1)
    cluster.do("advance 35s", "")
    assert {"cold", "karpenter.sh/unregistered"} <= {taint["key"] for taint in nodes(cluster)[0]["spec"]["taints"]}
    cluster.do("advance 40s", "")
    assert (running(cluster), nodes(cluster)[0]["spec"].get("taints")) == (1, None)


def test_pods_that_come_later_use_a_node_that_is_being_launched(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, POOLS % ("karpenter", ""))
    cluster.do("apply", WEB % 1)
    cluster.do("advance 10s", "")
    cluster.do("scale deployment web --replicas 2", "")
    cluster.do("rest", "")
    assert (names(cluster), running(cluster)) == (["small-1"], 2)


def test_cluster_autoscaler_scales_one_group_a_loop(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, POOLS % ("cluster-autoscaler", ""))
    cluster.do("apply", WEB % 2)
    cluster.do("advance 69s", "")
    assert names(cluster) == []
    cluster.do("advance 2s", "")
    assert names(cluster) == ["small-1"], "a loop begins every 10 s, and the node boots for 60 s"
    cluster.do("rest", "")
    assert running(cluster) == 2


@pytest.mark.parametrize("autoscaler", ["karpenter", "cluster-autoscaler"])
def test_failed_launches_are_repeated(tmp_path: Path, autoscaler: str) -> None:
    cluster = cluster_of(tmp_path, POOLS % (autoscaler, ", launchFailures: 0.5"))
    cluster.do("apply", WEB % 8)
    cluster.do("advance 3h", "")
    assert running(cluster) == 8


def test_empty_nodes_go_after_consolidate_after_and_the_validation(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, KARPENTER % "10%")
    cluster.do("apply", WEB % 2)
    cluster.do("rest", "")
    cluster.do("scale deployment web --replicas 0", "")
    cluster.do("advance 5m", "")
    assert names(cluster) == ["batch-1"]
    cluster.do("advance 30s", "")
    assert names(cluster) == []


def test_a_disruption_budget_of_the_pool_keeps_empty_nodes(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, KARPENTER % "0")
    cluster.do("apply", WEB % 2)
    cluster.do("rest", "")
    cluster.do("scale deployment web --replicas 0", "")
    assert "at rest" in cluster.do("rest", ""), "the periodic look at the budget is no work"
    cluster.do("advance 1h", "")
    assert names(cluster) == ["batch-1"]


def test_consolidation_moves_pods_to_fewer_nodes(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, POOLS % ("karpenter", ""))
    cluster.do("apply", WEB % 6)
    cluster.do("rest", "")
    assert len(names(cluster)) == 3
    cluster.do("scale deployment web --replicas 2", "")
    cluster.do("rest", "")
    cluster.do("advance 10m", "")
    assert (len(names(cluster)), running(cluster)) == (1, 2)


def test_a_pod_disruption_budget_keeps_a_node(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, POOLS % ("karpenter", ""))
    cluster.do("apply", f"{WEB % 6}\n---\n{BUDGET}")
    cluster.do("rest", "")
    before = names(cluster)
    cluster.do("scale deployment web --replicas 2", "")
    cluster.do("advance 1h", "")
    pods = {pod["spec"]["nodeName"] for pod in json.loads(cluster.do("get pods -o json", ""))["items"]}
    assert (set(names(cluster)), pods <= set(before)) == (pods, True), "only empty nodes are removed"


def test_cluster_autoscaler_removes_a_node_that_was_unneeded_for_ten_minutes(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, POOLS % ("cluster-autoscaler", ", delayAfterAdd: 0s"))
    cluster.do("apply", WEB % 4)
    cluster.do("rest", "")
    assert len(names(cluster)) == 2
    cluster.do("scale deployment web --replicas 2", "")
    cluster.do("advance 9m", "")
    assert len(names(cluster)) == 2
    cluster.do("advance 3m", "")
    cluster.do("rest", "")
    assert (len(names(cluster)), running(cluster)) == (1, 2)


def test_scale_down_can_be_turned_off(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, POOLS % ("karpenter", ", scaleDown: false"))
    cluster.do("apply", WEB % 2)
    cluster.do("rest", "")
    cluster.do("delete deployment web", "")
    cluster.do("advance 1h", "")
    assert names(cluster) == ["small-1"]


def test_a_fork_continues_with_the_nodes_that_are_being_launched(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, POOLS % ("karpenter", ""))
    cluster.do("apply", WEB % 2)
    cluster.do("advance 5s", "")
    cluster.do("fork create f", "")
    cluster.do("fork run f rest", "")
    assert cluster.do("fork run f get pods --no-headers", "").count("Running") == 2
    assert names(cluster) == []
    cluster.do("rest", "")
    assert running(cluster) == 2


@pytest.mark.parametrize("autoscaler", ["karpenter", "cluster-autoscaler"])
def test_the_same_seed_gives_the_same_run(tmp_path: Path, autoscaler: str) -> None:
    found = []
    for run in ("a", "b"):
        (tmp_path / run).mkdir()
        cluster = cluster_of(tmp_path / run, POOLS % (autoscaler, ", launchFailures: 0.3, expander: [random]"))
        cluster.do("apply", WEB % 9)
        cluster.do("advance 20m", "")
        cluster.do("scale deployment web --replicas 3", "")
        cluster.do("advance 30m", "")
        found.append(cluster.do("get pods -A -o wide", "") + cluster.do("get nodes", ""))
    assert found[0] == found[1]


class CountedTurns(NodePools):
    """Node pools that count their turns while a decision is in progress."""

    turns = 0

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        self.turns += self.next_work == 0.0
        return super().reconcile(events, view, now)


def test_a_decision_takes_several_turns() -> None:
    counts = []
    for pods in (10, 100):
        pools = CountedTurns(read_pools([PoolFile("p", POOLS % ("karpenter", ""))]), TrialCluster.in_steps)
        engine = Engine(controllers=[pools])
        for number in range(pods):
            container = {"name": "a", "image": "a", "resources": {"requests": {"cpu": "1"}}}
            meta = {"name": f"p-{number}", "namespace": "default"}
            engine.store.create(
                {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}}
            )
        engine.advance(engine.now + 5)
        counts.append(pools.turns)
    assert counts[0] >= 1
    assert counts[1] >= 10, "a turn plans about 8 pods"


@pytest.mark.parametrize(
    ("text", "words"),
    [("pools: [{name: p}]", "pools.yaml:1: $.pools[0].shape: required"), ("", "the file is empty")],
)
def test_files_that_cannot_be_used_are_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "pools.yaml").write_text(text)
    found = ScenarioCluster(tmp_path).execute("controllers --pools pools.yaml", "")
    assert (found.status != 0, words in found.text) == (True, True), found.text


def test_explain_names_the_pools_and_the_rules_for_a_pod_without_a_launch(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, POOLS % ("karpenter", ""))
    cluster.do("apply", WEB % 1 + "\n---\n" + HUGE)
    text = cluster.do("explain huge", "")
    assert text.endswith(
        "no pool launches a node for default/huge:\n"
        "  pool small (resources): cpu: the pod, and DaemonSets, need 40; the largest instance type has 4\n"
        "  pool large (resources): cpu: the pod, and DaemonSets, need 40; the largest instance type has 16\n"
    ), text
    found = json.loads(cluster.do("explain huge -o json", ""))["pools"]
    assert [(each["pool"], each["rule"]) for each in found["refused"]] == [
        ("small", "resources"),
        ("large", "resources"),
    ]
    assert (found["launch"], found["existing"]) == (None, "")


def test_explain_names_the_node_that_is_launched_for_a_pod(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, POOLS % ("karpenter", ""))
    cluster.do("apply", WEB % 1)
    (pod,) = (line.partition(" ")[0] for line in cluster.do("get pods --no-headers", "").splitlines())
    launch = f"node small-1 (pool small: small, 0.2 per hour) for default/{pod}"
    assert cluster.do(f"explain {pod}", "").endswith(f"karpenter launches {launch}\n")
    cluster.do("advance 5s", "")
    assert f"karpenter is launching {launch}; it is ready at 2025-01-01T00:01:0" in cluster.do(
        "explain deployment/web", ""
    )
    cluster.do("rest", "")
    assert "small-1 (pool" not in cluster.do(f"explain {pod}", "")


def test_explain_reads_pools_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "pools.yaml").write_text(POOLS % ("cluster-autoscaler", ""))
    cluster = ScenarioCluster(tmp_path)
    cluster.do("apply", HUGE)
    assert "pool" not in cluster.do("explain huge", "")
    assert "pool small (template): its template rejects the pod: Insufficient cpu" in cluster.do(
        "explain huge --pools pools.yaml", ""
    )
    assert "--pools: 1 of 1 paths cannot be read" in cluster.do("explain huge --pools no.yaml", "")


SPOT = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: spot}
spec: {template: {spec: {}}, disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: Never}}
---
[{"name": "t", "resources": {"cpu": "2", "memory": "16Gi"}, "offerings": [{"Price": 1, "Requirements": [
  {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["%s"]}]}]}]
---
autoscaler: {interruptions: [{at: 1h, count: %s}]}
"""


def test_interrupted_spot_nodes_are_drained_and_replaced(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, SPOT % ("spot", "50%"))
    cluster.do("apply", WEB % 4)
    cluster.do("advance 59m", "")
    assert (len(names(cluster)), running(cluster)) == (4, 4)
    before = {each["metadata"]["uid"] for each in nodes(cluster)}
    cluster.do("advance 61s", "")
    cluster.do("advance 5m", "")
    after = {each["metadata"]["uid"] for each in nodes(cluster)}
    assert (len(before & after), len(after), running(cluster)) == (2, 4, 4)


def test_an_interrupted_node_is_deleted_after_its_warning_although_a_budget_keeps_its_pod(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, SPOT % ("spot", "1"))
    cluster.do("apply", WEB % 1 + "\n---\n" + BUDGET)
    cluster.do("advance 1h1m", "")
    assert (len(names(cluster)), running(cluster)) == (1, 1), "the budget refuses the eviction"
    uid = nodes(cluster)[0]["metadata"]["uid"]
    cluster.do("advance 2m", "")
    assert uid not in {each["metadata"]["uid"] for each in nodes(cluster)}
    cluster.do("advance 5m", "")
    assert running(cluster) == 1


def test_nodes_that_are_not_spot_nodes_are_not_interrupted(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, SPOT % ("on-demand", "100%"))
    cluster.do("apply", WEB % 2)
    cluster.do("advance 59m", "")
    before = nodes(cluster)
    cluster.do("advance 10m", "")
    assert [each["metadata"]["uid"] for each in nodes(cluster)] == [each["metadata"]["uid"] for each in before]


def test_a_pool_without_capacity_types_is_interrupted_by_its_name(tmp_path: Path) -> None:
    interruptions = ", interruptions: [{at: 10m, pool: small, warning: 30s}, {at: 10m, zone: z, count: 100%}]"
    cluster = cluster_of(tmp_path, POOLS % ("cluster-autoscaler", interruptions))
    cluster.do("apply", WEB % 2)
    cluster.do("advance 10m1s", "")
    assert names(cluster) == [], "its pods end at once"
    cluster.do("advance 3m", "")
    assert running(cluster) == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[{count: 1}]", "at: required, such as 2h"),
        ("[{at: 1h, count: 0}]", "must be a number of nodes or a share of them"),
        ("[{at: 1h, count: 101%}]", "must be a number of nodes or a share of them"),
        ("[{at: soon}]", "at"),
        ("[{at: 1h, nodes: 3}]", "nodes"),
        ("1h", "interruptions"),
    ],
)
def test_interruptions_with_errors_are_rejected(text: str, why: str) -> None:
    with pytest.raises(ConfigErrors, match=why):
        read_pools([PoolFile("pools.yaml", POOLS % ("karpenter", f", interruptions: {text}"))])


@pytest.mark.parametrize("autoscaler", ["karpenter", "cluster-autoscaler"])
def test_a_decision_about_removals_pauses_at_each_pod(autoscaler: str) -> None:
    every = objects(12)
    pools = read_pools([PoolFile("pools.yaml", POOLS % (autoscaler, ""))])
    trials = run_steps(TrialCluster.in_steps(every))
    steps = RemovalLoop(pools).step(PooledCluster.of(every, NOW_S), trials, frozenset())
    count = sum(1 for _ in steps)
    moved = sum(isinstance(each, Pod) for each in every) // 4
    assert count > moved, "so no turn holds the loop for the whole decision"


def test_a_decision_about_launches_pauses_at_each_pod() -> None:
    every = [*objects(2), *(pod(f"pending-{number}", "", 3000, number) for number in range(40))]
    pools = read_pools([PoolFile("pools.yaml", POOLS % ("cluster-autoscaler", ""))])
    cluster, trials = PooledCluster.of(every, NOW_S), run_steps(TrialCluster.in_steps(every))
    cluster = attrs.evolve(
        cluster, pending=[each for each in every if isinstance(each, Pod) and each.name.startswith("pending")]
    )
    steps = autoscaler.launching(cluster, pools, trials, random.Random(1), loops=1)
    assert sum(1 for _ in steps) > 3 * 40, "placing, estimating for a group, and placing again pause at each pod"


def test_nodes_that_started_before_a_restart_become_ready(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, KARPENTER % "10%")
    cluster.do("apply", WEB % 1)
    cluster.do("advance 35s", "")
    (node,) = nodes(cluster)
    assert "cold" in {taint["key"] for taint in node["spec"]["taints"]}
    restarted = cluster_of(tmp_path, KARPENTER % "10%")
    restarted.do(
        "apply", json.dumps({**node, "metadata": {name: node["metadata"][name] for name in ("name", "labels")}})
    )
    restarted.do("apply", WEB % 1)
    restarted.do("advance 40s", "")
    assert (names(restarted), nodes(restarted)[0]["spec"].get("taints"), running(restarted)) == (["batch-1"], None, 1)


def test_nodes_that_were_drained_before_a_restart_are_decided_again() -> None:
    pools = read_pools([PoolFile("pools.yaml", POOLS % ("karpenter", ""))])
    controller, view = NodePools(pools, TrialCluster.in_steps), cast("View", None)
    taint = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
    meta = {"name": "small-1", "labels": {"kschedd.io/pool": "small"}}
    node = Node.from_raw({"kind": "Node", "metadata": meta, "spec": {"taints": [taint]}})
    event = WatchEvent("ADDED", None, node, 1)
    (write,) = controller.reconcile([event], view, 0.0)
    assert isinstance(write, Patch)
    assert (write.name, write.patch["spec"]) == ("small-1", {"taints": None})
    assert controller.reconcile([event], view, 1.0) == [], "only at the start"
