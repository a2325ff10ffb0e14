"""Benchmark of an extender's filter call with node names and with whole nodes, over HTTP on this machine.

`python -m tests.bench.extender_calls [--calls N]` starts an extender in a separate process that passes every node; the
daemon's client calls it with 100 and 5,000 nodes. It prints the median and the longest call, and the longest blocking
of the event loop.
"""

import argparse
import json
import multiprocessing
import statistics
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any

import trio

from kschedd.actors.scheduler.extenders import ExtenderClients
from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.model import Extender
from kschedd.extenders.extender import HTTPExtender
from kschedd.garbage_collection import freeze_gc
from kschedd.serving import SWITCH_S

Raw = dict[str, Any]


def node(number: int) -> Raw:
    """Return a node with the labels, addresses and images of a real node."""
    name = f"node-{number:05}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}"}
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    images = [{"names": [f"registry.example.com/image-{n}:v1"], "sizeBytes": 10**8} for n in range(10)]
    conditions = [{"type": kind, "status": "False"} for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")]
    status = {"capacity": amounts, "allocatable": amounts, "images": images, "conditions": conditions}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default", "uid": "u"},
    "spec": {"containers": [{"name": "a", "image": "a", "resources": {"requests": {"cpu": "1"}}}]},
}


def serve(ready: Connection) -> None:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # otherwise the second part of a response would wait 40 ms for the first to be acknowledged
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            args = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = json.dumps({"NodeNames": args["NodeNames"], "Nodes": args["Nodes"]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    ready.send(server.server_port)
    server.serve_forever()


async def longest_stall(stop: trio.Event) -> float:
    longest = 0.0
    while not stop.is_set():
        before = time.perf_counter()
        await trio.sleep(0.001)
        longest = max(longest, time.perf_counter() - before - 0.001)
    return longest


async def measure(url: str, nodes: int, names: bool, calls: int) -> str:
    cache = SchedulerCache()
    for number in range(nodes):
        cache.put(parse(node(number)))
    pod = parse(POD)
    assert isinstance(pod, Pod)
    rows = list(range(nodes))
    extender = HTTPExtender(Extender(url, filter_verb="filter", node_cache_capable=names, http_timeout_s=60.0))
    clients, took, stalls, stop = ExtenderClients(), [], [], trio.Event()
    freeze_gc()  # as the daemon does after loading its initial state
    table = cache.table

    async def watch() -> None:
        stalls.append(await longest_stall(stop))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        first = time.perf_counter()
        answer = await clients.answer(extender.filter(pod, table, rows))
        assert len(extender.passed(answer, {table.names[row]: row for row in rows})) == nodes
        cold = time.perf_counter() - first
        for _ in range(calls):
            started = time.perf_counter()
            await clients.answer(extender.filter(pod, table, rows))
            took.append(time.perf_counter() - started)
        stop.set()
    await clients.close()
    what = "names" if names else "nodes"
    return (
        f"{nodes:>6,}  {what}  first {1000 * cold:8.1f} ms  median {1000 * statistics.median(took):8.1f} ms  "
        f"slowest {1000 * max(took):8.1f} ms  loop held up {1000 * stalls[0]:6.1f} ms at most"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=30)
    options = parser.parse_args()
    sys.setswitchinterval(SWITCH_S)
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    url = f"http://127.0.0.1:{ours.recv()}"
    try:
        for nodes in (100, 5_000):
            for names in (True, False):
                print(trio.run(measure, url, nodes, names, options.calls))
    finally:
        process.terminate()
        process.join()


if __name__ == "__main__":
    main()
