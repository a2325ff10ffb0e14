"""Objects as Go encodes them in JSON: fields in the order of the struct, and sorted map keys.

Stored objects have their fields in the order in which they were written; only messages that quote an object use Go's
order. `kschedd.api.schemas.schema` lists the fields of each type in upstream's order.

Source: the order of the fields in Kubernetes v1.34, staging/src/k8s.io/api; Go 1.24, encoding/json (HTML escapes).
"""

import json
from typing import Any, Final

from kschedd.api.schemas.schema import Fields, ListOf, MapOf, Schema

_HTML: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def in_go_order(value: Any, schema: Schema) -> Any:
    """Return the value with its fields in the order of their types.

    Unknown fields come last, in their original order.
    """
    if isinstance(schema, Fields) and isinstance(value, dict):
        known = {name: in_go_order(value[name], inner) for name, inner in schema.items() if name in value}
        return {**known, **value, **known}
    if isinstance(schema, ListOf) and isinstance(value, list):
        return [in_go_order(each, schema.item) for each in value]
    if isinstance(schema, MapOf) and isinstance(value, dict):
        return {name: in_go_order(value[name], schema.item) for name in sorted(value)}
    return value


def sorted_keys(value: Any) -> Any:
    """Return the value with the keys of all its maps sorted."""
    if isinstance(value, dict):
        return {name: sorted_keys(value[name]) for name in sorted(value)}
    return [sorted_keys(each) for each in value] if isinstance(value, list) else value


def go_json(value: Any, indent: int | None = None) -> str:
    """Return the value as JSON in its present order; `indent` is the number of spaces for output on several lines."""
    separators = (",", ":") if indent is None else (",", ": ")
    text = json.dumps(value, default=str, ensure_ascii=False, separators=separators, indent=indent)
    return text.translate(_HTML)
