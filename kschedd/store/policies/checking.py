"""Checks of the expressions in admission policies and webhooks, when these objects are written.

Source: Kubernetes v1.37, pkg/apis/admissionregistration/validation/validation.go.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, duplicate, invalid, required
from kschedd.api.selecting.names import qualified_name
from kschedd.store.policies.compiled import Composition, compiled
from kschedd.store.policies.environment import policy_environment

Raw = Mapping[str, Any]
_NAME: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*", re.ASCII)
_RESERVED: Final = frozenset(
    "true false null in as break const continue else for function if import let loop package namespace return var void "
    "while".split()
)
_LONGEST_VALUE_EXPRESSION: Final = 5 * 1024
_SINCE_1_36: Final = frozenset(("fields_of_1_35",))
_BY_PATCH_TYPE: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "ApplyConfiguration": ("applyConfiguration", ("Object",)),
    "JSONPatch": ("jsonPatch", ("list(JSONPatch)",)),
}


def policy_faults(policy: Raw, features: frozenset[str]) -> list[FieldError]:
    """Return the errors in the expressions of a ValidatingAdmissionPolicy."""
    spec = policy.get("spec") or {}
    faults, composition = _common_faults(spec, features)
    for index, validation in enumerate(spec.get("validations") or ()):
        here = f"spec.validations[{index}]"
        faults += _faults(validation, "expression", here, composition, ("bool",))
        faults += _faults(validation, "messageExpression", here, composition, ("string",), authorizer=False)
    name, seen = (policy.get("metadata") or {}).get("name") or "", set[str]()
    for index, annotation in enumerate(spec.get("auditAnnotations") or ()):
        here, key = f"spec.auditAnnotations[{index}]", annotation.get("key") or ""
        faults += [invalid(f"{here}.key", f"{name}/{key}", why) for why in qualified_name(f"{name}/{key}")]
        text = (annotation.get("valueExpression") or "").strip()
        if not text:
            faults.append(required(f"{here}.valueExpression", "valueExpression is not specified"))
        elif len(text.encode(errors="replace")) > _LONGEST_VALUE_EXPRESSION:
            why = f"must not exceed {_LONGEST_VALUE_EXPRESSION} bytes in length"
            faults.append(required(f"{here}.valueExpression", why))
        else:
            faults += _faults(annotation, "valueExpression", here, composition, ("string", "null_type"))
        if key in seen:
            faults.append(duplicate(f"{here}.key", key))
        seen.add(key)
    return faults


def mutation_faults(spec: Raw) -> list[FieldError]:
    """Return the errors in the expressions of a MutatingAdmissionPolicy, which releases since 1.36 have."""
    faults, composition = _common_faults(spec, _SINCE_1_36, patches=True)
    for index, mutation in enumerate(spec.get("mutations") or ()):
        here = f"spec.mutations[{index}]"
        field, wanted = _BY_PATCH_TYPE.get(mutation.get("patchType") or "", ("", ()))
        part = mutation.get(field) or {}
        faults += _faults(part, "expression", f"{here}.{field}", composition, wanted, patches=True)
    return faults


def webhook_faults(configuration: Raw, features: frozenset[str]) -> list[FieldError]:
    """Return the errors in the match conditions of a webhook configuration."""
    webhooks = enumerate(configuration.get("webhooks") or ())
    return [
        fault
        for index, each in webhooks
        for fault in _condition_faults(each, f"webhooks[{index}].", features, params=False)
    ]


def _common_faults(
    spec: Raw, features: frozenset[str], *, patches: bool = False
) -> tuple[list[FieldError], Composition]:
    params = spec.get("paramKind") is not None
    faults = _condition_faults(spec, "spec.", features, params=params)
    composition = Composition(features, params)
    for index, variable in enumerate(spec.get("variables") or ()):
        here, name, text = f"spec.variables[{index}]", variable.get("name") or "", variable.get("expression") or ""
        if name.strip() and (not _NAME.fullmatch(name) or name in _RESERVED):
            faults.append(invalid(f"{here}.name", name, "must be a valid CEL identifier"))
        if text.strip() and (why := composition.add(name, text, patches=patches).why):
            faults.append(invalid(f"{here}.expression", text, why))
    return faults, composition


def _condition_faults(raw: Raw, path: str, features: frozenset[str], *, params: bool) -> list[FieldError]:
    faults = []
    for index, condition in enumerate(raw.get("matchConditions") or ()):
        environment = policy_environment(None, features, params=params)
        text = (condition.get("expression") or "").strip()
        if text and (why := compiled(text, environment, ("bool",)).why):
            faults.append(invalid(f"{path}matchConditions[{index}].expression", text, why))
    return faults


def _faults(
    raw: Raw,
    field: str,
    path: str,
    composition: Composition,
    wanted: Iterable[str],
    *,
    authorizer: bool = True,
    patches: bool = False,
) -> list[FieldError]:
    text = raw.get(field) or ""
    if not text.strip():
        return []
    environment = composition.environment(authorizer=authorizer, patches=patches)
    why = compiled(text.strip(), environment, tuple(wanted)).why
    return [invalid(f"{path}.{field}", text, why)] if why else []
