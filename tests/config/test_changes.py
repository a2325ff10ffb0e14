"""Tests that changes of a configuration return new values, which are always valid."""

from collections.abc import Callable

import pytest

from kschedd.config.args import RawArgs
from kschedd.config.changing.changes import (
    with_backoff,
    with_parallelism,
    with_percentage,
    with_plugin_args,
    with_plugin_disabled,
    with_plugin_enabled,
    with_profile_added,
    with_profile_removed,
    with_unschedulable_flush,
    with_version,
    with_weight,
)
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw, default_config
from kschedd.config.model import EXTENSION_POINTS, Config
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.plugin_info import PluginInfo
from kschedd.config.versions.kube_versions import kube_version
from kschedd.plugins.topology.interpodaffinity import InterPodAffinityArgs

NAME = "default-scheduler"
CATALOGUE = {**IN_TREE, "Gang": PluginInfo(frozenset({"permit"})), "OtherSort": PluginInfo(frozenset({"queue_sort"}))}


def two_profiles() -> Config:
    return config_from_raw(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}],
        }
    )


def test_a_weight_changes_in_one_profile_and_not_in_the_old_value() -> None:
    before = two_profiles()
    after = with_weight(before, "b", "NodeAffinity", 40)
    assert [profile.weight("NodeAffinity") for profile in after.profiles] == [2, 40]
    assert [profile.weight("NodeAffinity") for profile in before.profiles] == [2, 2]
    assert before == two_profiles()


def test_disabling_and_enabling_again_gives_back_the_same() -> None:
    before = default_config()
    for plugin in before.profiles[0].names():
        if plugin in ("PrioritySort", "DefaultBinder"):
            continue
        without = with_plugin_disabled(before, NAME, plugin)
        assert plugin not in without.profiles[0].names()
        assert with_plugin_enabled(without, NAME, plugin) == before


def test_a_plugin_leaves_only_the_points_named() -> None:
    after = with_plugin_disabled(default_config(), NAME, "NodeAffinity", ["score", "pre_score"])
    took_part = {at for at in EXTENSION_POINTS if "NodeAffinity" in [ref.name for ref in after.profiles[0].at(at)]}
    assert took_part == {"pre_filter", "filter"}


def test_a_plugin_from_elsewhere_comes_last_with_its_arguments() -> None:
    after = with_plugin_enabled(default_config(), NAME, "Gang", args={"timeout": "3s"}, catalogue=CATALOGUE)
    assert [ref.name for ref in after.profiles[0].at("permit")] == ["Gang"]
    assert after.profiles[0].args("Gang") == RawArgs({"timeout": "3s"})


def test_arguments_are_read_as_from_a_file() -> None:
    after = with_plugin_args(default_config(), NAME, "InterPodAffinity", {"hardPodAffinityWeight": 7})
    assert after.profiles[0].args("InterPodAffinity") == InterPodAffinityArgs(7)


def test_percentage_of_all_and_of_one_profile() -> None:
    config = with_percentage(with_percentage(two_profiles(), 30), 70, "b")
    assert [config.percentage(profile) for profile in config.profiles] == [30, 70]
    config = with_percentage(config, None, "b")
    assert [config.percentage(profile) for profile in config.profiles] == [30, 30]
    assert with_percentage(config, 250).percentage_of_nodes_to_score == 100


def test_backoff_and_parallelism() -> None:
    config = with_parallelism(with_backoff(default_config(), 2, 60), 3)
    assert (config.pod_initial_backoff_s, config.pod_max_backoff_s, config.parallelism) == (2, 60, 3)


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (lambda c: with_weight(c, "c", "NodeAffinity", 1), "$.profiles: no such profile"),
        (lambda c: with_weight(c, "b", "NodeName", 1), "$.profiles[1].plugins.score: does not score"),
        (lambda c: with_weight(c, "a", "NodeAffinity", 0), "$.profiles[0].plugins.score: not a weight"),
        (lambda c: with_plugin_disabled(c, "a", "Nobody"), "$.profiles[0].plugins: is not enabled there"),
        (
            lambda c: with_plugin_disabled(c, "a", "NodeName", ["filters"]),
            "$.profiles[0].plugins: no such ext",
        ),
        (lambda c: with_plugin_disabled(c, "a", "DefaultBinder"), "$.profiles[0].plugins.bind: at least one"),
        (lambda c: with_plugin_disabled(c, "a", "PrioritySort"), "$.profiles[0].plugins.queueSort: exactly"),
        (
            lambda c: with_plugin_enabled(c, "a", "NodeName"),
            "$.profiles[0].plugins: is already enabled there",
        ),
        (lambda c: with_plugin_enabled(c, "a", "NodeNam"), "$.profiles[0].plugins: no such plugin; did you"),
        (
            lambda c: with_plugin_enabled(c, "a", "NodeName", ["bind"]),
            "$.profiles[0].plugins.bind: does not implement bind",
        ),
        (
            lambda c: with_plugin_args(c, "a", "InterPodAffinity", {"hardPodAffinityWeight": 101}),
            "$.profiles[0].pluginConfig.InterPodAffinity.hardPodAffinityWeight: out of range",
        ),
        (
            lambda c: with_plugin_args(c, "a", "PrioritySort", {"x": 1}),
            "$.profiles[1].plugins.queueSort: all profiles must sort the queue alike",
        ),
        (lambda c: with_percentage(c, -1), "$.percentageOfNodesToScore: out of range"),
        (lambda c: with_backoff(c, 0, 1), "$.podInitialBackoffSeconds: out of range"),
        (lambda c: with_backoff(c, 5, 4), "$.podMaxBackoffSeconds: less than the initial backoff"),
        (lambda c: with_parallelism(c, 0), "$.parallelism: out of range"),
        (lambda c: with_unschedulable_flush(c, 0), "$.podMaxInUnschedulablePodsDuration: out of range"),
        (lambda c: with_profile_added(c, "a"), "$.profiles: a profile with this name already exists"),
        (
            lambda c: with_profile_added(c, "c", {"plugins": {"queueSort": {"disabled": [{"name": "*"}]}}}),
            "$.profiles[0].plugins.queueSort: a profile needs exactly one plugin to sort the queue",
        ),
        (
            lambda c: with_profile_added(c, "c", {"pluginConfig": [{"name": "PrioritySort", "args": {"a": 1}}]}),
            "$.profiles[2].plugins.queueSort: all profiles must sort the queue alike",
        ),
        (lambda c: with_profile_removed(c, "c"), "$.profiles: no such profile"),
        (lambda c: with_profile_removed(with_profile_removed(c, "a"), "b"), "$.profiles: is the only profile"),
    ],
)
def test_refused(change: Callable[[Config], Config], refusal: str) -> None:
    with pytest.raises(ConfigErrors) as refused:
        change(two_profiles())
    error = refused.value.errors[0]
    assert f"{error.path}: {error.why}".startswith(refusal)


def test_a_profile_comes_and_goes() -> None:
    before = two_profiles()
    after = with_profile_added(before, "c", {"plugins": {"score": {"disabled": [{"name": "*"}]}}})
    assert [profile.scheduler_name for profile in after.profiles] == ["a", "b", "c"]
    assert after.profiles[2].at("score") == ()
    assert with_profile_removed(after, "c") == before


@pytest.mark.parametrize("version", ["1.34.1", "1.34", "1.35", "1.36"])
def test_a_changed_weight_is_kept_by_a_version_whose_plugins_have_fewer_points(version: str) -> None:
    latest = default_config(version=kube_version("1.37"))
    changed = with_weight(latest, "default-scheduler", "NodeResourcesFit", 5)
    older = with_version(changed, kube_version(version)).profiles[0]
    usual = default_config(version=kube_version(version)).profiles[0]
    assert older.weight("NodeResourcesFit") == 5
    assert [ref.name for ref in older.at("score")] == [ref.name for ref in usual.at("score")]
    assert with_version(latest, kube_version(version)).profiles[0].plugins == usual.plugins
