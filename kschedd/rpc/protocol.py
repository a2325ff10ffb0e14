"""MessagePack-RPC without I/O: conversion of received bytes to events. `encoding` implements the other direction.

A message is a MessagePack array (the public specification, github.com/msgpack-rpc/msgpack-rpc):

    request       [0, msgid, method, params]
    response      [1, msgid, error, result]
    notification  [2, method, params]

`Connection` is one side of a byte stream. There are two kinds of fault. If the bytes are not MessagePack, exceed a
limit, or are not the array of a message, the start of the next message is unknown. If the start of the next message is
unknown, the fault is fatal: the connection reads no more bytes. If only one message is invalid (its parameters are not
an array, it is nested too deeply, or a request has a string that is not UTF-8 or an invalid map key), the fault
contains its msgid, if it has one, and the next messages are read as usual.

`receive` returns events for any input, and raises no exception. Extension types, and map keys that are not strings, are
also faults.

Messages of untrusted clients are unpacked only when they are complete, because the unpacker allocates as many elements
as an array's header announces. A few nested headers could require a gigabyte. A caller that must not block unpacks
large messages in slices (`Connection.receive_frames`, `unpack_in_slices`).

This module does no I/O and does not import Trio. A connection ends at a fatal fault or at the end of the stream.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, NoReturn

import attrs
import msgpack

from kschedd.rpc.encoding import NOTIFICATION, REQUEST, RESPONSE
from kschedd.rpc.message_checks import (
    FROM_CLIENTS,
    Limits,
    announced_too_long,
    free_in_slices,
    params_fault,
    value_text,
)
from kschedd.values import run_steps

#: method with which network clients authenticate
AUTHENTICATE = "rpc.authenticate"
MAX_MSGID = 2**32 - 1
#: msgid of an error without a request clients should count from 1
NO_MSGID = 0

#: maximum number of bytes passed to the unpacker in one call, which limits its buffer
_FEED = 1 << 20
#: number of bytes at the start of an incomplete message that `announced_too_long` checks
_HEAD = 512
#: maximum length of a message that is unpacked in one step, and length of a slice, which take 1 to 2 ms
SLICE = 1 << 15


@attrs.frozen
class RpcRequest:
    msgid: int
    method: str
    params: list[Any]
    size: int = attrs.field(default=0, eq=False)  # size in bytes of a large message, else 0


@attrs.frozen
class Notification:
    method: str
    params: list[Any]
    size: int = attrs.field(default=0, eq=False)


@attrs.frozen
class RpcResponse:
    msgid: int
    error: Any
    result: Any


@attrs.frozen
class ProtocolFault:
    """Input that is not a valid message. `msgid` is the msgid of the faulty request, if it is known."""

    why: str
    msgid: int | None
    fatal: bool
    code: str = "protocol_error"


@attrs.frozen(eq=False)
class Frame:
    """A complete message in packed form; `unpack_in_slices` unpacks it."""

    data: bytes


Event = RpcRequest | Notification | RpcResponse | ProtocolFault


class Connection:
    """One side of a byte stream. After a fatal fault, `closed` is true."""

    def __init__(self, limits: Limits = FROM_CLIENTS) -> None:
        self.closed = False
        self._limits = limits
        self._received = 0
        self._message_start = 0
        self._unfinished: list[bytes] = []  # received parts of an incomplete message
        self._head = b""  # beginning of the incomplete message
        self._stream = _unpacker(limits)

    @property
    def unfinished(self) -> int:
        """The number of received bytes of an incomplete message."""
        return 0 if self.closed else self._received - self._message_start

    def receive(self, data: bytes | bytearray | memoryview) -> list[Event]:
        """Return, in order, the messages and faults that these bytes complete. Never raises."""
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
        """Return events as `receive` does, but large messages in packed form; the caller unpacks and `note`s them."""
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
        """Record the event of a message that the caller has unpacked; a fatal fault closes the connection."""
        self.closed = self.closed or (type(event) is ProtocolFault and event.fatal)

    def receive_eof(self) -> list[Event]:
        """Process the end of the stream; return a fault if it ended within a message."""
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
            elif size <= _HEAD and (why := announced_too_long(self._head, limits)):
                fault = _too_large(limits, _msgid_of(self._head), why)
            else:
                return
            found.append(fault)
        except (msgpack.UnpackException, ValueError) as error:
            found.append(ProtocolFault(_no_messagepack(error), None, True))
        self.closed = True


def first_message(data: bytes, limits: Limits) -> tuple[Event, bytes] | None:
    """Return the first message of a stream that begins with these bytes, and the bytes after it.

    Returns None if the message is incomplete.
    """
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
    """Unpack a large message in slices; yield where other tasks may run."""
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
    if isinstance(event, RpcRequest | Notification):
        seen: list[list[Any] | dict[str, Any]] = []
        why = yield from params_fault(event.params, limits.depth, seen)
        if why:
            event = ProtocolFault(why, event.msgid if isinstance(event, RpcRequest) else None, False)
            del message
            yield from free_in_slices(seen)
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
    """Return the fault of a complete message, with the request's msgid."""
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
    words = f"Request entity too large: limit is {limits.stated}"  # kube-apiserver's message
    return ProtocolFault(f"{words}: {why}" if why else words, msgid, True, "too_large")


def _msgid_of(head: bytes) -> int | None:
    """Return the msgid at the beginning of an incomplete request, or None."""
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
    """Return the event of an unpacked message; if `whole`, check its parameters."""
    match message:
        case [int(kind), int(msgid), method, params] if kind == REQUEST and _is_msgid(kind, msgid):
            if why := _fault_of(method, params, limits.depth, whole):
                return ProtocolFault(why, msgid, False)
            return RpcRequest(msgid, method, params)
        case [int(kind), method, params] if kind == NOTIFICATION:
            if why := _fault_of(method, params, limits.depth, whole):
                return ProtocolFault(why, None, False)
            return Notification(method, params)
        case [int(kind), int(msgid), error, result] if kind == RESPONSE and _is_msgid(kind, msgid):
            return RpcResponse(msgid, error, result)
        case _:
            return ProtocolFault(
                f"{value_text(message)} is no message: allowed are [0, msgid, method, params], "
                f"[1, msgid, error, result], [2, method, params], with a msgid from 0 to {MAX_MSGID}",
                None,
                True,
            )


def _fault_of(method: Any, params: Any, depth: int | None, whole: bool) -> str:
    """Return the fault of a request or notification, or ""."""
    if type(method) is not str:
        return f"the method must be a string, not {value_text(method)}"
    if type(params) is not list:
        return f"the params must be an array (named ones: one map within it), not {value_text(params)}"
    if not params or not whole:
        return ""
    return run_steps(params_fault(params, depth, []))


def msgids() -> Iterator[int]:
    """Yield message ids from 1 to the maximum, and then from 1 again."""
    while True:
        yield from range(1, MAX_MSGID + 1)


def _is_msgid(kind: int, msgid: int) -> bool:
    # in Python, True and False are ints
    return 0 <= msgid <= MAX_MSGID and type(msgid) is int and type(kind) is int


def _refuse_extension(code: int, _data: bytes) -> NoReturn:
    raise ValueError(f"an extension type ({code}), which is not supported")
