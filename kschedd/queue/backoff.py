"""backoffQ: pods that back off after a failed attempt; the backoff doubles with each failure, up to a limit.

Pods rejected by plugins and pods whose attempt ended in an error have separate heaps (upstream's podBackoffQ and
podErrorBackoffQ). Only pods rejected by plugins may be popped early, when activeQ is empty (SchedulerPopFromBackoffQ).
With SchedulerPopFromBackoffQ, backoffs are aligned to whole seconds, and pods with the same aligned expiration are
ordered as in activeQ. A pod whose backoff expires in the current second still backs off, and leaves one second later.

A PodGroup's limit grows with the square root of the number of its pods.

Source: Kubernetes v1.34 and v1.37, scheduler/backend/queue/backoff_queue.go. Owns its two heaps. Only SchedulingQueue
calls this class.
"""

import math
from collections.abc import Callable
from typing import Any

import attrs

from kschedd.queue.entry import SECOND, QueuedGroup, QueuedPod, SubQueue
from kschedd.queue.keyed_heap import KeyedHeap

SortKey = Callable[[QueuedPod], Any]


@attrs.define(eq=False)
class BackoffQueue:
    initial: int  # ns
    maximum: int  # ns
    aligned: bool  # SchedulerPopFromBackoffQ
    sort_key: SortKey
    rejected: KeyedHeap[QueuedPod] = attrs.field(factory=KeyedHeap, init=False)
    failed: KeyedHeap[QueuedPod] = attrs.field(factory=KeyedHeap, init=False)

    def expiration(self, entry: QueuedPod) -> int:
        """Return the time at which the pod's backoff expires; 0 if it has no failed attempt."""
        if entry.backoff_expiration:
            return entry.backoff_expiration
        failures = entry.consecutive_errors or entry.unschedulable_count
        if failures == 0:
            return 0
        # The exponent is limited, because after 64 doublings every backoff is `maximum`.
        maximum = self.maximum
        if isinstance(entry, QueuedGroup):
            maximum = int(maximum * math.sqrt(len(entry.members)))
        wait = min(self.initial << min(failures - 1, 64), maximum)
        entry.backoff_expiration = self._align(entry.timestamp + wait)
        return entry.backoff_expiration

    def backing_off(self, entry: QueuedPod, now: int) -> bool:
        expiration = self.expiration(entry)
        return expiration != 0 and self.expires_later(expiration, now)

    def place_for(self, entry: QueuedPod) -> SubQueue:
        if entry.unschedulable_plugins or entry.pending_plugins:
            return SubQueue.BACKOFF
        return SubQueue.ERROR_BACKOFF

    def put(self, entry: QueuedPod) -> None:
        """Add the entry, or reorder it if it is present."""
        expiration = self.expiration(entry)
        if self.place_for(entry) is SubQueue.ERROR_BACKOFF:
            self.failed.put(entry.key, expiration, entry)
        elif self.aligned:
            self.rejected.put(entry.key, (expiration, self.sort_key(entry)), entry)
        else:
            self.rejected.put(entry.key, expiration, entry)

    def remove(self, key: str) -> None:
        if self.rejected.remove(key) is None:
            self.failed.remove(key)

    def expires_later(self, expiration: int, now: int) -> bool:
        """Return whether a pod whose backoff expires at this time is still backing off."""
        return expiration >= self._align(now)

    def first_early(self) -> tuple[Any, QueuedPod] | None:
        """Return the pod that `pop_early` would return, and its sort key, which begins with the expiration."""
        return self.rejected.peek() if self.aligned else None

    def pop_early(self) -> QueuedPod | None:
        """Remove and return the first rejected pod, although its backoff has not expired.

        Return None if disabled or empty.
        """
        return self.rejected.take() if self.aligned else None

    def take_completed(self, now: int, most: int | None = None) -> list[QueuedPod]:
        """Remove and return at most `most` pods whose backoff has expired."""
        done: list[QueuedPod] = []
        for heap in (self.rejected, self.failed):
            while (head := heap.peek()) is not None and not self.backing_off(head[1], now) and len(done) != most:
                heap.take()
                done.append(head[1])
        return done

    def any_completed(self, now: int) -> bool:
        """Return whether `take_completed` would return a pod."""
        heads = (heap.peek() for heap in (self.rejected, self.failed))
        return any(head is not None and not self.backing_off(head[1], now) for head in heads)

    def next_flush(self) -> int | None:
        """Return the first whole second at which `take_completed` will return a pod; None if no pod is backing off."""
        heads = [head[1] for heap in (self.rejected, self.failed) if (head := heap.peek()) is not None]
        if not heads:
            return None
        return (min(self.expiration(entry) for entry in heads) // SECOND + 1) * SECOND

    def _align(self, time: int) -> int:
        return time - time % SECOND if self.aligned else time
