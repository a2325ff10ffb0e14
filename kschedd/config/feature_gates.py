"""The feature gates that kube-scheduler v1.34 reads, with their defaults and what each changes here.

As upstream, gates are set on the command line (`--feature-gates`), not in the configuration file.  Gates of other
components are unknown here, though kube-scheduler's flag accepts them.

Source: Kubernetes v1.34, pkg/features/kube_features.go, scheduler/framework/plugins/feature/feature.go.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Final, Literal

import attrs

from kschedd.config.faults import ConfigError, ConfigErrors

Stage = Literal["ALPHA", "BETA", "GA"]


@attrs.frozen
class FeatureGate:
    default: bool
    stage: Stage
    what: str
    """What it changes here; "" where nothing here depends on it."""
    locked: bool = False
    """Finished: it cannot be changed any more."""


_NOTHING: Final = ""

FEATURE_GATES: Final[Mapping[str, FeatureGate]] = {
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

GATES: Final[Mapping[str, bool]] = {name: gate.default for name, gate in FEATURE_GATES.items()}

ALL_OF_STAGE: Final[Mapping[str, Stage]] = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
"""Names that stand for all gates of a stage; a gate named by itself goes before."""

_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
_FALSE: Final = ("0", "f", "F", "false", "FALSE", "False")
FLAG: Final = "--feature-gates"


def feature_gates(overrides: Mapping[str, bool] | None = None, source: str = "feature gates") -> dict[str, bool]:
    """Every gate with its state; raises `ConfigErrors` for one that does not exist or cannot be changed."""
    faults = []
    states = dict(GATES)
    given = dict(overrides or {})
    for name, stage in ALL_OF_STAGE.items():
        if name in given:
            state = given.pop(name)
            states.update({one: state for one, gate in FEATURE_GATES.items() if gate.stage == stage})
    for name, state in given.items():
        gate = FEATURE_GATES.get(name)
        if gate is None:
            close = difflib.get_close_matches(name, FEATURE_GATES, n=1)
            why = "no such feature gate" + (f"; did you mean {close[0]}?" if close else "")
            faults.append(ConfigError(source, 0, f"$.{name}", state, why, ", ".join(FEATURE_GATES)))
        elif gate.locked and state != gate.default:
            why = "the feature is finished and its gate locked"
            faults.append(ConfigError(source, 0, f"$.{name}", state, why, str(gate.default).lower()))
    if faults:
        raise ConfigErrors(tuple(faults))
    return {**states, **given}


def parse_flag(texts: Iterable[str]) -> dict[str, bool]:
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
    feature_gates(found, FLAG)
    return found


def without_effect(given: Mapping[str, bool]) -> list[str]:
    """The gates among these that are not as by default, though nothing here depends on them."""
    return [name for name, state in given.items() if (gate := FEATURE_GATES.get(name)) and _is_idle(gate, state)]


def _is_idle(gate: FeatureGate, state: bool) -> bool:
    return not gate.what and state != gate.default


def listing() -> str:
    """Every gate in a line: its default, its stage, what it changes."""
    width = max(map(len, FEATURE_GATES))
    lines = []
    for name, gate in FEATURE_GATES.items():
        stage = f"{gate.stage}, locked" if gate.locked else gate.stage
        what = gate.what or "nothing here depends on it"
        lines.append(f"{name:<{width}}  {str(gate.default).lower():<5}  {stage:<10}  {what}\n")
    return "".join(lines)
