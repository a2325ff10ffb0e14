"""The feature gates of kube-scheduler: their stages and defaults by release, and their effect in kschedd.

`other_gates.txt` lists the gates that only other components read.
Source: Kubernetes v1.34 to v1.37, pkg/features/kube_features.go, scheduler/framework/plugins/feature/feature.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal, get_args

import attrs

from kschedd.config.versions.feature_gates import FeatureGate, Gates, Stage
from kschedd.config.versions.kube_releases import Release

State = Literal["on", "off", "locked", "idle", "unsupported"]
"""`locked`: on, cannot be changed. `idle`: off, without any effect here. `unsupported`: off, cannot be turned on.

An unsupported gate would change decisions, but kschedd lacks the feature.
"""


@attrs.frozen
class GateHistory:
    """A gate's stages and states, each with the first release that had it."""

    what: str
    """Its effect here, if it is neither idle nor unsupported; "" if nothing here depends on it."""
    states: tuple[tuple[Release, Stage, State], ...]
    needs: tuple[str, ...] = ()
    until: Release | None = None
    """The first release without the gate."""

    def at(self, release: Release) -> FeatureGate | None:
        """Return the gate's stage and state in a release; None if the release does not have the gate."""
        begun = [(stage, state) for since, stage, state in self.states if since <= release]
        if not begun or (self.until is not None and release >= self.until):
            return None
        stage, state = begun[-1]
        what = _WHAT.get(state, self.what)
        locked, supported = state == "locked", state != "unsupported"
        return FeatureGate(state in ("on", "locked"), stage, what, locked, self.needs, supported)


_WHAT: Final[Mapping[State, str]] = {"idle": "", "unsupported": "not supported here: it cannot be turned on"}


def _gate(what: str, *states: str, needs: tuple[str, ...] = (), until: str = "") -> GateHistory:
    """Return the history described by states such as `1.36 BETA on`."""
    return GateHistory(what, tuple(map(_state, states)), needs, Release.of(until) if until else None)


def _state(text: str) -> tuple[Release, Stage, State]:
    since, stage, state = text.split()
    [of_stage] = [one for one in get_args(Stage) if one == stage]
    [of_state] = [one for one in get_args(State) if one == state]
    return Release.of(since), of_stage, of_state


_NOTHING: Final = ""

_GATES: Final[Mapping[str, GateHistory]] = {
    "CSIMigrationPortworx": _gate(_NOTHING, "1.34 GA locked", until="1.36"),
    "CompositePodGroup": _gate(_NOTHING, "1.37 ALPHA unsupported", needs=("TopologyAwareWorkloadScheduling",)),
    "DRAAdminAccess": _gate("claims with adminAccess get devices that others use", "1.34 BETA on", "1.36 GA locked"),
    "DRAConsumableCapacity": _gate(
        "several claims may share a device up to its capacity", "1.34 ALPHA idle", "1.36 BETA on"
    ),
    "DRADerivedAttributes": _gate(_NOTHING, "1.37 ALPHA unsupported"),
    "DRADeviceBindingConditions": _gate(
        "devices may have to be made ready before a pod is bound", "1.34 ALPHA idle", "1.36 BETA on"
    ),
    "DRADeviceCompatibilityGroups": _gate(_NOTHING, "1.37 ALPHA unsupported"),
    "DRADeviceTaintRules": _gate(
        "taints of DeviceTaintRules count like those of devices",
        "1.35 ALPHA unsupported",
        "1.36 BETA unsupported",
        "1.37 GA on",
        needs=("DRADeviceTaints",),
    ),
    "DRADeviceTaints": _gate(
        "requests must tolerate the taints of devices", "1.34 ALPHA idle", "1.36 BETA on", "1.37 GA on"
    ),
    "DRAExtendedResource": _gate(
        "extended resources may be provided by a DeviceClass", "1.34 ALPHA idle", "1.36 BETA on", "1.37 GA locked"
    ),
    "DRAFractionalCapacityRange": _gate(
        "ranges of requested capacity may have thousandths", "1.37 BETA off", needs=("DRAConsumableCapacity",)
    ),
    "DRAListTypeAttributes": _gate(_NOTHING, "1.36 ALPHA unsupported"),
    "DRANodeAllocatableResources": _gate(_NOTHING, "1.36 ALPHA unsupported"),
    "DRAOptionalNodeOperations": _gate(_NOTHING, "1.37 ALPHA unsupported"),
    "DRAPartitionableDevices": _gate("devices share counters of their pool", "1.34 ALPHA idle", "1.36 BETA on"),
    "DRAPrioritizedList": _gate(
        "claims may list alternatives (firstAvailable)", "1.34 BETA on", "1.36 GA on", "1.37 GA locked"
    ),
    "DRAResourceClaimDeviceStatus": _gate(_NOTHING, "1.34 BETA on", "1.37 GA locked"),
    "DRASchedulerFilterTimeout": _gate(
        "the search for devices on a node is limited (DynamicResources' filterTimeout)", "1.34 BETA on"
    ),
    "DRAWorkloadResourceClaims": _gate(_NOTHING, "1.36 ALPHA unsupported", "1.37 BETA unsupported"),
    "DynamicResourceAllocation": _gate(
        "DynamicResources is a default plugin and looks at claims", "1.34 GA on", "1.35 GA locked"
    ),
    "GangScheduling": _gate(
        "GangScheduling is a default plugin: a gang is placed only if its minimum number of pods fits",
        "1.35 ALPHA unsupported",
        "1.36 ALPHA off",
        needs=("GenericWorkload",),
        until="1.37",
    ),
    "GenericWorkload": _gate(
        "there are Workloads and PodGroups; the pods of a group are queued, placed and preempt together",
        "1.35 ALPHA unsupported",
        "1.36 ALPHA off",
        "1.37 BETA off",
    ),
    "InPlacePodLevelResourcesVerticalScaling": _gate(
        "pod-level resources count as the maximum of requested, allocated and actual values",
        "1.35 ALPHA idle",
        "1.36 BETA on",
    ),
    "InPlacePodVerticalScaling": _gate(_NOTHING, "1.34 BETA on", "1.35 GA locked"),
    "InPlacePodVerticalScalingSchedulerPreemption": _gate(
        "a pod whose resize is deferred is queued, and preempts on its node (DeferredPodScheduling)", "1.37 ALPHA off"
    ),
    "InterPodAffinityHostnameFastPath": _gate(_NOTHING, "1.37 ALPHA off"),
    "MatchLabelKeysInPodTopologySpread": _gate(_NOTHING, "1.34 BETA on"),
    "NodeDeclaredFeatures": _gate(
        "NodeDeclaredFeatures is a default plugin: nodes must declare the features that a pod needs",
        "1.35 ALPHA idle",
        "1.36 BETA on",
        "1.37 GA locked",
    ),
    "NodeInclusionPolicyInPodTopologySpread": _gate(_NOTHING, "1.34 GA locked"),
    "NominatedNodeNameForExpectation": _gate(
        "the node is written to a pod's status before a binding that may take long",
        "1.34 ALPHA idle",
        "1.35 BETA on",
    ),
    "OpportunisticBatching": _gate(
        "a pod like the previous one is first tried on the next best node, in profiles that can sign pods",
        "1.35 BETA on",
    ),
    "PodGroupPreemptionPolicy": _gate(_NOTHING, "1.37 ALPHA unsupported", needs=("GenericWorkload",)),
    "PodLevelResources": _gate(_NOTHING, "1.34 BETA on"),
    "SchedulerAsyncAPICalls": _gate(_NOTHING, "1.34 BETA on", "1.34.2 BETA off"),
    "SchedulerAsyncPreemption": _gate(
        "a preemptor waits at PreEnqueue while its victims are still being evicted", "1.34 BETA on"
    ),
    "SchedulerPopFromBackoffQ": _gate("pods in backoff are tried when no other pod waits", "1.34 BETA on"),
    "SchedulerPreQueueingHints": _gate(_NOTHING, "1.37 ALPHA off"),
    "SchedulerQueueingHints": _gate("events wake only the pods that they may help", "1.34 GA locked", until="1.37"),
    "SidecarContainers": _gate("restartable init containers count all along", "1.34 GA locked", until="1.37"),
    "StorageCapacityScoring": _gate(
        "VolumeBinding scores nodes by free storage capacity (its argument shape)", "1.34 ALPHA off", "1.37 BETA on"
    ),
    "TaintTolerationComparisonOperators": _gate(_NOTHING, "1.35 ALPHA unsupported"),
    "TopologyAwareWorkloadScheduling": _gate(
        "the pods of a PodGroup with a topology constraint are placed in one domain, which is scored",
        "1.36 ALPHA unsupported",
        "1.37 ALPHA off",
        needs=("GenericWorkload",),
    ),
    "VolumeAttributesClass": _gate(
        "a claim binds only volumes of its VolumeAttributesClass", "1.34 GA on", "1.36 GA locked"
    ),
    "VolumeLimitScaling": _gate(
        "volumes of a CSIDriver with preventPodSchedulingIfMissing need a node with that driver",
        "1.35 ALPHA unsupported",
        "1.36 ALPHA off",
        "1.37 BETA on",
    ),
    "WorkloadAwarePreemption": _gate(_NOTHING, "1.36 ALPHA unsupported", needs=("GangScheduling",), until="1.37"),
}


@cache
def _others() -> Mapping[str, GateHistory]:
    """Return the gates of other_gates.txt. Each line has the form `Name: 1.34 BETA on, 1.36 GA locked, until 1.37`."""
    found: dict[str, GateHistory] = {}
    for line in Path(__file__).with_name("other_gates.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, _, states = line.partition(": ")
            states, _, until = states.partition(", until ")
            found[name] = _gate(_NOTHING, *states.split(", "), until=until)
    return found


def gates_of(release: Release) -> Gates:
    """Return the gates of a release, by name."""
    found = ((name, history.at(release)) for name, history in (*_GATES.items(), *_others().items()))
    return {name: gate for name, gate in found if gate is not None}


def gates_gone_in(release: Release) -> list[str]:
    """Return the gates that the previous release has and this release lacks."""
    return sorted(name for name, history in (*_GATES.items(), *_others().items()) if history.until == release)
