"""Tests that a converted configuration (v1) has the same effect, with comments about settings that v1 lacks."""

from typing import Any

import pytest
import yaml

from kschedd.config.changing.files import check, written_as_v1
from kschedd.config.changing.values import values
from kschedd.config.in_tree import IN_TREE, OLDER
from kschedd.config.loading.load import config_from_raw, default_config, load_config
from kschedd.config.loading.releases import RELEASES
from kschedd.config.model import Config

GROUP = "kubescheduler.config.k8s.io"


def loaded(version: str, **fields: Any) -> Config:
    return config_from_raw({"apiVersion": f"{GROUP}/{version}", "kind": "KubeSchedulerConfiguration", **fields})


def policy(**fields: Any) -> Config:
    return config_from_raw({"apiVersion": "v1", "kind": "Policy", **fields})


SHAPE = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
RATIO = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": SHAPE}}
AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
    }
}
CONSTRAINT = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2}
EVERYTHING = {
    "parallelism": 3,
    "percentageOfNodesToScore": 30,
    "podInitialBackoffSeconds": 2,
    "podMaxBackoffSeconds": 9,
    "leaderElection": {"leaderElect": False, "leaseDuration": "30s", "resourceName": "mine"},
    "clientConnection": {"kubeconfig": "/k", "qps": 7.5},
    "enableProfiling": False,
    "profiles": [
        {
            "schedulerName": "a",
            "percentageOfNodesToScore": 5,
            "plugins": {
                "multiPoint": {"disabled": [{"name": "ImageLocality"}]},
                "score": {"enabled": [{"name": "NodeAffinity", "weight": 9}]},
                "postFilter": {"disabled": [{"name": "*"}]},
            },
            "pluginConfig": [
                {"name": "NodeResourcesFit", "args": {"ignoredResources": ["a.b/c"], "scoringStrategy": RATIO}},
                {"name": "NodeAffinity", "args": {"addedAffinity": AFFINITY}},
                {
                    "name": "PodTopologySpread",
                    "args": {"defaultingType": "List", "defaultConstraints": [CONSTRAINT]},
                },
                {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 0}},
                {"name": "DefaultPreemption", "args": {"minCandidateNodesPercentage": 50}},
                {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 0}},
                {"name": "DynamicResources", "args": {"filterTimeout": "3s"}},
                {"name": "NodeResourcesBalancedAllocation", "args": {"resources": [{"name": "a.b/c"}]}},
            ],
        },
        {"schedulerName": "b"},
    ],
    "extenders": [
        {
            "urlPrefix": "https://h/",
            "filterVerb": "f",
            "enableHTTPS": True,
            "httpTimeout": "1500ms",
            "tlsConfig": {"insecure": True, "certData": "YQ==", "keyData": "Yg=="},
            "managedResources": [{"name": "d.e/f", "ignoredByScheduler": True}],
            "ignorable": True,
        }
    ],
}


@pytest.mark.parametrize(
    "config",
    [
        *(pytest.param(loaded(version), id=f"{version}-as-it-is") for version in RELEASES),
        pytest.param(loaded("v1", **EVERYTHING), id="v1-with-everything"),
        pytest.param(loaded("v1alpha2", disablePreemption=True, bindTimeoutSeconds=9), id="v1alpha2-switches"),
        pytest.param(policy(), id="policy-as-it-is"),
        pytest.param(policy(predicates=[], priorities=[]), id="policy-without-anything"),
        pytest.param(
            policy(
                predicates=[{"name": "A", "argument": {"serviceAffinity": {"labels": ["zone"]}}}],
                priorities=[
                    {
                        "name": "R",
                        "weight": 2,
                        "argument": {"requestedToCapacityRatioArguments": {"shape": SHAPE}},
                    }
                ],
            ),
            id="policy-with-arguments",
        ),
    ],
)
def test_what_is_written_comes_to_the_same(config: Config) -> None:
    text = written_as_v1(config, IN_TREE)
    again = load_config(text, "converted")
    assert again == config
    assert yaml.safe_load(text)["apiVersion"] == f"{GROUP}/v1"


def test_the_default_is_two_lines() -> None:
    text = written_as_v1(default_config(), IN_TREE)
    assert text == f"apiVersion: {GROUP}/v1\nkind: KubeSchedulerConfiguration\n"


def test_what_has_no_counterpart_is_a_comment() -> None:
    old = policy(priorities=[{"name": "EqualPriority", "weight": 1}], alwaysCheckAllPredicates=True)
    lines = written_as_v1(old, IN_TREE).splitlines()
    assert lines[0] == "# $.priorities[0].name: EqualPriority: has no effect: it is the same for each node"
    assert lines[1].startswith("# $.alwaysCheckAllPredicates: True: has no effect")
    [marked] = [line for line in lines if "name: EBSLimits" in line]
    assert "# kube-scheduler v1.34 has no such plugin, kschedd has; instead: NodeVolumeLimits" in marked


TEXT = f"""\
apiVersion: {GROUP}/v1beta2
kind: KubeSchedulerConfiguration
parallelism: 4
profiles:
- schedulerName: mine
  plugins:
    score:
      enabled:
      - name: ImageLocality
        weight: 7
  pluginConfig:
  - name: InterPodAffinity
    args: {{hardPodAffinityWeight: 3}}
"""


def test_each_value_says_where_it_was_said() -> None:
    origins = {one.path: (one.value, one.origin) for one in values(load_config(TEXT, "f.yaml"))}
    assert origins["parallelism"] == (4, "f.yaml:3")
    assert origins["podMaxBackoffSeconds"] == (10, "default of v1.27")
    assert origins["profiles[mine].plugins.score[ImageLocality]"] == (7, "f.yaml:9")
    assert origins["profiles[mine].plugins.score[NodeAffinity]"] == (1, "default of v1.27")
    assert origins["profiles[mine].pluginConfig[InterPodAffinity]"] == ({"hardPodAffinityWeight": 3}, "f.yaml:12")


def test_a_check_says_all_that_is_wrong_with_lines() -> None:
    wrong = TEXT.replace("parallelism: 4", "paralellism: 4").replace("weight: 7", "weight: -7")
    answer = check(wrong, "f.yaml", IN_TREE)
    assert answer.release is None
    assert [(one.line, one.path) for one in answer.errors] == [
        (3, "$.paralellism"),
        (10, "$.profiles[0].plugins.score.enabled[0].weight"),
    ]
    assert [one.line for one in check(wrong + "percentageOfNodesToScore: 150\n", "f", IN_TREE).warnings] == [14]
    right = check(TEXT, "f.yaml", IN_TREE)
    assert (right.release, right.errors, right.warnings) == ("v1.27", [], [])


@pytest.mark.parametrize("version", RELEASES)
def test_kube_scheduler_gets_no_plugin_that_it_does_not_have(version: str) -> None:
    text = written_as_v1(loaded(version), IN_TREE, upstream=True)
    config = load_config(text, "converted")
    assert not [name for name in config.profiles[0].names() if name in OLDER]
    assert config.warnings == ()


def test_what_kube_scheduler_has_instead_takes_the_place() -> None:
    text = written_as_v1(policy(), IN_TREE, upstream=True)
    profile = load_config(text, "converted").profiles[0]
    assert profile.weight("NodeResourcesFit") == 1
    assert profile.args("NodeResourcesFit").scoring_strategy.type == "LeastAllocated"
    assert profile.args("PodTopologySpread").defaulting_type == "System"
    remarks = [line for line in text.splitlines() if line.startswith("# ")]
    assert remarks[0] == (
        "# profiles[default-scheduler]: NodeResourcesLeastAllocated: is replaced by NodeResourcesFit with the strategy "
        "LeastAllocated"
    )
    assert remarks[1].endswith("SelectorSpread: is replaced by the System constraints of PodTopologySpread")
    assert any("NodePreferAvoidPods: is left out" in line and "PreferNoSchedule" in line for line in remarks)


def test_a_curve_from_0_to_100_is_one_from_0_to_10_for_kube_scheduler() -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 100}]
    argument = {"requestedToCapacityRatioArguments": {"shape": shape}}
    config = policy(priorities=[{"name": "R", "weight": 2, "argument": argument}])
    profile = load_config(written_as_v1(config, IN_TREE, upstream=True), "converted").profiles[0]
    strategy = profile.args("NodeResourcesFit").scoring_strategy
    assert (strategy.type, [point.score for point in strategy.shape]) == ("RequestedToCapacityRatio", [0, 10])
    assert profile.weight("NodeResourcesFit") == 2
