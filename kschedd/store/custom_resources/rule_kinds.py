"""Kinds that a version has by a rule: their definitions and the validation of their specs."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.schemas.fields import FieldError
from kschedd.registry.devices.taint_rules import validate_device_taint_rule
from kschedd.registry.workloads.pod_groups import validate_pod_group, validate_workload
from kschedd.store.custom_resources.device_taint_rule_kind import DEVICE_TAINT_RULE
from kschedd.store.custom_resources.workload_kinds import POD_GROUP, WORKLOAD


@attrs.frozen(eq=False)
class RuleKind:
    """A kind that is there where a rule of `kschedd.config.versions.rules` holds."""

    rule: str
    definition: Object
    validate: Callable[[dict[str, Any]], list[FieldError]]
    """Return what is wrong with the spec of an object."""


RULE_KINDS: Final = (
    RuleKind("pod_groups", WORKLOAD, validate_workload),
    RuleKind("pod_groups", POD_GROUP, validate_pod_group),
    RuleKind("device_taint_rules", DEVICE_TAINT_RULE, validate_device_taint_rule),
)


def definitions_by(features: Collection[str]) -> list[Object]:
    """Return the definitions of the kinds whose rule is among these features."""
    return [one.definition for one in RULE_KINDS if one.rule in features]


def spec_faults(definition: Object, raw: Mapping[str, Any]) -> list[FieldError]:
    """Return what is wrong with the spec of an object of one of these definitions; nothing for any other."""
    for one in RULE_KINDS:
        if definition is one.definition:
            return one.validate(raw.get("spec") or {})
    return []
