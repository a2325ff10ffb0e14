"""The order of a StatefulSet: which pods it creates, deletes and waits for next.

With OrderedReady, pods are created upwards, each after all before it are available, and deleted downwards, one at a
time; scaling goes before updating. With Parallel, all are created and deleted at once, but updates still go one by one.
A pod that is being deleted keeps its place: as long as its node does not say that it ended, nobody takes it.
Source: Kubernetes v1.34, controller/statefulset/stateful_set_control.go (updateStatefulSet).

Plain functions: `next_step` takes the StatefulSet, its pods and two revisions and answers with names of pods.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.controllers.workloads.pod_state import available, ready
from kschedd.controllers.workloads.revisions import REVISION_HASH
from kschedd.controllers.workloads.rollout import resolved
from kschedd.controllers.workloads.stateful_pods import in_range, ordinal_of, replicas_wanted, start_ordinal

_NOTHING: Mapping[str, Any] = {}


@attrs.define(eq=False)
class StatefulStep:
    """What to do now. Ordinals of pods to create, each with whether of the current revision; pods to delete.

    `keep`: pods that are as they should be so far, and whose labels and claims are looked after; `condemned` ones too.
    `claims_for`: ordinals of pending pods whose claims may be missing.
    """

    create: list[tuple[int, bool]] = attrs.field(factory=list)
    delete: list[Pod] = attrs.field(factory=list)
    keep: list[Pod] = attrs.field(factory=list)
    condemned: list[Pod] = attrs.field(factory=list)
    claims_for: list[int] = attrs.field(factory=list)
    blocked: bool = False  # whether a pod cannot be created yet
    updating: int = 0  # pods of the current revision that are deleted to be updated


def is_running_and_ready(pod: Pod) -> bool:
    return pod.phase == "Running" and ready(pod)


def is_healthy(pod: Pod) -> bool:
    return is_running_and_ready(pod) and not pod.deletion_timestamp


def revision_of(pod: Pod) -> str:
    return pod.labels.get(REVISION_HASH) or ""


def needs_current_revision(workload: Object, ordinal: int) -> bool:
    """Whether a pod with this ordinal is created from the current revision, as the partition keeps it from updating."""
    strategy = workload.spec.get("updateStrategy") or _NOTHING
    rolling = strategy.get("rollingUpdate")
    start = start_ordinal(workload)
    if rolling is not None:
        return ordinal < start + int(rolling.get("partition") or 0)
    return strategy.get("type") == "RollingUpdate" and ordinal < start + int(
        workload.status.get("currentReplicas") or 0
    )


def next_step(
    workload: Object,
    pods: Iterable[Pod],
    update_revision: str,
    now: float,
    is_blocked: Callable[[int], bool] = lambda ordinal: False,
    *,
    max_unavailable_gate: bool = False,
) -> StatefulStep:
    """What to do next. `is_blocked`: whether a pod with this ordinal cannot be created yet for the sake of a claim."""
    step = StatefulStep()
    start, wanted = start_ordinal(workload), replicas_wanted(workload)
    monotonic = workload.spec.get("podManagementPolicy") != "Parallel"
    min_ready_s = int(workload.spec.get("minReadySeconds") or 0)
    replicas: list[Pod | None] = [None] * wanted
    condemned: list[tuple[int, Pod]] = []
    for pod in pods:
        ordinal = ordinal_of(workload, pod.name)
        if in_range(workload, ordinal):
            replicas[ordinal - start] = pod
        elif ordinal >= 0:
            condemned.append((ordinal, pod))
    condemned.sort(key=lambda pair: -pair[0])
    step.condemned = [pod for _, pod in condemned]
    if _process_replicas(workload, replicas, step, monotonic, min_ready_s, now, is_blocked):
        return step
    first_unhealthy = _first_unhealthy(replicas, step.condemned)
    for pod in step.condemned:
        if pod.deletion_timestamp:
            if monotonic:
                return step
            continue
        blocked = not is_running_and_ready(pod) or not available(pod, min_ready_s, now)
        if monotonic and blocked and pod is not first_unhealthy:
            return step
        step.delete.append(pod)
        if monotonic:
            return step
    _update(workload, replicas, step, update_revision, max_unavailable_gate)
    return step


def _process_replicas(
    workload: Object,
    replicas: Sequence[Pod | None],
    step: StatefulStep,
    monotonic: bool,
    min_ready_s: int,
    now: float,
    is_blocked: Callable[[int], bool],
) -> bool:
    """Create, replace and wait for the pods that should be there; True if nothing else is to be done for now."""
    start = start_ordinal(workload)
    for index, pod in enumerate(replicas):
        ordinal = start + index
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
                step.create.append((ordinal, needs_current_revision(workload, ordinal)))
            if monotonic:
                return True
            continue
        if pod.phase in ("", "Pending"):
            step.claims_for.append(ordinal)
        if monotonic and (
            pod.deletion_timestamp or not is_running_and_ready(pod) or not available(pod, min_ready_s, now)
        ):
            return True
        step.keep.append(pod)
    return False


def _first_unhealthy(replicas: Sequence[Pod | None], condemned: Sequence[Pod]) -> Pod | None:
    """The one that may be deleted although it is not ready: the lowest ordinal first, condemned ones last."""
    found = [pod for pod in replicas if pod is None or not is_healthy(pod)]
    if found:
        return found[0]
    return next((pod for pod in reversed(condemned) if not is_healthy(pod)), None)


def _update(
    workload: Object,
    replicas: Sequence[Pod | None],
    step: StatefulStep,
    update_revision: str,
    max_unavailable_gate: bool,
) -> None:
    """Delete a pod of another revision, from the highest ordinal down to the partition; they come back updated."""
    strategy = workload.spec.get("updateStrategy") or _NOTHING
    if strategy.get("type") == "OnDelete":
        return
    rolling = strategy.get("rollingUpdate") or _NOTHING
    partition = int(rolling.get("partition") or 0)
    targets = list(reversed(replicas[partition:]))
    if max_unavailable_gate:
        limit = max(1, resolved(rolling.get("maxUnavailable", 1), len(replicas), up=False))
        room = limit - sum(pod is None or not is_healthy(pod) for pod in replicas)
        old = [pod for pod in targets if pod is not None and _is_outdated(pod, update_revision)]
        step.delete += old[: max(0, room)]
        step.updating = min(len(old), max(0, room))
        return
    for pod in targets:
        if pod is None:
            return  # just created: not healthy yet
        if _is_outdated(pod, update_revision):
            step.delete.append(pod)
            step.updating = 1
            return
        if not is_healthy(pod):
            return


def _is_outdated(pod: Pod, update_revision: str) -> bool:
    return revision_of(pod) != update_revision and not pod.deletion_timestamp
