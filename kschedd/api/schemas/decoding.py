"""Decoding: the handling of unknown and duplicate fields (fieldValidation), as in kube-apiserver.

With `Strict`, an object with unknown or duplicate fields is rejected; with `Warn`, these fields are dropped, each with
a warning; with `Ignore`, they are dropped without a warning. Custom resources have no schema in this module, so all
their fields are kept (`kschedd.store.field_validation` validates them).

Source: Kubernetes v1.34, apiserver/pkg/endpoints/handlers/create.go and sigs.k8s.io/json: errors in the order of the
fields, at most 100. "Did you mean" is an addition of kschedd.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import attrs

from kschedd.api.schemas.check import schema_for
from kschedd.api.schemas.fields import FieldError
from kschedd.api.schemas.schema import NO_RULES, Fields, ListOf, MapOf, Schema, type_named
from kschedd.api.text.similar import did_you_mean

FieldValidation = Literal["Strict", "Warn", "Ignore"]
# value of kubectl's --validate -> field validation
VALIDATE: Final[Mapping[str, FieldValidation]] = {
    "strict": "Strict",
    "true": "Strict",
    "warn": "Warn",
    "ignore": "Ignore",
    "false": "Ignore",
}
FIELD_VALIDATIONS: Final[tuple[FieldValidation, ...]] = ("Strict", "Warn", "Ignore")

MOST_FAULTS: Final = 100


@attrs.frozen
class StrictFault:
    """An unknown or duplicate field."""

    path: str
    text: str  # kube-apiserver's message, such as: unknown field "spec.foo"
    hint: str = ""  # ; did you mean "for"?

    def __str__(self) -> str:
        return self.text + self.hint

    def field_error(self) -> FieldError:
        return FieldError(self.path, None, f"strict decoding error: {self}")


@attrs.frozen
class Decoded:
    """The object without unknown fields, and the faults."""

    raw: dict[str, Any]
    faults: tuple[StrictFault, ...] = ()


def decode(raw: dict[str, Any], rules: frozenset[str] = NO_RULES) -> Decoded:
    """Drop unknown fields; if there are none, return the object itself.

    For a kind that is not built in, only the metadata is checked. `rules` contains the enabled features, some of which
    add fields newer than 1.34.
    """
    schema = schema_for(raw)
    faults: list[StrictFault] = []
    if schema is None:
        given = raw.get("metadata")
        meta = _prune(given, type_named("meta.ObjectMeta"), (None, "metadata"), faults, rules)
        return Decoded(raw if meta is given else {**raw, "metadata": meta}, tuple(faults[:MOST_FAULTS]))
    pruned = _prune(raw, schema, None, faults, rules)
    return Decoded(pruned, tuple(faults[:MOST_FAULTS]))


def unknown_field(path: str, hint: str = "") -> StrictFault:
    return StrictFault(path, f'unknown field "{path}"', hint)


def duplicate_field(path: str) -> StrictFault:
    return StrictFault(path, f'duplicate field "{path}"')


def strict_message(raw: Mapping[str, Any], faults: Sequence[StrictFault]) -> str:
    """Return the API server's error message for an object rejected by strict decoding."""
    return decoding_message(raw, f"strict decoding error: {', '.join(map(str, faults))}")


def decoding_message(raw: Mapping[str, Any], why: str) -> str:
    """Return the API server's error message for an object that cannot be decoded."""
    version, kind = str(raw.get("apiVersion", "")).rpartition("/")[2], raw.get("kind")
    return f'{kind} in version "{version}" cannot be handled as a {kind}: {why}'


Where = tuple[Any, str | int] | None
"""A location as (parent location, key or index), None for the root; formatted as a path only if a fault is found."""


def _path(where: Where) -> str:
    if where is None:
        return ""
    parent, step = where
    before = _path(parent)
    if isinstance(step, int):
        return f"{before}[{step}]"
    return f"{before}.{step}" if before else str(step)


def _prune(value: Any, schema: Schema, where: Where, faults: list[StrictFault], rules: frozenset[str]) -> Any:
    sort = type(schema)
    if sort is Fields and type(value) is dict:
        kept: dict[str, Any] | None = None
        for name, item in value.items():
            inner = schema.get(name)
            if type(inner) is str and name not in schema.rules:
                continue
            here = (where, name)
            if inner is None or (schema.rules and not schema.has(name, rules)):
                if not schema.drops(name, rules) and len(faults) < MOST_FAULTS:  # limit of reported faults
                    hint = did_you_mean(str(name), [each for each in schema if schema.has(each, rules)], 1)
                    faults.append(unknown_field(_path(here), hint))
                kept = dict(value) if kept is None else kept
                del kept[name]
                continue
            pruned = _prune(item, inner, here, faults, rules)
            if pruned is not item:
                kept = dict(value) if kept is None else kept
                kept[name] = pruned
        return value if kept is None else kept
    if sort is ListOf and type(value) is list and type(schema.item) is not str:
        items = [_prune(item, schema.item, (where, index), faults, rules) for index, item in enumerate(value)]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if sort is MapOf and type(value) is dict and type(schema.item) is not str:
        found = {name: _prune(item, schema.item, (where, name), faults, rules) for name, item in value.items()}
        return found if any(found[name] is not item for name, item in value.items()) else value
    return value
