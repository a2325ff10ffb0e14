"""A snapshot of a whole cluster, with a part from each owner of state. An `Engine` continues from the snapshot.

If the owners are actors, they create their parts in the order of the fields, one shortly after the other. Each part may
therefore be slightly newer than the previous part, but never older. The engine reconciles the parts.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from kschedd.queue.snapshot import QueueSnapshot
from kschedd.scheduling.snapshots.fork import DriverSnapshot
from kschedd.store.cluster_api import ClusterWriter

if TYPE_CHECKING:
    from kschedd.controllers.runner import ControllerState
    from kschedd.controllers.running.controller import Controller


@attrs.frozen(eq=False)
class ClusterSnapshot:
    """A snapshot of a cluster, which may be resumed once.

    `next_leftover_s` is the time of the next flush of unschedulable pods; `start_s` is the origin of relative times;
    both are in seconds. The store's log reaches back to the earliest version that the scheduler or a controller has
    observed. `fresh` contains controllers that begin with the present objects, such as the controllers of a mirror's
    fork. `reading` is true if the engine is only read. An engine that is only read has no controllers and does not
    count its pods, which saves most of the cost of a fork.
    """

    driver: DriverSnapshot
    queue: QueueSnapshot
    controllers: "Sequence[ControllerState]"
    store: ClusterWriter
    now_s: float
    start_s: float
    next_leftover_s: float
    fresh: "Sequence[Controller]" = ()
    reading: bool = False


def earliest(driver: DriverSnapshot, controllers: "Sequence[ControllerState]") -> int:
    """Return the version to which a store's log must reach back."""
    return min([driver.observed, *(each.version for each in controllers)])
