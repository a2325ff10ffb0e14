"""BoundedPool: requests of threads over shared connections. Each request ends within its time.

httpcore limits only single reads, so a server that sends one byte at a time would prolong a response without end. Here
each operation on a connection gets the time that is left to the request of its thread.

Owns: a pool of connections, which is used by several threads. Bounds: the time of a request, without the resolution of
its host's name, and the size of a body. Raises: httpcore's exceptions; TooLong.
"""

import ssl
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs
import httpcore

from kschedd.errors import KscheddError

_MOST_CONNECTIONS: Final = 100
_MOST_IDLE: Final = 20
_IDLE_S: Final = 5.0


@attrs.define(eq=False)
class TooLong(KscheddError):
    """A response has more bytes than its maximum."""

    most: int

    def __str__(self) -> str:
        return f"the response has more than {self.most} bytes"


@attrs.frozen(eq=False)
class BoundedResponse:
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


class BoundedPool:
    def __init__(self, tls: ssl.SSLContext) -> None:
        self._clock = _Clock()
        self._pool = httpcore.ConnectionPool(
            tls,
            max_connections=_MOST_CONNECTIONS,
            max_keepalive_connections=_MOST_IDLE,
            keepalive_expiry=_IDLE_S,
            network_backend=_Backend(self._clock),
        )

    def post(
        self, url: str, headers: Mapping[str, str], body: bytes, server_name: str, seconds: float, most: int
    ) -> BoundedResponse:
        """Send a request and return the response, whose body has at most `most` bytes; `server_name` is for TLS."""
        self._clock.begin(seconds)
        extensions = {
            "sni_hostname": server_name,
            "timeout": dict.fromkeys(("connect", "read", "write", "pool"), seconds),
        }
        with self._pool.stream(
            "POST", url, headers=list(headers.items()), content=body, extensions=extensions
        ) as response:
            parts: list[bytes] = []
            size = 0
            for part in response.iter_stream():
                size += len(part)
                if size > most:
                    raise TooLong(most)
                parts.append(part)
        named = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
        return BoundedResponse(response.status, named, b"".join(parts))


class _Clock(threading.local):
    """The end of the request of each thread."""

    _end = 0.0

    def begin(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self, late: type[Exception]) -> float:
        left = self._end - time.monotonic()
        if left <= 0:
            raise late("the time of the request is over")
        return left


class _Backend(httpcore.SyncBackend):
    def __init__(self, clock: _Clock) -> None:
        self._clock = clock

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        left = self._clock.left(httpcore.ConnectTimeout)
        return _Stream(super().connect_tcp(host, port, left, local_address, socket_options), self._clock)


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, clock: _Clock) -> None:
        self._stream = stream
        self._clock = clock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._clock.left(httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._clock.left(httpcore.WriteTimeout))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = self._clock.left(httpcore.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, left), self._clock)

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
