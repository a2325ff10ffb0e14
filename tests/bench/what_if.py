"""Benchmark of forks of a large cluster: duration, memory, a planned drain, causes, and the latency of another client.

`python -m tests.bench.what_if [--nodes N] [--pods N]` starts a daemon, fills it with running pods, and times from
another process: `fork.create`, a change in the fork, `plan drain` of a node, and `explain`; the minimum of some runs is
printed. Meanwhile a third process calls `rpc.ping` every millisecond; its longest wait shows how long the event loop
was blocked.
"""

import argparse
import io
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from kschedd.rpc.blocking import BlockingClient
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.table import run_words

Raw = dict[str, Any]
_BATCH: Final = 1_000
_SETS: Final = 50
_PATIENCE_S: Final = 600.0


def node(number: int) -> Raw:
    room = {"cpu": "32", "memory": "64Gi", "pods": "110"}
    labels = {"topology.kubernetes.io/zone": f"zone-{number % 3}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number}", "labels": labels},
        "status": {"allocatable": room, "capacity": room},
    }


def replica_set(number: int) -> Raw:
    labels = {"app": f"set-{number}"}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": f"set-{number}", "namespace": "default"},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}},
    }


def spec() -> Raw:
    container = {"name": "a", "image": "a", "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}}}
    return {"containers": [container], "terminationGracePeriodSeconds": 0}


def fill(client: BlockingClient, nodes: int, pods: int) -> None:
    for start in range(0, nodes, _BATCH):
        client.call("objects.apply", manifests=[node(n) for n in range(start, min(start + _BATCH, nodes))])
    sets = [replica_set(number) for number in range(_SETS)]
    for each in sets:
        each["spec"]["replicas"] = pods // _SETS
        each["spec"]["template"]["spec"] = spec()
    client.call("objects.apply", manifests=sets)
    end = time.monotonic() + _PATIENCE_S
    while client.call("scheduler.status")["scheduled"] < pods // _SETS * _SETS:
        assert time.monotonic() < end, "the pods are not placed in time"
        time.sleep(1.0)
    time.sleep(5.0)  # until the kubelets have reported the running pods


def pinging(socket: Path, pipe: "Connection[Any, Any]") -> None:
    """For each message, send the longest wait for an answer since the previous message."""
    with BlockingClient(socket, timeout=_PATIENCE_S) as client:
        longest = 0.0
        while True:
            before = time.perf_counter()
            client.call("rpc.ping")
            longest = max(longest, time.perf_counter() - before)
            if pipe.poll():
                if pipe.recv() is None:
                    return
                pipe.send(longest)
                longest = 0.0
            time.sleep(0.001)


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def timed(name: str, pipe: "Connection[Any, Any]", work: Callable[[], Any], runs: int = 3) -> None:
    took: list[float] = []
    pipe.send("begin")
    quiet = pipe.recv()
    for _ in range(runs):
        before = time.perf_counter()
        work()
        took.append(time.perf_counter() - before)
    pipe.send("end")
    stall = pipe.recv()
    print(
        f"{name:28} best {1000 * min(took):7.0f} ms  worst {1000 * max(took):7.0f} ms  "
        f"longest ping {1000 * stall:5.1f} ms (before: {1000 * quiet:.1f} ms)",
        flush=True,
    )


def verb(client: BlockingClient, *words: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    session = VerbSession(lambda: client, out.write, err.write)
    status = run_words(session, words)
    assert status != 2, err.getvalue()
    return out.getvalue()


def misplaced() -> Raw:
    """Return a Deployment of 1,000 pods with a misspelled label."""
    spec = {
        "nodeSelector": {"topology.kubernetes.io/zone": "zone1"},
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "10m"}}}],
    }
    template = {"metadata": {"labels": {"app": "misplaced"}}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "misplaced"},
        "spec": {"replicas": 1_000, "selector": {"matchLabels": {"app": "misplaced"}}, "template": template},
    }


def one_of(client: BlockingClient, prefix: str) -> str:
    """Wait for a pod with this prefix; return its key."""
    while True:
        names = [each["metadata"]["name"] for each in client.call("objects.list", kind="Pod")["items"]]
        found = [name for name in names if name.startswith(prefix)]
        if len(found) >= 1_000:
            return f"default/{found[0]}"
        time.sleep(0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=50_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder, "kschedd.sock")
        command = [sys.executable, "-m", "kschedd.cli", "run", "--socket", str(socket), "--seed", "1"]
        daemon = subprocess.Popen([*command, "--log-level", "error"])
        try:
            while not socket.exists():
                assert daemon.poll() is None, "the daemon ended"
                time.sleep(0.1)
            with BlockingClient(socket, timeout=_PATIENCE_S) as client:
                before = time.perf_counter()
                fill(client, options.nodes, options.pods)
                print(f"filled in {time.perf_counter() - before:.0f} s", flush=True)
                ours, theirs = multiprocessing.Pipe()
                pinger = multiprocessing.get_context("spawn").Process(
                    target=pinging, args=(socket, theirs), daemon=True
                )
                pinger.start()
                time.sleep(2.0)
                memory = resident_mb(daemon.pid)
                timed("fork", ours, lambda: client.call("fork.create"), 4)
                grown = (resident_mb(daemon.pid) - memory) / 4
                print(f"memory of a fork: {grown:.0f} MB of {memory:.0f} MB", flush=True)
                timed("first call in a fork", ours, lambda: client.call("fork.advance", fork="fork-1", seconds=0), 1)
                timed("cordon in a fork", ours, lambda: verb(client, "in", "fork-1", "cordon", "node-7"), 3)
                timed("plan drain", ours, lambda: verb(client, "plan", "drain", "node-1", "--force"), 3)
                print(verb(client, "plan", "drain", "node-1", "--force").splitlines()[-1], flush=True)
                client.call("objects.create", manifest=misplaced())
                requests = {"kind": "Deployment", "name": "misplaced"}
                pod = one_of(client, "misplaced-")
                timed("explain, without causes", ours, lambda: client.call("scheduler.explain", pod=pod), 5)
                timed("cause", ours, lambda: client.call("causes.explain", **requests, remedies=False), 5)
                timed("cause and remedies", ours, lambda: client.call("causes.explain", **requests), 3)
                timed("pending, grouped", ours, lambda: client.call("causes.pending"), 3)
                timed("pending, with remedies", ours, lambda: client.call("causes.pending", remedies=5), 3)
                ours.send(None)
        finally:
            daemon.terminate()
            daemon.wait()


if __name__ == "__main__":
    main()
