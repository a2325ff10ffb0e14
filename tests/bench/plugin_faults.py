"""Benchmark of a plugin and an extender that fail in every way, together with pods that use neither.

`nice python -m tests.bench.plugin_faults [--seconds 60] [--nodes 500] [--rate 1000]` creates this number of pods per
second in a daemon, first without faults for a quarter of the time, and then with faults. For 2 % of the pods, a plugin
with all extension points misbehaves in 3 % of its calls (raises any exception, returns invalid values, hangs beyond its
limit of 50 ms, computes, prints, starts threads that use the handle, recurses). For 0.5 % of the pods, an extender
closes the connection, sends nothing, too slowly, too much, too late, a redirect or nonsense. Each pod is deleted after
5 s.

The output contains the share of other pods that were scheduled in time, the latencies of another client, the daemon's
memory and threads before and afterwards, and what remains when all pods are deleted.
"""

import argparse
import itertools
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

from kschedd.rpc.blocking import BlockingClient

Raw = dict[str, Any]
CARD = "example.com/card"
_LIVE_S = 5.0  # that a pod is left alone
_BATCHES = 10  # a second

PLUGIN = '''
import random
import threading
import time

from kschedd.plugin import Code, Plan, Status

CHANCE = random.Random()
HANDLE = []


class Chaos:
    """Takes part everywhere, and is wrong in {share} of its calls."""

    name = "Chaos"

    @classmethod
    def from_args(cls, args, handle):
        HANDLE[:] = [handle]
        return cls()


def raises(fault):
    def act():
        raise fault("chaos")
    return act


def deep():
    return deep()


def threads():
    def use():
        for pod, _ in HANDLE[0].waiting_pods():
            HANDLE[0].allow(pod.uid, "Chaos")
        HANDLE[0].reject("nobody", "Chaos", "why")
    for _ in range(4):
        threading.Thread(target=use).start()


def hangs():
    time.sleep(CHANCE.uniform(0.05, 1.0))


def computes():
    until = time.perf_counter() + 0.2
    while time.perf_counter() < until:
        pass


EXITS = SystemExit, KeyboardInterrupt, GeneratorExit, BaseException
FAULTS = [raises(fault) for fault in (*EXITS, ValueError, MemoryError, StopIteration, RecursionError)]
FAULTS += [lambda: object(), lambda: 7.5, lambda: float("nan"), lambda: "yes", lambda: 10**400, lambda: Status(99),
           lambda: Status(Code.UNSCHEDULABLE, (1,)), lambda: [1] * 100_000, lambda: Plan((7,)), lambda: iter(int, 1)]
FAULTS += [deep, threads, lambda: print("noise " * 1000), hangs, computes]


def chaotic(right, share={share}):
    def method(self, *args):
        if CHANCE.random() < share:
            return CHANCE.choice(FAULTS)()
        return right
    return method


for method in ("pre_filter", "pre_score", "reserve", "unreserve", "pre_bind", "post_bind", "pre_enqueue"):
    setattr(Chaos, method, chaotic(None))
Chaos.filter = chaotic(None, {share} / 100)  # asked about a hundred nodes or more
Chaos.score = chaotic(1, {share} / 100)
Chaos.permit = chaotic((Status(Code.WAIT), 0.5))
'''

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: chaos
  plugins:
    multiPoint:
      enabled: [{name: Chaos, timeoutSeconds: 0.05}]
extenders:
- urlPrefix: URL
  filterVerb: filter
  prioritizeVerb: score
  weight: 1
  bindVerb: bind
  preemptVerb: preempt
  nodeCacheCapable: true
  httpTimeout: 100ms
  managedResources: [{name: example.com/card, ignoredByScheduler: true}]
"""


class Extender(BaseRequestHandler):
    """An extender with random answers, or none."""

    chance = random.Random(1)

    def handle(self) -> None:
        with suppress(OSError):
            self.request.settimeout(5)
            head = b""
            while b"\r\n\r\n" not in head and (part := self.request.recv(65536)):
                head += part
            self.chance.choice(ANSWERS)(self.request)


def _answer(body: bytes, status: bytes = b"200 OK", more: bytes = b"") -> Any:
    head = b"HTTP/1.1 " + status + b"\r\nConnection: close\r\nContent-Length: %d\r\n" % len(body) + more + b"\r\n"
    return lambda connection: connection.sendall(head + body)


def _drips(connection: Any) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n")
    for _ in range(100):
        connection.sendall(b" ")
        time.sleep(0.01)


def _floods(connection: Any) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (1 << 30))
    for _ in range(1 << 10):
        connection.sendall(b" " * (1 << 20))


ANSWERS: tuple[Any, ...] = (
    lambda connection: None,
    lambda connection: time.sleep(0.3),
    _drips,
    _floods,
    _answer(b"oops"),
    _answer(b"{}"),
    _answer(b"[]"),
    _answer(b"[" * 100_000),
    _answer(b'{"NodeNames": ["nowhere"], "Error": ""}'),
    _answer(b'{"NodeNames": null, "Error": "no card"}'),
    _answer(b"", b"500 Oops"),
    _answer(b"", b"302 Found", b"Location: http://" + b"x" * 300 + b"/\r\n"),
    _answer(b"", b"307 Again", b"Location: /filter\r\n"),
    _answer(b"{}", more=b"X: \x00\r\n"),
    lambda connection: connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n"),
)


class Server(ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64


def node(number: int) -> Raw:
    room = {"cpu": "64", "memory": "256Gi", "pods": "1000"}
    meta = {"name": f"n{number}", "labels": {"kubernetes.io/hostname": f"n{number}"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"capacity": room, "allocatable": room}}


def pod(name: str, kind: str, batch: str) -> Raw:
    resources: Raw = {"requests": {"cpu": "10m"}}
    if kind == "card":
        resources = {"requests": {"cpu": "10m", CARD: "1"}, "limits": {CARD: "1"}}
    spec = {"containers": [{"name": "a", "image": "a", "resources": resources}]}
    if kind == "chaos":
        spec["schedulerName"] = "chaos"
    meta = {"name": name, "labels": {"kind": kind, "batch": batch}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


class Load:
    """Creates pods at fixed times, independent of earlier pods, and deletes them later."""

    def __init__(self, path: str, rate: int) -> None:
        self._path, self._rate = path, rate
        self._numbers, self._batches = itertools.count(), itertools.count()
        self.created: dict[str, int] = {}
        self.placed = 0  # number of plain pods with a node at their deletion
        self.left = 0  # number of plain pods without a node at their deletion
        self.failed = 0  # number of these whose attempt has failed

    def run(self, seconds: float, faulty: bool) -> None:
        chance = random.Random(7)
        self.created, self.placed = dict.fromkeys(("plain", "chaos", "card"), 0), 0
        self.left = self.failed = 0
        live: deque[tuple[float, str]] = deque()
        start = time.perf_counter()
        with BlockingClient(self._path) as client:
            for batch in range(int(seconds * _BATCHES)):
                due = start + batch / _BATCHES
                time.sleep(max(0.0, due - time.perf_counter()))
                label = f"b{next(self._batches)}"
                made = [self._pod(chance, faulty, label) for _ in range(self._rate // _BATCHES)]
                client.call("objects.apply", manifests=made)
                live.append((time.perf_counter(), label))
                while live and live[0][0] < time.perf_counter() - _LIVE_S:
                    self._end(client, live.popleft()[1])
            self.took_s = time.perf_counter() - start
            time.sleep(_LIVE_S)
            while live:
                self._end(client, live.popleft()[1])

    def _pod(self, chance: random.Random, faulty: bool, batch: str) -> Raw:
        drawn = chance.random() if faulty else 1.0
        kind = "card" if drawn < 0.005 else "chaos" if drawn < 0.025 else "plain"
        self.created[kind] += 1
        return pod(f"{kind}-{next(self._numbers)}", kind, batch)

    def _end(self, client: BlockingClient, batch: str) -> None:
        mine = {"kind": "Pod", "label_selector": f"batch={batch}"}
        for one in client.call("objects.list", **mine)["items"]:
            if one["metadata"]["labels"]["kind"] == "plain":
                self.placed += bool(one["spec"].get("nodeName"))
                self.left += not one["spec"].get("nodeName")
                conditions = one["status"].get("conditions") or ()
                self.failed += any(each["status"] == "False" for each in conditions if each["type"] == "PodScheduled")
        client.call("objects.delete", **mine, grace_period_s=0)


class Questions:
    """Response times of a client that sends ten requests a second."""

    def __init__(self, path: str) -> None:
        self._path, self._over = path, threading.Event()
        self.took_ms: list[float] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with BlockingClient(self._path) as client:
            while not self._over.wait(0.1):
                began = time.perf_counter()
                client.call("scheduler.status")
                self.took_ms.append(1000 * (time.perf_counter() - began))

    def end(self) -> str:
        self._over.set()
        self._thread.join()
        took = sorted(self.took_ms)
        return ", ".join(f"p{100 * q:g} {took[int(q * (len(took) - 1))]:.0f} ms" for q in (0.5, 0.99, 1))


def _process(pid: int) -> str:
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return f"{int(fields['VmRSS'].split()[0]) // 1024} MiB, {fields['Threads'].strip()} threads"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--rate", type=int, default=1000)
    given = parser.parse_args()
    server = Server(("127.0.0.1", 0), Extender)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = str(folder / "k.sock")
        (folder / "chaos.py").write_text(PLUGIN.replace("{share}", "0.03"))
        (folder / "config.yaml").write_text(CONFIG.replace("URL", f"http://127.0.0.1:{server.server_address[1]}"))
        command = [sys.executable, "-m", "kschedd", "run", "--socket", path, "--seed", "1"]
        command += ["--plugin", str(folder / "chaos.py"), "--config", str(folder / "config.yaml")]
        with (folder / "log").open("wb") as log:
            daemon = subprocess.Popen([*command, "--log-level", "error"], stdout=log, stderr=log)
        try:
            _measure(path, daemon, given)
            daemon.terminate()
            print(f"ended with status {daemon.wait(60)}")
        finally:
            daemon.kill()
            daemon.wait()
    server.shutdown()


def _measure(path: str, daemon: "subprocess.Popen[bytes]", given: argparse.Namespace) -> None:
    while not Path(path).exists():
        time.sleep(0.1)
    with BlockingClient(path) as client:
        client.call("objects.apply", manifests=[node(number) for number in range(given.nodes)])
        load = Load(path, given.rate)
        load.run(2, faulty=False)  # what is made once
        for faulty, seconds in ((False, given.seconds / 4), (True, given.seconds)):
            before, questions = _process(daemon.pid), Questions(path)
            load.run(seconds, faulty)
            answers = questions.end()
            print(f"{'with' if faulty else 'without'} faults: {load.created} in {load.took_s:.1f} s")
            print(
                f"  of the others {load.placed:,} placed within {_LIVE_S:g} s, {load.left:,} not, "
                f"{load.failed:,} failed; answers: {answers}"
            )
            print(
                f"  the daemon before: {before}, after: {_process(daemon.pid)}; load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
        for _ in range(200):
            status = client.call("scheduler.status")
            if not any(
                status[place] for place in ("active", "backoff", "unschedulable", "in_flight", "waiting", "binding")
            ):
                break
            time.sleep(0.1)
        kept = (
            "active",
            "backoff",
            "error_backoff",
            "unschedulable",
            "gated",
            "in_flight",
            "waiting",
            "binding",
            "pods",
        )
        print("left in the end:", {place: status[place] for place in kept})
        info = client.call("daemon.info")
        print(f"faults of objects: {info['faults']}")
        for each in info["plugins"]:
            print(
                f"  {each['name']:28} {each['call']:12} {each['calls']:>7,} calls, {each['failures']:>5,} failed, "
                f"{each['timeouts']:>4,} too late, longest {each['longest_ms']:.0f} ms"
            )
        print(f"the daemon in the end: {_process(daemon.pid)}")


if __name__ == "__main__":
    main()
