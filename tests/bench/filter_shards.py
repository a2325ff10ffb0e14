"""Benchmark of a cold evaluation that is split into shards of rows across threads.

The result shows whether filter workers should be enabled by default.

`python -m tests.bench.filter_shards [--nodes N ...] [--times N]` evaluates pods of new templates with the filters and
scores of the default profile. It evaluates the rows of one decision, the prefetched rows, and all rows. With two
threads, the caller evaluates one half, and a waiting thread the other half, which is the cheapest division. numpy
releases the interpreter lock in each operation on a column. The figures are wall time, so the machine must be idle.
Both variants must produce the same result.
"""

import argparse
import gc
from queue import SimpleQueue
from statistics import median
from threading import Thread
from time import perf_counter

import numpy as np

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.bench.workloads import workload
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.config.loading.load import default_config
from kschedd.framework.cycle_state import CycleState
from kschedd.scheduling.attempt.node_search import nodes_to_find
from kschedd.scheduling.filtering.node_local_plugins import NodeLocalPlugins
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.verdicts import Places
from kschedd.sdk.objects import pod

LOOKED_AHEAD = 20_000  # rows, at most
Evaluated = tuple[Places, Ints]


class Evaluation:
    """The evaluation of one pod on some rows: the verdicts, and the scores of all rows."""

    def __init__(self, plugins: NodeLocalPlugins, table: NodeTable, number: int) -> None:
        raw = pod(f"p{number}", cpu=f"{100 + number}m", memory=f"{64 + number}Mi")
        wanted = parse(raw)
        assert isinstance(wanted, Pod)
        self._plugins, self._table, self._pod, self._state = plugins, table, wanted, CycleState()

    def of(self, rows: Rows) -> Evaluated:
        failed, _ = self._plugins.judge(self._state, self._pod, self._table, rows)
        return failed, self._plugins.score(self._state, self._pod, self._table, rows)[0]


class Helper:
    """A thread that evaluates shards; its two queues are implemented in C and hold one item each."""

    def __init__(self) -> None:
        self._given: SimpleQueue[tuple[Evaluation, Rows] | None] = SimpleQueue()
        self._done: SimpleQueue[Evaluated] = SimpleQueue()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (given := self._given.get()) is not None:
            evaluation, rows = given
            self._done.put(evaluation.of(rows))

    def with_caller(self, evaluation: Evaluation, rows: Rows) -> Evaluated:
        half = len(rows) // 2
        self._given.put((evaluation, rows[half:]))
        failed, total = evaluation.of(rows[:half])
        more_failed, more_total = self._done.get()
        return np.concatenate((failed, more_failed)), np.concatenate((total, more_total))

    def end(self) -> None:
        self._given.put(None)
        self._thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[5_000, 20_000, 100_000])
    parser.add_argument("--times", type=int, default=100)
    options = parser.parse_args()
    print(f"{'NODES':>8} {'ROWS':>8} {'ONE MS':>8} {'LEAST':>7} {'TWO MS':>8} {'LEAST':>7} {'TWO/ONE':>8}")
    helper = Helper()
    for nodes in options.nodes:
        machine = SchedulingMachine(default_config(), seed=1)
        for raw in workload("SchedulingBasic", nodes).nodes:
            machine.cluster.put(parse(raw))
        table = machine.cluster.table
        [scheduler] = machine.schedulers.values()
        plugins = NodeLocalPlugins(scheduler.profile, None)
        gc.collect()
        gc.freeze()
        for many in sorted({nodes_to_find(nodes, 0), min(nodes, LOOKED_AHEAD), nodes}):
            rows = table.order[:many]
            one: list[float] = []
            two: list[float] = []
            for number in range(options.times):
                evaluation = Evaluation(plugins, table, number)
                evaluation.of(rows[:1])  # computes the values that exist once per pod
                began = perf_counter()
                alone = evaluation.of(rows)
                between = perf_counter()
                together = helper.with_caller(evaluation, rows)
                one.append((between - began) * 1000)
                two.append((perf_counter() - between) * 1000)
                assert all(map(np.array_equal, alone, together)), "both must come to the same"
            part = min(two) / min(one)
            times = f"{median(one):>8.3f} {min(one):>7.3f} {median(two):>8.3f} {min(two):>7.3f}"
            print(f"{nodes:>8,} {many:>8,} {times} {part:>8.2f}", flush=True)
    helper.end()


if __name__ == "__main__":
    main()
