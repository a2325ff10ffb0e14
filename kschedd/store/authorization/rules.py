"""Rules of roles: which requests a rule allows, and which rules others cover.

Source: Kubernetes v1.37, pkg/apis/rbac/v1/evaluation_helpers.go, component-helpers/auth/rbac/validation,
pkg/registry/rbac/validation/policy_compact.go.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kschedd.access.requests import AccessRequest

Raw = Mapping[str, Any]
_FIELDS: Final = ("apiGroups", "resources", "nonResourceURLs", "resourceNames", "verbs")


def rule_allows(rule: Raw, request: AccessRequest) -> bool:
    """Return whether the rule allows the request; the namespace of the rule is not checked."""
    if not _has(rule.get("verbs"), request.verb):
        return False
    if request.path:
        return any(_covers_path(path, request.path) for path in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames")
    return (
        _has(rule.get("apiGroups"), request.group)
        and _has_resource(rule.get("resources") or (), request.combined_resource, request.subresource)
        and (not names or request.name in names)
    )


def _has(values: Sequence[str] | None, wanted: str) -> bool:
    return bool(values) and ("*" in values or wanted in values)  # type: ignore[operator]  # not None


def _has_resource(resources: Sequence[str], combined: str, subresource: str) -> bool:
    if "*" in resources or combined in resources:
        return True
    return bool(subresource) and f"*/{subresource}" in resources


def _covers_path(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


# -- escalation -------------------------------------------------------------------------------------------------------


def missing_rules(held: Sequence[Raw], wanted: Iterable[Raw]) -> list[str]:
    """Return descriptions of the permissions in `wanted` that `held` does not cover, sorted; [] if there are none."""
    parts = [part for rule in wanted for part in _parts(rule)]
    missing = [part for part in parts if not any(_covers(rule, part) for rule in held)]
    return sorted({_described(rule) for rule in _compacted(missing)})


def _parts(rule: Raw) -> list[dict[str, list[str]]]:
    """Return equivalent rules with one group, resource, name and verb, or with one path and verb."""
    found: list[dict[str, list[str]]] = []
    verbs, names = rule.get("verbs") or (), rule.get("resourceNames") or ()
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in verbs:
                part = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                found += [{**part, "resourceNames": [name]} for name in names] or [part]
    for path in rule.get("nonResourceURLs") or ():
        found += [{"nonResourceURLs": [path], "verbs": [verb]} for verb in verbs]
    return found


def _covers(rule: Raw, part: Raw) -> bool:
    names, paths = rule.get("resourceNames") or (), rule.get("nonResourceURLs") or ()
    wanted_names = part.get("resourceNames") or ()
    return (
        _has_all(rule.get("verbs") or (), part["verbs"])
        and _has_all(rule.get("apiGroups") or (), part.get("apiGroups") or ())
        and _has_all_resources(rule.get("resources") or (), part.get("resources") or ())
        and all(_path_within(path, paths) for path in part.get("nonResourceURLs") or ())
        and (not names or (bool(wanted_names) and all(name in names for name in wanted_names)))
    )


def _has_all(values: Sequence[str], wanted: Iterable[str]) -> bool:
    return "*" in values or all(value in values for value in wanted)


def _has_all_resources(resources: Sequence[str], wanted: Iterable[str]) -> bool:
    if "*" in resources:
        return True
    return all(each in resources or ("/" in each and f"*/{each.partition('/')[2]}" in resources) for each in wanted)


def _path_within(path: str, held: Iterable[str]) -> bool:
    return any(each == path or (each.endswith("*") and path.startswith(each.rstrip("*"))) for each in held)


def _compacted(rules: Iterable[Raw]) -> list[Raw]:
    """Return the rules with the verbs of one group, resource and name combined."""
    combined: dict[tuple[str, ...], dict[str, list[str]]] = {}
    others: list[Raw] = []
    for rule in rules:
        if "resources" not in rule:
            others.append(rule)
            continue
        key = (rule["apiGroups"][0], rule["resources"][0], *(rule.get("resourceNames") or ()))
        known = combined.setdefault(key, {**rule, "verbs": []})
        known["verbs"] = [*known["verbs"], *rule["verbs"]]
    return [*others, *combined.values()]


def _described(rule: Raw) -> str:
    parts = [
        f"{field[0].upper()}{field[1:]}:[{' '.join(json.dumps(value, ensure_ascii=False) for value in rule[field])}]"
        for field in _FIELDS
        if rule.get(field)
    ]
    return f"{{{', '.join(parts)}}}".replace("ApiGroups:", "APIGroups:")
