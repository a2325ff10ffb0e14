"""Tests that the configurations in `profiles/` load, and have the effects that their comments describe."""

from pathlib import Path

import pytest

from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import default_config, load_config
from kschedd.config.model import Config
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.plugin_info import PluginInfo
from kschedd.config.scoring_args import ResourceWeight, ShapePoint
from kschedd.plugins.defaultpreemption import DefaultPreemptionArgs
from kschedd.plugins.resources.noderesources_args import NodeResourcesFitArgs
from kschedd.plugins.topology.podtopologyspread_args import PodTopologySpreadArgs

PROFILES = Path(__file__).parents[2] / "profiles"
WITH_GANG = {**IN_TREE, "Gang": PluginInfo(frozenset({"permit"}))}


def loaded(name: str) -> Config:
    return load_config((PROFILES / name).read_text(), name, catalogue=WITH_GANG)


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(PROFILES.glob("*.yaml")) if "kubescheduler.config.k8s.io/v1\n" in path.read_text()],
    ids=lambda path: str(path.name),
)
def test_each_loads_without_a_warning_and_says_what_it_is_for(path: Path) -> None:
    assert loaded(path.name).warnings == ()
    assert path.read_text().startswith("# ")


def test_default_is_the_default() -> None:
    text = (PROFILES / "default.yaml").read_text()
    assert load_config(text, "default.yaml", catalogue=WITH_GANG) == default_config()


def test_bin_packing_prefers_full_nodes() -> None:
    profile = loaded("bin-packing.yaml").profiles[0]
    fit = profile.args("NodeResourcesFit")
    assert isinstance(fit, NodeResourcesFitArgs)
    assert fit.scoring_strategy.type == "MostAllocated"
    assert profile.weight("NodeResourcesFit") == 10
    assert profile.weight("NodeResourcesBalancedAllocation") == 0


def test_spreading_spreads_what_says_nothing() -> None:
    profile = loaded("spreading.yaml").profiles[0]
    args = profile.args("PodTopologySpread")
    assert isinstance(args, PodTopologySpreadArgs)
    assert [(one.topology_key, one.when_unsatisfiable) for one in args.constraints] == [
        ("topology.kubernetes.io/zone", "DoNotSchedule"),
        ("kubernetes.io/hostname", "ScheduleAnyway"),
    ]
    assert profile.weight("PodTopologySpread") == 10


def test_low_latency_looks_at_little() -> None:
    config = loaded("low-latency.yaml")
    assert config.percentage_of_nodes_to_score == 5
    assert {ref.name for ref in config.profiles[0].at("score")} == {
        "TaintToleration",
        "NodeAffinity",
        "NodeResourcesFit",
    }
    assert config.profiles[0].args("DefaultPreemption") == DefaultPreemptionArgs(2, 20)


def test_gang_needs_its_plugin() -> None:
    assert [ref.name for ref in loaded("gang.yaml").profiles[0].at("permit")] == ["Gang"]
    with pytest.raises(ConfigErrors, match="Gang"):
        load_config((PROFILES / "gang.yaml").read_text(), "gang.yaml")


def test_multi_has_two_schedulers_on_one_queue() -> None:
    config = loaded("multi.yaml")
    assert [profile.scheduler_name for profile in config.profiles] == ["default-scheduler", "batch-scheduler"]
    batch = config.profiles[1]
    assert [ref.name for ref in batch.at("post_filter")] == ["DynamicResources"]
    fit = batch.args("NodeResourcesFit")
    assert isinstance(fit, NodeResourcesFitArgs)
    assert fit.scoring_strategy.resources == (ResourceWeight("cpu", 2), ResourceWeight("memory", 1))
    assert fit.scoring_strategy.shape == (ShapePoint(0, 0), ShapePoint(80, 10), ShapePoint(100, 5))


def test_legacy_policy_has_the_plugins_of_its_time() -> None:
    profile = loaded("legacy-policy.yaml").profiles[0]
    assert {ref.name: ref.weight for ref in profile.at("score")} == {
        "RequestedToCapacityRatioPriority": 3,
        "ServiceAffinity": 2,
    }
    assert profile.args("ServiceAffinity").affinity_labels == ("topology.kubernetes.io/region",)
    assert profile.args("InterPodAffinity").hard_pod_affinity_weight == 10
