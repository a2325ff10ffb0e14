"""Each pod of a cluster as if it were to be scheduled now, by itself: with all others where they are, and without it.

Among nodes that are equally good the first by name is taken, so that a difference between two configurations is one
of their decisions. Nothing of an attempt stays: the cluster is afterwards as it was.
"""

from collections.abc import Callable, Collection, Mapping

import attrs

from kschedd.api.pods import Pod
from kschedd.framework.status import Status
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.scheduler import ScheduleResult
from kschedd.scheduling.work import drive
from kschedd.simulate.upgrade import PodOutcome


def judge_standing(
    machine: SchedulingMachine, pods: Collection[Pod], check: Callable[[], None] = lambda: None
) -> dict[str, PodOutcome]:
    """The outcome of each pod that a profile is there for, by its key. `check` may raise to give it up."""
    cluster, gates = machine.cluster, machine.pre_enqueue()
    found: dict[str, PodOutcome] = {}
    for pod in pods:
        if pod.finished or pod.deletion_timestamp or not machine.responsible(pod.scheduler_name):
            continue
        check()
        there = cluster.pod(pod.uid)
        if there is not None:
            cluster.remove(there)
        try:
            found[pod.key] = _outcome(machine, unassigned(pod), gates[pod.scheduler_name])
        finally:
            if there is not None:
                cluster.put(there)
    return found


def _outcome(machine: SchedulingMachine, pod: Pod, gates: Mapping[str, Callable[[Pod], Status | None]]) -> PodOutcome:
    for name, pre_enqueue in gates.items():
        status = pre_enqueue(pod)
        if status is not None:
            return PodOutcome("", f"{name}: {status.message}")
    machine.start.index = 0
    result = drive(machine.begin(pod, {}))
    if isinstance(result, ScheduleResult):
        return PodOutcome(result.node_name)
    return PodOutcome("", result.message)


def unassigned(pod: Pod) -> Pod:
    """The pod before it had a node."""
    if not pod.node_name:
        return pod
    spec = {name: field for name, field in pod.raw["spec"].items() if name != "nodeName"}
    return attrs.evolve(pod, raw={**pod.raw, "spec": spec}, node_name="")
