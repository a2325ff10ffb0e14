"""TTL-after-finished: deletes a Job `ttlSecondsAfterFinished` seconds after its end, in the foreground.

Owns the deadlines. Source: Kubernetes v1.34, pkg/controller/ttlafterfinished.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from kschedd.api.objects import Object
from kschedd.api.text.times import seconds
from kschedd.controllers.running.controller import View
from kschedd.controllers.running.timers import Timers
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.store.writes import Delete, Write

Key = tuple[str, str]  # namespace, name
_MOST: Final = 1_000  # largest number of expired Jobs processed per turn


def expires_at(job: Object) -> float | None:
    """Return the time at which the Job expires, or None if it is unknown or never."""
    ttl_s = job.spec.get("ttlSecondsAfterFinished")
    if ttl_s is None or job.deleting:
        return None
    for condition in job.status.get("conditions") or ():
        if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True":
            finished = condition.get("lastTransitionTime")
            return seconds(finished) + ttl_s if finished else None
    return None


class TTLAfterFinished:
    name: Final = "ttl-after-finished"
    kinds: Final = frozenset(("Job",))

    def __init__(self) -> None:
        self._expiries: Timers[Key] = Timers()
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        return self._expiries.next

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        for event in events:
            key = (event.new.namespace, event.new.name)
            at = None if event.type == DELETED else expires_at(event.new)
            if at is None:
                self._expiries.clear(key)
            else:
                self._expiries.set(key, at)
        return self.faults.each("Job", self._expiries.due(now, _MOST), partial(self._expire, view), now)

    def _expire(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        job = view.find("Job", namespace, name)
        at = None if job is None else expires_at(job)
        if job is None or at is None:
            return []
        if at > now:
            self._expiries.set((namespace, name), at)
            return []
        return [Delete("Job", namespace, name, job.uid, propagation="Foreground")]

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Return no writes; the conflicting change triggers the next reconcile."""
        return []
