"""The controller interface: a synchronous rule that receives events and returns the writes to perform.

A controller may keep state such as deadlines for objects to reconcile again. It reads the cluster through a `View`, and
receives the results of its own writes, like everything else, as events.

A controller may also have a method `concerns(event) -> bool`. Events for which it returns False are not delivered; if
there are no others, the controller has no turn, which would block the store. The method is called before the turn,
possibly with an event older than the cluster's state. It may therefore return False only if the event changes nothing
that the controller keeps, and if the controller reads the current state when it needs it later (such as for a new
budget that covers the pod).

A controller whose `reconcile` may take long, for example for a workload of thousands of pods, is `InSteps`: its
`reconciling` does the same step by step. Between two steps other tasks run on the event loop, but none may read or
write the cluster.

A controller handles each object through its `faults`, so that a failure with one object does not affect the others.
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

_PART: Final = 100  # objects processed between two pauses: about 1 ms


def of_each(objects: Iterable[T], writes: Callable[[T], Iterable[Write]]) -> Reconciling:
    """Return the writes for each of (possibly many) objects, step by step."""
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
        """The objects it failed to handle. The runner calls `retry` when a retry is due."""

    @property
    def kinds(self) -> frozenset[str] | None:
        """The kinds it watches; None for all."""

    @property
    def next_deadline(self) -> float | None:
        """Next time (in seconds) at which `reconcile` must be called even without events; None for none."""

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        """Reconcile after these events (none if only a deadline has passed). Return the writes to perform."""

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Handle the rejection of one of its writes other than Events. Return the writes to perform instead."""


class InSteps(ABC):
    """A controller that reconciles in steps."""

    @abstractmethod
    def reconciling(self, events: Sequence[WatchEvent], view: View, now: float) -> Reconciling: ...

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        return run_steps(self.reconciling(events, view, now))
