"""Validation rules of custom resources: CEL rules of a schema (`x-kubernetes-validations`) about `self` and `oldSelf`.

A rule belongs to a part of the schema and is evaluated for each value of this part. A rule that uses `oldSelf` is a
transition rule. A transition rule is evaluated only if the value existed before. The old value of a field or map key is
always available, but that of a list item only if the list has keys. Rules are compiled when their
CustomResourceDefinition is written. A rule that does not compile is rejected at that time, so every stored rule is
effective.

Source: Kubernetes v1.34, apiextensions-apiserver/pkg/apiserver/schema/cel (validation.go, compilation.go);
apiserver/pkg/cel/escaping.go. Unsupported: `optionalOldSelf`, `messageExpression`, and libraries other than those of
device selectors. The compiler supports only the types of scalars, lists and maps.
Errors: none; violations are returned.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from kschedd.api.schemas.fields import FieldError, child, duplicate, forbidden, invalid, required
from kschedd.cel.errors import CelCompileError, CelFailure

if TYPE_CHECKING:
    from kschedd.cel.program import CelCondition

Raw = Mapping[str, Any]

RULES: Final = "x-kubernetes-validations"
_OLD: Final = re.compile(r"\boldSelf\b")
_TYPES: Final = {"string": "string", "integer": "int", "number": "double", "boolean": "bool", "array": "list"}
_RESERVED: Final = frozenset(
    "true false null in as break const continue else for function if import let loop package namespace return var void "
    "while".split()
)
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED: Final = re.compile(r"__|[./-]")
_ROOT: Final = ("apiVersion", "kind", "metadata")
_ABSENT: Final = object()
_NO_FIELDS: Final[Raw] = {}


def definition_rule_faults(schema: Any, path: str) -> Iterator[FieldError]:
    """Yield errors for rules in the schema that do not compile."""
    if not isinstance(schema, Mapping):
        return
    for index, rule in enumerate(_rules(schema)):
        here = f"{path}.{RULES}[{index}]"
        text = rule.get("rule")
        if not isinstance(text, str) or not text.strip():
            yield required(f"{here}.rule", "rule is not specified")
            continue
        for field in ("optionalOldSelf", "messageExpression"):
            if rule.get(field):
                yield forbidden(f"{here}.{field}", "is not evaluated here: leave it out")
        try:
            _compiled(text, _type_of(schema))
        except CelCompileError as wrong:
            yield invalid(f"{here}.rule", text, str(wrong))
    for name, inner in _inner_schemas(schema):
        yield from definition_rule_faults(inner, f"{path}.{name}")


def rule_faults(schema: Raw, value: Any, old: Any = _ABSENT) -> list[FieldError]:
    """Return the violations of a schema's rules in an object; `old` is the previous object."""
    return list(_faults(schema, value, old, "", root=True))


def _faults(schema: Raw, value: Any, old: Any, path: str, *, root: bool = False) -> Iterator[FieldError]:
    if value is None:
        return
    for rule in _rules(schema):
        if (fault := _broken(rule, schema, value, old, path, root)) is not None:
            yield fault
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, Mapping):
        before = _by_keys(schema, old)
        keys = _keys(schema)
        for index, each in enumerate(value):
            was = before.get(_key_of(each, keys), _ABSENT) if before else _ABSENT
            yield from _faults(items, each, was, f"{path}[{index}]")
    elif isinstance(value, Mapping):
        then = old if isinstance(old, Mapping) else _NO_FIELDS
        known, more = schema.get("properties") or _NO_FIELDS, schema.get("additionalProperties")
        for name, each in value.items():
            inner = known.get(name, more)
            if isinstance(inner, Mapping):
                yield from _faults(inner, each, then.get(name, _ABSENT), child(path, name))


def _broken(rule: Raw, schema: Raw, value: Any, old: Any, path: str, root: bool) -> FieldError | None:
    text = str(rule.get("rule") or "")
    changes = _OLD.search(text) is not None
    if changes and (old is _ABSENT or old is None):
        return None
    shown = str(schema.get("type") or "object")
    message = str(rule.get("message") or "").strip() or f"failed rule: {' '.join(text.split())}"
    try:
        condition = _compiled(text, _type_of(schema))
        values = {"self": _cel_value(schema, value, root)}
        if changes:
            values["oldSelf"] = _cel_value(schema, old, root)
        if condition.holds(values):
            return None
    except CelCompileError as wrong:
        return invalid(path or "<nil>", shown, f"rule compile error: {wrong}")
    except CelFailure as wrong:
        return invalid(path or "<nil>", shown, f"{wrong} evaluating rule: {message}")
    where = f"{path}{rule.get('fieldPath') or ''}".removeprefix(".") or "<nil>"
    match rule.get("reason"):
        case "FieldValueForbidden":
            return forbidden(where, message)
        case "FieldValueRequired":
            return required(where, message)
        case "FieldValueDuplicate":
            return duplicate(where, shown)
    return invalid(where, shown, message)


@lru_cache(1 << 10)
def _compiled(text: str, of_type: str) -> "CelCondition":
    from kschedd.cel.program import compile_condition

    variables = {"self": of_type}
    if _OLD.search(text):
        variables["oldSelf"] = of_type
    return compile_condition(text, variables)


def _type_of(schema: Raw) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "dyn"
    return _TYPES.get(str(schema.get("type")), "dyn")


def _rules(schema: Raw) -> Sequence[Raw]:
    found = schema.get(RULES)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else ()


def _inner_schemas(schema: Raw) -> Iterator[tuple[str, Any]]:
    known = schema.get("properties")
    for name, inner in sorted(known.items()) if isinstance(known, Mapping) else ():
        yield f"properties[{name}]", inner
    for field in ("items", "additionalProperties"):
        yield field, schema.get(field)


def _keys(schema: Raw) -> Sequence[str]:
    listed = schema.get("x-kubernetes-list-type") == "map"
    return tuple(schema.get("x-kubernetes-list-map-keys") or ()) if listed else ()


def _by_keys(schema: Raw, old: Any) -> dict[tuple[str, ...], Any]:
    keys = _keys(schema)
    return {_key_of(each, keys): each for each in old} if keys and isinstance(old, list) else {}


def _key_of(item: Any, keys: Sequence[str]) -> tuple[str, ...]:
    """Return the values of the key fields that identify an item of a list."""
    return tuple(repr(item.get(key)) for key in keys) if isinstance(item, Mapping) else (repr(item),)


def _cel_value(schema: Any, value: Any, root: bool = False) -> Any:
    """Return a value converted for CEL: field names escaped, numbers as floats, unknown fields removed."""
    if not isinstance(schema, Mapping):
        return value
    if isinstance(value, Mapping):
        known, more = schema.get("properties") or _NO_FIELDS, schema.get("additionalProperties")
        if isinstance(more, Mapping) or more is True:
            return {name: _cel_value(more, each) for name, each in value.items()}
        seen = {_escaped(name): _cel_value(known[name], each) for name, each in value.items() if name in known}
        return {**{name: value[name] for name in _ROOT if root and name in value}, **seen} if root else seen
    if isinstance(value, list):
        return [_cel_value(schema.get("items"), each) for each in value]
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def _escaped(name: str) -> str:
    if name in _RESERVED:
        return f"__{name}__"
    return _ESCAPED.sub(lambda found: _ESCAPES[found[0]], name)
