"""Arguments of the plugins that score nodes by resources.

Source: Kubernetes v1.34, kube-scheduler/config/v1 (types_pluginargs.go), validation_pluginargs.go; for the older
plugins v1.22, kube-scheduler/config/v1beta1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import attrs

from kschedd.config.args import ArgsContext, arg
from kschedd.config.parsing.reading import ConfigFields, ConfigValue
from kschedd.config.scoring_args import (
    CPU_AND_MEMORY,
    MAX_POINT_SCORE,
    ResourceWeight,
    ShapePoint,
    check_name,
    resource_names,
    shape,
    weights,
)

_OF_1_18 = ("Policy", "v1alpha1", "v1alpha2")
StrategyType = Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]
RATIO = "RequestedToCapacityRatio"


def _resource_groups(place: ConfigValue, context: ArgsContext) -> tuple[str, ...]:
    groups = []
    for item in place.items():
        name = item.text()
        if name is None:
            continue
        if "/" in name:
            item.wrong("the name of a resource group has no slash in it", "for example example.com")
        else:
            check_name(item, name)
        groups.append(name)
    return tuple(groups)


def _ratio_shape(place: ConfigValue, context: ArgsContext) -> tuple[ShapePoint, ...]:
    inner = place.fields("shape")
    if inner is None:
        return ()
    given = inner.get("shape")
    if given is None:
        inner.missing("shape", "needs at least one point")
        return ()
    return shape(given, context)


@attrs.frozen
class ScoringStrategy:
    type: StrategyType = arg("LeastAllocated", needed=True)
    resources: tuple[ResourceWeight, ...] = arg(CPU_AND_MEMORY, read=weights(100))
    shape: tuple[ShapePoint, ...] = arg((), name="requestedToCapacityRatio", read=_ratio_shape)
    """Points in ascending utilization; never empty for RequestedToCapacityRatio, unused otherwise."""

    @classmethod
    def check(cls, fields: ConfigFields, context: ArgsContext) -> None:
        kind, ratio = fields.place.value.get("type"), fields.get("requestedToCapacityRatio")
        if ratio is not None and kind != RATIO:
            ratio.reading.warn(ratio.path, None, f"has no effect with {kind}", f"{RATIO} as type")
        elif ratio is None and kind == RATIO:
            fields.missing("requestedToCapacityRatio", f"needed by the type {RATIO}, and missing")

    def written(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"type": self.type, "resources": [one.written() for one in self.resources]}
        if self.shape:
            fields["requestedToCapacityRatio"] = {"shape": [point.written() for point in self.shape]}
        return fields


@attrs.frozen
class NodeResourcesFitArgs:
    ignored_resources: tuple[str, ...] = arg((), read=resource_names)
    """Resources the filter ignores; scoring is not affected."""
    ignored_resource_groups: tuple[str, ...] = arg((), read=_resource_groups)
    """Groups of ignored resources: `example.com` ignores every `example.com/...`."""
    scoring_strategy: ScoringStrategy = ScoringStrategy()


@attrs.frozen
class NodeResourcesBalancedAllocationArgs:
    resources: tuple[ResourceWeight, ...] = arg(CPU_AND_MEMORY, read=weights(1, unique=True))
    arithmetic: Literal["deviation", "difference"] = "deviation"
    """`difference` is that between the shares of cpu and memory, as in v1.18; kube-scheduler v1.34 has no such
    argument.
    """

    @classmethod
    def defaults(cls, context: ArgsContext, given: Mapping[str, Any]) -> Self:
        return cls(arithmetic="difference" if context.version in _OF_1_18 else "deviation")


# older plugins


@attrs.frozen
class OlderScoringArgs:
    """Arguments of NodeResourcesLeastAllocated and NodeResourcesMostAllocated."""

    resources: tuple[ResourceWeight, ...] = arg(CPU_AND_MEMORY, read=weights(100))


SPREADING: tuple[ShapePoint, ...] = (ShapePoint(0, 10), ShapePoint(100, 0))
"""Score higher, the less is requested: the default curve of v1.16."""


@attrs.frozen
class RequestedToCapacityRatioArgs:
    shape: tuple[ShapePoint, ...] = arg(SPREADING, read=shape, needed=True)
    resources: tuple[ResourceWeight, ...] = arg(CPU_AND_MEMORY, read=weights(100))


def _shape_to_100(place: ConfigValue, context: ArgsContext) -> tuple[ShapePoint, ...]:
    points = shape(place, context, max_score=100)
    if any(point.score > MAX_POINT_SCORE for point in points):
        place.reading.warn(place.path, None, "has scores over 10, and so counts from 0 to 100 instead of 0 to 10")
    return points


@attrs.frozen
class RequestedToCapacityRatioPriorityArgs:
    shape: tuple[ShapePoint, ...] = arg(SPREADING, read=_shape_to_100, needed=True)
    resources: tuple[ResourceWeight, ...] = arg(CPU_AND_MEMORY, read=weights(100))
