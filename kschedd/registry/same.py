"""Semantic equality of (parts of) objects: what is empty equals what is absent, as upstream's equality.Semantic has it.

Both sides are decoded (`kschedd.api.codec`), so quantities and times are compared by their canonical text.
"""

from collections.abc import Mapping
from typing import Any, Final

# Fields for which upstream distinguishes empty from absent; boolean fields for which it equates false and absent.
_NULLABLE: Final = frozenset(
    ("storageClassName", "volumeAttributesClassName", "runtimeClassName", "dataSource", "dataSourceRef")
)
_FLAGS: Final = frozenset(("hostNetwork", "hostPID", "hostIPC", "stdin", "stdinOnce", "tty", "readOnly"))


def same(one: Any, other: Any) -> bool:
    if one == other:
        return isinstance(one, bool) == isinstance(other, bool)
    if _empty(one) or _empty(other):
        return _empty(one) and _empty(other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return all(_same_field(name, one.get(name), other.get(name)) for name in {*one, *other})
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return False


def _same_field(name: str, one: Any, other: Any) -> bool:
    if name in _NULLABLE:
        return bool(one == other)
    return same(one, other) or (name in _FLAGS and not one and not other)


def _empty(value: Any) -> bool:
    return value is None or value == "" or value == {} or value == []
