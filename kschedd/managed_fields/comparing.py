"""The fields that differ between two values: added, modified and removed fields.

Fields with separate owners are compared one by one; other values are compared as a whole. A list item that occurs
twice is also compared as a whole.
Source: sigs.k8s.io/structured-merge-diff v6, typed/compare.go.
"""

from collections.abc import Mapping
from typing import Any

import attrs

from kschedd.api.schemas.schema import ANY, Schema
from kschedd.managed_fields.field_set import FieldSet, union
from kschedd.managed_fields.typed import ABSENT, atomic, field_schema, item_schema, item_step, sort_of


@attrs.frozen
class Comparison:
    removed: FieldSet
    modified: FieldSet
    added: FieldSet

    @property
    def taken(self) -> FieldSet:
        """The fields that were added or modified."""
        return union(self.modified, self.added)


def compare(old: Any, new: Any, schema: Schema) -> Comparison:
    """Return the fields that `new` removes, modifies and adds. Both values must match the schema."""
    walk = _Walk()
    walk.compare(old, new, schema, ())
    return Comparison(walk.removed, walk.modified, walk.added)


def same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; true is not equal to 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping):
        return (
            isinstance(other, Mapping)
            and one.keys() == other.keys()
            and all(same(value, other[name]) for name, value in one.items())
        )
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


class _Walk:
    def __init__(self) -> None:
        self.removed, self.modified, self.added = FieldSet(), FieldSet(), FieldSet()

    def compare(self, old: Any, new: Any, schema: Schema, path: tuple[str, ...]) -> None:
        if old is new:
            return
        sorts = [sort_of(schema, value) for value in (old, new) if value is not ABSENT and value is not None]
        if len(set(sorts)) > 1:  # the place may have values of any type, and the type of its value has changed
            self.modified.insert(path)
            return
        sort = sorts[0] if sorts else "scalar"
        if sort == "scalar" or atomic(schema, sort) or not (_filled(old) or _filled(new)):
            self._leaf(old, new, path)
            return
        if sort == "map":
            self._fields(old, new, schema, path)
        else:
            self._items(old, new, schema, path)
        if old is ABSENT:
            self.added.insert(path)
        elif new is ABSENT:
            self.removed.insert(path)

    def _leaf(self, old: Any, new: Any, path: tuple[str, ...]) -> None:
        if old is ABSENT:
            self.added.insert(path)
        elif new is ABSENT:
            self.removed.insert(path)
        elif not same(old, new):
            self.modified.insert(path)

    def _fields(self, old: Any, new: Any, schema: Schema, path: tuple[str, ...]) -> None:
        before = old if _filled(old) else {}
        after = new if _filled(new) else {}
        for name in {**before, **after}:
            inner = field_schema(schema, name)
            then, now = before.get(name, ABSENT), after.get(name, ABSENT)
            self.compare(then, now, ANY if inner is None else inner, (*path, f"f:{name}"))

    def _items(self, old: Any, new: Any, schema: Schema, path: tuple[str, ...]) -> None:
        before, after = _by_step(old, schema), _by_step(new, schema)
        for step in {**before, **after}:
            then, now = before.get(step, ()), after.get(step, ())
            here, inner = (*path, step), item_schema(schema)
            if len(then) <= 1 and len(now) <= 1:
                self.compare(then[0] if then else ABSENT, now[0] if now else ABSENT, inner, here)
            elif len(then) > 1 and len(now) > 1:
                if not same(list(then), list(now)):
                    self.modified.insert(here)
            elif len(then) > 1:
                if now:
                    self.compare(ABSENT, now[0], inner, here)
                self.removed.insert(here)
            else:
                if then:
                    self.compare(then[0], ABSENT, inner, here)
                self.added.insert(here)


def _filled(value: Any) -> bool:
    return value is not ABSENT and bool(value)


def _by_step(items: Any, schema: Schema) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items if _filled(items) else ():
        found.setdefault(item_step(schema, item), []).append(item)
    return found
