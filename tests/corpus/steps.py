"""Conversations of the corpus: requests to a daemon over its socket and its REST API, and commands, with their answers.

A step is a map with one of three forms: `method` and `params` (sent as MessagePack-RPC without kschedd's client);
`request`, `path` and `body` (sent as HTTP); `command` and `given` (run by the command line). `answer` is what the
release answered. A later release must give an answer that contains it (`missing`).
"""

import http.client
import io
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgpack

from kschedd.cli import main

Raw = dict[str, Any]

#: the folder with one folder for each release
RELEASED: Final = Path(__file__).parent
JSON: Final = "application/json"
START: Final = "2026-11-01T00:00:00Z"
DEADLINE_S: Final = 120.0
#: keys whose values differ between runs, or whose texts a release may improve; only types are compared
VOLATILE: Final = frozenset(
    {
        "attempt",
        "attempts",
        "bytes",
        "epoch",
        "file",
        "http",
        "journal",
        "message",
        "notes",
        "pid",
        "resourceVersion",
        "resource_version",
    }
    | {"socket", "took_us", "uid", "uptime_s", "us", "version"}
)


@contextmanager
def corpus_daemon(folder: Path, *flags: str) -> Iterator["Conversation"]:
    """Run a daemon in virtual time with its state in the folder `state`. Its end is a `kill -9`."""
    path = folder / "k.sock"
    words = ("--state", str(folder / "state"), "--seed", "1", "--time", f"virtual@{START}", "--http", "127.0.0.1:0")
    start = [sys.executable, "-m", "kschedd", "run", "--detach", "--socket", str(path), *words, *flags]
    subprocess.run(start, check=True, capture_output=True, timeout=DEADLINE_S)
    conversation = Conversation(path)
    pid = conversation.call("daemon.info", {})["result"]["pid"]
    try:
        yield conversation
    finally:
        os.kill(pid, signal.SIGKILL)
        conversation.close()


def command(path: Path, words: Sequence[str], given: str = "") -> tuple[int, str]:
    """Run a command in this process; return its exit status and its output."""
    output, reading = io.TextIOWrapper(io.BytesIO()), sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(given.encode()))
    try:
        with redirect_stdout(output), redirect_stderr(io.TextIOWrapper(io.BytesIO())):
            status = main([*words, "--socket", str(path)])
    finally:
        sys.stdin = reading
    output.seek(0)
    return status, output.read()


class Conversation:
    """A connection to a daemon's socket, and to the REST API that the daemon names."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(DEADLINE_S)
        self._socket.connect(str(path))
        self._unpacker = msgpack.Unpacker()
        self._count = 0
        self._host = str(urlsplit(self.call("rpc.ping", {})["result"]["http"]).netloc)

    def close(self) -> None:
        self._socket.close()

    def answer(self, step: Mapping[str, Any]) -> Raw:
        """Return the answer to a step."""
        if "method" in step:
            return self.call(step["method"], step["params"])
        if "request" in step:
            return self._request(step["request"], step["path"], step.get("body"), step.get("type", JSON))
        return self._command(step["command"], step.get("given", ""))

    def call(self, method: str, params: Mapping[str, Any]) -> Raw:
        self._count += 1
        self._socket.sendall(msgpack.packb([0, self._count, method, [params]]))
        while True:
            for message in self._unpacker:
                if message[:2] == [1, self._count]:
                    return {"error": message[2]} if message[2] is not None else {"result": message[3]}
            data = self._socket.recv(65536)
            assert data, "the daemon closed the connection"
            self._unpacker.feed(data)

    def _request(self, verb: str, path: str, body: Any, content_type: str) -> Raw:
        connection = http.client.HTTPConnection(self._host, timeout=DEADLINE_S)
        headers = {"Content-Type": content_type, "Accept": JSON}
        connection.request(verb, path, None if body is None else json.dumps(body), headers)
        answered = connection.getresponse()
        found = {"status": answered.status, "body": json.loads(answered.read())}
        connection.close()
        return found

    def _command(self, words: Sequence[str], given: str) -> Raw:
        status, output = command(self._path, words, given)
        return {"status": status, "output": json.loads(output)} if "json" in words else {"status": status}


def missing(recorded: Any, present: Any, where: str = "answer", key: str = "") -> Iterator[str]:
    """Yield the parts of a recorded answer that the present answer does not contain.

    The present answer may have more keys. Values of VOLATILE keys are compared by type.
    """
    if isinstance(recorded, dict) and isinstance(present, dict):
        for name, value in recorded.items():
            if name in present:
                yield from missing(value, present[name], f"{where}.{name}", name)
            else:
                yield f"{where}.{name} is missing"
    elif isinstance(recorded, list) and isinstance(present, list) and len(recorded) == len(present):
        for place, (value, found) in enumerate(zip(recorded, present, strict=True)):
            yield from missing(value, found, f"{where}[{place}]", key)
    elif recorded != present and (key not in VOLATILE or type(recorded) is not type(present)):
        yield f"{where} was {recorded!r} and is {present!r}"
