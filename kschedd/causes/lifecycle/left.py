"""Causes of a pod's end: preemption, a taint, an eviction, or a deletion by a user.

The last state of a pod that the system deleted has a DisruptionTarget condition. The store's log contains this state
for a while; the scheduler's log contains the preemptor.
"""

from typing import Final

from kschedd.api.conditions import condition
from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.selecting.terms import NO_EXECUTE
from kschedd.api.text.times import stamp
from kschedd.causes.answers import DiagnosisAnswer, ObjectNamed
from kschedd.causes.findings import FoundCause
from kschedd.causes.words import joined
from kschedd.scheduling.records import PodPreempted
from kschedd.store.cluster_api import ClusterReader

_TARGET: Final = "DisruptionTarget"
#: code and text for each condition reason that names no object
_REASONS: Final = {
    "EvictionByEvictionAPI": ("PodEvicted", "was evicted through the API, as a drain does"),
    "TerminationByKubelet": ("PodEvicted", "was evicted by the kubelet"),
    "DeletionByPodGC": ("PodDeleted", "was deleted by the garbage collector for pods"),
}


def left(store: ClusterReader, pod: Pod, preemption: PodPreempted | None, attempt: int) -> DiagnosisAnswer:
    """Return the answer for a deleted pod; `pod` is its last known state.

    `attempt` is the number of the preemptor's attempt; 0 if unknown.
    """
    found = _left(store, pod, preemption, attempt)
    return DiagnosisAnswer(
        workload=ObjectNamed("Pod", pod.namespace, pod.name),
        wanted=0,
        scheduled=0,
        pending=0,
        missing=0,
        examined="",
        cause=found.answer(),
        also=[],
        confidence="certain" if found.certain else "likely",
        remedies=[],
        tried=[],
        blocking_nodes=[],
    )


def _left(store: ClusterReader, pod: Pod, preemption: PodPreempted | None, attempt: int) -> FoundCause:
    target = condition(pod.status, _TARGET) or {}
    when = str(pod.metadata.get("deletionTimestamp") or target.get("lastTransitionTime") or "")
    at = f" at {when}" if when else ""
    where = f" on {pod.node_name}" if pod.node_name else ""
    objects = [ObjectNamed("Pod", pod.namespace, pod.name)]
    if preemption is not None:
        by, node = preemption.preemptor, preemption.node
        ask = f"`explain {by.name} -n {by.namespace} --attempt {attempt}` lists the victims it could have had instead"
        return FoundCause(
            "PodPreempted",
            f"{pod.key} (priority {pod.priority}) was preempted on {node} at {stamp(preemption.at_s)} by {by.key} "
            f"(priority {by.priority})",
            [*objects, ObjectNamed("Pod", by.namespace, by.name), ObjectNamed("Node", "", node)],
            evidence=[ask] if attempt else [],
            passing=True,
        )
    if target.get("reason") == "DeletionByTaintManager":
        return _by_taint(store, pod, at, objects)
    code, words = _REASONS.get(str(target.get("reason")), ("", ""))
    if code:
        evidence = [str(target["message"])] if target.get("message") else []
        return FoundCause(code, f"{pod.key} {words}{where}{at}", objects, evidence=evidence, passing=True)
    ended = f" after it had {pod.phase.lower()}" if pod.finished else ""
    return FoundCause(
        "PodDeleted",
        f"{pod.key} was deleted{where}{at}{ended}, by a user or a controller: nothing preempted or evicted it",
        objects,
        certain=False,
        passing=True,
    )


def _by_taint(store: ClusterReader, pod: Pod, at: str, objects: list[ObjectNamed]) -> FoundCause:
    node = store.find("Node", "", pod.node_name)
    there = [taint for taint in node.taints if taint.effect == NO_EXECUTE] if isinstance(node, Node) else []
    tolerating = {taint: [t for t in pod.pod_spec.tolerations if t.tolerates(taint)] for taint in there}
    taints = [taint for taint, found in tolerating.items() if all(each.seconds is not None for each in found)]
    limits = [each.seconds for taint in taints for each in tolerating[taint] if each.seconds is not None]
    by = f" for the taint {joined([taint.shown for taint in taints])}" if taints else " for a taint that is gone"
    how = f", which it tolerated for {min(limits)} s" if limits else ", which it does not tolerate" if taints else ""
    return FoundCause(
        "PodEvicted",
        f"{pod.key} was evicted from {pod.node_name}{at}{by}{how}",
        [*objects, ObjectNamed("Node", "", pod.node_name)],
        ["spec.tolerations"],
        certain=bool(taints),
        passing=True,
    )
