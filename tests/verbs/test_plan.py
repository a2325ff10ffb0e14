"""Tests that the predictions of `plan` come true: every pod is scheduled to the predicted node."""

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
    ("line", "said"),
    [
        pytest.param(
            "plan drain nope", 'error: nodes "nope" not found', id="what-failed-and-did-nothing-says-only-why"
        ),
        pytest.param(
            "plan cordon n1 --detailed-exitcode",
            "Flags of plan go before the command: plan --detailed-exitcode cordon ...",
            id="a-flag-of-plan-after-the-verb",
        ),
    ],
)
def test_a_plan_of_what_cannot_be_done(cluster: ScenarioCluster, line: str, said: str) -> None:
    text = cluster.do(line, "")
    assert said in text
    assert "nothing is different" not in text
