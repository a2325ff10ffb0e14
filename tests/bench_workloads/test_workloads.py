"""Tests of the workloads against the text, checksums and vectors of their specification."""

import hashlib
from itertools import islice

import pytest

from kschedd.bench import heterogeneous
from kschedd.bench.heterogeneous import Generator, draw_node, draw_pod
from kschedd.bench.workloads import WORKLOADS, WorkloadError, default_sizes, workload

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"


def lines(name, draw, seed, count):
    generator = Generator(seed)
    return [f"{name}-{i}:{','.join(map(str, draw(generator)))}\n" for i in range(count)]


@pytest.mark.parametrize(
    ("name", "draw", "seed", "count", "digest"),
    [
        ("node", draw_node, 1, 5000, "7767a43d1a495bdb196002bb7c30a9c437b0629de0e74fbb90b923fda9cd07ea"),
        ("init", draw_pod, 2, 5000, "76eaa541450982c1192ff30a3056e53a941021fc2bed3e4c1545ee9beb21b46e"),
        ("pod", draw_pod, 3, 2000, "08277e663401182d6331fc3928c94206cbbd8b42af2de2e7e6fba7bd8476c625"),
    ],
)
def test_draws_have_the_published_checksum(name, draw, seed, count, digest) -> None:
    text = "".join(lines(name, draw, seed, count))
    assert hashlib.sha256(text.encode()).hexdigest() == digest


def test_first_draws_are_the_published_vectors() -> None:
    assert lines("node", draw_node, 1, 4) == [
        "node-0:2,0,0,0\n",
        "node-1:2,2,2,2\n",
        "node-2:1,1,0,2\n",
        "node-3:0,0,2,2\n",
    ]
    assert lines("init", draw_pod, 2, 2) == [
        "init-0:810,176,6,4,2,99,0,78,65,2,44,22,75\n",
        "init-1:390,1840,4,34,2,86,1,72,98,64,35,25,27\n",
    ]
    assert lines("pod", draw_pod, 3, 2) == [
        "pod-0:400,1472,5,38,0,3,1,5,89,9,64,42,97\n",
        "pod-1:740,1072,5,79,1,87,2,65,86,51,7,81,72\n",
    ]


@pytest.mark.parametrize("skip", [0, 1, 2, 3, 64, 1000, 12345])
def test_a_stream_can_be_entered_anywhere(skip) -> None:
    walked = Generator(7)
    for _ in range(skip):
        walked.rnd(10)
    jumped = Generator(7, skip)
    assert [jumped.rnd(1 << 30) for _ in range(5)] == [walked.rnd(1 << 30) for _ in range(5)]


@pytest.mark.parametrize("name", WORKLOADS)
def test_element_i_is_the_ith_of_the_walk(name) -> None:
    run = workload(name, 15)
    for series in (run.nodes, run.init_pods, run.pods, run.pending):
        walked = list(series)
        assert len(walked) == len(series)
        assert [series[i] for i in range(len(series))] == walked
        assert list(series) == walked
        assert series[-3:] == walked[-3:]
        with pytest.raises(IndexError):
            series[len(series)]


@pytest.mark.parametrize("name", WORKLOADS)
def test_names_uids_and_namespaces_hang_together(name) -> None:
    run = workload(name, 20)
    namespaces = {each["metadata"]["name"] for each in run.namespaces}
    assert [node["metadata"]["name"] for node in run.nodes] == [f"node-{i}" for i in range(20)]
    assert all(
        node["metadata"]["labels"][HOSTNAME] == node["metadata"]["name"]
        and node["status"]["allocatable"] == node["status"]["capacity"]
        and node["status"]["conditions"] == [{"type": "Ready", "status": "True"}]
        for node in run.nodes
    )
    for prefix, series in (("init", run.init_pods), ("pod", run.pods), ("big", run.pending)):
        for i, pod in enumerate(series):
            metadata = pod["metadata"]
            assert metadata["name"] == f"{prefix}-{i}"
            assert metadata["uid"] == f"{metadata['namespace']}/{metadata['name']}"
            assert metadata["namespace"] in namespaces
            (container,) = pod["spec"]["containers"]
            assert container["resources"]["requests"] == container["resources"]["limits"]
            assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
            if prefix == "init":
                assert pod["spec"]["nodeName"] == f"node-{i % 20}"
                assert pod["status"]["phase"] == "Running"
            else:
                assert "nodeName" not in pod["spec"]
                assert "status" not in pod
    assert not any("labels" in each["metadata"] for each in run.namespaces)


def test_standard_objects() -> None:
    run = workload("SchedulingBasic", 3)
    assert run.nodes[2] == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node-2", "labels": {HOSTNAME: "node-2"}},
        "spec": {},
        "status": {
            "capacity": {"cpu": "4", "memory": "32Gi", "pods": "110"},
            "allocatable": {"cpu": "4", "memory": "32Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    amounts = {"cpu": "100m", "memory": "500Mi"}
    assert run.pods[1] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod-1", "namespace": "sched-1", "uid": "sched-1/pod-1"},
        "spec": {
            "containers": [
                {
                    "name": "pause",
                    "image": "registry.k8s.io/pause:3.10",
                    "ports": [{"containerPort": 80, "protocol": "TCP"}],
                    "resources": {"requests": amounts, "limits": amounts},
                }
            ],
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "terminationGracePeriodSeconds": 0,
        },
    }
    assert [each["metadata"]["name"] for each in run.namespaces] == ["sched-0", "sched-1"]


def zones(run) -> list[str | None]:
    return [node["metadata"]["labels"].get(ZONE) for node in run.nodes]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SchedulingBasic", [None] * 4),
        ("SchedulingNodeAffinity", ["zone1"] * 4),
        ("TopologySpreading", ["moon-1", "moon-2", "moon-3", "moon-1"]),
        ("PreferredTopologySpreading", ["moon-1", "moon-2", "moon-3", "moon-1"]),
        ("SchedulingPodAntiAffinity", [None] * 4),
        ("SchedulingPodAffinity", ["zone1"] * 4),
        ("SchedulingPreferredPodAffinity", [None] * 4),
        ("SchedulingPreferredPodAntiAffinity", [None] * 4),
        ("MixedSchedulingBasePod", ["zone1"] * 4),
        ("SchedulingTaints", [None] * 4),
    ],
)
def test_zone_labels(name, expected) -> None:
    assert zones(workload(name, 4)) == expected


BOTH = ["sched-1", "sched-0"]


def term(color: str, key: str) -> dict[str, object]:
    return {"labelSelector": {"matchLabels": {"color": color}}, "topologyKey": key, "namespaces": BOTH}


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
BLUE_ZONE_AFFINITY = {"podAffinity": {REQUIRED: [term("blue", ZONE)]}}
GREEN_HOST_ANTI_AFFINITY = {"podAntiAffinity": {REQUIRED: [term("green", HOSTNAME)]}}
RED_PREFERENCE = {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term("red", HOSTNAME)}]}}
YELLOW_PREFERENCE = {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term("yellow", HOSTNAME)}]}}
ZONE_1_OR_2 = {
    "nodeAffinity": {
        REQUIRED: {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["zone1", "zone2"]}]}]
        }
    }
}


@pytest.mark.parametrize(
    ("name", "labels", "affinity"),
    [
        ("SchedulingBasic", None, None),
        ("SchedulingNodeAffinity", None, ZONE_1_OR_2),
        ("SchedulingPodAffinity", {"color": "blue"}, BLUE_ZONE_AFFINITY),
        ("SchedulingPodAntiAffinity", {"color": "green"}, GREEN_HOST_ANTI_AFFINITY),
        ("SchedulingPreferredPodAffinity", {"color": "red"}, RED_PREFERENCE),
        ("SchedulingPreferredPodAntiAffinity", {"color": "yellow"}, YELLOW_PREFERENCE),
    ],
)
def test_init_and_measured_pods_of_one_shape(name, labels, affinity) -> None:
    run = workload(name, 10)
    for pod in [*run.init_pods, *run.pods]:
        assert pod["metadata"].get("labels") == labels
        assert pod["spec"].get("affinity") == affinity
    assert run.init_pods[0]["metadata"]["namespace"] == "sched-0"
    assert run.pods[0]["metadata"]["namespace"] == "sched-1"


@pytest.mark.parametrize(
    ("name", "when"),
    [("TopologySpreading", "DoNotSchedule"), ("PreferredTopologySpreading", "ScheduleAnyway")],
)
def test_spreading_pods_join_plain_ones_in_their_namespace(name, when) -> None:
    run = workload(name, 6)
    assert "labels" not in run.init_pods[0]["metadata"]
    assert run.init_pods[0]["metadata"]["namespace"] == "sched-1"
    assert run.pods[0]["metadata"]["labels"] == {"color": "blue"}
    assert run.pods[0]["spec"]["topologySpreadConstraints"] == [
        {
            "maxSkew": 5,
            "topologyKey": ZONE,
            "whenUnsatisfiable": when,
            "labelSelector": {"matchLabels": {"color": "blue"}},
        }
    ]


def test_mixed_init_pods_come_in_five_blocks() -> None:
    run = workload("MixedSchedulingBasePod", 4, init_pods=10)
    stanzas = [None, BLUE_ZONE_AFFINITY, GREEN_HOST_ANTI_AFFINITY, RED_PREFERENCE, YELLOW_PREFERENCE]
    assert [pod["spec"].get("affinity") for pod in run.init_pods] == [s for s in stanzas for _ in range(2)]
    assert {pod["metadata"]["namespace"] for pod in run.init_pods} == {"sched-0"}
    assert [pod["spec"]["nodeName"] for pod in run.init_pods[2:6]] == ["node-2", "node-3", "node-0", "node-1"]
    assert "affinity" not in run.pods[0]["spec"]


def test_preemption_fills_every_node_with_four_that_must_make_room_for_one() -> None:
    run = workload("PreemptionBasic", 5)
    assert len(run.init_pods) == 20
    victim, later, preemptor = run.init_pods[0], run.init_pods[19], run.pods[0]
    assert victim["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "900m", "memory": "500Mi"}
    assert victim["status"] == {"phase": "Running", "startTime": "2024-01-01T00:00:00Z"}
    assert later["status"]["startTime"] == "2024-01-01T00:00:19Z"
    assert preemptor["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "3000m", "memory": "500Mi"}
    assert preemptor["spec"]["priority"] == 10
    assert "preemptionPolicy" not in preemptor["spec"]
    assert "priority" not in victim["spec"]


def test_unschedulable_measures_the_pods_that_fit_nowhere_only_in_mode_algo() -> None:
    run = workload("Unschedulable", 10, pods=7, pending=3)
    live, decisions = run.measured_in("e2e"), run.measured_in("algo")
    assert [p["metadata"]["name"] for p in live.pending] == ["big-0", "big-1", "big-2"]
    assert live.pods[0]["metadata"]["name"] == "pod-0"
    assert len(decisions.pods) == 7
    assert decisions.pods[6]["metadata"]["uid"] == "sched-1/big-6"
    assert decisions.pods[6]["spec"]["containers"][0]["resources"]["limits"] == {
        "cpu": "9000m",
        "memory": "500Mi",
    }
    assert len(decisions.pending) == 0
    basic = workload("SchedulingBasic", 10)
    assert basic.measured_in("algo") is basic


def test_taints_and_tolerations_take_turns() -> None:
    run = workload("SchedulingTaints", 6)
    dedicated = [{"key": "dedicated", "value": "special", "effect": "NoSchedule"}]
    maintenance = [{"key": "maintenance", "value": "soon", "effect": "PreferNoSchedule"}]
    expected = [dedicated, maintenance, None, None, None, dedicated]
    assert [node["spec"].get("taints") for node in run.nodes] == expected
    tolerations = [{"key": "dedicated", "operator": "Equal", "value": "special", "effect": "NoSchedule"}]
    assert [pod["spec"].get("tolerations") for pod in run.pods[:3]] == [tolerations, None, tolerations]
    assert "tolerations" not in run.init_pods[0]["spec"]


def test_a_daemon_names_its_node() -> None:
    run = workload("SchedulingDaemonset", 4, pods=6)
    spec = run.pods[5]["spec"]
    (selector,) = spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert selector == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}
    assert [(t["key"], t["operator"], t["effect"]) for t in spec["tolerations"]] == [
        ("node.kubernetes.io/not-ready", "Exists", "NoExecute"),
        ("node.kubernetes.io/unreachable", "Exists", "NoExecute"),
        ("node.kubernetes.io/disk-pressure", "Exists", "NoSchedule"),
        ("node.kubernetes.io/memory-pressure", "Exists", "NoSchedule"),
        ("node.kubernetes.io/pid-pressure", "Exists", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "Exists", "NoSchedule"),
    ]


def test_heterogeneous_objects_say_what_was_drawn() -> None:
    run = workload("Heterogeneous", 4)
    # node-0:2,0,0,0 and node-3:0,0,2,2
    assert run.nodes[0]["metadata"]["labels"] == {
        HOSTNAME: "node-0",
        ZONE: "zone-a",
        "disktype": "ssd",
        "size": "s2",
    }
    assert run.nodes[0]["status"]["capacity"] == {"cpu": "16", "memory": "64Gi", "pods": "110"}
    assert run.nodes[0]["spec"]["taints"] == [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]
    assert run.nodes[3]["status"]["capacity"] == {"cpu": "4", "memory": "16Gi", "pods": "110"}
    assert run.nodes[3]["spec"]["taints"] == [{"key": "spot", "value": "true", "effect": "PreferNoSchedule"}]
    # init-0:810,176,6,4,2,99,0,78,65,2,44,22,75
    init = run.init_pods[0]
    assert init["metadata"] == {
        "name": "init-0",
        "namespace": "default",
        "uid": "default/init-0",
        "labels": {"app": "app-6"},
    }
    spec = init["spec"]
    assert spec["containers"][0]["resources"]["limits"] == {"cpu": "810m", "memory": "176Mi"}
    assert spec["nodeSelector"] == {ZONE: "zone-c"}
    assert "tolerations" not in spec
    assert "topologySpreadConstraints" not in spec
    own = {"labelSelector": {"matchLabels": {"app": "app-6"}}, "topologyKey": HOSTNAME}
    assert spec["affinity"] == {"podAntiAffinity": {PREFERRED: [{"weight": 44, "podAffinityTerm": own}]}}
    # pod-0:400,1472,5,38,0,3,1,5,89,9,64,42,97
    spec = run.pods[0]["spec"]
    assert spec["nodeSelector"] == {"disktype": "hdd"}
    assert spec["tolerations"] == [{"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}]
    # pod-1:740,1072,5,79,1,87,2,65,86,51,7,81,72 comes to nothing but its resources and label
    assert set(run.pods[1]["spec"]) == set(workload("SchedulingBasic", 1).pods[0]["spec"])


def rule(draw: heterogeneous.PodDraw) -> dict[str, object]:
    """Return the optional spec fields from the specification's table, implemented a second time."""
    app, after = {"app": f"app-{draw.k}"}, {"app": f"app-{(draw.k + 1) % 10}"}
    zone = ["zone-a", "zone-b", "zone-c"][draw.zi]
    disk = ["ssd", "hdd", "nvme"][draw.di]
    expected: dict[str, object] = {}
    selector = {k: v for k, v, used in ((ZONE, zone, draw.za < 30), ("disktype", disk, draw.da < 30)) if used}
    if selector:
        expected["nodeSelector"] = selector
    if draw.tl in range(0, 20):
        toleration = {"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}
    elif draw.tl in range(20, 30):
        toleration = {"key": "dedicated", "operator": "Exists"}
    else:
        toleration = {"key": "spot", "operator": "Equal", "value": "true", "effect": "PreferNoSchedule"}
    if draw.tl < 40:
        expected["tolerations"] = [toleration]
    constraints = [
        {
            "maxSkew": skew,
            "topologyKey": key,
            "whenUnsatisfiable": when,
            "labelSelector": {"matchLabels": app},
        }
        for used, skew, key, when in (
            (draw.sp < 40, 1, ZONE, "ScheduleAnyway"),
            (draw.sp < 20, 2, HOSTNAME, "ScheduleAnyway"),
            (40 <= draw.sp < 50, 5, ZONE, "DoNotSchedule"),
        )
        if used
    ]
    if constraints:
        expected["topologySpreadConstraints"] = constraints
    affinity: dict[str, object] = {}
    same_host = {"labelSelector": {"matchLabels": app}, "topologyKey": HOSTNAME}
    next_zone = {"labelSelector": {"matchLabels": after}, "topologyKey": ZONE}
    if draw.pa < 30:
        affinity["podAntiAffinity"] = {PREFERRED: [{"weight": draw.wt, "podAffinityTerm": same_host}]}
    elif draw.pa < 40:
        affinity["podAffinity"] = {PREFERRED: [{"weight": draw.wt, "podAffinityTerm": next_zone}]}
    elif draw.pa < 43:
        affinity["podAntiAffinity"] = {REQUIRED: [same_host]}
    if draw.na < 20:
        wanted = {"matchExpressions": [{"key": "disktype", "operator": "In", "values": ["ssd", "nvme"]}]}
        affinity["nodeAffinity"] = {PREFERRED: [{"weight": draw.nw, "preference": wanted}]}
    if affinity:
        expected["affinity"] = affinity
    return expected


def test_every_heterogeneous_pod_follows_the_table() -> None:
    plain = workload("SchedulingBasic", 1).pods[0]["spec"]
    generator = Generator(3)
    for pod in workload("Heterogeneous", 1, pods=1500).pods:
        drawn = draw_pod(generator)
        optional = {field: value for field, value in pod["spec"].items() if field not in plain}
        assert optional == rule(drawn)
        amounts = {"cpu": f"{drawn.cpu}m", "memory": f"{drawn.mem}Mi"}
        assert pod["spec"]["containers"][0]["resources"] == {"requests": amounts, "limits": amounts}


@pytest.mark.parametrize(
    ("name", "nodes", "init_pods", "pods", "pending"),
    [
        ("SchedulingBasic", 500, 500, 1000, 0),
        ("SchedulingBasic", 5000, 5000, 2000, 0),
        ("SchedulingBasic", 15000, 15000, 2000, 0),
        ("SchedulingPodAntiAffinity", 500, 100, 400, 0),
        ("SchedulingPodAntiAffinity", 5000, 1000, 2000, 0),
        ("MixedSchedulingBasePod", 500, 1000, 1000, 0),
        ("MixedSchedulingBasePod", 5000, 10000, 2000, 0),
        ("MixedSchedulingBasePod", 7, 10, 14, 0),
        ("PreemptionBasic", 500, 2000, 500, 0),
        ("PreemptionBasic", 5000, 20000, 1000, 0),
        ("Unschedulable", 500, 500, 1000, 200),
        ("Unschedulable", 5000, 5000, 2000, 2000),
        ("SchedulingDaemonset", 5000, 5000, 2000, 0),
        ("SchedulingDaemonset", 15000, 0, 15000, 0),
        ("Heterogeneous", 15000, 15000, 2000, 0),
        ("Heterogeneous", 100_000, 100_000, 2000, 0),
    ],
)
def test_default_sizes(name, nodes, init_pods, pods, pending) -> None:
    run = workload(name, nodes)
    assert (len(run.nodes), len(run.init_pods)) == (nodes, init_pods)
    assert (len(run.pods), len(run.pending)) == (pods, pending)


def test_slow_runs_measure_fewer_pods() -> None:
    assert default_sizes("SchedulingBasic", 5000, percentage=100).pods == 1000
    assert default_sizes("SchedulingBasic", 5000, offered_rate=100).pods == 1000
    assert default_sizes("SchedulingBasic", 500, percentage=100).pods == 1000


@pytest.mark.parametrize("name", ["SchedulingBasic", "Heterogeneous"])
def test_a_million_pods_are_not_there_until_looked_at(name) -> None:
    run = workload(name, 100_000, init_pods=1_000_000)
    assert run.init_pods[999_999]["spec"]["nodeName"] == "node-99999"
    assert [pod["metadata"]["name"] for pod in islice(run.init_pods, 2)] == ["init-0", "init-1"]


def test_pods_of_one_shape_share_their_spec() -> None:
    run = workload("SchedulingPodAffinity", 10)
    assert run.pods[0]["spec"] is run.pods[7]["spec"]
    assert run.init_pods[0]["spec"]["affinity"] is run.pods[0]["spec"]["affinity"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"name": "Basic", "nodes": 5}, "one of SchedulingBasic, ", id="unknown-name"),
        pytest.param({"name": "SchedulingBasic", "nodes": 0}, "nodes 0: at least 1", id="no-nodes"),
        pytest.param({"name": "SchedulingBasic", "nodes": 5, "pods": -1}, "pods -1: at least 0", id="negative-size"),
        pytest.param(
            {"name": "SchedulingBasic", "nodes": 5, "pending": 2},
            "only Unschedulable",
            id="pending-elsewhere",
        ),
        pytest.param(
            {"name": "SchedulingPodAntiAffinity", "nodes": 5, "pods": 5},
            "pods 5: at most 5 with the init pods",
            id="more-anti-affine-pods-than-nodes",
        ),
        pytest.param(
            {"name": "MixedSchedulingBasePod", "nodes": 5, "init_pods": 7},
            "init_pods 7: a multiple of 5",
            id="uneven-blocks",
        ),
        pytest.param({"name": "PreemptionBasic", "nodes": 5, "init_pods": 5}, "init_pods 5: 20", id="nodes-not-full"),
        pytest.param(
            {"name": "PreemptionBasic", "nodes": 5, "pods": 6}, "pods 6: at most 5", id="more-than-one-a-node"
        ),
    ],
)
def test_runs_that_the_description_does_not_allow_are_refused(arguments, message) -> None:
    with pytest.raises(WorkloadError) as refusal:
        workload(**arguments)
    assert message in str(refusal.value)
