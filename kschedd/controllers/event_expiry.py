"""Expiry of Events: an Event is deleted one hour after its last change, the default event-ttl of kube-apiserver.

If there are more than 20,000 Events, those with the oldest changes are deleted earlier.

Owns the times of the changes. Source: Kubernetes v1.37, controlplane/apiserver/options (EventTTL).
"""

from collections.abc import Sequence
from itertools import islice
from typing import Final

from kschedd.api.text.times import seconds
from kschedd.controllers.running.controller import View
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.store.writes import Delete, Write

TTL_S: Final = 3600.0
_MOST: Final = 20_000
_AT_ONCE: Final = 500  # maximum number of Events deleted per turn
_PERIOD_S: Final = 10.0  # period in seconds; Events that expire in the same period are deleted together


class EventExpiry:
    name: Final = "event-expiry"
    kinds: Final = frozenset(("Event",))

    def __init__(self) -> None:
        # namespace, name -> time of the last change in seconds; the oldest first
        self._changed: dict[tuple[str, str], float] = {}
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        oldest = next(iter(self._changed.values()), None)
        return None if oldest is None else oldest + TTL_S + _PERIOD_S

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        changes = [(_last_change(event, now), number, event) for number, event in enumerate(events)]
        for at, _, event in sorted(changes):
            key = (event.new.namespace, event.new.name)
            self._changed.pop(key, None)
            if event.type != DELETED:
                self._changed[key] = at
        gone: list[tuple[str, str]] = []
        surplus = len(self._changed) - _MOST
        for key, at in islice(self._changed.items(), _AT_ONCE):
            if len(gone) >= surplus and at + TTL_S > now:
                break
            gone.append(key)
        for key in gone:
            del self._changed[key]
        return [Delete("Event", namespace, name) for namespace, name in gone]

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Return no writes: the Event has already been deleted."""
        return []


def _last_change(event: WatchEvent, now: float) -> float:
    """Return the time of this change; for an Event that existed at the start, its last occurrence."""
    if not event.loaded:
        return now
    raw = event.new.raw
    at = raw.get("lastTimestamp") or raw.get("eventTime") or event.new.metadata.get("creationTimestamp")
    try:
        return min(seconds(at), now) if at else now
    except ValueError:
        return now
