"""Preemption on a node: the eviction of pods for a critical pod that lacks only resources.

The kubelet prefers to evict BestEffort pods over Burstable and Guaranteed pods, few pods over many, and small requests
over large requests. The kubelet chooses the pods whose requests are nearest to the missing amounts.

Source: Kubernetes v1.34, pkg/kubelet/preemption/preemption.go, pkg/kubelet/types/pod_update.go (Preemptable).
Units: CPU in millicores, other resources in whole units.
"""

from collections.abc import Mapping, Sequence

from kschedd.api.pods import Pod
from kschedd.api.qos import qos_of_spec
from kschedd.controllers.kubelets.admission import is_critical

Requirements = Mapping[str, int]  # missing amount by resource


class NoVictimsError(Exception):
    """The error if no set of pods would free enough resources; the text is the kubelet's message."""


def preemptable(preemptor: Pod, pod: Pod) -> bool:
    return (is_critical(preemptor) and not is_critical(pod)) or preemptor.priority > pod.priority


def victims(preemptor: Pod, pods: Sequence[Pod], lacking: Requirements) -> list[Pod]:
    """Return the pods to evict, in the order of their eviction. Raises NoVictimsError."""
    may_go = [pod for pod in pods if preemptable(preemptor, pod)]
    by_class = {
        name: [pod for pod in may_go if qos_of_spec(pod.pod_spec.raw) == name]
        for name in ("BestEffort", "Burstable", "Guaranteed")
    }
    best_effort, burstable, guaranteed = by_class.values()
    _raise_for(_without(lacking, [*best_effort, *burstable, *guaranteed]))
    from_guaranteed = _nearest(guaranteed, _without(lacking, [*best_effort, *burstable]))
    from_burstable = _nearest(burstable, _without(lacking, [*best_effort, *from_guaranteed]))
    from_best_effort = _nearest(best_effort, _without(lacking, [*from_burstable, *from_guaranteed]))
    return [*from_best_effort, *from_burstable, *from_guaranteed]


def request_of(pod: Pod, resource: str) -> int:
    return 1 if resource == "pods" else pod.requests.get(resource, 0)


def _without(lacking: Requirements, pods: Sequence[Pod]) -> Requirements:
    left = {name: amount - sum(request_of(pod, name) for pod in pods) for name, amount in lacking.items()}
    return {name: amount for name, amount in left.items() if amount > 0}


def distance(lacking: Requirements, pod: Pod) -> float:
    """Return the distance of the pod's requests from the missing amounts, with equal weight for all resources."""
    short = ((amount, amount - request_of(pod, name)) for name, amount in lacking.items())
    return sum((rest / amount) ** 2 for amount, rest in short if rest > 0)


def _smaller(pod: Pod, other: Pod) -> bool:
    own = [(request_of(pod, name), request_of(other, name)) for name in ("memory", "cpu")]
    return next((mine < theirs for mine, theirs in own if mine != theirs), True)


def _nearest(pods: Sequence[Pod], lacking: Requirements) -> list[Pod]:
    left, taken = list(pods), []
    while lacking:
        if not left:
            _raise_for(lacking)
        best = 0
        nearest = float(len(lacking) + 1)
        for place, pod in enumerate(left):
            away = distance(lacking, pod)
            if away < nearest or (away == nearest and _smaller(pod, left[best])):
                best, nearest = place, away
        lacking = _without(lacking, [left[best]])
        taken.append(left[best])
        left[best] = left[-1]  # as upstream; the order of the remaining pods decides ties
        left.pop()
    return taken


def _raise_for(lacking: Requirements) -> None:
    if lacking:
        listed = "".join(f"(res: {name}, q: {amount}), " for name, amount in lacking.items())
        raise NoVictimsError(
            "preemption: error finding a set of pods to preempt: "
            f"no set of running pods found to reclaim resources: [{listed}]"
        )
