"""Validation of ValidatingAdmissionPolicies and their bindings: match rules and required parts.

Expressions are required, but not compiled; audit annotations are only counted.
Source: Kubernetes v1.34, pkg/apis/admissionregistration/validation/validation.go.
The functions require objects that match the schema and have their defaults, and append errors to `faults`.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, duplicate, forbidden, invalid, required, unsupported
from kschedd.api.selecting.names import dns1035_label, dns_subdomain, path_segment
from kschedd.registry.policy.webhooks import validate_match_conditions, validate_rule_with_operations
from kschedd.registry.validation_selectors import validate_label_selector

Raw = dict[str, Any]
Faults = list[FieldError]

_FAILURE_POLICIES: Final = ("Fail", "Ignore")
_MATCH_POLICIES: Final = ("Equivalent", "Exact")
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS: Final = ("Audit", "Deny", "Warn")
_NOT_FOUND: Final = ("Deny", "Allow")
_EITHER: Final = "name and selector are mutually exclusive"
_TWICE: Final = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and "
    "headers serves no purpose)"
)
_NEITHER: Final = "validations or auditAnnotations must contain at least one item"
_MOST_ANNOTATIONS: Final = 20


def validate_policy(policy: Raw, faults: Faults) -> None:
    """Append the errors of a ValidatingAdmissionPolicy."""
    spec = policy.get("spec") or {}
    validate_policy_scope(spec, faults)
    validations, annotations = spec.get("validations") or (), spec.get("auditAnnotations") or ()
    if not validations and not annotations:
        faults += [required(f"spec.{field}", _NEITHER) for field in ("validations", "auditAnnotations")]
    for index, validation in enumerate(validations):
        _validate_validation(validation, f"spec.validations[{index}]", faults)
    if len(annotations) > _MOST_ANNOTATIONS:
        why = f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations"
        faults.append(invalid("spec.auditAnnotations", list(annotations), why))


def validate_policy_scope(spec: Mapping[str, Any], faults: Faults) -> None:
    """Append the errors in the match rules of a validating or mutating policy."""
    failure, constraints = spec.get("failurePolicy"), spec.get("matchConstraints")
    if failure is None:
        faults.append(required("spec.failurePolicy"))
    elif failure not in _FAILURE_POLICIES:
        faults.append(unsupported("spec.failurePolicy", failure, _FAILURE_POLICIES))
    if (kind := spec.get("paramKind")) is not None:
        _validate_param_kind(kind, faults)
    if constraints is None:
        faults.append(required("spec.matchConstraints"))
    else:
        _validate_match(constraints, "spec.matchConstraints", faults)
        if not constraints.get("resourceRules"):
            faults.append(required("spec.matchConstraints.resourceRules"))
    validate_match_conditions(spec.get("matchConditions") or (), "spec.matchConditions", faults)
    for index, variable in enumerate(spec.get("variables") or ()):
        for field in ("name", "expression"):
            if not (variable.get(field) or "").strip():
                faults.append(required(f"spec.variables[{index}].{field}", f"{field} is not specified"))


def validate_policy_binding(binding: Raw, faults: Faults) -> None:
    """Append the errors of a ValidatingAdmissionPolicyBinding."""
    spec = binding.get("spec") or {}
    validate_binding_target(spec, faults)
    _validate_actions(spec, faults)


def validate_binding_target(spec: Mapping[str, Any], faults: Faults) -> None:
    """Append the errors in the policy, the parameters and the resources of a binding."""
    policy = spec.get("policyName") or ""
    if not policy:
        faults.append(required("spec.policyName"))
    else:
        faults += [invalid("spec.policyName", policy, why) for why in dns_subdomain(policy)]
    if (param := spec.get("paramRef")) is not None:
        _validate_param_ref(param, "spec.paramRef", faults)
    if (match := spec.get("matchResources")) is not None:
        _validate_match(match, "spec.matchResources", faults)


def _validate_actions(spec: Raw, faults: Faults) -> None:
    actions, seen = spec.get("validationActions") or [], set()
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            faults.append(unsupported(f"spec.validationActions[{index}]", action, _ACTIONS))
        if action in seen:
            faults.append(duplicate(f"spec.validationActions[{index}]", action))
        seen.add(action)
    if {"Deny", "Warn"} <= set(actions):
        faults.append(invalid("spec.validationActions", actions, _TWICE))
    if not actions:
        faults.append(required("spec.validationActions", "at least one validation action is required"))


def _validate_param_ref(param: Raw, path: str, faults: Faults) -> None:
    name, selector, absent = param.get("name") or "", param.get("selector"), param.get("parameterNotFoundAction")
    both = bool(name) and selector is not None
    if name:
        faults += [invalid(f"{path}.name", name, why) for why in path_segment(name)]
        if both:
            faults.append(forbidden(f"{path}.name", _EITHER))
    if selector is not None:
        validate_label_selector(selector, f"{path}.selector", faults)
        if both:
            faults.append(forbidden(f"{path}.selector", _EITHER))
    if not name and selector is None:
        faults.append(required(path, "one of name or selector must be specified"))
    if not absent:
        faults.append(required(f"{path}.parameterNotFoundAction"))
    elif absent not in _NOT_FOUND:
        faults.append(unsupported(f"{path}.parameterNotFoundAction", absent, _NOT_FOUND))


def _validate_param_kind(param: Raw, faults: Faults) -> None:
    here, stated, kind = "spec.paramKind", param.get("apiVersion") or "", param.get("kind") or ""
    group, _, version = stated.rpartition("/")
    if not stated:
        faults.append(required(f"{here}.apiVersion"))
    elif stated.count("/") > 1:
        faults.append(invalid(f"{here}.apiVersion", stated, f"unexpected GroupVersion string: {stated}"))
    else:
        if group and (wrong := dns_subdomain(group)):
            faults.append(invalid(f"{here}.apiVersion", group, ",".join(wrong)))
        if not version:
            faults.append(invalid(f"{here}.apiVersion", stated, "version must be specified"))
        elif wrong := dns1035_label(version):
            faults.append(invalid(f"{here}.apiVersion", version, ",".join(wrong)))
    if not kind:
        faults.append(required(f"{here}.kind"))
    elif wrong := dns1035_label(kind.lower()):
        why = f"may have mixed case, but should otherwise match: {','.join(wrong)}"
        faults.append(invalid(f"{here}.kind", kind, why))


def _validate_match(match: Raw, path: str, faults: Faults) -> None:
    policy = match.get("matchPolicy")
    if policy is None:
        faults.append(required(f"{path}.matchPolicy"))
    elif policy not in _MATCH_POLICIES:
        faults.append(unsupported(f"{path}.matchPolicy", policy, _MATCH_POLICIES))
    for field in ("namespaceSelector", "objectSelector"):
        if match.get(field) is None:
            faults.append(required(f"{path}.{field}"))
        validate_label_selector(match.get(field), f"{path}.{field}", faults)
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(field) or ()):
            here, seen = f"{path}.{field}[{index}]", set()
            for number, name in enumerate(rule.get("resourceNames") or ()):
                faults += [invalid(f"{here}.resourceNames[{number}]", name, why) for why in path_segment(name)]
                if name in seen:
                    faults.append(duplicate(f"{here}.resourceNames[{number}]", name))
                seen.add(name)
            validate_rule_with_operations(rule, here, faults)


def _validate_validation(validation: Raw, path: str, faults: Faults) -> None:
    message, expression = validation.get("message") or "", validation.get("messageExpression") or ""
    if not (validation.get("expression") or "").strip():
        faults.append(required(f"{path}.expression", "expression is not specified"))
    if expression and not expression.strip():
        faults.append(invalid(f"{path}.messageExpression", expression, "must be non-empty if specified"))
    if message and not message.strip():
        faults.append(invalid(f"{path}.message", message, "message must be non-empty if specified"))
    elif "\n" in message.strip() or "\r" in message.strip():
        faults.append(invalid(f"{path}.message", message, "message must not contain line breaks"))
    reason = validation.get("reason")
    if reason is not None and reason not in _REASONS:
        faults.append(unsupported(f"{path}.reason", reason, _REASONS))
