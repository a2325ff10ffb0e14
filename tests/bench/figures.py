"""Measures what the page of figures shows, and writes that page: one command, to be run while nothing else runs.

    python -m tests.bench.figures                     build/figures.json, docs/FIGURES.md, its plots; at most 20 minutes
    python -m tests.bench.figures --minutes 60        the same with more runs
    python -m tests.bench.figures --quick             one run of each, with 2,000 pods at most; 3 minutes
    python -m tests.bench.figures --own-time          for a machine with other work: `kschedd bench --help`
    kschedd bench --page docs/FIGURES.md --from build/figures.json       the page again, of what was measured

At 5,000 nodes: every workload's decision alone, with as many pods as kube-scheduler's figures were recorded with; the
whole scheduler with 30,000 pods where the workload allows that many, since 2,000 last but 0.2 s; and latencies, with
pods that come at a rate, without a journal and with one, while questions are asked over a socket. Rounds measure each
of them once, one after the other, and go on while the next is likely to end in time; the first is made in any case.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from kschedd.bench.environment import bench_environment
from kschedd.bench.figures_page import write_page
from kschedd.bench.report import as_json
from kschedd.bench.run import BenchRun, measured_in_turns
from kschedd.bench.workloads import WORKLOADS

NODES = 5000
MANY_PODS = 30_000
MANY = {
    *(
        "SchedulingBasic",
        "SchedulingNodeAffinity",
        "SchedulingTaints",
        "TopologySpreading",
        "PreferredTopologySpreading",
    ),
    *("SchedulingPodAffinity", "SchedulingDaemonset", "Heterogeneous", "MixedSchedulingBasePod", "Unschedulable"),
}
RATES = ((1_500, False), (3_000, False), (1_500, True))  # pods a second, and whether they are kept on disk
MOST_ROUNDS = 20


def _runs(workloads: Sequence[str], quick: bool, own_time: bool) -> Iterator[BenchRun]:
    one = BenchRun("", NODES, "", 0, 0.0, None, None, 1, own_time=own_time)
    for name in workloads:
        yield attrs.evolve(one, workload=name, mode="algo")
    for name in workloads:
        yield attrs.evolve(one, workload=name, mode="e2e", pods=None if quick or name not in MANY else MANY_PODS)
    for rate, journal in RATES:
        pods = 2_000 if quick else 5 * rate
        come = attrs.evolve(one, workload="SchedulingBasic", mode="e2e", offered_rate=float(rate), pods=pods)
        yield attrs.evolve(come, journal=journal, questions=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure what the page of figures shows, and write it.")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--quick", action="store_true", help="one run of each, with 2,000 pods at most")
    parser.add_argument("--own-time", action="store_true", help="leave out the time in which others had the processor")
    parser.add_argument("--workload", action="append", choices=WORKLOADS, help="default: all")
    parser.add_argument("--result", type=Path, default=Path("build/figures.json"))
    parser.add_argument("--page", type=Path, default=Path("docs/FIGURES.md"))
    options = parser.parse_args()
    runs = list(_runs(options.workload or WORKLOADS, options.quick, options.own_time))
    about = bench_environment()
    started = time.monotonic()
    ended = [started]

    def no_time_for_another() -> bool:
        now = time.monotonic()
        took, ended[0] = now - ended[0], now
        return bool(now + took > started + 60 * options.minutes)

    (rows,) = measured_in_turns(runs, 1 if options.quick else MOST_ROUNDS, until=no_time_for_another)
    options.result.parent.mkdir(parents=True, exist_ok=True)
    options.result.write_text(as_json(rows, about) + "\n", encoding="utf-8")
    for path in [options.result, *write_page(options.page, [(about, rows)])]:
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
