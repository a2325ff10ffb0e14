"""Tests of expectations of a cluster: met ones, failed ones with findings, and the assertion."""

import re
import shlex
from pathlib import Path

import pytest

from kschedd.scenarios.commands import ScenarioCluster
from kschedd.verbs.command_line.grammar import UsageError
from kschedd.verbs.scheduler.expectations import expectation

CLUSTER = """\
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {topology.kubernetes.io/zone: a, disk: ssd}},
 status: {allocatable: {cpu: "2", memory: 4Gi, pods: "10"}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n2, labels: {topology.kubernetes.io/zone: b}},
 spec: {unschedulable: true}, status: {allocatable: {cpu: "2", memory: 4Gi, pods: "10"}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web-0, labels: {app: web}},
 spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 500m}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web-1, labels: {app: web}},
 spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 500m}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: big},
 spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 9}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: held},
 spec: {schedulingGates: [{name: g}], containers: [{name: c, image: i}]}}
"""


@pytest.fixture
def cluster(tmp_path: Path) -> ScenarioCluster:
    made = ScenarioCluster(tmp_path)
    assert "error" not in made.do("apply", CLUSTER)
    made.do("advance 5s", "")
    return made


MET = [
    "pod web-0 on node n1",
    "pod/web-0 on zone a",
    "pod web-0 on disk=ssd",
    "pod web-0 not on zone b",
    "pod web-0 running",
    "pod web-0 scheduled",
    "pods running -l app=web",
    "2 pods on zone a -l app=web",
    "no pods on zone b",
    "nothing failed",
    "pending big",
    "pod big pending because Insufficient cpu",
    "pod big pending because 'were unschedulable'",
    "1 pod pending because Insufficient",
    "pod held gated",
    "2 pods pending",
    "pod nobody gone",
    "max skew <= 2 over zone for app=web",
    "max skew ≤ 2",
    "max skew ≤ 2 over zone -l app=web",
    "max skew at most 0 over disk for app=web",
    "event Scheduled for pod/web-0",
    "event FailedScheduling for pod/big because Insufficient",
    "no event Preempted",
    "pod/web-0 {.spec.nodeName} = n1",
    "node/n2 {.spec.unschedulable}=true",
    "node/n2 {.spec.unschedulable} == true",
    "nothing terminating after 10m",
]
UNMET = [
    ("pod web-0 on zone b", "pod web-0 is Running on n1 (zone a)", "pod web-0 on zone a"),
    ("pod web-0 on node n2", "on n1", "pod web-0 on node n1"),
    ("pod web-0 pending", "Running on n1", "pod web-0 on node n1"),
    ("pod big on zone a", "pod big is Pending", "pod big pending because "),
    ("pod big pending because volume", "pod big is Pending", "pod big pending because '0/2 nodes"),
    ("pod held running", "SchedulingGated", "pod held gated"),
    ("pod web-9 running", 'there is no pod web-9; did you mean "web-', "pod web-9 gone"),
    ("pod web-0 not on zone a", "on n1 (zone a)", "pod web-0 on zone a"),
    ("nothing pending", "2 of 4: big, held", "2 pods pending"),
    ("3 pods on zone a -l app=web", "2 of 2: web-0, web-1", "2 pods on zone a -l app=web"),
    ("pods on zone b -l app=web", "none of 2: web-0, web-1 are not", "nothing on zone b -l app=web"),
    ("pods running -l app=none", "there is no such pod", "nothing running -l app=none"),
    ("max skew <= 1 over zone for app=web", "2 (a: 2, b: 0)", "max skew ≤ 2 over zone for app=web"),
    ("event Scheduled for pod/big", "there are FailedScheduling", "no event Scheduled for pod/big"),
    ("no event Scheduled for pod/web-0", "Successfully assigned", "event Scheduled for pod/web-0"),
    ("pod/web-0 {.spec.nodeName} = n2", "it is 'n1'", "pod/web-0"),
    ("pod web-0 evicted", "Running on n1", "pod web-0 on node n1"),
]


@pytest.mark.parametrize("assertion", MET)
def test_what_is_so_holds(cluster: ScenarioCluster, assertion: str) -> None:
    assert cluster.expect(f"expect {assertion}").met
    assert cluster.do(f"expect {assertion}", "") == ""


@pytest.mark.parametrize(("assertion", "found", "instead"), UNMET)
def test_what_is_not_so_is_told_and_what_is_so_instead_holds(
    cluster: ScenarioCluster, assertion: str, found: str, instead: str
) -> None:
    finding = cluster.expect(f"expect {assertion}")
    assert not finding.met
    assert found in finding.found
    assert finding.instead.startswith(f"expect {instead}")
    assert cluster.expect(finding.instead).met


def test_the_pods_own_message_says_why(cluster: ScenarioCluster) -> None:
    assert "1 Insufficient cpu" in cluster.expect("expect pod big running").why
    assert cluster.expect("expect nothing pending").why.startswith("big: 0/2 nodes are available")


def test_the_verb_prints_what_was_expected_what_is_and_why(cluster: ScenarioCluster) -> None:
    result = cluster.execute("expect pod big on zone a", "")
    expected, found, why = result.text.splitlines()
    assert result.status == 1
    assert expected == "expected: pod big on zone a"
    assert found == "found:    pod big is Pending"
    assert why.startswith("why:      0/2 nodes are available")


def test_within_waits_until_it_holds_and_no_longer(cluster: ScenarioCluster) -> None:
    began = cluster.cluster.engine.now
    assert cluster.expect("expect pod web-0 running within 10m").met
    assert cluster.cluster.engine.now == began
    cluster.do("taint node n1 other=x:NoExecute", "")
    assert cluster.expect("expect pod web-0 gone within 10m").met
    assert began < cluster.cluster.engine.now < began + 600


def test_an_eviction_is_seen_after_the_pod_is_gone(cluster: ScenarioCluster) -> None:
    cluster.do("taint node n1 other=x:NoExecute", "")
    assert cluster.expect("expect pod web-0 evicted because TaintManagerEviction after 2m").met
    assert cluster.expect("expect pod web-0 gone").met
    assert cluster.expect("expect nothing running").met


@pytest.mark.parametrize(
    ("assertion", "why"),
    [
        pytest.param("", "an assertion is required", id="nothing"),
        pytest.param("pod web-0", "a state is required", id="no-state"),
        pytest.param("pod web-0 runing", 'did you mean "running"', id="state-misspelt"),
        pytest.param("pots running", 'did you mean "pods"', id="subject-misspelt"),
        pytest.param("max skew 1", "max skew <= N [over", id="skew"),
        pytest.param("event Scheduled of pod/x", "event REASON [for KIND/NAME]", id="event"),
        pytest.param("nothing pending after soon", 'after "soon"', id="duration"),
        pytest.param("pod a pending because", "because requires a part of the message", id="because-nothing"),
    ],
)
def test_what_cannot_be_parsed_says_what_can(assertion: str, why: str) -> None:
    with pytest.raises(UsageError) as wrong:
        expectation(shlex.split(assertion))
    assert why in str(wrong.value)


@pytest.mark.parametrize(
    ("assertion", "answer"),
    [
        ("pod web-0 on zone-a", 'a pod cannot be "on zone-a": after "on", node NAME, zone NAME or KEY=VALUE'),
        ("2 pods running app=web", 'a pod cannot be "running app=web"; labels of pods are given with -l'),
        ("pod big scheduled within 2 minutes", 'after "within", one duration is expected, such as 30s or 5m'),
        ("pod big pending forever", 'a pod cannot be "pending forever"; only "pending" is a state'),
    ],
)
def test_a_state_with_further_words_is_answered_with_its_form(assertion: str, answer: str) -> None:
    with pytest.raises(UsageError, match=re.escape(answer)):
        expectation(shlex.split(assertion))
