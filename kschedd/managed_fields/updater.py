"""Changes of the field managers' sets by an update or an apply, and the object after an apply.

`Managers` contains the set of each field manager, by identifier (see `entries`). All sets are for the version of the
object; sets for other versions are dropped when the entries are read.

Source: sigs.k8s.io/structured-merge-diff v6, merge/update.go and typed/reconcile_schema.go.
Raises: `Conflicted`.
"""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from kschedd.api.schemas.schema import ANY, Fields, ListOf, Schema
from kschedd.managed_fields.comparing import compare, same
from kschedd.managed_fields.field_set import FieldSet, difference, intersection, union, union_of
from kschedd.managed_fields.merging import merge, without
from kschedd.managed_fields.typed import ABSENT, field_schema, field_set_of, with_named_members

Filter = Callable[[FieldSet], FieldSet]


@attrs.frozen
class ManagedSet:
    """The fields of one field manager; with `applied`, every apply by this manager contains all of them."""

    fields: FieldSet
    api_version: str
    applied: bool


Managers = Mapping[str, ManagedSet]


class Conflicted(Exception):
    """An apply would change fields of other field managers; `conflicts` contains these fields by manager."""

    def __init__(self, conflicts: Mapping[str, FieldSet]) -> None:
        super().__init__(conflicts)
        self.conflicts = conflicts


def after_update(
    live: Any, new: Any, schema: Schema, managers: Managers, manager: str, api_version: str, kept: Filter
) -> dict[str, ManagedSet]:
    """Return the field managers after an update of `live` to `new`.

    `kept` removes fields that the write cannot change.
    """
    managers = reconciled(managers, schema)
    changed = compare(live, new, schema)
    removed, taken = kept(changed.removed), kept(changed.taken)
    left = _lost(managers, manager, removed, taken)
    before = left[manager].fields if manager in left else FieldSet()
    own = kept(union(difference(before, removed), taken))
    left.pop(manager, None)
    if own:
        left[manager] = ManagedSet(own, api_version, applied=False)
    return left


def after_apply(
    live: Any,
    config: Any,
    schema: Schema,
    managers: Managers,
    manager: str,
    api_version: str,
    kept: Filter,
    *,
    force: bool,
) -> tuple[Any, dict[str, ManagedSet]]:
    """Return the object with `config` applied (None if it is unchanged) and the new field managers."""
    managers = reconciled(managers, schema)
    merged = merge(live, config, schema)
    last = managers.get(manager)
    stated = ManagedSet(kept(field_set_of(config, schema)), api_version, applied=True)
    with_own = {**managers, manager: stated}
    new = merged if last is None or not last.fields else _pruned(merged, schema, with_own, last.fields)
    changed = compare(live, new, schema)
    removed, taken = kept(changed.removed), kept(changed.taken)
    if not force:
        conflicts = {
            name: both
            for name, theirs in with_own.items()
            if name != manager and (both := intersection(theirs.fields, taken))
        }
        if conflicts:
            raise Conflicted(conflicts)
    left = _lost(with_own, manager, removed, taken)
    return (None if same(live, new) else new), left


def _lost(managers: Managers, manager: str, removed: FieldSet, taken: FieldSet) -> dict[str, ManagedSet]:
    """Return the field managers without removed fields and fields that `manager` takes over; drop empty managers."""
    left = {}
    for name, theirs in managers.items():
        fields = theirs.fields
        if name != manager:
            fields = difference(difference(fields, intersection(fields, taken)), removed)
        if fields:
            left[name] = attrs.evolve(theirs, fields=fields)
    return left


def _pruned(merged: Any, schema: Schema, managers: Managers, last: FieldSet) -> Any:
    """Remove fields that the applier no longer applies and no other field manager owns; return the merged object."""
    last = with_named_members(last, schema)
    pruned = _value(without(merged, last, schema))
    owned = union_of([theirs.fields for theirs in managers.values()])
    everything = with_named_members(field_set_of(merged, schema), schema)
    left = with_named_members(field_set_of(pruned, schema), schema)
    unowned = difference(everything, union(left, with_named_members(owned, schema)))
    pruned = _value(without(merged, unowned, schema))
    left = with_named_members(field_set_of(pruned, schema), schema)
    return _value(without(merged, intersection(difference(everything, left), last), schema))


def _value(value: Any) -> Any:
    return {} if value is None or value is ABSENT else value


# -- sets of a schema that was another ------------------------------------------------------------------------------


def reconciled(managers: Managers, schema: Schema) -> Managers:
    """Return the field managers; ownership below a place that now has a single owner has moved to this place."""
    found = {name: attrs.evolve(theirs, fields=_whole(theirs.fields, schema)) for name, theirs in managers.items()}
    return {name: theirs for name, theirs in found.items() if theirs.fields}


def _whole(fields: FieldSet, schema: Schema) -> FieldSet:
    if schema is ANY or type(schema) is str or not fields.children:
        return fields
    if schema.keys is None if type(schema) is ListOf else schema.atomic:
        return FieldSet(member=True)
    children = {}
    for step, below in fields.children.items():
        inner: Schema = None
        if type(schema) is ListOf:
            inner = schema.item
        elif step.startswith("f:"):
            inner = field_schema(schema, step[2:])
        deeper = below if inner is None else _whole(below, inner)
        children[step] = deeper
    if type(schema) is not Fields and all(children[step] is fields.children[step] for step in children):
        return fields
    return FieldSet(fields.member, children)
