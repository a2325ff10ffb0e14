"""The field manager: the managedFields of an object after a write, and the result of an apply.

Objects are passed in their stored form. An object without entries has no field managers. If an object has no entries,
an update adds none; the first apply assigns all existing fields to `before-first-apply`. No field manager owns the
fields that a strategy resets (see `kept`), because a write cannot change them.

Only `kubectl` takes over, without `force`, the fields that its client-side apply wrote according to the annotation.
An apply that takes over these fields also updates the annotation.

Source: Kubernetes v1.34, apimachinery/pkg/util/managedfields/internal (fieldmanager.go, structuredmerge.go,
stripmeta.go, skipnonapplied.go, lastappliedmanager.go, lastappliedupdater.go, versioncheck.go).
Raises: `ApplyRefused`, `Conflicted`.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

from kschedd.api.schemas.codec import encoded
from kschedd.api.schemas.schema import Schema
from kschedd.api.text.json_text import json_value
from kschedd.managed_fields.comparing import compare
from kschedd.managed_fields.entries import (
    APPLY,
    LAST_APPLIED,
    UPDATE,
    Managed,
    capped,
    identifier,
    is_reset,
    read_entries,
    write_entries,
)
from kschedd.managed_fields.field_set import FieldSet, difference, set_of, union
from kschedd.managed_fields.typed import TypedErrors, field_set_of, validate
from kschedd.managed_fields.updater import Conflicted, Filter, ManagedSet, after_apply, after_update

Raw = Mapping[str, Any]

_KUBECTL: Final = "kubectl"
_BEFORE_FIRST_APPLY: Final = "before-first-apply"
UNKNOWN: Final = "unknown"
_SELF: Final = "current-operation"
_ESCAPED: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})  # escapes of Go's JSON encoder
_LARGEST_ANNOTATIONS: Final = 256 << 10
_SERVER_SET: Final = set_of(
    ("f:apiVersion",),
    ("f:kind",),
    ("f:metadata",),
    *(
        ("f:metadata", f"f:{name}")
        for name in (
            *("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation"),
            *("managedFields", "resourceVersion"),
        )
    ),
)


class ApplyRefused(Exception):
    """The configuration cannot be applied; the error contains upstream's HTTP status code."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code
        self.why = why


@attrs.frozen(eq=False)
class FieldWrite:
    """A write to an object: field manager, kind, schema and version, subresource ("" for the object), and time."""

    manager: str
    kind: str
    schema: Schema
    api_version: str
    subresource: str
    at: str
    kept: Filter = lambda fields: fields

    def identifier(self, operation: str) -> str:
        return identifier(self.manager or UNKNOWN, operation, self.api_version, self.subresource)


def after_write(live: Raw | None, new: Raw, write: FieldWrite) -> list[dict[str, Any]]:
    """Return the managedFields after `new` has replaced `live` (None for a new object)."""
    managed = _base(live, new, write.subresource)
    if live is not None and not managed.sets:
        return []
    return write_entries(_updated(live, new, managed, write))


def _base(live: Raw | None, new: Raw, subresource: str) -> Managed:
    """Return the field managers before a write: from the new object's entries if valid, otherwise the live object's."""
    given = (new.get("metadata") or {}).get("managedFields")
    if not subresource and given:
        if is_reset(given):
            return Managed()
        try:
            return read_entries(given)
        except (ValueError, AttributeError):
            pass  # a client that cannot write valid managedFields must not destroy them, as in Kubernetes
    return Managed() if live is None else _live_entries(live)


def _live_entries(live: Raw) -> Managed:
    return read_entries((live.get("metadata") or {}).get("managedFields"))


def _updated(live: Raw | None, new: Raw, managed: Managed, write: FieldWrite) -> Managed:
    name = write.identifier(UPDATE)
    before = _bare(live) if live is not None else _nothing(write)
    sets = after_update(before, _bare(new), write.schema, managed.sets, _SELF, write.api_version, write.kept)
    own = sets.pop(_SELF, None)
    taken = FieldSet() if own is None else difference(own.fields, _SERVER_SET)
    if not taken:
        return capped(managed.with_sets(sets))
    previous = sets[name].fields if name in sets else FieldSet()
    sets[name] = ManagedSet(union(taken, previous), write.api_version, applied=False)
    return capped(managed.with_sets(sets).at(name, write.at))


def _nothing(write: FieldWrite) -> Raw:
    """Return the object to compare with a new object, so that fields that are always present do not count as added."""
    if type(write.schema) is str:
        return {}
    found: Raw = encoded({}, write.schema)
    return found


def _bare(raw: Raw) -> Raw:
    meta = raw.get("metadata")
    if not isinstance(meta, Mapping) or "managedFields" not in meta:
        return raw
    return {**raw, "metadata": {name: value for name, value in meta.items() if name != "managedFields"}}


# -- apply ----------------------------------------------------------------------------------------------------------


def after_applying(
    live: Raw | None, config: Raw, write: FieldWrite, *, force: bool
) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """Return the object with `config` applied (None if unchanged), and its managedFields."""
    kind, group_version = str(config.get("kind") or ""), str(config.get("apiVersion") or "")
    if group_version != write.api_version or kind != write.kind:
        raise ApplyRefused(400, f"invalid object type: {kind_text(group_version, kind)}")
    meta = config.get("metadata")
    if isinstance(meta, Mapping) and meta.get("managedFields") is not None:
        raise ApplyRefused(400, "metadata.managedFields must be nil")
    try:
        validate(config, write.schema)
    except TypedErrors as wrong:
        raise ApplyRefused(500, f"failed to create typed patch object ({_named(config)}): {wrong}") from None
    managed = Managed() if live is None else _live_entries(live)
    if not managed.sets and live is not None:
        managed = _updated(None, live, managed, attrs.evolve(write, manager=_BEFORE_FIRST_APPLY))
    try:
        made, managed = _applied(live, config, managed, write, force)
    except Conflicted as conflicted:
        if write.manager != _KUBECTL or live is None:
            raise
        own = _client_side(live, write)
        if left := {
            name: others for name, theirs in conflicted.conflicts.items() if (others := difference(theirs, own))
        }:
            raise Conflicted(left) from None
        made, managed = _applied(live, config, managed, write, True)
    if write.manager == _KUBECTL:
        made = _with_annotation(live, made, config)
    return made, write_entries(managed)


def _applied(
    live: Raw | None, config: Raw, managed: Managed, write: FieldWrite, force: bool
) -> tuple[dict[str, Any] | None, Managed]:
    name = write.identifier(APPLY)
    before = _bare(live) if live is not None else _nothing(write)
    new, sets = after_apply(
        before, config, write.schema, managed.sets, name, write.api_version, write.kept, force=force
    )
    if name in sets:
        own = difference(sets[name].fields, _SERVER_SET)
        if own:
            sets[name] = attrs.evolve(sets[name], fields=own)
        else:
            del sets[name]
    left = managed.with_sets(sets)
    return (new, left if new is None else left.at(name, write.at))


def kind_text(api_version: str, kind: str) -> str:
    """Return a kind with its group and version in the format of Go: `apps/v1, Kind=Deployment`."""
    group, _, version = api_version.rpartition("/")
    return f"{group}/{version}, Kind={kind}"


def _named(config: Raw) -> str:
    meta = config.get("metadata")
    meta = meta if isinstance(meta, Mapping) else {}
    kind = kind_text(str(config.get("apiVersion") or ""), str(config.get("kind") or ""))
    space, name = (text if isinstance(text := meta.get(field), str) else "" for field in ("namespace", "name"))
    return f"{space}/{name}; {kind}"


def _client_side(live: Raw, write: FieldWrite) -> FieldSet:
    """Return the fields that client-side apply wrote last and whose values have not changed since."""
    text = _annotations(live).get(LAST_APPLIED)
    try:
        last = json_value(text) if text else None
    except ValueError:
        last = None
    if not isinstance(last, dict) or last.get("apiVersion") != write.api_version:
        return FieldSet()
    try:
        validate(last, write.schema)
        changed = compare(last, _bare(live), write.schema)
        stated = field_set_of(last, write.schema)
    except (TypedErrors, ValueError):
        return FieldSet()
    return difference(difference(difference(stated, changed.modified), changed.added), changed.removed)


def _with_annotation(live: Raw | None, made: dict[str, Any] | None, config: Raw) -> dict[str, Any] | None:
    """Return the object with its client-side apply annotation updated, if it has one."""
    whole = made if made is not None else live
    if whole is None or LAST_APPLIED not in _annotations(whole):
        return made
    meta = {name: value for name, value in (config.get("metadata") or {}).items() if name != "managedFields"}
    own = {name: value for name, value in (meta.get("annotations") or {}).items() if name != LAST_APPLIED}
    if "annotations" in meta:
        meta["annotations"] = own
    text = json.dumps({**config, "metadata": meta}, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    annotations = {**_annotations(whole), LAST_APPLIED: text.translate(_ESCAPED) + "\n"}
    if sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items()) > _LARGEST_ANNOTATIONS:
        del annotations[LAST_APPLIED]
    if annotations == _annotations(whole):
        return made
    return {**whole, "metadata": {**whole["metadata"], "annotations": annotations}}


def _annotations(raw: Raw) -> Mapping[str, Any]:
    found = (raw.get("metadata") or {}).get("annotations")
    return found if isinstance(found, Mapping) else {}
