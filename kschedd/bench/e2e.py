"""Mode `e2e`: the whole scheduler (store, watch, queue, scheduling and binding cycle), each part in its actor.

A journal and a socket are used only if the options request them.

Init pods are created, and enter the scheduler cache before the measurement starts. A feeder creates the measured pods
in order, as fast as it can or at a given rate; a watcher records when each pod is bound. The latency is the time from
creation to binding. With a given rate, a pod counts as created at its due time even if the feeder is late; all pods
that are due are created in one request.

In the workload Unschedulable, the pods that fit on no node are created first. The measurement starts once each of them
has been attempted and found unschedulable.
"""

import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, nullcontext
from functools import partial
from pathlib import Path

import attrs
import trio

from kschedd.actors.cluster import LiveCluster
from kschedd.actors.full_collections import look_now_and_then
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.bench.algo import Timed
from kschedd.bench.own_time import Clock, own_time
from kschedd.bench.questions import questions_to
from kschedd.bench.series import Raw, Series
from kschedd.bench.workloads import Workload
from kschedd.config.model import Config
from kschedd.daemon import cluster_actors
from kschedd.garbage_collection import FullCollections
from kschedd.queue.entry import SubQueue
from kschedd.serving import SWITCH_S
from kschedd.startup.state import StateOptions
from kschedd.store.admission.chain import Admission
from kschedd.store.cluster_api import ClusterWriter, PendingAnswer
from kschedd.store.errors import AlreadyExists, ApiError

_BATCH = 64  # number of pods per request to the store
_LOAD = 2000
_SHORTEST_SLEEP_S = 0.0005  # for shorter waits, the feeder yields to other tasks instead of sleeping
_PATIENCE_S = 600.0  # longest time in seconds without any bound pod

Report = Callable[[str, int, int], None]


@attrs.frozen(kw_only=True)
class ArrivalOptions:
    """Options of a run: the arrival of the measured pods, and other activity during the measurement."""

    rate: float = 0.0  # pods per second; 0 means as fast as possible
    journal: bool = False  # true if objects are written to disk, in a temporary folder
    questions: bool = False  # true if socket requests are sent during the measurement
    own_time: bool = False  # exclude the time in which other programs used the processor, if the system counts it


def run(
    workload: Workload, config: Config, seed: int, load: ArrivalOptions, *, progress: Report | None = None
) -> Timed:
    """Measure the workload. `progress(what, done, total)` is called after each batch of loaded or bound objects."""
    sys.setswitchinterval(SWITCH_S)  # like the daemon
    return trio.run(_run, workload, config, seed, load, progress or (lambda what, done, total: None))


async def _run(workload: Workload, config: Config, seed: int, load: ArrivalOptions, report: Report) -> Timed:
    # The workloads set spec.priority without a PriorityClass, as in the recorded runs of kube-scheduler.
    admission = Admission({"Priority": False})
    async with AsyncExitStack() as opened:
        clock = opened.enter_context(own_time()) if load.own_time else time.perf_counter
        folder = tempfile.TemporaryDirectory(prefix="kschedd-bench-") if load.journal else nullcontext()
        state = opened.enter_context(folder)
        journal = None if state is None else Path(state) / "journal.db"
        actors = cluster_actors(config, seed=seed, state=StateOptions(admission=admission, journal=journal, apart=True))
        cluster = await opened.enter_async_context(actors)
        for what, series in (
            ("namespaces", workload.namespaces),
            ("nodes", workload.nodes),
            ("init pods", workload.init_pods),
        ):
            await _load(cluster, series, partial(report, f"loading {what}"))
        running = len(workload.init_pods)
        await _until(lambda: cluster.scheduler.query(lambda owned: owned.machine.cluster.pod_count), running)
        if len(workload.pending):
            await _load(cluster, workload.pending, partial(report, "creating pending pods"))
            await _until(
                lambda: cluster.queue.query(lambda owned: owned.queue.counts()[SubQueue.UNSCHEDULABLE]),
                len(workload.pending),
            )
        questions = await opened.enter_async_context(questions_to(cluster, clock)) if load.questions else None
        collections = opened.enter_context(FullCollections())  # as the daemon does after loading its initial state
        measure = _Measure(cluster, list(workload.pods), load.rate, clock, report)
        async with trio.open_nursery() as beside:
            beside.start_soon(look_now_and_then, collections)
            if questions is not None:
                beside.start_soon(questions.ask)
            timed = await measure.run()
            if questions is not None:
                await questions.any_answered.wait()
            beside.cancel_scope.cancel()
        return timed if questions is None else attrs.evolve(timed, answers_s=questions.latencies_s)


async def _load(cluster: LiveCluster, series: "Series | list[Raw]", report: Callable[[int, int], None]) -> None:
    total = len(series)
    for first in range(0, total, _LOAD):
        for answer in await cluster.store.create_many(list(series[first : first + _LOAD]), restore=True):
            if isinstance(answer, Exception) and not isinstance(answer, AlreadyExists):
                raise answer  # AlreadyExists is expected for the namespaces that every cluster has
        report(min(first + _LOAD, total), total)


async def _until(count: Callable[[], Awaitable[int]], many: int) -> None:
    """Wait until `count` reaches `many`. Polling is sufficient, since this is not part of the measurement."""
    while await count() < many:  # noqa: ASYNC110 - no event is available for another actor's state
        await trio.sleep(0.01)


@attrs.define(eq=False)
class _Measure:
    cluster: LiveCluster
    pods: list[Raw]
    rate: float
    clock: Clock
    report: Report
    created: dict[str, float] = attrs.field(factory=dict)  # by name, the due time
    bound: dict[str, float] = attrs.field(factory=dict)

    async def run(self) -> Timed:
        ours = {raw["metadata"]["name"] for raw in self.pods}
        watch = await self.cluster.store.watch({"Pod"})
        began_cpu_s = time.process_time()
        start = self.clock()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._feed, start)
            with trio.move_on_after(_PATIENCE_S) as patience:
                while len(self.bound) < len(ours) and await watch.wait():
                    now, before = self.clock(), len(self.bound)
                    for event in watch.take():
                        pod = event.new
                        if isinstance(pod, Pod) and pod.node_name and pod.name in ours:
                            self.bound.setdefault(pod.name, now)
                    if len(self.bound) > before:
                        patience.deadline = trio.current_time() + _PATIENCE_S
                    self.report("measuring", len(self.bound), len(ours))
            nursery.cancel_scope.cancel()
        cpu_s = time.process_time() - began_cpu_s
        watch.close()
        end = max(self.bound.values(), default=self.clock())
        latencies = [at - self.created[name] for name, at in self.bound.items()]
        return Timed(latencies, end - start, len(self.bound), len(ours) - len(self.bound), cpu_s)

    async def _feed(self, start: float) -> None:
        if not self.rate:
            for first in range(0, len(self.pods), _BATCH):
                await self._create(self.pods[first : first + _BATCH])
            return
        pending: list[PendingAnswer[list[Object | ApiError]]] = []  # no request waits for another's result
        done = 0
        while done < len(self.pods):
            wait_s = start + done / self.rate - self.clock()
            await trio.sleep(wait_s if wait_s > _SHORTEST_SLEEP_S else 0.0)
            due = min(len(self.pods), 1 + int((self.clock() - start) * self.rate))
            for number in range(done, due):
                self.created[self.pods[number]["metadata"]["name"]] = start + number / self.rate
            if due > done:
                pending.append(await self.cluster.store.ask(partial(_create_many, self.pods[done:due])))
            done = max(done, due)
        for answer in pending:
            _check(await answer.value())

    async def _create(self, batch: list[Raw]) -> None:
        now = self.clock()
        self.created.update((raw["metadata"]["name"], now) for raw in batch)
        _check(await self.cluster.store.create_many(batch))


def _create_many(batch: list[Raw], store: ClusterWriter) -> list[Object | ApiError]:
    return store.create_many(batch)


def _check(answers: list[Object | ApiError]) -> None:
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
