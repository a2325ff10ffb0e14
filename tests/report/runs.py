"""Runs to report on."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from kschedd.config.loading.load import default_config
from kschedd.framework.registry import Registry
from kschedd.methods import cluster_methods
from kschedd.report import aggregate
from kschedd.report.collector import ReportCollector
from kschedd.report.model import Report
from kschedd.sdk.objects import node, pod
from kschedd.simulation.simulation import Simulation

report_of = partial(aggregate.report_of, methods=cluster_methods)
Step = tuple[float, dict[str, Any] | str]  # time in seconds, and the object to create or the name of the pod to delete


def run(steps: Sequence[Step], until_s: float, *, observed: bool = True) -> tuple[Simulation, ReportCollector]:
    simulation = Simulation(default_config(), seed=1, registry=Registry(), controllers=())
    collector = ReportCollector.observing(simulation) if observed else ReportCollector(simulation)
    for at_s, what in steps:
        simulation.advance(simulation.start_s + at_s)
        if isinstance(what, str):
            simulation.store.delete("Pod", "default", what, grace_period_s=0)
        else:
            simulation.store.create(what)
        simulation.run_until_idle()
    simulation.advance(simulation.start_s + until_s)
    return simulation, collector


def zoned(name: str, zone: str, **more: Any) -> dict[str, Any]:
    return node(name, labels={"topology.kubernetes.io/zone": zone}, **more)


def small_run() -> Report:
    """Two zones; a pod that is created and deleted, one that never fits, and one that waits for another to end."""
    steps: list[Step] = [
        (0, zoned("node-a", "zone-a", cpu="4")),
        (0, zoned("node-b", "zone-b", cpu="4")),
        (0, pod("first", cpu="3")),
        (0, pod("second", cpu="3")),
        (10, pod("late", cpu="2")),
        (20, pod("giant", cpu="64")),
        (40, "first"),
    ]
    _, collector = run(steps, 100)
    return report_of(collector, "A run", [("nodes", "2")])
