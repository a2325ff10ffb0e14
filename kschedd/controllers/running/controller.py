"""The controller interface: a synchronous rule that receives events and returns the writes to perform.

A controller may store state, such as the times at which to reconcile objects again. A controller reads the cluster
through a `View`. The results of its own writes are delivered as events, like all other changes.

A controller may also have a method `concerns(event) -> bool`. Events for which `concerns` returns False are not
delivered. If all events are filtered out, the controller does not run, so the store is not blocked. `concerns` is
called before the reconcile; its event may be older than the cluster's state. `concerns` must return True if the event
can change the controller's state.

A controller may also have a method `on_performed(write, obj, view, now)`. `on_performed` is called after each
successful write, with the resulting object, and returns the Events to write.

A controller with deadlines that recur without end has a property `next_work`, the next time of its other work, or
None. A controller that retries rejected creations has an attribute `creations`, a `CreateBackoff`; in the same state of
the cluster, a retry would be rejected again, so `next_work` excludes these retries.

If `reconcile` may take long, for example for a workload of thousands of pods, the controller derives from `InSteps`;
its method `reconciling` then does the work in steps. Between two steps other tasks run, but no task may read or write
the cluster.

A controller handles each object through its `faults`, so that a failure of one object does not affect other objects.
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

_PART: Final = 100  # number of objects processed between two pauses, in about 1 ms


def of_each(objects: Iterable[T], writes: Callable[[T], Iterable[Write]]) -> Reconciling:
    """Return the writes for each object, in steps."""
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
        """The next time (in seconds) at which `reconcile` must be called even without events, or None."""

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        """Reconcile after these events, or after a deadline if there are none; return the writes to perform."""

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Handle the rejection of a write (writes of Events excepted); return other writes to perform instead."""


class InSteps(ABC):
    """A controller that reconciles in steps."""

    @abstractmethod
    def reconciling(self, events: Sequence[WatchEvent], view: View, now: float) -> Reconciling: ...

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        return run_steps(self.reconciling(events, view, now))
