"""Scores by measured load, from a file: TargetLoadPacking and LoadVariationRiskBalancing.

    pluginConfig:
      - {name: TargetLoadPacking, args: {metricsFile: load.json, targetUtilization: 40}}
      - {name: LoadVariationRiskBalancing, args: {metricsFile: load.json, safeVarianceMargin: 1}}

The file contains the measured load of each node, in percent:

    {"node-1": {"cpu": {"average": 35, "stdDev": 4}, "memory": {"average": 60, "stdDev": 1}}}

The file is read when the plugin is created. A node that is missing in the file gets the score 0.
Source: kubernetes-sigs/scheduler-plugins, pkg/trimaran (the formulas, not the code).
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import attrs

from kschedd.plugin import MAX_NODE_SCORE, CycleState, Handle, NodeInfo, Pod, RawArgs

MULTIPLIER: Final = 1.5  # assumed load of a pod without a limit, relative to its request
UNREQUESTED_MILLI: Final = 1000.0  # assumed load of a pod that requests no CPU


@attrs.frozen
class Load:
    """Load of one resource of a node, in percent."""

    average: float
    deviation: float


Loads = Mapping[str, Mapping[str, Load]]  # node -> resource


def read_loads(args: RawArgs) -> Loads:
    """Read the metrics file in a plugin's arguments; raise ValueError if it is invalid."""
    path = args.values.get("metricsFile")
    if not isinstance(path, str):
        raise ValueError(f"metricsFile: {path!r}: must be the path of a JSON file")
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise ValueError(f"metricsFile: {path}: cannot be read: {fault}") from fault
    try:
        return {node: {name: _load(load) for name, load in resources.items()} for node, resources in found.items()}
    except (AttributeError, TypeError, KeyError, ValueError) as fault:
        raise ValueError(f"metricsFile: {path}: must map nodes to resources to average and stdDev: {fault}") from fault


def _load(raw: Mapping[str, Any]) -> Load:
    load = Load(float(raw["average"]), float(raw.get("stdDev", 0)))
    if not (math.isfinite(load.average) and math.isfinite(load.deviation)) or load.average < 0 or load.deviation < 0:
        raise ValueError(f"{dict(raw)}: no percentage")
    return load


def number(args: RawArgs, name: str, default: float, least: float, most: float) -> float:
    given = args.values.get(name, default)
    if isinstance(given, bool) or not isinstance(given, int | float) or not least <= given <= most:
        raise ValueError(f"{name}: {given!r}: must be a number from {least:g} to {most:g}")
    return float(given)


def expected_milli(pod: Pod) -> float:
    """Return the CPU that a pod is expected to use: its request if it has a limit, otherwise more than its request."""
    requested = pod.requests.get("cpu", 0)
    if not requested:
        return UNREQUESTED_MILLI
    bounded = all("cpu" in ((each.get("resources") or {}).get("limits") or {}) for each in pod.spec["containers"])
    return requested if bounded else MULTIPLIER * requested


@attrs.define(eq=False)
class TargetLoadPacking:
    """Prefer nodes near a target of CPU load, then emptier nodes, then nodes above the target."""

    name: ClassVar = "TargetLoadPacking"
    _loads: Loads
    _target: float

    @classmethod
    def from_args(cls, args: RawArgs, handle: Handle) -> Self:
        return cls(read_loads(args), number(args, "targetUtilization", 40, 1, 99))

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        cpu = self._loads.get(node.name, {}).get("cpu")
        capacity = node.allocatable.get("cpu", 0)
        if cpu is None or not capacity:
            return 0
        load = cpu.average + 100 * expected_milli(pod) / capacity
        if load > 100:
            return 0
        if load > self._target:
            return round(self._target * (100 - load) / (100 - self._target))
        return round((MAX_NODE_SCORE - self._target) * load / self._target + self._target)


@attrs.define(eq=False)
class LoadVariationRiskBalancing:
    """Prefer nodes whose load is low and steady; the worse of CPU and memory counts."""

    name: ClassVar = "LoadVariationRiskBalancing"
    _loads: Loads
    _margin: float
    _sensitivity: float

    @classmethod
    def from_args(cls, args: RawArgs, handle: Handle) -> Self:
        margin = number(args, "safeVarianceMargin", 1, 0, 1000)
        return cls(read_loads(args), margin, number(args, "safeVarianceSensitivity", 1, 0, 1000))

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        loads = self._loads.get(node.name, {})
        risks = []
        for resource in ("cpu", "memory"):
            load, capacity = loads.get(resource), node.allocatable.get(resource, 0)
            if load is not None and capacity:
                risks.append(self._risk(load, pod.requests.get(resource, 0) / capacity))
        return round((1 - max(risks)) * MAX_NODE_SCORE) if risks else 0

    def _risk(self, load: Load, request: float) -> float:
        """Return the risk from 0 to 1: half the mean load with the pod, half the scaled deviation."""
        mean = min(load.average / 100 + request, 1.0)
        deviation = min(load.deviation / 100, 1.0)
        if self._sensitivity:
            deviation = deviation ** (1 / self._sensitivity)
        return (mean + min(deviation * self._margin, 1.0)) / 2
