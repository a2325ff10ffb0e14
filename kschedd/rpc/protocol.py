"""MessagePack-RPC without I/O: bytes in, events out; messages in, bytes out.

A message is a MessagePack array (the public specification, github.com/msgpack-rpc/msgpack-rpc):

    request       [0, msgid, method, params]
    response      [1, msgid, error, result]
    notification  [2, method, params]

`Connection` is one side's view of one byte stream. It knows two kinds of fault. When the bytes are not
MessagePack, break a limit, or are not an array of that form, nobody can tell where the next message begins
or whether the other side means RPC at all: the fault is fatal and the connection reads no more. When only
one message is wrong (its parameters are no array, it nests too deep), the fault names its msgid if it has
one, and the messages after it are read as usual.

Whatever bytes come, `receive` returns events and raises nothing. Extension types and map keys that are not
strings have no place in the messages of this program and are faults too.

Talks to nobody; imports no Trio. Ends at a fatal fault or at the end of the stream.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, NoReturn

import attrs
import msgpack

REQUEST, RESPONSE, NOTIFICATION = 0, 1, 2
MAX_MSGID = 2**32 - 1
#: The msgid of an error that answers no request in particular. Clients should count from 1.
NO_MSGID = 0

_MIB = 1 << 20
#: Bytes given to the unpacker at once, so that its buffer is bounded whatever a caller passes in.
_FEED = _MIB
#: How far into an unfinished message its announced lengths are looked at, see `_announced_too_long`.
_HEAD = 512


@attrs.frozen
class Limits:
    """The largest things taken from the other side; lengths in bytes or entries."""

    message: int = 32 * _MIB
    text: int = 16 * _MIB
    binary: int = 32 * _MIB
    # The unpacker makes room for a whole array when it sees its header: this bounds what five bytes can cost.
    array: int = 1 << 17
    map: int = 1 << 17
    # None: only the unpacker's own bound, about 1,000.
    depth: int | None = 64


#: For whoever serves strangers.
FROM_CLIENTS = Limits()
#: For a client, who trusts its daemon and may ask it for a hundred thousand pods.
FROM_DAEMON = Limits(message=1024 * _MIB, text=256 * _MIB, binary=1024 * _MIB, array=1 << 24, map=1 << 24, depth=None)


@attrs.frozen
class Request:
    msgid: int
    method: str
    params: list[Any]


@attrs.frozen
class Notification:
    method: str
    params: list[Any]


@attrs.frozen
class Response:
    msgid: int
    error: Any
    result: Any


@attrs.frozen
class ProtocolFault:
    """Something that came and is no message. `msgid` is the request to answer, where one can be told."""

    why: str
    msgid: int | None
    fatal: bool


Event = Request | Notification | Response | ProtocolFault


class Connection:
    """One side's view of one byte stream; see the module. After a fatal fault `closed` is true."""

    def __init__(self, limits: Limits = FROM_CLIENTS) -> None:
        self.closed = False
        self._limits = limits
        self._received = 0
        self._message_start = 0
        self._head = b""  # what has come of an unfinished message, while that is little
        self._unpacker = msgpack.Unpacker(
            raw=False,
            use_list=True,
            strict_map_key=True,
            ext_hook=_refuse_extension,
            max_buffer_size=limits.message + _FEED,
            max_str_len=limits.text,
            max_bin_len=limits.binary,
            max_array_len=limits.array,
            max_map_len=limits.map,
            max_ext_len=0,
        )

    def receive(self, data: bytes | bytearray | memoryview) -> list[Event]:
        """The messages and faults that these bytes complete, in order. Raises nothing."""
        events: list[Event] = []
        for start in range(0, len(data), _FEED):
            if self.closed:
                break
            self._take(data[start : start + _FEED] if len(data) > _FEED else data, events)
        return events

    def receive_eof(self) -> list[Event]:
        """The stream has ended: a fault if it did so within a message."""
        events: list[Event] = []
        unfinished = self._received - self._message_start
        if unfinished and not self.closed:
            events.append(ProtocolFault(f"the stream ended {unfinished} bytes into a message", None, True))
        self.closed = True
        return events

    def _take(self, data: bytes | bytearray | memoryview, events: list[Event]) -> None:
        unpacker, limit = self._unpacker, self._limits.message
        self._received += len(data)
        why = ""
        try:
            unpacker.feed(data)
            while True:
                message = unpacker.unpack()
                end = unpacker.tell()
                size, self._message_start = end - self._message_start, end
                if size > limit:
                    why = f"a message of {size} bytes; at most {limit} are taken"
                    break
                event = self._event(message)
                events.append(event)
                if type(event) is ProtocolFault and event.fatal:
                    self.closed = True
                    return
        except msgpack.OutOfData:
            size = self._received - self._message_start
            if size == 0:
                self._head = b""
                return
            if size > limit:
                why = f"a message of more than {limit} bytes"
            else:
                self._head = (self._head + bytes(data))[-size:] if size <= _HEAD else b""
                why = _announced_too_long(self._head, self._limits)
                if not why:
                    return
        except msgpack.BufferFull:
            why = f"a message of more than {limit} bytes"
        except msgpack.StackError:
            why = "arrays or maps nested far too deep"
        except msgpack.FormatError:
            why = "a byte that begins no MessagePack value (0xc1)"
        except UnicodeDecodeError as error:
            why = f"a string that is not UTF-8 ({error.reason} at its byte {error.start})"
        except (msgpack.UnpackException, ValueError) as error:
            why = str(error)
        self.closed = True
        events.append(ProtocolFault(why, None, True))

    def _event(self, message: Any) -> Event:
        match message:
            case [int(kind), int(msgid), method, params] if kind == REQUEST and _is_msgid(kind, msgid):
                if why := self._fault_of(method, params):
                    return ProtocolFault(why, msgid, False)
                return Request(msgid, method, params)
            case [int(kind), method, params] if kind == NOTIFICATION:
                if why := self._fault_of(method, params):
                    return ProtocolFault(why, None, False)
                return Notification(method, params)
            case [int(kind), int(msgid), error, result] if kind == RESPONSE and _is_msgid(kind, msgid):
                return Response(msgid, error, result)
            case _:
                return ProtocolFault(
                    f"{_outline(message)} is no message: allowed are [0, msgid, method, params], "
                    f"[1, msgid, error, result], [2, method, params], with a msgid from 0 to {MAX_MSGID}",
                    None,
                    True,
                )

    def _fault_of(self, method: Any, params: Any) -> str:
        """What is wrong with a request or notification, "" if nothing."""
        if type(method) is not str:
            return f"the method must be a string, not {_outline(method)}"
        if type(params) is not list:
            return f"the params must be an array (named ones: one map within it), not {_outline(params)}"
        if not params:
            return ""
        return _too_deep_or_odd(params, self._limits.depth)


def encode_request(msgid: int, method: str, params: list[Any] | tuple[Any, ...]) -> bytes:
    return _pack((REQUEST, msgid, method, params))


def encode_notification(method: str, params: list[Any] | tuple[Any, ...]) -> bytes:
    """Raises ValueError, TypeError or OverflowError if a parameter has no MessagePack form."""
    return _pack((NOTIFICATION, method, params))


def encode_response(msgid: int, result: Any) -> bytes:
    """Raises ValueError, TypeError or OverflowError if the result has no MessagePack form."""
    return _pack((RESPONSE, msgid, None, result))


def encode_error(msgid: int, code: str, message: str, data: Any = None) -> bytes:
    """An error response; data that has no MessagePack form is left out rather than refused."""
    error: dict[str, Any] = {"code": code, "message": message.encode("utf-8", "replace").decode()}
    if data is not None:
        try:
            return _pack((RESPONSE, msgid, {**error, "data": data}, None))
        except (ValueError, TypeError, OverflowError):
            pass
    return _pack((RESPONSE, msgid, error, None))


def msgids() -> Iterator[int]:
    """Message ids for one connection: 1 up to the largest, then again from 1."""
    while True:
        yield from range(1, MAX_MSGID + 1)


def _is_msgid(kind: int, msgid: int) -> bool:
    # True and False are ints to Python and are not to MessagePack.
    return 0 <= msgid <= MAX_MSGID and type(msgid) is int and type(kind) is int


# By first byte: how long a value of fixed size is, and how many bytes of length a string or the like begins with.
_FIXED = {0xCA: 5, 0xCB: 9, 0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9, 0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9}
_FIXED |= {0xD4: 3, 0xD5: 4, 0xD6: 6, 0xD7: 10, 0xD8: 18, 0xDC: 3, 0xDD: 5, 0xDE: 3, 0xDF: 5}
_LENGTHS = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}


def _announced_too_long(head: bytes, limits: Limits) -> str:
    """What is wrong with the value that an unfinished message is in the midst of, "" if nothing.

    The unpacker looks at the length of a string or of bytes only when all of it has come. Whoever announces
    too much near the beginning is told at once; further in, the limit of a whole message is what holds.
    """
    at = 0
    while at < len(head):
        first = head[at]
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
                return f"an extension of {length} bytes announced; none is used here"
            at += 1 + width + length
    return ""


def _too_deep_or_odd(params: list[Any], depth: int | None) -> str:
    """Walks level by level, without recursion: strangers choose how deep it is."""
    level: list[Any] = [params]
    reached = 0
    while level:
        reached += 1
        if depth is not None and reached > depth:
            return f"the params nest deeper than {depth} levels"
        below: list[Any] = []
        for container in level:
            if type(container) is dict:
                for key, value in container.items():
                    if type(key) is not str:
                        return f"a map key is {_outline(key)}; only strings are allowed"
                    if type(value) is dict or type(value) is list:
                        below.append(value)
            else:
                for value in container:
                    if type(value) is dict or type(value) is list:
                        below.append(value)
        level = below
    return ""


def _outline(value: Any) -> str:
    """A value in a few words; never its contents at length, and never by recursion."""
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


def _refuse_extension(code: int, _data: bytes) -> NoReturn:
    raise ValueError(f"an extension type ({code}); none is used here")


def _pack(message: Any) -> bytes:
    packed: bytes = _packers.packer.pack(message)
    return packed


def _plain_number(value: Any) -> Any:
    # Scalars out of numpy columns; numpy itself is not imported, a client can do without.
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return value.item()
    raise TypeError(f"{type(value).__qualname__} has no MessagePack form")


class _Packers(threading.local):
    """One packer a thread: making one costs a 256 KiB buffer, using one from two threads mixes messages."""

    def __init__(self) -> None:
        self.packer = msgpack.Packer(use_bin_type=True, default=_plain_number)


_packers = _Packers()
