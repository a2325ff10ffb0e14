"""Mode `e2e`: the whole scheduler (store, watch, queue, scheduling and binding cycle), each part in its actor, without
a socket or a journal.

Init pods are created and in the scheduler cache before the measurement starts. A feeder creates the measured pods in
order, as fast as it can or at a given rate; a watcher records when each one is bound. Latency is create → bind.

In Unschedulable, the pods that fit nowhere are created first, and the measurement starts once each of them has been
attempted and found unschedulable.
"""

import time
from collections.abc import Awaitable, Callable
from functools import partial

import attrs
import trio

from kschedd.actors.cluster import LiveCluster
from kschedd.api.pods import Pod
from kschedd.bench.algo import Timed
from kschedd.bench.series import Raw, Series
from kschedd.bench.workloads import Workload
from kschedd.config.model import Config
from kschedd.daemon import cluster_actors
from kschedd.garbage_collection import freeze_gc
from kschedd.queue.entry import SubQueue
from kschedd.store.admission import Admission
from kschedd.store.errors import AlreadyExists

_BATCH = 64  # pods in a request to the store
_LOAD = 2000
_PATIENCE_S = 600.0  # without any pod bound

Tell = Callable[[str, int, int], None]


def run(
    workload: Workload, config: Config, seed: int, offered_rate: float = 0.0, *, progress: Tell | None = None
) -> Timed:
    """Measure the workload. `offered_rate` is in pods per second; 0: as fast as possible.

    `progress(what, done, total)` is called after each batch of objects loaded or pods bound.
    """
    return trio.run(_run, workload, config, seed, offered_rate, progress or (lambda what, done, total: None))


async def _run(workload: Workload, config: Config, seed: int, offered_rate: float, tell: Tell) -> Timed:
    # The workloads set spec.priority without a PriorityClass, as in kube-scheduler's recorded runs.
    admission = Admission({"Priority": False})
    async with cluster_actors(config, seed=seed, admission=admission) as cluster:
        for what, series in (
            ("namespaces", workload.namespaces),
            ("nodes", workload.nodes),
            ("init pods", workload.init_pods),
        ):
            await _load(cluster, series, partial(tell, f"loading {what}"))
        running = len(workload.init_pods)
        await _until(lambda: cluster.scheduler.query(lambda owned: owned.machine.cluster.pod_count), running)
        if len(workload.pending):
            await _load(cluster, workload.pending, partial(tell, "creating pending pods"))
            await _until(
                lambda: cluster.queue.query(lambda owned: owned.queue.counts()[SubQueue.UNSCHEDULABLE]),
                len(workload.pending),
            )
        freeze_gc()  # as the daemon does after loading its initial state
        pods = list(workload.pods)
        measure = _Measure(cluster, pods, offered_rate, tell)
        return await measure.run()


async def _load(cluster: LiveCluster, series: "Series | list[Raw]", tell: Callable[[int, int], None]) -> None:
    total = len(series)
    for first in range(0, total, _LOAD):
        for answer in await cluster.store.create_many(list(series[first : first + _LOAD]), restore=True):
            if isinstance(answer, Exception) and not isinstance(answer, AlreadyExists):
                raise answer  # AlreadyExists is expected for the namespaces of every cluster
        tell(min(first + _LOAD, total), total)


async def _until(count: Callable[[], Awaitable[int]], many: int) -> None:
    """Wait until `count` reaches `many`. Polling is good enough, since this is not part of the measurement."""
    while await count() < many:  # noqa: ASYNC110 - others' state has no event for it
        await trio.sleep(0.01)


@attrs.define(eq=False)
class _Measure:
    cluster: LiveCluster
    pods: list[Raw]
    offered_rate: float
    tell: Tell
    created: dict[str, float] = attrs.field(factory=dict)  # by name, when its create was sent
    bound: dict[str, float] = attrs.field(factory=dict)

    async def run(self) -> Timed:
        ours = {raw["metadata"]["name"] for raw in self.pods}
        watch = await self.cluster.store.watch({"Pod"})
        start = time.perf_counter()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._feed, start)
            with trio.move_on_after(_PATIENCE_S) as patience:
                while len(self.bound) < len(ours) and await watch.wait():
                    now = time.perf_counter()
                    for event in watch.take():
                        pod = event.new
                        if isinstance(pod, Pod) and pod.node_name and pod.name in ours and pod.name not in self.bound:
                            self.bound[pod.name] = now
                            patience.deadline = trio.current_time() + _PATIENCE_S
                    self.tell("measuring", len(self.bound), len(ours))
            nursery.cancel_scope.cancel()
        watch.close()
        end = max(self.bound.values(), default=time.perf_counter())
        latencies = [at - self.created[name] for name, at in self.bound.items()]
        return Timed(latencies, end - start, len(self.bound), len(ours) - len(self.bound))

    async def _feed(self, start: float) -> None:
        if not self.offered_rate:
            for first in range(0, len(self.pods), _BATCH):
                await self._create(self.pods[first : first + _BATCH])
            return
        for number, raw in enumerate(self.pods):
            await trio.sleep(max(0.0, start + number / self.offered_rate - time.perf_counter()))
            await self._create([raw])

    async def _create(self, batch: list[Raw]) -> None:
        now = time.perf_counter()
        for raw in batch:
            self.created[raw["metadata"]["name"]] = now
        for answer in await self.cluster.store.create_many(batch):
            if isinstance(answer, Exception):
                raise answer
