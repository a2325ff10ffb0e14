"""Tallies: how many pods of a ReplicaSet there are, are ready, and are available, kept up to date by what was written.

A set is looked at whenever some of its pods have changed; if that meant to look at all of its pods each time, a set of
20,000 would take most of the time there is. So its pods are gone through once, for a tally; from then on the log says
which of them changed, and how: those, too, whose events have not been delivered yet, such as the pods that the
controller has just created. A tally is made again where the log does not go back far enough, or the set counts
differently than before.

Owns the tallies, and the version of the store up to which they are true.
"""

from collections.abc import Iterable

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.selectors import LabelSelector
from kschedd.controllers.controller import View
from kschedd.controllers.templates import controller_uid
from kschedd.controllers.workloads.ownership import selector_of
from kschedd.controllers.workloads.pod_state import available_at, is_active
from kschedd.store.errors import Gone
from kschedd.store.log import DELETED, WatchEvent


@attrs.frozen
class Terms:
    """What a set asks of its pods in order to count them."""

    selector: LabelSelector | None
    labels: dict[str, str]  # of its template
    min_ready_s: int


def terms_of(replica_set: Object) -> Terms:
    labels = ((replica_set.spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    return Terms(selector_of(replica_set), labels, replica_set.spec.get("minReadySeconds") or 0)


@attrs.define(eq=False)
class Tally:
    """The counts over the active pods of a set."""

    terms: Terms
    pods: int = 0
    labeled: int = 0  # that have all labels of the template
    ready: int = 0
    _coming: dict[str, float] = attrs.field(factory=dict)  # when those become available that are ready, by uid

    def count(self, pod: Pod, change: int) -> None:
        """`change`: 1 or -1."""
        self.pods += change
        self.labeled += change * (self.terms.labels.items() <= pod.labels.items())
        at = available_at(pod, self.terms.min_ready_s)
        if at is None:
            return
        self.ready += change
        if change > 0:
            self._coming[pod.uid] = at
        else:
            self._coming.pop(pod.uid, None)

    def coming(self, now: float) -> list[float]:
        """When those pods become available (seconds) that are ready and not available yet."""
        for uid in [uid for uid, at in self._coming.items() if at <= now]:
            del self._coming[uid]
        return list(self._coming.values())


class Tallies:
    """See the module. `kinds`: of the sets."""

    def __init__(self, kinds: Iterable[str]) -> None:
        self._kinds = frozenset(kinds)
        self._by_uid: dict[str, Tally] = {}  # of sets
        self._version = 0

    def catch_up(self, view: View) -> None:
        """Have all tallies be of what is there now."""
        version, self._version = self._version, view.version
        if not self._by_uid:
            return
        try:
            events = view.written_after(version)
        except Gone:
            self._by_uid.clear()
            return
        for event in events:
            if event.new.kind == "Pod":
                self._observe(event)
            elif event.type == DELETED and event.new.kind in self._kinds:
                self._by_uid.pop(event.new.uid, None)

    def _observe(self, event: WatchEvent) -> None:
        if event.old is not None:
            self._count(event.old, -1)
        if event.type != DELETED:
            self._count(event.new, 1)

    def _count(self, pod: Object, change: int) -> None:
        owner = controller_uid(pod)
        tally = self._by_uid.get(owner)
        if tally is None or not isinstance(pod, Pod) or not is_active(pod):
            return
        if tally.terms.selector is None or not tally.terms.selector.matches(pod.labels):
            del self._by_uid[owner]  # the set does not count it, and has to let go of it
        else:
            tally.count(pod, change)

    def known(self, replica_set: Object) -> Tally | None:
        """The set's tally; None where its pods have to be gone through."""
        tally = self._by_uid.get(replica_set.uid)
        return (
            tally if tally is not None and not replica_set.deleting and tally.terms == terms_of(replica_set) else None
        )

    def made(self, replica_set: Object, pods: Iterable[Pod], *, stays: bool) -> Tally:
        """The tally of these pods; `stays`: they are all that the set owns, and it lets go of none."""
        tally = Tally(terms_of(replica_set))
        for pod in pods:
            tally.count(pod, 1)
        if stays and tally.terms.selector is not None:
            self._by_uid[replica_set.uid] = tally
        else:
            self._by_uid.pop(replica_set.uid, None)
        return tally
