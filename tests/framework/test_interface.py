"""Tests of the extension points derived from Protocols, and that in-tree plugins have the required methods."""

import inspect
from typing import Any, ClassVar

import attrs
import pytest

from kschedd.config.in_tree import IN_TREE, in_tree_class
from kschedd.config.model import EXTENSION_POINTS
from kschedd.framework import fast_path
from kschedd.framework.guarding.answers import BadAnswer, idle_points
from kschedd.framework.guarding.guarded import GUARDED_METHODS
from kschedd.framework.interface import (
    MAX_NODE_SCORE,
    POINTS,
    EnqueueExtensions,
    PreFilterResult,
    extension_points,
    methods_of,
    missing_methods,
    plugin_info,
)
from kschedd.framework.registry import PluginLoadError, Registry

_FILTERS = {"pre_filter", "filter"}
_FILTERS_AND_SCORES = _FILTERS | {"pre_score", "score"}
_PROTOCOLS = [
    *(protocol for point in POINTS.values() for protocol in (*point.any_of, *point.extensions)),
    *(fast_path.CacheKey, fast_path.IdleFor, fast_path.ConstantScore),
    EnqueueExtensions,
]


@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("SchedulingGates", {"pre_enqueue"}),
        ("PrioritySort", {"queue_sort"}),
        ("NodeUnschedulable", {"filter"}),
        ("NodeName", {"pre_filter", "filter"}),  # PreFilter since 1.37
        ("TaintToleration", {"filter", "pre_score", "score"}),
        ("NodeAffinity", _FILTERS_AND_SCORES),
        ("NodePorts", _FILTERS),
        ("NodeResourcesFit", _FILTERS_AND_SCORES | {"placement_score"}),  # PlacementScore since 1.37
        ("VolumeRestrictions", _FILTERS),
        ("NodeVolumeLimits", _FILTERS),
        ("VolumeBinding", _FILTERS_AND_SCORES | {"reserve", "pre_bind"}),
        ("VolumeZone", _FILTERS),
        ("PodTopologySpread", _FILTERS_AND_SCORES),
        ("InterPodAffinity", _FILTERS_AND_SCORES),
        # Score since 1.35
        ("DynamicResources", _FILTERS | {"pre_enqueue", "post_filter", "score", "reserve", "pre_bind"}),
        # PreEnqueue keeps a pod waiting until its victims are deleted.
        ("DefaultPreemption", {"pre_enqueue", "post_filter"}),
        ("NodeResourcesBalancedAllocation", {"pre_score", "score"}),
        ("ImageLocality", {"score"}),
        ("DefaultBinder", {"bind"}),
        ("TopologyPlacementGenerator", {"placement_generate"}),
        ("PodGroupPodsCount", {"placement_score"}),
    ],
)
def test_an_in_tree_plugin_takes_part_where_kube_schedulers_does(name: str, points: set[str]) -> None:
    assert IN_TREE[name].points == points


def test_there_is_a_point_for_each_that_a_profile_can_name() -> None:
    assert tuple(POINTS) == EXTENSION_POINTS


@pytest.mark.parametrize("name", IN_TREE)
def test_the_methods_of_an_in_tree_plugin_take_what_their_protocol_says(name: str) -> None:
    cls = in_tree_class(name)
    assert missing_methods(cls) == ""
    checked = 0
    for protocol in _PROTOCOLS:
        for method in methods_of(protocol):
            found = getattr(cls, method, None)
            if found is not None:
                wanted = list(inspect.signature(getattr(protocol, method)).parameters)
                inspect.signature(found).bind(*wanted)  # raises TypeError where the numbers of parameters differ
                checked += 1
    assert checked


def test_every_method_that_is_called_for_a_pod_is_guarded() -> None:
    called = {method for protocol in _PROTOCOLS for method in methods_of(protocol)}
    elsewhere = {"sort_key", "events_to_register"}  # methods that are guarded in another way
    in_tree_only = {"constant_score", "generate_placements", "score_placements"}
    assert set(GUARDED_METHODS) == called - elsewhere - in_tree_only


class WithoutWords:
    name: ClassVar = "WithoutWords"

    def filter_rows(self, state: Any, pod: Any, table: Any, rows: Any) -> None:
        return None


def test_an_out_of_tree_plugin_may_be_idle_at_these_points_only() -> None:
    assert idle_points("idle_for", ["pre_filter", "filter", "binding"]) == ("pre_filter", "filter", "binding")
    with pytest.raises(BadAnswer, match=r"^idle_for returned 'score'; allowed are pre_filter, filter, binding$"):
        idle_points("idle_for", ["score"])


def test_half_a_protocol_is_refused_with_what_is_missing() -> None:
    assert extension_points(WithoutWords) == frozenset()
    with pytest.raises(PluginLoadError, match="has filter_rows without code_status; both are required"):
        Registry().add(WithoutWords, "a test")


def test_scores_end_at_100_and_a_restriction_to_nodes_does_not_replace_the_filter() -> None:
    assert MAX_NODE_SCORE == 100
    assert PreFilterResult(frozenset({"n1"})).already_filtered is False


def test_only_attrs_classes_are_types_of_arguments() -> None:
    @attrs.frozen
    class Args:
        weight: int = 1

    found = []
    for args_type in (None, Args, dict, "Args"):
        cls = type("Mine", (), {"name": "Mine", "filter": lambda self, state, pod, node: None, "args_type": args_type})
        found.append(plugin_info(cls))
    assert [info.args_type for info in found] == [None, Args, None, None]
    assert {info.points for info in found} == {frozenset({"filter"})}
