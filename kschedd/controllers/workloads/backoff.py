"""FailureBackoff: repeatedly failing pods are replaced after increasing delays (1 s, 2 s, 4 s, … 15 min).

Kube-controller-manager delays the creation of pods in this way only for DaemonSets. In kube-controller-manager,
ReplicaSets and StatefulSets immediately replace pods that a kubelet rejects, or that tolerate a NoExecute taint for 0
s. In virtual time, such replacements would never end. The back-off therefore counts pods that failed, or were evicted
because of a taint, within `SOON_S` after their creation. The first replacements are immediate, and later ones are
delayed. Source of the delays: Kubernetes v1.34, controller/daemon (failedPodsBackoff), client-go
util/flowcontrol/backoff.go.
"""

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from kschedd.api.conditions import condition
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.text.times import seconds
from kschedd.controllers.nodes.tainteviction import DISRUPTION_TARGET
from kschedd.controllers.running.timers import Timers
from kschedd.controllers.templates import controller_uid
from kschedd.controllers.workloads.ownership import Key
from kschedd.store.objects.log import DELETED, WatchEvent

K = TypeVar("K", bound=Hashable)

SOON_S: Final = 10.0
_FIRST_S: Final = 1.0
_LONGEST_S: Final = 900.0


class FailureBackoff(Generic[K]):
    def __init__(self) -> None:
        self._last: dict[K, tuple[float, float]] = {}  # start time and length of the delay

    def due(self, key: K, now: float) -> float | None:
        """Return the time at which a replacement is allowed; None means now."""
        since, delay = self._last.get(key, (now, 0.0))
        return since + delay if now < since + delay else None

    def count(self, key: K, now: float) -> None:
        """Record a replacement now; the next delay is longer, unless the next failure is much later."""
        since, delay = self._last.get(key, (now, 0.0))
        stale = not delay or now - since > 2 * _LONGEST_S
        self._last[key] = now, _FIRST_S if stale else min(2 * delay, _LONGEST_S)

    def forget(self, key: K) -> None:
        self._last.pop(key, None)


class Evictions:
    """Slots from which a taint evicted a young pod; a slot is the uid of a workload and the name of a node or pod."""

    def __init__(self) -> None:
        self._evicted: set[tuple[str, str]] = set()  # slots without a new pod since an eviction
        self._backoff: FailureBackoff[tuple[str, str]] = FailureBackoff()

    def note(self, event: WatchEvent, place: str, now: float) -> None:
        if was_evicted(event) and failed_soon(event.new, now):
            self._evicted.add((controller_uid(event.new), place))

    def due(self, uid: str, place: str, now: float) -> float | None:
        """Return when a new pod for the slot may be created; None means now, and marks the slot as filled."""
        key = (uid, place)
        if key not in self._evicted:
            return None
        due = self._backoff.due(key, now)
        if due is None:
            self._evicted.discard(key)
            self._backoff.count(key, now)
        return due


def has_failed(event: WatchEvent) -> bool:
    """Return whether the pod of this event has just failed."""
    old, new = event.old, event.new
    return isinstance(old, Pod) and isinstance(new, Pod) and new.phase == "Failed" != old.phase


def was_evicted(event: WatchEvent) -> bool:
    """Return whether the event is the deletion request for a pod because of a taint of its node."""
    old, new = event.old, event.new
    if not isinstance(old, Pod) or not isinstance(new, Pod) or old.deletion_timestamp:
        return False
    if event.type != DELETED and not new.deletion_timestamp:
        return False
    target = condition(new.status, DISRUPTION_TARGET["type"])
    return target is not None and target.get("reason") == DISRUPTION_TARGET["reason"]


def failed_soon(pod: Object, now: float) -> bool:
    """Return whether a pod was young when it failed or was evicted."""
    created = pod.metadata.get("creationTimestamp")
    return created is not None and now - seconds(created) < SOON_S


_FIRST_RETRY_S: Final = 1.0
LONGEST_RETRY_S: Final = 300.0


class CreateBackoff:
    """Delays before a workload retries the creation of a rejected object.

    The object stores the number of consecutive rejections per workload. The controller stores the time of the next
    attempt in its timers. Source of the delays: client-go v1.34, util/workqueue (the controllers' rate limited queues).
    """

    def __init__(self, timers: Timers[Key]) -> None:
        self._timers = timers
        self._refusals: dict[Key, int] = {}

    def __contains__(self, key: Key) -> bool:
        """Return whether the last attempt was rejected."""
        return key in self._refusals

    @property
    def rejected(self) -> frozenset[Key]:
        """The workloads whose last attempt was rejected."""
        return frozenset(self._refusals)

    @property
    def next_other(self) -> float | None:
        """The earliest time in the timers that is not the retry of a rejected creation, or None."""
        return self._timers.next_without(self._refusals)

    def waits(self, key: Key, now: float) -> bool:
        """Return whether the next attempt is not due yet."""
        at = self._timers.at(key)
        return key in self._refusals and at is not None and at > now

    def refused(self, key: Key, now: float) -> bool:
        """Count a rejection, unless another rejection of the same attempt was already counted.

        Return whether this rejection was counted.
        """
        if self.waits(key, now):
            return False
        times = self._refusals.get(key, 0)
        self._refusals[key] = times + 1
        self._timers.set(key, now + min(_FIRST_RETRY_S * 2**times, LONGEST_RETRY_S))
        return True

    def clear(self, key: Key) -> None:
        self._refusals.pop(key, None)
