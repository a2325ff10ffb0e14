"""The controller interface: a synchronous rule that receives events and returns the writes to perform.

A controller may keep state such as deadlines for objects to reconcile again; it reads the cluster through a `View`, and
observes the results of its own writes, like everything else, as events.

A controller may have a method `concerns(event) -> bool` as well: events for which it is False are not delivered, and if
there are no others it is not woken and has no turn, which holds the store. It is asked before the turn, maybe of an
event behind what is there; so it may be False only where the event changes nothing that the controller keeps, and where
what it comes to know later (a budget, say, that covers the pod) has it read what is there.

One whose `reconcile` may take long, as over a workload of thousands of pods, is `InSteps`: its `reconciling` does the
same in steps. Between two of them others have the event loop, but nobody may read or write the cluster.

It handles each object through its `faults`, so that a failure with one object does not affect the others.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Final, Protocol, TypeVar

from kschedd.api.objects import Object
from kschedd.object_faults import FaultLedger
from kschedd.store.cluster_api import ClusterReader
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import WatchEvent
from kschedd.store.writes import Write
from kschedd.values import in_parts, run_steps

View = ClusterReader  # a controller's read access to the cluster
Reconciling = Generator[None, None, list[Write]]  # a reconcile in steps
T = TypeVar("T", bound=Object)

_PART: Final = 100  # objects gone through between two pauses: about 1 ms


def of_each(objects: Iterable[T], writes: Callable[[T], Iterable[Write]]) -> Reconciling:
    """What there is to write for each of the objects, of which there may be many. In steps."""
    found: list[Write] = []
    for some in in_parts(objects, _PART):
        for each in some:
            found += writes(each)
        yield
    return found


class Controller(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def faults(self) -> FaultLedger[list[Write]]:
        """The objects it could not handle. The runner calls `retry` when a retry is due."""

    @property
    def kinds(self) -> frozenset[str] | None:
        """The kinds it watches; None for all."""

    @property
    def next_deadline(self) -> float | None:
        """The next deadline (seconds) at which `reconcile` is to be called even without events; None for none."""

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        """Reconcile after these events (none if only a deadline has passed); returns the writes to perform."""

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Handle the refusal of one of its writes; returns the writes to perform instead."""


class InSteps(ABC):
    """A controller that reconciles in steps."""

    @abstractmethod
    def reconciling(self, events: Sequence[WatchEvent], view: View, now: float) -> Reconciling: ...

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        return run_steps(self.reconciling(events, view, now))
