"""Benchmark of each step between a pod's creation and its running, without actors.

    python -m tests.bench.pod_path SchedulingBasic SchedulingTaints --pods 10000

Each step is called as by its actor, for the same number of pods together. A figure is the mean of the fastest tenth of
all batches, in microseconds per pod, so that other work on the machine has little effect. The cost of the actors
(messages, wake-ups) is the difference between the end-to-end figure of `kschedd bench` and the sum. As there, nodes
have no kubelets unless `--kubelets` is given.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import quantiles
from typing import Any

from kschedd.actors.scheduler.binding import execute_batch
from kschedd.bench.workloads import Workload, workload
from kschedd.config.loading.load import default_config
from kschedd.controllers.kubelets.kubelets import Kubelets
from kschedd.controllers.running.turns import concerning, take_turn
from kschedd.garbage_collection import freeze_gc
from kschedd.log.log import Log
from kschedd.queue.entry import SECOND, QueuedPod
from kschedd.queue.operations import PodDone, Pop, TakeNominated
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.inputs import (
    BeginAttempt,
    CompleteAttempt,
    CompleteRun,
    Observe,
    PlansExecuted,
    PodsNominated,
    PodsPopped,
)
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.popped import MOST_POPPED
from kschedd.scheduling.profiles.metrics import SchedulingMetrics
from kschedd.store.admission.chain import Admission
from kschedd.store.store import Store

_BATCH = 64  # number of pods in a request, as in `kschedd bench`


class Path:
    """One scheduler with its store and queue, and the duration of each step."""

    def __init__(self, work: Workload, with_kubelets: bool) -> None:
        self.with_kubelets = with_kubelets
        self.took: dict[str, list[float]] = defaultdict(list)
        self.store = Store(admission=Admission({"Priority": False}), now=time.time)
        metrics = SchedulingMetrics(time.perf_counter)
        self.driver = SchedulingDriver(SchedulingMachine(default_config(), seed=1, metrics=metrics))
        configured = self.driver.config_changes.for_queue()
        self.queue = configured.new_queue()
        self.operations = configured.new_operations(self.queue)
        self.log = Log()
        self.queue.recorder = self.log.append
        self.driver.machine.handle.evicting = self.operations.evicting
        self.kubelets = Kubelets()
        self.watch, self.kubelets_watch = self.store.watch(), self.store.watch(self.kubelets.kinds)
        self.pods = 0
        for series in (work.namespaces, work.nodes, work.init_pods):
            for raw in series:
                if self.store.find(raw["kind"], "", raw["metadata"]["name"]) is None:
                    self.store.create(raw, restore=True)
            self._settle()
        self.kubelets_watch.take()
        self.took.clear()

    @contextmanager
    def step(self, name: str, pods: int) -> Iterator[None]:
        began = time.perf_counter_ns()
        yield
        if pods:
            self.took[name].append((time.perf_counter_ns() - began) / pods / 1000)

    def run(self, raws: Sequence[Any]) -> None:
        """Take these pods from creation until they run."""
        self.pods = many = len(raws)
        with self.step("create", many):
            self.store.create_many(raws)
        self._settle()
        if not self.with_kubelets:
            return
        with self.step("kubelets: status, and its watch", many):
            events = concerning(self.kubelets, self.kubelets_watch.take())
            take_turn(self.kubelets, events, self.store)
        self._observe("status seen", self.pods)
        self._apply("status: queue", self.driver.take_effects(), self.pods)

    def _settle(self) -> None:
        while self.watch.behind or self.queue.ready:
            self._observe("watch and cache, pending", self.pods)
            self._apply("queue: add", self.driver.take_effects(), self.pods)
            self._attempts()

    def _observe(self, name: str, pods: int) -> None:
        with self.step(name, pods):
            events = self.watch.take()
            self.driver.step(Observe(events), time.time())

    def _apply(self, name: str, effects: Effects, pods: int) -> None:
        now = time.time_ns()
        with self.step(name, pods):
            for uid in effects.released:
                self.operations.step(PodDone(uid), now)
            for operation in effects.queue:
                self.operations.step(operation, now)
        self.driver.step(PodsNominated(self.operations.step(TakeNominated(), now)))

    def _attempts(self) -> None:
        driver = self.driver
        while self.queue.ready:
            entries: list[QueuedPod] = []
            now = time.time_ns()
            began = time.perf_counter_ns()
            while (
                len(entries) < min(MOST_POPPED, driver.popped.wanted)
                and (entry := self.operations.step(Pop(), now)) is not None
            ):
                entries.append(entry)
            self.took["queue: pop"].append((time.perf_counter_ns() - began) / len(entries) / 1000)
            driver.step(PodsPopped(entries))
            began, completed = time.perf_counter_ns(), 0
            while driver.popped.has_next:
                middle = time.perf_counter_ns()
                if run := driver.attempts.begin_run(time.time()):
                    middle = time.perf_counter_ns()
                    driver.step(CompleteRun(run, 0.0), time.time())
                    completed += time.perf_counter_ns() - middle
                    continue
                popped = driver.popped.take(now / SECOND)
                assert popped is not None, "there is a next one"
                attempt = driver.step(BeginAttempt(popped))
                if attempt is None:
                    continue
                result: Any = drive(attempt)
                middle = time.perf_counter_ns()
                driver.step(CompleteAttempt(popped, result, 0.0), time.time())
                completed += time.perf_counter_ns() - middle
            spent = time.perf_counter_ns() - began - completed
            self.took["attempt"].append(spent / len(entries) / 1000)
            self.took["assume, reserve, permit, bind begun"].append(completed / len(entries) / 1000)
            self._bind(driver.take_effects(), len(entries))

    def _bind(self, effects: Effects, pods: int) -> None:
        self._apply("queue: no longer in flight", effects, pods)
        batch: Any = [effects]
        with self.step("store: bind", pods):
            answered = execute_batch(batch, effects.plans, self.store)
        with self.step("binding ended", pods):
            self.driver.step(PlansExecuted(answered.plans), time.time())
        after = self.driver.take_effects()
        with self.step("decisions and events noted", pods):
            self.log.extend((*effects.happened, *after.happened))
        self._observe("watch and cache, bound", pods)
        self._apply("queue: bound", self.driver.take_effects(), pods)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", nargs="+")
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--kubelets", action="store_true")
    given = parser.parse_args()
    columns: dict[str, dict[str, float]] = {}
    for name in given.workload:
        work = workload(name, given.nodes, pods=given.pods)
        path = Path(work, given.kubelets)
        freeze_gc()
        raws = list(work.pods)
        for first in range(0, len(raws), _BATCH):
            path.run(raws[first : first + _BATCH])
        columns[name] = {step: quantiles(took, n=10)[0] for step, took in path.took.items()}
    steps = list(dict.fromkeys(step for column in columns.values() for step in column))
    print("| step |", " | ".join(columns), "|")
    print("|---" * (len(columns) + 1) + "|")
    for step in steps:
        print(f"| {step} |", " | ".join(f"{column.get(step, 0):.1f}" for column in columns.values()), "|")
    print("| sum |", " | ".join(f"{sum(column.values()):.1f}" for column in columns.values()), "|")


if __name__ == "__main__":
    main()
