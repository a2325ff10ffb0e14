"""Parameters of a study: paths into a KubeSchedulerConfiguration, and the values to set at these paths.

    percentageOfNodesToScore                            a field
    profiles[0].pluginConfig[NodeResourcesFit].args     an item of a list, by number or by its `name`
    weights.NodeResourcesFit                            short: the score weight of a plugin of the first profile
    args.NodeResourcesFit.scoringStrategy.type          short: an argument of a plugin of the first profile

Setting a value creates missing mappings and list items on the path.
"""

import copy
import re
from collections.abc import Mapping
from typing import Any, Final

from kschedd.errors import KscheddError

Raw = Mapping[str, Any]
Step = str | int

#: the configuration of a profile that contains none
EMPTY_CONFIG: Final[Raw] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
}
_PART: Final = re.compile(r"([^.\[\]]+)((?:\[[^\[\]]+\])*)(?:\.|$)")
_ITEM: Final = re.compile(r"\[([^\[\]]+)\]")
_SHORT: Final = ("weights", "args")


class ParameterPathError(KscheddError):
    """An invalid path, or a path that does not fit the configuration."""


def steps_of(path: str) -> list[list[Step]]:
    """Return the fields of a path, each with the list items that follow it in the path. Raises ParameterPathError."""
    found: list[list[Step]] = []
    place = 0
    while place < len(path):
        part = _PART.match(path, place)
        if part is None:
            break
        items = [int(item) if item.isascii() and item.isdigit() else item for item in _ITEM.findall(part[2])]
        found.append([part[1], *items])
        place = part.end()
    if place < len(path) or not found or path.endswith("."):
        raise ParameterPathError("not a path; examples: percentageOfNodesToScore, weights.NodeResourcesFit")
    if found[0][0] in _SHORT and (len(found) < 2 or (found[0][0] == "weights" and len(found) > 2)):
        raise ParameterPathError("a plugin is required: weights.NAME, args.NAME.FIELD")
    return found


def with_value(config: Raw, path: str, value: Any) -> dict[str, Any]:
    """Return a copy of the configuration with the value at the path. Raises ParameterPathError."""
    made: dict[str, Any] = copy.deepcopy(dict(config))
    at: Any = made
    steps = [step for part in _spelled_out(made, steps_of(path)) for step in part]
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        last = following is None
        new: Any = copy.deepcopy(value) if last else {} if isinstance(following, _Field) else []
        at = _entered(at, step, new, replace=last)
    return made


class _Field(str):
    """A step into a mapping; a step that is plain text selects a list item by its name."""


def _spelled_out(config: Raw, parts: list[list[Step]]) -> list[list[Step]]:
    """Return the steps with short forms expanded, and with fields marked as fields."""
    head = parts[0][0]
    if head in _SHORT:
        profile: list[Step] = [_Field("profiles"), 0]
        plugin = str(parts[1][0])
        if head == "args":
            parts = [profile, [_Field("pluginConfig"), plugin], [_Field("args")], *parts[2:]]
        else:
            point = "score" if _scores_by_itself(config, plugin) else "multiPoint"
            parts = [profile, [_Field("plugins")], [_Field(point)], [_Field("enabled"), plugin], [_Field("weight")]]
    return [[_Field(part[0]), *part[1:]] for part in parts]


def _scores_by_itself(config: Raw, plugin: str) -> bool:
    """Return whether the first profile enables the plugin at the extension point score, which precedes multiPoint."""
    at: Any = config
    for step in ("profiles", 0, "plugins", "score", "enabled"):
        try:
            at = at[step]
        except (KeyError, IndexError, TypeError):
            return False
    return isinstance(at, list) and any(isinstance(each, Mapping) and each.get("name") == plugin for each in at)


def _entered(at: Any, step: Step, new: Any, *, replace: bool) -> Any:
    """Return the value after one more step, and create it if it is missing. Raises ParameterPathError."""
    if isinstance(step, _Field):
        if not isinstance(at, dict):
            raise ParameterPathError(f'"{step}" is a field, and there is no mapping')
        if replace or at.get(step) is None:
            at[str(step)] = new
        return at[step]
    if not isinstance(at, list):
        raise ParameterPathError(f"[{step}] is an item, and there is no list")
    if isinstance(step, int):
        if step > len(at):
            raise ParameterPathError(f"[{step}]: the list has {len(at)} items")
        if step == len(at):
            at.append(new)
        elif replace:
            at[step] = new
        return at[step]
    for number, each in enumerate(at):
        if isinstance(each, Mapping) and each.get("name") == step:
            if replace:
                at[number] = new
            return at[number]
    if not isinstance(new, dict):
        raise ParameterPathError(f"[{step}]: a field of the item is required")
    at.append({"name": str(step), **new})
    return at[-1]
