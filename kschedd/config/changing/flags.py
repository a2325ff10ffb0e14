"""A configuration with what kube-scheduler's flags say, and that they said it."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from kschedd.config.changing.changes import with_profile_copied
from kschedd.config.changing.values import changed_origins
from kschedd.config.model import Config
from kschedd.config.versions.feature_gates import FLAG


def with_flags(config: Config, gates: Mapping[str, bool], unschedulable_flush_s: int | None) -> Config:
    """`gates` were given to the loading of the configuration."""
    origins = {**config.origins, **{f"featureGates[{gate}]": FLAG for gate in gates}}
    if unschedulable_flush_s is not None:
        config = attrs.evolve(config, unschedulable_flush_s=unschedulable_flush_s)
        origins["podMaxInUnschedulablePodsDuration"] = "--pod-max-in-unschedulable-pods-duration"
    return attrs.evolve(config, origins=origins)


def with_schedulers(config: Config, schedulers: Mapping[str, str]) -> Config:
    """The configuration in which each of these schedulers decides as a profile does. Raises ConfigErrors."""
    if not schedulers:
        return config
    changed = config
    for name, profile in schedulers.items():
        changed = with_profile_copied(changed, name, profile)
    return attrs.evolve(changed, origins=changed_origins(config, changed, "--scheduler"))
