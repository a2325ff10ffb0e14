"""Tests of the plugins of older releases, on small clusters with scores calculated by hand."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.in_tree import IN_TREE, OLDER, in_tree_class
from kschedd.config.loading.load import config_from_raw, default_config
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.scoring_args import ResourceWeight, ShapePoint
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import ActionType
from kschedd.framework.handle import Handle
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.status import Code, Status
from kschedd.plugins.older.nodelabel import NodeLabelArgs
from kschedd.plugins.older.nodepreferavoidpods import ANNOTATION
from kschedd.plugins.older.serviceaffinity import ServiceAffinityArgs
from kschedd.plugins.older.volume_limits import LIMIT_VARIABLE
from kschedd.plugins.resources.noderesources_args import (
    OlderScoringArgs,
    RequestedToCapacityRatioArgs,
    RequestedToCapacityRatioPriorityArgs,
)
from kschedd.plugins.resources.noderesources_older import broken_linear

V1 = "kubescheduler.config.k8s.io/v1"
ZONE = "topology.kubernetes.io/zone"
MIB = 1 << 20


def cluster_of(*objects: Mapping[str, Any]) -> SchedulerCache:
    cluster = SchedulerCache()
    for raw in objects:
        cluster.put(parse(raw))
    return cluster


def node(name: str, labels: Mapping[str, str] | None = None, **more: Any) -> dict[str, Any]:
    allocatable = {"cpu": "8", "memory": "1Gi", "pods": "110", **more.pop("allocatable", {})}
    meta = {"name": name, "uid": name, "labels": dict(labels or {}), "annotations": more.pop("annotations", {})}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"allocatable": allocatable}}


def raw_pod(name: str, on: str = "", requests: Mapping[str, str] | None = None, **more: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "uid": name, "labels": more.pop("labels", {})}
    meta.update(more.pop("metadata", {}))
    container = {"name": "c", "image": "i", "resources": {"requests": dict(requests or {})}}
    spec = {"containers": [container], **({"nodeName": on} if on else {}), **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def a_pod(name: str = "new", **more: Any) -> Pod:
    return Pod.from_raw(raw_pod(name, **more))


def raw_scores(name: str, args: Any, cluster: SchedulerCache, pod: Pod) -> list[int]:
    return scored(name, args, cluster, pod)[0]


def scored(name: str, args: Any, cluster: SchedulerCache, pod: Pod) -> tuple[list[int], list[int]]:
    """Return the raw and final scores of all nodes, by name."""
    plugin = in_tree_class(name).from_args(args, Handle(cluster))
    table, state = cluster.table, CycleState()
    rows = np.array([table.row_of[one] for one in sorted(table.row_of)], dtype=np.int64)
    if hasattr(plugin, "pre_score"):
        assert plugin.pre_score(state, pod, cluster, rows) is None
    raw = plugin.score_rows(state, pod, table, rows)
    final = plugin.normalize(state, pod, raw) if hasattr(plugin, "normalize") else raw
    return raw.tolist(), final.tolist()


def verdicts(name: str, args: Any, cluster: SchedulerCache, pod: Pod) -> list[Status | None]:
    """Return the filter's status for each node, ordered by node name."""
    plugin = in_tree_class(name).from_args(args, Handle(cluster))
    table, state = cluster.table, CycleState()
    rows = np.array([table.row_of[one] for one in sorted(table.row_of)], dtype=np.int64)
    if hasattr(plugin, "pre_filter"):
        assert plugin.pre_filter(state, pod, cluster) is None
    if not hasattr(plugin, "filter_rows"):
        return [plugin.filter(state, pod, NodeInfo(table, row)) for row in rows.tolist()]
    codes = plugin.filter_rows(state, pod, table, rows)
    if codes is None:
        return [None] * len(rows)
    return [plugin.code_status(state, pod, code) if code else None for code in codes.tolist()]


def words(found: list[Status | None]) -> list[str]:
    return ["" if one is None else one.message for one in found]


@pytest.mark.parametrize("name", OLDER)
def test_an_older_plugin_is_there_and_off_by_default(name: str) -> None:
    assert name in IN_TREE
    assert name not in default_config().profiles[0].names()


# -- scores by resources -----------------------------------------------------------------------------------------------

DOCUMENTED = (ResourceWeight("intel.com/foo", 5), ResourceWeight("memory", 1), ResourceWeight("cpu", 3))
RISING = (ShapePoint(0, 0), ShapePoint(100, 10))


def documented_cluster() -> SchedulerCache:
    """Return the example of "Resource Bin Packing for Extended Resources" in Kubernetes' documentation since v1.16."""

    def used(name: str, on: str, foo: str, memory: str, cpu: str) -> dict[str, Any]:
        return raw_pod(name, on, {"intel.com/foo": foo, "memory": memory, "cpu": cpu})

    return cluster_of(
        node("node-1", allocatable={"intel.com/foo": "4"}),
        node("node-2", allocatable={"intel.com/foo": "8"}),
        used("a", "node-1", "1", "256Mi", "1"),
        used("b", "node-2", "2", "512Mi", "6"),
    )


ASKING = a_pod(requests={"intel.com/foo": "2", "memory": "256Mi", "cpu": "2"})


def test_the_documented_example_scores_5_and_7_in_the_old_arithmetic() -> None:
    args = RequestedToCapacityRatioPriorityArgs(RISING, DOCUMENTED)
    raw, final = scored("RequestedToCapacityRatioPriority", args, documented_cluster(), ASKING)
    assert raw == [5, 7]
    assert final == [50, 70]


def test_the_same_curve_from_0_to_100_keeps_what_the_old_arithmetic_rounds_away() -> None:
    args = RequestedToCapacityRatioArgs(RISING, DOCUMENTED)
    # (75*5 + 50*1 + 38*3) / 9 and (50*5 + 75*1 + 100*3) / 9
    assert raw_scores("RequestedToCapacityRatio", args, documented_cluster(), ASKING) == [60, 69]


def test_a_priority_whose_shape_runs_to_100_counts_as_it_is() -> None:
    args = RequestedToCapacityRatioPriorityArgs((ShapePoint(0, 0), ShapePoint(100, 100)), DOCUMENTED)
    raw, final = scored("RequestedToCapacityRatioPriority", args, documented_cluster(), ASKING)
    assert raw == final == [60, 69]


@pytest.mark.parametrize(
    ("name", "scores"),
    [
        # cpu: 3 of 8 and 8 of 8 cores, memory: 512 of 1024 and 768 of 1024 MiB
        pytest.param("NodeResourcesLeastAllocated", [(62 + 50) // 2, (0 + 25) // 2], id="least"),
        pytest.param("NodeResourcesMostAllocated", [(37 + 50) // 2, (100 + 75) // 2], id="most"),
    ],
)
def test_cpu_and_memory_by_default(name: str, scores: list[int]) -> None:
    assert raw_scores(name, OlderScoringArgs(), documented_cluster(), ASKING) == scores


def test_a_resource_that_a_node_lacks_counts_as_unused_and_full() -> None:
    gpus = {"example.com/gpu": "4"}
    cluster = cluster_of(node("with", allocatable=gpus), node("without"), node("without-as-well"))
    args = OlderScoringArgs((ResourceWeight("example.com/gpu"),))
    pod = a_pod(requests={"example.com/gpu": "1"})
    assert raw_scores("NodeResourcesLeastAllocated", args, cluster, pod) == [75, 0, 0]
    assert raw_scores("NodeResourcesMostAllocated", args, cluster, pod) == [25, 0, 0]
    ratio = RequestedToCapacityRatioArgs(RISING, args.resources)
    assert raw_scores("RequestedToCapacityRatio", ratio, cluster, pod) == [25, 100, 100]


def test_a_resource_of_which_a_node_has_less_than_requested_scores_0() -> None:
    cluster = cluster_of(node("small", allocatable={"cpu": "50m"}))
    args = OlderScoringArgs((ResourceWeight("cpu"),))
    assert raw_scores("NodeResourcesLeastAllocated", args, cluster, a_pod(requests={"cpu": "100m"})) == [0]


@pytest.mark.parametrize(
    ("shape", "scores"),
    [
        pytest.param([(10, 1), (90, 9)], {0: 1, 10: 1, 15: 1, 50: 5, 90: 9, 95: 9, 100: 9}, id="rising"),
        pytest.param([(0, 2), (40, 10), (100, 0)], {0: 2, 20: 6, 40: 10, 70: 5, 71: 5, 100: 0}, id="and-falling"),
        pytest.param([(0, 2), (40, 2), (100, 2)], {0: 2, 20: 2, 40: 2, 70: 2, 100: 2}, id="constant"),
    ],
)
def test_scores_between_two_points_of_a_shape_lie_on_a_line(
    shape: list[tuple[int, int]], scores: dict[int, int]
) -> None:
    curve = broken_linear([ShapePoint(*point) for point in shape], 1)
    assert len(curve) == 101
    assert {percent: int(curve[percent]) for percent in scores} == scores


# -- labels, annotations -----------------------------------------------------------------------------------------------


def test_node_label_wants_some_labels_and_others_not() -> None:
    cluster = cluster_of(node("a", {"disk": "x"}), node("b", {"disk": "x", "retiring": "now"}), node("c"))
    found = verdicts("NodeLabel", NodeLabelArgs(("disk",), ("retiring",)), cluster, a_pod())
    assert words(found) == ["", "node(s) didn't have the requested labels", "node(s) didn't have the requested labels"]
    assert [one.code for one in found if one is not None] == [Code.UNSCHEDULABLE_AND_UNRESOLVABLE] * 2


def test_node_label_scores_the_share_of_its_preferences() -> None:
    cluster = cluster_of(node("a", {"disk": "x"}), node("b", {"disk": "x", "retiring": "now"}), node("c"))
    args = NodeLabelArgs((), (), ("disk",), ("retiring",))
    assert raw_scores("NodeLabel", args, cluster, a_pod()) == [100, 50, 50]
    assert raw_scores("NodeLabel", NodeLabelArgs((), (), ("disk",)), cluster, a_pod()) == [100, 100, 0]
    assert raw_scores("NodeLabel", NodeLabelArgs(), cluster, a_pod()) == [0, 0, 0]


@pytest.mark.parametrize(
    ("args", "found"),
    [
        pytest.param(NodeLabelArgs(("disk",)), [True, True, False], id="present"),
        pytest.param(NodeLabelArgs((), ("retiring",)), [True, False, True], id="absent"),
        pytest.param(NodeLabelArgs(), [True, True, True], id="none"),
    ],
)
def test_node_label_filters_by_either_list(args: NodeLabelArgs, found: list[bool]) -> None:
    cluster = cluster_of(node("a", {"disk": "x"}), node("b", {"disk": "x", "retiring": "now"}), node("c"))
    assert [status is None for status in verdicts("NodeLabel", args, cluster, a_pod())] == found


@pytest.mark.parametrize("suffix", ["", "Preference"])
def test_node_label_rejects_a_label_in_both_lists(suffix: str) -> None:
    def config(absent: list[str]) -> Any:
        args = {f"presentLabels{suffix}": ["a", "b"], f"absentLabels{suffix}": absent}
        profile = {"pluginConfig": [{"name": "NodeLabel", "args": args}]}
        return config_from_raw({"apiVersion": V1, "kind": "KubeSchedulerConfiguration", "profiles": [profile]})

    config(["c"])
    with pytest.raises(ConfigErrors, match=rf"absentLabels{suffix}.*is also in presentLabels{suffix}") as refused:
        config(["c", "b"])
    assert len(refused.value.errors) == 1


def registered(name: str, args: Any) -> list[tuple[str, ActionType]]:
    plugin = in_tree_class(name).from_args(args, Handle(SchedulerCache()))
    return [(one.event.resource.value, one.event.action) for one in plugin.events_to_register()]


def test_events_that_may_make_a_pod_schedulable_by_labels_and_services() -> None:
    add, delete, update = ActionType.ADD, ActionType.DELETE, ActionType.UPDATE
    of_node = ("Node", add | ActionType.UPDATE_NODE_LABEL)
    assert registered("NodeLabel", NodeLabelArgs()) == [of_node]
    assert registered("ServiceAffinity", ServiceAffinityArgs()) == [
        ("Pod", add | ActionType.UPDATE_POD_LABEL | delete),
        of_node,
        ("Service", add | update | delete),
    ]


def avoiding(kind: str, uid: str) -> str:
    return json.dumps({"preferAvoidPods": [{"podSignature": {"podController": {"kind": kind, "uid": uid}}}]})


@pytest.mark.parametrize(
    ("kind", "uid", "scores"),
    [
        pytest.param("ReplicaSet", "u1", [0, 100, 100], id="the-controller-that-is-named"),
        pytest.param("ReplicationController", "u3", [100, 0, 100], id="a-replication-controller"),
        pytest.param("ReplicaSet", "u2", [100, 100, 100], id="another-one"),
        pytest.param("StatefulSet", "u1", [100, 100, 100], id="a-kind-that-cannot-be-named"),
    ],
)
@pytest.mark.parametrize("invalid", ["not JSON", "[]", "{}"])
def test_node_prefer_avoid_pods(kind: str, uid: str, scores: list[int], invalid: str) -> None:
    cluster = cluster_of(
        node("a", annotations={ANNOTATION: avoiding("ReplicaSet", "u1")}),
        node("b", annotations={ANNOTATION: avoiding("ReplicationController", "u3")}),
        node("c", annotations={ANNOTATION: invalid}),
        node("d"),
    )
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": uid, "controller": True}
    pod = a_pod(metadata={"ownerReferences": [owner]})
    assert raw_scores("NodePreferAvoidPods", None, cluster, pod) == [*scores, 100]
    plugin = in_tree_class("NodePreferAvoidPods").from_args(None, Handle(cluster))
    assert plugin.constant_score(pod, cluster.table) == (100 if kind == "StatefulSet" else None)
    assert plugin.constant_score(a_pod(), cluster.table) == 100


# -- Services ----------------------------------------------------------------------------------------------------------

SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "s", "namespace": "default", "uid": "s"},
    "spec": {"selector": {"app": "x"}},
}
X = {"app": "x"}


def zoned(*placed: str) -> SchedulerCache:
    """Return nodes a1 and a2 in zone a, b1 in zone b and c without zone; each named node gets a pod of the Service."""
    nodes = [node("a1", {ZONE: "a"}), node("a2", {ZONE: "a"}), node("b1", {ZONE: "b"}), node("c")]
    pods = [raw_pod(f"p{number}", on, labels=X) for number, on in enumerate(placed)]
    return cluster_of(SERVICE, *nodes, *pods)


def test_selector_spread_counts_zones_twice_as_much_as_nodes() -> None:
    raw, final = scored("SelectorSpread", None, zoned("a1", "a1", "b1"), a_pod(labels=X))
    assert raw == [2, 0, 1, 0]
    # a third from the node and two thirds from the zone; a node without zone has its own score only
    assert final == [0, 33, int(50 / 3 + 2 / 3 * 50), 100]


def test_selector_spread_avoids_the_only_node_and_zone_with_a_pod() -> None:
    assert scored("SelectorSpread", None, zoned("a1"), a_pod(labels=X)) == ([1, 0, 0, 0], [0, 33, 100, 100])
    one_zone = cluster_of(SERVICE, node("a", {ZONE: "a"}), node("c"), raw_pod("p", "a", labels=X))
    assert scored("SelectorSpread", None, one_zone, a_pod(labels=X)) == ([1, 0], [0, 100])


def test_selector_spread_leaves_alone_who_has_no_service_or_constraints_of_its_own() -> None:
    cluster = zoned("a1", "b1")
    assert scored("SelectorSpread", None, cluster, a_pod()) == ([0, 0, 0, 0], [100, 100, 100, 100])
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
    pod = a_pod(labels=X, topologySpreadConstraints=[constraint])
    assert scored("SelectorSpread", None, cluster, pod) == ([0, 0, 0, 0], [0, 0, 0, 0])


AFFINE = ServiceAffinityArgs((ZONE,), ())
NOT_MATCHED = "node(s) didn't match service affinity"


@pytest.mark.parametrize(
    ("placed", "pod", "found"),
    [
        pytest.param(["b1"], {"labels": X}, [NOT_MATCHED, NOT_MATCHED, "", NOT_MATCHED], id="where-the-first-one-is"),
        pytest.param([], {"labels": X}, ["", "", "", ""], id="the-first-one-is-free"),
        pytest.param(["b1"], {}, ["", "", "", ""], id="no-service-selects-it"),
        pytest.param(
            ["b1"],
            {"labels": X, "nodeSelector": {ZONE: "a"}},
            ["", "", NOT_MATCHED, NOT_MATCHED],
            id="its-own-selector-comes-first",
        ),
    ],
)
def test_service_affinity_keeps_a_service_together(placed: list[str], pod: dict[str, Any], found: list[str]) -> None:
    assert words(verdicts("ServiceAffinity", AFFINE, zoned(*placed), a_pod(**pod))) == found


def test_service_affinity_follows_pods_that_are_added_and_removed_on_trial() -> None:
    cluster, wanted = zoned("a1"), a_pod(labels=X)
    plugin = in_tree_class("ServiceAffinity").from_args(AFFINE, Handle(cluster))
    table, state = cluster.table, CycleState()
    rows = np.array([table.row_of[one] for one in sorted(table.row_of)], dtype=np.int64)
    assert plugin.idle_for(wanted) == ()
    plugin.pre_filter(state, wanted, cluster)

    def feasible() -> list[bool]:
        codes = plugin.filter_rows(state, wanted, table, rows)
        return [True] * len(rows) if codes is None else (codes == 0).tolist()

    of_a, everywhere = [True, True, False, False], [True] * 4
    here, elsewhere = NodeInfo(table, table.row_of["a1"]), NodeInfo(table, table.row_of["a2"])
    assert feasible() == of_a
    plugin.remove_pod(state, wanted, a_pod("other", labels={"app": "y"}), here)
    assert feasible() == of_a, "a pod with other labels does not count"
    plugin.remove_pod(state, wanted, a_pod("other", labels=X), here)
    assert feasible() == everywhere
    plugin.add_pod(state, wanted, a_pod("other", labels={**X, "more": "z"}), elsewhere)
    assert feasible() == of_a
    plugin.add_pod(state, wanted, a_pod("third", labels=X), elsewhere)
    plugin.remove_pod(state, wanted, a_pod("third", labels=X), elsewhere)
    assert feasible() == of_a, "one of the two pods is left"


def test_service_affinity_reads_services_of_the_pods_namespace_only() -> None:
    service = {**SERVICE, "metadata": {**SERVICE["metadata"], "namespace": "other"}}
    cluster = cluster_of(node("a", {ZONE: "a"}), node("b", {ZONE: "b"}), raw_pod("p", "a", labels=X), service)
    assert words(verdicts("ServiceAffinity", AFFINE, cluster, a_pod(labels=X))) == ["", ""]


def test_service_affinity_spreads_over_the_values_of_a_label() -> None:
    args = ServiceAffinityArgs((), (ZONE,))
    raw, final = scored("ServiceAffinity", args, zoned("a1", "a2", "a2", "b1"), a_pod(labels=X))
    assert raw == [1, 2, 1, 0]
    assert final == [25, 25, 75, 0]  # a node without the label scores 0
    assert scored("ServiceAffinity", args, zoned("a1"), a_pod(labels=X)) == ([1, 0, 0, 0], [0, 0, 100, 0])
    of_no_node = ServiceAffinityArgs((), ("example.com/rack",))
    assert scored("ServiceAffinity", of_no_node, zoned("a1"), a_pod(labels=X)) == ([1, 0, 0, 0], [0, 0, 0, 0])


# -- limits of in-tree volumes -----------------------------------------------------------------------------------------


def with_volumes(*sources: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": f"v{number}", **source} for number, source in enumerate(sources)]


def ebs(name: str) -> dict[str, Any]:
    return {"awsElasticBlockStore": {"volumeID": name}}


@pytest.fixture
def _no_limit_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LIMIT_VARIABLE, raising=False)


EXCEEDED = "node(s) exceed max volume count"


@pytest.mark.usefixtures("_no_limit_set")
@pytest.mark.parametrize(
    ("plugin", "source", "field", "most", "key"),
    [
        ("EBSLimits", "awsElasticBlockStore", "volumeID", 39, "attachable-volumes-aws-ebs"),
        ("GCEPDLimits", "gcePersistentDisk", "pdName", 16, "attachable-volumes-gce-pd"),
        ("AzureDiskLimits", "azureDisk", "diskName", 16, "attachable-volumes-azure-disk"),
        ("CinderLimits", "cinder", "volumeID", 256, "attachable-volumes-cinder"),
    ],
)
def test_a_node_takes_so_many_volumes(plugin: str, source: str, field: str, most: int, key: str) -> None:
    present = with_volumes(*({source: {field: f"d{number}"}} for number in range(most)))
    cluster = cluster_of(node("free"), node("full"), raw_pod("p", "full", volumes=present))
    one_more = a_pod(volumes=with_volumes({source: {field: "new"}}))
    assert words(verdicts(plugin, None, cluster, one_more)) == ["", EXCEEDED]
    shared = a_pod(volumes=with_volumes({source: {field: "d0"}}))
    assert words(verdicts(plugin, None, cluster, shared)) == ["", ""]
    roomy = cluster_of(
        node("free"),
        node("full", allocatable={key: str(most + 1)}),
        raw_pod("p", "full", volumes=present),
    )
    assert words(verdicts(plugin, None, roomy, one_more)) == ["", ""]


def test_limits_are_idle_for_pods_without_volumes_and_registered_for_what_frees_or_adds_volumes() -> None:
    plugin = in_tree_class("EBSLimits").from_args(None, Handle(SchedulerCache()))
    assert plugin.idle_for(a_pod()) == ("filter",)
    assert plugin.idle_for(a_pod(volumes=with_volumes(ebs("a")))) == ()
    assert registered("EBSLimits", None) == [
        ("Node", ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE),
        ("Pod", ActionType.DELETE),
        ("PersistentVolumeClaim", ActionType.ADD),
        ("storage.k8s.io/CSINode", ActionType.ADD | ActionType.UPDATE),
    ]


@pytest.mark.usefixtures("_no_limit_set")
@pytest.mark.parametrize("label", ["node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"])
def test_nitro_instances_take_25_ebs_volumes(label: str) -> None:
    kind = {label: "m5.large"}
    present = with_volumes(*(ebs(f"d{number}") for number in range(25)))
    cluster = cluster_of(node("a", kind), raw_pod("p", "a", volumes=present))
    assert words(verdicts("EBSLimits", None, cluster, a_pod(volumes=with_volumes(ebs("new"))))) == [EXCEEDED]


def test_the_environment_may_set_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "1")
    pod = a_pod(volumes=with_volumes(ebs("a"), ebs("b")))
    assert words(verdicts("EBSLimits", None, cluster_of(node("a")), pod)) == [EXCEEDED]
    monkeypatch.setenv(LIMIT_VARIABLE, "many")
    assert words(verdicts("EBSLimits", None, cluster_of(node("a")), pod)) == [""]


def test_claims_count_by_their_volume_or_their_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "1")

    def claim(name: str, **spec: Any) -> dict[str, Any]:
        meta = {"name": name, "namespace": "default", "uid": name}
        return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}

    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "gp2", "uid": "gp2"},
        "provisioner": "kubernetes.io/aws-ebs",
    }
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv", "uid": "pv"}, "spec": ebs("d")}
    cluster = cluster_of(
        node("a"),
        storage_class,
        volume,
        claim("bound", volumeName="pv"),
        claim("to-be-made", storageClassName="gp2"),
        claim("other", storageClassName="none"),
    )

    def verdict(*claims: str) -> str:
        sources = ({"persistentVolumeClaim": {"claimName": name}} for name in claims)
        pod = a_pod(volumes=with_volumes(*sources))
        return words(verdicts("EBSLimits", None, cluster, pod))[0]

    assert verdict("bound", "to-be-made") == EXCEEDED
    assert verdict("bound", "other") == ""
    assert verdict("gone") == 'looking up PVC default/gone: persistentvolumeclaim "gone" not found'


def test_claims_of_ephemeral_volumes_count_if_they_were_made_for_the_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "1")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "new", "uid": "new", "controller": True}
    meta = {"name": "new-v0", "namespace": "default", "uid": "c", "ownerReferences": [owner]}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": {"volumeName": "pv"}}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv", "uid": "pv"}, "spec": ebs("d")}
    ephemeral = {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
    cluster = cluster_of(node("a"), claim, volume)

    def verdict(*sources: dict[str, Any]) -> str:
        return words(verdicts("EBSLimits", None, cluster, a_pod(volumes=with_volumes(*sources))))[0]

    assert verdict(ephemeral) == ""
    assert verdict(ephemeral, ebs("d")) == "", "it is the same volume"
    assert verdict(ephemeral, ebs("other")) == EXCEEDED
    assert verdict(ephemeral, {"emptyDir": {}}) == ""
    cluster.put(parse({**claim, "metadata": {**meta, "ownerReferences": []}}))
    why = "PVC default/new-v0 was not created for pod default/new (pod is not owner)"
    assert verdict(ephemeral) == why


def test_a_running_pod_with_a_claim_without_a_name_is_an_error_for_all_others() -> None:
    unnamed = raw_pod("p", "a", volumes=with_volumes({"persistentVolumeClaim": {}}))
    [status] = verdicts("EBSLimits", None, cluster_of(node("a"), unnamed), a_pod(volumes=with_volumes(ebs("d"))))
    assert status is not None
    assert (status.code, status.message) == (Code.ERROR, "PersistentVolumeClaim had no name")


@pytest.mark.usefixtures("_no_limit_set")
def test_what_is_migrated_is_counted_by_node_volume_limits_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "1")
    migrated = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {
            "name": "a",
            "uid": "c",
            "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"},
        },
        "spec": {"drivers": []},
    }
    pod = a_pod(volumes=with_volumes(ebs("a"), ebs("b")))
    assert words(verdicts("EBSLimits", None, cluster_of(node("a"), migrated), pod)) == [""]
