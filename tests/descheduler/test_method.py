"""Tests of the method that runs a cycle in a cluster, and of its verb."""

from pathlib import Path

import pytest

from kschedd.scenarios.commands import ScenarioCluster

POLICY = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig:
  - {name: DefaultEvictor, args: {EVICTOR}}
  - {name: PodLifeTime, args: {maxPodLifeTimeSeconds: 60}}
  plugins: {deschedule: {enabled: [PodLifeTime]}}
"""
NODE = "{apiVersion: v1, kind: Node, metadata: {name: %s}, status: {allocatable: {cpu: '8', memory: 8Gi, pods: '9'}}}"
WEB = """{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2,
 selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [
 {name: a, image: a}]}}}}"""
BUDGET = """{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {minAvailable: 1,
 selector: {matchLabels: {app: web}}}}"""


@pytest.fixture
def cluster(tmp_path: Path) -> ScenarioCluster:
    (tmp_path / "policy.yaml").write_text(POLICY.replace("{EVICTOR}", "{}"))
    made = ScenarioCluster(tmp_path)
    made.do("apply", "\n---\n".join([NODE % "n1", NODE % "n2", WEB, BUDGET]))
    made.do("advance 2m", "")
    return made


def test_a_cycle_evicts_as_far_as_the_budget_allows(cluster: ScenarioCluster) -> None:
    shown = cluster.execute("deschedule -f policy.yaml --dry-run", "")
    assert shown.text.count("would be evicted from") == 1
    assert cluster.do("get pods --no-headers", "").count("Running") == 2, "a dry run evicts nothing"
    done = cluster.execute("deschedule -f policy.yaml", "")
    assert (done.status, done.text.count(" evicted from n")) == (1, 2)
    assert "PodLifeTime of profile p): its PodDisruptionBudget allows no disruption" in done.text
    cluster.do("rest", "")
    ages = cluster.do("get pods --no-headers", "").split()[4::5]
    assert len(set(ages)) == 2, "one pod is new"


def test_a_limit_of_the_policy_is_no_refusal(cluster: ScenarioCluster, tmp_path: Path) -> None:
    cluster.do("delete pdb web", "")
    (tmp_path / "one.yaml").write_text(POLICY.replace("{EVICTOR}", "{}") + "maxNoOfPodsToEvictTotal: 1\n")
    done = cluster.execute("deschedule -f one.yaml", "")
    assert (done.status, done.text.count(" evicted from n")) == (0, 2)
    assert "maxNoOfPodsToEvictTotal is reached" in done.text


def test_the_next_run_is_part_of_a_plan(cluster: ScenarioCluster) -> None:
    plan = cluster.do("plan deschedule -f policy.yaml", "")
    assert "pods: 1 moved" in plan
    assert "The next run with this policy would evict 1 pod again: default/web-" in plan


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("deschedule", "-f/--filename is required", id="no-file"),
        pytest.param("deschedule -f nope.yaml", "nope.yaml: cannot be read", id="missing-file"),
        pytest.param("deschedule -f wrong.yaml", "wrong.yaml:3: $.profile: no such field", id="wrong-field"),
        pytest.param("deschedule -f class.yaml", 'there is no PriorityClass "gold"', id="unknown-class"),
    ],
)
def test_a_policy_that_cannot_be_used(cluster: ScenarioCluster, tmp_path: Path, line: str, expected: str) -> None:
    head = POLICY.partition("profiles")[0]
    (tmp_path / "wrong.yaml").write_text(head + "profile: []\n")
    (tmp_path / "class.yaml").write_text(POLICY.replace("{EVICTOR}", "{priorityThreshold: {name: gold}}"))
    found = cluster.execute(line, "")
    assert found.status != 0
    assert expected in found.text


def test_a_single_node_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY.replace("{EVICTOR}", "{}"))
    cluster = ScenarioCluster(tmp_path)
    cluster.do("apply", "\n---\n".join([NODE % "n1", WEB]))
    cluster.do("advance 2m", "")
    assert "needs two ready nodes, and the policy selects 1" in cluster.do("deschedule -f policy.yaml", "")
