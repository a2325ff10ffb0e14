"""Pods of a run that wait for a node."""

from typing import Final

from kschedd.api.pods import Pod
from kschedd.simulation.engine import Engine

_NEVER: Final = 1 << 62


def pods_without_node(engine: Engine) -> list[Pod]:
    """Return the pods of all schedulers that have no node and are neither finished nor being deleted."""
    return [
        pod
        for pod in engine.store.list("Pod")
        if isinstance(pod, Pod) and not pod.node_name and not pod.finished and not pod.deletion_timestamp
    ]


def pending_pods(engine: Engine) -> list[Pod]:
    """Return the pods without a node whose scheduler name has a profile, in the order of their creation."""
    mine = [pod for pod in pods_without_node(engine) if engine.machine.responsible(pod.scheduler_name)]
    return sorted(mine, key=lambda pod: (_since(engine, pod), pod.key))


def _since(engine: Engine, pod: Pod) -> int:
    """Return the time at which the pod first entered the active queue, or a late time for a gated pod."""
    entry = engine.queue.entry(pod.key)
    return _NEVER if entry is None or entry.initial_attempt is None else entry.initial_attempt
