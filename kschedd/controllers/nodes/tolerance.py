"""How long a pod may stay on a node with NoExecute taints, and since when: the rules of taint-based eviction.

For each taint the first toleration that matches it counts, whatever later ones say. A taint without one: the pod leaves
at once. No `tolerationSeconds` among those that count: it stays. Otherwise it leaves after the smallest of them; zero
and negative mean at once.

The timer runs from the moment at which the taints were tolerated for a limited time first. While it runs, neither
another taint nor another toleration changes its end, unless a taint is no longer tolerated at all (the pod leaves at
once) or all are tolerated for good, or gone (the timer is cancelled).
Source: Kubernetes v1.34, controller/tainteviction/taint_eviction.go (processPodOnNode, getMinTolerationTime),
component-helpers/scheduling/corev1 (GetMatchingTolerations).
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
    added_s: float | None  # its timeAdded, in seconds since the epoch; only controllers state one


@attrs.frozen
class EvictionTimer:
    """Seconds since the epoch: when it began, when the pod leaves."""

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
    """For how many seconds these tolerations tolerate all the taints: NOT_TOLERATED, 0 and more, or FOR_EVER."""
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
    """The timer that a controller which had watched all along would have for the pod, as far as the taints' timeAdded
    say; None if none would run. A taint without timeAdded counts from now on, as for upstream after a restart."""
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
