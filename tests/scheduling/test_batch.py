"""Tests of OpportunisticBatching: the results that an attempt stores for the next one, and the pods that use them."""

from typing import Any

import pytest

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.clusters.virtual import VirtualCluster
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw
from kschedd.config.versions.kube_versions import V1_34, V1_36, V1_37, KubernetesVersion
from kschedd.framework.registry import Registry
from kschedd.scheduling.attempt.batch import MAX_AGE_S, Batches, BatchState, SortedNodes
from kschedd.scheduling.attempt.signing import signer_of
from kschedd.scheduling.attempt.ties import by_name
from kschedd.scheduling.machine import SchedulingMachine

Raw = dict[str, Any]
WITHOUT_DEVICES = {"DRAExtendedResource": False}
NO_SPREADING = {"name": "PodTopologySpread", "args": {"defaultingType": "List"}}
SPREADING = {"name": "PodTopologySpread", "args": {"defaultingType": "System"}}


def config(version: KubernetesVersion = V1_36, gates: dict[str, bool] | None = None, *args: Raw, **profile: Any) -> Any:
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "pluginConfig": [*args], **profile}],
    }
    return config_from_raw(raw, version=version, feature_gates=gates)


def node(name: str, cpu: str) -> Raw:
    room = {"cpu": cpu, "memory": "64Gi", "pods": "1"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": room, "capacity": room},
    }


def pod(name: str, app: str = "a", **spec: Any) -> Raw:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": app}},
        "spec": {"containers": [container], **spec},
    }


class Cluster:
    """Three nodes with room for one pod each, the larger with the higher score."""

    def __init__(
        self,
        gates: dict[str, bool] | None = None,
        spreading: Raw = NO_SPREADING,
        version: KubernetesVersion = V1_36,
    ) -> None:
        self.engine = VirtualCluster(config(version, gates, spreading)).engine
        self.add(node("n4", "4"), node("n6", "6"), node("n8", "8"))

    def add(self, *raws: Raw) -> None:
        for raw in raws:
            self.engine.store.create(raw)
        self.engine.run_until_idle()

    def place(self, raw: Raw) -> str:
        self.add(raw)
        found = self.engine.store.get("Pod", "default", raw["metadata"]["name"])
        assert isinstance(found, Pod)
        return found.node_name


def test_a_pod_like_the_one_before_goes_to_the_next_best_node_of_that_ones_attempt() -> None:
    cluster = Cluster(WITHOUT_DEVICES)
    assert cluster.place(pod("first")) == "n8"
    cluster.add(node("n32", "32"))
    assert cluster.place(pod("second")) == "n6"
    assert cluster.place(pod("third")) == "n4"
    assert cluster.place(pod("fourth")) == "n32", "nothing is left of what was known, so all nodes are searched"


@pytest.mark.parametrize(
    ("gates", "spreading", "second"),
    [
        pytest.param({**WITHOUT_DEVICES, "OpportunisticBatching": False}, NO_SPREADING, {}, id="with-the-gate-off"),
        pytest.param(WITHOUT_DEVICES, SPREADING, {}, id="with-default-constraints"),
        pytest.param(WITHOUT_DEVICES, NO_SPREADING, {"app": "b"}, id="for-a-pod-with-other-labels"),
        pytest.param(WITHOUT_DEVICES, NO_SPREADING, {"nodeSelector": {"a": "b"}}, id="for-one-with-another-selector"),
    ],
)
def test_otherwise_all_nodes_are_searched(gates: dict[str, bool] | None, spreading: Raw, second: Raw) -> None:
    cluster = Cluster(gates, spreading)
    assert cluster.place(pod("first")) == "n8"
    large = node("n32", "32")
    large["metadata"]["labels"] = {"a": "b"}
    cluster.add(large)
    assert cluster.place(pod("second", **second)) == "n32"


def test_only_a_pod_that_asks_for_a_resource_of_a_device_class_is_not_signed() -> None:
    cluster = Cluster()
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"extendedResourceName": "example.com/gpu"},
    }
    cluster.add(device_class)
    machine = cluster.engine.machine
    sign = signer_of(machine.schedulers["default-scheduler"].profile, machine.cluster)
    assert sign is not None
    signed = {}
    for resource in ("cpu", "example.com/other", "example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"):
        raw = pod("p")
        raw["spec"]["containers"][0]["resources"] = {"requests": {resource: "1"}}
        signed[resource] = sign(Pod.from_raw(raw)) is not None
    assert list(signed.values()) == [True, True, False, False]


def test_what_is_known_is_too_old_after_half_a_second() -> None:
    cluster = Cluster(WITHOUT_DEVICES)
    cluster.place(pod("first"))
    cluster.add(node("n32", "32"))
    cluster.engine.advance(cluster.engine.now + MAX_AGE_S + 0.1)
    assert cluster.place(pod("second")) == "n32"


def test_a_pod_in_between_ends_it() -> None:
    cluster = Cluster(WITHOUT_DEVICES)
    cluster.place(pod("first"))
    assert cluster.place(pod("nowhere", nodeSelector={"no": "node"})) == ""
    cluster.add(node("n32", "32"))
    assert cluster.place(pod("second")) == "n32"


def test_while_the_node_has_room_all_nodes_are_searched() -> None:
    cluster = Cluster(WITHOUT_DEVICES)
    roomy = node("n16", "16")
    roomy["status"]["allocatable"]["pods"] = "2"
    cluster.add(roomy)
    assert cluster.place(pod("first")) == "n16"
    cluster.add(node("n32", "32"))
    assert cluster.place(pod("second")) == "n32"


def test_by_1_37_a_node_with_room_is_scored_anew_and_competes_with_the_nodes_that_are_known() -> None:
    cluster = Cluster(version=V1_37)
    roomy = node("n64", "64")
    roomy["status"]["allocatable"]["pods"] = "3"
    cluster.add(roomy)
    placed = [cluster.place(pod(name)) for name in ("first", "second")]
    cluster.add(node("n99", "99"))
    placed.append(cluster.place(pod("third")))
    assert placed == ["n64", "n64", "n64"], "the new node is not among those that are known"
    assert cluster.place(pod("fourth")) == "n8", "the node is full, and the next best one is known"


def counted(cluster: Cluster) -> list[dict[tuple[str, ...], float]]:
    found = [counter.family().samples for counter in cluster.engine.machine.batches.counters]
    return [{labels[1:]: number for labels, number in samples.items()} for samples in found]


def timed(cluster: Cluster) -> list[dict[tuple[str, ...], int]]:
    """Return the number of timed lookups of a hint, stored results and rescored nodes."""
    found = [duration.family().samples for duration in cluster.engine.machine.batches.durations]
    return [{labels[:-1]: getattr(one, "count", 0) for labels, one in samples.items()} for samples in found]


def test_lookups_and_stored_results_are_timed() -> None:
    cluster = Cluster(WITHOUT_DEVICES)
    for name in ("first", "second", "third", "nowhere"):
        cluster.place(pod(name))
    assert timed(cluster) == [{("no_hint",): 2, ("hint",): 2}, {(): 3}, {}]


def test_hints_and_their_lack_are_counted() -> None:
    cluster = Cluster(WITHOUT_DEVICES)
    for name in ("first", "second", "third", "nowhere"):
        cluster.place(pod(name))
    attempts, flushed, rescores = counted(cluster)
    assert attempts == {("no_hint",): 2, ("hint_used",): 2}
    assert (flushed, rescores) == ({}, {}), "after the last node nothing is stored"
    cluster.add(node("n9", "9"))
    assert counted(cluster)[1] == {("empty_list",): 1}, "one feasible node leaves none to the next pod"


def test_by_1_37_rescored_nodes_are_counted() -> None:
    cluster = Cluster(version=V1_37)
    roomy = node("n64", "64")
    roomy["status"]["allocatable"]["pods"] = "2"
    cluster.add(roomy)
    for name in ("first", "second", "third"):
        cluster.place(pod(name))
    cluster.place(pod("other", app="b"))
    attempts, flushed, rescores = counted(cluster)
    assert attempts == {("no_hint",): 2, ("hint_used",): 2}
    assert flushed == {("pod_incompatible",): 1}
    assert rescores == {(): 1}
    assert timed(cluster)[2] == {(): 1}


def test_where_the_next_best_node_is_full_as_well_all_nodes_are_searched() -> None:
    cluster = Cluster(WITHOUT_DEVICES)
    cluster.place(pod("first"))
    cluster.add(node("n32", "32"), pod("elsewhere", nodeName="n6"))
    assert cluster.place(pod("second")) == "n32"


def test_a_fork_goes_on_as_the_cluster_does() -> None:
    batches = Batches(SchedulerCache(), 7)
    state = batches.of("p")
    state.store(7, "s", "", "n1", SortedNodes(["n2", "n3"], [5, 9]), 10.0)
    forked = batches.fork(SchedulerCache())
    assert (forked.cycle, forked.of("p").nodes.pop(by_name)) == (7, "n3")
    assert not forked.of("p").why_unusable(8, "s", 10.5, nominated=False)
    assert state.nodes.names == ["n2", "n3"], "each has its own"


def test_stored_results_are_saved_whole_and_read_from_older_recordings() -> None:
    batches = Batches(SchedulerCache())
    saved = {"cycle": 7, "states": {"p": ["s", ["n2", "n3"], [5, 9], 10.0, 7, "n1", {"Plugin": [1, 2]}, "n1"]}}
    batches.restore(saved)
    assert batches.saved() == saved
    older = {"cycle": 7, "states": {"p": saved["states"]["p"][:6]}}
    batches.restore(older)
    assert batches.saved() == {"cycle": 7, "states": {"p": [*saved["states"]["p"][:6], {}, ""]}}


def test_a_changed_configuration_ends_all_results() -> None:
    batches = Batches(SchedulerCache(), 7)
    batches.of("p").store(7, "s", "", "n1", SortedNodes(["n2"], [5]), 10.0)
    assert not batches.of("p").why_unusable(8, "s", 10.5, nominated=False)
    batches.forget()
    assert batches.of("p").why_unusable(8, "s", 10.5, nominated=False)


@pytest.mark.parametrize(
    ("cycle", "signature", "now_s", "why"),
    [
        pytest.param(9, "s", 10.0, "pod_skipped", id="a-cycle-in-between"),
        pytest.param(7, "s", 10.0, "pod_skipped", id="the-same-cycle-as-of-a-pod-group"),
        pytest.param(8, "t", 10.0, "pod_incompatible", id="another-signature"),
        pytest.param(8, None, 10.0, "pod_incompatible", id="no-signature"),
        pytest.param(8, "s", 10.6, "expired", id="too-late"),
    ],
)
def test_nothing_follows(cycle: int, signature: str | None, now_s: float, why: str) -> None:
    state = BatchState()
    state.store(7, "s", "", "n1", SortedNodes(["n2"], [5]), 10.0)
    assert not state.why_unusable(8, "s", 10.5, nominated=False)
    assert state.why_unusable(8, "s", 10.5, nominated=True) == "pod_nominated"
    assert state.why_unusable(cycle, signature, now_s, nominated=False) == why


def signed(raw: Raw, *args: Raw, **profile: Any) -> str | None:
    machine = SchedulingMachine(config(V1_36, WITHOUT_DEVICES, NO_SPREADING, *args, **profile))
    sign = signer_of(machine.schedulers["default-scheduler"].profile, machine.cluster)
    assert sign is not None
    return sign(Pod.from_raw(raw))


PORT = {"containerPort": 80, "hostPort": 8080}


def with_port(**port: Any) -> Raw:
    raw = pod("p")
    raw["spec"]["containers"][0]["ports"] = [{**PORT, **port}]
    return raw


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        pytest.param(pod("p"), pod("q"), True, id="names-do-not-matter"),
        pytest.param(pod("p"), pod("p", priority=7), True, id="nor-does-the-priority"),
        pytest.param(pod("p"), pod("p", volumes=[{"name": "v", "configMap": {"name": "c"}}]), True, id="config-maps"),
        pytest.param(pod("p"), pod("p", volumes=[{"name": "v", "emptyDir": {}}]), False, id="other-volumes-do"),
        pytest.param(
            pod("p", volumes=[{"name": "v", "emptyDir": {}}]),
            pod("p", volumes=[{"name": "w", "emptyDir": {}}]),
            True,
            id="names-of-volumes",
        ),
        pytest.param(with_port(), with_port(protocol="UDP"), True, id="of-a-host-port-only-the-number"),
        pytest.param(with_port(), with_port(hostPort=9090), False, id="host-ports"),
        pytest.param(pod("p"), pod("p", tolerations=[{"operator": "Exists"}]), False, id="tolerations"),
        pytest.param(pod("p"), pod("p", hostNetwork=True, hostUsers=False), False, id="features-of-nodes"),
    ],
)
def test_pods_are_alike_in_what_plugins_look_at(one: Raw, other: Raw, alike: bool) -> None:
    assert (signed(one) == signed(other)) is alike


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}, id="devices"),
        pytest.param({"affinity": {"podAffinity": {}}}, id="affinity-to-pods"),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
                ]
            },
            id="spread-constraints",
        ),
    ],
)
def test_a_pod_that_looks_beyond_its_node_has_no_signature(spec: Raw) -> None:
    assert signed(pod("p", **spec)) is None


def test_labels_do_not_matter_where_terms_of_other_pods_are_ignored() -> None:
    ignoring = {"name": "InterPodAffinity", "args": {"ignorePreferredTermsOfExistingPods": True}}
    assert signed(pod("p"), ignoring) == signed(pod("p", "b"), ignoring)
    assert signed(pod("p")) != signed(pod("p", "b"))


@pytest.mark.parametrize(
    ("point", "method"),
    [("preFilter", "pre_filter"), ("filter", "filter"), ("preScore", "pre_score"), ("score", "score")],
)
def test_a_profile_with_a_plugin_that_is_not_built_in_signs_nothing(point: str, method: str) -> None:
    registry = Registry({"Own": type("Own", (), {"name": "Own", method: lambda *args: None})})
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {point: {"enabled": [{"name": "Own"}]}},
                "pluginConfig": [NO_SPREADING],
            }
        ],
    }
    made = config_from_raw(
        raw, catalogue={**IN_TREE, **registry.catalogue()}, version=V1_36, feature_gates=WITHOUT_DEVICES
    )
    machine = SchedulingMachine(made, registry=registry)
    assert signer_of(machine.schedulers["default-scheduler"].profile, machine.cluster) is None


def test_1_34_has_nothing_of_it() -> None:
    assert not config(V1_34, None, NO_SPREADING).rules.opportunistic_batching
