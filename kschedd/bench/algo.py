"""Mode `algo`: scheduling cycles only; no API, no queue, no events.

Nodes and init pods are loaded into the scheduler cache. A single loop then schedules the measured pods one after the
other: for each pod, the loop selects the node, copies the pod, sets nodeName and assumes the pod. Loading is not
measured, but the evaluation of the first pod is measured.

In PreemptionBasic, an iteration consists of the failing attempt, the preemption, the removal of its victims, and the
second attempt, which uses the nominated node. In Unschedulable, an iteration is one whole failing attempt.
"""

import time
from collections.abc import Callable, Iterator

import attrs

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.bench.own_time import Clock
from kschedd.bench.workloads import Workload
from kschedd.config.model import Config
from kschedd.garbage_collection import freeze_gc
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.machine import SchedulingMachine


@attrs.frozen
class Timed:
    """The measurements of one run.

    The measurements are the latency of each iteration in seconds, the wall time of the loop, the numbers of scheduled
    and failed pods, the CPU time of the process during the loop (seconds, user and system), and the response times of
    any socket requests sent during the run.
    """

    latencies_s: list[float]
    elapsed_s: float
    scheduled: int
    failed: int
    cpu_s: float
    answers_s: list[float] = attrs.field(factory=list)


def load(machine: SchedulingMachine, workload: Workload) -> Iterator[None]:
    """Load the workload's objects into the machine's scheduler cache. Yield after each object."""
    for series in (workload.namespaces, workload.nodes, workload.init_pods):
        for raw in series:
            machine.cluster.put(parse(raw))
            yield


def run(
    workload: Workload,
    config: Config,
    seed: int,
    *,
    clock: Clock = time.perf_counter,
    progress: Callable[[str, int, int], None] | None = None,
) -> Timed:
    """Measure the workload. `progress(what, done, total)` is called every 10,000 objects and every 1,000 pods."""
    machine = SchedulingMachine(config, seed=seed)
    total = len(workload.namespaces) + len(workload.nodes) + len(workload.init_pods)
    for done, _ in enumerate(load(machine, workload)):
        if progress is not None and done % 10_000 == 0:
            progress("loading", done, total)
    pods = [Pod.from_raw(raw) for raw in workload.pods]
    freeze_gc()  # as the daemon does after loading its initial state
    iteration = _preempt if workload.name == "PreemptionBasic" else _place
    latencies = []
    scheduled = 0
    began_cpu_s = time.process_time()
    start = before = clock()
    for done, pod in enumerate(pods):
        scheduled += iteration(machine, pod)
        after = clock()
        latencies.append(after - before)
        before = after
        if progress is not None and done % 1000 == 0:
            progress("measuring", done, len(pods))
    return Timed(latencies, before - start, scheduled, len(pods) - scheduled, time.process_time() - began_cpu_s)


def _place(machine: SchedulingMachine, pod: Pod) -> bool:
    result: ScheduleResult | FitError = drive(machine.begin(pod, {}))
    if isinstance(result, FitError):
        _ = result.message
        return False
    machine.cluster.assume(pod, result.node_name)
    return True


def _preempt(machine: SchedulingMachine, pod: Pod) -> bool:
    result: ScheduleResult | FitError = drive(machine.begin(pod, {}))
    if isinstance(result, FitError):
        if not result.nominated_node:
            return False
        assert result.post_filter is not None
        for victim in result.post_filter.victims:
            machine.cluster.remove_pod(victim)
        pod = attrs.evolve(pod, nominated_node_name=result.nominated_node)
        result = drive(machine.begin(pod, {result.nominated_node: (pod,)}))
        if isinstance(result, FitError):
            return False
    machine.cluster.assume(pod, result.node_name)
    return True
