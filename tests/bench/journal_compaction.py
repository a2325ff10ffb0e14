"""What a compaction costs those who write meanwhile: python tests/bench/journal_compaction.py [--events 200000]

A cluster with a journal takes so many writes to 20,000 objects, which is when compaction begins. Then one client
writes, one at a time, for so many seconds: the longest it waited, and how large the files are before and after. Not
collected by pytest. No thresholds: it prints what it measured.
"""

import argparse
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

import trio

from kschedd.daemon import cluster_actors
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


async def measure(folder: Path, events: int, seconds: float) -> None:
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
            waits.append((time.perf_counter() - before) * 1000)
            number += 1
        waits.sort()
        longest = ", ".join(f"{wait:.1f}" for wait in waits[-5:])
        print(f"{len(waits):,} single writes: median {statistics.median(waits):.2f} ms, longest {longest} ms")
        print(megabytes(folder))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_500)
    parser.add_argument("--seconds", type=float, default=25.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trio.run(measure, Path(folder), options.events, options.seconds)


if __name__ == "__main__":
    main()
