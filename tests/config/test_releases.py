"""Each format of KubeSchedulerConfiguration gets the defaults of its release, and is read by that release's rules."""

from typing import Any

import pytest

from kschedd.config.faults import ConfigErrors
from kschedd.config.load import config_from_raw, load_config
from kschedd.config.model import Config, Profile
from kschedd.config.releases import RELEASES

GROUP = "kubescheduler.config.k8s.io"


def loaded(version: str, **fields: Any) -> Config:
    return config_from_raw({"apiVersion": f"{GROUP}/{version}", "kind": "KubeSchedulerConfiguration", **fields})


def profile(version: str, **fields: Any) -> Profile:
    return loaded(version, profiles=[fields]).profiles[0]


def names(one: Profile, point: str) -> list[str]:
    return [ref.name for ref in one.at(point)]


def weights(one: Profile) -> dict[str, int]:
    return {ref.name: ref.weight for ref in one.at("score")}


def faults(version: str, **fields: Any) -> list[str]:
    with pytest.raises(ConfigErrors) as refused:
        loaded(version, **fields)
    return [f"{error.path}: {error.why}" for error in refused.value.errors]


def enabled(*listed: str, **weighted: int) -> dict[str, Any]:
    return {"enabled": [*({"name": name} for name in listed), *({"name": n, "weight": w} for n, w in weighted.items())]}


OLD_SCORES = {
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "InterPodAffinity": 1,
    "NodeResourcesLeastAllocated": 1,
    "NodeAffinity": 1,
    "NodePreferAvoidPods": 10000,
    "PodTopologySpread": 2,
    "TaintToleration": 1,
}
NEW_SCORES = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "VolumeBinding": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
FIT_SCORES = {name: weight for name, weight in OLD_SCORES.items() if name != "NodePreferAvoidPods"}
FIT_SCORES = {("NodeResourcesFit" if n == "NodeResourcesLeastAllocated" else n): w for n, w in FIT_SCORES.items()}


@pytest.mark.parametrize(
    ("version", "release", "scores"),
    [
        ("v1alpha1", "v1.18", {**OLD_SCORES, "SelectorSpread": 1}),
        ("v1alpha2", "v1.18", {**OLD_SCORES, "SelectorSpread": 1}),
        ("v1beta1", "v1.22", OLD_SCORES),
        ("v1beta2", "v1.27", FIT_SCORES),
        ("v1beta3", "v1.28", NEW_SCORES),
        ("v1", "v1.34", NEW_SCORES),
    ],
)
def test_a_format_has_the_weights_of_its_release(version: str, release: str, scores: dict[str, int]) -> None:
    config = loaded(version)
    assert weights(config.profiles[0]) == scores
    assert (config.release, config.percentage_of_nodes_to_score, config.parallelism) == (release, 0, 16)
    assert (config.pod_initial_backoff_s, config.pod_max_backoff_s) == (1, 10)
    assert config.warnings == ()


@pytest.mark.parametrize("version", RELEASES)
def test_a_format_has_the_filters_of_its_release(version: str) -> None:
    filters = set(names(loaded(version).profiles[0], "filter"))
    assert ("EBSLimits" in filters) == (version != "v1")
    assert ("DynamicResources" in filters) == (version == "v1")
    assert {"NodeResourcesFit", "NodeName", "TaintToleration", "VolumeZone", "InterPodAffinity"} <= filters


@pytest.mark.parametrize("version", RELEASES)
def test_what_a_plugin_needs_today_is_there_even_if_its_release_had_no_such_point(version: str) -> None:
    one = loaded(version).profiles[0]
    assert {"NodeVolumeLimits", "VolumeZone", "VolumeBinding", "NodeAffinity"} <= set(names(one, "pre_filter"))
    assert "NodeResourcesBalancedAllocation" in names(one, "pre_score")
    assert {"SchedulingGates", "DefaultPreemption"} <= set(names(one, "pre_enqueue"))


def test_before_v1beta2_a_default_enabled_again_is_enabled_twice() -> None:
    again = {"plugins": {"score": enabled(ImageLocality=5)}}
    assert faults("v1beta1", profiles=[again]) == [
        "$.profiles[0].plugins.score.enabled[0].name: enabled twice at score",
    ]
    assert weights(profile("v1beta2", **again)) == {**FIT_SCORES, "ImageLocality": 5}
    replaced = {"plugins": {"score": {**enabled(ImageLocality=5), "disabled": [{"name": "ImageLocality"}]}}}
    assert weights(profile("v1beta1", **replaced)) == {**OLD_SCORES, "ImageLocality": 5}


@pytest.mark.parametrize(
    ("version", "fields", "refusal"),
    [
        ("v1beta2", {"profiles": [{"plugins": {"multiPoint": {}}}]}, "$.profiles[0].plugins.multiPoint: no such field"),
        ("v1beta3", {"profiles": [{"percentageOfNodesToScore": 5}]}, "$.profiles[0].percentageOfNodesToScore: no such"),
        ("v1beta3", {"healthzBindAddress": ":1"}, "$.healthzBindAddress: no such field"),
        ("v1", {"algorithmSource": {}}, "$.algorithmSource: no such field"),
        ("v1beta1", {"disablePreemption": True}, "$.disablePreemption: no such field"),
        ("v1alpha2", {"parallelism": 3}, "$.parallelism: no such field"),
        ("v1alpha1", {"algorithmSource": {"provider": "Default"}}, "$.algorithmSource.provider: not one of the values"),
        (
            "v1alpha1",
            {"algorithmSource": {"policy": {"configMap": {"name": "policy", "namespace": "kube-system"}}}},
            "$.algorithmSource.policy.configMap: a ConfigMap cannot be read here",
        ),
        (
            "v1alpha1",
            {"algorithmSource": {"policy": {"file": {"path": "no-such-file"}}}},
            "$.algorithmSource.policy.file.path: cannot be read: No such file or directory",
        ),
        ("v1alpha1", {"algorithmSource": {"policy": {}}}, "$.algorithmSource.policy: needs a file"),
        ("v2", {}, "$.apiVersion: not supported"),
    ],
)
def test_refused(version: str, fields: dict[str, Any], refusal: str) -> None:
    assert faults(version, **fields)[0].startswith(refusal)


def test_old_switches_become_arguments_and_plugins() -> None:
    config = loaded("v1alpha2", disablePreemption=True, bindTimeoutSeconds=7)
    one = config.profiles[0]
    assert (names(one, "post_filter"), names(one, "pre_enqueue")) == ([], ["SchedulingGates"])
    assert one.args("VolumeBinding").bind_timeout_s == 7
    config = loaded("v1alpha1", schedulerName="mine", hardPodAffinitySymmetricWeight=42)
    assert config.profiles[0].scheduler_name == "mine"
    assert config.profiles[0].args("InterPodAffinity").hard_pod_affinity_weight == 42


def test_the_autoscaler_provider_packs() -> None:
    scores = weights(loaded("v1alpha1", algorithmSource={"provider": "ClusterAutoscalerProvider"}).profiles[0])
    assert scores["NodeResourcesMostAllocated"] == 1
    assert "NodeResourcesLeastAllocated" not in scores


def test_a_plugin_has_its_name_of_today() -> None:
    off = {"disabled": [{"name": "DefaultPodTopologySpread"}]}
    one = profile("v1alpha2", plugins={"score": off, "preScore": off})
    assert "SelectorSpread" not in one.names()


def test_defaulting_type_follows_the_constraints_before_v1beta2() -> None:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    said = {"pluginConfig": [{"name": "PodTopologySpread", "args": {"defaultConstraints": [constraint]}}]}
    args = profile("v1beta1", **said).args("PodTopologySpread")
    assert (args.defaulting_type, len(args.constraints)) == ("List", 1)
    path = "$.profiles[0].pluginConfig[0].args.defaultingType"
    assert faults("v1beta2", profiles=[said]) == [f"{path}: constraints of one's own need the defaultingType List"]


def test_a_plugin_that_is_gone_runs_with_a_warning_that_says_what_to_use_instead() -> None:
    config = loaded("v1", profiles=[{"plugins": {"multiPoint": enabled("EBSLimits")}}])
    assert "EBSLimits" in names(config.profiles[0], "filter")
    [warning] = config.warnings
    assert warning.why == "kube-scheduler v1.34 no longer has this plugin; kschedd runs it as v1.30 did"
    assert warning.allowed.startswith("instead: NodeVolumeLimits")
    assert loaded("v1beta1", profiles=[{"plugins": {"filter": enabled("CinderLimits")}}]).warnings == ()


def test_a_policy_of_a_v1alpha1_file_is_read_from_the_file_that_it_names() -> None:
    text = f"""\
apiVersion: {GROUP}/v1alpha1
kind: KubeSchedulerConfiguration
schedulerName: legacy
algorithmSource:
  policy:
    file:
      path: /etc/policy.cfg
"""
    policies = {"/etc/policy.cfg": '{"apiVersion": "v1", "kind": "Policy", "predicates": [], "priorities": []}'}
    config = load_config(text, "old.yaml", read_file=policies.__getitem__)
    assert config.profiles[0].scheduler_name == "legacy"
    assert names(config.profiles[0], "filter") == ["NodeUnschedulable", "TaintToleration"]
    policies["/etc/policy.cfg"] = "apiVersion: v1\nkind: Policy\npredicates:\n- name: PodFitsResource\n"
    with pytest.raises(ConfigErrors) as refused:
        load_config(text, "old.yaml", read_file=policies.__getitem__)
    [fault] = refused.value.errors
    assert (fault.file, fault.line, fault.path) == ("/etc/policy.cfg", 4, "$.predicates[0].name")
    assert fault.why == "no such predicate; did you mean PodFitsResources?"


def test_what_a_policy_says_has_its_file_and_line_as_origin() -> None:
    text = f"""\
apiVersion: {GROUP}/v1alpha1
kind: KubeSchedulerConfiguration
schedulerName: legacy
algorithmSource: {{policy: {{file: {{path: policy.yaml}}}}}}
"""
    policy = """\
apiVersion: v1
kind: Policy
predicates:
- name: Zone
  argument: {serviceAffinity: {labels: [zone]}}
priorities:
- {name: ImageLocalityPriority, weight: 3}
hardPodAffinitySymmetricWeight: 5
"""
    origins = load_config(text, "old.yaml", read_file={"policy.yaml": policy}.__getitem__).origins
    assert origins == {
        "profiles[legacy].plugins.preFilter[ServiceAffinity]": "policy.yaml:4",
        "profiles[legacy].plugins.filter[ServiceAffinity]": "policy.yaml:4",
        "profiles[legacy].plugins.score[ImageLocality]": "policy.yaml:7",
        "profiles[legacy].pluginConfig[ServiceAffinity]": "policy.yaml:5",
    }
