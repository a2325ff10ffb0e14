"""The example plugins that carry real work: groups, quotas, NUMA zones, sizes of nodes, measured load."""

import json
from pathlib import Path
from typing import Any

import pytest

from kschedd import Cluster, node, pod
from kschedd.plugin import RawArgs
from kschedd.testing.judging import judge
from kschedd.testing.rules import RULES, Rule, check
from tests.examples.plugin_files import definitions, module

Coscheduling = module("coscheduling.py").Coscheduling
CapacityScheduling = module("capacity_scheduling.py").CapacityScheduling
NodeResourcesAllocatable = module("node_resources_allocatable.py").NodeResourcesAllocatable
NodeResourceTopologyMatch = module("node_resource_topology.py").NodeResourceTopologyMatch
trimaran = module("trimaran.py")

GROUP = {"scheduling.x-k8s.io/pod-group": "g"}


def group(least: Any = 2, timeout_s: int = 30, name: str = "g") -> dict[str, Any]:
    spec = {"minMember": least, "scheduleTimeoutSeconds": timeout_s}
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def quota(namespace: str, least: str, most: str) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "q", "namespace": namespace},
        "spec": {"min": {"cpu": least}, "max": {"cpu": most}},
    }


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


# -- Coscheduling ----------------------------------------------------------------------------------------------------


def groups(**args: Any) -> Cluster:
    cluster = Cluster(plugins=[Coscheduling], plugin_args={Coscheduling.name: args})
    cluster.apply(*definitions())
    return cluster


def test_a_group_waits_for_its_members_and_all_go() -> None:
    cluster = groups()
    cluster.apply(node("n"), group(3), *(pod(name, labels=GROUP) for name in ("a", "b")))
    assert set(cluster.placements().values()) == {None}
    assert "current pods number: 2, minMember of group: 3" in cluster.message("b")
    cluster.apply(pod("c", labels=GROUP))
    cluster.advance(30)
    assert set(cluster.placements().values()) == {"n"}


def test_a_group_without_room_for_all_keeps_no_node() -> None:
    cluster = groups()
    cluster.apply(node("n", cpu="2"), group(3), *(pod(name, cpu="1", labels=GROUP) for name in "abc"))
    cluster.advance(5)
    assert set(cluster.placements().values()) == {None}
    cluster.apply(pod("alone", cpu="2"))
    cluster.advance(60)
    assert cluster.placements()["alone"] == "n"
    cluster.apply(node("m", cpu="4"))
    cluster.advance(400)
    assert [cluster.placements()[name] for name in "abc"] == ["m"] * 3


def test_who_waits_too_long_gives_its_node_back() -> None:
    cluster = groups()
    large = pod("b", cpu="1", labels=GROUP, spec={"schedulingGates": [{"name": "later"}]})
    cluster.apply(node("n", cpu="1"), group(2, timeout_s=10), pod("a", cpu="1", labels=GROUP), large)
    cluster.advance(9)
    assert cluster.placements()["a"] is None
    cluster.advance(2)
    cluster.apply(pod("other", cpu="1"))
    cluster.advance(30)
    assert cluster.placements()["other"] == "n"


@pytest.mark.parametrize("least", [0, -1, "3", True, None])
def test_a_group_that_says_nothing_usable_is_said(least: Any) -> None:
    cluster = groups()
    cluster.apply(node("n"), group(least), pod("a", labels=GROUP))
    assert "cannot find PodGroup g of this pod, or its minMember" in cluster.message("a")


@pytest.mark.parametrize("spec", ["x", 7, [], None])
def test_a_group_whose_spec_is_no_map_is_said(spec: Any) -> None:
    cluster = groups()
    cluster.apply(node("n"), {**group(), "spec": spec}, pod("a", labels=GROUP))
    assert "cannot find PodGroup g of this pod, or its minMember" in cluster.message("a")


def test_a_group_that_comes_later_wakes_its_pods() -> None:
    cluster = groups()
    cluster.apply(node("n"), pod("a", labels=GROUP))
    assert cluster.placements() == {"a": None}
    cluster.apply(group(1))
    cluster.advance(10)
    assert cluster.placements() == {"a": "n"}


@pytest.mark.parametrize("seconds", [0, -1, "10", True, 1e9])
def test_a_waiting_time_that_is_none_is_refused(seconds: Any) -> None:
    with pytest.raises(ValueError, match="permitWaitingTimeSeconds"):
        Coscheduling.from_args(RawArgs({"permitWaitingTimeSeconds": seconds}), None)


# -- CapacityScheduling ----------------------------------------------------------------------------------------------


def nodes_of(cluster: Cluster) -> dict[str, str | None]:
    """Return the node of each pod, by the pod's name alone: the tests' pods have different names in all namespaces."""
    return {pod.name: pod.node for pod in cluster.pods}


def quotas() -> Cluster:
    cluster = Cluster(plugins=[CapacityScheduling])
    cluster.apply(*definitions(), namespace("a"), namespace("b"), quota("a", "2", "3"), quota("b", "2", "4"))
    return cluster


def test_nobody_takes_more_than_its_max() -> None:
    cluster = quotas()
    cluster.apply(node("n", cpu="8"), *(pod(f"a{n}", namespace="a", cpu="1") for n in range(4)))
    assert list(nodes_of(cluster).values()).count("n") == 3
    assert "ElasticQuota a is more than Max" in cluster.run("describe pod -n a a3")


def test_nobody_borrows_where_everything_is_in_use() -> None:
    cluster = quotas()
    cluster.apply(node("n", cpu="8"), *(pod(f"b{n}", namespace="b", cpu="1") for n in range(3)))
    cluster.apply(*(pod(f"a{n}", namespace="a", cpu="1") for n in range(2)))
    assert nodes_of(cluster) == {"b0": "n", "b1": "n", "b2": "n", "a0": "n", "a1": "n"}
    cluster.apply(pod("b3", namespace="b", cpu="1"))
    assert "total ElasticQuota used is more than min" in cluster.run("describe pod -n b b3")


@pytest.mark.parametrize("spec", [{"min": {"cpu": "x"}}, {"max": {"cpu": True}}, {"min": [1]}, {"max": "y"}, 7, "z"])
def test_a_quota_that_cannot_be_read_holds_up_pods_of_its_namespace_only(spec: Any) -> None:
    cluster = quotas()
    cluster.apply({**quota("a", "1", "1"), "spec": spec}, node("n", cpu="4"))
    cluster.apply(pod("held", namespace="a"), pod("free", cpu="1", namespace="b"))
    assert nodes_of(cluster) == {"held": None, "free": "n"}
    answer = cluster.run("describe pod -n a held")
    assert "ElasticQuota of namespace a: min and max must be maps of quantities" in answer


def test_what_is_borrowed_is_taken_back() -> None:
    cluster = quotas()
    cluster.apply(node("n", cpu="4"), *(pod(f"b{n}", namespace="b", cpu="1") for n in range(4)))
    cluster.apply(pod("a0", namespace="a", cpu="1"))
    cluster.advance(60)
    assert nodes_of(cluster)["a0"] == "n"
    assert "b3" not in nodes_of(cluster)  # the last that came
    assert {"b0", "b1", "b2"} <= nodes_of(cluster).keys()


def test_only_what_is_borrowed_is_taken_back() -> None:
    cluster = quotas()
    cluster.apply(node("n", cpu="2"), *(pod(f"b{n}", namespace="b", cpu="1") for n in range(2)))
    cluster.apply(pod("a0", namespace="a", cpu="1"))
    cluster.advance(60)
    assert nodes_of(cluster) == {"b0": "n", "b1": "n", "a0": None}


def test_usage_follows_pods_that_go() -> None:
    cluster = quotas()
    cluster.apply(node("n", cpu="8"), *(pod(f"a{n}", namespace="a", cpu="1") for n in range(4)))
    cluster.delete("Pod", "a0", "a")
    cluster.advance(30)
    assert nodes_of(cluster) == {"a1": "n", "a2": "n", "a3": "n"}


def test_a_quota_that_grows_wakes_pods() -> None:
    cluster = quotas()
    cluster.apply(node("n", cpu="8"), *(pod(f"a{n}", namespace="a", cpu="1") for n in range(4)))
    cluster.apply(quota("a", "2", "4"))
    cluster.advance(30)
    assert set(nodes_of(cluster).values()) == {"n"}


# -- NodeResourcesAllocatable ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "scores"), [pytest.param("Least", [100, 50, 0], id="least"), pytest.param("Most", [0, 50, 100], id="most")]
)
def test_the_size_of_a_node_is_its_score(mode: str, scores: list[int]) -> None:
    nodes = [node("s", cpu="2", memory="0"), node("m", cpu="4", memory="0"), node("l", cpu="6", memory="0")]
    answer = judge(NodeResourcesAllocatable, pod("p"), nodes, args={"mode": mode})
    assert [each.score for each in answer.values()] == scores


def test_weights_say_what_counts() -> None:
    nodes = [node("cores", cpu="8", memory="1Gi"), node("bytes", cpu="1", memory="64Gi")]
    args = {"mode": "Most", "resources": [{"name": "memory", "weight": 1}]}
    assert {name: each.score for name, each in judge(NodeResourcesAllocatable, pod("p"), nodes, args=args).items()} == {
        "cores": 0,
        "bytes": 100,
    }


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param({"mode": "Middle"}, "mode: 'Middle': must be one of Least, Most", id="mode"),
        pytest.param({"resources": []}, "resources: must name at least one", id="none"),
        pytest.param({"resources": [{"name": "cpu", "weight": 0}]}, r"resources\[0\]: .*weight from 1 up", id="zero"),
        pytest.param({"resources": "cpu"}, r"resources\[0\]: 'cpu'", id="text"),
    ],
)
def test_sizes_refuse_arguments(args: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NodeResourcesAllocatable.from_args(RawArgs(args), None)


# -- NodeResourceTopologyMatch ---------------------------------------------------------------------------------------


def topology(name: str, *cpus: str, scope: str = "pod", policy: str = "single-numa-node") -> dict[str, Any]:
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": name},
        "attributes": [
            {"name": "topologyManagerPolicy", "value": policy},
            {"name": "topologyManagerScope", "value": scope},
        ],
        "zones": [
            {"name": f"node-{number}", "type": "Node", "resources": [{"name": "cpu", "allocatable": cpu}]}
            for number, cpu in enumerate(cpus)
        ],
    }


def pinned(name: str, *cpus: str, node_name: str = "") -> dict[str, Any]:
    """Return a guaranteed pod with a container for each amount of CPU."""
    made = pod(name, node_name=node_name)
    made["spec"]["containers"] = [
        {"name": f"c{number}", "image": "i", "resources": {"limits": {"cpu": cpu, "memory": "1Gi"}}}
        for number, cpu in enumerate(cpus)
    ]
    return made


def zoned(*objects: dict[str, Any], **args: Any) -> Cluster:
    plugin = NodeResourceTopologyMatch
    cluster = Cluster(plugins=[plugin], plugin_args={plugin.name: args}, plugin_weights={plugin.name: 1000})
    cluster.apply(*definitions(), *objects)
    return cluster


def test_a_pod_needs_one_zone() -> None:
    cluster = zoned(node("n", cpu="8"), topology("n", "4", "4"), pinned("a", "3"), pinned("b", "3"), pinned("c", "2"))
    assert cluster.placements() == {"a": "n", "b": "n", "c": None}
    assert "cannot align pod" in cluster.message("c")
    cluster.delete("Pod", "a", grace_period_s=0)
    cluster.advance(30)
    assert cluster.placements()["c"] == "n"


def test_containers_are_aligned_one_by_one() -> None:
    cluster = zoned(node("n", cpu="8"), topology("n", "4", "4", scope="container"), pinned("a", "3", "3"))
    assert cluster.placements() == {"a": "n"}
    cluster.apply(pinned("b", "2"))
    assert "cannot align container: c0" in cluster.message("b")


def test_a_pod_that_is_not_guaranteed_goes_anywhere() -> None:
    cluster = zoned(node("n", cpu="8"), topology("n", "1", "1"), pod("a", cpu="4"))
    assert cluster.placements() == {"a": "n"}


@pytest.mark.parametrize(
    "zones",
    [
        "x",
        7,
        [1, "y"],
        [{"type": "Node", "resources": "many"}],
        [{"type": "Node", "resources": [{"name": "cpu", "allocatable": "far"}]}],
    ],
)
def test_zones_that_cannot_be_read_are_no_fault(zones: Any) -> None:
    cluster = zoned(node("n", cpu="8"), {**topology("n", "8"), "zones": zones}, pinned("a", "1"))
    assert "raised" not in cluster.message("a")
    assert "Error" not in cluster.message("a")


@pytest.mark.parametrize("policy", ["none", "best-effort", "restricted"])
def test_other_policies_take_every_pod(policy: str) -> None:
    cluster = zoned(node("n", cpu="8"), topology("n", "1", "1", policy=policy), pinned("a", "4"))
    assert cluster.placements() == {"a": "n"}


def test_a_topology_that_comes_later_counts_and_wakes() -> None:
    cluster = zoned(node("n", cpu="8"), topology("n", "1", "1"), pinned("a", "4"))
    assert cluster.placements() == {"a": None}
    cluster.apply(topology("n", "4", "4"))
    cluster.advance(30)
    assert cluster.placements() == {"a": "n"}


@pytest.mark.parametrize(("strategy", "chosen"), [("LeastAllocated", "wide"), ("MostAllocated", "narrow")])
def test_strategies(strategy: str, chosen: str) -> None:
    objects = node("wide", cpu="8"), node("narrow", cpu="8"), topology("wide", "8"), topology("narrow", "4")
    assert zoned(*objects, pinned("a", "3"), scoringStrategy=strategy).placements() == {"a": chosen}


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(ValueError, match="scoringStrategy: 'x': must be one of"):
        NodeResourceTopologyMatch.from_args(RawArgs({"scoringStrategy": "x"}), None)


# -- Trimaran --------------------------------------------------------------------------------------------------------


@pytest.fixture
def metrics(tmp_path: Path) -> str:
    loads = {
        "idle": {"cpu": {"average": 0}, "memory": {"average": 10}},
        "right": {"cpu": {"average": 30, "stdDev": 2}, "memory": {"average": 10}},
        "busy": {"cpu": {"average": 80, "stdDev": 20}, "memory": {"average": 10}},
        "full": {"cpu": {"average": 99}, "memory": {"average": 10}},
    }
    path = tmp_path / "load.json"
    path.write_text(json.dumps(loads))
    return str(path)


NODES = [node(name, cpu="10") for name in ("idle", "right", "busy", "full", "unknown")]


def test_target_load_packing_prefers_what_comes_near_the_target(metrics: str) -> None:
    requests = pod("p", cpu="600m")  # expected to use 900m, 9 % of a node
    answer = judge(trimaran.TargetLoadPacking, requests, NODES, args={"metricsFile": metrics})
    assert {name: each.score for name, each in answer.items()} == {
        "idle": 54,  # 60 * 9 / 40 + 40 = 53.5
        "right": 98,  # 60 * 39 / 40 + 40 = 98.5, and 98 is the even one
        "busy": 7,  # 40 * 11 / 60 = 7.3
        "full": 0,
        "unknown": 0,
    }


def test_a_pod_with_limits_is_expected_to_use_what_it_requests(metrics: str) -> None:
    requests = pod("p", cpu="600m")
    requests["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "600m"}
    answer = judge(trimaran.TargetLoadPacking, requests, NODES, args={"metricsFile": metrics})
    assert answer["idle"].score == 49  # 60 * 6 / 40 + 40


def test_risk_counts_the_deviation(metrics: str) -> None:
    answer = judge(trimaran.LoadVariationRiskBalancing, pod("p", cpu="1"), NODES, args={"metricsFile": metrics})
    assert {name: each.score for name, each in answer.items()} == {
        "idle": 95,  # 1 - (0.10 + 0) / 2
        "right": 79,  # 1 - (0.40 + 0.02) / 2
        "busy": 45,  # 1 - (0.90 + 0.20) / 2
        "full": 50,  # 1 - (1 + 0) / 2
        "unknown": 0,
    }


def test_the_margin_multiplies_the_deviation_and_the_sensitivity_bends_it(metrics: str) -> None:
    args = {"metricsFile": metrics, "safeVarianceMargin": 3, "safeVarianceSensitivity": 2}
    answer = judge(trimaran.LoadVariationRiskBalancing, pod("p", cpu="1"), NODES, args=args)
    assert answer["right"].score == 59  # 1 - (0.40 + 3 * sqrt(0.02)) / 2
    assert answer["busy"].score == 5  # the deviation counts 1 at most


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(None, "cannot be read", id="no-file"),
        pytest.param("{", "cannot be read", id="no-json"),
        pytest.param("[1]", "must map nodes", id="a-list"),
        pytest.param('{"n": {"cpu": {}}}', "must map nodes", id="no-average"),
        pytest.param('{"n": {"cpu": {"average": -1}}}', "no percentage", id="negative"),
        pytest.param('{"n": {"cpu": {"average": NaN}}}', "no percentage", id="nan"),
    ],
)
def test_a_metrics_file_is_refused_in_words(text: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "load.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ValueError, match=message):
        trimaran.TargetLoadPacking.from_args(RawArgs({"metricsFile": str(path)}), None)


@pytest.mark.parametrize("target", [0, 100, "40", True])
def test_a_target_that_is_none_is_refused(target: Any, metrics: str) -> None:
    with pytest.raises(ValueError, match="targetUtilization"):
        trimaran.TargetLoadPacking.from_args(RawArgs({"metricsFile": metrics, "targetUtilization": target}), None)


# -- the rules -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize(
    "plugin",
    [Coscheduling, CapacityScheduling, NodeResourcesAllocatable, NodeResourceTopologyMatch],
    ids=lambda plugin: str(plugin.name),
)
def test_they_keep_the_rules_of_plugins(plugin: Any, rule: Rule) -> None:
    check(rule, plugin, seeds=range(6), pod_labels={"scheduling.x-k8s.io/pod-group": ("g",)})
