"""Cost of the REST API: `python -m tests.bench.http_face [REQUESTS] [WATCHERS] [PODS]`.

The benchmark runs a daemon in a separate process. It prints the requests per second over one connection and the
daemon's CPU time per request, compared to the socket; changes sent to many watchers; a list of many pods, complete and
as a page; and pods scheduled per second during lists. Prints one line each.
"""

import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kschedd.rpc.blocking import BlockingClient

REQUESTS, WATCHERS, PODS = 5_000, 1_000, 50_000


@contextmanager
def daemon(*flags: str) -> Iterator[tuple[int, str, int]]:
    """Yield the process id, the socket and the port of a daemon with a REST API."""
    with tempfile.TemporaryDirectory() as where:
        path = str(Path(where) / "s")
        words = [
            sys.executable,
            "-m",
            "kschedd",
            "run",
            "--socket",
            path,
            "--http",
            "127.0.0.1:0",
            "--seed",
            "1",
            *flags,
        ]
        started = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        assert started.stderr is not None
        port = 0
        for line in started.stderr:
            if "http://127.0.0.1:" in line:
                port = int(line.rpartition("http://127.0.0.1:")[2].strip())
            if "started" in line:
                break
        threading.Thread(target=started.stderr.read, daemon=True).start()
        try:
            yield started.pid, path, port
        finally:
            started.terminate()
            started.wait()


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


class Connection:
    """A persistent connection with minimal client code."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._rest = b""

    def ask(self, method: str, path: str, body: Any = None, accept: str = "application/json") -> tuple[int, bytes]:
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n"
        if data:
            head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        self._socket.sendall(head.encode() + b"\r\n" + data)
        return self._answer()

    def watch(self, path: str) -> None:
        self._socket.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        self._until(b"\r\n\r\n")

    def lines(self, count: int) -> None:
        """Read this number of events of a watch."""
        while count > 0:
            count -= self._rest.count(b"}}\n")
            self._rest = self._rest[-2:] if not self._rest.endswith(b"}}\n") else b""
            if count > 0:
                self._rest += self._socket.recv(1 << 20)

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._rest:
            data = self._socket.recv(1 << 20)
            assert data, "the daemon has closed"
            self._rest += data
        before, _, self._rest = self._rest.partition(mark)
        return before

    def _answer(self) -> tuple[int, bytes]:
        head = self._until(b"\r\n\r\n").decode("latin-1")
        status = int(head[9:12])
        named = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:])
        if "content-length" in named:
            size = int(named["content-length"])
            while len(self._rest) < size:
                self._rest += self._socket.recv(1 << 20)
            body, self._rest = self._rest[:size], self._rest[size:]
            return status, body
        pieces = []
        while size := int(self._until(b"\r\n"), 16):
            parts = [self._rest]
            have = len(self._rest)
            while have < size + 2:
                parts.append(self._socket.recv(1 << 20))
                have += len(parts[-1])
            whole = b"".join(parts)
            pieces.append(whole[:size])
            self._rest = whole[size + 2 :]
        self._until(b"\r\n")
        return status, b"".join(pieces)


def pod(name: str) -> dict[str, Any]:
    requests = {"cpu": "10m", "memory": "10Mi"}
    container = {"name": "main", "image": "example/app", "resources": {"requests": requests}}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}}


def node(name: str) -> dict[str, Any]:
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    status = {"capacity": amounts, "allocatable": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


PATH = "/api/v1/namespaces/default/pods"


def requests(count: int) -> None:
    with daemon("--without", "scheduler,kubelets,controllers") as (pid, path, port), BlockingClient(path) as client:
        one = Connection(port)
        assert one.ask("POST", PATH, pod("a"))[0] == 201

        def measured(what: str, ask: Any) -> None:
            for _ in range(200):
                ask()
            began, used = time.perf_counter(), cpu_s(pid)
            for _ in range(count):
                ask()
            took, used = time.perf_counter() - began, cpu_s(pid) - used
            print(f"{what}: {count / took:,.0f} a second, {used / count * 1e6:.0f} us of the daemon's CPU each")

        measured("get a pod, socket", lambda: client.call("objects.get", "pods", "a"))
        measured("get a pod, HTTP", lambda: one.ask("GET", f"{PATH}/a"))
        numbers = iter(range(10**9))
        measured("create a pod, socket", lambda: client.call("objects.create", pod(f"s{next(numbers)}")))
        measured("create a pod, HTTP", lambda: one.ask("POST", PATH, pod(f"h{next(numbers)}")))


def watchers(count: int) -> None:
    with daemon("--without", "scheduler,kubelets,controllers") as (pid, _, port):
        watching = [Connection(port) for _ in range(count)]
        for each in watching:
            each.watch(f"{PATH}?watch=true&resourceVersion=1")
        one = Connection(port)
        began, used = time.perf_counter(), cpu_s(pid)
        events = 20
        for number in range(events):
            assert one.ask("POST", PATH, pod(f"w{number}"))[0] == 201
        for each in watching:
            each.lines(events)
        took, used = time.perf_counter() - began, cpu_s(pid) - used
        sent = events * count
        each_us = used / sent * 1e6
        print(f"{count} watchers, {events} changes: all told after {took:.2f} s, {each_us:.0f} us of CPU an event")


def lists(count: int) -> None:
    with daemon() as (pid, path, port), BlockingClient(path) as client:
        nodes, first, second = 1000, count, count // 5
        assert not client.call("objects.apply", [node(f"n{number}") for number in range(nodes)])["errors"]

        def load(prefix: str, wanted: int) -> float:
            began = time.perf_counter()
            for start in range(0, wanted, 1000):
                pods = [pod(f"{prefix}{number:06}") for number in range(start, min(start + 1000, wanted))]
                assert not client.call("objects.apply", pods)["errors"]
            while sum(client.call("queue.list", None, 0)["counts"].values()):
                time.sleep(0.01)
            return wanted / (time.perf_counter() - began)

        print(f"{first} pods created and scheduled: {load('a', first):,.0f} a second")
        one = Connection(port)
        for what, query, accept in (
            ("as objects", "", "application/json"),
            ("as a table", "", "application/json;as=Table;v=v1;g=meta.k8s.io"),
            ("as a page of 500", "?limit=500", "application/json"),
        ):
            began, used = time.perf_counter(), cpu_s(pid)
            status, body = one.ask("GET", PATH + query, accept=accept)
            took, used = time.perf_counter() - began, cpu_s(pid) - used
            assert status == 200
            print(f"list {count} pods {what}: {took:.2f} s, {len(body) / 1e6:.1f} MB, {used:.2f} s of CPU")
        print(f"{second} pods more, alone: {load('b', second):,.0f} a second")
        over = threading.Event()

        def listing() -> None:
            connection = Connection(port)
            while not over.is_set():
                connection.ask("GET", PATH, accept="application/json;as=Table;v=v1;g=meta.k8s.io")

        thread = threading.Thread(target=listing)
        thread.start()
        try:
            rate = load("c", second)
        finally:
            over.set()
            thread.join()
        print(f"{second} pods more, while all are listed again and again: {rate:,.0f} a second")


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    counts = [*given, *(REQUESTS, WATCHERS, PODS)[len(given) :]]
    requests(counts[0])
    watchers(counts[1])
    lists(counts[2])
