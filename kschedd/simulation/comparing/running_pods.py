"""Trial scheduling of each running pod of a cluster, one pod at a time, with all other pods on their nodes.

Ties between nodes are broken by name, so any difference between two configurations is due to their decisions. The
cluster is unchanged afterwards.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

import attrs

from kschedd.api.pods import Pod
from kschedd.framework.status import Status
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.simulation.comparing.comparison import Decision, ReadDecision

T = TypeVar("T")

Gates = Mapping[str, Callable[[Pod], Status | None]]
"""PreEnqueue plugins of a profile."""


@attrs.frozen(eq=False)
class RunningPod:
    """A pod of the cluster. A running pod; `pending` is the same pod before it had a node."""

    pod: Pod
    pending: Pod
    alike: Hashable
    """A key that pods share if each would fare the same on the other's node; None for a pod without equals."""


def running_pods(pods: Iterable[Pod]) -> list[RunningPod]:
    """Return the running pods that can be scheduled again.

    Equal pods are adjacent, because the cached evaluation of a pod is also valid for the next equal pod.
    """
    decided = [pod for pod in pods if not pod.finished and not pod.deletion_timestamp]
    decided.sort(key=lambda pod: (pod.signature.id, pod.node_name))
    return [RunningPod(pod, unassigned(pod), _alike(pod)) for pod in decided]


def judge_running(
    machine: SchedulingMachine,
    pods: Iterable[RunningPod],
    read: ReadDecision[T],
    check: Callable[[], None] = lambda: None,
) -> dict[str, T]:
    """Return the result of `read` for the decision about each pod that has a profile, by the pod's key.

    `check` may raise an error to stop.
    """
    cluster, gates = machine.cluster, machine.pre_enqueue()
    known: dict[Hashable, T] = {}
    found: dict[str, T] = {}
    for running in pods:
        pod, alike = running.pod, running.alike
        if not machine.responsible(pod.scheduler_name):
            continue
        if alike is not None and alike in known:
            found[pod.key] = known[alike]
            continue
        check()
        there = cluster.pod(pod.uid)
        if there is not None:
            cluster.remove(there)
        try:
            decision = _decision(machine, running.pending, gates[pod.scheduler_name])
            found[pod.key] = read(machine, running.pending, decision)
        finally:
            if there is not None:
                cluster.put(there)
        if alike is not None:
            known[alike] = found[pod.key]
    return found


def _alike(pod: Pod) -> Hashable:
    spec = pod.pod_spec
    if spec.volumes or spec.resource_claims or not pod.node_name or pod.status.get("resize"):
        return None
    return pod.signature.id, pod.node_name, pod.owner, pod.requests is spec.requests or pod.uid


def _decision(machine: SchedulingMachine, pod: Pod, gates: Gates) -> Decision:
    for name, pre_enqueue in gates.items():
        status = pre_enqueue(pod)
        if status is not None:
            return f"{name}: {status.message}"
    machine.start.index = 0
    decision: Decision = drive(machine.begin(pod, {}))
    return decision


def unassigned(pod: Pod) -> Pod:
    """Return the pod as it was before it had a node."""
    if not pod.node_name:
        return pod
    spec = {name: field for name, field in pod.raw["spec"].items() if name != "nodeName"}
    return attrs.evolve(pod, raw={**pod.raw, "spec": spec}, node_name="")
