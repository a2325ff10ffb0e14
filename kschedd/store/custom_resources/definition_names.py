"""Accepted names of a CustomResourceDefinition: names that no other definition in its group uses.

The kind is served as soon as all its names have been accepted (condition `Established`). The kind stays served even if
other names conflict later. A definition that is not established waits until the conflicting definition is deleted.
Source: Kubernetes v1.34, apiextensions-apiserver/pkg/controller/status/naming_controller.go, establish.
"""

from collections.abc import Iterable
from typing import Any, Final

from kschedd.api.conditions import condition, is_true, with_condition
from kschedd.api.objects import Object, Raw

# Each name, with the reason for a conflict with another definition. Most of these names are resource names; the names
# in `_KINDS` are kinds.
_REASONS: Final = {
    "plural": "PluralConflict",
    "singular": "SingularConflict",
    "shortNames": "ShortNamesConflict",
    "kind": "KindConflict",
    "listKind": "ListKindConflict",
}
_KINDS: Final = ("kind", "listKind")
_ESTABLISHED: Final = "Established"


def is_established(definition: Object) -> bool:
    """Return whether the kind is served. A definition without an Established condition is treated as established."""
    found = condition(definition.raw.get("status") or {}, _ESTABLISHED)
    return found is None or found.get("status") != "False"


def with_accepted_names(definition: Raw, others: Iterable[Object], now: str) -> dict[str, Any]:
    """Return the definition with its accepted names, conditions and stored versions at `now`."""
    spec, status = definition.get("spec") or {}, definition.get("status") or {}
    requested, accepted = spec.get("names") or {}, dict(status.get("acceptedNames") or {})
    words, kinds = _taken(definition, others)
    shorts = requested.get("shortNames") or []
    conflict = ("", "")  # upstream reports only the last conflict
    for field, reason in _REASONS.items():
        name, taken = requested.get(field) or "", kinds if field in _KINDS else words
        if field == "shortNames":
            mine = accepted.get("shortNames") or ()
            if refused := [each for each in shorts if each in words and each not in mine]:
                conflict = reason, refused[0]
            elif shorts or mine:
                accepted["shortNames"] = shorts
        elif name in taken and name != accepted.get(field):
            conflict = reason, name
        else:
            accepted[field] = name
    if categories := requested.get("categories"):
        accepted["categories"] = categories
    reason, name = conflict
    conditions = status.get("conditions") or ()
    if not reason:
        made = [
            _condition("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
            _condition(_ESTABLISHED, "True", "InitialNamesAccepted", "the initial names have been accepted"),
        ]
    else:
        made = [_condition("NamesAccepted", "False", reason, f'"{name}" is already in use')]
        if not is_true(status, _ESTABLISHED):
            made.append(_condition(_ESTABLISHED, "False", "NotAccepted", "not all names are accepted"))
    for each in made:
        conditions = with_condition(conditions, each, now)
    stored = list(status.get("storedVersions") or ())
    for version in spec.get("versions") or ():
        if version.get("storage") and version.get("name") not in stored:
            stored.append(version.get("name"))
    return {**definition, "status": {"conditions": conditions, "acceptedNames": accepted, "storedVersions": stored}}


def _taken(definition: Raw, others: Iterable[Object]) -> tuple[set[str], set[str]]:
    """Return the resource names and the kind names that other definitions in the group use."""
    group, own = (definition.get("spec") or {}).get("group"), definition["metadata"].get("name")
    words: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        if other.spec.get("group") == group and other.name != own:
            names = (other.raw.get("status") or {}).get("acceptedNames") or other.spec.get("names") or {}
            words |= {names.get("plural") or "", names.get("singular") or "", *(names.get("shortNames") or ())}
            kinds |= {names.get(field) or "" for field in _KINDS}
    return words - {""}, kinds - {""}


def _condition(sort: str, status: str, reason: str, message: str) -> Raw:
    return {"type": sort, "status": status, "reason": reason, "message": message}
