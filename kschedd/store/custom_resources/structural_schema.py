"""Structural schemas of custom resources: checks of the schema, and pruning, defaulting and validation of objects.

A schema defines the type of each field, so that unknown fields can be pruned and absent fields defaulted.
`validation_rules` evaluates the CEL rules of a schema.
Source: Kubernetes v1.34, apiextensions-apiserver/pkg/apiserver/schema (validation.go, pruning, defaulting),
kube-openapi/pkg/validation/validate.
Errors: none; violations are returned as FieldErrors with upstream's messages.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kschedd.api.objects import Raw
from kschedd.api.schemas.fields import FieldError, child, duplicate, forbidden, invalid, required, too_many, unsupported
from kschedd.store.custom_resources.ratcheting import ABSENT, is_unchanged, key_of, keys_of, old_items

_TYPES: Final = frozenset(("object", "array", "string", "integer", "number", "boolean"))
_JUNCTORS: Final = ("allOf", "anyOf", "oneOf")
_VALUE_ONLY: Final = (
    "type",
    "default",
    "additionalProperties",
    "nullable",
    "description",
    "title",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
)
_UNKNOWN: Final = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_ROOT_FIELDS: Final = ("apiVersion", "kind", "metadata")
_DEEPEST: Final = 100
_NOTHING: Mapping[str, Any] = {}


# Checks of the schema


def structural_faults(schema: Raw, path: str) -> list[FieldError]:
    """Return the reasons why a schema is not structural."""
    faults = list(_structural(schema, path, "root", 0))
    if schema.get("type") not in (None, "", "object"):
        faults.append(invalid(f"{path}.type", schema["type"], "must be object at the root"))
    return faults


def _structural(schema: Any, path: str, level: str, depth: int) -> Iterator[FieldError]:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return
    kind, mixed = schema.get("type") or "", bool(schema.get(_INT_OR_STRING))
    where = {"root": "at the root", "item": "for specified array items", "field": "for specified object fields"}[level]
    if not kind and not mixed and not schema.get(_UNKNOWN):
        yield required(f"{path}.type", f"must not be empty {where}")
    elif kind and mixed:
        yield invalid(f"{path}.type", kind, f"must be empty if {_INT_OR_STRING} is true")
    elif kind and kind not in _TYPES:
        yield unsupported(f"{path}.type", kind, sorted(_TYPES))
    if schema.get(_UNKNOWN) is False:
        yield invalid(f"{path}.{_UNKNOWN}", False, "must be true or undefined")
    if schema.get("properties") and schema.get("additionalProperties"):
        yield forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive")
    if schema.get("additionalProperties") is not None and level == "root":
        yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if schema.get("uniqueItems"):
        yield forbidden(
            f"{path}.uniqueItems", "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        )
    if kind == "array" and schema.get("items") is None:
        yield required(f"{path}.items", "must be specified")
    elif isinstance(schema.get("items"), list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if isinstance(pattern := schema.get("pattern"), str) and (wrong := _bad_pattern(pattern)):
        yield invalid(f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {wrong}")
    for name, inner in _mapping(schema, "properties"):
        yield from _structural(inner, f"{path}.properties[{name}]", "field", depth + 1)
    if isinstance(more := schema.get("additionalProperties"), Mapping):
        yield from _structural(more, f"{path}.additionalProperties", "field", depth + 1)
    if schema.get("items") is not None:
        yield from _structural(schema["items"], f"{path}.items", "item", depth + 1)
    for junctor in _JUNCTORS:
        for place, inner in enumerate(schema.get(junctor) or ()):
            yield from _value_only(inner, f"{path}.{junctor}[{place}]", mixed, depth + 1)
    if schema.get("not") is not None:
        yield from _value_only(schema["not"], f"{path}.not", mixed, depth + 1)


def _value_only(schema: Any, path: str, mixed: bool, depth: int) -> Iterator[FieldError]:
    """Yield errors for fields that allOf, anyOf, oneOf and not must not contain."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return
    for field in _VALUE_ONLY:
        if schema.get(field) and not (field == "type" and mixed):
            yield forbidden(f"{path}.{field}", "must be empty to be structural")
    for name, inner in _mapping(schema, "properties"):
        yield from _value_only(inner, f"{path}.properties[{name}]", False, depth + 1)
    if schema.get("items") is not None:
        yield from _value_only(schema["items"], f"{path}.items", False, depth + 1)
    for junctor in _JUNCTORS:
        for place, inner in enumerate(schema.get(junctor) or ()):
            yield from _value_only(inner, f"{path}.{junctor}[{place}]", mixed, depth + 1)


def _mapping(schema: Raw, field: str) -> list[tuple[str, Any]]:
    found = schema.get(field)
    return sorted(found.items()) if isinstance(found, Mapping) else []


def _found(pattern: str, value: str) -> bool:
    from kschedd.cel.regex import search

    return search(pattern, value)


def _bad_pattern(pattern: str) -> str:
    from kschedd.cel.regex import PatternError, search  # imports RE2, on the first use of a pattern

    try:
        search(pattern, "")
    except PatternError as wrong:
        return str(wrong)
    return ""


# Pruning and defaulting


def pruned(schema: Raw, value: Any, unknown: list[str] | None = None) -> Any:
    """Return an object without the fields that the schema does not contain; append their paths to `unknown`."""
    return _pruned(schema, value, "", [] if unknown is None else unknown, root=True)


def _pruned(schema: Raw, value: Any, path: str, unknown: list[str], *, root: bool = False) -> Any:
    if isinstance(value, list):
        items = schema.get("items")
        if not isinstance(items, Mapping):
            return value
        return [_pruned(items, each, f"{path}[{index}]", unknown) for index, each in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    known, more = schema.get("properties") or _NOTHING, schema.get("additionalProperties")
    whole = root or bool(schema.get(_EMBEDDED))
    kept = {}
    for name, inner in value.items():
        if whole and name in _ROOT_FIELDS:
            kept[name] = inner
        elif isinstance(known.get(name), Mapping):
            kept[name] = _pruned(known[name], inner, child(path, name), unknown)
        elif isinstance(more, Mapping):
            kept[name] = _pruned(more, inner, child(path, name), unknown)
        elif more is True or schema.get(_UNKNOWN):
            kept[name] = inner
        else:
            unknown.append(child(path, name))
    return kept


def defaulted(schema: Raw, value: Any) -> Any:
    """Return the value with defaults for absent fields, and for nulls that are not allowed."""
    if isinstance(value, list):
        items = schema.get("items")
        return [defaulted(items, each) for each in value] if isinstance(items, Mapping) else value
    if not isinstance(value, Mapping):
        return value
    filled = dict(value)
    known, more = schema.get("properties") or _NOTHING, schema.get("additionalProperties")
    for name, inner in known.items():
        if not isinstance(inner, Mapping):
            continue
        if filled.get(name, None) is None and "default" in inner and not (name in filled and inner.get("nullable")):
            filled[name] = json.loads(json.dumps(inner["default"]))
        if name in filled:
            filled[name] = defaulted(inner, filled[name])
    if isinstance(more, Mapping):
        filled |= {name: defaulted(more, inner) for name, inner in filled.items() if name not in known}
    return filled


# Validation


def value_faults(schema: Raw, value: Any, path: str = "", old: Any = ABSENT) -> list[FieldError]:
    """Return the violations of the schema in this value, except in parts that equal those of the old value."""
    return list(_faults(schema, value, path, old))


def _faults(schema: Raw, value: Any, path: str, old: Any = ABSENT) -> Iterator[FieldError]:
    if value is None and schema.get("nullable"):
        return
    if old is not ABSENT and is_unchanged(schema, value, old):
        return
    kind = str(schema.get("type") or "")
    if schema.get(_INT_OR_STRING):
        if not isinstance(value, str) and not _is(value, "integer"):
            yield _wrong_type(path, "integer,string", value)
            return
    elif kind and not _is(value, kind):
        yield _wrong_type(path, kind, value)
        return
    if isinstance(allowed := schema.get("enum"), list) and value not in allowed:
        yield unsupported(path, value, [str(each) for each in allowed])
    if isinstance(value, str):
        yield from _text_faults(schema, value, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_faults(schema, value, path)
    elif isinstance(value, list):
        yield from _list_faults(schema, value, path, old)
    elif isinstance(value, Mapping):
        yield from _object_faults(schema, value, path, old)
    yield from _junctor_faults(schema, value, path)


def _is(value: Any, kind: str) -> bool:
    match kind:
        case "object":
            return isinstance(value, Mapping)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            whole = isinstance(value, float) and value == int(value) if isinstance(value, float) else False
            return (isinstance(value, int) and not isinstance(value, bool)) or whole
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
    return True


def _wrong_type(path: str, kind: str, value: Any) -> FieldError:
    found = next(
        (name for name in ("boolean", "integer", "number", "string", "array", "object") if _is(value, name)), "null"
    )
    return invalid(path, found, f'{path} in body must be of type {kind}: "{found}"')


def _text_faults(schema: Raw, value: str, path: str) -> Iterator[FieldError]:
    least, most, pattern = schema.get("minLength"), schema.get("maxLength"), schema.get("pattern")
    if isinstance(most, int) and len(value) > most:
        yield FieldError(path, value, f"Too long: may not be more than {most} bytes")
    if isinstance(least, int) and len(value) < least:
        yield invalid(path, value, f"{path} in body should be at least {least} chars long")
    if isinstance(pattern, str) and not _bad_pattern(pattern) and not _found(pattern, value):
        yield invalid(path, value, f"{path} in body should match '{pattern}'")


def _number_faults(schema: Raw, value: float, path: str) -> Iterator[FieldError]:
    least, most, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    beyond, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if least is not None and (value < least or (beyond and value == least)):
        yield invalid(path, value, f"{path} in body should be greater than{'' if beyond else ' or equal to'} {least}")
    if most is not None and (value > most or (below and value == most)):
        yield invalid(path, value, f"{path} in body should be less than{'' if below else ' or equal to'} {most}")
    if step and value % step:
        yield invalid(path, value, f"{path} in body should be a multiple of {step}")


def _list_faults(schema: Raw, value: list[Any], path: str, old: Any) -> Iterator[FieldError]:
    least, most = schema.get("minItems"), schema.get("maxItems")
    if isinstance(most, int) and len(value) > most:
        yield too_many(path, len(value), most)
    if isinstance(least, int) and len(value) < least:
        yield invalid(path, len(value), f"{path} in body should have at least {least} items")
    items = schema.get("items")
    seen: set[str] = set()
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    before = old_items(schema, old)
    for place, each in enumerate(value):
        if isinstance(items, Mapping):
            was = before.get(key_of(each, keys_of(schema)), ABSENT) if before else ABSENT
            yield from _faults(items, each, f"{path}[{place}]", was)
        if schema.get("x-kubernetes-list-type") in ("set", "map"):
            shown = {key: each.get(key) for key in keys} if keys and isinstance(each, Mapping) else each
            known_as = json.dumps(shown, sort_keys=True)
            if known_as in seen:
                yield duplicate(f"{path}[{place}]", shown)
            seen.add(known_as)


def _object_faults(schema: Raw, value: Raw, path: str, old: Any) -> Iterator[FieldError]:
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    if isinstance(most, int) and len(value) > most:
        yield too_many(path, len(value), most)
    if isinstance(least, int) and len(value) < least:
        yield invalid(path, len(value), f"{path} in body should have at least {least} properties")
    for name in schema.get("required") or ():
        if name not in value:
            yield required(child(path, name))
    known, more = schema.get("properties") or _NOTHING, schema.get("additionalProperties")
    then = old if isinstance(old, Mapping) else _NOTHING
    for name, inner in value.items():
        if isinstance(known.get(name), Mapping):
            if not path and name in _ROOT_FIELDS:
                continue  # the API server validates these fields itself
            yield from _faults(known[name], inner, child(path, name), then.get(name, ABSENT))
        elif isinstance(more, Mapping):
            yield from _faults(more, inner, child(path, name), then.get(name, ABSENT))


def _junctor_faults(schema: Raw, value: Any, path: str) -> Iterator[FieldError]:
    def holds(each: Raw) -> bool:
        return next(_faults(each, value, path), None) is None

    for each in schema.get("allOf") or ():
        yield from _faults(each, value, path)
    if schema.get("anyOf") and not any(map(holds, schema["anyOf"])):
        yield invalid(path, "", f'"{path}" must validate at least one schema (anyOf)')
    if schema.get("oneOf") and (count := sum(map(holds, schema["oneOf"]))) != 1:
        found = "none" if not count else str(count)
        yield invalid(path, "", f'"{path}" must validate one and only one schema (oneOf). Found {found} valid')
    if isinstance(schema.get("not"), Mapping) and holds(schema["not"]):
        yield invalid(path, "", f'"{path}" must not validate the schema (not)')
