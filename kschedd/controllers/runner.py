"""Synchronous execution of controllers: delivers events and performs writes until all controllers are idle.

Simulations, forks and tests use this module; the daemon runs each controller in its own actor. Time does not
advance during a call, only between calls.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Protocol

import attrs

from kschedd.controllers.autoscaling.autoscalers import Autoscalers
from kschedd.controllers.copies import copy_of
from kschedd.controllers.descheduling import Descheduler
from kschedd.controllers.event_expiry import EventExpiry
from kschedd.controllers.jobs.cronjobs import CronJobs
from kschedd.controllers.running.controller import Controller
from kschedd.controllers.running.turns import concerned, concerning, take_turn
from kschedd.object_faults import ObjectFault
from kschedd.store.cluster_api import ClusterWriter, listed
from kschedd.store.objects.log import Cursor, WatchEvent

_ROUNDS = 100_000
_PERIODIC = (Autoscalers, CronJobs, Descheduler, EventExpiry)  # controllers that always have a deadline

_Inbox = tuple[Callable[[WatchEvent], bool] | None, list[WatchEvent]]
"""The condition on the events of an inbox, and its events."""


class Watchable(ClusterWriter, Protocol):
    """An embedded cluster whose writes can be read without waiting."""

    def watch(self, kinds: Iterable[str] | None = None, since_version: int | None = None) -> Cursor: ...


@attrs.frozen(eq=False)
class ControllerState:
    """A controller and its position: it has received all events up to `version` except `first`."""

    controller: Controller
    version: int
    first: Sequence[WatchEvent] = ()


class ControllerRunner:
    """Controllers attached to a store. Existing objects are first delivered to the controllers as ADDED events.

    Controllers in `states` continue from their position instead. All controllers share one position in the event log.
    An event is delivered only to the controllers that it concerns. Only controllers with an event or a due deadline
    reconcile. A controller's deadline, and the result of its `concerns`, change only while it reconciles.
    """

    def __init__(
        self, store: Watchable, controllers: Sequence[Controller] = (), *, states: Sequence[ControllerState] = ()
    ) -> None:
        self._store = store
        self._controllers = [*(state.controller for state in states), *controllers]
        first = [
            *([*state.first, *store.watch(state.controller.kinds, state.version).take()] for state in states),
            *(listed(store, controller.kinds) for controller in controllers),
        ]
        self._inboxes: list[list[WatchEvent]] = [
            list(concerning(controller, events)) for controller, events in zip(self._controllers, first, strict=True)
        ]
        self._cursor = store.watch(None)
        self._watching: dict[str, Sequence[_Inbox]] = {}  # inboxes for the events of each kind
        self._deadlines = [_deadline(controller) for controller in self._controllers]

    def states(self) -> list[ControllerState]:
        """Return a copy of each controller with its position."""
        self._receive()
        return [
            ControllerState(copy_of(controller), self._cursor.version, tuple(inbox))
            for controller, inbox in zip(self._controllers, self._inboxes, strict=True)
        ]

    @property
    def next_deadline(self) -> float | None:
        """The earliest deadline of the controllers, or None."""
        # Retries of failed objects are excluded, because virtual time must not advance only for a retry.
        return _finite(min(self._deadlines, default=math.inf))

    @property
    def next_work(self) -> float | None:
        """The earliest deadline of the controllers whose work ends; or None."""
        others = [
            _next_work(controller, at)
            for controller, at in zip(self._controllers, self._deadlines, strict=True)
            if not isinstance(controller, _PERIODIC)
        ]
        return _finite(min(others, default=math.inf))

    def rejected_creations(self) -> frozenset[Any]:
        """Return the workloads whose controllers retry the creation of rejected objects."""
        found = [each.creations.rejected for each in self._controllers if hasattr(each, "creations")]
        return frozenset(chain.from_iterable(found))

    def faults(self) -> list[ObjectFault]:
        """Return the objects that a controller failed to handle."""
        return [fault for controller in self._controllers for fault in controller.faults.faults()]

    def run_until_idle(self) -> int:
        """Run the controllers until all are idle; return the number of writes."""
        done = 0
        for _ in range(_ROUNDS):
            now = self._store.now
            self._receive()
            if not any(self._inboxes) and min(self._deadlines, default=math.inf) > now:
                return done
            for place, inbox in enumerate(self._inboxes):
                if inbox or self._deadlines[place] <= now:
                    events = inbox.copy()
                    inbox.clear()
                    controller = self._controllers[place]
                    done += take_turn(controller, events, self._store)
                    self._deadlines[place] = _deadline(controller)
                    self._receive()
        raise AssertionError("the controllers never stop writing: two of them undo each other's writes")

    def _receive(self) -> None:
        """Put new events into the inboxes of the controllers that they concern."""
        if not self._cursor.behind:
            return
        for event in self._cursor.take():
            kind = event.new.kind
            inboxes = self._watching.get(kind)
            if inboxes is None:
                inboxes = self._watching[kind] = [
                    (concerned(controller), inbox)
                    for controller, inbox in zip(self._controllers, self._inboxes, strict=True)
                    if controller.kinds is None or kind in controller.kinds
                ]
            for concerns, inbox in inboxes:
                if concerns is None or concerns(event):
                    inbox.append(event)


def _next_work(controller: Controller, deadline: float) -> float:
    """Return the next deadline of a controller's work that ends, or infinity if it has none."""
    if not hasattr(controller, "next_work"):
        return deadline
    at: float | None = controller.next_work
    return math.inf if at is None else at


def _deadline(controller: Controller) -> float:
    """Return the controller's next deadline, or infinity if it has none."""
    at = controller.next_deadline
    return math.inf if at is None else at


def _finite(at: float) -> float | None:
    return None if at == math.inf else at
