"""Cost of recording a run: `python -m tests.bench.recording_cost [--pods 10000] [--nodes 1000] [--runs 2]`.

Pods are created as fast as a daemon schedules them, 200 per request, alternately with `--record` and without. The
output contains the pods scheduled per second of wall time and of the daemon's CPU time, and the size of the recording;
the last recording is replayed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kschedd.rpc.blocking import BlockingClient
from tests.bench.clients import Feeder, node, pod

_BATCH = 200


def run(folder: Path, nodes: int, pods: int, record: Path | None) -> tuple[float, float]:
    """Return the pods per second of wall time, and of the daemon's CPU time."""
    path = folder / "k.sock"
    command = [sys.executable, "-m", "kschedd", "run", "--socket", str(path), "--seed", "1", "--log-level", "error"]
    if record is not None:
        command += ["--record", str(record)]
    daemon = subprocess.Popen(command)
    try:
        while not path.exists():
            time.sleep(0.05)
        with BlockingClient(str(path)) as client:
            client.call("objects.apply", manifests=[node(number) for number in range(nodes)])
            client.call("objects.apply", manifests=[pod(f"warm-{number}") for number in range(_BATCH)])
            _until(client, _BATCH)
            cpu = Feeder(str(path), daemon.pid).cpu_s
            began, used = time.perf_counter(), cpu()
            for first in range(0, pods, _BATCH):
                client.call("objects.apply", manifests=[pod(f"p-{number}") for number in range(first, first + _BATCH)])
                _until(client, first - _BATCH)
            _until(client, pods + _BATCH)
            return pods / (time.perf_counter() - began), pods / (cpu() - used)
    finally:
        daemon.terminate()
        daemon.wait()


def _until(client: BlockingClient, scheduled: int) -> None:
    while int(client.call("scheduler.status")["scheduled"]) < scheduled:
        time.sleep(0.005)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=2)
    given = parser.parse_args()
    for number in range(given.runs):
        for recorded in (False, True):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                file = folder / "r" if recorded else None
                wall, cpu = run(folder, given.nodes, given.pods, file)
                size = f", {file.stat().st_size / given.pods:.0f} bytes a pod" if file is not None else ""
                what = "recorded" if recorded else "plain   "
                print(
                    f"{what} {wall:6.0f} pods/s, {cpu:6.0f} a CPU second{size}; load {os.getloadavg()[0]:.1f}",
                    flush=True,
                )
                if file is not None and number == given.runs - 1:
                    done = subprocess.run(
                        [sys.executable, "-m", "kschedd", "replay", str(file)], check=False, stdout=subprocess.PIPE
                    )
                    print(done.stdout.decode().strip())


if __name__ == "__main__":
    main()
