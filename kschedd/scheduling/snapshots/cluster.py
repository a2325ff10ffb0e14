"""A snapshot of a whole cluster, with a part from each owner of state; an `Engine` continues from it.

If the owners are actors, each makes its own part, in the order of the fields, one shortly after the other. So a part
may be a little newer than the one before, never older; the engine reconciles them.
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
    """A snapshot of a cluster, to be resumed once.

    `next_leftover_s`: the next flush of unschedulable pods; `start_s`: the origin of relative times. The store's log
    goes back to the earliest version that the scheduler or a controller has seen. `fresh`: controllers that begin with
    the present objects, such as those of a mirror's fork. `reading`: the engine is only read. It has no controllers,
    and its pods are not counted, which is most of the cost of a fork.
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
    """Return the version to which a store's log has to go back."""
    return min([driver.observed, *(each.version for each in controllers)])
