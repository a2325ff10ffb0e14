"""The rules of taint-based eviction: how long a pod may stay on a node with NoExecute taints.

For each taint, only the first matching toleration is used. If a taint is not tolerated, the pod is evicted immediately.
If no matching toleration has `tolerationSeconds`, the pod is not evicted. If matching tolerations have
`tolerationSeconds`, the pod is evicted after the smallest value; zero and negative values mean immediately.

The timer starts when all taints are tolerated and at least one toleration has a time limit. While the timer runs,
changes of taints or tolerations do not change its end, with two exceptions. The pod is evicted immediately if a taint
is not tolerated; the timer is canceled if all taints are gone or tolerated forever. Source: Kubernetes v1.34,
controller/tainteviction/taint_eviction.go (processPodOnNode, getMinTolerationTime), component-helpers/scheduling/corev1
(GetMatchingTolerations).
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from kschedd.api.conditions import condition
from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.selecting.terms import NO_EXECUTE, Taint, Toleration, parse_taint
from kschedd.api.text.times import seconds

NOT_TOLERATED: Final = None
FOR_EVER: Final = math.inf


@attrs.frozen
class NoExecuteTaint:
    taint: Taint
    added_s: float | None  # timeAdded in seconds since the epoch; None if a user added the taint


@attrs.frozen
class EvictionTimer:
    """A pod's eviction timer: its start and end, in seconds since the epoch."""

    since_s: float
    at_s: float


def no_execute_taints(node: Node) -> tuple[NoExecuteTaint, ...]:
    if all(taint.effect != NO_EXECUTE for taint in node.taints):
        return ()
    return tuple(
        NoExecuteTaint(parse_taint(raw), seconds(raw["timeAdded"]) if raw.get("timeAdded") else None)
        for raw in node.spec.get("taints") or ()
        if raw.get("effect") == NO_EXECUTE
    )


def tolerated_s(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> float | None:
    """Return the seconds for which all the taints are tolerated: NOT_TOLERATED, at least 0, or FOR_EVER."""
    shortest = FOR_EVER
    for taint in taints:
        matching = next((each for each in tolerations if each.tolerates(taint)), None)
        if matching is None:
            return NOT_TOLERATED
        if matching.seconds is not None:
            shortest = min(shortest, max(matching.seconds, 0))
    return shortest


def timer_after_restart(
    pod: Pod, taints: Sequence[NoExecuteTaint], tolerations: Sequence[Toleration], now: float
) -> EvictionTimer | None:
    """Return the timer that the pod would have if the program had not been restarted, or None.

    The timeAdded of the taints determines the timer. A taint without timeAdded is treated as added now, as in
    kube-controller-manager after a restart.
    """
    bound_s = _bound_s(pod, now)
    times = [min(now, max(bound_s, now if each.added_s is None else each.added_s)) for each in taints]
    timer: EvictionTimer | None = None
    for moment in sorted(set(times)):
        there = [each.taint for each, since in zip(taints, times, strict=True) if since <= moment]
        wait = tolerated_s(there, tolerations)
        if wait is NOT_TOLERATED:
            return EvictionTimer(moment, moment)
        if wait == FOR_EVER:
            timer = None
        elif timer is None:
            timer = EvictionTimer(moment, moment + wait)
    return timer


def _bound_s(pod: Pod, now: float) -> float:
    scheduled = condition(pod.status, "PodScheduled") or {}
    text = scheduled.get("lastTransitionTime") or pod.start_time or pod.metadata.get("creationTimestamp")
    return seconds(text) if text else now
