"""Time from a key press in the REPL to its echo, while the daemon is idle and while it schedules at full speed.

    .venv/bin/python -m tests.bench.keys [--nodes 5000] [--seconds 10]      # typed for that long; in all about a minute

The benchmark runs a daemon with this number of nodes, a client that creates pods as fast as they are scheduled, and the
REPL in a pseudo-terminal with a terminal emulator. It measures the time from each key press until the screen shows the
character. The typed words have completions, so that the menu is updated for each key. The emulator's time, and that of
other processes, is included in the figures: `echo` is the time of a program that only echoes its input, `cpu` is the
CPU time of the REPL's threads per key, and `queued` is the time that they were runnable without a core (Linux only).
"""

import argparse
import json
import os
import pty
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tty
from pathlib import Path

import attrs

from kschedd.rpc.blocking import BlockingClient
from tests.repl.screens import Console, console

ROOT = Path(__file__).parents[2]
LINE = "get pods load-1-1 -o wide; describe node node-1"
PAUSE_S = 0.12  # seconds between two keys of a fast typist


def _node(number: int) -> dict[str, object]:
    resources = {"cpu": "64", "memory": "256Gi", "pods": "1000"}
    labels = {"kubernetes.io/hostname": f"node-{number}", "topology.kubernetes.io/zone": f"zone-{number % 3}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number}", "labels": labels},
        "status": {"allocatable": resources, "capacity": resources},
    }


def _pod(batch: int, number: int) -> dict[str, object]:
    requests = {"cpu": "100m", "memory": "64Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"load-{batch}-{number}", "labels": {"app": f"load-{batch % 7}"}},
        "spec": {"containers": [{"name": "a", "image": "i", "resources": {"requests": requests}}]},
    }


def _load(socket: str, stop: threading.Event) -> None:
    """Create pods as fast as the daemon schedules them, in a separate process."""
    with BlockingClient(socket, timeout=120) as daemon:
        batch = 0
        while not stop.is_set():
            batch += 1
            daemon.call("objects.apply", manifests=[_pod(batch, number) for number in range(500)])
            # At most a few thousand pods wait, so that the daemon schedules all the time.
            while daemon.call("scheduler.status")["active"] > 4000 and not stop.is_set():
                time.sleep(0.01)


@attrs.frozen
class Key:
    """The measurements of one key press, in milliseconds."""

    shown: float  # time until the screen showed the character
    cpu: float = 0.0  # of the REPL meanwhile
    queued: float = 0.0  # time that the REPL's threads waited for a core


def _scheduled(pid: int) -> tuple[float, float]:
    """Return the milliseconds that the threads of a process have run, and that they have waited for a core."""
    rows = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(int(row[0]) for row in rows) / 1e6, sum(int(row[1]) for row in rows) / 1e6


def _keys(repl: Console, seconds: float) -> list[Key]:
    """Measure key presses for this time."""
    found = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for place in range(1, len(LINE) + 1):
            shown = f"kschedd > {LINE[:place]}".rstrip()
            ran, waited = _scheduled(repl.child.pid)
            start = time.perf_counter()
            repl.type(LINE[place - 1])
            if LINE[place - 1] != " ":
                repl.wait(lambda shown=shown: repl.screen.display[repl.screen.cursor.y].startswith(shown), shown)
                took = 1000 * (time.perf_counter() - start)
                ran_now, waited_now = _scheduled(repl.child.pid)
                found.append(Key(took, ran_now - ran, waited_now - waited))
            time.sleep(PAUSE_S)
        repl.type("\x15")
        repl.ready()
    return found


def _echo(seconds: float) -> list[Key]:
    """Measure key presses through a pseudo-terminal to a process that only echoes them."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    code = "import os\nwhile True: os.write(1, os.read(0, 1))"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=theirs, stdout=theirs, start_new_session=True)
    os.write(ours, b"x")
    os.read(ours, 1)
    found = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        os.write(ours, b"x")
        os.read(ours, 1)
        found.append(Key(1000 * (time.perf_counter() - start)))
        time.sleep(PAUSE_S)
    child.kill()
    child.wait()
    os.close(ours)
    os.close(theirs)
    return found


def _summary(keys: list[Key]) -> dict[str, object]:
    found: dict[str, object] = {"keys": len(keys)}
    for name in ("shown", "cpu", "queued"):
        times = [getattr(key, name) for key in keys]
        if any(times):
            cuts = statistics.quantiles(times, n=100, method="inclusive")
            found[f"{name}_ms"] = {"p50": round(cuts[49], 1), "p99": round(cuts[98], 1), "max": round(max(times), 1)}
    return found


def measure(nodes: int, seconds: float) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="kschedd-keys-") as folder:
        where = Path(folder)
        socket = str(where / "k.sock")
        command = [sys.executable, "-m", "kschedd", "run", "--socket", socket, "--seed", "1"]
        with (where / "log").open("wb") as log:
            child = subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT)
        load: subprocess.Popen[bytes] | None = None
        try:
            while "started" not in (where / "log").read_text():
                assert child.poll() is None, (where / "log").read_text()
                time.sleep(0.1)
            with BlockingClient(socket, timeout=300) as daemon:
                daemon.call("objects.apply", manifests=[_node(number) for number in range(nodes)])
                with console(["repl", "--socket", socket, "--no-rc"], where, environment={"LC_ALL": "C"}) as repl:
                    repl.wait_for(f"nodes {nodes}")
                    repl.ready()
                    idle, idle_echo = _keys(repl, seconds), _echo(seconds)
                    load = subprocess.Popen([sys.executable, "-m", "tests.bench.keys", "--load", socket], cwd=ROOT)
                    while daemon.call("scheduler.status")["scheduled"] < 2_000:
                        time.sleep(0.1)
                    begun, before = time.perf_counter(), daemon.call("scheduler.status")["scheduled"]
                    busy = _keys(repl, seconds)
                    bound = daemon.call("scheduler.status")["scheduled"] - before
                    rate = bound / (time.perf_counter() - begun)
                    busy_echo = _echo(seconds)
            measured = {"idle": idle, "idle echo": idle_echo, "busy": busy, "busy echo": busy_echo}
            return {
                "nodes": nodes,
                "pods_per_s": round(rate),
                **{name: _summary(times) for name, times in measured.items()},
            }
        finally:
            for process in (load, child):
                if process is not None:
                    process.kill()
                    process.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--load", metavar="SOCKET", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        _load(options.load, threading.Event())
    else:
        print(json.dumps(measure(options.nodes, options.seconds), indent=2))
