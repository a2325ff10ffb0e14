"""Benchmark of a filter that computes for 1 ms on each of 500 nodes, in the daemon's threads and in worker processes.

`python -m tests.bench.worker_processes [--pods N]` starts a daemon for each variant, schedules pods one after the
other, and prints the time per pod, and the latency of `daemon.info` meanwhile.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from kschedd.rpc.blocking import BlockingClient
from tests.bench.slow_plugins import create, node, pod, until_bound

NODES = 500
PLUGIN = """
import time


class Burn:
    name = "Burn"
    worker_processes = {processes}

    def filter(self, state, pod, node):
        until = time.thread_time() + 0.001
        while time.thread_time() < until:
            pass
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 100
profiles:
- plugins:
    filter:
      enabled: [{name: Burn, timeoutSeconds: 60}]
"""


def measure(socket: Path, pods: int) -> str:
    with BlockingClient(socket) as client:
        create(client, *[node(f"n{number}") for number in range(NODES)])
        create(client, pod("warm", "default-scheduler"))
        first = until_bound(client, ["warm"])
        took, requests, ended = [], [], threading.Event()

        def ask() -> None:
            with BlockingClient(socket) as other:
                while not ended.wait(0.01):
                    started = time.perf_counter()
                    other.call("daemon.info")
                    requests.append(time.perf_counter() - started)

        asking = threading.Thread(target=ask)
        asking.start()
        for number in range(pods):
            create(client, pod(f"web-{number}", "default-scheduler"))
            took.append(until_bound(client, [f"web-{number}"]))
        ended.set()
        asking.join()
    requests.sort()
    return (
        f"first {1000 * first:6.0f} ms  median {1000 * statistics.median(took):6.0f} ms  daemon.info "
        f"p99 {1000 * requests[int(len(requests) * 0.99)]:5.1f} ms"
    )


def run(processes: int, pods: int) -> str:
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "plugin.py").write_text(PLUGIN.format(processes=processes))
        (here / "config.yaml").write_text(CONFIG)
        socket = here / "socket"
        command: list[Any] = [sys.executable, "-m", "kschedd", "run", "--socket", socket]
        daemon = subprocess.Popen(
            [*command, "--plugin", here / "plugin.py", "--config", here / "config.yaml"], stderr=subprocess.DEVNULL
        )
        try:
            while not socket.exists():
                time.sleep(0.05)
            return measure(socket, pods)
        finally:
            os.kill(daemon.pid, signal.SIGTERM)
            daemon.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, default=10)
    options = parser.parse_args()
    for processes in (0, 1, 2):
        what = f"{processes} processes" if processes else "threads"
        print(f"{what:<12}  {run(processes, options.pods)}", flush=True)


if __name__ == "__main__":
    main()
