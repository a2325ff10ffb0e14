"""The controller interface: a synchronous rule that receives events and returns the writes to perform.

A controller may keep state such as deadlines for objects to reconcile again. A controller reads the cluster through a
`View`, and receives the results of its own writes as events, like all other changes.

A controller may also have a method `concerns(event) -> bool`. Events for which it returns False are not delivered. If
there are no other events, the controller has no turn, which would block the store. The method is called before the
turn; the event may be older than the cluster's state. `concerns` may therefore return False only if the event changes
nothing in the controller's state. The controller must then read the current cluster state when necessary (for example,
for a new budget that covers the pod).

If `reconcile` may take long, for example for a workload of thousands of pods, the controller derives from `InSteps`,
and its method `reconciling` does the work in steps. Between two steps other tasks run on the event loop, but no task
may read or write the cluster.

A controller handles each object through its `faults`, so that a failure with one object does not affect other objects.
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
    """Return the writes for each object, in steps, because there may be many objects."""
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
        """The objects that the controller failed to handle. The runner calls `retry` when a retry is due."""

    @property
    def kinds(self) -> frozenset[str] | None:
        """The kinds that the controller watches; None means all kinds."""

    @property
    def next_deadline(self) -> float | None:
        """Next time (in seconds) at which `reconcile` must be called even without events, or None."""

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        """Reconcile after these events, or after a deadline if there are none. Return the writes to perform."""

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Handle the rejection of a write of this controller, unless the write created an Event.

        Return the writes to perform instead of the rejected write.
        """


class InSteps(ABC):
    """A controller that reconciles in steps."""

    @abstractmethod
    def reconciling(self, events: Sequence[WatchEvent], view: View, now: float) -> Reconciling: ...

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        return run_steps(self.reconciling(events, view, now))
