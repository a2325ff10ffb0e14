"""Extenders as a Policy and v1alpha2 spell them, respelt as v1 does.

Source: Kubernetes v1.22, kube-scheduler/config/v1/types.go (LegacyExtender).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from kschedd.config.parsing.reading import ConfigFields


def legacy_extenders(fields: ConfigFields) -> ConfigFields:
    """The fields with their extenders as v1 spells them: `enableHttps`, and `httpTimeout` in nanoseconds."""
    given = fields.place.value.get("extenders")
    if not isinstance(given, list | tuple):
        return fields
    extenders = [_respelled(one) if isinstance(one, Mapping) else one for one in given]
    return ConfigFields(attrs.evolve(fields.place, value={**fields.place.value, "extenders": extenders}))


def _respelled(extender: Mapping[str, Any]) -> dict[str, Any]:
    new = {("enableHTTPS" if key == "enableHttps" else key): value for key, value in extender.items()}
    timeout = new.get("httpTimeout")
    if isinstance(timeout, int) and not isinstance(timeout, bool):
        new["httpTimeout"] = f"{timeout}ns"
    return new
