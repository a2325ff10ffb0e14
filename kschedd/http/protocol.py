"""HTTP/1.1 without I/O: conversion between bytes, which may be split at any position, and complete messages.

The server side is a `RequestReader`: `feed` receives bytes, and `next_request` returns complete requests in order. The
client side is a `ResponseReader`. A `ResponseReader` returns the head, the body in pieces and the end of each response
as events, because the body of a watch has no end. httptools (llhttp) parses; this module adds the limits that httptools
lacks.

Owns: the bytes of unfinished messages, at most the limits plus the bytes of one call of `feed`. Raises: HttpFault,
after which no more bytes can be parsed. The server sends the status of the fault in a response before it closes the
connection.
"""

import re
import time
from collections import deque
from collections.abc import Iterable, Mapping
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Final

import attrs
import httptools

from kschedd.errors import KscheddError
from kschedd.values import fast_frozen

MOST_HEAD: Final = 64 << 10  # maximum number of bytes of a request line and its header fields
MOST_FIELDS: Final = 100
MOST_BODY: Final = 3 << 20
MOST_WAITING: Final = 128
"""Maximum number of unanswered requests in a reader; a client that sends more is disconnected."""


@attrs.define(eq=False)
class HttpFault(KscheddError):
    """A message that is not HTTP/1.1 or exceeds a limit."""

    status: int
    why: str


@attrs.frozen(eq=False)
class HttpRequest:
    """A whole request. Names of header fields are in lower case; the values of a repeated field are joined."""

    method: str
    target: bytes  # path and query, as sent
    headers: Mapping[str, str]
    body: bytes
    keep_alive: bool
    upgrade: bool = False  # True if the client requests another protocol after this request


@attrs.define(eq=False)
class _Building:
    """A message that is being read."""

    target: bytes = b""
    headers: dict[str, str] = attrs.field(factory=dict)
    body: list[bytes] = attrs.field(factory=list)
    size: int = 0
    fields: int = 0


class _FieldReader:
    """The httptools callbacks for the head of a message, common to both sides."""

    def __init__(self) -> None:
        self._building = _Building()
        self._in_head = True
        self._head_size = 0

    def on_message_begin(self) -> None:
        self._building = _Building()
        self._in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        building = self._building
        building.fields += 1
        if building.fields > MOST_FIELDS:
            raise HttpFault(431, f"more than {MOST_FIELDS} header fields")
        field = name.decode("latin-1").lower()
        text = value.decode("latin-1").strip()
        known = building.headers.get(field)
        if known is not None and field in ("host", "content-type", "authorization"):
            raise HttpFault(400, f"duplicate header field {field}")
        building.headers[field] = text if known is None else f"{known}, {text}"


class RequestReader(_FieldReader):
    """A parser of HTTP/1.1 requests. `expects_continue` is set while a client waits for `100 Continue`.

    `head` is a request without its body; it is set from the end of the request's head until the body is complete.
    """

    def __init__(self, most_body: int = MOST_BODY, most_head: int = MOST_HEAD) -> None:
        super().__init__()
        self._most_body = most_body
        self._most_head = most_head
        self._parser = httptools.HttpRequestParser(self)
        self._ready: deque[HttpRequest] = deque()
        self._fault: HttpFault | None = None
        self._begun = False
        self._upgraded = False
        self.expects_continue = False
        self.head: HttpRequest | None = None

    def close(self) -> None:
        """Stop reading, and break the reference cycle between the parser and this object."""
        del self._parser

    @property
    def begun(self) -> bool:
        """True if a part of a request has been received."""
        return self._begun

    @property
    def waiting(self) -> int:
        return len(self._ready)

    def next_request(self) -> HttpRequest | None:
        """Return the next whole request. Raises HttpFault after all requests before the fault have been returned."""
        if self._ready:
            return self._ready.popleft()
        if self._fault is not None:
            raise self._fault
        return None

    def feed(self, data: bytes) -> None:
        """Parse received bytes. A fault is stored until `next_request` has returned all earlier requests."""
        if self._fault is not None or self._upgraded or not data:
            return
        if self._in_head:
            self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._upgraded = True  # the following bytes belong to the other protocol, which is not supported
        except httptools.HttpParserCallbackError as error:
            cause = error.__context__
            self._fault = cause if isinstance(cause, HttpFault) else HttpFault(400, "Bad HttpRequest")
        except httptools.HttpParserError as error:
            self._fault = HttpFault(400, f"not an HTTP/1.1 request: {error}")
        else:
            if self._in_head and self._head_size > self._most_head:
                self._fault = HttpFault(431, f"the head exceeds {self._most_head} bytes")
        if self._fault is None and len(self._ready) > MOST_WAITING:
            self._fault = HttpFault(400, f"more than {MOST_WAITING} pipelined requests")

    # Callbacks of httptools

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begun = True

    def on_url(self, url: bytes) -> None:
        building = self._building
        building.target += url
        if len(building.target) > self._most_head:
            raise HttpFault(414, "the request's target is too long")

    def on_headers_complete(self) -> None:
        self._in_head = False
        headers = self._building.headers
        if self._parser.get_http_version() not in ("1.1", "1.0"):
            raise HttpFault(505, f"HTTP/{self._parser.get_http_version()} is not supported")
        length = headers.get("content-length", "")
        if length.isdigit() and int(length) > self._most_body:
            raise HttpFault(413, _too_large(self._most_body))
        if "host" not in headers and self._parser.get_http_version() == "1.1":
            raise HttpFault(400, "missing required Host header")
        if headers.get("expect", "").lower() == "100-continue":
            self.expects_continue = True
        method = self._parser.get_method().decode("ascii")
        self.head = HttpRequest(method, self._building.target, headers, b"", keep_alive=False)

    def on_body(self, body: bytes) -> None:
        building = self._building
        building.size += len(body)
        if building.size > self._most_body:
            raise HttpFault(413, _too_large(self._most_body))
        building.body.append(body)
        # join many small pieces, because the overhead of each bytes object is larger than its content
        if len(building.body) > 1_000:
            building.body[:] = [b"".join(building.body)]

    def on_message_complete(self) -> None:
        building, parser = self._building, self._parser
        self._building = _Building()
        self._in_head, self._begun = True, False
        self._head_size = 0
        self.expects_continue = False
        self.head = None
        self._ready.append(
            HttpRequest(
                parser.get_method().decode("ascii"),
                building.target,
                building.headers,
                b"".join(building.body),
                parser.should_keep_alive(),
                bool(parser.should_upgrade()),
            )
        )


def _too_large(limit: int) -> str:
    return f"HttpRequest entity too large: limit is {limit}"


@fast_frozen
class ResponseHead:
    """The head of a response, with the header fields of `_READ_FIELDS`."""

    status: int
    headers: Mapping[str, str]
    keep_alive: bool


@attrs.frozen
class BodyPart:
    data: bytes


@attrs.frozen
class ResponseEnd:
    """The end of a response."""


ResponseEvent = ResponseHead | BodyPart | ResponseEnd
_READ_FIELDS: Final = {
    name.encode(): name.lower()
    for field in ("Content-Encoding", "Content-Length", "Content-Type", "Location", "Retry-After", "Transfer-Encoding")
    for name in (field, field.lower())
}


_PLAIN_START: Final = b"HTTP/1.1 2"
# The fields that determine where a response ends and how its body is encoded; group 1 is the length of the body.
_FRAMING: Final = re.compile(
    rb"\r\n(?:content-length: ?(\d{1,8})|(?:content-length|content-encoding|transfer-encoding|connection):[^\r\n]*)"
    rb"(?=\r\n)",
    re.IGNORECASE,
)
_NO_FIELDS: Final[Mapping[str, str]] = {}


def plain_response(data: bytes) -> tuple[ResponseHead, bytes] | None:
    """Return the head and the body if the data are one whole successful response with a plain body.

    The head has no header fields, because a plain response needs none. Return None for any other data, which only a
    `ResponseReader` can parse. A plain response takes a tenth of the calls here that it takes in a `ResponseReader`.
    """
    end = data.find(b"\r\n\r\n")
    if end < 0 or end > MOST_HEAD or not data.startswith(_PLAIN_START):
        return None
    framing, status = _FRAMING.findall(data, 0, end + 2), data[9:12]
    if len(framing) != 1 or not framing[0] or len(data) != end + 4 + int(framing[0]) or not status.isdigit():
        return None
    return ResponseHead(int(status), _NO_FIELDS, keep_alive=True), data[end + 4 :]


class ResponseReader(_FieldReader):
    """The client side: a parser of responses into events.

    ResponseReader does not support responses to HEAD, which have no body.
    """

    def __init__(self) -> None:
        super().__init__()
        self._parser = httptools.HttpResponseParser(self)
        self._events: list[ResponseEvent] = []
        self._status = 0

    def close(self) -> None:
        """Stop reading, and break the reference cycle between the parser and this object."""
        del self._parser

    def feed(self, data: bytes) -> list[ResponseEvent]:
        """Return the events that these bytes complete. Raises HttpFault."""
        if self._in_head:
            self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            raise HttpFault(502, "the server switched to another protocol") from None
        except httptools.HttpParserCallbackError as error:
            cause = error.__context__
            raise (cause if isinstance(cause, HttpFault) else HttpFault(502, "not a response")) from None
        except httptools.HttpParserError as error:
            raise HttpFault(502, f"not an HTTP/1.1 response: {error}") from None
        if self._in_head and self._head_size > MOST_HEAD:
            raise HttpFault(502, f"the head exceeds {MOST_HEAD} bytes")
        events, self._events = self._events, []
        return events

    def on_header(self, name: bytes, value: bytes) -> None:
        building = self._building
        building.fields += 1
        if building.fields > MOST_FIELDS:
            raise HttpFault(502, f"more than {MOST_FIELDS} header fields")
        field = _READ_FIELDS.get(name) or _READ_FIELDS.get(name.lower())
        if field is not None:
            text, known = value.decode("latin-1").strip(), building.headers.get(field)
            building.headers[field] = text if known is None else f"{known}, {text}"

    def on_status(self, status: bytes) -> None:
        """Ignore the reason phrase."""

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._status = self._parser.get_status_code()
        if self._status < 200:
            return
        self._events.append(ResponseHead(self._status, self._building.headers, self._parser.should_keep_alive()))

    def on_body(self, body: bytes) -> None:
        self._events.append(BodyPart(body))

    def on_message_complete(self) -> None:
        self._in_head = True
        self._head_size = 0
        if self._status >= 200:
            self._events.append(ResponseEnd())


# Encoding

_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"


def encode_head(status: int, headers: Iterable[tuple[str, str]]) -> bytes:
    """Return a status line and header fields.

    Line breaks in a value become spaces, so that the value cannot start another field.
    """
    lines = [f"HTTP/1.1 {status} {_PHRASES.get(status, 'Unknown')}"]
    lines += [f"{name}: {value}" for name, value in headers]
    text = "\r\n".join(line.replace("\r", " ").replace("\n", " ") for line in lines)
    return text.encode("latin-1", "replace") + b"\r\n\r\n"


def encode_fields(headers: Iterable[tuple[str, str]]) -> bytes:
    """Return header fields, each with its line end.

    Line breaks in a value become spaces, so that the value cannot start another field.
    """
    return b"".join(_line(f"{name}: {value}") for name, value in headers)


def encode_request(method: str, target: str, fields: bytes, body: bytes = b"") -> bytes:
    """Return a request with its body; `fields` come from `encode_fields`.

    If there is a body, the request contains its length.
    """
    length = b"content-length: %d\r\n" % len(body) if body or method in ("POST", "PUT", "PATCH") else b""
    return b"%b%b%b\r\n%b" % (_line(f"{method} {target} HTTP/1.1"), fields, length, body)


def _line(text: str) -> bytes:
    return text.replace("\r", " ").replace("\n", " ").encode("latin-1", "replace") + b"\r\n"


def chunk(data: bytes) -> bytes:
    """Return one chunk of a body of unknown length."""
    return b"%x\r\n%b\r\n" % (len(data), data)


_dated: Final[list[Any]] = [0, ""]


def http_date() -> str:
    """Return the time for the header field Date; the text is computed once per second."""
    now = int(time.time())
    if _dated[0] != now:
        _dated[:] = [now, formatdate(now, usegmt=True)]
    return str(_dated[1])
