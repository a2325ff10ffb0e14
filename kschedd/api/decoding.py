"""Decoding: what an API server makes of the fields of an object that its kind does not have, and of keys given twice.

With `Strict` such an object is refused; with `Warn` it is taken without those fields, each with a warning; with
`Ignore` there are no warnings. Objects of custom resources have no schema here: all their fields are taken.

Source: Kubernetes v1.34, apiserver/pkg/endpoints/handlers/create.go and sigs.k8s.io/json: errors in the order of the
fields, 100 at most. "Did you mean" is ours.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import attrs

from kschedd.api.fields import FieldError
from kschedd.api.schema import Fields, ListOf, MapOf, Schema
from kschedd.api.shapes import schema_for

FieldValidation = Literal["Strict", "Warn", "Ignore"]
#: what kubectl's --validate means
VALIDATE: Final[Mapping[str, FieldValidation]] = {
    "strict": "Strict",
    "true": "Strict",
    "warn": "Warn",
    "ignore": "Ignore",
    "false": "Ignore",
}
FIELD_VALIDATIONS: Final[tuple[FieldValidation, ...]] = ("Strict", "Warn", "Ignore")

_MOST: Final = 100


@attrs.frozen
class StrictFault:
    """A field that the kind does not have, or one that was given twice."""

    path: str
    text: str  # as upstream has it: unknown field "spec.foo"
    hint: str = ""  # ; did you mean "for"?

    def __str__(self) -> str:
        return self.text + self.hint

    def field_error(self) -> FieldError:
        return FieldError(self.path, None, f"strict decoding error: {self}")


@attrs.frozen
class Decoded:
    """The object with the fields its kind has, and what was found of others."""

    raw: dict[str, Any]
    faults: tuple[StrictFault, ...] = ()


def decode(raw: dict[str, Any]) -> Decoded:
    """The object without the fields that its kind does not have; the same one if it has none of them."""
    schema = schema_for(raw)
    if schema is None:
        return Decoded(raw)
    faults: list[StrictFault] = []
    pruned = _prune(raw, schema, None, faults)
    return Decoded(pruned, tuple(faults[:_MOST]))


def duplicate_field(path: str) -> StrictFault:
    return StrictFault(path, f'duplicate field "{path}"')


def strict_message(raw: Mapping[str, Any], faults: Sequence[StrictFault]) -> str:
    """The API server's sentence about an object that is refused for such fields."""
    version = str(raw.get("apiVersion", "")).rpartition("/")[2]
    kind = raw.get("kind")
    found = ", ".join(map(str, faults))
    return f'{kind} in version "{version}" cannot be handled as a {kind}: strict decoding error: {found}'


Where = tuple[Any, str | int] | None
"""A place: the place it is in and the step from there; put into words only where something is wrong."""


def _path(where: Where) -> str:
    if where is None:
        return ""
    parent, step = where
    before = _path(parent)
    if isinstance(step, int):
        return f"{before}[{step}]"
    return f"{before}.{step}" if before else str(step)


def _prune(value: Any, schema: Schema, where: Where, faults: list[StrictFault]) -> Any:
    sort = type(schema)
    if sort is Fields and type(value) is dict:
        kept: dict[str, Any] | None = None
        for name, item in value.items():
            inner = schema.get(name)
            if type(inner) is str:
                continue
            here = (where, name)
            if inner is None:
                path = _path(here)
                faults.append(StrictFault(path, f'unknown field "{path}"', meant(str(name), schema)))
                kept = dict(value) if kept is None else kept
                del kept[name]
                continue
            pruned = _prune(item, inner, here, faults)
            if pruned is not item:
                kept = dict(value) if kept is None else kept
                kept[name] = pruned
        return value if kept is None else kept
    if sort is ListOf and type(value) is list and type(schema.item) is not str:
        items = [_prune(item, schema.item, (where, index), faults) for index, item in enumerate(value)]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if sort is MapOf and type(value) is dict and type(schema.item) is not str:
        found = {name: _prune(item, schema.item, (where, name), faults) for name, item in value.items()}
        return found if any(found[name] is not item for name, item in value.items()) else value
    return value


def meant(word: str, known: Iterable[str]) -> str:
    """`; did you mean "requests"?`, or nothing where no field has a name near it."""
    folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(word.casefold()[:80], folded, n=1, cutoff=0.6)
    return f'; did you mean "{folded[near[0]]}"?' if near else ""
