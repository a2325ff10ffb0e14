"""Merging of a configuration into a live value, and removal of fields from a value.

Maps are merged field by field, and lists whose items have owners are merged item by item; other values are replaced.
Items are in the order of the configuration. Items that exist only in the live list keep their positions relative to the
common items.
Source: sigs.k8s.io/structured-merge-diff v6, typed/merge.go and typed/remove.go.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from kschedd.api.schemas.schema import ANY, Schema
from kschedd.managed_fields.field_set import FieldSet
from kschedd.managed_fields.typed import ABSENT, atomic, field_schema, item_schema, item_step, sort_of


def merge(live: Any, config: Any, schema: Schema) -> Any:
    """Return `live` merged with `config`; ABSENT if nothing is left. Both values must match the schema."""
    sorts = [sort_of(schema, value) for value in (live, config) if value is not ABSENT and value is not None]
    sort = sorts[-1] if sorts else "scalar"
    filled = [value for value in (live, config) if value is not ABSENT and value]
    if sort == "scalar" or len(set(sorts)) > 1 or atomic(schema, sort) or not filled:
        return live if config is ABSENT else config
    merged: Any = _merge_fields(live, config, schema) if sort == "map" else _merge_items(live, config, schema)
    return merged or ABSENT


def _merge_fields(live: Any, config: Any, schema: Schema) -> dict[str, Any]:
    before = live if live is not ABSENT and live else {}
    wanted = config if config is not ABSENT and config else {}
    merged = {}
    for name in {**before, **wanted}:
        inner = field_schema(schema, name)
        value = merge(before.get(name, ABSENT), wanted.get(name, ABSENT), ANY if inner is None else inner)
        if value is not ABSENT:
            merged[name] = value
    return merged


def _merge_items(live: Any, config: Any, schema: Schema) -> list[Any]:
    """Return the items of both lists.

    If several live items have the key of a configured item, the configured item replaces all of them.
    """
    left = [] if live is ABSENT or not live else live
    right = [] if config is ABSENT or not config else config
    left_steps = [item_step(schema, item) for item in left]
    right_steps = [item_step(schema, item) for item in right]
    count = Counter(left_steps)
    observed = {step: None if count[step] > 1 else item for step, item in zip(left_steps, left, strict=True)}
    wanted = dict(zip(right_steps, right, strict=True))
    shared = iter([step for step in right_steps if step in observed])
    next_shared = next(shared, None)
    merged: list[Any] = []
    done: set[str] = set()

    def take(then: Any, now: Any) -> None:
        value = merge(then, now, item_schema(schema))
        if value is not ABSENT:
            merged.append(value)

    at_left = at_right = 0
    while at_left < len(left) or at_right < len(right):
        if at_left < len(left) and at_right < len(right):
            step = left_steps[at_left]
            if step == right_steps[at_right]:
                done.add(step)
                take(observed[step], wanted[step])
                at_left += 1
                at_right += 1
                next_shared = next(shared, None)
                continue
            if step in wanted and next_shared is not None and next_shared != step:
                at_left += 1  # the item is added at its position in the configuration
                continue
        if at_left < len(left):
            step = left_steps[at_left]
            if step not in wanted:
                take(left[at_left], ABSENT)
                at_left += 1
                continue
            if step in done:
                at_left += 1
        if at_right < len(right):
            step = right_steps[at_right]
            done.add(step)
            take(observed.get(step, ABSENT), wanted[step])
            at_right += 1
            if next_shared == step:
                next_shared = next(shared, None)
    return merged


def without(value: Any, fields: FieldSet, schema: Schema) -> Any:
    """Return the value without these fields and items; None for a map or associative list that becomes empty."""
    if not fields.children and not fields.member:
        return value
    sort = sort_of(schema, value)
    if sort == "scalar":
        return value
    if not value or atomic(schema, sort):
        return None
    return _without_fields(value, fields, schema) if sort == "map" else _without_items(value, fields, schema)


def _without_fields(value: Mapping[str, Any], fields: FieldSet, schema: Schema) -> dict[str, Any] | None:
    kept = {}
    for name, item in value.items():
        below = fields.at(f"f:{name}")
        if below.member:
            continue
        inner = field_schema(schema, name)
        kept[name] = without(item, below, ANY if inner is None else inner) if below else item
    return kept or None


def _without_items(value: list[Any], fields: FieldSet, schema: Schema) -> list[Any] | None:
    kept = []
    for item in value:
        below = fields.at(item_step(schema, item))
        if below.member:
            continue
        kept.append(without(item, below, item_schema(schema)) if below else item)
    return kept or None
