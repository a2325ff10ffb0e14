"""Sans-I/O MessagePack-RPC: bytes in, events out; messages in, bytes out.

A message is a MessagePack array (the public specification, github.com/msgpack-rpc/msgpack-rpc):

    request       [0, msgid, method, params]
    response      [1, msgid, error, result]
    notification  [2, method, params]

`Connection` is one side's view of one byte stream. There are two kinds of fault. If the bytes are not
MessagePack, exceed a limit, or are not an array of that form, the start of the next message is unknown, and
the peer may not speak RPC at all: the fault is fatal and the connection reads no more. If only one message is
invalid (its parameters are not an array, it nests too deep, a request has a string that is no UTF-8 or a map key that
is none), the fault names its msgid if it has one, and the following messages are read as usual.

For any input, `receive` returns events and raises nothing. Extension types and map keys that are not
strings do not occur in this protocol and are faults too.

Messages of untrusted clients are unpacked only once they are complete: the unpacker allocates as many elements as an
array header announces, and a few nested headers would cost a gigabyte. A caller that must not block unpacks large
messages in slices (`Connection(in_slices=True)`, `unpack_in_slices`).

No I/O; does not import Trio. Ends at a fatal fault or at the end of the stream.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NoReturn, TypeVar

import attrs
import msgpack

from kschedd.values import run_steps

T = TypeVar("T")

REQUEST, RESPONSE, NOTIFICATION = 0, 1, 2
#: The method by which a client on the network says who it is.
AUTHENTICATE = "rpc.authenticate"
MAX_MSGID = 2**32 - 1
#: The msgid of an error that responds to no particular request. Clients should count from 1.
NO_MSGID = 0

_MIB = 1 << 20
#: Bytes fed to the unpacker at once, so that its buffer is bounded for any size of input.
_FEED = _MIB
#: The length of an incomplete message's beginning whose announced lengths are checked, see `_announced_too_long`.
_HEAD = 512
#: The longest message that is unpacked in one step, and the length of a slice: one or two milliseconds of work.
SLICE = 1 << 15
#: Bytes of a large response that are encoded per step, within one item.
PIECE = 1 << 16
#: Limit on arrays and maps in one message: freeing more would block the event loop.
MOST_CONTAINERS = 1 << 18
_LOOKED_AT = 20_000  # values checked, or freed, in one slice
_CONTAINER = 15  # as many values to look at as take as long as an array or a map without any

#: The default maximum size of a request body, that of kube-apiserver (MaxRequestBodyBytes).
MAX_REQUEST_BYTES = 3 * _MIB
_ENVELOPE = 4096  # bytes of a message in addition to what the API server calls the body


@attrs.frozen
class Limits:
    """The limits on messages from the peer; lengths in bytes or entries."""

    message: int = MAX_REQUEST_BYTES + _ENVELOPE
    text: int = MAX_REQUEST_BYTES + _ENVELOPE
    binary: int = MAX_REQUEST_BYTES + _ENVELOPE
    array: int = MAX_REQUEST_BYTES
    map: int = MAX_REQUEST_BYTES // 2
    # None: only the unpacker's own limit, about 1,000.
    depth: int | None = 64
    trusted: bool = False  # unpack messages as they arrive, before they are complete
    told: int = MAX_REQUEST_BYTES  # the limit that the error for a too large message names

    @classmethod
    def of_requests(cls, max_bytes: int) -> Limits:
        """The limits for requests of at most `max_bytes`."""
        whole = max_bytes + _ENVELOPE
        return cls(whole, whole, whole, max_bytes, max_bytes // 2, told=max_bytes)


#: For a server, whose clients are untrusted.
FROM_CLIENTS = Limits()
#: For a client, which trusts its daemon and may request a hundred thousand pods.
FROM_DAEMON = Limits(1024 * _MIB, 256 * _MIB, 1024 * _MIB, 1 << 24, 1 << 24, None, trusted=True, told=1024 * _MIB)


@attrs.frozen
class Request:
    msgid: int
    method: str
    params: list[Any]
    size: int = attrs.field(default=0, eq=False)  # in bytes if the message is large, else 0


@attrs.frozen
class Notification:
    method: str
    params: list[Any]
    size: int = attrs.field(default=0, eq=False)


@attrs.frozen
class Response:
    msgid: int
    error: Any
    result: Any


@attrs.frozen
class ProtocolFault:
    """Input that is not a valid message. `msgid` is that of the request to respond to, if known."""

    why: str
    msgid: int | None
    fatal: bool
    code: str = "protocol_error"


@attrs.frozen(eq=False)
class Frame:
    """A complete message that is not unpacked yet, see `unpack_in_slices`."""

    data: bytes


Event = Request | Notification | Response | ProtocolFault


class Connection:
    """One side's view of one byte stream; see the module. After a fatal fault `closed` is true."""

    def __init__(self, limits: Limits = FROM_CLIENTS) -> None:
        self.closed = False
        self._limits = limits
        self._received = 0
        self._message_start = 0
        self._unfinished: list[bytes] = []  # the received parts of an incomplete message
        self._head = b""  # the beginning of the incomplete message
        self._stream = _unpacker(limits)

    @property
    def unfinished(self) -> int:
        """Bytes that have come of a message that is not complete."""
        return 0 if self.closed else self._received - self._message_start

    def receive(self, data: bytes | bytearray | memoryview) -> list[Event]:
        """The messages and faults that these bytes complete, in order. Never raises."""
        events: list[Event] = []
        for found in self.receive_frames(data):
            if isinstance(found, Frame):
                event = run_steps(unpack_in_slices(found, self._limits))
                self.note(event)
                events.append(event)
            else:
                events.append(found)
        return events

    def receive_frames(self, data: bytes | bytearray | memoryview) -> list[Event | Frame]:
        """As `receive`, but large messages are returned packed: the caller unpacks them and passes events to `note`."""
        found: list[Event | Frame] = []
        for start in range(0, len(data), _FEED):
            if self.closed:
                break
            piece = bytes(data[start : start + _FEED])
            if self._limits.trusted:
                self._take(piece, found)
            else:
                self._take_frames(piece, found)
        return found

    def note(self, event: Event) -> None:
        """Record the event of a message that the caller unpacked: a fatal fault closes the connection."""
        self.closed = self.closed or (type(event) is ProtocolFault and event.fatal)

    def receive_eof(self) -> list[Event]:
        """The stream has ended: returns a fault if it ended within a message."""
        events: list[Event] = []
        unfinished = self._received - self._message_start
        if unfinished and not self.closed:
            events.append(ProtocolFault(f"the stream ended {unfinished} bytes into a message", None, True))
        self.closed = True
        return events

    def _take(self, data: bytes, events: list[Event | Frame]) -> None:
        unpacker, limit = self._stream, self._limits.message
        self._received += len(data)
        try:
            unpacker.feed(data)
            while True:
                message = unpacker.unpack()
                end = unpacker.tell()
                size, self._message_start = end - self._message_start, end
                if size > limit:
                    events.append(_too_large(self._limits, None))
                    break
                event = _event(message, self._limits, whole=False)
                events.append(event)
                if type(event) is ProtocolFault and event.fatal:
                    break
        except msgpack.OutOfData:
            if self._received - self._message_start <= limit:
                return
            events.append(_too_large(self._limits, None))
        except (msgpack.UnpackException, ValueError) as error:
            events.append(ProtocolFault(_no_messagepack(error), None, True))
        self.closed = True

    def _take_frames(self, data: bytes, found: list[Event | Frame]) -> None:
        framing, limits = self._stream, self._limits
        before = self._received
        self._received += len(data)
        try:
            framing.feed(data)
            while True:
                framing.skip()
                end = framing.tell()
                size, start = end - self._message_start, max(self._message_start - before, 0)
                frame = b"".join([*self._unfinished, data[start : end - before]])
                self._message_start = end
                self._unfinished.clear()
                self._head = b""
                if size > limits.message:
                    found.append(_too_large(limits, _msgid_of(frame[:_HEAD])))
                    break
                if size > SLICE:
                    found.append(Frame(frame))
                    continue
                event = _unpacked(frame, limits)
                found.append(event)
                if type(event) is ProtocolFault and event.fatal:
                    break
        except msgpack.OutOfData:
            size = self._received - self._message_start
            if size == 0:
                return
            self._unfinished.append(data[max(self._message_start - before, 0) :])
            if len(self._head) < _HEAD:
                self._head = b"".join(self._unfinished)[:_HEAD]
            if size > limits.message:
                fault = _too_large(limits, _msgid_of(self._head))
            elif size <= _HEAD and (why := _announced_too_long(self._head, limits)):
                fault = _too_large(limits, _msgid_of(self._head), why)
            else:
                return
            found.append(fault)
        except (msgpack.UnpackException, ValueError) as error:
            found.append(ProtocolFault(_no_messagepack(error), None, True))
        self.closed = True


def first_message(data: bytes, limits: Limits) -> tuple[Event, bytes] | None:
    """The first message of a stream that has begun with these bytes, and what follows it; None as long as it is not
    complete."""
    framing = _unpacker(limits)
    try:
        framing.feed(data[: limits.message + 1])
        framing.skip()
        end = framing.tell()
    except msgpack.OutOfData:
        return (_too_large(limits, None), b"") if len(data) > limits.message else None
    except (msgpack.UnpackException, ValueError) as error:
        return ProtocolFault(_no_messagepack(error), None, True), b""
    if end > limits.message:
        return _too_large(limits, None), b""
    return _unpacked(data[:end], limits), data[end:]


def unpack_in_slices(frame: Frame, limits: Limits) -> Generator[None, None, Event]:
    """Unpacks a large message, slice by slice; yields where other tasks may run."""
    unpacker = _unpacker(limits)
    message: Any = None
    try:
        for start in range(0, len(frame.data), SLICE):
            unpacker.feed(frame.data[start : start + SLICE])
            try:
                message = unpacker.unpack()
            except msgpack.OutOfData:
                yield
    except (msgpack.UnpackException, ValueError) as error:
        return _fault_within(frame.data, error)
    event = _event(message, limits, whole=False)
    if isinstance(event, Request | Notification):
        seen: list[list[Any] | dict[str, Any]] = []
        why = yield from _look_through(event.params, limits.depth, seen)
        if why:
            event = ProtocolFault(why, event.msgid if isinstance(event, Request) else None, False)
            del message
            yield from _give_back(seen)
        else:
            event = attrs.evolve(event, size=len(frame.data))
    return event


def _unpacker(limits: Limits) -> msgpack.Unpacker:
    return msgpack.Unpacker(
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


def _unpacked(frame: bytes, limits: Limits) -> Event:
    try:
        message = msgpack.unpackb(
            frame,
            raw=False,
            use_list=True,
            strict_map_key=True,
            ext_hook=_refuse_extension,
            max_str_len=limits.text,
            max_bin_len=limits.binary,
            max_array_len=limits.array,
            max_map_len=limits.map,
            max_ext_len=0,
        )
    except (msgpack.UnpackException, ValueError) as error:
        return _fault_within(frame, error)
    return _event(message, limits)


def _fault_within(frame: bytes, error: Exception) -> ProtocolFault:
    """Of a message whose end is known, so that a request's fault is its own."""
    msgid = _msgid_of(frame[:_HEAD])
    return ProtocolFault(_no_messagepack(error), msgid, msgid is None)


def _no_messagepack(error: Exception) -> str:
    match error:
        case msgpack.BufferFull():
            return "a message that is too long"
        case msgpack.StackError():
            return "arrays or maps nested far too deep"
        case msgpack.FormatError():
            return "a byte that begins no MessagePack value (0xc1)"
        case UnicodeDecodeError():
            return f"a string that is not UTF-8 ({error.reason} at its byte {error.start})"
        case _:
            return str(error)


def _too_large(limits: Limits, msgid: int | None, why: str = "") -> ProtocolFault:
    words = f"Request entity too large: limit is {limits.told}"  # kube-apiserver's message
    return ProtocolFault(f"{words}: {why}" if why else words, msgid, True, "too_large")


def _msgid_of(head: bytes) -> int | None:
    """The msgid at the beginning of an incomplete request."""
    match _beginning(head):
        case [int(kind), int(msgid)] if kind == REQUEST and _is_msgid(kind, msgid):
            return msgid
    return None


def _beginning(head: bytes) -> list[Any]:
    unpacker = msgpack.Unpacker(max_buffer_size=_FEED)
    unpacker.feed(head)
    try:
        unpacker.read_array_header()
        return [unpacker.unpack(), unpacker.unpack()]
    except (msgpack.UnpackException, ValueError):
        return []


def _event(message: Any, limits: Limits, *, whole: bool = True) -> Event:
    """The event of an unpacked message; unless `whole`, its parameters are not checked yet, or need no check."""
    match message:
        case [int(kind), int(msgid), method, params] if kind == REQUEST and _is_msgid(kind, msgid):
            if why := _fault_of(method, params, limits.depth, whole):
                return ProtocolFault(why, msgid, False)
            return Request(msgid, method, params)
        case [int(kind), method, params] if kind == NOTIFICATION:
            if why := _fault_of(method, params, limits.depth, whole):
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


def _fault_of(method: Any, params: Any, depth: int | None, whole: bool) -> str:
    """The fault of a request or notification, "" if it is valid."""
    if type(method) is not str:
        return f"the method must be a string, not {_outline(method)}"
    if type(params) is not list:
        return f"the params must be an array (named ones: one map within it), not {_outline(params)}"
    if not params or not whole:
        return ""
    return run_steps(_look_through(params, depth, []))


def encode_request(msgid: int, method: str, params: list[Any] | tuple[Any, ...]) -> bytes:
    return _pack((REQUEST, msgid, method, params))


def encode_notification(method: str, params: list[Any] | tuple[Any, ...]) -> bytes:
    """Raises ValueError, TypeError or OverflowError if a parameter has no MessagePack form."""
    return _pack((NOTIFICATION, method, params))


def encode_response(msgid: int, result: Any) -> bytes:
    """Raises ValueError, TypeError or OverflowError if the result has no MessagePack form."""
    return _pack((RESPONSE, msgid, None, result))


def encode_pieces(msgid: int, head: Mapping[str, Any], name: str, values: Iterable[Any], count: int) -> Iterator[bytes]:
    """The response whose result is the map `head` with the array of `count` values as `name`, in pieces."""
    packer = msgpack.Packer(use_bin_type=True, default=_plain_number, autoreset=False)
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


# By first byte: the size of a fixed-size value, and the size of the length field of a string or other sized value.
_FIXED = {0xCA: 5, 0xCB: 9, 0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9, 0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9}
_FIXED |= {0xD4: 3, 0xD5: 4, 0xD6: 6, 0xD7: 10, 0xD8: 18, 0xDC: 3, 0xDD: 5, 0xDE: 3, 0xDF: 5}
_LENGTHS = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_COUNTS = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}


def _announced_too_long(head: bytes, limits: Limits) -> str:
    """The fault of the last, incomplete value of an incomplete message, "" if there is none.

    The unpacker checks the length of a string or of bytes only when all of it has arrived. An excessive length near
    the beginning of a message is rejected at once; further in, the limit on the whole message applies.
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
                return f"an extension of {length} bytes announced; none is used here"
            at += 1 + width + length
    return ""


def _look_through(
    params: list[Any], depth: int | None, seen: list[list[Any] | dict[str, Any]]
) -> Generator[None, None, str]:
    """The fault of the params, "" if they are valid; every array and map is appended to `seen`, in order of depth.

    Walks level by level, without recursion: untrusted clients choose the depth.
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
                            return f"a map key is {_outline(key)}; only strings are allowed"
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


def _give_back(seen: list[list[Any] | dict[str, Any]]) -> Iterator[None]:
    """Frees the values of a rejected message in slices: the deepest arrays and maps first."""
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


def _outline(value: Any) -> str:
    """A short description of a value; never its full contents, and without recursion."""
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
    # Scalars from numpy columns; numpy itself is not imported, since clients do not need it.
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return value.item()
    raise TypeError(f"{type(value).__qualname__} has no MessagePack form")


class _Packers(threading.local):
    """One packer per thread: each has a 256 KiB buffer, and sharing one between threads would mix messages."""

    def __init__(self) -> None:
        self.packer = msgpack.Packer(use_bin_type=True, default=_plain_number)


_packers = _Packers()
