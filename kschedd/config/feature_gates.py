"""The feature gates that affect scheduling decisions, with their defaults in Kubernetes v1.34.

As upstream, gates are set on the command line, not in the configuration file.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from kschedd.config.faults import ConfigError, ConfigErrors

GATES: Mapping[str, bool] = {
    "DRAAdminAccess": True,
    "DRAConsumableCapacity": False,
    "DRADeviceBindingConditions": False,
    "DRADeviceTaints": False,
    "DRAExtendedResource": False,
    "DRAPartitionableDevices": False,
    "DRAPrioritizedList": True,
    "DRAResourceClaimDeviceStatus": True,
    "DRASchedulerFilterTimeout": True,
    "DynamicResourceAllocation": True,
    "InPlacePodVerticalScaling": True,
    "MatchLabelKeysInPodTopologySpread": True,
    "NodeInclusionPolicyInPodTopologySpread": True,
    "NominatedNodeNameForExpectation": False,
    "PodLevelResources": True,
    "SchedulerAsyncAPICalls": False,
    "SchedulerAsyncPreemption": True,
    "SchedulerPopFromBackoffQ": True,
    "SchedulerQueueingHints": True,
    "StorageCapacityScoring": False,
    "VolumeAttributesClass": True,
}

LOCKED = frozenset({"SchedulerQueueingHints", "NodeInclusionPolicyInPodTopologySpread"})
"""GA feature gates that are locked to their default in v1.34."""


def feature_gates(overrides: Mapping[str, bool] | None = None, source: str = "feature gates") -> dict[str, bool]:
    """Every gate with its state; raises `ConfigErrors` for one that does not exist or cannot be changed."""
    faults = []
    for name, state in (overrides or {}).items():
        if name not in GATES:
            close = difflib.get_close_matches(name, GATES, n=1)
            why = "no such feature gate" + (f"; did you mean {close[0]}?" if close else "")
            faults.append(ConfigError(source, 0, f"$.{name}", state, why, ", ".join(GATES)))
        elif name in LOCKED and state != GATES[name]:
            why = "the feature is finished and its gate locked"
            faults.append(ConfigError(source, 0, f"$.{name}", state, why, str(GATES[name]).lower()))
    if faults:
        raise ConfigErrors(tuple(faults))
    return {**GATES, **(overrides or {})}
