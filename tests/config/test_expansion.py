"""Tests of merging plugin sets with the defaults, and of the expansion of MultiPoint."""

from typing import Any

import pytest

from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.expansion import PluginEntry, PluginSet, expand
from kschedd.config.loading.load import config_from_raw, default_config
from kschedd.config.model import EXTENSION_POINTS, PluginRef, Profile
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.plugin_info import PluginInfo
from kschedd.config.versions.kube_versions import V1_34, V1_37

CATALOGUE = {
    **IN_TREE,
    "Everywhere": PluginInfo(frozenset(EXTENSION_POINTS) - {"queue_sort"}),
    "ScoresToo": PluginInfo(frozenset({"pre_score", "score"})),
    "Permits": PluginInfo(frozenset({"permit"})),
    "OtherSort": PluginInfo(frozenset({"queue_sort"})),
}


def profile_with(plugins: dict[str, Any]) -> Profile:
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": plugins}],
    }
    return config_from_raw(raw, catalogue=CATALOGUE, version=V1_34).profiles[0]


def refusals(plugins: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigErrors) as refused:
        profile_with(plugins)
    return [f"{error.path}: {error.why}" for error in refused.value.errors]


def enabled(*names: str, **weights: int) -> list[dict[str, Any]]:
    return [{"name": name} for name in names] + [{"name": n, "weight": w} for n, w in weights.items()]


def names(profile: Profile, point: str) -> list[str]:
    return [ref.name for ref in profile.at(point)]


def scores(profile: Profile) -> list[tuple[str, int]]:
    return [(ref.name, ref.weight) for ref in profile.at("score")]


DEFAULT_SCORES = [
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodeResourcesFit", 1),
    ("VolumeBinding", 1),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
]


def test_default_profile_has_every_point_of_1_34() -> None:
    profile = default_config(version=V1_34).profiles[0]
    assert {point: names(profile, point) for point in EXTENSION_POINTS if point != "score"} == {
        "pre_enqueue": ["SchedulingGates", "DynamicResources", "DefaultPreemption"],
        "queue_sort": ["PrioritySort"],
        "pre_filter": [
            "NodeAffinity",
            "NodePorts",
            "NodeResourcesFit",
            "VolumeRestrictions",
            "NodeVolumeLimits",
            "VolumeBinding",
            "VolumeZone",
            "PodTopologySpread",
            "InterPodAffinity",
            "DynamicResources",
        ],
        "filter": [
            "NodeUnschedulable",
            "NodeName",
            "TaintToleration",
            "NodeAffinity",
            "NodePorts",
            "NodeResourcesFit",
            "VolumeRestrictions",
            "NodeVolumeLimits",
            "VolumeBinding",
            "VolumeZone",
            "PodTopologySpread",
            "InterPodAffinity",
            "DynamicResources",
        ],
        "post_filter": ["DynamicResources", "DefaultPreemption"],
        "pre_score": [
            "TaintToleration",
            "NodeAffinity",
            "NodeResourcesFit",
            "VolumeBinding",
            "PodTopologySpread",
            "InterPodAffinity",
            "NodeResourcesBalancedAllocation",
        ],
        "reserve": ["VolumeBinding", "DynamicResources"],
        "permit": [],
        "pre_bind": ["VolumeBinding", "DynamicResources"],
        "bind": ["DefaultBinder"],
        "post_bind": [],
        "placement_generate": [],
        "placement_score": [],
    }
    assert scores(profile) == DEFAULT_SCORES


def test_without_its_gate_dynamic_resources_is_no_default() -> None:
    config = default_config(version=V1_34, feature_gates={"DynamicResourceAllocation": False})
    assert "DynamicResources" not in config.profiles[0].names()
    assert names(config.profiles[0], "post_filter") == ["DefaultPreemption"]


def test_multipoint_replaces_a_default_where_it_stands() -> None:
    profile = profile_with({"multiPoint": {"enabled": enabled(NodeAffinity=7)}})
    assert scores(profile) == [(name, 7 if name == "NodeAffinity" else weight) for name, weight in DEFAULT_SCORES]
    assert names(profile, "filter") == names(default_config(version=V1_34).profiles[0], "filter")


def test_multipoint_appends_what_is_not_a_default() -> None:
    profile = profile_with({"multiPoint": {"enabled": enabled("Everywhere")}})
    assert names(profile, "bind") == ["DefaultBinder", "Everywhere"]
    assert names(profile, "permit") == ["Everywhere"]
    assert scores(profile)[-1] == ("Everywhere", 1)
    assert [ref.weight for ref in profile.at("permit")] == [0]


def test_multipoint_disabled_takes_a_default_away_everywhere() -> None:
    profile = profile_with({"multiPoint": {"disabled": enabled("NodeAffinity")}})
    assert "NodeAffinity" not in profile.names()


def test_enabled_goes_before_disabled_at_multipoint() -> None:
    profile = profile_with({"multiPoint": {"enabled": enabled(NodeAffinity=5), "disabled": enabled("NodeAffinity")}})
    assert scores(profile)[-1] == ("NodeAffinity", 5)
    assert names(profile, "filter")[-1] == "NodeAffinity"


def test_star_at_multipoint_leaves_only_what_is_enabled() -> None:
    profile = profile_with(
        {"multiPoint": {"enabled": enabled("DefaultBinder", "PrioritySort"), "disabled": enabled("*")}}
    )
    assert profile.names() == ("PrioritySort", "DefaultBinder")


def test_a_point_that_names_a_multipoint_plugin_gives_its_weight_and_puts_it_first() -> None:
    profile = profile_with({"score": {"enabled": enabled(ImageLocality=9, NodeAffinity=4)}})
    assert scores(profile) == [
        ("ImageLocality", 9),
        ("NodeAffinity", 4),
        *((name, weight) for name, weight in DEFAULT_SCORES if name not in ("ImageLocality", "NodeAffinity")),
    ]


def test_a_point_that_names_a_plugin_without_weight_gives_it_1() -> None:
    assert scores(profile_with({"score": {"enabled": enabled("TaintToleration")}}))[0] == (
        "TaintToleration",
        1,
    )


def test_disabled_and_enabled_at_a_point_goes_last() -> None:
    profile = profile_with({"score": {"enabled": enabled(TaintToleration=3), "disabled": enabled("TaintToleration")}})
    assert scores(profile) == [*DEFAULT_SCORES[1:], DEFAULT_SCORES[0]]


def test_disabled_at_a_point_leaves_the_other_points() -> None:
    profile = profile_with({"filter": {"disabled": enabled("NodeAffinity")}})
    assert "NodeAffinity" not in names(profile, "filter")
    assert "NodeAffinity" in names(profile, "pre_filter")


def test_star_at_a_point_leaves_what_the_point_names_in_its_order() -> None:
    profile = profile_with({"score": {"enabled": enabled(ImageLocality=2, NodeAffinity=1), "disabled": enabled("*")}})
    assert scores(profile) == [("ImageLocality", 2), ("NodeAffinity", 1)]


def test_order_is_overriding_then_multipoint_then_the_points_own() -> None:
    profile = profile_with({"preScore": {"enabled": enabled("ScoresToo", "PodTopologySpread")}})
    default = names(default_config(version=V1_34).profiles[0], "pre_score")
    default.remove("PodTopologySpread")
    assert names(profile, "pre_score") == ["PodTopologySpread", *default, "ScoresToo"]


@pytest.mark.parametrize(
    ("plugins", "refusal"),
    [
        pytest.param(
            {"multiPoint": {"enabled": enabled("Permits", "Permits")}},
            "$.profiles[0].plugins.multiPoint.enabled[1].name: enabled twice at multiPoint",
            id="twice-at-multipoint",
        ),
        pytest.param(
            {"multiPoint": {"enabled": enabled("NodeName", "NodeName")}},
            "$.profiles[0].plugins.multiPoint.enabled[0].name: enabled twice at multiPoint",
            id="a-default-twice-at-multipoint",
        ),
        pytest.param(
            {"permit": {"enabled": enabled("Permits", "Permits")}},
            "$.profiles[0].plugins.permit.enabled[1].name: enabled twice at permit",
            id="twice-at-a-point",
        ),
        pytest.param(
            {"bind": {"enabled": enabled("NodeName")}},
            "$.profiles[0].plugins.bind.enabled[0].name: does not take part in bind",
            id="a-point-the-plugin-lacks",
        ),
        pytest.param(
            {"score": {"enabled": enabled("NodeAfinity")}},
            '$.profiles[0].plugins.score.enabled[0].name: no such plugin; did you mean "NodeAffinity"?',
            id="misspelt",
        ),
        pytest.param(
            {"queueSort": {"enabled": enabled("OtherSort")}},
            "$.profiles[0].plugins.queueSort: a profile needs exactly one plugin to sort the queue, and this one has 2",
            id="two-sort-the-queue",
        ),
        pytest.param(
            {"queueSort": {"disabled": enabled("*")}},
            "$.profiles[0].plugins.queueSort: a profile needs exactly one plugin to sort the queue, and this one has 0",
            id="none-sorts-the-queue",
        ),
        pytest.param(
            {"bind": {"disabled": enabled("DefaultBinder")}},
            "$.profiles[0].plugins.bind: a profile needs at least one plugin to bind, and this one has none",
            id="none-binds",
        ),
    ],
)
def test_refused(plugins: dict[str, Any], refusal: str) -> None:
    assert refusals(plugins) == [refusal]


def test_weights_that_overflow_are_refused() -> None:
    reported: list[tuple[str, str]] = []
    most = (2**63 - 1) // 100
    scorers = {name: PluginInfo(frozenset({"score"})) for name in ("A", "B")}
    sets = {
        "queue_sort": PluginSet((PluginEntry("PrioritySort"),)),
        "bind": PluginSet((PluginEntry("DefaultBinder"),)),
        "score": PluginSet((PluginEntry("A", 2**40), PluginEntry("B", most - 2**40))),
    }
    catalogue = {**IN_TREE, **scorers}

    def implements(name: str) -> frozenset[str] | None:
        return catalogue[name].points if name in catalogue else None

    expand(sets, implements, lambda path, value, why, allowed: reported.append((path, why)))
    assert reported == []
    sets["score"] = PluginSet((PluginEntry("A", 2**40), PluginEntry("B", most - 2**40 + 1)))
    expand(sets, implements, lambda path, value, why, allowed: reported.append((path, why)))
    assert reported == [("$.plugins.score", "the weights add up to more than a score can hold")]


def test_a_file_names_the_points_of_placements_since_1_36() -> None:
    plugins = {"placementScore": {"enabled": [{"name": "NodeResourcesFit", "weight": 5}]}}
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}],
    }
    profile = config_from_raw(raw, version=V1_37).profiles[0]
    assert profile.at("placement_score") == (PluginRef("NodeResourcesFit", 5),)
    with pytest.raises(ConfigErrors, match="placementScore"):
        config_from_raw(raw, version=V1_34)
