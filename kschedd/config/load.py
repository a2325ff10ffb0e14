"""KubeSchedulerConfiguration, as text or as a mapping, to a `Config`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kschedd.config.args import PluginArgs, default_args
from kschedd.config.expansion import expand, merged
from kschedd.config.feature_gates import feature_gates as all_gates
from kschedd.config.in_tree import IN_TREE, Catalogue
from kschedd.config.model import DEFAULT_SCHEDULER_NAME, Config, Profile


def default_config(*, feature_gates: Mapping[str, bool] | None = None) -> Config:
    """What kube-scheduler v1.34 runs with when nobody tells it anything."""
    gates = all_gates(feature_gates)

    def impossible(path: str, value: Any, why: str, allowed: str) -> None:
        raise AssertionError(f"the defaults are sound, yet: {path}: {value}: {why}")

    plugins = expand(merged({}, gates), IN_TREE.get, impossible)
    names = {ref.name for refs in plugins.values() for ref in refs}
    args: dict[str, PluginArgs] = {name: default_args(name, gates) for name in sorted(names)}
    return Config(profiles=(Profile(DEFAULT_SCHEDULER_NAME, plugins, args),), feature_gates=gates)


__all__ = ["Catalogue", "default_config"]
