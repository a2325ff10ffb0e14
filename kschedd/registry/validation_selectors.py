"""Validation of selectors, affinity, topology spread constraints, tolerations and taints.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go and apimachinery meta/v1/validation.
The functions require values that match the schema, and append errors to `faults`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, duplicate, forbidden, invalid, required, unsupported
from kschedd.api.schemas.go_order import go_json
from kschedd.api.selecting.names import dns_label, dns_subdomain, label_value, qualified_name
from kschedd.api.selecting.requirements import DOES_NOT_EXIST, EXISTS, GT, IN, LT, NOT_IN
from kschedd.api.selecting.selectors import FIELD_OPERATORS, NODE_NAME, NODE_OPERATORS, parse_label_selector
from kschedd.registry.validation_meta import validate_labels

Raw = dict[str, Any]
Faults = list[FieldError]

LABEL_OPERATORS: Final = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST)
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_MANY: Final = 200  # minimum number of labels of a large selector; parsing each label takes 10 us
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def validate_label_selector(selector: Raw | None, path: str, faults: Faults) -> None:
    """Append the errors of a metav1.LabelSelector to `faults`.

    A selector with many terms is also parsed to fill the parser's cache: large objects are validated in a thread, but
    read on the event loop.
    """
    if not selector:
        return
    before = len(faults)
    if labels := selector.get("matchLabels"):
        validate_labels(labels, f"{path}.matchLabels", faults)
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        _validate_expression(expression, f"{path}.matchExpressions[{index}]", LABEL_OPERATORS, faults)
    if len(faults) == before and len(selector.get("matchLabels") or ()) > _MANY:
        parse_label_selector(selector)


def _validate_expression(
    expression: Raw, path: str, operators: Sequence[str], faults: Faults, *, any_value: bool = False
) -> None:
    operator = expression.get("operator", "")
    values = expression.get("values") or ()
    if operator not in operators:
        faults.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    elif operator in (IN, NOT_IN):
        if not values:
            faults.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in (EXISTS, DOES_NOT_EXIST):
        if values:
            why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            faults.append(forbidden(f"{path}.values", why))
    elif len(values) != 1:
        why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
        faults.append(required(f"{path}.values", why))
    key = expression.get("key", "")
    faults += [invalid(f"{path}.key", key, why) for why in qualified_name(key)]
    if not any_value:
        for index, value in enumerate(values):
            faults += [invalid(f"{path}.values[{index}]", value, why) for why in label_value(value)]


def validate_node_selector_term(term: Raw, path: str, faults: Faults, *, any_value: bool = False) -> None:
    """Validate a term; with `any_value` (for preferred terms), values need not be valid label values."""
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        here = f"{path}.matchExpressions[{index}]"
        _validate_expression(expression, here, NODE_OPERATORS, faults, any_value=any_value)
    for index, expression in enumerate(term.get("matchFields") or ()):
        here = f"{path}.matchFields[{index}]"
        operator = expression.get("operator", "")
        values = expression.get("values") or ()
        if operator not in FIELD_OPERATORS:
            faults.append(invalid(f"{here}.operator", operator, "not a valid selector operator"))
        elif len(values) != 1:
            why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            faults.append(required(f"{here}.values", why))
        key = expression.get("key", "")
        if key != NODE_NAME:
            faults.append(invalid(f"{here}.key", key, "not a valid field selector key"))
        else:
            for number, value in enumerate(values):
                faults += [invalid(f"{here}.values[{number}]", value, why) for why in dns_subdomain(value)]


def validate_node_selector(selector: Raw, path: str, faults: Faults) -> None:
    """Validate a NodeSelector in a pod's required node affinity, a PersistentVolume or a ResourceSlice."""
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        faults.append(required(f"{path}.nodeSelectorTerms", "must have at least one node selector term"))
    for index, term in enumerate(terms or ()):
        validate_node_selector_term(term, f"{path}.nodeSelectorTerms[{index}]", faults)


def _validate_weight(weighted: Raw, path: str, faults: Faults) -> None:
    weight = weighted.get("weight", 0)
    if not 1 <= weight <= 100:
        faults.append(invalid(f"{path}.weight", weight, "must be in the range 1-100"))


def validate_node_affinity(affinity: Raw, path: str, faults: Faults) -> None:
    if (selector := affinity.get(_REQUIRED)) is not None:
        validate_node_selector(selector, f"{path}.{_REQUIRED}", faults)
    for index, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        here = f"{path}.{_PREFERRED}[{index}]"
        _validate_weight(weighted, here, faults)
        validate_node_selector_term(weighted.get("preference") or {}, f"{here}.preference", faults, any_value=True)


def validate_affinity(affinity: Raw, path: str, faults: Faults) -> None:
    if node := affinity.get("nodeAffinity"):
        validate_node_affinity(node, f"{path}.nodeAffinity", faults)
    for side in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(side)
        if not terms:
            continue
        for index, term in enumerate(terms.get(_REQUIRED) or ()):
            _validate_pod_term(term, f"{path}.{side}.{_REQUIRED}[{index}]", faults)
        for index, weighted in enumerate(terms.get(_PREFERRED) or ()):
            here = f"{path}.{side}.{_PREFERRED}[{index}]"
            _validate_weight(weighted, here, faults)
            _validate_pod_term(weighted.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm", faults)


def _validate_pod_term(term: Raw, path: str, faults: Faults) -> None:
    selector = term.get("labelSelector")
    validate_label_selector(selector, f"{path}.labelSelector", faults)
    validate_label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector", faults)
    for namespace in term.get("namespaces") or ():
        faults += [invalid(f"{path}.namespace", namespace, why) for why in dns_label(namespace)]
    match, mismatch = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    if match or mismatch:
        _validate_label_keys(match, selector, f"{path}.matchLabelKeys", faults)
        _validate_label_keys(mismatch, selector, f"{path}.mismatchLabelKeys", faults)
        _validate_merged(match, selector, path, faults)
        for index, key in enumerate(match):
            if key in mismatch:
                why = "exists in both matchLabelKeys and mismatchLabelKeys"
                faults.append(invalid(f"{path}.matchLabelKeys[{index}]", key, why))
    key = term.get("topologyKey", "")
    if not key:
        faults.append(required(f"{path}.topologyKey", "can not be empty"))
    faults += [invalid(f"{path}.topologyKey", key, why) for why in qualified_name(key)]


def _validate_label_keys(keys: Sequence[str], selector: Raw | None, path: str, faults: Faults) -> None:
    if not keys:
        return
    if selector is None:
        faults.append(forbidden(path, "must not be specified when labelSelector is not set"))
        return
    for index, key in enumerate(keys):
        faults += [invalid(f"{path}[{index}]", key, why) for why in qualified_name(key)]


def _validate_merged(keys: Sequence[str], selector: Raw | None, path: str, faults: Faults) -> None:
    """Validate matchLabelKeys that were merged into the selector; the original selector must not contain their keys."""
    if selector is None or not keys:
        return
    places = {key: index for index, key in enumerate(keys)}
    stated = set(selector.get("matchLabels") or ())
    for expression in selector.get("matchExpressions") or ():
        key = expression.get("key", "")
        if key in places and key in stated:
            faults.append(invalid(f"{path}[{places[key]}]", key, "exists in both matchLabelKeys and labelSelector"))
        stated.add(key)


_NOT_POSITIVE: Final = "must be greater than zero"
_POLICIES: Final = ("Honor", "Ignore")
_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")


def validate_spread(constraints: Sequence[Raw], path: str, faults: Faults) -> None:
    """Validate topologySpreadConstraints."""
    sorts = [(each.get("topologyKey", ""), each.get("whenUnsatisfiable", "")) for each in constraints]
    last = {each: index for index, each in enumerate(sorts)}
    for index, constraint in enumerate(constraints):
        here = f"{path}[{index}]"
        skew = constraint.get("maxSkew", 0)
        if skew <= 0:
            faults.append(invalid(f"{here}.maxSkew", skew, _NOT_POSITIVE))
        key, action = sorts[index]
        if not key:
            faults.append(required(f"{here}.topologyKey", "can not be empty"))
        if action not in _ACTIONS:
            faults.append(unsupported(f"{here}.whenUnsatisfiable", action, _ACTIONS))
        if last[sorts[index]] > index:
            faults.append(duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        domains = constraint.get("minDomains")
        if domains is not None:
            if domains <= 0:
                faults.append(invalid(f"{here}.minDomains", domains, _NOT_POSITIVE))
            if action != "DoNotSchedule":
                why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                faults.append(invalid(f"{here}.minDomains", domains, why))
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            policy = constraint.get(field)
            if policy is not None and policy not in _POLICIES:
                faults.append(unsupported(f"{here}.{field}", policy, _POLICIES))
        selector = constraint.get("labelSelector")
        keys = constraint.get("matchLabelKeys") or ()
        _validate_label_keys(keys, selector, f"{here}.matchLabelKeys", faults)
        _validate_merged(keys, selector, here, faults)
        validate_label_selector(selector, f"{here}.labelSelector", faults)


def validate_tolerations(tolerations: Sequence[Raw], path: str, faults: Faults) -> None:
    for index, toleration in enumerate(tolerations):
        here = f"{path}[{index}]"
        key = toleration.get("key") or ""
        operator = toleration.get("operator") or ""
        value = toleration.get("value") or ""
        effect = toleration.get("effect") or ""
        if key:
            faults += [invalid(f"{here}.key", key, why) for why in qualified_name(key)]
        elif operator != "Exists":
            why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            faults.append(invalid(f"{here}.operator", operator, why))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            faults.append(invalid(f"{here}.effect", effect, why))
        if operator in ("", "Equal"):
            if wrong := label_value(value):
                faults.append(invalid(f"{here}.operator", value, ";".join(wrong)))
        elif operator != "Exists":
            faults.append(unsupported(f"{here}.operator", operator, ("Equal", "Exists")))
        elif value:
            faults.append(invalid(f"{here}.operator", value, "value must be empty when `operator` is 'Exists'"))
        if effect and effect not in EFFECTS:
            faults.append(unsupported(f"{here}.effect", effect, EFFECTS))


def validate_taints(taints: Sequence[Raw], path: str, faults: Faults) -> None:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        here = f"{path}[{index}]"
        key = taint.get("key") or ""
        effect = taint.get("effect") or ""
        value = taint.get("value") or ""
        faults += [invalid(f"{here}.key", key, why) for why in qualified_name(key)]
        if wrong := label_value(value):
            faults.append(invalid(f"{here}.value", value, ";".join(wrong)))
        if not effect:
            faults.append(required(f"{here}.effect"))
        elif effect not in EFFECTS:
            faults.append(unsupported(f"{here}.effect", effect, EFFECTS))
        if (key, effect) in seen:
            shown = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            why = f"Duplicate value: {go_json(shown)}: taints must be unique by key and effect pair"
            faults.append(FieldError(here, taint, why))
        seen.add((key, effect))


def label_selector_problems(selector: Raw | None, path: str) -> Faults:
    """Return the errors of a label selector that matches the schema."""
    return _collected(validate_label_selector, selector, path)


def node_selector_problems(selector: Raw, path: str) -> Faults:
    """Return the errors of a node selector that matches the schema."""
    return _collected(validate_node_selector, selector, path)


def _collected(check: Callable[[Any, str, Faults], None], value: Any, path: str) -> Faults:
    faults: Faults = []
    check(value, path, faults)
    return faults


__all__ = [
    "EFFECTS",
    "GT",
    "LABEL_OPERATORS",
    "LT",
    "label_selector_problems",
    "node_selector_problems",
    "validate_affinity",
    "validate_label_selector",
    "validate_node_affinity",
    "validate_node_selector",
    "validate_node_selector_term",
    "validate_spread",
    "validate_taints",
    "validate_tolerations",
]
