"""Encoding of MessagePack-RPC messages, the counterpart of `kschedd.rpc.protocol`.

No I/O. Unless documented otherwise, values that cannot be encoded raise MessagePack's exceptions.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs
import msgpack

from kschedd.answers import fields_of

REQUEST: Final = 0
RESPONSE: Final = 1
NOTIFICATION: Final = 2
#: number of bytes of a large response encoded per step
PIECE: Final = 1 << 16


def encode_request(msgid: int, method: str, params: list[Any] | tuple[Any, ...]) -> bytes:
    return _pack((REQUEST, msgid, method, params))


def encode_notification(method: str, params: list[Any] | tuple[Any, ...]) -> bytes:
    """Encode a notification. Raises ValueError, TypeError or OverflowError if a parameter has no MessagePack form."""
    return _pack((NOTIFICATION, method, params))


def encode_response(msgid: int, result: Any) -> bytes:
    """Encode a response. Raises ValueError, TypeError or OverflowError if the result has no MessagePack form."""
    return _pack((RESPONSE, msgid, None, result))


def encode_pieces(msgid: int, head: Mapping[str, Any], name: str, values: Iterable[Any], count: int) -> Iterator[bytes]:
    """Yield a response in pieces: the map `head`, to which the array of `count` values is added as `name`."""
    packer = msgpack.Packer(use_bin_type=True, default=_plain, autoreset=False)
    packer.pack_array_header(4)
    for value in (RESPONSE, msgid, None):
        packer.pack(value)
    packer.pack_map_header(len(head) + 1)
    for key, value in head.items():
        packer.pack(key)
        packer.pack(value)
    packer.pack(name)
    packer.pack_array_header(count)
    for value in values:
        packer.pack(value)
        if packer.getbuffer().nbytes >= PIECE:
            yield packer.bytes()
            packer.reset()
    yield packer.bytes()


def encode_error(msgid: int, code: str, message: str, data: Any = None) -> bytes:
    """Encode an error response; data that cannot be encoded is omitted."""
    error: dict[str, Any] = {"code": code, "message": message.encode("utf-8", "replace").decode()}
    if data is not None:
        try:
            return _pack((RESPONSE, msgid, {**error, "data": data}, None))
        except (ValueError, TypeError, OverflowError):
            pass
    return _pack((RESPONSE, msgid, error, None))


def _pack(message: Any) -> bytes:
    packed: bytes = _packers.packer.pack(message)
    return packed


def _plain(value: Any) -> Any:
    """Return an answer object, or a scalar of a numpy column, as a value that MessagePack can encode."""
    if attrs.has(type(value)):
        return fields_of(value)
    # numpy is not imported, because clients do not need it
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return value.item()
    raise TypeError(f"{type(value).__qualname__} has no MessagePack form")


class _Packers(threading.local):
    """One packer per thread; a packer has a 256 KiB buffer, in which threads would mix messages."""

    def __init__(self) -> None:
        self.packer = msgpack.Packer(use_bin_type=True, default=_plain)


_packers = _Packers()
