"""CEL types and values of custom resources, from the structural schema of their definition.

An object with properties is a struct, whose field names are escaped if CEL reserves them. A text with the format date,
date-time, duration or byte has the type of this format. The root, and an embedded resource, also has the fields that
every object has.

Source: Kubernetes v1.37, apiserver/pkg/cel/common/{schemas,values}.go, apiserver/pkg/cel/escaping.go,
apiextensions-apiserver/pkg/apiserver/schema/cel/model/schemas.go.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kschedd.cel.errors import CelFailure
from kschedd.cel.functions.times import duration, timestamp

Raw = Mapping[str, Any]
_SCALARS: Final = {"integer": "int", "number": "double", "boolean": "bool"}
_FORMATS: Final = {
    "date": "timestamp",
    "date-time": "timestamp",
    "datetime": "timestamp",
    "duration": "duration",
    "byte": "bytes",
}
_RESERVED: Final = frozenset(
    "true false null in as break const continue else for function if import let loop package namespace return var void "
    "while".split()
)
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED: Final = re.compile(r"__|[./-]")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_OBJECT_META: Final = "object.metadata"
_META_FIELDS: Final = {"name": "string", "generateName": "string"}
_ROOT: Final = {"apiVersion": "string", "kind": "string", "metadata": _OBJECT_META}
_NO_FIELDS: Final[Raw] = {}


def rule_types(schema: Raw, *, root: bool) -> tuple[str, dict[str, Mapping[str, str]]]:
    """Return the type of the values of a schema, and the fields of the structs in it."""
    structs: dict[str, Mapping[str, str]] = {}
    return _type(schema, "object", structs, root) or "dyn", structs


def _type(schema: Any, name: str, structs: dict[str, Mapping[str, str]], root: bool = False) -> str:
    """Return the type of a schema; "" if expressions cannot use its values."""
    if not isinstance(schema, Mapping):
        return ""
    if schema.get("x-kubernetes-int-or-string"):
        return "dyn"
    kind = schema.get("type")
    if kind == "array":
        item = _type(schema.get("items"), f"{name}.@idx", structs)
        return f"list({item})" if item else ""
    if kind == "object":
        more = schema.get("additionalProperties")
        if isinstance(more, Mapping):
            value = _type(more, f"{name}.@elem", structs)
            return f"map(string,{value})" if value else ""
        if more is True:
            return "map(string,dyn)"
        fields: dict[str, str] = {}
        if root or schema.get("x-kubernetes-embedded-resource"):
            fields.update(_ROOT)
            structs[_OBJECT_META] = _META_FIELDS
        structs[name] = fields
        for field, inner in (schema.get("properties") or _NO_FIELDS).items():
            escaped, of = escaped_name(field), _type(inner, f"{name}.{field}", structs)
            if escaped and of and not (field in fields and field != "metadata"):
                fields[escaped] = _OBJECT_META if field == "metadata" and field in fields else of
        return name
    if kind == "string":
        return _FORMATS.get(str(schema.get("format")), "string")
    return _SCALARS.get(str(kind), "")


def rule_value(schema: Any, value: Any, *, root: bool = False) -> Any:
    """Return a JSON value converted to the CEL type of its schema.

    Raises CelFailure for a text that does not have its format.
    """
    if not isinstance(schema, Mapping) or schema.get("x-kubernetes-int-or-string"):
        return value
    if isinstance(value, Mapping):
        known, more = schema.get("properties") or _NO_FIELDS, schema.get("additionalProperties")
        if isinstance(more, Mapping) or more is True:
            return {name: rule_value(more, each) for name, each in value.items()}
        return dict(_fields(schema, known, value, root))
    if isinstance(value, list):
        return [rule_value(schema.get("items"), each) for each in value]
    if isinstance(value, str):
        return _formatted(str(schema.get("format")), value)
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def _fields(schema: Raw, known: Raw, value: Raw, root: bool) -> Iterator[tuple[str, Any]]:
    has_meta = root or bool(schema.get("x-kubernetes-embedded-resource"))
    for name, each in value.items():
        if has_meta and name in _ROOT:
            yield name, each
        elif name in known and (escaped := escaped_name(name)):
            yield escaped, rule_value(known[name], each)


def _formatted(format: str, text: str) -> Any:
    match format:
        case "date":
            return timestamp(f"{text}T00:00:00Z")
        case "date-time" | "datetime":
            return timestamp(text)
        case "duration":
            return duration(text)
        case "byte":
            try:
                return base64.b64decode(text, validate=True)
            except (binascii.Error, ValueError) as fault:
                raise CelFailure("illegal base64 data") from fault
    return text


def escaped_name(name: str) -> str:
    """Return the name of a field in expressions; "" if they cannot use the field."""
    if name in _RESERVED:
        return f"__{name}__"
    escaped = _ESCAPED.sub(lambda found: _ESCAPES[found[0]], name)
    return escaped if _NAME.fullmatch(escaped) else ""
