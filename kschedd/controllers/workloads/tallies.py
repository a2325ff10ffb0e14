"""Tallies: what a controller has found out of all pods of a workload, kept up to date by what was written.

A workload is looked at whenever some of its pods have changed; if that meant to look at all of its pods each time, one
of 20,000 would take most of the time there is. So its pods are gone through once, for a tally; from then on the log
says which of them changed, and how: those, too, whose events have not been delivered yet, such as the pods that the
controller has just created. A tally is made again where the log does not say what happened since, or the workload asks
something else of its pods than before.

What a tally knows of a pod (or of a node, where there is one pod on each) is its standing: a value of which there are
few, such as "ready, of the old template". Pods are grouped by standing, so that to count them is to add up the sizes of
some groups, and to find those that need something is to list others.

Owns the tallies, and the place in the log up to which they are true.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.selecting.selectors import LabelSelector
from kschedd.controllers.running.controller import View
from kschedd.controllers.running.timers import Timers
from kschedd.controllers.templates import controller_uid
from kschedd.controllers.workloads.ownership import Ownership
from kschedd.store.errors import Gone
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.store.writes import Write

D = TypeVar("D", bound=Object, contravariant=True)
V = TypeVar("V")
S = TypeVar("S")

_STEP = 50  # pods or events gone through between two pauses: about 1 ms


@attrs.frozen
class Terms:
    """What a workload asks of its pods. `selector`: None if it adopts none and lets go of none."""

    selector: LabelSelector | None


class Tally(Protocol[D]):
    @property
    def terms(self) -> Terms: ...

    def counts(self, dependent: D) -> bool:
        """Whether the pod, one of the workload's own, is of interest."""

    def put(self, dependent: D, now: float) -> None:
        """A pod that counts is new, or has changed."""

    def drop(self, dependent: D, now: float) -> None:
        """A pod that counted does so no more."""


T = TypeVar("T", bound=Tally[Any])


class Groups(ABC, Generic[V, S]):
    """Items by name, and by standing. A standing may change with time alone: `pass_time` brings all up to date."""

    def __init__(self) -> None:
        self.items: dict[str, V] = {}  # in the order in which they came
        self._standings: dict[str, S] = {}
        self.groups: dict[S, dict[str, None]] = {}  # by standing: names
        self._until: Timers[str] = Timers()

    @abstractmethod
    def standing(self, item: V, now: float) -> tuple[S, float | None]:
        """The item's standing, and until when (seconds) it has that unless it changes; None: for good."""

    def place(self, name: str, item: V, now: float) -> None:
        """An item is new, or has changed."""
        standing, until = self.standing(item, now)
        self.items[name] = item
        before = self._standings.get(name)
        if before != standing:
            if before is not None:
                self._leave(name, before)
            self._standings[name] = standing
            self.groups.setdefault(standing, {})[name] = None
        if until is None:
            self._until.clear(name)
        else:
            self._until.set(name, until)

    def remove(self, name: str) -> None:
        if self.items.pop(name, None) is not None:
            self._leave(name, self._standings.pop(name))
            self._until.clear(name)

    def _leave(self, name: str, standing: S) -> None:
        group = self.groups[standing]
        del group[name]
        if not group:
            del self.groups[standing]

    def pass_time(self, now: float) -> None:
        for name in self._until.due(now):
            self.place(name, self.items[name], now)

    def of(self, name: str) -> S:
        """The standing of an item."""
        return self._standings[name]

    @property
    def next_change(self) -> float | None:
        """When the next standing changes by itself."""
        return self._until.next

    def count(self, has: Callable[[S], object]) -> int:
        """Of how many items the standing is so."""
        return sum(len(group) for standing, group in self.groups.items() if has(standing))

    def names(self, has: Callable[[S], object]) -> list[str]:
        """Their names, in no order."""
        return [name for standing, group in self.groups.items() if has(standing) for name in group]


class PodsByStanding(Groups[Pod, S]):
    """The tally of a workload whose pods have a standing each."""

    def put(self, dependent: Pod, now: float) -> None:
        self.place(dependent.uid, dependent, now)

    def drop(self, dependent: Pod, now: float) -> None:
        self.remove(dependent.uid)


class Listed:
    """The tally of a workload that has few dependents of a kind, such as ControllerRevisions: these themselves."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.items: dict[str, Object] = {}  # by uid

    def counts(self, dependent: Object) -> bool:
        return True

    def put(self, dependent: Object, now: float) -> None:
        self.items[dependent.uid] = dependent

    def drop(self, dependent: Object, now: float) -> None:
        self.items.pop(dependent.uid, None)


class Tallies(Generic[T]):
    """See the module. `kinds`: of the workloads; `dependent`: the kind that is counted."""

    def __init__(self, kinds: Iterable[str], dependent: str = "Pod") -> None:
        self._kinds = frozenset(kinds)
        self._dependent = dependent
        self.by_uid: dict[str, T] = {}  # of workloads
        self._version = 0
        self._last: WatchEvent | None = None  # at that version; None if the log did not have it even then

    def catching_up(self, view: View, now: float) -> Generator[None, None, None]:
        """Have all tallies be of what is there now. In steps, between which nobody may write."""
        events = self._news(view)
        for number, event in enumerate(events, 1):
            self.observe(event, now)
            if not number % _STEP:
                yield

    def _news(self, view: View) -> Sequence[WatchEvent]:
        """What was written since the last time. All tallies go if that is not known: the log has been cut off, or is
        another one's, which the controller has been at in the meantime."""
        known = 1 if self._last is not None else 0
        since, self._version = self._version - known, view.version
        try:
            found = view.written_after(since) if self.by_uid else view.written_after(self._version - 1)
        except Gone:
            found = ()
        missed = self.by_uid and (len(found) != self._version - since or (known and found[0] is not self._last))
        if missed:
            self.by_uid.clear()
        self._last = found[-1] if found else None
        return found[known:] if self.by_uid else ()

    def observe(self, event: WatchEvent, now: float) -> None:
        old, new = event.old, event.new
        if new.kind in self._kinds and event.type == DELETED:
            self.by_uid.pop(new.uid, None)
        if new.kind != self._dependent:
            return
        after = controller_uid(new) if event.type != DELETED else ""
        before = controller_uid(old) if old is not None else ""
        if before and before != after and old is not None:
            self.change(before, lambda tally: tally.drop(old, now))
        if after in self.by_uid:
            if self._must_release(after, new):
                del self.by_uid[after]  # the workload does not count it, and has to let go of it
            else:
                self.change(after, lambda tally: (tally.put if tally.counts(new) else tally.drop)(new, now))

    def _must_release(self, uid: str, dependent: Object) -> bool:
        tally = self.by_uid[uid]
        selector = tally.terms.selector
        return selector is not None and tally.counts(dependent) and not selector.matches(dependent.labels)

    def change(self, uid: str, change: Callable[[T], None]) -> None:
        """Have a workload's tally take in a change, if there is one."""
        tally = self.by_uid.get(uid)
        try:
            if tally is not None:
                change(tally)
        except Exception:  # raised again by the next look, which makes the tally anew: there it is the workload's fault
            del self.by_uid[uid]

    def known(self, workload: Object, terms: Terms) -> T | None:
        """The workload's tally; None where its pods have to be gone through."""
        tally = self.by_uid.get(workload.uid)
        return tally if tally is not None and tally.terms == terms else None

    def making(
        self, workload: Object, tally: T, dependents: Iterable[Object], now: float, *, stays: bool
    ) -> Generator[None, None, None]:
        """Count these; `stays`: they are all that count of its own, and it lets go of none. In steps."""
        self.by_uid.pop(workload.uid, None)
        for number, dependent in enumerate(dependents, 1):
            tally.put(dependent, now)
            if not number % _STEP:
                yield
        if stays:
            self.by_uid[workload.uid] = tally

    def taking(
        self, workload: Object, begin: Callable[[], T], ownership: Ownership, view: View, now: float
    ) -> Generator[None, None, tuple[T, list[Write]]]:
        """The workload's tally, and the writes that adopt dependents and let go of them. In steps.

        `begin` gives an empty tally.
        """
        empty = begin()
        tally = self.known(workload, empty.terms)
        if tally is not None and not ownership.may_adopt(workload, view, tally.counts):
            return tally, []
        claimed = yield from ownership.claiming(workload, view, empty.counts)
        yield from self.making(workload, empty, claimed.dependents, now, stays=not claimed.writes)
        return empty, claimed.writes
