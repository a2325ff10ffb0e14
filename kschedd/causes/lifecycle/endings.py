"""Terminating pods: the reasons for a delay, and the controllers that wait for their end."""

from collections.abc import Sequence

from kschedd.api.conditions import is_true
from kschedd.api.pods import Pod
from kschedd.api.text.times import seconds
from kschedd.causes.answers import ObjectNamed
from kschedd.causes.findings import FoundCause, named
from kschedd.causes.words import joined, some
from kschedd.causes.workload import ExaminedWorkload
from kschedd.printing.columns.ages import span
from kschedd.simulation.engine import Engine


def held_by_finalizers(ending: Sequence[Pod]) -> list[Pod]:
    return [pod for pod in ending if pod.metadata.get("finalizers")]


def why_not_ended(engine: Engine, ending: Sequence[Pod]) -> str:
    """Return what delays the end of these pods (at least one): finalizers, failed nodes, or the grace period."""
    held = held_by_finalizers(ending)
    if held:
        finalizers = sorted({str(each) for pod in held for each in pod.metadata["finalizers"]})
        return f"{joined(finalizers)} {'keeps' if len(finalizers) == 1 else 'keep'} {some([p.key for p in held])} there"
    lost = [pod for pod in ending if not _answers(engine, pod.node_name)]
    if lost:
        nodes = sorted({pod.node_name for pod in lost})
        kubelets = f"the kubelet of {nodes[0]} does" if len(nodes) == 1 else f"the kubelets of {joined(nodes)} do"
        return f"{kubelets} not answer, and {some([pod.key for pod in lost])} cannot end"
    left = max(seconds(pod.deletion_timestamp) or engine.now for pod in ending) - engine.now
    text = f"{some([pod.key for pod in ending])} {'is' if len(ending) == 1 else 'are'} to end"
    return text + (f" ({span(left)} left)" if left > 0 else "")


def _answers(engine: Engine, name: str) -> bool:
    node = engine.store.find("Node", "", name)
    return node is not None and is_true(node.status, "Ready")


def awaited_end(engine: Engine, workload: ExaminedWorkload) -> FoundCause | None:
    """Return the cause: a controller replaces pods only after their end."""
    recreates = (workload.spec.get("strategy") or {}).get("type") == "Recreate"
    if recreates:
        ending = [pod for pod in workload.pods if pod.deleting]
        if len(ending) < len(workload.pods):
            return None
    # StatefulSets and DaemonSets also wait for pods whose containers have ended
    elif workload.kind in ("StatefulSet", "DaemonSet"):
        owned = engine.store.owned_by(workload.obj.uid)
        ending = [pod for pod in owned if isinstance(pod, Pod) and pod.deleting]
    else:
        return None
    if not ending:
        return None
    evidence = []
    if held := held_by_finalizers(ending):
        evidence.append(f"next: check the controller that is to remove the finalizer of {held[0].name}")
    elif lost := sorted({pod.node_name for pod in ending if not _answers(engine, pod.node_name)}):
        evidence.append(
            f"next: start {joined(lost)} again; if a machine is off for good, delete its Node: its pods end then"
        )
    rule = " (strategy Recreate)" if recreates else ""
    return FoundCause(
        "TerminationAwaited",
        f"{workload.label} creates no pod in place of {some([pod.name for pod in ending])} before "
        f"{'it has' if len(ending) == 1 else 'these have'} ended{rule}: "
        f"{why_not_ended(engine, ending)}",
        [*(named(pod) for pod in ending[:3]), *(ObjectNamed("Node", "", pod.node_name) for pod in ending[:3])],
        ["metadata.finalizers"] if held else [],
        evidence,
        passing=True,
    )
