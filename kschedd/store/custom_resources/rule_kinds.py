"""Built-in kinds that exist only in some versions: definitions, validation, and schemas for strategic merge patches.

Source: Kubernetes v1.37, api/scheduling/v1beta1/types.go and api/resource/v1/types.go (patchStrategy).
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.schemas.fields import FieldError
from kschedd.api.schemas.schema import ANY, STR, Fields, ListOf, PatchStrategy, Schema, type_named
from kschedd.registry.devices.taint_rules import validate_device_taint_rule
from kschedd.registry.policy.later_kinds import (
    validate_mutating_binding,
    validate_mutating_policy,
    validate_pod_certificate,
    validate_storage_migration,
    validate_trust_bundle,
)
from kschedd.registry.workloads.pod_groups import validate_pod_group as validate_pod_group_v1alpha2
from kschedd.registry.workloads.pod_groups import validate_workload as validate_workload_v1alpha2
from kschedd.registry.workloads.pod_groups_v1beta1 import validate_pod_group, validate_workload
from kschedd.store.custom_resources.built_in_definitions import CONDITIONS
from kschedd.store.custom_resources.device_taint_rule_kind import DEVICE_TAINT_RULE
from kschedd.store.custom_resources.later_kinds import (
    MUTATING_BINDING,
    MUTATING_POLICY,
    POD_CERTIFICATE,
    STORAGE_MIGRATION,
    TRUST_BUNDLE,
)
from kschedd.store.custom_resources.simulated_behavior_kind import (
    SIMULATED_BEHAVIOR,
    SIMULATED_BEHAVIORS,
    validate_simulated_behavior,
)
from kschedd.store.custom_resources.workload_kinds import (
    POD_GROUP,
    POD_GROUP_IN_DOMAINS,
    POD_GROUP_V1ALPHA2,
    WORKLOAD,
    WORKLOAD_IN_DOMAINS,
    WORKLOAD_V1ALPHA2,
)

Raw = Mapping[str, Any]


def _merge_schema(definition: Object) -> Fields:
    schema: Raw = definition.spec["versions"][0]["schema"]["openAPIV3Schema"]
    whole = _fields(schema, definition.spec["names"]["kind"])
    whole.update(apiVersion=STR, kind=STR, metadata=type_named("meta.ObjectMeta"))
    return whole


def _fields(schema: Raw, name: str) -> Fields:
    found = Fields(name)
    for field, inner in schema["properties"].items():
        found[field] = _merged(inner, f"{name}{field[:1].upper()}{field[1:]}")
        if inner is CONDITIONS:
            found.strategies[field] = PatchStrategy(merge=True, merge_key="type")
    return found


def _merged(schema: Raw, name: str) -> Schema:
    match schema.get("type"):
        case "object" if "properties" in schema:
            return _fields(schema, name)
        case "array":
            return ListOf(_merged(schema["items"], name))
        case _:
            return ANY


@attrs.frozen(eq=False)
class RuleKind:
    """A kind that is served only if a feature of `kschedd.config.versions.rules` is enabled."""

    rule: str  # name of a rule, or of a feature of the cluster
    definition: Object
    validate: Callable[[Raw, Raw | None], list[FieldError]]
    """Returns the errors in the (new, old) spec; old is None for a new object."""
    is_scheduled_by: bool = True
    """True if the scheduler reads objects of this kind."""
    merge_schema: Fields = attrs.field(init=False)
    """The field types that strategic merge patches of its objects use."""

    @merge_schema.default
    def _built(self) -> Fields:
        return _merge_schema(self.definition)


def _mutating_policy_faults(spec: Raw, old: Raw | None) -> list[FieldError]:
    faults = validate_mutating_policy(spec, old)
    if spec == old:
        return faults
    from kschedd.store.policies.checking import mutation_faults  # imported here, because this imports CEL

    return faults + mutation_faults(spec)


RULE_KINDS: Final = (
    RuleKind("groups_of_v1alpha2", WORKLOAD_V1ALPHA2, lambda spec, old: validate_workload_v1alpha2(spec)),
    RuleKind("groups_of_v1alpha2", POD_GROUP_V1ALPHA2, lambda spec, old: validate_pod_group_v1alpha2(spec)),
    RuleKind("groups_of_v1beta1", WORKLOAD, validate_workload),
    RuleKind("groups_of_v1beta1", POD_GROUP, validate_pod_group),
    RuleKind("groups_in_domains", WORKLOAD_IN_DOMAINS, validate_workload),
    RuleKind("groups_in_domains", POD_GROUP_IN_DOMAINS, validate_pod_group),
    RuleKind("device_taint_rules", DEVICE_TAINT_RULE, lambda spec, old: validate_device_taint_rule(dict(spec))),
    RuleKind("fields_of_1_36", MUTATING_POLICY, _mutating_policy_faults, False),
    RuleKind("fields_of_1_36", MUTATING_BINDING, validate_mutating_binding, False),
    RuleKind("fields_of_1_37", TRUST_BUNDLE, validate_trust_bundle, False),
    RuleKind("fields_of_1_37", POD_CERTIFICATE, validate_pod_certificate, False),
    RuleKind("fields_of_1_37", STORAGE_MIGRATION, validate_storage_migration, False),
    RuleKind(SIMULATED_BEHAVIORS, SIMULATED_BEHAVIOR, validate_simulated_behavior, False),
)


def definitions_by(features: Collection[str]) -> list[Object]:
    """Return the definitions of the kinds that these features enable."""
    return [one.definition for one in _enabled_by(features)]


def _enabled_by(features: Collection[str]) -> Iterable[RuleKind]:
    """Return the enabled kinds. If two entries for one kind are enabled, the later one is used."""
    return {one.definition.name: one for one in RULE_KINDS if one.rule in features}.values()


def scheduled_by(features: Collection[str]) -> list[Object]:
    """Return the definitions of the enabled kinds that the scheduler reads."""
    return [one.definition for one in _enabled_by(features) if one.is_scheduled_by]


def rule_kind(definition: Object | None) -> RuleKind | None:
    """Return the RuleKind of this definition, or None for a custom resource."""
    return next((one for one in RULE_KINDS if definition is one.definition), None)


def spec_faults(definition: Object, raw: Raw, old: Raw | None = None) -> list[FieldError]:
    """Return the errors in the spec of an object of these kinds; empty for any other kind.

    `old` is the previous object.
    """
    kind = rule_kind(definition)
    return [] if kind is None else kind.validate(raw.get("spec") or {}, None if old is None else old.get("spec") or {})
