"""Tests that `plan` predicts the node of every pod."""

import json
from pathlib import Path

import pytest

from kschedd.scenarios.commands import ScenarioCluster

NODE = (
    "{apiVersion: v1, kind: Node, metadata: {name: n%d, labels: {topology.kubernetes.io/zone: z%d}}, "
    "status: {allocatable: {cpu: '%d', memory: 16Gi, pods: '20'}}}"
)
DEPLOYMENT = """{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s}, spec: {replicas: %d,
 selector: {matchLabels: {app: %s}}, template: {metadata: {labels: {app: %s}}, spec: {
 topologySpreadConstraints: [{maxSkew: 2, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway,
 labelSelector: {matchLabels: {app: %s}}}],
 containers: [{name: a, image: a, resources: {requests: {cpu: %s, memory: 256Mi}}}]}}}}"""
PLACES = "get pods -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName --no-headers"


@pytest.fixture
def cluster(tmp_path: Path) -> ScenarioCluster:
    made = ScenarioCluster(tmp_path)
    nodes = [NODE % (number, number % 3, 4 + number % 3) for number in range(9)]
    apps = [DEPLOYMENT % (app, count, app, app, app, cpu) for app, count, cpu in (("web", 18, "700m"), ("db", 6, "1"))]
    made.do("apply", "\n---\n".join([*nodes, *apps]))
    made.do("advance 1m", "")
    return made


def places(cluster: ScenarioCluster) -> dict[str, str]:
    return dict(line.split() for line in cluster.do(PLACES, "").splitlines())


@pytest.mark.parametrize(
    "change", ["drain n1 n4", "delete node n2 --yes", "scale deployment web --replicas 27", "node add n0 --count 3"]
)
def test_what_was_planned_is_what_is_done(cluster: ScenarioCluster, change: str) -> None:
    before = places(cluster)
    planned = json.loads(cluster.do(f"plan -o json {change}", ""))
    assert places(cluster) == before, "nothing has been done yet"
    cluster.do(change, "")
    cluster.do("rest", "")
    now = places(cluster)
    foretold = {each["successor"] or each["name"]: each["to"] for each in planned["pods"] if each["to"]}
    assert foretold == {name: node for name, node in now.items() if before.get(name) != node}
    assert {each["name"] for each in planned["pods"] if each["sign"] == "~"} == before.keys() - now.keys()
    assert foretold or change.startswith("node add")


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        pytest.param(
            "plan drain nope", 'error: nodes "nope" not found', id="what-failed-and-did-nothing-says-only-why"
        ),
        pytest.param("plan get pods", "error: get cannot be planned: it changes nothing", id="a-verb-that-only-reads"),
        pytest.param(
            "plan 'drain n1; drain n2'", "Several commands: fork create NAME", id="several-commands-in-quotes"
        ),
        pytest.param(
            "plan cordon n1 --detailed-exitcode",
            "Flags of plan go before the command: plan --detailed-exitcode cordon ...",
            id="a-flag-of-plan-after-the-verb",
        ),
        pytest.param(
            "plan scale deployment web --replicas 3 -o json",
            "error: flags of plan go before the command: plan -o FORM scale ...",
            id="a-form-after-a-verb-that-has-forms-of-its-own",
        ),
    ],
)
def test_a_plan_of_what_cannot_be_done(cluster: ScenarioCluster, line: str, answer: str) -> None:
    text = cluster.do(line, "")
    assert answer in text
    assert "nothing is different" not in text


def test_a_long_plan_begins_with_counts_and_ends_with_its_result(cluster: ScenarioCluster) -> None:
    lines = cluster.do("plan scale deployment web --replicas 60", "").splitlines()
    heads = [" ".join(line.split()) for line in lines if line.startswith("ZONE")]
    assert heads == ["ZONE PODS BEFORE PODS AFTER"]
    assert lines[0].startswith("pods: ")
    found = json.loads(cluster.do("plan -o json scale deployment web --replicas 60", ""))
    [workload] = found["summary"]["workloads"]
    pending = sum(not pod["to"] for pod in found["pods"])
    assert (workload["name"], workload["pods"], workload["pending"]) == ("Deployment default/web", 42, pending)
    assert sum(zone["after"] for zone in found["summary"]["zones"]) == 42 - pending
    assert found["result"] == {"complete": True, "pending": pending, "others_pending": 0}
    assert lines[-1] == f"complete: {pending} pods stay pending, and no work is left"


def test_a_plan_that_runs_out_of_time_is_incomplete(cluster: ScenarioCluster) -> None:
    meta = "{name: short, annotations: {kschedd.io/run-seconds: '600'}}"
    spec = "{containers: [{name: a, image: a}]}"
    cluster.do("apply", f"{{apiVersion: v1, kind: Pod, metadata: {meta}, spec: {spec}}}")
    line = cluster.do("plan --within 1s scale deployment web --replicas 19", "").splitlines()[-1]
    assert line.startswith("incomplete: no pod stays pending after 1s of virtual time, but work goes on")


def test_a_plan_says_that_scheduling_is_paused(cluster: ScenarioCluster) -> None:
    """Predict the nodes after scheduling is resumed, since the fork schedules while the cluster is paused."""
    cluster.do("pause", "")
    found = cluster.do("plan scale deployment web --replicas 1", "")
    assert found.splitlines()[-1] == "Scheduling is paused between two attempts; `kschedd resume` continues it."


def test_pods_that_were_pending_before_are_named_apart(cluster: ScenarioCluster) -> None:
    spec = "{schedulerName: other, containers: [{name: a, image: a}]}"
    cluster.do("apply", f"{{apiVersion: v1, kind: Pod, metadata: {{name: idle}}, spec: {spec}}}")
    assert cluster.do("plan scale deployment web --replicas 1", "").splitlines()[-1] == (
        "complete: no pod stays pending because of the change (1 other pod is pending as before), and no work is left"
    )


def test_a_planned_descheduler_policy_may_come_from_standard_input(cluster: ScenarioCluster) -> None:
    policy = """{apiVersion: descheduler/v1alpha2, kind: DeschedulerPolicy, maxNoOfPodsToEvictTotal: 1, profiles: [
 {name: p, pluginConfig: [{name: PodLifeTime, args: {maxPodLifeTimeSeconds: 1}}],
 plugins: {deschedule: {enabled: [PodLifeTime]}}}]}"""
    text = cluster.do("plan deschedule -f -", policy)
    assert "pods: 1 moved" in text
    assert "The next run with this policy would evict 1 pod again" in text
    [warning] = [line for line in text.splitlines() if line.startswith("Warning: ")]
    assert "not evicted from" in warning
    assert warning.endswith("(PodLifeTime of profile p): maxNoOfPodsToEvictTotal is reached")


APART = """{apiVersion: apps/v1, kind: Deployment, metadata: {name: one}, spec: {replicas: 12,
 selector: {matchLabels: {app: one}}, template: {metadata: {labels: {app: one}}, spec: {
 affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
 {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: one}}}]}},
 containers: [{name: a, image: a, resources: {requests: {cpu: 10m}}}]}}}}"""


def test_sizes_of_pods_are_named_only_if_more_of_them_fit(cluster: ScenarioCluster) -> None:
    assert "by the size of their request" in cluster.do("plan scale deployment web --replicas 60", "")
    apart = cluster.do("plan apply -f -", APART)
    assert "deployment/one: 9 of 12 pods fit; " in apart
    assert "by the size of their request" not in apart


def test_pods_of_another_scheduler_are_planned_as_pending(cluster: ScenarioCluster) -> None:
    foreign = (DEPLOYMENT % ("far", 2, "far", "far", "far", "1")).replace(
        "topologySpread", "schedulerName: foo, topologySpread"
    )
    given = cluster.execute("plan apply -f -", foreign)
    assert given.status == 1
    assert "deployment/far: 0 of 2 pods fit; no scheduler has the name foo in schedulerName" in given.text
    counted = cluster.execute("capacity -f -", foreign)
    assert 'no profile has the schedulerName "foo" (profiles: default-scheduler)' in counted.text
