"""Tests of reading a DeschedulerPolicy, and of its error messages."""

import pytest

from kschedd.config.parsing.faults import ConfigErrors
from kschedd.descheduler.policy import EvictionLimits, LifeTimeArgs, policy_of, read_policy

HEAD = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"
PROFILE = (
    HEAD
    + """\
profiles:
- name: p
  pluginConfig:
  - name: {plugin}
    args: {args}
  plugins: {{{point}: {{enabled: [{plugin}]}}}}
"""
)


def faults(text: str) -> list[str]:
    with pytest.raises(ConfigErrors) as raised:
        read_policy(text, "policy.yaml")
    return [*map(str, raised.value.errors)]


def test_a_policy_has_limits_profiles_and_the_default_evictor() -> None:
    limits = "maxNoOfPodsToEvictPerNode: 2\nmaxNoOfPodsToEvictTotal: 0\ngracePeriodSeconds: 7\n"
    text = PROFILE.format(plugin="PodLifeTime", args="{maxPodLifeTimeSeconds: 60}", point="deschedule")
    policy = read_policy(limits + text, "p")
    assert (policy.limits, policy.grace_period_s) == (EvictionLimits(2, None, 0), 7)
    [profile] = policy.profiles
    [(name, args)] = profile.deschedule
    assert (name, profile.balance) == ("PodLifeTime", ())
    assert isinstance(args, LifeTimeArgs)
    assert args.max_age_s == 60
    assert profile.evictor.protections == {
        "PodsWithLocalStorage",
        "SystemCriticalPods",
        "FailedBarePods",
        "DaemonSetPods",
    }


def test_new_protections_replace_old_flags() -> None:
    text = HEAD + "profiles: [{name: p, pluginConfig: [{name: DefaultEvictor, args: %s}]}]\n"
    old = read_policy(text % "{evictDaemonSetPods: true, ignorePvcPods: true}", "p").profiles[0].evictor
    assert old.protections == {"PodsWithLocalStorage", "SystemCriticalPods", "FailedBarePods", "PodsWithPVC"}
    new = "{podProtections: {defaultDisabled: [FailedBarePods], extraEnabled: [PodsWithResourceClaims]}}"
    assert read_policy(text % new, "p").profiles[0].evictor.protections == {
        *("PodsWithLocalStorage", "SystemCriticalPods", "DaemonSetPods", "PodsWithResourceClaims")
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("kind: DeschedulerPolicy\n", "$.apiVersion: required, but missing", id="no-version"),
        pytest.param(
            "apiVersion: descheduler/v1\nkind: DeschedulerPolicy\n", "allowed: descheduler/v1alpha2", id="version"
        ),
        pytest.param(
            HEAD + "maxNoOfPodsToEvictPerNod: 3\n", 'did you mean "maxNoOfPodsToEvictPerNode"', id="misspelled"
        ),
        pytest.param(
            HEAD + "profiles: [{name: p, pluginConfig: [{name: PodLifetime}]}]\n",
            'no such plugin; did you mean "PodLifeTime"?',
            id="unknown-plugin",
        ),
        pytest.param(
            HEAD + "profiles: [{name: p, plugins: {deschedule: {enabled: [PodLifeTime]}}}]\n",
            "the profile's pluginConfig has no arguments for it",
            id="no-arguments",
        ),
        pytest.param(
            PROFILE.format(plugin="RemoveDuplicates", args="{}", point="deschedule"),
            "no plugin of the extension point deschedule",
            id="wrong-point",
        ),
        pytest.param(
            PROFILE.format(plugin="PodLifeTime", args="{}", point="deschedule"),
            "a filter is required (allowed: maxPodLifeTimeSeconds",
            id="nothing-to-filter",
        ),
        pytest.param(
            PROFILE.format(
                plugin="LowNodeUtilization",
                args="{thresholds: {cpu: 60}, targetThresholds: {cpu: 50}}",
                point="balance",
            ),
            "the threshold of cpu is greater than its target threshold",
            id="thresholds-in-the-wrong-order",
        ),
        pytest.param(
            PROFILE.format(
                plugin="RemoveDuplicates", args="{namespaces: {include: [a], exclude: [b]}}", point="balance"
            ),
            "include and exclude exclude each other",
            id="namespaces",
        ),
        pytest.param(
            PROFILE.format(
                plugin="RemovePodsViolatingNodeAffinity", args="{nodeAffinityType: [required]}", point="deschedule"
            ),
            "not one of the values",
            id="kind-of-affinity",
        ),
        pytest.param(
            HEAD + "metricsProviders: [{source: KubernetesMetrics}]\n", "computed from requests", id="metrics"
        ),
        pytest.param(
            PROFILE.format(plugin="DefaultEvictor", args="{priorityThreshold: {value: 2000000001}}", point="filter"),
            "out of range",
            id="threshold-too-high",
        ),
    ],
)
def test_a_faulty_policy_is_rejected_with_the_place_and_the_allowed_values(text: str, expected: str) -> None:
    found = faults(text)
    assert any(expected in fault for fault in found), found
    assert all(fault.startswith("policy.yaml") for fault in found)


def test_all_faults_are_reported_together() -> None:
    found = faults(HEAD + "nodeSelector: '!!'\nmaxNoOfPodsToEvictTotal: -1\nprofiles: {}\n")
    assert [fault.partition(": ")[0] for fault in found] == ["policy.yaml:3", "policy.yaml:4", "policy.yaml:5"]


def test_a_mapping_is_read_like_a_file() -> None:
    assert policy_of({"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy"}).profiles == ()


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("{matchLabels: [a]}", '.matchLabels: ["a"]: must be a mapping, not a list'),
        ("{matchLabels: {a: 1}}", ".matchLabels.a: 1: must be text, not a whole number"),
        ("{matchExpressions: {a: b}}", '.matchExpressions: {"a": "b"}: must be a list, not a mapping'),
        ("{matchExpressions: [x]}", '.matchExpressions[0]: "x": must be a mapping, not text'),
        ("{matchExpressions: [{key: a}]}", ".matchExpressions[0].operator: required, but missing"),
        ("{matchExpressions: [{key: a, operator: In, values: b}]}", '.values: "b": must be a list, not text'),
    ],
)
def test_a_selector_of_a_wrong_type_names_the_field(selector: str, expected: str) -> None:
    args = f"{{maxPodLifeTimeSeconds: 60, labelSelector: {selector}}}"
    [fault] = faults(PROFILE.format(plugin="PodLifeTime", args=args, point="deschedule"))
    assert fault.endswith(expected)
    assert "$.profiles[0].pluginConfig[0].args.labelSelector" in fault


def test_a_selector_with_an_unknown_operator_is_a_fault() -> None:
    args = "{maxPodLifeTimeSeconds: 60, labelSelector: {matchExpressions: [{key: a, operator: Nope}]}}"
    [fault] = faults(PROFILE.format(plugin="PodLifeTime", args=args, point="deschedule"))
    assert "not a label selector" in fault
    assert "Nope" in fault
