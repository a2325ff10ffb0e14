"""Measures what the page of figures shows, and writes that page: one command, to be run while nothing else runs.

    python -m tests.bench.figures                     build/figures.json, docs/FIGURES.md, its plots; at most 12 minutes
    python -m tests.bench.figures --minutes 30        the same with more runs
    kschedd bench --page docs/FIGURES.md --from build/figures.json       the page again, of what was measured

At 5,000 nodes: every workload's decision alone, with as many pods as kube-scheduler's figures were recorded with; the
whole scheduler with 30,000 pods where the workload allows that many, since 2,000 last but 0.2 s. Rounds measure each of
them once, one after the other, and go on while the next one is likely to end in time; the first is made in any case
(about 3 minutes on 2 quiet cores).
"""

import argparse
import sys
import time
from pathlib import Path

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
MOST_ROUNDS = 20


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure what the page of figures shows, and write it.")
    parser.add_argument("--minutes", type=float, default=11.5)
    parser.add_argument("--result", type=Path, default=Path("build/figures.json"))
    parser.add_argument("--page", type=Path, default=Path("docs/FIGURES.md"))
    options = parser.parse_args()
    runs = [BenchRun(name, NODES, "algo", 0, 0.0, None, None, 1) for name in WORKLOADS]
    runs += [BenchRun(name, NODES, "e2e", 0, 0.0, MANY_PODS if name in MANY else None, None, 1) for name in WORKLOADS]
    about = bench_environment()
    started = time.monotonic()
    ended = [started]

    def no_time_for_another() -> bool:
        now = time.monotonic()
        took, ended[0] = now - ended[0], now
        return now + took > started + 60 * options.minutes

    (rows,) = measured_in_turns(runs, MOST_ROUNDS, until=no_time_for_another)
    options.result.parent.mkdir(parents=True, exist_ok=True)
    options.result.write_text(as_json(rows, about) + "\n", encoding="utf-8")
    for path in [options.result, *write_page(options.page, [(about, rows)])]:
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
