"""Validation of Workload and PodGroup (scheduling.k8s.io/v1beta1, v1alpha3), with the messages of kube-apiserver 1.37.

The specs must have correct types, and their templates must have unique names. In an existing object, only minCount
may change.

Source: Kubernetes v1.37, apis/scheduling/validation, apis/scheduling/v1beta1/zz_generated.validations.go;
apimachinery/pkg/api/validate (Immutable, UpdatePointer, ValSliceUpdate, Union, Maximum).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, forbidden, invalid, required, too_many
from kschedd.api.selecting.names import dns_label, dns_subdomain, qualified_name
from kschedd.registry.workloads.pod_groups import (
    MOST_TEMPLATES,
    POLICIES,
    controller_faults,
    name_faults,
    one_of_faults,
    policy_faults,
)

Raw = Mapping[str, Any]

_HIGHEST_PRIORITY: Final = 1_000_000_000
_MOST_CONSTRAINTS: Final = 1
_MODES: Final = ("single", "all")
_SOURCES: Final = ("podGroupTemplates", "compositePodGroupTemplates")
_NO_FIELDS: Final[Raw] = {}
_ABSENT: Final = (None, "")


def validate_pod_group(spec: Raw, old: Raw | None) -> list[FieldError]:
    faults: list[FieldError] = []
    if _changed(spec, old, "workloadRef"):
        faults.append(_immutable("spec.workloadRef"))
    elif (reference := spec.get("workloadRef")) is not None:
        faults += name_faults(reference.get("workloadName") or "", "spec.workloadRef.workloadName", dns_subdomain)
        faults += name_faults(reference.get("templateName") or "", "spec.workloadRef.templateName", dns_label)
    return [*faults, *_group(spec, old, "spec")]


def validate_workload(spec: Raw, old: Raw | None) -> list[FieldError]:
    templates, path = spec.get("podGroupTemplates") or [], "spec.podGroupTemplates"
    faults: list[FieldError] = []
    if len({(each.get("priorityClassName") or "", each.get("priority")) for each in templates}) > 1:
        faults.append(invalid("spec", None, "detected multiple priority configurations"))
    if not templates:
        faults += one_of_faults(_NO_FIELDS, _SOURCES, "spec")
    if _changed(spec, old, "controllerRef"):
        faults.append(_immutable("spec.controllerRef"))
    elif (controller := spec.get("controllerRef")) is not None:
        faults += controller_faults(controller, "spec.controllerRef")
    wrong = list(_changed_templates(templates, old, path))
    if len(templates) > MOST_TEMPLATES:
        wrong.insert(0, too_many(path, len(templates), MOST_TEMPLATES))
    return [*faults, *(wrong or _templates(templates, old, path))]


def _changed_templates(templates: list[Raw], old: Raw | None, path: str) -> Iterator[FieldError]:
    if old is None:
        return
    before = _by_name(old)
    for number, template in enumerate(templates):
        if template.get("name") not in before:
            yield forbidden(f"{path}[{number}]", "item may not be added")
    names = {template.get("name") for template in templates}
    for name in before:
        if name not in names:
            yield forbidden(path, "item may not be removed")


def _templates(templates: list[Raw], old: Raw | None, path: str) -> Iterator[FieldError]:
    before = {} if old is None else _by_name(old)
    for number, template in enumerate(templates):
        here = f"{path}[{number}]"
        yield from name_faults(template.get("name") or "", f"{here}.name", dns_label)
        yield from _group(template, before.get(template.get("name")), here)


def _by_name(spec: Raw) -> dict[Any, Raw]:
    return {template.get("name"): template for template in spec.get("podGroupTemplates") or ()}


def _group(spec: Raw, old: Raw | None, path: str) -> Iterator[FieldError]:
    """Yield the errors in the fields that PodGroups and their templates share."""
    policy = spec.get("schedulingPolicy") or _NO_FIELDS
    at = f"{path}.schedulingPolicy"
    changes = [] if old is None else list(_changed_policy(policy, old.get("schedulingPolicy") or _NO_FIELDS, at))
    yield from changes or policy_faults(policy, at)
    for name in ("schedulingConstraints", "disruptionMode", "priorityClassName", "priority"):
        here, value = f"{path}.{name}", spec.get(name)
        if _changed(spec, old, name):
            yield _immutable(here)
        elif value is None:
            continue
        elif name == "schedulingConstraints":
            yield from _topology(value.get("topology") or (), f"{here}.topology")
        elif name == "disruptionMode":
            yield from one_of_faults(value, _MODES, here)
        elif name == "priorityClassName":
            yield from name_faults(value, here, dns_subdomain) if value else ()
        elif value > _HIGHEST_PRIORITY:
            yield invalid(here, value, f"must be less than or equal to {_HIGHEST_PRIORITY}")


def _topology(constraints: Sequence[Raw], path: str) -> Iterator[FieldError]:
    if len(constraints) > _MOST_CONSTRAINTS:
        yield too_many(path, len(constraints), _MOST_CONSTRAINTS)
        return
    for number, constraint in enumerate(constraints):
        here, key = f"{path}[{number}].key", constraint.get("key") or ""
        if not key:
            yield required(here)
        for why in qualified_name(key) if key else ():
            yield invalid(here, key, why)


def _changed_policy(policy: Raw, before: Raw, path: str) -> Iterator[FieldError]:
    given, then = ([each.get(name) is not None for name in POLICIES] for each in (policy, before))
    if given != then:
        yield from one_of_faults(policy, POLICIES, path)
    if given[0] != then[0]:
        yield _immutable(f"{path}.basic")
    if given[1] != then[1]:
        why = "field cannot be set once created" if given[1] else "field cannot be cleared once set"
        yield invalid(f"{path}.gang", None, why)


def _changed(spec: Raw, old: Raw | None, name: str) -> bool:
    if old is None or spec.get(name) == old.get(name):
        return False
    return spec.get(name) not in _ABSENT or old.get(name) not in _ABSENT


def _immutable(path: str) -> FieldError:
    return invalid(path, None, "field is immutable")
