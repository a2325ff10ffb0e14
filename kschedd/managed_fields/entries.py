"""Conversion between the entries of metadata.managedFields and the field sets of the field managers.

The identifier of a field manager is its entry without fields and time, in JSON. For an applier, the identifier also
omits the apiVersion, so that it is the same for every version. At most ten updaters have an entry of their own; the
entries of the updaters whose last write is oldest are merged into `ancient-changes`.

Source: Kubernetes v1.34, apimachinery/pkg/util/managedfields/internal (managedfields.go, capmanagers.go, conflict.go).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.text.times import micros
from kschedd.managed_fields.field_set import (
    FieldSet,
    difference,
    fields_v1,
    intersection,
    path_text,
    read_fields_v1,
    set_of,
    union,
    union_of,
)
from kschedd.managed_fields.updater import ManagedSet

Entry = Mapping[str, Any]

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
APPLY: Final = "Apply"
UPDATE: Final = "Update"
_FIELDS_TYPE: Final = "FieldsV1"
_MOST_UPDATERS: Final = 10
_ANCIENT: Final = "ancient-changes"


@attrs.frozen
class Managed:
    """The field managers of an object, and the time of the latest write by each of them.

    The keys are identifiers of field managers.
    """

    sets: Mapping[str, ManagedSet] = attrs.field(factory=dict)
    times: Mapping[str, str] = attrs.field(factory=dict)

    def with_sets(self, sets: Mapping[str, ManagedSet]) -> "Managed":
        return Managed(sets, {name: at for name, at in self.times.items() if name in sets})

    def at(self, manager: str, when: str) -> "Managed":
        return Managed(self.sets, {**self.times, manager: when}) if manager in self.sets else self


def identifier(manager: str, operation: str, api_version: str, subresource: str) -> str:
    """Return the identifier of a field manager."""
    found = {"manager": manager, "operation": operation}
    if operation == UPDATE:
        found["apiVersion"] = api_version
    if subresource:
        found["subresource"] = subresource
    return json.dumps({name: text for name, text in found.items() if text})


def read_entries(entries: Any) -> Managed:
    """Return the field managers in these entries. Raises ValueError if the entries are invalid."""
    if not isinstance(entries, list | tuple | None):
        raise ValueError("managedFields is a list")
    sets, times = {}, {}
    for entry in entries or ():
        name, found = _read(entry)
        sets[name] = found
        if entry.get("time"):
            times[name] = str(entry["time"])
    return Managed(sets, times)


def _read(entry: Entry) -> tuple[str, ManagedSet]:
    operation, api_version = entry.get("operation"), entry.get("apiVersion")
    if operation not in (APPLY, UPDATE):
        raise ValueError("operation must be `Apply` or `Update`")
    if not api_version:
        raise ValueError("apiVersion must not be empty")
    if entry.get("fieldsType") != _FIELDS_TYPE:
        raise ValueError("fieldsType must be FieldsV1")
    fields = read_fields_v1(entry.get("fieldsV1") or {})
    name = identifier(str(entry.get("manager") or ""), operation, str(api_version), str(entry.get("subresource") or ""))
    return name, ManagedSet(fields, str(api_version), operation == APPLY)


def write_entries(managed: Managed) -> list[dict[str, Any]]:
    """Return the entries in upstream's order: appliers first, then sorted by time and name."""
    made = []
    for name, theirs in managed.sets.items():
        entry: dict[str, Any] = {**json.loads(name), "apiVersion": theirs.api_version}
        if name in managed.times:
            entry["time"] = managed.times[name]
        entry |= {"fieldsType": _FIELDS_TYPE, "fieldsV1": fields_v1(theirs.fields)}
        made.append({field: entry[field] for field in _ORDER if field in entry})
    return sorted(made, key=_place)


_ORDER: Final[tuple[str, ...]] = ("manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource")


def _place(entry: Entry) -> tuple[Any, ...]:
    texts = tuple(entry.get(field) or "" for field in ("manager", "apiVersion", "subresource"))
    return (entry["operation"], _seconds(entry.get("time")), *texts)


def _seconds(at: str | None) -> int:
    try:
        return micros(at) // 1_000_000 if at else 0
    except ValueError:
        return 0


def capped(managed: Managed) -> Managed:
    """Limit the updaters to ten: those whose last write is oldest are merged into one."""
    updaters = [name for name, theirs in managed.sets.items() if not theirs.applied]
    over = len(updaters) - _MOST_UPDATERS
    if over <= 0:
        return managed
    sets, times = dict(managed.sets), dict(managed.times)
    updaters.sort(key=lambda name: (_seconds(times.get(name)), name))
    first: dict[str, str] = {}
    together: dict[str, list[FieldSet]] = {}
    for name in updaters:
        if over <= 0:
            break
        theirs = sets[name]
        bucket = identifier(_ANCIENT, UPDATE, theirs.api_version, "")
        if theirs.api_version not in first:
            first[theirs.api_version] = name
            continue
        if bucket not in sets:
            sets[bucket] = sets.pop(first[theirs.api_version])
        together.setdefault(bucket, [sets[bucket].fields]).append(theirs.fields)
        sets[bucket] = theirs
        if name != bucket:
            del sets[name]
        over -= 1
        if name in times:
            times[bucket] = times[name]
    for bucket, fields in together.items():
        sets[bucket] = attrs.evolve(sets[bucket], fields=union_of(fields))
    return Managed(sets, times).with_sets(sets)


def is_reset(entries: Any) -> bool:
    """Return whether the entries consist of one empty entry, which requests the removal of all ownership."""
    return isinstance(entries, Sequence) and len(entries) == 1 and not entries[0]


def without_times(entries: Any) -> list[dict[str, Any]]:
    return [{name: value for name, value in entry.items() if name != "time"} for entry in entries or ()]


def manager_text(name: str) -> str:
    """Return the name of the field manager in the form that messages about conflicts contain."""
    entry = json.loads(name)
    text = json.dumps(entry.get("manager", ""), ensure_ascii=False)
    if entry.get("subresource"):
        text += f' with subresource "{entry["subresource"]}"'
    return f"{text} using {entry['apiVersion']}" if entry["operation"] == UPDATE else text


def conflict_causes(conflicts: Mapping[str, FieldSet]) -> list[tuple[str, str]]:
    """Return the field and the message of each conflict."""
    return [
        (path_text(path), f"conflict with {manager_text(name)}")
        for name in sorted(conflicts)
        for path in conflicts[name].paths()
    ]


def conflict_message(conflicts: Mapping[str, FieldSet]) -> str:
    paths = {name: [path_text(path) for path in conflicts[name].paths()] for name in sorted(conflicts)}
    number = sum(map(len, paths.values()))
    if number == 1:
        ((name, (path,)),) = paths.items()
        return f"Apply failed with 1 conflict: conflict with {manager_text(name)}: {path}"
    lines = []
    for name, theirs in paths.items():
        lines += [f"conflicts with {manager_text(name)}:", *(f"- {path}" for path in theirs)]
    return f"Apply failed with {number} conflicts: " + "\n".join(lines)


_ANNOTATION: Final = set_of(("f:metadata", "f:annotations", f"f:{LAST_APPLIED}"))
_STAYS: Final = union(_ANNOTATION, set_of(("f:metadata", "f:annotations")))


def migrated(entries: Any, manager: str) -> list[dict[str, Any]] | None:
    """Return the entries after client-side apply's fields were moved to an Apply entry of `manager`; None without any.

    Client-side apply owns the fields of each manager that updated the annotation with the last applied configuration.
    kubectl moves them when the object is applied by server-side apply, so that a field is removed together with its
    last manifest, whichever kind of apply created it. kubectl keeps the annotation under a separate manager.
    Source: client-go v0.34, util/csaupgrade (UpgradeManagedFields).
    """
    managed = read_entries(entries)
    names = {name: json.loads(name) for name in managed.sets}
    former = {
        names[name]["manager"]
        for name, theirs in managed.sets.items()
        if not theirs.applied and intersection(theirs.fields, _ANNOTATION)
    }
    goes = [
        name
        for name, theirs in managed.sets.items()
        if not theirs.applied and names[name]["manager"] in former and "subresource" not in names[name]
    ]
    if not goes:
        return None
    comes = identifier(manager, APPLY, "", "")
    sets, times = dict(managed.sets), dict(managed.times)
    for name in goes:
        theirs = sets.pop(name)
        fields = difference(theirs.fields, _STAYS)
        mine = sets.get(comes)
        sets[comes] = ManagedSet(fields if mine is None else union(mine.fields, fields), theirs.api_version, True)
        times.setdefault(comes, times.get(name, ""))
    return write_entries(Managed(sets, {name: at for name, at in times.items() if at}).with_sets(sets))
