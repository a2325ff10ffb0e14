"""The feature gates that kube-scheduler reads, release by release, with their defaults and what each changes here.

As upstream, gates are set on the command line (`--feature-gates`), not in the configuration file.  Gates of other
components are unknown here, though kube-scheduler's flag accepts them.

Source: Kubernetes v1.34 and v1.36, pkg/features/kube_features.go, scheduler/framework/plugins/feature/feature.go.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Final, Literal

import attrs

from kschedd.config.faults import ConfigError, ConfigErrors
from kschedd.config.removed_gates import why_removed

Stage = Literal["ALPHA", "BETA", "GA"]


@attrs.frozen
class FeatureGate:
    default: bool
    stage: Stage
    what: str
    """What it changes here; "" where nothing here depends on it."""
    locked: bool = False
    """Finished: it cannot be changed any more."""
    needs: tuple[str, ...] = ()
    """The gates that have to be on where it is on."""
    supported: bool = True
    """False: decisions would differ where it is on, and what that takes is not here, so it cannot be turned on."""


_NOTHING: Final = ""


def _unsupported(stage: Stage, needs: tuple[str, ...] = ()) -> FeatureGate:
    """A feature that is off by default, and that kschedd does not have."""
    return FeatureGate(False, stage, "not supported here: it cannot be turned on", needs=needs, supported=False)


Gates = Mapping[str, FeatureGate]

GATES_1_34: Final[Gates] = {
    "CSIMigrationPortworx": FeatureGate(True, "GA", _NOTHING, locked=True),
    "DRAAdminAccess": FeatureGate(True, "BETA", "claims with adminAccess get devices that others use"),
    "DRAConsumableCapacity": FeatureGate(False, "ALPHA", _NOTHING),
    "DRADeviceBindingConditions": FeatureGate(False, "ALPHA", _NOTHING),
    "DRADeviceTaints": FeatureGate(False, "ALPHA", _NOTHING),
    "DRAExtendedResource": FeatureGate(False, "ALPHA", _NOTHING),
    "DRAPartitionableDevices": FeatureGate(False, "ALPHA", _NOTHING),
    "DRAPrioritizedList": FeatureGate(True, "BETA", "claims may list alternatives (firstAvailable)"),
    "DRAResourceClaimDeviceStatus": FeatureGate(True, "BETA", _NOTHING),
    "DRASchedulerFilterTimeout": FeatureGate(
        True, "BETA", "the search for devices on a node is limited (DynamicResources' filterTimeout)"
    ),
    "DynamicResourceAllocation": FeatureGate(True, "GA", "DynamicResources is a default plugin and looks at claims"),
    "InPlacePodVerticalScaling": FeatureGate(True, "BETA", _NOTHING),
    "MatchLabelKeysInPodTopologySpread": FeatureGate(True, "BETA", _NOTHING),
    "NodeInclusionPolicyInPodTopologySpread": FeatureGate(True, "GA", _NOTHING, locked=True),
    "NominatedNodeNameForExpectation": FeatureGate(False, "ALPHA", _NOTHING),
    "PodLevelResources": FeatureGate(True, "BETA", _NOTHING),
    "SchedulerAsyncAPICalls": FeatureGate(False, "BETA", _NOTHING),
    "SchedulerAsyncPreemption": FeatureGate(
        True, "BETA", "a preemptor waits at PreEnqueue while its victims are still being evicted"
    ),
    "SchedulerPopFromBackoffQ": FeatureGate(True, "BETA", "pods in backoff are tried when no other pod waits"),
    "SchedulerQueueingHints": FeatureGate(True, "GA", "events wake only the pods that they may help", locked=True),
    "SidecarContainers": FeatureGate(True, "GA", "restartable init containers count all along", locked=True),
    "StorageCapacityScoring": FeatureGate(
        False, "ALPHA", "VolumeBinding scores nodes by free storage capacity (its argument shape)"
    ),
    "VolumeAttributesClass": FeatureGate(True, "GA", "a claim binds only volumes of its VolumeAttributesClass"),
}

GATES_1_34_1: Final[Gates] = {**GATES_1_34, "SchedulerAsyncAPICalls": FeatureGate(True, "BETA", _NOTHING)}

_NEW_IN_1_36: Final[Gates] = {
    "DRAAdminAccess": FeatureGate(True, "GA", "claims with adminAccess get devices that others use", locked=True),
    "DRAConsumableCapacity": FeatureGate(True, "BETA", "several claims may share a device up to its capacity"),
    "DRADeviceBindingConditions": FeatureGate(True, "BETA", "devices may have to be made ready before a pod is bound"),
    "DRADeviceTaintRules": _unsupported("BETA"),
    "DRADeviceTaints": FeatureGate(True, "BETA", "requests must tolerate the taints of devices"),
    "DRAExtendedResource": FeatureGate(True, "BETA", "extended resources may have a DeviceClass behind them"),
    "DRAListTypeAttributes": _unsupported("ALPHA"),
    "DRANodeAllocatableResources": _unsupported("ALPHA"),
    "DRAPartitionableDevices": FeatureGate(True, "BETA", "devices share counters of their pool"),
    "DRAPrioritizedList": FeatureGate(True, "GA", "claims may list alternatives (firstAvailable)"),
    "DRAWorkloadResourceClaims": _unsupported("ALPHA"),
    "DynamicResourceAllocation": FeatureGate(
        True, "GA", "DynamicResources is a default plugin and looks at claims", locked=True
    ),
    "GangScheduling": FeatureGate(
        False,
        "ALPHA",
        "GangScheduling is a default plugin: of a gang as many pods as it needs are placed, or none",
        needs=("GenericWorkload",),
    ),
    "GenericWorkload": FeatureGate(
        False, "ALPHA", "there are Workloads and PodGroups, and the pods of a group are tried in one cycle"
    ),
    "InPlacePodLevelResourcesVerticalScaling": FeatureGate(
        True, "BETA", "pod-level resources count as the most of what is asked, allocated and in force"
    ),
    "InPlacePodVerticalScaling": FeatureGate(True, "GA", _NOTHING, locked=True),
    "NodeDeclaredFeatures": FeatureGate(
        True, "BETA", "NodeDeclaredFeatures is a default plugin: nodes must declare the features that a pod needs"
    ),
    "NominatedNodeNameForExpectation": FeatureGate(
        True, "BETA", "the node is written to a pod's status before it is bound, where that may take a while"
    ),
    "OpportunisticBatching": FeatureGate(
        True,
        "BETA",
        "a pod like the one before it is tried on the next best node first, in profiles that can sign pods",
    ),
    "TaintTolerationComparisonOperators": _unsupported("ALPHA"),
    "TopologyAwareWorkloadScheduling": _unsupported("ALPHA", ("GenericWorkload",)),
    "VolumeAttributesClass": FeatureGate(
        True, "GA", "a claim binds only volumes of its VolumeAttributesClass", locked=True
    ),
    "VolumeLimitScaling": _unsupported("ALPHA"),
    "WorkloadAwarePreemption": _unsupported("ALPHA", ("GangScheduling",)),
}
GATES_1_36: Final[Gates] = dict(sorted({**GATES_1_34, **_NEW_IN_1_36}.items()))

ALL_OF_STAGE: Final[Mapping[str, Stage]] = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
"""Names that stand for all gates of a stage; a gate named by itself goes before."""

_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
_FALSE: Final = ("0", "f", "F", "false", "FALSE", "False")
FLAG: Final = "--feature-gates"


def defaults(known: Gates) -> dict[str, bool]:
    return {name: gate.default for name, gate in known.items()}


def feature_gates(overrides: Mapping[str, bool] | None, known: Gates, source: str = "feature gates") -> dict[str, bool]:
    """Every gate of a release with its state; raises `ConfigErrors` for one that it lacks or that cannot be changed."""
    faults = []
    states = defaults(known)
    given = dict(overrides or {})
    for name, stage in ALL_OF_STAGE.items():
        if name in given:
            state = given.pop(name)
            states.update({one: state for one, gate in known.items() if gate.stage == stage and gate.supported})
    for name, state in given.items():
        gate = known.get(name)
        if gate is None and (removed := why_removed(name))[0]:
            faults.append(ConfigError(source, 0, f"$.{name}", state, *removed))
        elif gate is None:
            close = difflib.get_close_matches(name, known, n=1)
            why = "no such feature gate" + (f"; did you mean {close[0]}?" if close else "")
            faults.append(ConfigError(source, 0, f"$.{name}", state, why, ", ".join(known)))
        elif gate.locked and state != gate.default:
            why = "the feature is finished and its gate locked"
            faults.append(ConfigError(source, 0, f"$.{name}", state, why, str(gate.default).lower()))
        elif state and not gate.supported:
            why = "kschedd does not support this feature, and would decide as if its gate were off"
            faults.append(ConfigError(source, 0, f"$.{name}", state, why, "false"))
    states.update(given)
    for name, state in states.items():
        needs = known[name].needs if state and name in known and known[name].supported else ()
        off = [need for need in needs if not states[need]]
        if off:
            why = f"it depends on features that are disabled: {', '.join(off)}"
            faults.append(ConfigError(source, 0, f"$.{name}", state, why, f"{off[0]}=true, too"))
    if faults:
        raise ConfigErrors(tuple(faults))
    return states


def parse_flag(texts: Iterable[str], known: Gates) -> dict[str, bool]:
    """What the flag says, `A=true,B=false`, given once or several times.  Raises `ConfigErrors`."""
    found: dict[str, bool] = {}
    faults = []
    for pair in (pair.strip() for text in texts for pair in text.split(",")):
        if not pair:
            continue
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or value not in (*_TRUE, *_FALSE):
            why = "a gate and its state are expected" if not equals else "not a state"
            faults.append(ConfigError(FLAG, 0, f"$.{name}", value or None, why, f"{name}=true or {name}=false"))
            continue
        found[name] = value in _TRUE
    if faults:
        raise ConfigErrors(tuple(faults))
    feature_gates(found, known, FLAG)
    return found


def without_effect(given: Mapping[str, bool], known: Gates) -> list[str]:
    """The gates among these that are not as by default, though nothing here depends on them."""
    left_off = [
        name
        for stage in (ALL_OF_STAGE[all_] for all_ in ALL_OF_STAGE if given.get(all_))
        for name, gate in known.items()
        if gate.stage == stage and not gate.supported
    ]
    return [name for name, state in given.items() if (gate := known.get(name)) and _is_idle(gate, state)] + left_off


def _is_idle(gate: FeatureGate, state: bool) -> bool:
    return not gate.what and state != gate.default


def listing(known: Gates) -> str:
    """Every gate in a line: its default, its stage, what it changes."""
    width = max(map(len, known))
    lines = []
    for name, gate in known.items():
        stage = f"{gate.stage}, locked" if gate.locked else gate.stage
        what = gate.what or "nothing here depends on it"
        lines.append(f"{name:<{width}}  {str(gate.default).lower():<5}  {stage:<10}  {what}\n")
    return "".join(lines)
