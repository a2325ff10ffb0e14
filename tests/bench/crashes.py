"""kill -9, thousands of times: `python -m tests.bench.crashes --rounds 10000`.

A daemon on one state directory is killed while clients write, read and watch, and started again; after each start
every write that was answered must be there, nothing that was seen may be gone, and no version may mean something else.
Every tenth is killed at a named point of the journal's work (POINTS), where it ends itself; the others at any moment.

One process has imported everything and forks each daemon, so that a round takes a fraction of a second. The journal is
compacted after 60 writes, so that this is hit too.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import trio

from kschedd.rpc.client import Client
from kschedd.rpc.errors import RpcError
from kschedd.store.disk import RealDisk
from tests.test_crashes import EventListener, ask, check, follow, until_lost, write

#: What a daemon does when it ends itself: in the middle of what, and before or after it.
POINTS = (
    "before-insert",
    "before-commit",
    "after-commit",
    "before-head",
    "within-head",
    "after-head",
    "before-compaction",
    "within-compaction",
    "after-compaction",
    "before-vacuum",
    "after-vacuum",
    "opening",
)
_WRITES = 60  # after which the journal is compacted
_OBJECTS = 8


@attrs.define(eq=False)
class KillingDatabase:
    """A database whose process ends itself at a point."""

    _db: Any
    _at: "Callable[[str], None]"
    _compacting: bool = False

    @property
    def in_transaction(self) -> bool:
        return bool(self._db.in_transaction)

    def execute(self, sql: str, *parameters: Any) -> Any:
        if sql.startswith("PRAGMA synchronous=NORMAL"):
            self._compacting = True
        elif sql.startswith("PRAGMA synchronous=FULL"):
            self._compacting = False
        commit, deletes = sql == "COMMIT", sql.startswith("DELETE FROM events WHERE version <=")
        if commit:
            self._at("before-compaction" if self._compacting else "before-commit")
        if deletes:
            self._at("within-compaction")
        done = self._db.execute(sql, *parameters)
        if commit:
            self._at("after-compaction" if self._compacting else "after-commit")
        return done

    def executemany(self, sql: str, rows: Any) -> Any:
        if sql.startswith("INSERT INTO events"):
            self._at("before-insert")
        return self._db.executemany(sql, rows)

    def executescript(self, sql: str) -> Any:
        vacuum = "vacuum" in sql
        self._at("before-vacuum" if vacuum else "opening")
        done = self._db.executescript(sql)
        if vacuum:
            self._at("after-vacuum")
        return done

    def close(self) -> None:
        self._db.close()


def install(point: str, count: int) -> None:
    """In the daemon's process: end it the `count`-th time that it comes to the point."""
    left = count
    connect, pwrite = RealDisk.connect, RealDisk.pwrite

    def at(here: str) -> None:
        nonlocal left
        if here == point:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def killing_pwrite(self: RealDisk, descriptor: int, data: bytes, offset: int) -> int:
        at("before-head")
        if point == "within-head" and left == 1:
            pwrite(self, descriptor, data[:40], offset)
        at("within-head")
        written = pwrite(self, descriptor, data, offset)
        at("after-head")
        return written

    def killing_connect(self: RealDisk, path: Path) -> Any:
        return KillingDatabase(connect(self, path), at)

    RealDisk.connect, RealDisk.pwrite = killing_connect, killing_pwrite  # type: ignore[method-assign]


# --- the process that forks daemons ------------------------------------------------------------------------------


def serve_forks() -> None:
    """For each line "DIR POINT COUNT": fork a daemon; its pid on a line once it serves, and " ended" if it does not."""
    from kschedd import daemon

    daemon.cluster_actors.__wrapped__.__kwdefaults__["compact_after"] = _WRITES  # type: ignore[attr-defined]
    for line in sys.stdin:
        where, point, count = line.split()
        ready, told = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(ready)
            install(point, int(count))
            run_one(daemon, Path(where), told)
        os.close(told)
        word = os.read(ready, 10)
        os.close(ready)
        if not word:
            os.waitpid(pid, 0)
        print(pid, "serves" if word else "ended", flush=True)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the killed ones


def run_one(daemon: Any, where: Path, told: int) -> None:
    class Status:
        def started(self, path: Path) -> None:
            os.write(told, b"serves")

    log = os.open(where / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    options = daemon.DaemonOptions(socket=where / "k.sock", state_dir=where / "state", seed=1, log_level="error")
    os._exit(trio.run(partial(daemon.run_daemon, options, task_status=Status())))


# --- the clients -------------------------------------------------------------------------------------------------


@attrs.define(eq=False)
class Server:
    """The process that forks daemons, seen from the clients'."""

    process: "subprocess.Popen[str]"

    def start(self, where: Path, point: str = "-", count: int = 0) -> int | None:
        """The pid of a daemon that serves; None if it has ended before, as it was told to."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{where} {point} {count}\n")
        self.process.stdin.flush()
        pid, word = self.process.stdout.readline().split()
        return int(pid) if word == "serves" else None


async def resume(path: Path, listener: EventListener, since: int) -> int:
    """Hold the daemon against what was seen; what is no longer kept of events is not asked for."""
    try:
        return await check(path, listener, since)
    except* RpcError as refused:
        if any(not isinstance(error, RpcError) or error.code != "gone" for error in refused.exceptions):
            raise
    async with Client.connect(path) as client:
        since = int((await client.call("daemon.info"))["resource_version"])
    listener.events[since] = ("", "", "")  # nobody will see the events up to here
    return since


async def use(
    path: Path, pid: int, listener: EventListener, since: int, chance: random.Random, by_itself: bool
) -> None:
    """Everybody at work; the daemon is killed amidst of it, unless it ends itself."""
    enough = listener.answers + chance.randrange(1, 25)
    start = 1 + max(listener.numbers.values(), default=0)
    async with trio.open_nursery() as killing:
        async with trio.open_nursery() as clients:
            for half in (0, 1):
                names = [f"c{n}" for n in range(_OBJECTS) if n % 2 == half]
                clients.start_soon(until_lost, path, partial(write, event_listener=listener, names=names, start=start))
            clients.start_soon(until_lost, path, partial(ask, event_listener=listener, chance=chance))
            clients.start_soon(until_lost, path, partial(follow, event_listener=listener, since=since))
            killing.start_soon(_kill, pid, listener, enough + (100_000 if by_itself else 0))
        killing.cancel_scope.cancel()


async def _kill(pid: int, listener: EventListener, enough: int) -> None:
    latest = trio.current_time() + 20
    while listener.answers < enough and trio.current_time() < latest:  # noqa: ASYNC110 - others count
        await trio.sleep(0.002)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


async def main(rounds: int, seed: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="crashes"))
    command = [sys.executable, "-m", "tests.bench.crashes", "--serve"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220
    server, listener, since = Server(process), EventListener(), 0
    points: Counter[str] = Counter()
    began = time.monotonic()
    path = folder / "k.sock"
    for number in range(rounds):
        chance = random.Random(f"{seed} {number}")
        point, count = "-", 0
        if number % 10 == 9:
            point = POINTS[number // 10 % len(POINTS)]
            count = (
                1 if point == "opening" else chance.randrange(1, 4 if "compact" in point or "vacuum" in point else 60)
            )
        pid = server.start(folder, point, count)
        if pid is not None:
            try:
                since = await resume(path, listener, since)
                await use(path, pid, listener, since, chance, point != "-")
            except* (ConnectionError, Exception) as errors:
                if point == "-" or errors.subgroup(AssertionError) is not None:
                    raise
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        points[point] += 1
        if number % 100 == 99:
            print(f"{number + 1} kills, {listener.answers} answers, {time.monotonic() - began:.0f} s", flush=True)
    pid = server.start(folder)
    assert pid is not None
    await resume(path, listener, since)
    os.kill(pid, signal.SIGKILL)
    process.terminate()
    named = ", ".join(f"{point} {count}" for point, count in sorted(points.items()) if point != "-")
    print(f"{rounds} kills, {rounds - points['-']} at named points ({named})")
    print(f"{listener.answers} answered writes, {len(listener.events)} events seen: all there")
    shutil.rmtree(folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve_forks()
    else:
        trio.run(main, given.rounds, given.seed)
