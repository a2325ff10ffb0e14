"""Extenders for tests: HTTP servers in threads of this process, with scripted answers."""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import attrs

Raw = dict[str, Any]
Answer = Callable[[Raw], Any]  # a body -> what is answered with 200: JSON, or bytes as they are


@attrs.define(eq=False)
class FakeExtender:
    """Answers each verb with the result of its function; `asked` are the received verbs and bodies, with `cookies`."""

    verbs: dict[str, Answer]
    url: str = ""
    requests: list[tuple[str, Raw]] = attrs.field(factory=list)
    cookies: list[str | None] = attrs.field(factory=list)
    certificates: list[Any] = attrs.field(factory=list)  # of the clients, where it is served by TLS

    def of(self, verb: str) -> list[Raw]:
        return [body for requests, body in self.requests if requests == verb]


@contextmanager
def serving(
    verbs: dict[str, Answer], tls: ssl.SSLContext | None = None, *, port: int = 0, keep: bool = True
) -> Iterator[FakeExtender]:
    """Serve an extender on loopback. `port` 0: any free port. `keep`: record the requests."""
    extender = FakeExtender(verbs)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # or the second part of an answer waits 40 ms for the first to be confirmed

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            verb = self.path.removeprefix("/")
            if keep:
                extender.requests.append((verb, body))
                extender.cookies.append(self.headers["Cookie"])
            if tls is not None:
                extender.certificates.append(self.connection.getpeercert())
            answer = extender.verbs.get(verb)
            reply = b"" if answer is None else answer(body)
            data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
            self.send_response(404 if answer is None else 200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is logged."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        allow_reuse_port = port > 0  # several processes may serve the same answers

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Ignore a client that rejects the certificate or disconnects: this is no fault of the test."""

    server = Server(("127.0.0.1", port), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    extender.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield extender
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def answering(raw: bytes, *, keeps_open: bool = False, reads: bool = True) -> Iterator[str]:
    """Run a server that reads a request and sends these bytes; yield its URL.

    It then closes the connection, unless `keeps_open` is set. Without `reads` it sends the bytes at once, and then
    reads once.
    """
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)

        def serve() -> None:
            while not ended.is_set():
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.settimeout(30)
                    if reads:
                        _read_request(connection)
                    if not ended.is_set():
                        connection.sendall(raw)
                    if not reads:
                        connection.recv(65536)
                    if keeps_open:
                        ended.wait(30)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            ended.set()
            with socket.create_connection(("127.0.0.1", port)):
                pass  # wakes it
            thread.join()


@contextmanager
def dripping(raw: bytes, head: bytes = b"", every_s: float = 0.01) -> Iterator[str]:
    """Run a server that reads a request and sends `head`, and then these bytes one by one; yield its URL."""
    ended = threading.Event()
    serving: list[threading.Thread] = []

    def drip(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(30)
            _read_request(connection)
            connection.sendall(head)
            for place in range(len(raw)):
                if ended.wait(every_s):
                    return
                connection.sendall(raw[place : place + 1])

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while not ended.is_set():
                connection, _ = listener.accept()
                serving.append(threading.Thread(target=drip, args=(connection,), daemon=True))
                serving[-1].start()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            ended.set()
            with socket.create_connection(("127.0.0.1", port)):
                pass  # wakes it
            for one in (thread, *serving):
                one.join()


def _read_request(connection: socket.socket) -> None:
    """Read a request to the end of its body, so that closing does not reset the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0
    )
    while len(body) < length:
        part = connection.recv(65536)
        if not part:
            return
        body += part


@contextmanager
def nobody_there() -> Iterator[str]:
    """Yield the URL of a port that refuses connections: it is bound, but no process listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
