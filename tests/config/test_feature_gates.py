"""Tests of the feature gates of v1.34; unknown and locked gates are rejected."""

import pytest

from kschedd.config.changing.changes import with_flags
from kschedd.config.changing.values import values
from kschedd.config.loading.load import config_from_raw, default_config
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.versions.feature_gates import (
    defaults,
    feature_gates,
    listing,
    parse_flag,
    without_effect,
)
from kschedd.config.versions.kube_versions import KUBE_VERSIONS, V1_34, V1_36, V1_37


def test_every_gate_is_listed_with_its_default_and_what_it_changes() -> None:
    lines = listing(V1_34.gates).splitlines()
    shown = [name for name, gate in V1_34.gates.items() if gate.what]
    assert [line.split()[0] for line in lines[:-1]] == shown
    assert lines[-1] == f"Nothing here depends on the other {len(V1_34.gates) - len(shown)} gates of this release."
    [line] = [line for line in lines if line.startswith("SchedulerPopFromBackoffQ")]
    assert line.split(maxsplit=3)[1:] == ["true", "BETA", "pods in backoff are tried when no other pod waits"]


def test_each_release_knows_the_gates_of_its_kube_scheduler() -> None:
    # The numbers of gates that each kube-scheduler registers, without AllAlpha and AllBeta.
    counted = {name: len(version.gates) for name, version in KUBE_VERSIONS.items()}
    assert counted == {"1.34.1": 206, "1.34": 206, "1.35": 216, "1.36": 239, "1.37": 251}


def test_gates_of_other_components_are_accepted_without_effect() -> None:
    given = parse_flag(["KubeletInUserNamespace=false", "AggregatedDiscoveryRemoveBetaType=true"], V1_37.gates)
    assert without_effect(given, V1_37.gates) == ["KubeletInUserNamespace"]
    assert V1_37.gates["AggregatedDiscoveryRemoveBetaType"].stage == "DEPRECATED"


def test_the_flag_is_given_once_or_several_times() -> None:
    given = parse_flag(["StorageCapacityScoring=true, DRAAdminAccess=F", "SchedulerAsyncPreemption=0"], V1_34.gates)
    assert given == {"StorageCapacityScoring": True, "DRAAdminAccess": False, "SchedulerAsyncPreemption": False}


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        (
            "StorageCapacityScorin=true",
            '$.StorageCapacityScorin: no such feature gate; did you mean "StorageCapacitySco',
        ),
        ("SchedulerQueueingHints=false", "$.SchedulerQueueingHints: the feature is finished and its gate locked"),
        (
            "PodOverhead=true",
            "$.PodOverhead: the feature is finished and always on since v1.24, and its gate was removed after v1.25",
        ),
        ("PodSchedulingReadiness=false", "$.PodSchedulingReadiness: the feature is finished and its gate locked"),
        (
            "BalanceAttachedNodeVolumes=true",
            "$.BalanceAttachedNodeVolumes: the feature and its gate were removed after v1.22",
        ),
        (
            "VolumeCapacityPriority=true",
            "$.VolumeCapacityPriority: the gate is called StorageCapacityScoring since v1.33",
        ),
        ("StorageCapacityScoring", "$.StorageCapacityScoring: a gate and its state are expected"),
        ("StorageCapacityScoring=on", "$.StorageCapacityScoring: not a state"),
    ],
)
def test_refused(text: str, refusal: str) -> None:
    with pytest.raises(ConfigErrors) as refused:
        parse_flag([text], V1_34.gates)
    [error] = refused.value.errors
    assert f"{error.path}: {error.why}".startswith(refusal)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        pytest.param({"GangScheduling": True}, "$.GangScheduling", id="gangs-without-groups"),
    ],
)
def test_a_gate_needs_those_that_it_builds_on(given: dict[str, bool], path: str) -> None:
    with pytest.raises(ConfigErrors) as refused:
        feature_gates(given, V1_36.gates)
    [error] = refused.value.errors
    assert error.path == path
    assert error.why.startswith("it depends on features that are disabled: ")
    assert feature_gates({"GenericWorkload": True, "GangScheduling": True}, V1_36.gates)["GangScheduling"]


@pytest.mark.parametrize("gate", ["WorkloadAwarePreemption", "DRADeviceTaintRules", "TopologyAwareWorkloadScheduling"])
def test_a_feature_that_is_not_here_cannot_be_turned_on(gate: str) -> None:
    with pytest.raises(ConfigErrors) as refused:
        feature_gates({"GenericWorkload": True, "GangScheduling": True, gate: True}, V1_36.gates)
    [error] = refused.value.errors
    assert (error.path, error.why.partition(",")[0]) == (f"$.{gate}", "kschedd does not support this feature")
    assert feature_gates({gate: False}, V1_36.gates) == defaults(V1_36.gates)
    assert f"{gate} " in listing(V1_36.gates)


def test_all_gates_of_a_stage_leave_out_those_that_are_not_here_and_that_is_told() -> None:
    states = feature_gates({"AllAlpha": True}, V1_36.gates)
    assert states["GangScheduling"]
    assert not states["WorkloadAwarePreemption"]
    assert "WorkloadAwarePreemption" in without_effect({"AllAlpha": True}, V1_36.gates)
    assert "DRADeviceTaintRules" not in without_effect({"AllAlpha": True}, V1_36.gates), "it is beta"


def test_gates_of_newer_versions_are_unknown_to_older_ones() -> None:
    with pytest.raises(ConfigErrors, match="no such feature gate"):
        feature_gates({"GenericWorkload": True}, V1_34.gates)


def test_a_locked_gate_may_be_given_its_own_state() -> None:
    assert feature_gates({"SchedulerQueueingHints": True}, V1_34.gates) == defaults(V1_34.gates)


def test_all_gates_of_a_stage_at_once() -> None:
    states = feature_gates({"AllAlpha": True, "StorageCapacityScoring": False}, V1_34.gates)
    alpha = {name for name, gate in V1_34.gates.items() if gate.stage == "ALPHA"}
    assert {name for name in alpha if states[name]} == alpha - {"StorageCapacityScoring"}
    assert states["DRAAdminAccess"]


def test_gates_that_nothing_depends_on_are_told_apart() -> None:
    given = {"DRADeviceTaints": True, "StorageCapacityScoring": True, "PodLevelResources": True}
    assert without_effect(given, V1_34.gates) == ["DRADeviceTaints"]


@pytest.mark.parametrize(
    ("gate", "plugin", "changes"),
    [
        ("DynamicResourceAllocation", "DynamicResources", lambda p: "DynamicResources" in p.names()),
        ("StorageCapacityScoring", "VolumeBinding", lambda p: bool(p.args("VolumeBinding").shape)),
    ],
)
def test_a_gate_changes_the_configuration(gate: str, plugin: str, changes: object) -> None:
    assert callable(changes)
    states = {
        changes(default_config(version=V1_34, feature_gates={gate: state}).profiles[0]) for state in (True, False)
    }
    assert states == {True, False}


def test_what_a_flag_said_is_shown_as_its() -> None:
    gates = {"DRAAdminAccess": False}
    config = with_flags(config_from_raw(None, version=V1_34, feature_gates=gates), gates, 90)
    shown = {one.path: (one.value, one.origin) for one in values(config)}
    assert shown["featureGates[DRAAdminAccess]"] == (False, "--feature-gates")
    assert shown["podMaxInUnschedulablePodsDuration"] == ("90s", "--pod-max-in-unschedulable-pods-duration")
    assert shown["featureGates[DRAPrioritizedList]"] == (True, "default of v1.34")
