"""A snapshot of a whole cluster: its store, scheduler, queue and controllers. An `Engine` continues from the snapshot.

In a daemon, actors create the parts one after the other, in the order of the fields. Each part may
therefore be slightly newer than the previous part, but never older. The engine reconciles the parts of the snapshot.
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
    both are in seconds. The store's log begins no later than the earliest version that the scheduler or a controller
    has observed. `fresh` contains controllers that start from the present objects, such as the controllers of a
    mirror's fork. `reading` is true if the engine will not schedule. An engine that will not schedule has no
    controllers and does not count its pods, which saves most of the cost of a fork. `stopped` is true if the engine
    copies the debugger, and is therefore stopped where the cluster is stopped.
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
    stopped: bool = False


def earliest(driver: DriverSnapshot, controllers: "Sequence[ControllerState]") -> int:
    """Return the first version that a store's log must contain."""
    return min([driver.observed, *(each.version for each in controllers)])
