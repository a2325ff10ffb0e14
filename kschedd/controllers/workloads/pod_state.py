"""The state of a pod for workload controllers: active, ready, available, and its rank for deletion.

Source: Kubernetes v1.34, api/v1/pod/util.go and controller/controller_utils.go (ActivePodsWithRanks).
"""

import heapq
import math
from collections.abc import Callable, Generator, Iterable, Mapping
from itertools import islice
from operator import itemgetter
from typing import Any, Final

from kschedd.api.conditions import condition, is_true
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.text.times import seconds
from kschedd.values import in_parts

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PART: Final = 100  # number of pods ranked between two pauses, in about 1 ms


def is_active(obj: Object) -> bool:
    """Return whether the object is a pod that has not ended and is not being deleted."""
    return isinstance(obj, Pod) and not obj.finished and not obj.deletion_timestamp


def ready(pod: Pod) -> bool:
    return is_true(pod.status, "Ready")


def available_at(pod: Pod, min_ready_s: int) -> float | None:
    """Return the time in seconds, past or future, at which the pod becomes available; None if it is not ready."""
    found = condition(pod.status, "Ready")
    if found is None or found.get("status") != "True":
        return None
    since = found.get("lastTransitionTime")
    return (seconds(since) if since else 0.0) + min_ready_s


def available(pod: Pod, min_ready_s: int, now: float) -> bool:
    at = available_at(pod, min_ready_s)
    return at is not None and at <= now


def _deletion_cost(pod: Pod) -> int:
    try:
        return int(pod.annotations.get(DELETION_COST) or 0)
    except ValueError:
        return 0


def _restarts(pod: Pod) -> int:
    return max((c.get("restartCount") or 0 for c in pod.status.get("containerStatuses") or ()), default=0)


def _age_rank(since: float | None, now: float) -> float:
    """Return a rank by age in powers of two seconds, youngest first (LogarithmicScaleDown); None ranks as youngest."""
    if since is None:
        return -1.0
    return math.floor(math.log2(now - since)) if now - since >= 1 else 0.0


def deletion_rank(pod: Pod, beside: Mapping[str, int], now: float) -> tuple[Any, ...]:
    """Return the pod's rank for deletion, lowest first. `beside` is the number of related active pods on each node."""
    ready_at = available_at(pod, 0)
    created = pod.metadata.get("creationTimestamp")
    return (
        bool(pod.node_name),
        {"Pending": 0, "": 0, "Unknown": 1}.get(pod.phase, 2),
        ready_at is not None,
        _deletion_cost(pod),
        -beside.get(pod.node_name, 0),
        0.0 if ready_at is None else _age_rank(ready_at, now),
        -_restarts(pod),
        _age_rank(seconds(created) if created else None, now),
        pod.uid,
    )


def first_by_rank(
    pods: Iterable[Pod], rank: Callable[[Pod], tuple[Any, ...]], count: int | None
) -> Generator[None, None, list[Pod]]:
    """Return, in steps, the first `count` pods by rank (None: all pods); pods with equal ranks keep their order."""
    runs: list[list[tuple[tuple[Any, ...], Pod]]] = []
    for some in in_parts(pods, _PART):
        runs.append(sorted(((rank(pod), pod) for pod in some), key=itemgetter(0)))
        yield
    first: list[Pod] = []
    for part in in_parts(islice(heapq.merge(*runs, key=itemgetter(0)), count), _PART):
        first += (pod for _, pod in part)
        yield
    return first
