"""Tests of the arguments of in-tree plugins: defaults, valid and rejected values."""

from typing import Any

import pytest

from kschedd.config.args import ArgsContext, RawArgs
from kschedd.config.loading.load import config_from_raw, default_config
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.scoring_args import ResourceWeight, ShapePoint
from kschedd.config.versions.kube_versions import V1_34
from kschedd.plugins.defaultpreemption import DefaultPreemptionArgs
from kschedd.plugins.devices.dynamicresources import DynamicResourcesArgs
from kschedd.plugins.nodeaffinity_args import NodeAffinityArgs
from kschedd.plugins.resources.noderesources_args import (
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioArgs,
    RequestedToCapacityRatioPriorityArgs,
    ScoringStrategy,
)
from kschedd.plugins.topology.interpodaffinity import InterPodAffinityArgs
from kschedd.plugins.topology.podtopologyspread_args import SYSTEM_CONSTRAINTS, DefaultConstraint, PodTopologySpreadArgs
from kschedd.plugins.volumes.volumebinding import CAPACITY_SHAPE, VolumeBindingArgs

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def args_of(plugin: str, args: Any, **gates: bool) -> Any:
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": plugin, "args": args}]}],
    }
    return config_from_raw(raw, version=V1_34, feature_gates=gates).profiles[0].args(plugin)


def test_defaults_are_those_of_1_34() -> None:
    both = (ResourceWeight("cpu", 1), ResourceWeight("memory", 1))
    given = default_config(version=V1_34).profiles[0].plugin_args
    assert {name: args for name, args in given.items() if args != RawArgs()} == {
        "NodeResourcesFit": NodeResourcesFitArgs((), (), ScoringStrategy("LeastAllocated", both)),
        "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs(both),
        "NodeAffinity": NodeAffinityArgs(None),
        "PodTopologySpread": PodTopologySpreadArgs((), "System"),
        "InterPodAffinity": InterPodAffinityArgs(1, False),
        "DefaultPreemption": DefaultPreemptionArgs(10, 100),
        "VolumeBinding": VolumeBindingArgs(600, ()),
        "DynamicResources": DynamicResourcesArgs(10.0),
    }


@pytest.mark.parametrize(
    ("plugin", "args", "read"),
    [
        pytest.param(
            "NodeResourcesFit",
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "NodeResourcesFitArgs",
                "ignoredResources": ["example.com/a"],
                "ignoredResourceGroups": ["example.org"],
                "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 0}]},
            },
            NodeResourcesFitArgs(
                ("example.com/a",),
                ("example.org",),
                ScoringStrategy("MostAllocated", (ResourceWeight("cpu", 1),)),
            ),
            id="weight-0-means-1",
        ),
        pytest.param(
            "NodeResourcesFit",
            {
                "scoringStrategy": {
                    "type": "RequestedToCapacityRatio",
                    "resources": [{"name": "memory", "weight": 100}, {"name": "example.com/gpu"}],
                    "requestedToCapacityRatio": {
                        "shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
                    },
                }
            },
            NodeResourcesFitArgs(
                scoring_strategy=ScoringStrategy(
                    "RequestedToCapacityRatio",
                    (ResourceWeight("memory", 100), ResourceWeight("example.com/gpu")),
                    (ShapePoint(0, 10), ShapePoint(100, 0)),
                )
            ),
            id="shape",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            {"resources": []},
            NodeResourcesBalancedAllocationArgs(),
            id="no-resources-mean-cpu-and-memory",
        ),
        pytest.param(
            "PodTopologySpread",
            {
                "defaultingType": "List",
                "defaultConstraints": [{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
            },
            PodTopologySpreadArgs((DefaultConstraint(2, "zone", "DoNotSchedule"),), "List"),
            id="constraints-of-ones-own",
        ),
        pytest.param(
            "InterPodAffinity",
            {"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": True},
            InterPodAffinityArgs(0, True),
            id="hard-weight-0-stays-0",
        ),
        pytest.param(
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 0},
            DefaultPreemptionArgs(0, 100),
            id="share-0-stays-0",
        ),
        pytest.param("VolumeBinding", {"bindTimeoutSeconds": 0}, VolumeBindingArgs(0), id="no-waiting"),
        pytest.param("DynamicResources", {"filterTimeout": "1.5s"}, DynamicResourcesArgs(1.5), id="timeout"),
    ],
)
def test_read(plugin: str, args: Any, read: Any) -> None:
    assert args_of(plugin, args) == read


@pytest.mark.parametrize(
    ("plugin", "args_type", "highest"),
    [
        ("RequestedToCapacityRatio", RequestedToCapacityRatioArgs, 10),
        ("RequestedToCapacityRatioPriority", RequestedToCapacityRatioPriorityArgs, 100),
    ],
)
def test_older_plugins_that_score_by_a_shape(plugin: str, args_type: Any, highest: int) -> None:
    points = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": highest}]
    resources = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 100}]
    assert args_of(plugin, {"shape": points, "resources": resources}) == args_type(
        (ShapePoint(0, 0), ShapePoint(100, highest)), (ResourceWeight("cpu", 1), ResourceWeight("memory", 100))
    )
    spreading = (ShapePoint(0, 10), ShapePoint(100, 0))
    assert args_type() == args_type(spreading, (ResourceWeight("cpu", 1), ResourceWeight("memory", 1)))


def test_a_refusal_has_the_given_value() -> None:
    with pytest.raises(ConfigErrors) as refused:
        args_of("DefaultPreemption", {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0})
    assert [error.value for error in refused.value.errors] == [0]


def test_system_means_the_two_built_in_constraints_and_list_those_given() -> None:
    assert PodTopologySpreadArgs().constraints == SYSTEM_CONSTRAINTS
    assert [(one.max_skew, one.topology_key, one.when_unsatisfiable) for one in SYSTEM_CONSTRAINTS] == [
        (3, "kubernetes.io/hostname", "ScheduleAnyway"),
        (5, "topology.kubernetes.io/zone", "ScheduleAnyway"),
    ]
    assert PodTopologySpreadArgs((), "List").constraints == ()


@pytest.mark.parametrize(
    "optional",
    [
        {},
        {
            "minDomains": 5,
            "nodeAffinityPolicy": "Ignore",
            "nodeTaintsPolicy": "Honor",
            "matchLabelKeys": ["pod-template-hash"],
        },
    ],
)
def test_a_default_constraint_has_the_given_fields_in_the_format_of_a_pod(optional: dict[str, Any]) -> None:
    given = {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **optional}
    [made] = args_of("PodTopologySpread", {"defaultingType": "List", "defaultConstraints": [given]}).constraints
    assert made.raw == {"nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore", **given}


@pytest.mark.parametrize(
    ("version", "constraints", "kind"),
    [
        pytest.param("v1", [], "System", id="v1"),
        pytest.param("v1beta1", [], "System", id="v1beta1"),
        pytest.param("v1beta1", [{}], "List", id="v1beta1-with-constraints"),
        pytest.param("v1beta2", [{}], "System", id="v1beta2-with-constraints"),
        pytest.param("v1alpha2", [], "List", id="v1alpha2"),
        pytest.param("Policy", [], "List", id="policy"),
    ],
)
def test_the_default_defaulting_type_of(version: str, constraints: list[Any], kind: str) -> None:
    context = ArgsContext(version=version)
    assert PodTopologySpreadArgs.defaults(context, {"defaultConstraints": constraints}).defaulting_type == kind


def test_added_affinity_is_kept_as_written() -> None:
    affinity = {
        REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]},
        PREFERRED: [
            {
                "weight": 3,
                "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
            }
        ],
    }
    assert args_of("NodeAffinity", {"addedAffinity": affinity}) == NodeAffinityArgs(affinity)


def test_the_capacity_gate_brings_a_shape() -> None:
    assert args_of("VolumeBinding", {}, StorageCapacityScoring=True) == VolumeBindingArgs(600, CAPACITY_SHAPE)
    own = {"shape": [{"utilization": 50, "score": 5}]}
    read = args_of("VolumeBinding", own, StorageCapacityScoring=True)
    assert read == VolumeBindingArgs(600, (ShapePoint(50, 5),))


def ratio(*points: tuple[int, int]) -> dict[str, Any]:
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    strategy = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}
    return {"scoringStrategy": strategy}


def constraints(*given: dict[str, Any], kind: str = "List") -> dict[str, Any]:
    whole = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {"defaultingType": kind, "defaultConstraints": [{**whole, **one} for one in given]}


def required(**expression: Any) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "a", **expression}]}
    return {"addedAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}


def field_of_node(**requirement: Any) -> dict[str, Any]:
    term = {"matchFields": [{"key": "metadata.name", **requirement}]}
    return {"addedAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}


EXPRESSION = f"addedAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0]"


@pytest.mark.parametrize(
    ("plugin", "args", "refusal"),
    [
        ("NodeResourcesFit", {"kind": "FitArgs"}, "kind: not the kind of this plugin's arguments"),
        ("NodeResourcesFit", {"scoringStrategi": {}}, "scoringStrategi: no such field"),
        ("NodeResourcesFit", {"scoringStrategy": {}}, "scoringStrategy.type: required, but missing"),
        ("NodeResourcesFit", {"ignoredResourceGroups": ["a.b/c"]}, "ignoredResourceGroups[0]: the name of"),
        ("NodeResourcesFit", {"ignoredResources": ["-a"]}, "ignoredResources[0]: name part must consist of"),
        ("NodeResourcesFit", {"ignoredResourceGroups": ["-a"]}, "ignoredResourceGroups[0]: name part must consist of"),
        ("NodeResourcesFit", {"ignoredResourceGroups": [5]}, "ignoredResourceGroups[0]: must be text, not a whole"),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {}}},
            "scoringStrategy.requestedToCapacityRatio.shape: needs at least one point",
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 101}]}},
            "scoringStrategy.resources[0].weight: out of range",
        ),
        *(
            (plugin, {"resources": [{"name": "cpu", "weight": 101}]}, "resources[0].weight: out of range")
            for plugin in ("NodeResourcesLeastAllocated", "NodeResourcesMostAllocated")
        ),
        *(
            (plugin, args, refusal)
            for plugin, most in (("RequestedToCapacityRatio", 10), ("RequestedToCapacityRatioPriority", 100))
            for args, refusal in (
                ({}, "shape: required, but missing"),
                ({"shape": [{"utilization": 0, "score": most + 1}]}, "shape[0].score: out of range"),
                (
                    {
                        "shape": [{"utilization": 0, "score": most}],
                        "resources": [{"name": "cpu", "weight": 101}],
                    },
                    "resources[0].weight: out of range",
                ),
            )
        ),
        ("NodeResourcesFit", ratio(), "scoringStrategy.requestedToCapacityRatio.shape: needs at least one"),
        (
            "NodeResourcesFit",
            ratio((10, 1), (10, 2)),
            "scoringStrategy.requestedToCapacityRatio.shape[1].utilization: must be larger",
        ),
        (
            "NodeResourcesFit",
            ratio((101, 2)),
            "scoringStrategy.requestedToCapacityRatio.shape[0].utilization: out of range",
        ),
        (
            "NodeResourcesFit",
            ratio((0, 11)),
            "scoringStrategy.requestedToCapacityRatio.shape[0].score: out of range",
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
            "scoringStrategy.requestedToCapacityRatio: needed by the type",
        ),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu", "weight": 2}]},
            "resources[0].weight: out of range",
        ),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu"}, {"name": "cpu"}]},
            "resources[1].name: given twice",
        ),
        ("PodTopologySpread", {"defaultingType": "Lst"}, "defaultingType: not one of the values; did you"),
        ("PodTopologySpread", constraints({}, kind="System"), "defaultingType: constraints of one's own"),
        ("PodTopologySpread", constraints({}, {"maxSkew": 2}), "defaultConstraints[1]: the same topologyKey"),
        ("PodTopologySpread", constraints({"maxSkew": 0}), "defaultConstraints[0].maxSkew: out of range"),
        ("PodTopologySpread", constraints({"maxSkew": None}), "defaultConstraints[0].maxSkew: required"),
        ("PodTopologySpread", constraints({"minDomains": 0}), "defaultConstraints[0].minDomains: out of range"),
        ("PodTopologySpread", constraints({"topologyKey": None}), "defaultConstraints[0].topologyKey: required"),
        (
            "PodTopologySpread",
            constraints({"topologyKey": ""}),
            "defaultConstraints[0].topologyKey: must not",
        ),
        (
            "PodTopologySpread",
            constraints({"labelSelector": {}}),
            "defaultConstraints[0].labelSelector: a default constraint has no selector",
        ),
        ("InterPodAffinity", {"hardPodAffinityWeight": 101}, "hardPodAffinityWeight: out of range"),
        ("DefaultPreemption", {"minCandidateNodesPercentage": 101}, "minCandidateNodesPercentage: out of"),
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            "minCandidateNodesPercentage: minCandidateNodesPercentage and minCandidateNodesAbsolute must not",
        ),
        ("VolumeBinding", {"bindTimeoutSeconds": -1}, "bindTimeoutSeconds: out of range"),
        ("VolumeBinding", {"shape": []}, "shape: a shape needs the feature gate StorageCapacityScoring"),
        ("DynamicResources", {"filterTimeout": "-1s"}, "filterTimeout: must not be negative"),
        ("DynamicResources", {"filterTimeout": 10}, "filterTimeout: must be text, not a whole number"),
        ("NodeAffinity", required(operator="Near"), f"{EXPRESSION}.operator: not one of the values"),
        ("NodeAffinity", required(operator="In"), f"{EXPRESSION}.values: the operator In needs values"),
        ("NodeAffinity", required(operator="Exists", values=["x"]), f"{EXPRESSION}.values: the operator"),
        (
            "NodeAffinity",
            required(operator="Gt", values=["x"]),
            f"{EXPRESSION}.values: the operator Gt needs",
        ),
        ("NodeAffinity", required(operator="In", values=["-x"]), f"{EXPRESSION}.values[0]: a valid label"),
        (
            "NodeAffinity",
            {
                "addedAffinity": {
                    PREFERRED: [{"weight": 1, "preference": {"matchFields": [{"operator": "In", "values": ["n"]}]}}]
                }
            },
            f"addedAffinity.{PREFERRED}[0].preference.matchFields[0].key: required, but missing",
        ),
        (
            "NodeAffinity",
            {"addedAffinity": {PREFERRED: [{"weight": "high", "preference": {}}]}},
            f"addedAffinity.{PREFERRED}[0].weight: must be a whole number, not text",
        ),
        ("NodeAffinity", required(operator="NotIn"), f"{EXPRESSION}.values: the operator NotIn needs values"),
        ("NodeAffinity", required(operator="Lt", values=["1", "2"]), f"{EXPRESSION}.values: the operator Lt needs"),
        ("NodeAffinity", required(key="-a", operator="Exists"), f"{EXPRESSION}.key: name part must consist of"),
        ("NodeAffinity", required(), f"{EXPRESSION}.operator: required, but missing"),
        *(
            (
                "NodeAffinity",
                field_of_node(**wrong),
                f"addedAffinity.{REQUIRED}.nodeSelectorTerms[0].matchFields[0].{why}",
            )
            for wrong, why in (
                ({"values": ["n", "m"]}, "operator: required, but missing"),
                ({"operator": "Exists", "values": ["n"]}, "operator: not one of the values"),
                ({"operator": "In", "values": ["n", "m"]}, "values: a field needs exactly one value"),
                ({"operator": "In"}, "values: a field needs exactly one value"),
            )
        ),
    ],
)
def test_refused(plugin: str, args: Any, refusal: str) -> None:
    with pytest.raises(ConfigErrors) as refused:
        args_of(plugin, args)
    [error] = refused.value.errors
    assert f"{error.path}: {error.why}".startswith(f"$.profiles[0].pluginConfig[0].args.{refusal}")


@pytest.mark.parametrize(
    ("args", "gates", "refusal"),
    [
        pytest.param(
            {"filterTimeout": "5s"},
            {"DRASchedulerFilterTimeout": False},
            "filterTimeout: the feature gate DRASchedulerFilterTimeout is off",
            id="no-filter-timeout",
        ),
        pytest.param(
            {"bindingTimeout": "5s"},
            {"DRADeviceBindingConditions": False},
            "bindingTimeout: the feature gate DRADeviceBindingConditions is off",
            id="no-binding-timeout",
        ),
        pytest.param(
            {"bindingTimeout": "5s"},
            {},
            "bindingTimeout: the feature gate DRADeviceBindingConditions is off",
            id="alpha",
        ),
        pytest.param(
            {"bindingTimeout": "999ms"},
            {"DRADeviceBindingConditions": True},
            "bindingTimeout: is too short",
            id="binding-timeout-of-less-than-a-second",
        ),
        pytest.param(
            {"bindingTimeout": "soon"},
            {"DRADeviceBindingConditions": True},
            "bindingTimeout: ",
            id="binding-timeout-that-is-no-duration",
        ),
    ],
)
def test_timeouts_of_dynamic_resources_need_their_gates(args: Any, gates: dict[str, bool], refusal: str) -> None:
    with pytest.raises(ConfigErrors) as refused:
        args_of("DynamicResources", args, **gates)
    error = refused.value.errors[0]
    assert f"{error.path}: {error.why}".startswith(f"$.profiles[0].pluginConfig[0].args.{refusal}")


def test_timeouts_of_dynamic_resources() -> None:
    assert args_of("DynamicResources", {"filterTimeout": "0s"}) == DynamicResourcesArgs(0.0)
    read = args_of("DynamicResources", {"bindingTimeout": "1s"}, DRADeviceBindingConditions=True)
    assert read == DynamicResourcesArgs(10.0, 1.0)
    assert args_of("DynamicResources", {}, DRASchedulerFilterTimeout=False) == DynamicResourcesArgs(10.0)
