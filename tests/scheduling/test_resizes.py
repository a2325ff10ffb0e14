"""Tests of running pods with a deferred resize, which are queued and preempt on their node."""

from typing import Any

import pytest

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.clusters.virtual import VirtualCluster
from kschedd.config.loading.load import default_config
from kschedd.config.versions.kube_versions import V1_37
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.machine import SchedulingMachine

Raw = dict[str, Any]
GATE = "InPlacePodVerticalScalingSchedulerPreemption"
HIGH = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10}
FORBIDDEN = {"podPreemptionPolicy": {"disableResizePreemption": ["PodResize"]}}


def node(**spec: Any) -> Raw:
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": spec, "status": status}


def pod(name: str, cpu: str, **spec: Any) -> Raw:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    spec |= {"containers": [container], "nodeName": "n"}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}


class Cluster:
    """A node of 4 CPUs, on which the pods `grows` and `small` run."""

    def __init__(self, *, gate: bool = True, grows: str = "high", **spec: Any) -> None:
        config = default_config(version=V1_37, feature_gates={GATE: gate})
        self.engine = VirtualCluster(config).engine
        for raw in (HIGH, node(**spec), pod("grows", "2", priorityClassName=grows), pod("small", "1")):
            self.engine.store.create(raw)
        self.engine.run_until_idle()

    def resize(self, cpu: str) -> None:
        """Change the size of `grows`; the kubelet reports whether it fits."""
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        patch = {"spec": {"containers": [container]}}
        self.engine.store.merge_patch("Pod", "default", "grows", patch, subresource="resize")
        self.engine.run_to_rest()

    def allow(self) -> None:
        self.engine.store.merge_patch("Node", "", "n", {"spec": {"podPreemptionPolicy": None}})
        self.engine.run_to_rest()

    def pods(self) -> list[str]:
        return sorted(each.name for each in self.engine.store.list("Pod") if isinstance(each, Pod))


def test_it_evicts_a_pod_of_lower_priority_on_its_node() -> None:
    cluster = Cluster()
    cluster.resize("4")
    assert cluster.pods() == ["grows"]
    [status] = cluster.engine.store.get("Pod", "default", "grows").status["containerStatuses"]
    assert status["resources"]["requests"]["cpu"] == "4"


def test_nothing_is_evicted_where_there_is_room() -> None:
    cluster = Cluster()
    cluster.resize("3")
    assert cluster.pods() == ["grows", "small"]


def test_a_resize_that_can_never_be_made_evicts_nobody() -> None:
    cluster = Cluster()
    cluster.resize("5")
    assert cluster.pods() == ["grows", "small"]


def test_none_preempts_while_the_gate_is_off() -> None:
    cluster = Cluster(gate=False)
    cluster.resize("4")
    assert cluster.pods() == ["grows", "small"]


def test_none_preempts_pods_of_its_own_priority() -> None:
    cluster = Cluster(grows="")
    cluster.resize("4")
    assert cluster.pods() == ["grows", "small"]


def test_a_pod_that_is_deleted_while_its_resize_is_deferred_waits_no_more() -> None:
    cluster = Cluster(grows="")
    cluster.resize("4")
    assert "default/grows" in cluster.engine.driver.pending.pods
    cluster.engine.store.delete("Pod", "default", "grows")
    cluster.engine.run_to_rest()
    assert "default/grows" not in cluster.engine.driver.pending.pods


def test_a_node_may_forbid_it_until_its_policy_changes() -> None:
    cluster = Cluster(**FORBIDDEN)
    cluster.resize("4")
    assert cluster.pods() == ["grows", "small"]
    cluster.allow()
    assert cluster.pods() == ["grows"]


def claimed(*names: str) -> dict[str, Any]:
    return {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]}


def bound_claim(name: str, driver: str = "", *, zone: str = "", **spec: Any) -> tuple[Raw, Raw]:
    """Return a claim and the volume to which it is bound."""
    meta = {"name": name, "namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    claim = {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": {"volumeName": f"pv-{name}", **spec}}
    labels = {"topology.kubernetes.io/zone": zone} if zone else {}
    source = {"csi": {"driver": driver, "volumeHandle": name}} if driver else {}
    return claim, {"kind": "PersistentVolume", "metadata": {"name": f"pv-{name}", "labels": labels}, "spec": source}


DRIVER = {
    "kind": "CSIDriver",
    "metadata": {"name": "csi.one"},
    "spec": {"preventPodSchedulingIfMissing": True},
}
IMMEDIATE = {"kind": "StorageClass", "metadata": {"name": "now"}, "volumeBindingMode": "Immediate"}
UNBOUND = {
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "c", "namespace": "default"},
    "spec": {"storageClassName": "now"},
}
ELSEWHERE = {"labelSelector": {"matchLabels": {"app": "none"}}, "topologyKey": "kubernetes.io/hostname"}
SPREAD = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}


@pytest.mark.parametrize(
    ("plugin", "on_node", "spec", "objects"),
    [
        pytest.param("NodeUnschedulable", {"unschedulable": True}, {}, ()),
        pytest.param("TaintToleration", {"taints": [{"key": "k", "effect": "NoSchedule"}]}, {}, ()),
        pytest.param("NodeAffinity", {}, {"nodeSelector": {"disk": "fast"}}, ()),
        pytest.param("NodePorts", {}, {"port": 80}, ()),
        pytest.param("VolumeRestrictions", {}, claimed("c"), bound_claim("c", accessModes=["ReadWriteOncePod"])),
        pytest.param("NodeVolumeLimits", {}, claimed("c"), (DRIVER, *bound_claim("c", "csi.one"))),
        pytest.param("VolumeBinding", {}, claimed("c"), (IMMEDIATE, UNBOUND)),
        pytest.param("VolumeZone", {}, claimed("c"), bound_claim("c", zone="other")),
        pytest.param("PodTopologySpread", {}, {"topologySpreadConstraints": [SPREAD]}, ()),
        pytest.param(
            "InterPodAffinity",
            {},
            {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [ELSEWHERE]}}},
            (),
        ),
        pytest.param("DynamicResources", {}, {"resourceClaims": [{"name": "c", "resourceClaimName": "missing"}]}, ()),
        pytest.param("NodeDeclaredFeatures", {}, {"hostNetwork": True, "hostUsers": False}, ()),
    ],
)
def test_only_the_size_counts_for_a_pod_that_already_runs(
    plugin: str, on_node: Raw, spec: Raw, objects: tuple[Raw, ...]
) -> None:
    made = SchedulingMachine(default_config(version=V1_37, feature_gates={GATE: True, "VolumeLimitScaling": True}))
    labeled = node(**on_node)
    labeled["metadata"]["labels"] = {"topology.kubernetes.io/zone": "here"}
    raw = pod("grows", "2", **{key: value for key, value in spec.items() if key != "port"})
    raw["metadata"]["uid"] = "grows"
    if "port" in spec:
        raw["spec"]["containers"][0]["ports"] = [{"containerPort": spec["port"], "hostPort": spec["port"]}]
    running = Pod.from_raw(raw)
    made.cluster.load([parse(labeled), *map(parse, objects), running])
    scheduler = made.schedulers["default-scheduler"]
    assert isinstance(drive(scheduler.attempt(running, {}, resizes=True, post_filters=False)), ScheduleResult)

    del raw["spec"]["nodeName"]
    rejected = drive(scheduler.attempt(Pod.from_raw(raw), {}, post_filters=False))
    assert isinstance(rejected, FitError)
    assert plugin in rejected.diagnosis.unschedulable_plugins
