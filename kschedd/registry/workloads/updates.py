"""Validation of updates of StatefulSets and Jobs: immutable fields.

Source: Kubernetes v1.34, pkg/apis/{apps,batch}/validation (the Validate*Update functions).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, forbidden, invalid
from kschedd.api.schemas.schema import type_named
from kschedd.registry.go_structs import go_selector, go_struct, go_template
from kschedd.registry.same import FIELD_IS_IMMUTABLE, same, same_in, without

Raw = Mapping[str, Any]
Faults = list[FieldError]


_STATEFUL_SET_MUTABLE: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


def _stateful_set(old: Raw, new: Raw, faults: Faults) -> None:
    before, after = (without(each.get("spec"), _STATEFUL_SET_MUTABLE) for each in (old, new))
    if not same(before, after, type_named("apps.v1.StatefulSetSpec")):
        fields = ", ".join(f"'{field}'" for field in _STATEFUL_SET_MUTABLE[:-1])
        last = _STATEFUL_SET_MUTABLE[-1]
        why = f"updates to statefulset spec for fields other than {fields} and '{last}' are forbidden"
        faults.append(forbidden("spec", why))


def _job(old: Raw, new: Raw, faults: Faults) -> None:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    completions = after.get("completions")
    if before.get("completions") != completions:
        if after.get("completionMode") != "Indexed":
            faults.append(invalid("spec.completions", completions, FIELD_IS_IMMUTABLE))
        elif completions is not None and completions != after.get("parallelism"):
            faults.append(
                invalid("spec.completions", completions, "can only be modified in tandem with spec.parallelism")
            )
    if before.get("suspend") and not (old.get("status") or {}).get("startTime"):
        before = {**before, "template": _directed(before.get("template") or {}, after.get("template") or {})}
    for field in _FIXED_OF_JOB:
        if not same_in(before, after, field, type_named("batch.v1.JobSpec")):
            faults.append(invalid(f"spec.{field}", _shown_of_job(field, after.get(field)), FIELD_IS_IMMUTABLE))


_FIXED_OF_JOB: Final = (
    "selector",
    "template",
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
)


def _directed(template: Raw, by: Raw) -> Raw:
    """Return a template with the scheduling directives of the other template; these may change until a Job starts."""
    meta, spec = _taking(template.get("metadata"), by.get("metadata"), ("labels", "annotations")), template.get("spec")
    now: Raw = by.get("spec") or {}
    spec = _taking(spec, now, ("nodeSelector", "tolerations", "schedulingGates"))
    affinity = _taking(spec.get("affinity"), now.get("affinity"), ("nodeAffinity",))
    if affinity or now.get("affinity") is not None:
        spec["affinity"] = affinity
    else:
        spec.pop("affinity", None)
    return {**template, "metadata": meta, "spec": spec}


def _taking(one: Raw | None, other: Raw | None, fields: tuple[str, ...]) -> dict[str, Any]:
    """Return `one` with these fields from `other`; a field that `other` lacks is removed."""
    taken = {field: (other or {}).get(field) for field in fields}
    held = {**(one or {}), **taken}
    return {field: value for field, value in held.items() if value is not None}


def _shown_of_job(field: str, value: Any) -> Any:
    if field == "template":
        return go_template(value or {}, "PodSpec")
    if field == "selector":
        return go_selector(value) if isinstance(value, Mapping) else value
    kind = {"podFailurePolicy": "batch.v1.PodFailurePolicy", "successPolicy": "batch.v1.SuccessPolicy"}.get(field)
    return value if value is None or kind is None else go_struct(kind, value)


UPDATES: Final[Mapping[str, Callable[[Raw, Raw, Faults], None]]] = {"StatefulSet": _stateful_set, "Job": _job}
