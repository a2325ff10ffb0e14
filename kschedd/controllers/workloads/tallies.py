"""Tallies: counts of the pods of a workload by state, updated from each event in the log.

A workload is reconciled whenever any of its pods changes. For a workload of 20,000 pods, examining all pods each time
would take most of the run time. The pods of a workload are therefore examined only once, to build a tally. For later
updates of a tally, the log shows which pods changed, including changes whose events have not been delivered yet, such
as the controller's own writes. A tally is rebuilt if the log is too short, or if the workload's terms have changed.

A tally stores the state of each pod (or of each node, if each node has one pod). A state is one of a few possible
values, such as "ready, of the old template". Pods are grouped by state. To count pods, the sizes of some groups are
added; to find pods that need an action, some groups are listed.

The object stores the tallies, and the log position up to which they are complete.
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

_STEP = 50  # number of pods or events processed between two pauses, in about 1 ms


@attrs.frozen
class Terms:
    """The conditions by which a workload counts pods.

    `selector` is None if the workload neither adopts nor releases pods.
    """

    selector: LabelSelector | None


class Tally(Protocol[D]):
    @property
    def terms(self) -> Terms: ...

    def counts(self, dependent: D) -> bool:
        """Return whether this pod of the workload is counted."""

    def put(self, dependent: D, now: float) -> None:
        """Add or update a pod that belongs to the tally."""

    def drop(self, dependent: D, now: float) -> None:
        """Remove a pod that no longer belongs to the tally."""


T = TypeVar("T", bound=Tally[Any])


class Groups(ABC, Generic[V, S]):
    """Items by name, grouped by state.

    A state may change because of time alone; `pass_time` applies such changes.
    """

    def __init__(self) -> None:
        self.items: dict[str, V] = {}  # in order of arrival
        self._states: dict[str, S] = {}
        self.groups: dict[S, dict[str, None]] = {}  # by state: names
        self._until: Timers[str] = Timers()

    @abstractmethod
    def state_of(self, item: V, now: float) -> tuple[S, float | None]:
        """Return the item's state, and the time (seconds) at which the state expires (None: never)."""

    def place(self, name: str, item: V, now: float) -> None:
        """Add or update an item."""
        state, until = self.state_of(item, now)
        self.items[name] = item
        before = self._states.get(name)
        if before != state:
            if before is not None:
                self._leave(name, before)
            self._states[name] = state
            self.groups.setdefault(state, {})[name] = None
        if until is None:
            self._until.clear(name)
        else:
            self._until.set(name, until)

    def remove(self, name: str) -> None:
        if self.items.pop(name, None) is not None:
            self._leave(name, self._states.pop(name))
            self._until.clear(name)

    def _leave(self, name: str, state: S) -> None:
        group = self.groups[state]
        del group[name]
        if not group:
            del self.groups[state]

    def pass_time(self, now: float) -> None:
        for name in self._until.due(now):
            self.place(name, self.items[name], now)

    def of(self, name: str) -> S:
        """Return the state of an item."""
        return self._states[name]

    @property
    def next_change(self) -> float | None:
        """The next time at which a state changes because of time alone."""
        return self._until.next

    def count(self, has: Callable[[S], object]) -> int:
        """Return the number of items whose state satisfies `has`."""
        return sum(len(group) for state, group in self.groups.items() if has(state))

    def names(self, has: Callable[[S], object]) -> list[str]:
        """Return the names of the items whose state satisfies `has`, in no particular order."""
        return [name for state, group in self.groups.items() if has(state) for name in group]


class PodsByState(Groups[Pod, S]):
    """The tally of a workload that assigns a state to each pod."""

    def put(self, dependent: Pod, now: float) -> None:
        self.place(dependent.uid, dependent, now)

    def drop(self, dependent: Pod, now: float) -> None:
        self.remove(dependent.uid)


class Listed:
    """The tally of a workload with few dependents of a kind, such as ControllerRevisions: a list of them."""

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
    """The tallies of all workloads of `kinds`; `dependent` is the kind of the counted objects."""

    def __init__(self, kinds: Iterable[str], dependent: str = "Pod") -> None:
        self._kinds = frozenset(kinds)
        self._dependent = dependent
        self.by_uid: dict[str, T] = {}  # by the workload's uid
        self._version = 0
        self._last: WatchEvent | None = None  # event at that version; None if the log no longer contains it

    def catching_up(self, view: View, now: float) -> Generator[None, None, None]:
        """Update all tallies to the current state, step by step.

        The caller must make no other write between the steps.
        """
        events = self._news(view)
        for number, event in enumerate(events, 1):
            self.observe(event, now)
            if not number % _STEP:
                yield

    def _news(self, view: View) -> Sequence[WatchEvent]:
        """Return the events since the last call.

        If these are unknown, drop all tallies: the log was truncated, or it belongs to another store.
        """
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
                del self.by_uid[after]  # the workload must release the pod, so it is not counted
            else:
                self.change(after, lambda tally: (tally.put if tally.counts(new) else tally.drop)(new, now))

    def _must_release(self, uid: str, dependent: Object) -> bool:
        tally = self.by_uid[uid]
        selector = tally.terms.selector
        return selector is not None and tally.counts(dependent) and not selector.matches(dependent.labels)

    def change(self, uid: str, change: Callable[[T], None]) -> None:
        """Apply a change to a workload's tally, if there is one."""
        tally = self.by_uid.get(uid)
        try:
            if tally is not None:
                change(tally)
        # the next sync rebuilds the tally, and the exception is raised again as a fault of the workload
        except Exception:
            del self.by_uid[uid]

    def known(self, workload: Object, terms: Terms) -> T | None:
        """Return the workload's tally; None if it must be rebuilt."""
        tally = self.by_uid.get(workload.uid)
        return tally if tally is not None and tally.terms == terms else None

    def making(
        self, workload: Object, tally: T, dependents: Iterable[Object], now: float, *, stays: bool
    ) -> Generator[None, None, None]:
        """Build a tally from these dependents, in steps.

        `stays` is true if the tally consists of these dependents and the workload releases none of them.
        """
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
        """Return, in steps, the workload's tally, and the writes that adopt and release dependents.

        `begin` returns an empty tally.
        """
        empty = begin()
        tally = self.known(workload, empty.terms)
        if tally is not None and not ownership.may_adopt(workload, view, tally.counts):
            return tally, []
        claimed = yield from ownership.claiming(workload, view, empty.counts)
        yield from self.making(workload, empty, claimed.dependents, now, stays=not claimed.writes)
        return empty, claimed.writes
