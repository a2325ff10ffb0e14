"""The schema: the type of each field of each built-in kind, and the field's patch strategy in a strategic merge patch.

The schema is stored in `schema.json` beside this module. Each line describes one type: its fields, with their types and
patch strategies. `string`, `int32`, `quantity` and so on are leaves, `@PodSpec` is another type in the file, `[x]` is a
list of x, and `{x}` is a map from string to x. A `*` before a type means that the field is a pointer in Go: a present
field is kept even if its value is "", 0 or false. A `!` means that the field is always present: an unset field has Go's
zero value (`kschedd.api.schemas.codec`). A suffix `merge=name` means that a list is merged item by item with `name` as
merge key. `merge` alone means that a list of primitives is merged as a set. `retainKeys` and `replace` have the same
meaning as in Kubernetes. `go_types` contains the Go types of fields whose type differs from their schema: named
strings, and maps with named keys. Types may be recursive (for example JSONSchemaProps), so a type must be traversed
together with an object.

Server-side apply uses the same suffixes, unless another suffix overrides them: `keys=a,b` (these fields identify the
items of a list), `set` (items are identified by their value), `atomic` (the whole list or map has one owner),
`granular` (this field is not atomic, although its type is). The key `atomic` in the schema file lists the atomic types.
`default=TCP` is the default of a key field that an item omits; `default=` is the empty value.

`rule=pod_level_resize` marks a field that 1.34 lacks: the field exists if this feature
(`kschedd.config.versions.rules`) is enabled. A version whose feature gate for the field is off (`gated_off`) accepts
the field and drops it. With the suffix `off`, the field has a gate of its own that is off: a version with the feature
accepts the field and drops it.

Source: Kubernetes v1.34, api/openapi-spec/swagger.json with its x-kubernetes-patch, -list and -map extensions; the JSON
tags in staging/src/k8s.io/api for pointers and for fields that are always present.
"""

import json
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

import attrs

STR: Final = "a string"
INT: Final = "an integer"
INT32: Final = "a 32-bit integer"
BOOL: Final = "true or false"
QUANTITY: Final = "a quantity"
INT_OR_STR: Final = "an integer or a string"
TIME: Final = "an RFC 3339 time, such as 2006-01-02T15:04:05Z"
MICRO_TIME: Final = "an RFC 3339 time with six digits of a second's fraction, such as 2006-01-02T15:04:05.000000Z"
BYTES: Final = "base64"
NUMBER: Final = "a number"
ANY: Final = "anything"

Schema = Any
"""A leaf (one of the type names above), Fields, ListOf or MapOf."""

_LEAVES: Final[Mapping[str, str]] = {
    "string": STR,
    "bytes": BYTES,
    "int64": INT,
    "int32": INT32,
    "bool": BOOL,
    "quantity": QUANTITY,
    "int-or-string": INT_OR_STR,
    "time": TIME,
    "micro-time": MICRO_TIME,
    "number": NUMBER,
    "any": ANY,
}

_GO_LEAVES: Final[Mapping[str, str]] = {
    STR: "string",
    BYTES: "[]uint8",
    INT: "int64",
    INT32: "int32",
    BOOL: "bool",
    NUMBER: "float64",
    QUANTITY: "resource.Quantity",
    INT_OR_STR: "intstr.IntOrString",
    TIME: "v1.Time",
    MICRO_TIME: "v1.MicroTime",
}


@attrs.frozen
class PatchStrategy:
    """The patch strategy of a field in a strategic merge patch; `merge_key` is "" for a list of primitives."""

    merge: bool = False
    merge_key: str = ""
    retain_keys: bool = False
    replace: bool = False


NO_STRATEGY: Final = PatchStrategy()


class Fields(dict[str, Schema]):
    """The fields of one type; `strategies` contains their patch strategies, if any."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.strategies: dict[str, PatchStrategy] = {}
        self.pointers: set[str] = set()  # fields whose zero value differs from an absent value
        self.always: dict[str, None] = {}  # fields that are always present, in this order
        self.nested: list[str] = []  # fields that are not leaves
        self.rules: dict[str, str] = {}  # field newer than 1.34 -> feature that enables it
        self.off: set[str] = set()  # fields in `rules` with a gate of their own that is off
        self.atomic = False  # true if the whole value has a single owner
        self.key_defaults: dict[str, Any] = {}  # defaults of key fields, which identify items of a list
        self.others: Schema | None = None  # type of all other fields; None: no other fields are allowed

    @property
    def short_name(self) -> str:
        """The name of the Go type in Kubernetes: PodSpec, DeploymentSpec."""
        return self.name.rpartition(".")[2]

    def has(self, field: str, rules: frozenset[str]) -> bool:
        """Return whether the field exists in a version with these enabled features."""
        return field in self and (field not in self.rules or (self.rules[field] in rules and field not in self.off))

    def drops(self, field: str, rules: frozenset[str]) -> bool:
        """Return whether the field is accepted without effect because its feature gate is disabled."""
        if field in self.off:
            return self.rules[field] in rules
        return field in self.rules and gated_off(self.rules[field]) in rules

    def as_granular(self) -> "Fields":
        """Return the type with separate owners for its fields."""
        twin = Fields(self.name)
        twin.update(self)
        twin.strategies, twin.pointers, twin.always = self.strategies, self.pointers, self.always
        twin.nested, twin.key_defaults, twin.others = self.nested, self.key_defaults, self.others
        twin.rules, twin.off = self.rules, self.off
        return twin


@attrs.frozen(eq=False)
class ListOf:
    """A list.

    For server-side apply, items are identified by `keys`, or by their value if `keys` is empty. If `keys` is None, the
    whole list has a single owner.
    """

    item: Schema
    keys: tuple[str, ...] | None = None


@attrs.frozen(eq=False)
class MapOf:
    item: Schema
    atomic: bool = False


NO_RULES: Final[frozenset[str]] = frozenset()
"""The features of 1.34: no newer fields."""
ALL_RULES: Final = frozenset(
    (
        *("declared_features", "pod_groups", "pod_level_resize", "resizes_preempt", "volumes_need_driver"),
        *("fields_of_1_35", "fields_of_1_36", "fields_of_1_37"),
    )
)
"""All features that add newer fields."""


def gated_off(rule: str) -> str:
    """Return the name of the feature in versions in which its gate is off."""
    return f"-{rule}"


def field_of(schema: Schema, name: str) -> tuple[Schema, PatchStrategy]:
    """Return the schema and patch strategy of a field; an unknown field accepts any value."""
    if isinstance(schema, Fields):
        return schema.get(name, ANY), schema.strategies.get(name, NO_STRATEGY)
    return (schema.item if isinstance(schema, MapOf) else ANY), NO_STRATEGY


def item_of(schema: Schema) -> Schema:
    """Return the schema of a list's items."""
    return schema.item if isinstance(schema, ListOf) else ANY


@cache
def _file() -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = json.loads(
        Path(__file__).with_name("schema.json").read_text(encoding="utf-8")
    )
    return found


_types: Final[dict[str, Fields]] = {}


def type_named(name: str) -> Fields:
    """Return the type with this name: `PodSpec`, `meta.ObjectMeta`, `apps.v1.Deployment`."""
    known = _types.get(name)
    if known is None:
        known = _types[name] = Fields(name)
        known.atomic = name in _file()["atomic"]
        for field, text in _file()["types"][name].items():
            described, *words = text.split(" ")
            if described[0] == "!":
                known.always[field] = None
                described = described[1:]
            if described[0] == "*":
                known.pointers.add(field)
                described = described[1:]
            ownership = {word.partition("=")[0]: word.partition("=")[2] for word in words}
            if "rule" in ownership:
                known.rules[field] = ownership["rule"]
                if "off" in ownership:
                    known.off.add(field)
            strategy = [word for word in words if word.partition("=")[0] not in _OWNERSHIP]
            if strategy:
                known.strategies[field] = _strategy(strategy[0])
            known[field] = _owned(_schema(described), ownership, known.strategies.get(field, NO_STRATEGY))
            if type(known[field]) is not str:
                known.nested.append(field)
            if field in known.always and type(known[field]) is str and known[field] in _ZERO_KEYS:
                known.key_defaults[field] = _ZERO_KEYS[known[field]]
            if "default" in ownership:
                known.key_defaults[field] = ownership["default"]
    return known


_OWNERSHIP: Final = frozenset(("keys", "set", "atomic", "granular", "default", "rule", "off"))
_ZERO_KEYS: Final[Mapping[Schema, Any]] = {STR: "", INT: 0, INT32: 0}


def _owned(schema: Schema, ownership: Mapping[str, str], strategy: PatchStrategy) -> Schema:
    """Return the schema of a field, including its ownership in server-side apply."""
    if isinstance(schema, ListOf):
        if "atomic" in ownership or not (ownership.keys() & {"keys", "set"} or strategy.merge):
            return schema
        named = ownership.get("keys") or ("" if "set" in ownership else strategy.merge_key)
        return ListOf(schema.item, tuple(named.split(",")) if named else ())
    if isinstance(schema, MapOf):
        return MapOf(schema.item, atomic=True) if "atomic" in ownership else schema
    if isinstance(schema, Fields) and "granular" in ownership:
        return schema.as_granular()
    return schema


@lru_cache(1 << 10)
def schema_of(api_version: str, kind: str) -> Fields | None:
    """Return the schema of a built-in kind in one of its API versions; None if there is no such kind."""
    name = _file()["kinds"].get(f"{api_version} {kind}")
    return None if name is None else type_named(name)


def go_type(fields: Fields, name: str) -> str:
    """Return the Go type of a field in the notation of type error messages: `[]v1.Container`, `v1.ResourceList`."""
    stated: str | None = _file()["go_types"].get(f"{fields.name}.{name}")
    return stated or _go_type(fields[name])


def _go_type(schema: Schema) -> str:
    if isinstance(schema, Fields):
        package = schema.name.rpartition(".")[0].rpartition(".")[2]
        return f"{package if package[:1] == 'v' else 'v1'}.{schema.short_name}"
    if isinstance(schema, ListOf):
        return f"[]{_go_type(schema.item)}"
    if isinstance(schema, MapOf):
        return "v1.ResourceList" if schema.item is QUANTITY else f"map[string]{_go_type(schema.item)}"
    return _GO_LEAVES.get(schema, schema)


def _schema(text: str) -> Schema:
    if text[0] == "@":
        return type_named(text[1:])
    if text[0] == "[":
        return ListOf(_schema(text[1:-1]))
    if text[0] == "{":
        return MapOf(_schema(text[1:-1]))
    return _LEAVES[text]


def _strategy(text: str) -> PatchStrategy:
    words, _, merge_key = text.partition("=")
    named = words.split(",")
    return PatchStrategy("merge" in named, merge_key, "retainKeys" in named, "replace" in named)
