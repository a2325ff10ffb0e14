"""Running controllers by hand: deliver events and carry out writes until the cluster has come to rest.

For simulations, what-if forks and tests; the daemon runs each controller in an actor of its own. Everything happens
at one moment: time only passes between two calls.
"""

from collections.abc import Sequence

from kschedd.controllers.controller import Controller
from kschedd.controllers.turns import take_turn
from kschedd.object_faults import ObjectFault
from kschedd.store.log import ADDED, WatchEvent
from kschedd.store.store import Store

_ROUNDS = 100_000


class Settling:
    """Controllers joined to a store. They first hear of everything that is there as if it had just been added."""

    def __init__(self, store: Store, controllers: Sequence[Controller]) -> None:
        self._store = store
        self._controllers = controllers
        self._cursors = [store.watch(controller.kinds) for controller in controllers]
        self._first = [listed(store, controller.kinds) for controller in controllers]

    @property
    def wake_at(self) -> float | None:
        """The next time at which a controller has something to do of itself."""
        # What could not be handled is tried again when something happens: time must not go on for its sake alone.
        times = [c.wake_at for c in self._controllers if c.wake_at is not None]
        return min(times, default=None)

    def faults(self) -> list[ObjectFault]:
        """The objects that some controller could not handle."""
        return [fault for controller in self._controllers for fault in controller.faults.faults()]

    def settle(self) -> int:
        """Go on until nobody has anything to write; returns the number of writes that were carried out."""
        done = 0
        for _ in range(_ROUNDS):
            now = self._store.now
            idle = True
            for place, controller in enumerate(self._controllers):
                events = self._first[place] + self._cursors[place].take()
                self._first[place] = []
                due = controller.wake_at
                if events or (due is not None and due <= now):
                    idle = False
                    done += take_turn(controller, events, self._store)
            if idle:
                return done
        raise AssertionError("the controllers go on writing for ever: two of them undo each other's work")


def listed(store: Store, kinds: frozenset[str] | None) -> list[WatchEvent]:
    """All objects of these kinds as ADDED events: what a watcher starts from, before it watches `store.version` on."""
    return [
        WatchEvent(ADDED, None, obj, obj.resource_version)
        for kind in store.kinds()
        if kinds is None or kind in kinds
        for obj in store.list(kind)
    ]
