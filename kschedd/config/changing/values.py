"""A configuration as a list of values, each with its origin, for `kschedd config show`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from kschedd.config.args import written
from kschedd.config.loading.plugin_sets import FIELD_OF_POINT
from kschedd.config.model import SCORING, Config

DEFAULT: Final = "default of"


@attrs.frozen
class ConfiguredValue:
    path: str
    """The path with profiles and plugins by name: `profiles[default-scheduler].plugins.score[NodeAffinity]`."""
    value: Any
    """The value; for a score plugin its weight, for any other plugin true."""
    origin: str
    """A file and line, a flag, a change at run time, or the release whose default it is."""


def values(config: Config) -> list[ConfiguredValue]:
    """Return every value in effect, in the order of a file."""
    default = f"{DEFAULT} {config.release}"
    return [ConfiguredValue(path, value, config.origins.get(path, default)) for path, value in _pairs(config)]


def changed_origins(before: Config, after: Config, origin: str) -> dict[str, str]:
    """Return the origins of `after`. Every value that differs from `before` gets `origin`."""
    old = dict(_pairs(before))
    origins = dict(before.origins)
    for path, value in _pairs(after):
        if path not in old or old[path] != value:
            origins[path] = origin
    return origins


def _pairs(config: Config) -> Iterator[tuple[str, Any]]:
    yield "parallelism", config.parallelism
    yield "percentageOfNodesToScore", config.percentage_of_nodes_to_score
    yield "podInitialBackoffSeconds", config.pod_initial_backoff_s
    yield "podMaxBackoffSeconds", config.pod_max_backoff_s
    yield "podMaxInUnschedulablePodsDuration", f"{config.unschedulable_flush_s}s"
    for number, extender in enumerate(config.extenders):
        yield f"extenders[{number}]", extender.url_prefix
    for profile in config.profiles:
        at = f"profiles[{profile.scheduler_name}]"
        if profile.percentage_of_nodes_to_score is not None:
            yield f"{at}.percentageOfNodesToScore", profile.percentage_of_nodes_to_score
        for point, refs in profile.plugins.items():
            for ref in refs:
                value = ref.weight if point in SCORING else True
                yield f"{at}.plugins.{FIELD_OF_POINT[point]}[{ref.name}]", value
        for plugin in profile.names():
            yield f"{at}.pluginConfig[{plugin}]", written(profile.args(plugin))
    for gate, state in config.feature_gates.items():
        yield f"featureGates[{gate}]", state
