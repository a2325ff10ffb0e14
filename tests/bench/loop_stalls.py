"""Benchmark of the longest delay of one client while another makes a costly request.

`python -m tests.bench.loop_stalls [--only NAME ...] [--patience SECONDS]` starts a daemon for each request. One process
calls `rpc.ping` every millisecond. The output contains the longest ping during the other client's request, and the
result and duration of that request.
"""

import argparse
import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from kschedd.errors import KscheddError
from kschedd.rpc.blocking import BlockingClient

Raw = dict[str, Any]
Request = tuple[str, dict[str, Any]]


def pod(name: str, **more: Any) -> Raw:
    spec = {"containers": [{"name": "a", "image": "a"}], **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def node(name: str, resources: int = 0, taints: int = 0, labels: int = 0) -> Raw:
    amounts = {"cpu": "4", **{f"example.com/r{number}": "1" for number in range(resources)}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {f"l{number}": "" for number in range(labels)}},
        "spec": {"taints": [{"key": f"t{number}", "effect": "NoSchedule"} for number in range(taints)]},
        "status": {"allocatable": amounts},
    }


def space(number: int) -> Raw:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"n{number}"}}


def labelled(raw: Raw, labels: int) -> Raw:
    return {**raw, "metadata": {**raw["metadata"], "labels": {f"l{number}": "" for number in range(labels)}}}


def crowded(containers: int) -> Raw:
    return pod("many", containers=[{"name": f"c{number}", "image": "a"} for number in range(containers)])


def config_map(size: int) -> Raw:
    data = {f"k{number}": "x" * 50 for number in range(size // 60)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": data}


def flow(size: int) -> str:
    entries = ",".join(f"k{number}: x" for number in range(size // 12))
    return f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: flow}}, data: {{{entries}}}}}"


def apply(manifests: Any, **flags: bool) -> Request:
    return "objects.apply", {"manifests": manifests, **flags}


def create(raw: Raw) -> Request:
    return "objects.create", {"manifest": raw}


def pods_there(daemon: BlockingClient, count: int) -> None:
    for first in range(0, count, 2000):
        daemon.call("objects.apply", manifests=[pod(f"p{number}") for number in range(first, first + 2000)])


REQUESTS: Final[dict[str, Callable[[], Request]]] = {
    "open brackets, 300,000 lines": lambda: apply("[\n" * 300_000),
    "empty objects, 200,000 lines": lambda: apply("{}\n" * 200_000),
    "equal keys, 20,000 pairs": lambda: apply(
        '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{'
        + ",\n".join(f'"k{n // 2}":""' for n in range(40_000))
        + "}}"
    ),
    "atomic apply, 100,000 items": lambda: apply([space(n) for n in range(100_000)], atomic=True),
    "atomic apply, 20,000 items": lambda: apply([space(n) for n in range(20_000)], atomic=True),
    "dry run, 20,000 items": lambda: apply([space(n) for n in range(20_000)], dry_run=True),
    "apply, 20,000 items": lambda: apply([space(n) for n in range(20_000)]),
    "YAML flow, 15 MB": lambda: apply(flow(15_000_000)),
    "YAML flow, 1.4 MB": lambda: apply(flow(1_400_000)),
    "ConfigMap, 12.5 MB": lambda: create(config_map(12_500_000)),
    "ConfigMap, 1.4 MB": lambda: create(config_map(1_400_000)),
    "Node, 100,000 taints": lambda: create(node("a", taints=100_000)),
    "Node, 40,000 taints": lambda: create(node("a", taints=40_000)),
    "Node, 4,000 resources": lambda: create(node("a", resources=4_000)),
    "Node, 60,000 resources": lambda: create(node("a", resources=60_000)),
    "Node, 100,000 labels": lambda: create(node("a", labels=100_000)),
    "pod, 100,000 labels": lambda: create(labelled(pod("a"), 100_000)),
    "pod, 10,000 containers": lambda: create(crowded(10_000)),
    "list of 20,000 pods": lambda: ("objects.list", {"kind": "Pod"}),
    "list of 20,000 pods by label": lambda: ("objects.list", {"kind": "Pod", "label_selector": "app!=web"}),
    "queue.list of 20,000 pods": lambda: ("queue.list", {}),
}
PRESENT: Final = {name: 20_000 for name in REQUESTS if "20,000 pods" in name}


def ping(path: str, control: "Connection[Any, Any]") -> None:
    """Send a ping every millisecond until a message arrives; then send the longest duration."""
    with BlockingClient(path) as daemon:
        daemon.call("rpc.ping")
        control.send("ready")
        longest = 0.0
        while not control.poll():
            start = time.perf_counter()
            daemon.call("rpc.ping")
            longest = max(longest, time.perf_counter() - start)
            time.sleep(0.001)
        control.send(longest)


def measure(name: str, patience_s: float) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "socket")
        daemon = subprocess.Popen(
            [sys.executable, "-m", "kschedd.cli", "run", "--socket", path, "--log-level", "error"],
            stderr=subprocess.DEVNULL,
        )
        try:
            while not os.path.exists(path):
                time.sleep(0.02)
            time.sleep(0.2)
            with BlockingClient(path, timeout=patience_s) as client:
                pods_there(client, PRESENT.get(name, 0))
                return _measured(client, path, REQUESTS[name]())
        finally:
            daemon.send_signal(signal.SIGKILL)
            daemon.wait()


def _measured(client: BlockingClient, path: str, request: Request) -> str:
    here, there = multiprocessing.Pipe()
    pinging = multiprocessing.Process(target=ping, args=(path, there))
    pinging.start()
    here.recv()
    method, params = request
    start = time.perf_counter()
    try:
        answer = client.call(method, **params)
        reported = "answered"
        if isinstance(answer, dict) and answer.get("errors"):
            reported = f"{len(answer['errors'])} faults, first: {str(answer['errors'][0].get('why'))[:60]}"
    except KscheddError as refusal:
        reported = str(refusal)[:70]
    took = time.perf_counter() - start
    time.sleep(0.3)  # includes the effects on watches, controllers and the scheduler
    here.send("stop")
    longest = here.recv() if here.poll(patience_of(client)) else float("inf")
    with contextlib.suppress(OSError):
        pinging.terminate()
    pinging.join()
    return f"{longest * 1000:9.1f} ms {took:8.2f} s   {reported}"


def patience_of(client: BlockingClient) -> float:
    return client.timeout or 60.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="parts of the names of requests")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds that a request may take")
    options = parser.parse_args()
    print(f"{'request':32} {'longest ping':>12} {'took':>10}   answer")
    for name in REQUESTS:
        if not options.only or any(part in name for part in options.only):
            print(f"{name:32} {measure(name, options.patience)}", flush=True)


if __name__ == "__main__":
    main()
