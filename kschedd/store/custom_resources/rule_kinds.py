"""Kinds that a version has by a rule: their definitions and the validation of their specs."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.schemas.fields import FieldError
from kschedd.registry.devices.taint_rules import validate_device_taint_rule
from kschedd.registry.workloads.pod_groups import validate_pod_group as validate_pod_group_v1alpha2
from kschedd.registry.workloads.pod_groups import validate_workload as validate_workload_v1alpha2
from kschedd.registry.workloads.pod_groups_v1beta1 import validate_pod_group, validate_workload
from kschedd.store.custom_resources.device_taint_rule_kind import DEVICE_TAINT_RULE
from kschedd.store.custom_resources.workload_kinds import POD_GROUP, POD_GROUP_V1ALPHA2, WORKLOAD, WORKLOAD_V1ALPHA2

Raw = Mapping[str, Any]


@attrs.frozen(eq=False)
class RuleKind:
    """A kind that is there where a rule of `kschedd.config.versions.rules` holds."""

    rule: str
    definition: Object
    validate: Callable[[Raw, Raw | None], list[FieldError]]
    """Return what is wrong with the spec of an object, which replaces another spec or is new."""


RULE_KINDS: Final = (
    RuleKind("groups_of_v1alpha2", WORKLOAD_V1ALPHA2, lambda spec, old: validate_workload_v1alpha2(spec)),
    RuleKind("groups_of_v1alpha2", POD_GROUP_V1ALPHA2, lambda spec, old: validate_pod_group_v1alpha2(spec)),
    RuleKind("groups_of_v1beta1", WORKLOAD, validate_workload),
    RuleKind("groups_of_v1beta1", POD_GROUP, validate_pod_group),
    RuleKind("device_taint_rules", DEVICE_TAINT_RULE, lambda spec, old: validate_device_taint_rule(dict(spec))),
)


def definitions_by(features: Collection[str]) -> list[Object]:
    """Return the definitions of the kinds whose rule is among these features."""
    return [one.definition for one in RULE_KINDS if one.rule in features]


def spec_faults(definition: Object, raw: Raw, old: Raw | None = None) -> list[FieldError]:
    """Return what is wrong with the spec of an object of one of these definitions; nothing for any other. `old`: the
    object before."""
    for one in RULE_KINDS:
        if definition is one.definition:
            return one.validate(raw.get("spec") or {}, None if old is None else old.get("spec") or {})
    return []
