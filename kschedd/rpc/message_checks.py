"""Limits on messages of untrusted clients: length, nesting, and number of arrays and maps.

A length is checked when a message announces it; nesting and map keys are checked when the message is unpacked.
The checks work without recursion and in slices, because clients choose the depth and the number of values.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import islice
from typing import Any, Final

import attrs

from kschedd.limits import MAX_REQUEST_BYTES

_MIB = 1 << 20
_ENVELOPE = 4096  # bytes of a message in addition to the body (kube-apiserver's term)


@attrs.frozen
class Limits:
    """The limits on messages from the peer; lengths are in bytes or entries."""

    message: int = MAX_REQUEST_BYTES + _ENVELOPE
    text: int = MAX_REQUEST_BYTES + _ENVELOPE
    binary: int = MAX_REQUEST_BYTES + _ENVELOPE
    array: int = MAX_REQUEST_BYTES
    map: int = MAX_REQUEST_BYTES // 2
    # None: the unpacker's own limit of about 1,000
    depth: int | None = 64
    trusted: bool = False  # True: messages are unpacked while they arrive
    stated: int = MAX_REQUEST_BYTES  # limit to report in the error for a large message

    @classmethod
    def of_requests(cls, max_bytes: int) -> Limits:
        """Return the limits for requests of at most `max_bytes`."""
        whole = max_bytes + _ENVELOPE
        return cls(whole, whole, whole, max_bytes, max_bytes // 2, stated=max_bytes)


#: for a server, because clients are untrusted
FROM_CLIENTS = Limits()
#: for a client, which trusts its daemon and may request data of a hundred thousand pods
FROM_DAEMON = Limits(1024 * _MIB, 256 * _MIB, 1024 * _MIB, 1 << 24, 1 << 24, None, trusted=True, stated=1024 * _MIB)


#: maximum number of arrays and maps in a message, because freeing more would block the event loop
MOST_CONTAINERS: Final = 1 << 18
_LOOKED_AT: Final = 20_000  # number of values checked or freed in one slice
_CONTAINER: Final = 15  # cost of an empty container, in scalar values

# by first byte: size of a fixed-size value, or of the length field of any other value
_FIXED = {0xCA: 5, 0xCB: 9, 0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9, 0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9}
_FIXED |= {0xD4: 3, 0xD5: 4, 0xD6: 6, 0xD7: 10, 0xD8: 18, 0xDC: 3, 0xDD: 5, 0xDE: 3, 0xDF: 5}
_LENGTHS = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_COUNTS = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}


def announced_too_long(head: bytes, limits: Limits) -> str:
    """Return the fault of the last value in an incomplete message, or "".

    The unpacker checks the length of a string or bytes only after the whole value has arrived. This function rejects an
    excessive length near the beginning of a message immediately. Later in the message, only the limit on the whole
    message applies.
    """
    at = 0
    while at < len(head):
        first = head[at]
        if counted := _COUNTS.get(first):
            number = int.from_bytes(head[at + 1 : at + 1 + counted], "big") if at + 1 + counted <= len(head) else 0
            if number > (limits.array if first <= 0xDD else limits.map):
                what = f"an array of {number} elements" if first <= 0xDD else f"a map of {number} entries"
                return f"{what} announced; at most {limits.array if first <= 0xDD else limits.map} are taken"
        if 0xA0 <= first <= 0xBF:
            at += 1 + (first & 0x1F)
        elif (width := _LENGTHS.get(first, 0)) == 0:
            at += _FIXED.get(first, 1)
        elif at + 1 + width > len(head):
            return ""
        else:
            length = int.from_bytes(head[at + 1 : at + 1 + width], "big")
            if first <= 0xC6 and length > limits.binary:
                return f"{length} bytes of binary announced; at most {limits.binary} are taken"
            if 0xD9 <= first and length > limits.text:
                return f"a string of {length} bytes announced; at most {limits.text} are taken"
            if 0xC7 <= first <= 0xC9 and length:
                return f"an extension of {length} bytes, which is not supported"
            at += 1 + width + length
    return ""


def params_fault(
    params: list[Any], depth: int | None, seen: list[list[Any] | dict[str, Any]]
) -> Generator[None, None, str]:
    """Return the fault in the params, or "".

    Every array and map is appended to `seen`, in order of depth.

    The traversal is level by level, without recursion, because clients choose the depth.
    """
    level: list[Any] = [params]
    reached = looked_at = 0
    while level:
        reached += 1
        if depth is not None and reached > depth:
            return f"the params nest deeper than {depth} levels"
        below: list[Any] = []
        for container in level:
            seen.append(container)
            mapping = type(container) is dict
            looked_at += _CONTAINER
            if looked_at >= _LOOKED_AT:
                looked_at = 0
                yield
            values = iter(container.items() if mapping else container)
            while part := list(islice(values, _LOOKED_AT)):
                if mapping:
                    for key, value in part:
                        if type(key) is not str:
                            return f"a map key is {value_text(key)}; only strings are allowed"
                        if type(value) is dict or type(value) is list:
                            below.append(value)
                else:
                    for value in part:
                        if type(value) is dict or type(value) is list:
                            below.append(value)
                looked_at += len(part)
                if looked_at >= _LOOKED_AT:
                    looked_at = 0
                    yield
        if len(seen) + len(below) > MOST_CONTAINERS:
            seen += below
            return f"the params hold more than {MOST_CONTAINERS} arrays and maps"
        level = below
    return ""


def free_in_slices(seen: list[list[Any] | dict[str, Any]]) -> Iterator[None]:
    """Free the values of a rejected message in slices, deepest first."""
    freed = 0
    while seen:
        container = seen.pop()
        while isinstance(container, list) and len(container) > _LOOKED_AT:
            del container[-_LOOKED_AT:]
            yield None
        freed += 1 + len(container)
        container.clear()
        if freed >= _LOOKED_AT:
            freed = 0
            yield None


def value_text(value: Any) -> str:
    """Return a short description of a value, without recursion."""
    match value:
        case dict():
            return f"a map with {len(value)} entries"
        case list():
            return f"an array of {len(value)}"
        case str():
            return f"the string {value[:40]!r}{'…' if len(value) > 40 else ''}"
        case bytes():
            return f"{len(value)} bytes"
        case None:
            return "nil"
        case _:
            return f"the {type(value).__name__} {value}"
