"""A snapshot of a whole cluster, a part from each owner of state: an `Engine` goes on from it.

Where the owners are actors, each gives its own part, in the order of the fields, a moment after the other. So each part
may be a little newer than the one before, never older; the engine brings them together.
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
    """To be resumed once. `next_leftover_s`: the next flush of unschedulable pods; `start_s`: what times are told from.
    `fresh`: controllers that begin with what is there, such as those of a mirror's fork.

    The store's log goes back to the earliest version that the scheduler or a controller has seen.
    """

    driver: DriverSnapshot
    queue: QueueSnapshot
    controllers: "Sequence[ControllerState]"
    store: ClusterWriter
    now_s: float
    start_s: float
    next_leftover_s: float
    fresh: "Sequence[Controller]" = ()


def earliest(driver: DriverSnapshot, controllers: "Sequence[ControllerState]") -> int:
    """The version that a store's log has to go back to."""
    return min([driver.observed, *(each.version for each in controllers)])
