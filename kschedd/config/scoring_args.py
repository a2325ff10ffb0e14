"""Parts of plugin arguments that several plugins have in common: weighted resources, and the points of a scoring curve.

Source: Kubernetes v1.34, apis/config/validation/validation_pluginargs.go (validateResources, validateFunctionShape).
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Final

import attrs

from kschedd.api.selecting.names import qualified_name
from kschedd.api.selecting.resource_names import is_scalar
from kschedd.config.args import ArgsContext, ReadValue
from kschedd.config.parsing.reading import ConfigValue

MAX_POINT_SCORE: Final = 10


@attrs.frozen
class ResourceWeight:
    """A resource that a score considers, with its weight (1 to 100)."""

    name: str
    weight: int = 1

    def written(self) -> dict[str, str | int]:
        return {"name": self.name, "weight": self.weight}


@attrs.frozen
class ShapePoint:
    """One point of a piecewise linear score function: the score at `utilization` percent is `score`, from 0 to 10."""

    utilization: int
    score: int

    def written(self) -> dict[str, int]:
        return {"utilization": self.utilization, "score": self.score}


def piecewise_linear(shape: Sequence[ShapePoint], percent: int) -> int:
    """Return the score (0 to 100) at a utilization in percent. Interpolation truncates towards zero, as in Go."""
    scale = 100 // MAX_POINT_SCORE
    before: ShapePoint | None = None
    for corner in shape:
        if percent <= corner.utilization:
            if before is None:
                return corner.score * scale
            rise = (corner.score - before.score) * scale * (percent - before.utilization)
            run = corner.utilization - before.utilization
            return before.score * scale + (rise // run if rise >= 0 else -(-rise // run))
        before = corner
    return shape[-1].score * scale


_PLAIN: Final = ("cpu", "memory", "ephemeral-storage")
CPU_AND_MEMORY: Final = (ResourceWeight("cpu"), ResourceWeight("memory"))


def weights(most: int, *, unique: bool = False) -> ReadValue:
    """Return a reader of `resources`: an empty list means cpu and memory.

    A weight is at most `most`; a weight of 0, or none, means 1.
    """

    def read(place: ConfigValue, context: ArgsContext) -> tuple[ResourceWeight, ...]:
        found: dict[str, ResourceWeight] = {}
        listed = []
        for item in place.items():
            inner = item.fields("name", "weight")
            if inner is None:
                continue
            name = inner.needed_text("name")
            weight = inner.maybe_integer("weight", (0, most)) or 1
            if name is None:
                continue
            if unique and name in found:
                inner.place.reading.report(inner.path("name"), name, "given twice")
            _warn_of_unknown(inner.place.at("name", name), name)
            found[name] = ResourceWeight(name, weight)
            listed.append(found[name])
        return tuple(listed) or CPU_AND_MEMORY

    return read


def shape(place: ConfigValue, context: ArgsContext, *, max_score: int = MAX_POINT_SCORE) -> tuple[ShapePoint, ...]:
    """Read `shape`: at least one point, with increasing utilization from 0 to 100 and scores from 0 to 10."""
    points: list[ShapePoint] = []
    places = place.items()
    if not places and isinstance(place.value, list | tuple):
        place.reading.report(place.path, None, "needs at least one point")
    for item in places:
        inner = item.fields("utilization", "score")
        if inner is None:
            continue
        point = ShapePoint(inner.integer("utilization", 0, (0, 100)), inner.integer("score", 0, (0, max_score)))
        if points and point.utilization <= points[-1].utilization:
            path = inner.path("utilization")
            item.reading.report(path, point.utilization, "must be larger than the point's before it")
        points.append(point)
    return tuple(points)


def resource_names(place: ConfigValue, context: ArgsContext) -> tuple[str, ...]:
    """Read a list of qualified names."""
    names = []
    for item in place.items():
        name = item.text()
        if name is not None:
            check_name(item, name)
            _warn_of_unknown(item, name)
            names.append(name)
    return tuple(names)


def _warn_of_unknown(place: ConfigValue, name: str) -> None:
    """Warn of a name that no resource of a node can have, because the name has no effect."""
    if name in _PLAIN or is_scalar(name) or qualified_name(name):
        return
    close = difflib.get_close_matches(name.lower(), _PLAIN, n=1, cutoff=0.8)
    why = "no node has a resource of this name, so it never counts"
    place.reading.warn(place.path, name, why, close[0] if close else f"{', '.join(_PLAIN)}, or a name with a domain")


def check_name(place: ConfigValue, name: str) -> None:
    for wrong in qualified_name(name):
        place.wrong(wrong)
