"""Tests of Policy files, whose predicates and priorities are converted to plugins."""

from typing import Any

import pytest

from kschedd.config.loading.load import config_from_raw, load_config
from kschedd.config.loading.policy_plugins import PREDICATES, PRIORITIES
from kschedd.config.model import Config
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.scoring_args import ResourceWeight, ShapePoint


def loaded(**fields: Any) -> Config:
    return config_from_raw({"apiVersion": "v1", "kind": "Policy", **fields})


def filters(config: Config) -> list[str]:
    return [ref.name for ref in config.profiles[0].at("filter")]


def scores(config: Config) -> dict[str, int]:
    return {ref.name: ref.weight for ref in config.profiles[0].at("score")}


def priority(name: str, weight: int = 1, **argument: Any) -> dict[str, Any]:
    return {"name": name, "weight": weight, **({"argument": argument} if argument else {})}


def predicate(name: str, **argument: Any) -> dict[str, Any]:
    return {"name": name, **({"argument": argument} if argument else {})}


DEFAULT_SCORES = {
    "NodeResourcesBalancedAllocation": 1,
    "PodTopologySpread": 2,
    "ImageLocality": 1,
    "InterPodAffinity": 1,
    "NodeResourcesLeastAllocated": 1,
    "NodeAffinity": 1,
    "NodePreferAvoidPods": 10000,
    "SelectorSpread": 1,
    "TaintToleration": 1,
}


def test_a_list_that_is_missing_means_the_default_and_an_empty_one_none() -> None:
    assert scores(loaded()) == DEFAULT_SCORES
    assert filters(loaded()) == [
        *("NodeUnschedulable", "NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity", "VolumeRestrictions"),
        *("TaintToleration", "EBSLimits", "GCEPDLimits", "NodeVolumeLimits", "AzureDiskLimits", "VolumeBinding"),
        *("VolumeZone", "PodTopologySpread", "InterPodAffinity"),
    ]
    assert scores(loaded(priorities=[])) == {}
    assert filters(loaded(predicates=[])) == ["NodeUnschedulable", "TaintToleration"]


def test_what_was_no_matter_of_a_policy_is_as_today() -> None:
    one = loaded(predicates=[], priorities=[]).profiles[0]
    assert [one.at(point)[0].name for point in ("queue_sort", "post_filter", "bind")] == [
        *("PrioritySort", "DefaultPreemption", "DefaultBinder"),
    ]


@pytest.mark.parametrize("name", PREDICATES)
def test_each_predicate_has_its_plugins(name: str) -> None:
    found = filters(loaded(predicates=[predicate(name)]))
    assert set(found) == {"NodeUnschedulable", "TaintToleration"} | {
        plugin for point, plugin in PREDICATES[name] if point == "filter"
    }


@pytest.mark.parametrize("name", PRIORITIES)
def test_each_priority_has_its_plugin(name: str) -> None:
    assert scores(loaded(priorities=[priority(name, 7)])) == {PRIORITIES[name][0]: 7}


def test_predicates_run_in_their_own_order_and_not_the_files() -> None:
    listed = [predicate(name) for name in ("MatchInterPodAffinity", "PodFitsPorts", "HostName")]
    assert filters(loaded(predicates=listed)) == [
        *("NodeUnschedulable", "NodeName", "NodePorts", "TaintToleration", "InterPodAffinity"),
    ]


def test_predicates_with_arguments_of_any_name_are_gathered() -> None:
    config = loaded(
        predicates=[
            predicate("Zone", serviceAffinity={"labels": ["zone"]}),
            predicate("Region", serviceAffinity={"labels": ["region"]}),
            predicate("Disk", labelsPresence={"labels": ["disk"], "presence": True}),
            predicate("Retiring", labelsPresence={"labels": ["retiring"], "presence": False}),
        ],
        priorities=[],
    )
    args = config.profiles[0].args
    assert args("ServiceAffinity").affinity_labels == ("zone", "region")
    assert (args("NodeLabel").present_labels, args("NodeLabel").absent_labels) == (("disk",), ("retiring",))
    assert filters(config)[2:] == ["NodeLabel", "ServiceAffinity"]


def test_priorities_of_one_kind_add_up() -> None:
    config = loaded(
        predicates=[],
        priorities=[
            priority("Rack", 3, serviceAntiAffinity={"label": "rack"}),
            priority("Zone", 3, serviceAntiAffinity={"label": "zone"}),
            priority("Fast", 5, labelPreference={"label": "fast", "presence": True}),
        ],
    )
    assert scores(config) == {"NodeLabel": 5, "ServiceAffinity": 6}
    args = config.profiles[0].args
    assert args("ServiceAffinity").anti_affinity_labels_preference == ("rack", "zone")
    assert args("NodeLabel").present_labels_preference == ("fast",)


@pytest.mark.parametrize(("highest", "warnings"), [(10, 0), (100, 1)])
def test_the_ratio_priority_has_the_old_arithmetic_and_may_run_to_100(highest: int, warnings: int) -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": highest}]
    resources = [{"name": "intel.com/foo", "weight": 5}, {"name": "cpu"}]
    argument = {"shape": shape, "resources": resources}
    config = loaded(priorities=[priority("Packed", 2, requestedToCapacityRatioArguments=argument)])
    assert scores(config) == {"RequestedToCapacityRatioPriority": 2}
    args = config.profiles[0].args("RequestedToCapacityRatioPriority")
    assert args.shape == (ShapePoint(0, 0), ShapePoint(100, highest))
    assert args.resources == (ResourceWeight("intel.com/foo", 5), ResourceWeight("cpu"))
    assert len(config.warnings) == warnings


def test_hard_pod_affinity_weight() -> None:
    assert loaded(hardPodAffinitySymmetricWeight=25).profiles[0].args("InterPodAffinity").hard_pod_affinity_weight == 25
    assert loaded(hardPodAffinitySymmetricWeight=0).profiles[0].args("InterPodAffinity").hard_pod_affinity_weight == 1


def test_extenders_in_the_old_spelling() -> None:
    extender = {
        "urlPrefix": "https://127.0.0.1:1/s",
        "filterVerb": "filter",
        "enableHttps": True,
        "httpTimeout": 1_500_000_000,
        "managedResources": [{"name": "example.com/foo", "ignoredByScheduler": True}],
    }
    config = loaded(extenders=[extender])
    assert [(one.enable_https, one.http_timeout_s) for one in config.extenders] == [(True, 1.5)]
    assert config.profiles[0].args("NodeResourcesFit").ignored_resources == ("example.com/foo",)


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        (
            {"predicates": [predicate("PodFitsHost")]},
            '$.predicates[0].name: no such predicate; did you mean "PodFitsHo',
        ),
        (
            {"priorities": [priority("LeastRequested")]},
            '$.priorities[0].name: no such priority; did you mean "LeastReq',
        ),
        ({"priorities": [{"name": "ImageLocalityPriority"}]}, "$.priorities[0].weight: a priority needs a weight"),
        (
            {"priorities": [priority("A", 1, serviceAntiAffinity={"label": "a"}, labelPreference={"label": "b"})]},
            "$.priorities[0].argument: takes exactly one of its fields",
        ),
        (
            {"predicates": [{"name": "A", "argument": {}}]},
            "$.predicates[0].argument: takes exactly one of its fields",
        ),
        (
            {
                "priorities": [
                    priority("A", 1, serviceAntiAffinity={"label": "a"}),
                    priority("B", 2, serviceAntiAffinity={"label": "b"}),
                ]
            },
            "$.priorities[1].argument: all priorities with a serviceAntiAffinity need the same weight",
        ),
        ({"hardPodAffinitySymmetricWeight": 101}, "$.hardPodAffinitySymmetricWeight: out of range"),
        ({"predicate": []}, '$.predicate: no such field; did you mean "predicates"?'),
        (
            {"priorities": [priority("A", requestedToCapacityRatioArguments={})]},
            "$.priorities[0].argument.requestedToCapacityRatioArguments.shape: required, but missing",
        ),
    ],
)
def test_refused(fields: dict[str, Any], refusal: str) -> None:
    with pytest.raises(ConfigErrors) as refused:
        loaded(**fields)
    error = refused.value.errors[0]
    assert f"{error.path}: {error.why}".startswith(refusal)


def test_what_has_no_counterpart_gives_a_warning() -> None:
    config = loaded(
        predicates=[predicate("CheckNodeMemoryPressure")],
        priorities=[priority("EqualPriority"), priority("ImageLocalityPriority")],
        alwaysCheckAllPredicates=True,
    )
    assert [warning.path for warning in config.warnings] == [
        "$.predicates[0].name",
        "$.priorities[0].name",
        "$.alwaysCheckAllPredicates",
    ]
    assert scores(config) == {"ImageLocality": 1}


def test_every_fault_has_its_line() -> None:
    text = """\
apiVersion: v1
kind: Policy
predicates:
- name: NoSuch
- nam: GeneralPredicates
priorities:
- name: NeitherSuch
  weight: 1
"""
    with pytest.raises(ConfigErrors) as refused:
        load_config(text, "policy.yaml")
    assert [(error.line, error.path) for error in refused.value.errors] == [
        (4, "$.predicates[0].name"),
        (5, "$.predicates[1].nam"),
        (5, "$.predicates[1].name"),
        (7, "$.priorities[0].name"),
    ]
