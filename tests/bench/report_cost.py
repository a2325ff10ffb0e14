"""Benchmark of a report: a day of 5,000 nodes in three zones, with and without a report, and the size of its page.

python -m tests.bench.report_cost [--nodes 5000] [--pods 30000] [--hours 24]
"""

import argparse
import random
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from kschedd.config.loading.load import default_config
from kschedd.framework.registry import Registry
from kschedd.methods import cluster_methods
from kschedd.report.aggregate import report_of
from kschedd.report.collector import ReportCollector
from kschedd.report.page import page
from kschedd.sdk.objects import node, pod
from kschedd.simulation.simulation import Simulation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=30_000)
    parser.add_argument("--hours", type=float, default=24.0)
    options = parser.parse_args()
    plain_s, _ = _timed(lambda: _run(options, with_report=False))
    peak = _peak_mib()
    with_s, collector = _timed(lambda: _run(options, with_report=True))
    assert collector is not None
    more = _peak_mib() - peak
    page_s, text = _timed(lambda: page(report_of(collector, "A day", [], methods=cluster_methods)))
    print(f"without a report {plain_s:8.1f} s")
    print(f"with a report    {with_s:8.1f} s, {more:,.0f} MiB more at the peak of both runs")
    print(f"the page         {page_s:8.1f} s, {len(text.encode()) / 1e6:.2f} MB")


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def _run(options: argparse.Namespace, *, with_report: bool) -> ReportCollector | None:
    rng = random.Random(1)
    simulation = Simulation(default_config(), seed=1, registry=Registry(), controllers=())
    collector = ReportCollector.observing(simulation) if with_report else None
    for number in range(options.nodes):
        labels = {"topology.kubernetes.io/zone": f"zone-{number % 3}"}
        size = rng.choice((16, 32, 64))
        simulation.store.create(node(f"node-{number}", cpu=str(size), memory=f"{size * 4}Gi", labels=labels))
    simulation.run_until_idle()
    end_s = options.hours * 3600
    events: list[tuple[float, int, dict[str, Any] | str]] = []
    for number in range(options.pods):
        begin_s = end_s * rng.betavariate(2, 2)
        raw = pod(f"pod-{number}", cpu=rng.choice(("2", "4", "8", "16")), memory=rng.choice(("4Gi", "16Gi", "32Gi")))
        events.append((begin_s, number, raw))
        events.append((min(begin_s + rng.expovariate(8 / end_s), end_s), number, f"pod-{number}"))
    for at_s, _, what in sorted(events, key=lambda event: event[:2]):
        simulation.advance(simulation.start_s + at_s)
        if isinstance(what, str):
            simulation.store.delete("Pod", "default", what, grace_period_s=0)
        else:
            simulation.store.create(what)
        simulation.run_until_idle()
    simulation.advance(simulation.start_s + end_s)
    print(f"{simulation.decisions:,} attempts", file=sys.stderr)
    return collector


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
