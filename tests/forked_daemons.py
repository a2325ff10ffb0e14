"""Daemons for tests that kill them, forked from a process that has imported all modules and read the configuration.

A start therefore takes about 0.05 s of CPU instead of 2. A daemon can be told to kill itself at a named point of the
journal's work (tests/killing_points.py). Its journal is compacted after 60 writes, so that the points of compaction are
reached.
"""

import importlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import trio

from kschedd.config.model import Config
from kschedd.garbage_collection import freeze_gc
from kschedd.startup.state import StateOptions
from tests.killing_points import install

_WRITES = 60  # number of writes after which the journal is compacted
_REACHED = "reached"  # the file in which a daemon notes the point at which it kills itself


# --- the process that forks daemons, seen from the clients' ------------------------------------------------------


@attrs.frozen
class Daemon:
    """It holds a descriptor of the process, so that it never kills another process with the same pid."""

    process: int

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.process, signal.SIGKILL)

    def close(self) -> None:
        """Kill the daemon, and wait until its lock on the state directory is released."""
        self.kill()
        select.select([self.process], [], [])
        os.close(self.process)


@attrs.frozen(eq=False)
class Server:
    where: Path  # folder of the state directory, the socket and the log of all daemons
    _process: "subprocess.Popen[str]"

    @property
    def socket(self) -> Path:
        return self.where / "k.sock"

    def start(self, point: str = "-", count: int = 0) -> Daemon | None:
        """Start a daemon that kills itself when it reaches the point for the `count`-th time.

        Returns the daemon once it serves, or None if it has already killed itself.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{point} {count}\n")
        self._process.stdin.flush()
        pid, word = self._process.stdout.readline().split()
        if word != "serves":
            assert point != "-", (self.where / "log").read_text()
            return None
        with suppress(ProcessLookupError):
            return Daemon(os.pidfd_open(int(pid)))
        return None

    def reached(self) -> Counter[str]:
        """Return how often a daemon has killed itself at each point."""
        noted = self.where / _REACHED
        return Counter(noted.read_text().split() if noted.exists() else ())


@contextmanager
def forked_daemons(where: Path) -> Iterator[Server]:
    command = [sys.executable, "-m", "tests.forked_daemons", str(where)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]
    ) as process:
        yield Server(where, process)  # The process exits at the end of its input.


# --- the process that forks daemons ------------------------------------------------------------------------------


def serve_forks(where: Path) -> None:
    """For each input line "POINT COUNT": fork a daemon; print its pid once it "serves", or after it has "ended".

    Exits at the end of the input, with the last daemon.
    """
    from kschedd import serving

    actors = serving.cluster_actors
    point = "-"

    def compacting_often(config: Config, *, state: StateOptions, **rest: Any) -> Any:
        return actors(config, state=attrs.evolve(state, compact_after=_WRITES, apart=point == "-"), **rest)

    serving.cluster_actors = compacting_often
    read = serving.read_options(serving.DaemonOptions(socket=Path(), seed=1))
    serving.read_options = lambda options: read
    import_what_a_daemon_imports(serving)
    freeze_gc()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the killed daemons
    pid = 0
    for line in sys.stdin:
        point, count = line.split()
        ready, reported = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(ready)
            install(point, int(count), where / _REACHED)
            run_one(serving, where, partial(os.write, reported, b"serves"))
        os.close(reported)
        word = os.read(ready, 10)
        os.close(ready)
        if not word:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
        print(pid, "serves" if word else "ended", flush=True)
    if pid:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def import_what_a_daemon_imports(serving: Any) -> None:
    """Import all modules that a serving daemon has imported.

    A forked daemon reports their names. This process must not run a daemon itself, since a fork keeps only one of its
    threads.
    """
    there, reported = os.pipe()
    pid = os.fork()
    if pid == 0:
        with tempfile.TemporaryDirectory() as where:

            def serves() -> None:
                os.write(reported, " ".join(sys.modules).encode())
                shutil.rmtree(where)
                os._exit(0)

            run_one(serving, Path(where), serves)
    os.close(reported)
    with os.fdopen(there, encoding="utf-8") as names:
        for name in names.read().split():
            if name not in sys.modules and not name.startswith("__"):
                importlib.import_module(name)
    os.waitpid(pid, 0)


def run_one(serving: Any, where: Path, serves: "Callable[[], object]") -> None:
    class Status:
        def started(self, path: Path) -> None:
            serves()

    log = os.open(where / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    options = serving.DaemonOptions(socket=where / "k.sock", state_dir=where / "state", seed=1, log_level="error")
    os._exit(trio.run(partial(serving.run_daemon, options, task_status=Status())))


if __name__ == "__main__":
    serve_forks(Path(sys.argv[1]))
