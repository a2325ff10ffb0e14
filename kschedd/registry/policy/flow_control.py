"""Validation of FlowSchemas and PriorityLevelConfigurations, including the four mandatory objects.

Source: Kubernetes v1.34, pkg/apis/flowcontrol/validation/validation.go, pkg/apis/flowcontrol/bootstrap/default.go,
apiserver/pkg/util/shufflesharding.
The functions require objects that match the schema and have their defaults, and append errors to `faults`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, duplicate, forbidden, invalid, required, unsupported
from kschedd.api.schemas.schema import type_named
from kschedd.api.selecting.names import between, dns_label, dns_subdomain
from kschedd.registry.go_structs import go_struct
from kschedd.registry.same import same

Raw = dict[str, Any]
Faults = list[FieldError]

_EVERY: Final = ["*"]
_ALL_RULES: Final = {
    "resourceRules": [
        {"verbs": _EVERY, "apiGroups": _EVERY, "resources": _EVERY, "clusterScope": True, "namespaces": _EVERY}
    ],
    "nonResourceRules": [{"verbs": _EVERY, "nonResourceURLs": _EVERY}],
}


def _fixed_schema(level: str, precedence: int, *groups: str) -> Raw:
    subjects = [{"kind": "Group", "group": {"name": group}} for group in groups]
    rules = [{"subjects": subjects, **_ALL_RULES}]
    return {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence, "rules": rules}


_FIXED_SCHEMAS: Final[Mapping[str, Raw]] = {
    "exempt": _fixed_schema("exempt", 1, "system:masters"),
    "catch-all": {
        **_fixed_schema("catch-all", 10_000, "system:unauthenticated", "system:authenticated"),
        "distinguisherMethod": {"type": "ByUser"},
    },
}
_FIXED_LEVELS: Final[Mapping[str, Raw]] = {
    "exempt": {"type": "Exempt"},
    "catch-all": {
        "type": "Limited",
        "limited": {"nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"}},
    },
}

_LAST_PRECEDENCE: Final = 10_000
_METHODS: Final = ("ByNamespace", "ByUser")
_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_SUBJECTS: Final[Mapping[str, str]] = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
_ORDER_OF_SUBJECTS: Final = ("serviceAccount", "user", "group")  # order of the errors about unexpected subjects
_MOST_QUEUES: Final = 10_000_000
_HASH_BITS: Final = 60
_NOT_NEGATIVE: Final = "must be a non-negative integer"


def validate_flow_schema(item: Raw, faults: Faults) -> None:
    """Append the errors of a FlowSchema."""
    name, spec = (item.get("metadata") or {}).get("name") or "", item.get("spec") or {}
    precedence, at = spec.get("matchingPrecedence") or 0, "spec.matchingPrecedence"
    if precedence <= 0:
        faults.append(invalid(at, precedence, "must be a positive value"))
    if precedence > _LAST_PRECEDENCE:
        faults.append(invalid(at, precedence, f"must not be greater than {_LAST_PRECEDENCE}"))
    if precedence == 1 and name != "exempt":
        faults.append(invalid(at, precedence, "only the schema named 'exempt' may have matchingPrecedence 1"))
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in _METHODS:
        faults.append(unsupported("spec.distinguisherMethod.type", {"Type": method.get("type") or ""}, _METHODS))
    level, at = (spec.get("priorityLevelConfiguration") or {}).get("name"), "spec.priorityLevelConfiguration.name"
    if level:
        faults += [invalid(at, level, why) for why in dns_subdomain(level)]
    else:
        faults.append(required(at, "must reference a priority level"))
    for index, rule in enumerate(spec.get("rules") or ()):
        _rule(rule, f"spec.rules[{index}]", faults)
    fixed = _FIXED_SCHEMAS.get(name)
    if fixed is not None and not same(spec, fixed, type_named("flowcontrol.v1.FlowSchemaSpec")):
        shown = go_struct("flowcontrol.v1.FlowSchemaSpec", spec)
        faults.append(invalid("spec", shown, f"spec of '{name}' must equal the fixed value"))
    validate_flow_control_status(item, faults)


def _rule(rule: Raw, path: str, faults: Faults) -> None:
    subjects, resources, urls = (rule.get(field) or () for field in ("subjects", "resourceRules", "nonResourceRules"))
    for index, subject in enumerate(subjects):
        _subject(subject, f"{path}.subjects[{index}]", faults)
    if not subjects:
        faults.append(required(f"{path}.subjects", "subjects must contain at least one value"))
    if not resources and not urls:
        why = "at least one of resourceRules and nonResourceRules has to be non-empty"
        faults.append(required(path, why))
    for index, each in enumerate(resources):
        _resource_rule(each, f"{path}.resourceRules[{index}]", faults)
    for index, each in enumerate(urls):
        _url_rule(each, f"{path}.nonResourceRules[{index}]", faults)


def _subject(subject: Raw, path: str, faults: Faults) -> None:
    kind = subject.get("kind") or ""
    own = _SUBJECTS.get(kind)
    if own is None:
        faults.append(unsupported(f"{path}.kind", kind, _SUBJECTS))
        return
    given, at = subject.get(own), f"{path}.{own}"
    if given is None:
        faults.append(required(at, f"{own} is required when subject kind is '{kind}'"))
    else:
        name = given.get("name") or ""
        if not name:
            faults.append(required(f"{at}.name"))
        if kind == "ServiceAccount":
            if name and name != "*":
                faults += [invalid(f"{at}.name", name, why) for why in dns_subdomain(name)]
            if namespace := given.get("namespace"):
                faults += [invalid(f"{at}.namespace", namespace, why) for why in dns_label(namespace)]
            else:
                faults.append(required(f"{at}.namespace", "must specify namespace for service account"))
    for other in _ORDER_OF_SUBJECTS:
        if other != own and subject.get(other) is not None:
            right = other[0].upper() + other[1:]
            faults.append(forbidden(f"{path}.{other}", f"{other} is forbidden when subject kind is not '{right}'"))


def _verbs(rule: Raw, path: str, faults: Faults) -> None:
    verbs = rule.get("verbs") or []
    if not verbs:
        faults.append(required(f"{path}.verbs", "verbs must contain at least one value"))
    elif "*" in verbs:
        _alone(verbs, f"{path}.verbs", "verbs", faults)
    elif not set(verbs) <= set(_VERBS):
        faults.append(unsupported(f"{path}.verbs", verbs, _VERBS))


def _alone(values: Sequence[str], path: str, called: str, faults: Faults) -> None:
    if len(values) > 1 and "*" in values:
        faults.append(invalid(path, list(values), f"if '*' is present, must not specify other {called}"))


def _resource_rule(rule: Raw, path: str, faults: Faults) -> None:
    _verbs(rule, path, faults)
    for field, one, called in (("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")):
        values = rule.get(field) or []
        if not values:
            faults.append(required(f"{path}.{field}", f"resource rules must supply at least one {one}"))
        _alone(values, f"{path}.{field}", called, faults)
    namespaces, at = rule.get("namespaces") or [], f"{path}.namespaces"
    if not namespaces and not rule.get("clusterScope"):
        faults.append(required(at, "resource rules that are not cluster scoped must supply at least one namespace"))
    elif "*" in namespaces:
        _alone(namespaces, at, "namespaces", faults)
    else:
        for index, namespace in enumerate(namespaces):
            for why in dns_label(namespace):
                rule_of_each = f"each member of this list must be '*' or a DNS-1123 label; {why}"
                faults.append(invalid(f"{at}[{index}]", namespace, rule_of_each))


def _url_rule(rule: Raw, path: str, faults: Faults) -> None:
    _verbs(rule, path, faults)
    urls, at = rule.get("nonResourceURLs") or [], f"{path}.nonResourceURLs"
    if not urls:
        faults.append(required(at, "nonResourceURLs must contain at least one value"))
    elif "*" in urls:
        _alone(urls, at, "non-resource URLs", faults)
    else:
        for index, url in enumerate(urls):
            if why := _url_fault(url):
                faults.append(invalid(f"{at}[{index}]", url, why))


def _url_fault(url: str) -> str:
    if not url:
        return "must not be empty"
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    wildcards = url.count("*")
    if wildcards > 1 or (wildcards and not url.endswith("/*")):
        return "wildcard can only do suffix matching"
    return ""


def validate_priority_level(item: Raw, faults: Faults) -> None:
    """Append the errors of a PriorityLevelConfiguration."""
    name, spec = (item.get("metadata") or {}).get("name") or "", item.get("spec") or {}
    kind, limited, exempt = spec.get("type") or "", spec.get("limited"), spec.get("exempt")
    if (name == "exempt") != (kind == "Exempt"):
        faults.append(invalid("spec.type", kind, "type must be 'Exempt' if and only if name is 'exempt'"))
    if kind == "Exempt":
        if limited is not None:
            faults.append(forbidden("spec.limited", "must be nil if the type is not Limited"))
        if exempt is not None:
            _not_negative(exempt, "nominalConcurrencyShares", "spec.exempt", _NOT_NEGATIVE, faults)
            _lendable(exempt, "spec.exempt", faults)
    elif kind == "Limited":
        if exempt is not None:
            faults.append(forbidden("spec.exempt", "must be nil if the type is Limited"))
        if limited is None:
            faults.append(required("spec.limited", "must not be empty when type is Limited"))
        else:
            _limited(limited, "spec.limited", faults)
    else:
        faults.append(unsupported("spec.type", kind, ("Exempt", "Limited")))
    if name in _FIXED_LEVELS:
        _fixed_level(name, spec, faults)
    validate_flow_control_status(item, faults)


def _fixed_level(name: str, spec: Raw, faults: Faults) -> None:
    """Check that a mandatory priority level is unchanged; in the exempt level, one field may change."""
    free = name == "exempt"
    fixed = {**_FIXED_LEVELS[name], **({"exempt": spec["exempt"]} if free and "exempt" in spec else {})}
    if not same(spec, fixed, type_named("flowcontrol.v1.PriorityLevelConfigurationSpec")):
        shown = go_struct("flowcontrol.v1.PriorityLevelConfigurationSpec", spec)
        but = " except the 'spec.exempt' field" if free else ""
        faults.append(invalid("spec", shown, f"spec of '{name}'{but} must equal the fixed value"))


def _not_negative(part: Raw, field: str, path: str, why: str, faults: Faults) -> None:
    if (value := part.get(field)) is not None and value < 0:
        faults.append(invalid(f"{path}.{field}", value, why))


def _lendable(part: Raw, path: str, faults: Faults) -> None:
    percent = part.get("lendablePercent")
    if percent is not None and not 0 <= percent <= 100:
        faults.append(invalid(f"{path}.lendablePercent", percent, between(0, 100)))


def _limited(limited: Raw, path: str, faults: Faults) -> None:
    _not_negative(limited, "nominalConcurrencyShares", path, _NOT_NEGATIVE, faults)
    _response(limited.get("limitResponse") or {}, f"{path}.limitResponse", faults)
    _lendable(limited, path, faults)
    _not_negative(limited, "borrowingLimitPercent", path, f"if specified, {_NOT_NEGATIVE}", faults)


def _response(response: Raw, path: str, faults: Faults) -> None:
    kind, queuing, at = response.get("type") or "", response.get("queuing"), f"{path}.queuing"
    if kind == "Reject":
        if queuing is not None:
            faults.append(forbidden(at, "must be nil if limited.limitResponse.type is not Limited"))
    elif kind == "Queue":
        if queuing is None:
            faults.append(required(at, "must not be empty if limited.limitResponse.type is Limited"))
        else:
            _queuing(queuing, at, faults)
    else:
        faults.append(unsupported(f"{path}.type", kind, ("Queue", "Reject")))


def _queuing(queuing: Raw, path: str, faults: Faults) -> None:
    length, queues, hand = (queuing.get(field) or 0 for field in ("queueLengthLimit", "queues", "handSize"))
    if length <= 0:
        faults.append(invalid(f"{path}.queueLengthLimit", length, "must be positive"))
    if queues <= 0:
        faults.append(invalid(f"{path}.queues", queues, "must be positive"))
    elif queues > _MOST_QUEUES:
        faults.append(invalid(f"{path}.queues", queues, f"must not be greater than {_MOST_QUEUES}"))
    if why := _hand_fault(hand, queues):
        faults.append(invalid(f"{path}.handSize", hand, why))


def _hand_fault(hand: int, queues: int) -> str:
    if hand <= 0:
        return "must be positive"
    if hand > queues:
        return f"should not be greater than queues ({queues})"
    if math.ceil(math.log2(queues) * hand) > _HASH_BITS:
        return f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {_HASH_BITS}"
    return ""


def validate_flow_control_status(item: Mapping[str, Any], faults: Faults) -> None:
    """Append the errors in the conditions of a FlowSchema or a PriorityLevelConfiguration."""
    seen: set[str] = set()
    for index, condition in enumerate((item.get("status") or {}).get("conditions") or ()):
        kind, at = condition.get("type") or "", f"status.conditions[{index}].type"
        if kind in seen:
            faults.append(duplicate(at, kind))
        seen.add(kind)
        if not kind:
            faults.append(required(at))
