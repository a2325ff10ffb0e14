"""PendingEvictions: preemptors whose victims still exist. PreEnqueue keeps them out of the active queue.

A preemptor that was attempted before its victims are gone would select further victims. A victim counts as gone when
its deletion has begun. The evictions of a cluster in the same process take no time; a real API server needs seconds
for many of them.

Source: Kubernetes v1.37, scheduler/framework/preemption/executor.go (IsPodRunningPreemption).
"""

from collections.abc import Iterable, Mapping

from kschedd.api.pods import Pod
from kschedd.store.objects.log import DELETED, WatchEvent


class PendingEvictions:
    """The preemptors by uid, each with the uids of the victims that still exist."""

    def __init__(self) -> None:
        self._victims: dict[str, set[str]] = {}  # preemptor -> victims
        self._preemptors: dict[str, set[str]] = {}  # victim -> preemptors

    def __contains__(self, preemptor: str) -> bool:
        return preemptor in self._victims

    def begin(self, preemptor: str, victims: Iterable[str]) -> None:
        """Record the victims of a preemptor, in place of the victims of its earlier attempt."""
        self.end(preemptor)
        for victim in victims:
            self._victims.setdefault(preemptor, set()).add(victim)
            self._preemptors.setdefault(victim, set()).add(preemptor)

    def end(self, *preemptors: str) -> None:
        """Forget preemptors: their eviction failed, or they were deleted."""
        for preemptor in preemptors:
            for victim in self._victims.pop(preemptor, ()):
                self._remove(victim, preemptor)

    def observe(self, events: Iterable[WatchEvent]) -> None:
        """Remove the victims whose deletion has begun, and deleted preemptors."""
        if not self._victims:
            return
        for event in events:
            new = event.new
            if event.type == DELETED:
                self.end(new.uid)
            elif not (isinstance(new, Pod) and new.deletion_timestamp):
                continue
            for preemptor in self._preemptors.pop(new.uid, ()):
                victims = self._victims[preemptor]
                victims.discard(new.uid)
                if not victims:
                    del self._victims[preemptor]

    def snapshot(self) -> Mapping[str, frozenset[str]]:
        return {preemptor: frozenset(victims) for preemptor, victims in self._victims.items()}

    def restore(self, snapshot: Mapping[str, Iterable[str]]) -> None:
        for preemptor, victims in snapshot.items():
            self.begin(preemptor, victims)

    def _remove(self, victim: str, preemptor: str) -> None:
        preemptors = self._preemptors[victim]
        preemptors.discard(preemptor)
        if not preemptors:
            del self._preemptors[victim]
