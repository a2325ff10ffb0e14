"""Tests of each line of `describe` about pods, nodes and other objects, and of the conditions for it."""

from typing import Any

import pytest

from kschedd.printing.describing.describe import DescribeContext, tree, words
from kschedd.printing.describing.node import limits_of, requested_by_node, requests_of
from kschedd.printing.describing.object import describe
from kschedd.printing.describing.pod import queue_words
from kschedd.printing.terminal.style import TerminalStyle

NOW = 1_735_689_600.0  # 2025-01-01T00:00:00Z
Raw = dict[str, Any]


def related(**beside: Any) -> DescribeContext:
    return DescribeContext(NOW, TerminalStyle(), **beside)


def pod(spec: Raw | None = None, status: Raw | None = None, **meta: Any) -> Raw:
    return {"kind": "Pod", "metadata": {"name": "p", **meta}, "spec": spec or {}, "status": status or {}}


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        pytest.param(pod({"priority": 7}), "Priority:         7", id="priority"),
        pytest.param(
            pod({"priority": 7, "priorityClassName": "high"}), "Priority:         7 (high)", id="priority-by-its-class"
        ),
        pytest.param(pod({"preemptionPolicy": "Never"}), "Preemption Policy: Never", id="never-preempts"),
        pytest.param(pod(), "Scheduler:        default-scheduler", id="scheduler-unless-said-otherwise"),
        pytest.param(pod(), "Node:             <none>", id="no-node"),
        pytest.param(pod({}, {"nominatedNodeName": "n2"}), "Nominated Node:   n2", id="nominated-node"),
        pytest.param(pod({}, {"reason": "Evicted"}), "Reason:           Evicted", id="reason"),
        pytest.param(pod({}, {"podIP": "10.0.0.1"}), "IP:               10.0.0.1", id="address"),
        pytest.param(pod(), "Created:          <unknown>", id="no-time-of-creation"),
        pytest.param(
            pod({}, {"startTime": "2024-12-31T23:58:00Z"}),
            "Started:          2024-12-31 23:58:00Z (2m ago)",
            id="start-with-its-age",
        ),
        pytest.param(
            pod(deletionTimestamp="2024-12-31T23:59:30Z", deletionGracePeriodSeconds=30),
            "Terminating:      2024-12-31 23:59:30Z (30s ago), grace period 30s",
            id="terminating-with-its-grace-period",
        ),
        pytest.param(
            pod(
                ownerReferences=[
                    {"kind": "Set", "name": "a"},
                    {"kind": "ReplicaSet", "name": "b", "controller": True},
                ]
            ),
            "Controlled By:    ReplicaSet/b",
            id="the-owner-that-controls",
        ),
        pytest.param(
            pod(annotations={"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "two\nlines"}),
            "Annotations:      note: two lines",
            id="annotations-without-kubectls-own-each-on-one-line",
        ),
        pytest.param(
            pod({}, {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}),
            "Why Pending:      Unschedulable",
            id="pending-for-a-reason-without-a-message",
        ),
        pytest.param(
            pod({"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 8080}]}]}),
            "    Ports:         80/TCP (host port 8080)",
            id="host-port",
        ),
        pytest.param(
            pod({"containers": [{"name": "c", "resources": {"requests": {"memory": "1Gi", "cpu": "1"}}}]}),
            "    Requests:      cpu 1, memory 1Gi",
            id="requests-by-name",
        ),
        pytest.param(
            pod({"containers": [{"name": "c", "resources": {"claims": [{"name": "gpu"}]}}]}),
            "    Devices Of:    gpu",
            id="claims-of-a-container",
        ),
        pytest.param(
            pod({"initContainers": [{"name": "c", "restartPolicy": "Always"}]}),
            "    Restart:       Always (sidecar)",
            id="sidecar",
        ),
        pytest.param(
            pod({"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]}),
            "Tolerations:      a:NoExecute op=Exists for 300s",
            id="toleration-of-a-key-for-some-time",
        ),
        pytest.param(
            pod({"tolerations": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}),
            "Tolerations:      a=b:NoSchedule",
            id="toleration-of-a-value",
        ),
        pytest.param(
            pod({"tolerations": [{"operator": "Exists"}]}), "Tolerations:      op=Exists", id="tolerates-everything"
        ),
        pytest.param(
            pod(
                {
                    "topologySpreadConstraints": [
                        {
                            "topologyKey": "zone",
                            "whenUnsatisfiable": "DoNotSchedule",
                            "maxSkew": 1,
                            "labelSelector": {"matchLabels": {"app": "web"}},
                        }
                    ]
                }
            ),
            "Topology Spread:  zone:DoNotSchedule when max skew 1 is exceeded for selector app=web",
            id="topology-spread",
        ),
        pytest.param(pod({"overhead": {"cpu": "100m"}}), "Overhead:         cpu: 100m", id="overhead"),
        pytest.param(
            pod({"volumes": [{"name": "v", "emptyDir": {}}]}), "  v: emptyDir", id="volume-with-nothing-to-say"
        ),
        pytest.param(
            pod({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}),
            "  v: claim c",
            id="a-claim-nobody-looked-for",
        ),
        pytest.param(
            pod({"volumes": [{"name": "v", "ephemeral": {}}]}), "  v: ephemeral claim p-v", id="ephemeral-claim"
        ),
        pytest.param(
            pod({"resourceClaims": [{"name": "a", "resourceClaimName": "ra"}]}),
            "  a: claim ra",
            id="a-resource-claim-nobody-looked-for",
        ),
    ],
)
def test_a_pod_says(raw: Raw, line: str) -> None:
    assert line in describe(raw, related()).splitlines()


@pytest.mark.parametrize(
    "label",
    ["Preemption Policy", "Nominated Node", "Terminating", "Reason", "Started", "Controlled By", "Overhead", "Queue"],
)
def test_what_a_pod_does_not_have_is_not_mentioned(label: str) -> None:
    assert f"{label}:" not in describe(pod(), related())


def test_a_placed_pod_does_not_say_why_it_was_pending() -> None:
    conditions = [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes"}]
    queue = {"place": "active"}
    placed = pod({"nodeName": "n1"}, {"conditions": conditions})
    assert "Why Pending" not in describe(placed, related(queue=queue))
    assert "Queue:" not in describe(placed, related(queue=queue))
    assert "Why Pending:      0/1 nodes" in describe(pod({}, {"conditions": conditions}), related())


def test_an_ephemeral_volume_is_the_claim_of_its_own_name_not_of_one_that_ends_so() -> None:
    raw = pod({"volumes": [{"name": "data", "ephemeral": {}}]})
    claims = {
        "p-my-data": {"status": {"phase": "Bound"}, "spec": {"volumeName": "pv-other"}},
        "p-data": {"status": {"phase": "Bound"}, "spec": {"volumeName": "pv-own"}},
    }
    assert "  data: ephemeral claim p-data (Bound, volume pv-own)\n" in describe(raw, related(claims=claims))


def test_a_resource_claim_that_is_gone_is_said_to_be() -> None:
    raw = pod({"resourceClaims": [{"name": "a", "resourceClaimName": "ra"}]})
    assert "  a: claim ra (no such claim)\n" in describe(raw, related(resource_claims={"ra": None}))


def test_a_pod_that_waits_at_permit_says_for_whom_and_how_long() -> None:
    text = describe(pod(), related(waiting={"node": "n1", "plugins": {"Gang": 30, "Alone": 5}}))
    assert "Waiting:          on n1 at Permit, for Alone (5s left), Gang (30s left)\n" in text


@pytest.mark.parametrize(
    ("queued", "answer"),
    [
        pytest.param({}, "not in it", id="outside"),
        pytest.param({"place": "in_flight", "attempts": 1}, "in flight, 1 attempt", id="one-attempt"),
        pytest.param({"place": "backoff", "attempts": 2, "since_s": 61}, "backoff, 2 attempts, for 61s", id="for-long"),
        pytest.param(
            {"place": "unschedulable", "unschedulable_plugins": ["B", "A"], "pending_plugins": ["P"]},
            "unschedulable, rejected by A, B, waiting for P",
            id="plugins-by-name",
        ),
        pytest.param({"place": "gated", "gated_by": "Gates"}, "gated, gated by Gates", id="one-gate"),
        pytest.param({"place": "gated", "gated_by": ["A", "B"]}, "gated, gated by A, B", id="several-gates"),
    ],
)
def test_a_place_in_the_queue(queued: Raw, answer: str) -> None:
    assert queue_words(queued) == answer


# -- events -------------------------------------------------------------------------------------------------------


def test_events_say_how_often_they_came_and_since_when() -> None:
    event = {"type": "Warning", "reason": "FailedScheduling", "from": "s", "message": "m", "count": 3}
    event |= {"time": "2024-12-31T23:50:00Z", "last_seen": "2024-12-31T23:59:00Z"}
    lines = describe(pod(), related(events=[event, {**event, "count": 1, "message": None}])).splitlines()
    assert lines[-4:] == [
        "Events:",
        "  TYPE      REASON             AGE                 FROM   MESSAGE",
        "  Warning   FailedScheduling   60s (x3 over 10m)   s      m",
        "  Warning   FailedScheduling   60s                 s",
    ]


def test_no_events_is_something_else_than_events_not_asked_for() -> None:
    assert describe(pod(), related(events=[])).endswith("Events:           <none>\n")
    assert "Events" not in describe(pod(), related())


# -- nodes --------------------------------------------------------------------------------------------------------


def node(**status: Any) -> Raw:
    return {"kind": "Node", "metadata": {"name": "n1"}, "spec": {}, "status": status}


def placed(name: str, namespace: str, phase: str = "Running", on: str = "n1", **requests: str) -> Raw:
    spec = {"nodeName": on, "containers": [{"name": "c", "resources": {"requests": requests}}]}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec, "status": {"phase": phase}}


PODS = [
    placed("z", "a", cpu="1", memory="1Gi"),
    placed("a", "b", cpu="500m", memory="512Mi"),
    placed("ended", "a", "Succeeded", cpu="2"),
]


def test_a_node_shows_its_pods_and_what_they_take() -> None:
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110", "example.com/gpu": "2"}
    text = describe(node(allocatable=allocatable), related(pods=PODS))
    assert text.partition("Pods (")[2] == (
        "2 of at most 110):\n"
        "  NAMESPACE   NAME   CPU REQUESTS   CPU LIMITS   MEMORY REQUESTS   MEMORY LIMITS   AGE\n"
        "  a           z      1 (25%)        0 (0%)       1Gi (12%)         0 (0%)          <unknown>\n"
        "  b           a      500m (12%)     0 (0%)       512Mi (6%)        0 (0%)          <unknown>\n"
        "Allocated resources:\n"
        "  RESOURCE          REQUESTS       LIMITS   FREE\n"
        "  cpu               1500m (37%)    0 (0%)   2500m\n"
        "  memory            1536Mi (18%)   0 (0%)   6656Mi\n"
        "  example.com/gpu   0 (0%)         0 (0%)   2\n"
    )


def container(restart: str | None = None, **limits: str) -> Raw:
    return {"name": "c", "resources": {"limits": limits, "requests": {"cpu": "1m"}}} | (
        {"restartPolicy": restart} if restart else {}
    )


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        pytest.param({"containers": [container(cpu="1"), container(cpu="500m")]}, 1500, id="the-sum-of-containers"),
        pytest.param({"containers": [container()]}, 0, id="requests-are-no-limits"),
        pytest.param(
            {"containers": [container(cpu="1")], "initContainers": [container(cpu="3")]}, 3000, id="or-the-largest-init"
        ),
        pytest.param(
            {"containers": [container(cpu="1")], "initContainers": [container("Always", cpu="3")]},
            4000,
            id="with-sidecars",
        ),
        pytest.param({"containers": [container(cpu="1")], "overhead": {"cpu": "250m"}}, 1250, id="with-overhead"),
        pytest.param({"containers": [container()], "overhead": {"cpu": "250m"}}, 0, id="no-limit-has-no-overhead"),
        pytest.param(
            {"containers": [container(cpu="1")], "resources": {"limits": {"cpu": "2"}}}, 2000, id="those-of-the-pod"
        ),
    ],
)
def test_limits_of_a_pod(spec: Raw, cpu: int) -> None:
    assert limits_of({"spec": spec}).get("cpu", 0) == cpu


def test_a_node_without_pods_and_without_resources_has_empty_tables() -> None:
    text = describe(node(), related())
    assert "Pods (0 of at most 0):\nAllocated resources:\n  RESOURCE   REQUESTS   LIMITS   FREE\n" in text


def test_more_than_there_is_leaves_nothing_free_and_a_share_of_nothing_is_none() -> None:
    taken = [placed("a", "b", cpu="6", memory="1Gi")]
    text = describe(node(allocatable={"cpu": "4", "memory": "much"}), related(pods=taken))
    rows = [line.split() for line in text.partition("Allocated resources:\n")[2].splitlines()[1:]]
    assert rows == [["cpu", "6", "(150%)", "0", "(0%)", "0"], ["memory", "1Gi", "(0%)", "0", "(0%)", "0"]]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        pytest.param({"spec": {"unschedulable": True}}, "Unschedulable:    true", id="cordoned"),
        pytest.param({"spec": {}}, "Unschedulable:    false", id="not-cordoned"),
        pytest.param(
            {"spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}},
            "Taints:           a=b:NoSchedule",
            id="taint",
        ),
        pytest.param(
            {"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}},
            "InternalIP:       10.0.0.1",
            id="address",
        ),
        pytest.param({"status": {"nodeInfo": {"kubeletVersion": "v1"}}}, "  kubeletVersion: v1", id="system-info"),
        pytest.param(
            {"metadata": {"name": "n", "labels": {"node-role.kubernetes.io/worker": ""}}},
            "Roles:            worker",
            id="roles",
        ),
    ],
)
def test_a_node_says(change: Raw, line: str) -> None:
    assert line in describe({**node(), **change}, related()).splitlines()


def test_requests_by_node_count_the_pods_that_are_there_and_have_not_ended() -> None:
    unplaced = {"spec": {"containers": []}, "status": {}}
    found = requested_by_node([*PODS, placed("o", "a", on="n2", cpu="1"), unplaced])
    assert {name: (total["cpu"], total["pods"]) for name, total in found.items()} == {"n1": (1500, 2), "n2": (1000, 1)}


def test_a_pod_whose_requests_cannot_be_read_takes_nothing() -> None:
    assert requests_of(placed("a", "b", cpu="lots")) == {}


# -- any object ---------------------------------------------------------------------------------------------------


def test_an_object_of_another_kind_is_its_fields_its_conditions_apart() -> None:
    raw = {
        "apiVersion": "x/v1",
        "kind": "Thing",
        "metadata": {
            "name": "t",
            "namespace": "shop",
            "creationTimestamp": "2024-12-31T23:59:00Z",
            "deletionTimestamp": "2024-12-31T23:59:30Z",
            "ownerReferences": [{"kind": "Owner", "name": "o", "controller": True}],
        },
        "spec": {"clusterIPs": ["a", "b"], "paused": True, "unset": None, "rows": [{"aB": 1}, "x", ["y", 2]]},
        "data": {},
        "status": {"replicas": 2, "conditions": [{"type": "Done", "status": "False", "reason": "R", "message": "m"}]},
    }
    assert describe(raw, related(events=[])) == (
        "Name:             t\n"
        "Namespace:        shop\n"
        "Labels:           <none>\n"
        "Annotations:      <none>\n"
        "API Version:      x/v1\n"
        "Kind:             Thing\n"
        "Created:          2024-12-31 23:59:00Z (60s ago)\n"
        "Controlled By:    Owner/o\n"
        "Terminating:      2024-12-31 23:59:30Z (30s ago)\n"
        "Spec:\n"
        "  Cluster IPs: a, b\n"
        "  Paused: true\n"
        "  Rows:\n"
        "    - A B: 1\n"
        "    - x\n"
        "    - y, 2\n"
        "Status:\n"
        "  Replicas: 2\n"
        "Conditions:\n"
        "  TYPE   STATUS   REASON   MESSAGE\n"
        "  Done   False    R        m\n"
        "Events:           <none>\n"
    )


@pytest.mark.parametrize(
    ("field", "answer"),
    [("nodeSelector", "Node Selector"), ("clusterIPs", "Cluster IPs"), ("x", "X"), ("hostIPC", "Host IPC")],
)
def test_a_field_in_words(field: str, answer: str) -> None:
    assert words(field) == answer


@pytest.mark.parametrize("value", [pytest.param(v, id=repr(v)) for v in (None, {}, [])])
def test_nothing_has_no_line(value: Any) -> None:
    assert tree("Field", value) == ""


def test_resources_and_labels_keep_their_names_in_a_tree() -> None:
    assert tree("Requests", {"cpu": "1"}) == "Requests:\n  cpu: 1\n"
    assert tree("Spec", {"example.com/gpu": 1}) == "Spec:\n  example.com/gpu: 1\n"
