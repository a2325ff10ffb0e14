"""Decoding and encoding of a status, with a cache for its lists.

Kubelets send identical lists of conditions and of containers for many pods. Each field of a status is checked, decoded
and encoded separately, so a list has the same result in every status of a kind. The result is cached by the identity of
the list, so that pods with the same list share the result. Some lists are equal without being identical, such as the
conditions of the victims of one preemption. Conditions are therefore cached by their msgpack bytes, which differ if
types or order differ.

The cache refers to the lists that it has validated, so that no other list can have the same identity. Cleared when
full.
"""

from collections.abc import Callable
from typing import Any, Final

import msgpack

from kschedd.api.schemas.check import check_status_schema
from kschedd.api.schemas.codec import decoded, encoded
from kschedd.api.schemas.fields import FieldError
from kschedd.api.schemas.schema import Fields

_MOST: Final = 256
_BY_BYTES: Final = "conditions"
_pack: Final = msgpack.Packer(autoreset=True).pack
_Key = tuple[str, str, int | bytes]
# by kind, field, and identity or bytes: a list in original, decoded and encoded form
_lists: Final[dict[_Key, tuple[list[Any], list[Any], list[Any]]]] = {}
Status = dict[str, Any]


def typed_status(
    kind: str, status: Any, fields: Fields, default: Callable[[Status], Status] = lambda status: status
) -> tuple[Status, Status, list[FieldError]]:
    """Return the status decoded and with defaults, the encoded status, and the type errors of its fields.

    `default` adds or replaces fields of the status without modifying values in place.
    """
    if not isinstance(status, dict):
        return {}, {}, check_status_schema(kind, status)
    keys = {name: _key(kind, name, part) for name, part in status.items() if type(part) is list and part}
    known = {name: kept for name, key in keys.items() if (kept := _lists.get(key)) is not None}
    others = {name: part for name, part in status.items() if name not in known}
    if faults := check_status_schema(kind, others):
        return {}, {}, faults
    slim = decoded(others, fields)
    done = default(_in_order(status, slim, {name: kept[1] for name, kept in known.items()}))
    listed = {name: kept[2] for name, kept in known.items() if done.get(name) is kept[1]}
    printed = encoded({name: part for name, part in done.items() if name not in listed}, fields)
    for name, part in others.items():
        if type(part) is list and part and name in printed and done.get(name) is slim.get(name):
            if len(_lists) >= _MOST:
                _lists.clear()
            _lists[keys[name]] = part, slim[name], printed[name]
    return done, _in_order(done, printed, listed), []


def _key(kind: str, name: str, part: list[Any]) -> _Key:
    if name == _BY_BYTES:
        try:
            return kind, name, _pack(part)
        except (OverflowError, ValueError, TypeError):  # such values cannot be stored, and are rejected later
            return kind, name, id(part)
    return kind, name, id(part)


def _in_order(order: Status, some: Status, others: Status) -> Status:
    """Return both parts as one status: the fields of `order` in its order, then the other fields of `some`."""
    if not others:
        return some
    whole = {}
    for name in order:
        if name in others:
            whole[name] = others[name]
        elif name in some:
            whole[name] = some[name]
    for name, part in some.items():
        whole.setdefault(name, part)
    return whole
