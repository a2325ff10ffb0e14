"""Ratcheting: an update may keep a wrong value of a custom resource that it does not change.

Values of fields, of map keys, and of items in lists with keys are compared with their old values.

Source: Kubernetes v1.37, apiextensions-apiserver/pkg/apiserver/validation/ratcheting.go,
apiserver/pkg/cel/common/equality.go.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

Raw = Mapping[str, Any]
ABSENT: Final = object()
"""The old value of a value that did not exist, or that cannot be compared."""


def is_unchanged(schema: Raw, value: Any, old: Any) -> bool:
    """Return whether a value equals its old value; the order of items in sets and lists with keys does not count."""
    if isinstance(value, Mapping) and isinstance(old, Mapping):
        known, more = schema.get("properties") or {}, schema.get("additionalProperties")
        return value.keys() == old.keys() and all(
            is_unchanged(_schema(known.get(name, more)), each, old[name]) for name, each in value.items()
        )
    if isinstance(value, list) and isinstance(old, list):
        if len(value) != len(old):
            return False
        items = _schema(schema.get("items"))
        if schema.get("x-kubernetes-list-type") not in ("set", "map"):
            return all(is_unchanged(items, each, was) for each, was in zip(value, old, strict=True))
        before = old_items(schema, old)
        return all(
            (was := before.get(key_of(each, keys_of(schema)), ABSENT)) is not ABSENT and is_unchanged(items, each, was)
            for each in value
        )
    return type(value) is type(old) and bool(value == old)


def old_items(schema: Raw, old: Any) -> Mapping[tuple[str, ...], Any]:
    """Return the old items of a set or of a list with keys, by their keys; {} for other lists."""
    if not isinstance(old, list) or schema.get("x-kubernetes-list-type") not in ("set", "map"):
        return {}
    keys = keys_of(schema)
    return {key_of(each, keys): each for each in old}


def keys_of(schema: Raw) -> Sequence[str]:
    listed = schema.get("x-kubernetes-list-type") == "map"
    return tuple(schema.get("x-kubernetes-list-map-keys") or ()) if listed else ()


def key_of(item: Any, keys: Sequence[str]) -> tuple[str, ...]:
    """Return the values of the key fields that identify an item of a list."""
    return tuple(repr(item.get(key)) for key in keys) if keys and isinstance(item, Mapping) else (repr(item),)


def _schema(found: Any) -> Raw:
    return found if isinstance(found, Mapping) else {}
