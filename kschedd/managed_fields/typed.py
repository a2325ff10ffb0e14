"""Values interpreted by their schema: leaves with owners, their parts, and validation.

A value is absent (`ABSENT`), null (None), or JSON. According to the schema, a place is either a leaf with one owner (a
scalar, an atomic map or an atomic list), or it consists of fields or items with separate owners. At a place of type
`ANY`, a scalar or a list is a leaf, and a map consists of places of type `ANY`.

Source: sigs.k8s.io/structured-merge-diff v6, typed (helpers.go, validate.go, tofieldset.go).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import attrs

from kschedd.api.schemas.schema import ANY, BOOL, BYTES, INT, INT32, NUMBER, STR, Fields, ListOf, MapOf, Schema
from kschedd.managed_fields.field_set import FieldSet, key_step, step_text, value_step
from kschedd.managed_fields.go_values import go_syntax, go_type, go_value

ABSENT: Final[Any] = object()

Sort = Literal["map", "list", "scalar"]


@attrs.frozen
class TypedError(Exception):
    """The schema does not allow a value. `path` is in the format of messages; "" for the whole value."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}" if self.path else self.why


class TypedErrors(Exception):
    def __init__(self, errors: Sequence[TypedError]) -> None:
        super().__init__(errors)
        self.errors = errors

    def __str__(self) -> str:
        if len(self.errors) == 1:
            return str(self.errors[0])
        return "\n".join(("errors:", *(f"  {error}" for error in self.errors)))


def sort_of(schema: Schema, value: Any) -> Sort:
    """Return the type of the value at a place: from the schema, or from the value if the schema leaves it open."""
    if schema is ANY or schema is None:
        return "map" if isinstance(value, Mapping) else "list" if isinstance(value, list) else "scalar"
    kind = type(schema)
    return "scalar" if kind is str else "list" if kind is ListOf else "map"


def atomic(schema: Schema, sort: Sort) -> bool:
    """Return whether a map or list at this place has one owner as a whole."""
    if schema is ANY or schema is None:  # None: an object keeps fields that a newer version stored
        return sort == "list"
    return schema.keys is None if sort == "list" else bool(schema.atomic)


def declares(schema: Schema, name: str) -> bool:
    """Return whether this is a named field of the type and not a key of a map."""
    return type(schema) is Fields and name in schema


def field_schema(schema: Schema, name: str) -> Schema:
    """Return the schema of a field; None if there is no such field."""
    if type(schema) is Fields:
        return schema.get(name, schema.others)
    return schema.item if type(schema) is MapOf else ANY


def item_schema(schema: Schema) -> Schema:
    return schema.item if type(schema) is ListOf else ANY


def item_step(schema: ListOf, item: Any) -> str:
    """Return the path step to an item of an associative list. Raises ValueError if the item has no usable key."""
    if not schema.keys:
        if isinstance(item, Mapping):
            raise ValueError("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise ValueError("not supported: associative list with lists as elements")
        if item is None:
            raise ValueError("associative list without keys has an element that's an explicit null")
        return value_step(item)
    if item is None:
        raise ValueError("associative list with keys may not have a null element")
    if not isinstance(item, Mapping):
        raise ValueError("associative list with keys may not have non-map elements")
    defaults = schema.item.key_defaults if type(schema.item) is Fields else {}
    found = {}
    for name in schema.keys:
        if name in item:
            found[name] = item[name]
        elif name in defaults:
            found[name] = defaults[name]
        else:
            raise ValueError(
                f'associative list with keys has an element that omits key field "{name}" '
                "(and doesn't have default value)"
            )
    return key_step(found)


# -- validation -----------------------------------------------------------------------------------------------------


def validate(value: Any, schema: Schema, *, duplicates: bool = False) -> None:
    """Raise TypedErrors if the schema does not allow the value. With `duplicates`, items may occur twice."""
    errors: list[TypedError] = []
    _validate(value, schema, "", duplicates, errors)
    if errors:
        raise TypedErrors(errors)


def _validate(value: Any, schema: Schema, path: str, duplicates: bool, errors: list[TypedError]) -> None:
    if value is None:
        return
    sort = sort_of(schema, value)
    if sort == "scalar":
        if why := scalar_fault(schema, value):
            errors.append(TypedError(path, why))
    elif sort == "list":
        if not isinstance(value, list):
            errors.append(TypedError(path, f"expected list, got {go_value(value)}"))
            return
        _validate_items(value, schema, path, duplicates, errors)
    elif not isinstance(value, Mapping):
        errors.append(TypedError(path, f"expected map, got {go_value(value)}"))
    else:
        for name, item in value.items():
            inner = field_schema(schema, name)
            if inner is None:
                errors.append(TypedError(f"{path}.{name}", "field not declared in schema"))
                return
            _validate(item, inner, f"{path}.{name}", duplicates, errors)


def _validate_items(items: list[Any], schema: Schema, path: str, duplicates: bool, errors: list[TypedError]) -> None:
    seen = set()
    keyed = schema is not ANY and schema.keys is not None
    for number, item in enumerate(items):
        step = f"i:{number}"
        if keyed:
            try:
                step = item_step(schema, item)
            except ValueError as wrong:
                errors.append(TypedError(path, f"element {number}: {wrong}"))
                return
            if step in seen and not duplicates:
                errors.append(TypedError(path, f"duplicate entries for key {step_text(step)}"))
            seen.add(step)
        _validate(item, item_schema(schema), path + step_text(step), duplicates, errors)


def scalar_fault(schema: Schema, value: Any) -> str:
    if value is None:
        return ""
    if schema is STR or schema is BYTES:
        return "" if isinstance(value, str) else f"expected string, got {go_syntax(value)}"
    if schema is INT or schema is INT32 or schema is NUMBER:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return ""
        return f"expected numeric (int or float), got {go_type(value)}"
    if schema is BOOL:
        return "" if isinstance(value, bool) else f"expected boolean, got {go_value(value)}"
    return f"expected any scalar, got {go_value(value)}" if isinstance(value, Mapping | list) else ""


# -- the set of a value's fields ------------------------------------------------------------------------------------


def field_set_of(value: Any, schema: Schema) -> FieldSet:
    """Return all fields of a value; an apply of the value owns these fields."""
    sort = sort_of(schema, value)
    if sort == "scalar" or atomic(schema, sort):
        return FieldSet(member=True)
    if value is None:
        return FieldSet()
    return _of_items(value, schema) if sort == "list" else _of_fields(value, schema)


def _of_fields(value: Mapping[str, Any], schema: Schema) -> FieldSet:
    made = FieldSet()
    for name, item in value.items():
        below = field_set_of(item, field_schema(schema, name))
        if item is None or (isinstance(item, Mapping) and not item) or not declares(schema, name):
            below = FieldSet(True, below.children)
        if below:
            made.children[f"f:{name}"] = below
    return made


def _of_items(items: list[Any], schema: ListOf) -> FieldSet:
    made = FieldSet()
    steps = [item_step(schema, item) for item in items]
    count = Counter(steps)
    for step, item in zip(steps, items, strict=True):
        if count[step] > 1:
            made.children[step] = FieldSet(member=True)
        else:
            made.children[step] = FieldSet(True, field_set_of(item, schema.item).children)
    return made


def with_named_members(fields: FieldSet, schema: Schema) -> FieldSet:
    """Return the set after adding each named field as a member if fields below it are members."""
    children = {}
    for step, below in fields.children.items():
        inner: Schema = ANY
        named = False
        if step.startswith("f:") and type(schema) is not ListOf and type(schema) is not str:
            inner = field_schema(schema, step[2:])
            named = declares(schema, step[2:]) and bool(below.children)
        elif step.startswith("k:") and type(schema) is ListOf:
            inner = schema.item
        deeper = with_named_members(below, ANY if inner is None else inner)
        children[step] = FieldSet(deeper.member or named, deeper.children)
    return FieldSet(fields.member, children)
