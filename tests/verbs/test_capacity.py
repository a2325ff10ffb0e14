"""Tests of the verbs capacity and nodes-needed on a cluster in virtual time."""

import json
from pathlib import Path

import pytest

from kschedd.printing.reports import agreement
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.scenarios.commands import ScenarioCluster

NODE = (
    "{apiVersion: v1, kind: Node, metadata: {name: %s}, status: {allocatable: {cpu: '%s', memory: 8Gi, pods: '9'}}}\n"
)
POD = (
    "{apiVersion: v1, kind: Pod, metadata: {name: %s}, "
    "spec: {containers: [{name: a, image: a, resources: {requests: {cpu: '%s'}}}]}}\n"
)


APART = (
    "{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {app: %s}}, spec: {affinity: {podAntiAffinity: "
    "{requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: "
    "{matchLabels: {app: %s}}}]}}, containers: [{name: a, image: a, resources: {requests: {cpu: '3'}}}]}}\n"
)


@pytest.fixture
def scenario(tmp_path: Path) -> ScenarioCluster:
    (tmp_path / "pods.yaml").write_text(POD % ("small", "500m") + "---\n" + POD % ("large", "3"))
    (tmp_path / "five.yaml").write_text("---\n".join(POD % (f"p{number}", "1") for number in range(5)))
    for name, cpu in (("one", "1"), ("four", "4")):
        (tmp_path / f"{name}.yaml").write_text(NODE % (name, cpu))
    cluster = ScenarioCluster(tmp_path)
    assert cluster.do("apply", NODE % ("here", "2")) == "node/here created\n"
    return cluster


def test_capacity_counts_each_spec_by_itself(scenario: ScenarioCluster) -> None:
    assert scenario.do("capacity -f pods.yaml", "").splitlines() == [
        "SPEC        MORE FIT   NODES   WHY NOT MORE",
        "pod/small   4          1       0/1 nodes are available: 1 Insufficient cpu.",
        "pod/large   0          0       0/1 nodes are available: 1 Insufficient cpu.",
    ]
    assert scenario.do("get pods", "") == "No resources found in default namespace.\n"


def test_capacity_of_several_together_counts_sets(scenario: ScenarioCluster, tmp_path: Path) -> None:
    (tmp_path / "pair.yaml").write_text(POD % ("web", "500m") + "---\n" + POD % ("cache", "750m"))
    assert scenario.do("capacity -f pair.yaml --together", "").splitlines() == [
        "SPEC                  MORE FIT   NODES   WHY NOT MORE",
        "pod/web + pod/cache   1          1       pod/cache: 0/1 nodes are available: 1 Insufficient cpu.",
    ]
    scenario.do("apply", NODE % ("there", "4"))
    assert "pod/web + pod/cache   4 " in scenario.do("capacity -f pair.yaml --together", "")
    assert "pod/web + pod/cache   3+ " in scenario.do("capacity -f pair.yaml --together --limit 3", "")


def test_capacity_says_what_one_more_node_of_a_shape_would_bring(scenario: ScenarioCluster) -> None:
    assert scenario.do("capacity -f pods.yaml --shape one.yaml=1 --shape four.yaml=3", "").splitlines() == [
        "SPEC        MORE FIT   +1 ONE   +1 FOUR           NODES   WHY NOT MORE",
        "pod/small   4          +2       +8 (0.375 each)   1       0/1 nodes are available: 1 Insufficient cpu.",
        "pod/large   0          +0       +1 (3 each)       0       0/1 nodes are available: 1 Insufficient cpu.",
    ]
    assert scenario.do("get nodes -o name", "") == "node/here\n"


GPU_NODE = (
    "{apiVersion: v1, kind: Node, metadata: {name: %s}, status: {allocatable: {cpu: '64', memory: 256Gi, pods: '99', "
    "example.com/gpu: '8'}}}"
)
TRAIN = (
    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: train}, spec: {replicas: 6, selector: {matchLabels: "
    "{app: train}}, template: {metadata: {labels: {app: train}}, spec: {containers: [{name: a, image: i, resources: "
    "{limits: {example.com/gpu: 2}, requests: {cpu: '4'}}}]}}}}"
)


@pytest.fixture
def trained(tmp_path: Path) -> ScenarioCluster:
    cluster = ScenarioCluster(tmp_path)
    cluster.do("apply", "\n---\n".join((GPU_NODE % "g1", GPU_NODE % "g2", TRAIN)))
    cluster.do("advance 60s", "")
    return cluster


def test_capacity_of_a_workload_counts_all_its_pods_and_those_of_other_sizes(trained: ScenarioCluster) -> None:
    assert trained.do("capacity deployment/train", "").splitlines() == [
        "SPEC               FIT   NODES   FIT BY SIZE                                 WHY NOT MORE",
        "deployment/train   8     2       16x1 or 8x2 or 4x4 or 2x8 example.com/gpu   0/2 nodes are available: "
        "2 Insufficient example.com/gpu.",
    ]
    assert " 4x1 or 2x2 example.com/gpu " in trained.do("capacity -f - --alternatives", TRAIN)
    assert trained.do("get pods -o name", "").count("pod/train-") == 6


def test_plan_says_how_many_fit_at_most(trained: ScenarioCluster) -> None:
    result = trained.execute("plan scale deployment train --replicas 12", "")
    assert result.status == 1
    last = result.text.splitlines()[-3:]
    assert last[0].startswith("deployment/train: 8 of 12 pods fit; 2 example.com/gpu requested, ")
    assert last[1] == "  pods that fit, by the size of their request: 16x1 or 8x2 or 4x4 or 2x8 example.com/gpu"
    assert last[2] == "complete: 4 pods stay pending, and no work is left"
    planned = json.loads(trained.execute("plan -o json scale deployment train --replicas 12", "").text)
    (largest,) = planned["largest"]
    assert (largest["fits"], largest["wanted"], largest["amount"]) == (8, 12, "2")
    assert [(one["amount"], one["fits"]) for one in largest["alternatives"]] == [("1", 16), ("4", 4), ("8", 2)]


def test_capacity_is_of_a_workload_or_of_files(trained: ScenarioCluster) -> None:
    assert "give either KIND/NAME of a workload or -f FILE" in trained.do("capacity node/g1", "")


def test_capacity_ends_at_the_limit(scenario: ScenarioCluster) -> None:
    assert "pod/small   3+         1       (--limit)" in scenario.do("capacity -f pods.yaml --limit 3", "")


def test_capacity_with_a_shape_at_the_limit_makes_nothing_up(scenario: ScenarioCluster) -> None:
    assert "pod/small   3+         ?" in scenario.do("capacity -f pods.yaml --limit 3 --shape one.yaml", "")


def test_nodes_needed_says_the_fewest_of_one_shape(scenario: ScenarioCluster) -> None:
    answer = scenario.do("nodes-needed -f five.yaml --shape one.yaml", "")
    assert answer.splitlines()[1].split() == ["one", "3", "3"]
    assert "the minimum" in answer
    assert scenario.do("get nodes -o name", "") == "node/here\n"


def test_nodes_needed_names_the_cheapest_mixture(scenario: ScenarioCluster) -> None:
    answer = scenario.do("nodes-needed -f five.yaml --shape one.yaml=1 --shape four.yaml=2", "")
    assert [line.split() for line in answer.splitlines()[1:3]] == [["one", "0", "0"], ["four", "1", "2"]]
    assert "price 2: the minimum" in answer


def test_nodes_needed_states_the_gap_to_the_bound(
    scenario: ScenarioCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("kschedd.simulation.comparing.needed_nodes._PODS_TRIED", 0)
    monkeypatch.setattr("kschedd.simulation.comparing.needed_nodes._TRIALS", (0, 0))
    (tmp_path / "eight.yaml").write_text(NODE % ("eight", "8"))
    (tmp_path / "apart.yaml").write_text("---\n".join(APART % (name, name, other) for name, other in ("ab", "ba")))
    answer = scenario.do("nodes-needed -f apart.yaml --shape four.yaml=1 --shape eight.yaml=1.9", "")
    assert [line.split() for line in answer.splitlines()[1:3]] == [["four", "2", "2"], ["eight", "0", "0"]]
    assert "price 2: no node of it can be omitted; another mixture may be up to 5.0% cheaper (bound: 1.9)" in answer


POOLS = """\
pools:
- {name: small, shape: "cpu=2,memory=8Gi", price: 0.1, limit: 1}
- {name: large, shape: "cpu=8,memory=32Gi", price: 0.3%s}
"""


def test_nodes_needed_chooses_among_the_nodes_of_pools(scenario: ScenarioCluster, tmp_path: Path) -> None:
    (tmp_path / "pools.yaml").write_text(POOLS % "")
    answer = scenario.do("nodes-needed -f five.yaml --pools pools.yaml", "")
    assert answer.splitlines()[0].split() == ["POOL", "TYPE", "ZONE", "CAPACITY", "NODES", "PRICE"]
    assert answer.splitlines()[1].split() == ["large", "large", "-", "-", "1", "0.3"], (
        "3 of the small pool are too many"
    )
    assert "price 0.3: the minimum" in answer
    (tmp_path / "pools.yaml").write_text(POOLS % ", limit: 0")
    answer = scenario.do("nodes-needed -f five.yaml --pools pools.yaml", "")
    assert "within the limits of the pools" in answer


NODE_POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  limits: {cpu: "%s"}
  template: {spec: {requirements: [{key: team, operator: In, values: [a, b]}]}}
---
[{"name": "m4", "resources": {"cpu": "4", "memory": "16Gi"}, "offerings": [
  {"Price": 0.2, "Requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]},
  {"Price": 0.1, "Requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}]}]}]
"""


def test_nodes_needed_respects_requirements_and_limits_of_node_pools(scenario: ScenarioCluster, tmp_path: Path) -> None:
    (tmp_path / "np.yaml").write_text(NODE_POOL % "8")
    of_team = "".join(
        POD.replace("spec: {", f"spec: {{nodeSelector: {{team: {team}}}, ") % (f"t{team}", "2") + "---\n"
        for team in "ab"
    )
    (tmp_path / "teams.yaml").write_text(of_team)
    found = json.loads(scenario.do("nodes-needed -f teams.yaml --pools np.yaml -o json", ""))
    assert [(each["type"], each["capacity_type"], each["count"]) for each in found["nodes"]] == [("m4", "spot", 1)] * 2
    assert (found["price"], found["exact"], found["bound"]) == (0.2, True, 0.2)
    (tmp_path / "np.yaml").write_text(NODE_POOL % "7")
    assert len(json.loads(scenario.do("nodes-needed -f teams.yaml --pools np.yaml -o json", ""))["unplaced"]) == 2


def test_all_pools_have_a_price_or_none_has(scenario: ScenarioCluster, tmp_path: Path) -> None:
    (tmp_path / "pools.yaml").write_text((POOLS % "").replace("price: 0.1, ", ""))
    answer = scenario.do("nodes-needed -f five.yaml --pools pools.yaml", "")
    assert 'pools: "small" has no price: give all pools a price, or none (each node: 1)' in answer


def test_nodes_needed_of_the_pods_that_are_pending(scenario: ScenarioCluster) -> None:
    assert scenario.do("nodes-needed --shape four.yaml", "") == "everything fits without additional nodes\n"
    scenario.do("apply", POD % ("wide", "3"))
    assert "four    1       1" in scenario.do("nodes-needed --shape four.yaml", "")
    assert "1 pod does not fit on any number of these nodes" in scenario.do("nodes-needed --shape one.yaml", "")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("nodes-needed -f five.yaml", "--shape NODE.yaml[=PRICE] or --pools FILE is required"),
        ("nodes-needed --shape pods.yaml", "must contain exactly one Node"),
        ("nodes-needed --shape one.yaml=cheap", 'invalid price "cheap"'),
        ("nodes-needed --shape one.yaml=-1", "a number from 0 up is expected"),
        ("nodes-needed --shape one.yaml --shape one.yaml", "two shapes have the same name"),
        ("capacity -f pods.yaml --shape pods.yaml", "must contain exactly one Node"),
        ("capacity -f pods.yaml --shape one.yaml --shape one.yaml", "two shapes have the same name"),
        ("capacity -f one.yaml", "a Node is no pod and has no pod template"),
        ("capacity -f nowhere.yaml", "nowhere.yaml"),
    ],
)
def test_what_cannot_be_asked_is_refused(scenario: ScenarioCluster, line: str, why: str) -> None:
    answer = scenario.do(line, "")
    assert "error" in answer
    assert why in answer


CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
    pluginConfig:
      - name: NodeResourcesFit
        args: {scoringStrategy: {type: %s, resources: [{name: cpu, weight: 1}]}}
"""


def test_compare_says_which_pods_go_elsewhere_and_which_plugin_decided(
    scenario: ScenarioCluster, tmp_path: Path
) -> None:
    for strategy in ("LeastAllocated", "MostAllocated"):
        (tmp_path / f"{strategy}.yaml").write_text(CONFIG % strategy)
    scenario.do("apply", NODE % ("wide", "8"))
    (tmp_path / "one-pod.yaml").write_text(POD % ("web", "1"))
    line = "compare --config LeastAllocated.yaml --config MostAllocated.yaml -f one-pod.yaml"
    answer = scenario.do(line, "")
    assert answer.splitlines()[0] == (
        "LeastAllocated.yaml -> MostAllocated.yaml: 1 pod, 1 placed elsewhere; pending 0 -> 0"
    )
    assert "placed elsewhere by plugin:\n  NodeResourcesFit       1\n" in answer
    assert "~ default/web: wide -> here (NodeResourcesFit: here scores -" in answer
    assert scenario.do("get pods", "") == "No resources found in default namespace.\n"


def test_compare_with_itself_finds_nothing(scenario: ScenarioCluster, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CONFIG % "LeastAllocated")
    answer = scenario.do("compare --config a.yaml --config a.yaml -f five.yaml", "")
    assert answer == "a.yaml -> a.yaml: 5 pods, none placed elsewhere; pending 3 -> 3\n"
    assert "--kube-version A,B is required" in scenario.do("compare", "")


def test_a_comparison_with_a_mirror_requires_one(scenario: ScenarioCluster) -> None:
    assert "this daemon mirrors no cluster: start a mirror with `kschedd run --mirror`" in scenario.do(
        "compare --mirror", ""
    )
    assert "--mirror excludes --weight" in scenario.do("compare --mirror --weight NodeResourcesFit=5", "")
    assert "-o html is not available with --mirror" in scenario.do("compare --mirror -o html", "")


def test_a_comparison_with_a_mirror_shows_counts_rules_and_the_newest_differences() -> None:
    other = {"at_s": 60.0, "pod": "a/p", "node": "n1", "expected": ["n2"], "result": "rejected", "plugin": "Fit"}
    found = {
        "since_s": 0.0,
        "bound": 1205,
        "of_others": 1,
        "not_evaluated": 4,
        "results": {"equal": 1195, "race": 3, "rejected": 2},
        "plugins": [{"plugin": "Fit", "result": "rejected", "pods": 2}],
        "latest": [{**other, "why": "Fit: older"}, {**other, "at_s": 90.0, "why": "Fit: Insufficient cpu"}],
    }
    lines = agreement.as_text(found, 1, 7200.0, TerminalStyle()).splitlines()
    assert lines[:4] == [
        "1,205 pods bound since 1970-01-01T00:00:00Z (120m); 1,200 evaluated.",
        "99.6% of them are on a node that this daemon would choose.",
        "1 pod of schedulers without a profile here: not evaluated",
        "4 pods bound faster than they can be evaluated",
    ]
    assert [line.split()[:2] for line in lines[6:9]] == [["equal", "1,195"], ["race", "3"], ["rejected", "2"]]
    assert lines[-3:] == [
        "latest differences (1, the newest first):",
        "~ 1970-01-01T00:01:30Z a/p: n1 there, n2 here (rejected)",
        "    Fit: Insufficient cpu",
    ]
    assert agreement.differs(found)
    assert not agreement.differs({"results": {"equal": 5, "race": 1, "partial search": 2}})
    nothing = agreement.as_text({**found, "bound": 0, "results": {}}, 1, 60.0, TerminalStyle())
    assert nothing == "The mirrored cluster has bound no pod since 1970-01-01T00:00:00Z (60s).\n"


def test_one_configuration_or_a_weight_is_compared_with_the_present_one(
    scenario: ScenarioCluster, tmp_path: Path
) -> None:
    (tmp_path / "packed.yaml").write_text(CONFIG % "MostAllocated")
    (tmp_path / "one-pod.yaml").write_text(POD % ("web", "1"))
    scenario.do("apply", NODE % ("wide", "8"))
    line = "compare --config packed.yaml -f one-pod.yaml"
    assert scenario.do(line, "").startswith("present configuration -> packed.yaml: 1 pod, 1 placed elsewhere;")
    by_weight = scenario.do(f"{line} --weight NodeResourcesFit=2 --weight ImageLocality=1", "")
    assert by_weight.startswith(
        "packed.yaml -> weight NodeResourcesFit 2, weight ImageLocality 1: 1 pod, none placed elsewhere;"
    )
    alone = scenario.do("compare -f one-pod.yaml --weight NodeResourcesFit=5", "")
    assert alone.startswith("present configuration -> weight NodeResourcesFit 5: 1 pod, none placed elsewhere;")
    assert 'did you mean "NodeResourcesFit"?' in scenario.do("compare --weight NodeResourceFit=5", "")
    assert "PLUGIN=N is expected" in scenario.do("compare --weight NodeResourcesFit", "")


def test_a_planned_weight_leads_to_the_comparison(scenario: ScenarioCluster) -> None:
    planned = scenario.do("plan set weight NodeResourcesFit 5", "")
    assert "`kschedd compare --weight NodeResourcesFit=5` shows which of them" in planned
    assert "kschedd compare" not in scenario.do("plan cordon here", "")


def test_workloads_that_own_each_other_are_counted_once(trained: ScenarioCluster) -> None:
    [one] = json.loads(trained.do("get replicasets -o json", ""))["items"] or [None]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": one["metadata"]["name"]}
    reference = {**owner, "uid": one["metadata"]["uid"], "controller": True}
    before = trained.do("capacity deployment/train", "")
    pods = trained.connect().call("causes.explain", kind="Deployment", name="train")["wanted"]
    patch = json.dumps({"metadata": {"ownerReferences": [reference]}})
    assert "patched" in trained.do(f"patch deployment train --type merge -p '{patch}'", "")
    assert trained.do("capacity deployment/train", "") == before
    assert trained.connect().call("causes.explain", kind="Deployment", name="train")["wanted"] == pods
