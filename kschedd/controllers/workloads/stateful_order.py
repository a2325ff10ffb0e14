"""The order of a StatefulSet's changes: the next pods to create, delete and wait for.

With OrderedReady, pods are created in ascending order, each after all previous pods are available. Pods are deleted in
descending order, one at a time. Scaling precedes updating. With Parallel, all pods are created and deleted together,
but updated one by one. A pod that is being deleted keeps its ordinal; the next pod with this ordinal is created after
the kubelet has removed it. Source: Kubernetes v1.34, controller/statefulset/stateful_set_control.go
(updateStatefulSet).

Plain functions: `next_step` takes the StatefulSet, its pods and two revisions, and returns names of pods.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.controllers.workloads.pod_state import ready
from kschedd.controllers.workloads.rollout import resolved
from kschedd.controllers.workloads.stateful_pods import replicas_wanted, start_ordinal
from kschedd.controllers.workloads.stateful_tally import StatefulTally

BURST: Final = 500  # maximum number of pods created or deleted per reconcile of a StatefulSet
_NOTHING: Mapping[str, Any] = {}


@attrs.define(eq=False)
class StatefulStep:
    """The next step. `create` contains the ordinal of each new pod, and True if the pod has the current revision.

    `keep` contains pods that need no step; only their labels and claims are checked. `condemned` contains pods beyond
    the wanted ordinals, which are checked as well. `claims_for` contains ordinals of pending pods whose claims may be
    missing.
    """

    create: list[tuple[int, bool]] = attrs.field(factory=list)
    delete: list[Pod] = attrs.field(factory=list)
    keep: list[Pod] = attrs.field(factory=list)
    condemned: list[Pod] = attrs.field(factory=list)
    claims_for: list[int] = attrs.field(factory=list)
    blocked: bool = False  # true if a pod cannot be created yet
    updating: int = 0  # number of pods with the current revision that are deleted for the update


def is_running_and_ready(pod: Pod) -> bool:
    return pod.phase == "Running" and ready(pod)


def is_healthy(pod: Pod) -> bool:
    return is_running_and_ready(pod) and not pod.deletion_timestamp


def current_below(workload: Object) -> int:
    """Return the ordinal below which new pods have the current revision, because of the partition."""
    strategy = workload.spec.get("updateStrategy") or _NOTHING
    rolling = strategy.get("rollingUpdate")
    start = start_ordinal(workload)
    if rolling is not None:
        return start + int(rolling.get("partition") or 0)
    return (
        start + int(workload.status.get("currentReplicas") or 0) if strategy.get("type") == "RollingUpdate" else start
    )


def next_step(
    workload: Object,
    pods: StatefulTally,
    update_revision: str,
    is_blocked: Callable[[int], bool] = lambda ordinal: False,
    *,
    max_unavailable_gate: bool = False,
) -> StatefulStep:
    """Return the next step.

    `is_blocked` returns whether a pod with this ordinal cannot be created yet because of a claim.
    """
    step = StatefulStep()
    start = start_ordinal(workload)
    ordinals = range(start, start + replicas_wanted(workload))
    monotonic = workload.spec.get("podManagementPolicy") != "Parallel"
    missing = pods.missing(ordinals)
    step.condemned = pods.outside(ordinals)
    # If pods have claims, any missing pod may be blocked, so all missing pods are included.
    due = {*(missing if pods.terms.claims else sorted(missing)[: BURST + 1]), *pods.unsettled()}
    if monotonic:
        due |= pods.unavailable()
    due = {ordinal for ordinal in due if ordinal in ordinals}
    if _process_replicas(workload, pods, sorted(due), step, is_blocked):
        return step
    first_unhealthy = _first_unhealthy(pods, missing, ordinals, step.condemned) if monotonic else None
    for pod in step.condemned:
        if pod.deletion_timestamp:
            if monotonic:
                return step
            continue
        if monotonic and not pods.is_available(pod) and pod is not first_unhealthy:
            return step
        step.delete.append(pod)
        if monotonic:
            return step
    _update(workload, pods, missing, ordinals, step, update_revision, max_unavailable_gate)
    return step


def _process_replicas(
    workload: Object, pods: StatefulTally, due: Iterable[int], step: StatefulStep, is_blocked: Callable[[int], bool]
) -> bool:
    """Create, replace and wait for the pods that should exist. Return True if no further change may follow now.

    `due` contains, in order, the ordinals without a pod and the ordinals of pods that may need an action or are not
    ready.
    """
    monotonic = workload.spec.get("podManagementPolicy") != "Parallel"
    of_current = current_below(workload)
    for ordinal in due:
        pod = pods.at(ordinal)
        if pod is not None and pod.finished:
            if not pod.deletion_timestamp:
                step.delete.append(pod)
            if monotonic:
                return True
            continue
        if pod is None:
            if is_blocked(ordinal):
                step.blocked = True
            else:
                step.create.append((ordinal, ordinal < of_current))
            if monotonic:
                return True
            continue
        if pod.phase in ("", "Pending"):
            step.claims_for.append(ordinal)
        if monotonic and (pod.deletion_timestamp or not pods.is_available(pod)):
            return True
        step.keep.append(pod)
    return False


def _first_unhealthy(pods: StatefulTally, missing: Set[int], ordinals: range, condemned: Sequence[Pod]) -> Pod | None:
    """Return the unhealthy pod that may be deleted: the lowest ordinal first, and condemned pods last."""
    first = min(chain(missing, filter(ordinals.__contains__, pods.unhealthy())), default=None)
    if first is not None:
        return pods.at(first)
    return next((pod for pod in reversed(condemned) if not is_healthy(pod)), None)


def _update(
    workload: Object,
    pods: StatefulTally,
    missing: Set[int],
    ordinals: range,
    step: StatefulStep,
    update_revision: str,
    max_unavailable_gate: bool,
) -> None:
    """Delete outdated pods, from the highest ordinal down to the partition; they are created again later."""
    strategy = workload.spec.get("updateStrategy") or _NOTHING
    if strategy.get("type") == "OnDelete":
        return
    rolling = strategy.get("rollingUpdate") or _NOTHING
    targets = ordinals[int(rolling.get("partition") or 0) :]
    outdated = sorted(filter(targets.__contains__, pods.outdated(update_revision)), reverse=True)
    if not outdated:
        return
    unhealthy = {*missing, *pods.unhealthy()}
    if max_unavailable_gate:
        limit = max(1, resolved(rolling.get("maxUnavailable", 1), len(ordinals), up=False))
        room = max(0, limit - sum(ordinal in ordinals for ordinal in unhealthy))
    else:
        highest = max(filter(targets.__contains__, unhealthy), default=-1)
        room = int(outdated[0] >= highest)  # 0 if a pod with a higher ordinal is being created
    step.delete += [pod for ordinal in outdated[:room] if (pod := pods.at(ordinal)) is not None]
    step.updating = len(outdated[:room])
