"""Benchmark of the write latency during a compaction of the journal.

`python tests/bench/journal_compaction.py [--events 200000]` writes the given number of events to 20,000 objects of a
cluster with a journal, until compaction begins. Then one client makes one write after the other for a fixed number of
seconds. The benchmark prints the longest wait, and the sizes of the files before and after. Garbage is collected as in
a daemon. Two control measurements follow in the same folder: a plain write of 4 KiB with fdatasync on an idle disk, and
the same while another thread occasionally writes a megabyte, as a checkpoint does. Pytest does not collect this file.
There are no thresholds.
"""

import argparse
import os
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import trio

from kschedd.actors.full_collections import look_now_and_then
from kschedd.daemon import cluster_actors
from kschedd.garbage_collection import FullCollections
from kschedd.startup.state import StateOptions
from kschedd.store.store import Store

_OBJECTS = 20_000
_BATCH = 500
_TEXT = "x" * 600


def write(numbers: range, store: Store) -> None:
    for number in numbers:
        name = f"c{number % _OBJECTS}"
        data = {"text": _TEXT, "number": str(number)}
        if store.find("ConfigMap", "default", name) is None:
            store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
        else:
            store.merge_patch("ConfigMap", "default", name, {"data": data})


def megabytes(folder: Path) -> str:
    return ", ".join(f"{file.name} {file.stat().st_size / 1e6:.1f} MB" for file in sorted(folder.iterdir()))


def reported(waits_s: list[float]) -> str:
    """Return percentiles in milliseconds, the five longest waits, and the number above 20 ms."""
    waits = sorted(1000 * wait for wait in waits_s)
    some = ", ".join(f"p{100 * q:g} {waits[int(q * (len(waits) - 1))]:.2f}" for q in (0.5, 0.9, 0.99, 0.999))
    longest = ", ".join(f"{wait:.1f}" for wait in waits[-5:])
    return f"{len(waits):,}: {some} ms, longest {longest} ms; {sum(wait > 20 for wait in waits)} over 20 ms"


def flushes(folder: Path, seconds: float) -> list[float]:
    file = os.open(folder / "control", os.O_RDWR | os.O_CREAT)
    took_s = []
    end = time.perf_counter() + seconds
    while (before := time.perf_counter()) < end:
        os.pwrite(file, bytes(4096), 4096 * (len(took_s) % 1000))
        os.fdatasync(file)
        took_s.append(time.perf_counter() - before)
    os.close(file)
    return took_s


def write_megabytes(folder: Path, over: threading.Event) -> None:
    """Repeatedly write and flush a megabyte in scattered pages, as checkpoints during a compaction do."""
    file = os.open(folder / "beside", os.O_RDWR | os.O_CREAT)
    number = 0
    while not over.wait(0.03):
        for _ in range(256):
            number += 1
            os.pwrite(file, os.urandom(4096), 4096 * (number * 7919 % 50_000))
        os.fdatasync(file)
    os.close(file)


def control(folder: Path) -> None:
    print(f"bare write and fdatasync, idle: {reported(flushes(folder, 5))}")
    over = threading.Event()
    beside = threading.Thread(target=write_megabytes, args=(folder, over))
    beside.start()
    print(f"the same beside scattered writes: {reported(flushes(folder, 5))}")
    over.set()
    beside.join()


async def measure(folder: Path, events: int, seconds: float) -> None:
    with FullCollections() as collections:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(look_now_and_then, collections)
            await written(folder, events, seconds)
            nursery.cancel_scope.cancel()


async def written(folder: Path, events: int, seconds: float) -> None:
    async with cluster_actors(state=StateOptions(journal=folder / "journal.db"), seed=1) as cluster:
        started = time.perf_counter()
        for first in range(0, events, _BATCH):
            await cluster.store.do(partial(write, range(first, first + _BATCH)))
        print(f"{events:,} writes, {events / (time.perf_counter() - started):,.0f}/s. {megabytes(folder)}")
        waits = []
        end = time.perf_counter() + seconds
        number = events
        while (before := time.perf_counter()) < end:
            await cluster.store.do(partial(write, range(number, number + 1)))
            waits.append(time.perf_counter() - before)
            number += 1
        print(f"single writes: {reported(waits)}")
        print(megabytes(folder))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_500)
    parser.add_argument("--seconds", type=float, default=25.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trio.run(measure, Path(folder), options.events, options.seconds)
        control(Path(folder))


if __name__ == "__main__":
    main()
