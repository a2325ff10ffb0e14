"""The merge schema of a custom resource, derived from the structural schema in its definition.

Source: Kubernetes v1.34, apimachinery/pkg/util/managedfields/typeconverter.go, kube-openapi/pkg/schemaconv.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.schemas.schema import ANY, BOOL, INT, NUMBER, QUANTITY, STR, Fields, ListOf, MapOf, Schema, type_named

Raw = Mapping[str, Any]

_SCALARS: Final[Mapping[str, Schema]] = {"string": STR, "integer": INT, "number": NUMBER, "boolean": BOOL}
_UNTYPED: Final = QUANTITY  # a scalar of any type


def structural_schema(openapi: Raw | None) -> Fields:
    """Return the schema of whole objects.

    Without a structural schema, all fields except the metadata may have any type.
    """
    whole = _fields("custom resource", openapi or {"x-kubernetes-preserve-unknown-fields": True})
    whole.update(apiVersion=STR, kind=STR, metadata=type_named("meta.ObjectMeta"))
    return whole


def _fields(name: str, openapi: Raw) -> Fields:
    made = Fields(name)
    for field, inner in (openapi.get("properties") or {}).items():
        made[field] = _schema(field, inner)
    if openapi.get("x-kubernetes-preserve-unknown-fields"):
        made.others = ANY
    made.atomic = openapi.get("x-kubernetes-map-type") == "atomic"
    return made


def _schema(name: str, openapi: Raw) -> Schema:
    if openapi.get("x-kubernetes-int-or-string"):
        return _UNTYPED
    sort = str(openapi.get("type") or "")
    if sort in _SCALARS:
        plain = sort != "string" or openapi.get("format") in (None, "", "byte")
        return _SCALARS[sort] if plain else _UNTYPED
    if sort == "array":
        return _list(openapi)
    inner = openapi.get("additionalProperties")
    if isinstance(inner, Mapping):
        return MapOf(_schema(name, inner), openapi.get("x-kubernetes-map-type") == "atomic")
    if sort == "object" and (openapi.get("properties") or not openapi.get("x-kubernetes-preserve-unknown-fields")):
        return _fields(name, openapi)
    return ANY


def _list(openapi: Raw) -> ListOf:
    items = openapi.get("items") or {}
    item = _schema("items", items)
    keys: tuple[str, ...] | None = None
    match openapi.get("x-kubernetes-list-type"):
        case "set":
            keys = ()
        case "map":
            keys = tuple(openapi.get("x-kubernetes-list-map-keys") or ())
            if type(item) is Fields:
                for key in keys:
                    default = ((items.get("properties") or {}).get(key) or {}).get("default")
                    if default is not None:
                        item.key_defaults[key] = default
    return ListOf(item, keys)
