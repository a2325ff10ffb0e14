"""Tests of the verbs `consolidate` and `remove-node`, and of their plans."""

import json
from pathlib import Path
from typing import Any

import pytest

from kschedd.scenarios.commands import ScenarioCluster

POOLS = """\
pools:
- {name: small, shape: "cpu=4,memory=16Gi", price: 0.2, limit: 10}
- {name: large, shape: "cpu=16,memory=64Gi", price: 0.7, limit: 4}
"""
NODE = (
    "{apiVersion: v1, kind: Node, metadata: {name: %s, labels: {kschedd.io/pool: %s}, annotations: {%s}},"
    " status: {allocatable: {cpu: '%d', memory: 64Gi, pods: '110'}}}"
)
WEB = """{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: %d,
 selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [
 {name: a, image: a, resources: {requests: {cpu: '1', memory: 1Gi}}}]}}}}"""
BUDGET = """{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {maxUnavailable: 0,
 selector: {matchLabels: {app: web}}}}"""
BARE = (
    "{apiVersion: v1, kind: Pod, metadata: {name: bare, annotations: {%s}}, "
    "spec: {nodeName: large-1, containers: [{name: a, image: a}]}}"
)


@pytest.fixture
def cluster(tmp_path: Path) -> ScenarioCluster:
    (tmp_path / "pools.yaml").write_text(POOLS)
    return ScenarioCluster(tmp_path)


def nodes(*large: str, small: int = 1) -> list[str]:
    made = [NODE % (f"large-{number}", "large", annotation, 16) for number, annotation in enumerate(large, 1)]
    return [*made, *(NODE % (f"small-{number}", "small", "", 4) for number in range(1, small + 1))]


def answer(cluster: ScenarioCluster, line: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cluster.do(f"{line} --pools pools.yaml -o json", ""))
    return found


def verdicts(found: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {each["node"]: (each["verdict"], each["rule"]) for each in found["nodes"]}


def test_karpenter_removes_nodes_until_the_cheapest_set_is_left(cluster: ScenarioCluster) -> None:
    cluster.do("apply", "\n---\n".join([*nodes("", ""), WEB % 3]))
    planned = json.loads(cluster.do("plan -o json consolidate --pools pools.yaml", ""))
    assert (planned["result"]["pending"], planned["result"]["complete"]) == (0, True)
    removed = {node for each in planned["pools"]["removals"] for node in each["nodes"]}
    assert {"large-1", "large-2"} <= removed
    assert cluster.do("get nodes --no-headers", "").count("Ready") == 3, "a plan removes nothing"
    cluster.do("consolidate --pools pools.yaml", "")
    assert "large" not in cluster.do("get nodes --no-headers", "")
    cluster.do("rest", "")
    assert cluster.do("get pods --no-headers", "").count("Running") == 3


def test_a_node_is_replaced_by_a_cheaper_one(cluster: ScenarioCluster) -> None:
    cluster.do("apply", "\n---\n".join([*nodes("", small=0), WEB % 2]))
    (removal,) = answer(cluster, "consolidate --dry-run")["removals"]
    assert (removal["nodes"], removal["replacement"]["pool"]) == (["large-1"], "small")
    assert removal["saved"] == pytest.approx(0.5)
    done = cluster.execute("consolidate --pools pools.yaml --once", "")
    assert (done.status, "replaced by small-1 (small)" in done.text) == (0, True), done.text
    assert cluster.do("get nodes --no-headers", "").split()[0] == "small-1"


def test_cluster_autoscaler_keeps_the_node_that_takes_the_pods(cluster: ScenarioCluster) -> None:
    cluster.do("apply", "\n---\n".join([*nodes("", "", small=0), WEB % 4]))
    found = answer(cluster, "consolidate --dry-run --autoscaler cluster-autoscaler")
    assert sorted(verdicts(found).values()) == [("delete", "Unneeded"), ("keep", "NoPlaceToMovePods")]
    assert [len(each["nodes"]) for each in found["removals"]] == [1]


@pytest.mark.parametrize(
    ("autoscaler", "annotation", "objects", "rule", "words"),
    [
        pytest.param(
            "karpenter", "karpenter.sh/do-not-disrupt: 'true'", [], "candidate", "do-not-disrupt", id="node-annotation"
        ),
        pytest.param("karpenter", "", [BUDGET], "candidate", "web allows no eviction of pod", id="pod-budget"),
        pytest.param(
            "karpenter",
            "",
            [BARE % "karpenter.sh/do-not-disrupt: 'true'"],
            "candidate",
            "pod default/bare has the annotation",
            id="pod-annotation",
        ),
        pytest.param("cluster-autoscaler", "", [BUDGET], "BlockedByPod", "NotEnoughPdb", id="no-disruption-left"),
        pytest.param("cluster-autoscaler", "", [BARE % ""], "BlockedByPod", "bare: NotReplicated", id="bare-pod"),
        pytest.param(
            "cluster-autoscaler",
            "cluster-autoscaler.kubernetes.io/scale-down-disabled: 'true'",
            [],
            "ScaleDownDisabledAnnotation",
            "scale-down-disabled",
            id="disabled",
        ),
    ],
)
def test_what_blocks_a_node_is_named_with_its_rule(
    cluster: ScenarioCluster, autoscaler: str, annotation: str, objects: list[str], rule: str, words: str
) -> None:
    cluster.do("apply", "\n---\n".join([*nodes(annotation, small=0), WEB % 2, *objects]))
    cluster.do("advance 1m", "")
    cluster.do("apply", nodes("", small=2)[1])
    done = cluster.execute(f"remove-node large-1 --pools pools.yaml --autoscaler {autoscaler} -o json", "")
    (verdict,) = json.loads(done.text)["nodes"]
    assert (done.status, verdict["verdict"], verdict["rule"]) == (1, "keep", rule), verdict
    assert words in verdict["why"]
    assert "large-1" in cluster.do("get nodes", "")
    planned = cluster.execute(f"plan remove-node large-1 --pools pools.yaml --autoscaler {autoscaler}", "")
    assert (planned.status, rule in planned.text) == (1, True)


def test_a_node_of_no_pool_is_kept(cluster: ScenarioCluster) -> None:
    cluster.do("apply", NODE % ("own", "none", "", 4))
    for autoscaler, rule in (("karpenter", "no pool"), ("cluster-autoscaler", "NotAutoscaled")):
        found = cluster.execute(f"remove-node own --pools pools.yaml --autoscaler {autoscaler}", "")
        assert (found.status, rule in found.text) == (1, True)


def test_disruption_budgets_of_a_pool_hold_at_their_time(cluster: ScenarioCluster, tmp_path: Path) -> None:
    types = "[{name: t, resources: {cpu: '4', memory: 16Gi}, offerings: [{Price: 1, Requirements: []}]}]"
    (tmp_path / "pools.yaml").write_text(
        "kind: NodePool\nmetadata: {name: small}\nspec: {template: {spec: {}}, "
        "disruption: {budgets: [{nodes: '0', schedule: '0 0 * * *', duration: 8h}]}}\n---\n" + types
    )
    cluster.do("apply", "\n---\n".join([*nodes("", small=2)[1:], WEB % 1]))
    found = answer(cluster, "remove-node small-1 --dry-run")
    assert verdicts(found) == {"small-1": ("keep", "budget")}
    assert "a disruption budget of the pool small allows no more node" in found["nodes"][0]["why"]
    cluster.do("advance 9h", "")
    assert verdicts(answer(cluster, "remove-node small-1 --dry-run"))["small-1"][0] == "delete"


def test_a_missing_node_is_an_error(cluster: ScenarioCluster) -> None:
    found = cluster.execute("remove-node none --pools pools.yaml", "")
    assert (found.status, 'nodes "none" not found' in found.text) == (2, True)


def test_remove_node_names_no_removal_in_a_dry_run(cluster: ScenarioCluster) -> None:
    cluster.do("apply", "\n---\n".join(nodes("")))
    assert "saves 0.7 per hour" in cluster.do("remove-node large-1 --pools pools.yaml --dry-run", "")
    assert "large-1" in cluster.do("get nodes", "")
