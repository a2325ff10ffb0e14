"""Validation of pod updates: only a few fields of a pod's spec may change after creation.

A plain update may change images, shorten activeDeadlineSeconds, add tolerations and remove scheduling gates. For a
gated pod it may also narrow nodeSelector and node affinity. All fields without such a rule must be unchanged.
Source: Kubernetes v1.34, ValidatePodUpdate in pkg/apis/core/validation/validation.go.
The functions require specs that have their defaults.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, forbidden, invalid, required
from kschedd.api.schemas.schema import type_named
from kschedd.registry.go_structs import go_diff
from kschedd.registry.same import same, same_in
from kschedd.registry.validation_selectors import validate_tolerations

Raw = Mapping[str, Any]
Faults = list[FieldError]

MOST_SECONDS: Final = 2**31 - 1
_MUTABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_TERMS: Final = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def validate_pod_update(old: Raw, new: Raw) -> Faults:
    """Return the errors of a plain update: changes to immutable fields of a pod's spec."""
    if old == new:
        return []
    faults: Faults = []
    rest = dict(new)
    for field in ("containers", "initContainers"):
        before, after = old.get(field) or [], new.get(field) or []
        if len(before) != len(after):
            faults.append(forbidden(f"spec.{field}", "pod updates may not add or remove containers"))
            return faults
        faults += _image_faults(after, f"spec.{field}")
        if _without(before, "image") == _without(after, "image"):
            _keep(rest, old, field)
    if not _deadline(old.get("activeDeadlineSeconds"), new.get("activeDeadlineSeconds"), faults):
        return faults
    tolerations = new.get("tolerations") or []
    if not set(map(_bare, old.get("tolerations") or ())) <= set(map(_bare, tolerations)):
        why = "existing toleration can not be modified except its tolerationSeconds"
        faults.append(forbidden("spec.tolerations", why))
    else:
        # Validated again, because added tolerations may be invalid.
        validate_tolerations(tolerations, "spec.tolerations", faults)
    gates, gated = new.get("schedulingGates") or [], old.get("schedulingGates") or []
    last = {gate.get("name", ""): index for index, gate in enumerate(gates)}
    for name, index in last.items():
        if name not in {gate.get("name", "") for gate in gated}:
            why = f"only deletion is allowed, but found new scheduling gate '{name}'"
            faults.append(forbidden(f"spec.schedulingGates[{index}].name", why))
    for field in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        _keep(rest, old, field)
    if (old.get("terminationGracePeriodSeconds") or 0) < 0 and new.get("terminationGracePeriodSeconds") == 1:
        _keep(rest, old, "terminationGracePeriodSeconds")
    if gated:
        _narrowed(old, new, rest, faults)
    _restore(rest, old, "image")
    if not same(rest, old, type_named("PodSpec")):
        faults.append(forbidden("spec", f"{_MUTABLE}\n{go_diff('PodSpec', old, rest)}"))
    return faults


def _image_faults(containers: Sequence[Raw], path: str) -> Faults:
    faults = []
    for index, container in enumerate(containers):
        image = container.get("image") or ""
        if not image:
            faults.append(required(f"{path}[{index}].image"))
        elif image.strip() != image:
            faults.append(invalid(f"{path}[{index}].image", image, "must not have leading or trailing whitespace"))
    return faults


def _without(containers: Sequence[Raw], *fields: str) -> list[Any]:
    return [{name: value for name, value in c.items() if name not in fields} for c in containers]


def _deadline(before: int | None, after: int | None, faults: Faults) -> bool:
    """Append the errors of a changed activeDeadlineSeconds; return False if the change is not allowed."""
    path = "spec.activeDeadlineSeconds"
    if after is None:
        if before is not None:
            faults.append(invalid(path, None, "must not update from a positive integer to nil value"))
    elif not 0 <= after <= MOST_SECONDS:
        faults.append(invalid(path, after, f"must be between 0 and {MOST_SECONDS}, inclusive"))
        return False
    elif before is not None and after > before:
        faults.append(invalid(path, after, "must be less than or equal to previous value"))
        return False
    return True


def _bare(toleration: Raw) -> tuple[str, ...]:
    """Return the fields of a toleration without tolerationSeconds."""
    return tuple(toleration.get(field) or "" for field in ("key", "operator", "value", "effect"))


def _keep(rest: dict[str, Any], old: Raw, field: str) -> None:
    if field in old:
        rest[field] = old[field]
    else:
        rest.pop(field, None)


def _restore(rest: dict[str, Any], old: Raw, *fields: str) -> None:
    """Restore the old values of the containers' mutable fields, so that a diff shows only other fields."""
    for kind in ("containers", "initContainers"):
        before, after = old.get(kind) or (), rest.get(kind) or ()
        if after:
            pairs = zip(before, _without(after, *fields), strict=True)
            rest[kind] = [{**now, **{field: then[field] for field in fields if field in then}} for then, now in pairs]


def _narrowed(old: Raw, new: Raw, rest: dict[str, Any], faults: Faults) -> None:
    """Check that a gated pod's node selector only gains terms, and its required node affinity only becomes stricter."""
    selector, before = new.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    if any(selector.get(key) != value for key, value in before.items()):
        why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        faults.append(invalid("spec.nodeSelector", selector, why))
    _keep(rest, old, "nodeSelector")
    affinity, had = new.get("affinity") or {}, old.get("affinity") or {}
    if same_in(had, affinity, "nodeAffinity", type_named("Affinity")):
        return
    _validate_stricter(_required(had), _required(affinity), faults)
    others, kept = _others(affinity), {name: value for name, value in had.items() if name == "nodeAffinity"}
    if "affinity" in old or others:
        rest["affinity"] = {**others, **kept}
    else:
        del rest["affinity"]


def _validate_stricter(before: Sequence[Raw], terms: Sequence[Raw], faults: Faults) -> None:
    """Check that each term of a required node affinity only gains requirements; without old terms, all are allowed."""
    if before and len(terms) != len(before):
        why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        faults.append(invalid(_TERMS, terms, why))
        return
    for index, (then, now) in enumerate(zip(before, terms, strict=False)):
        if not _only_added(then, now):
            why = "only additions are allowed (no mutations or deletions)"
            faults.append(invalid(f"{_TERMS}[{index}]", now, why))


def _others(affinity: Raw) -> Raw:
    return {name: value for name, value in affinity.items() if name != "nodeAffinity"}


def _required(affinity: Raw) -> list[Raw]:
    required_terms = (affinity.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return list(required_terms.get("nodeSelectorTerms") or ())


def _only_added(then: Raw, now: Raw) -> bool:
    fields = ("matchExpressions", "matchFields")
    if not any(then.get(field) for field in fields):
        return not any(now.get(field) for field in fields)
    return all((now.get(field) or [])[: len(then.get(field) or ())] == (then.get(field) or []) for field in fields)
