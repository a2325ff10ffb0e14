"""Synchronous execution of controllers: delivers events and performs writes until all controllers are idle.

For simulations, what-if forks and tests; the daemon runs each controller in its own actor. Time does not advance during
a call, only between calls.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

import attrs

from kschedd.controllers.copies import copy_of
from kschedd.controllers.jobs.cronjobs import CronJobs
from kschedd.controllers.running.controller import Controller
from kschedd.controllers.running.turns import concerning, take_turn
from kschedd.object_faults import ObjectFault
from kschedd.store.cluster_api import ClusterWriter, listed
from kschedd.store.objects.log import Cursor, WatchEvent

_ROUNDS = 100_000


class Watchable(ClusterWriter, Protocol):
    """An embedded cluster, whose writes can be read without waiting."""

    def watch(self, kinds: Iterable[str] | None = None, since_version: int | None = None) -> Cursor: ...


@attrs.frozen(eq=False)
class ControllerState:
    """A controller and its position: all events up to `version` except `first` have been delivered to it."""

    controller: Controller
    version: int
    first: Sequence[WatchEvent] = ()


class ControllerRunner:
    """Controllers attached to a store. Existing objects are first delivered to them as ADDED events.

    Controllers in `states` continue from their position instead.
    """

    def __init__(
        self, store: Watchable, controllers: Sequence[Controller] = (), *, states: Sequence[ControllerState] = ()
    ) -> None:
        self._store = store
        self._controllers = [*(state.controller for state in states), *controllers]
        self._cursors = [
            *(store.watch(state.controller.kinds, state.version) for state in states),
            *(store.watch(controller.kinds) for controller in controllers),
        ]
        self._first: list[Sequence[WatchEvent]] = [
            *(state.first for state in states),
            *(listed(store, controller.kinds) for controller in controllers),
        ]

    def states(self) -> list[ControllerState]:
        """Return a copy of each controller with its position."""
        return [
            ControllerState(copy_of(controller), cursor.version, tuple(first))
            for controller, cursor, first in zip(self._controllers, self._cursors, self._first, strict=True)
        ]

    @property
    def next_deadline(self) -> float | None:
        """Earliest deadline of the controllers; None if there is none."""
        # Retries of failed objects are not deadlines: virtual time must not advance only for them.
        times = [c.next_deadline for c in self._controllers if c.next_deadline is not None]
        return min(times, default=None)

    @property
    def next_work(self) -> float | None:
        """Earliest deadline of controllers other than CronJobs, which always have a next one; None if there is none."""
        others = [c for c in self._controllers if not isinstance(c, CronJobs)]
        return min([c.next_deadline for c in others if c.next_deadline is not None], default=None)

    def faults(self) -> list[ObjectFault]:
        """Return the objects that a controller failed to handle."""
        return [fault for controller in self._controllers for fault in controller.faults.faults()]

    def run_until_idle(self) -> int:
        """Run the controllers until all are idle. Return the number of writes performed."""
        done = 0
        for _ in range(_ROUNDS):
            now = self._store.now
            idle = True
            for place, controller in enumerate(self._controllers):
                events = concerning(controller, [*self._first[place], *self._cursors[place].take()])
                self._first[place] = []
                due = controller.next_deadline
                if events or (due is not None and due <= now):
                    idle = False
                    done += take_turn(controller, events, self._store)
            if idle:
                return done
        raise AssertionError("the controllers go on writing for ever: two of them undo each other's work")
