"""A configuration with what kube-scheduler's flags say, and that they said it."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from kschedd.config.feature_gates import FLAG
from kschedd.config.model import Config


def with_flags(config: Config, gates: Mapping[str, bool], unschedulable_flush_s: int | None) -> Config:
    """`gates` were given to the loading of the configuration."""
    origins = {**config.origins, **{f"featureGates[{gate}]": FLAG for gate in gates}}
    if unschedulable_flush_s is not None:
        config = attrs.evolve(config, unschedulable_flush_s=unschedulable_flush_s)
        origins["podMaxInUnschedulablePodsDuration"] = "--pod-max-in-unschedulable-pods-duration"
    return attrs.evolve(config, origins=origins)
