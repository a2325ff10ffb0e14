"""Forks: a copy of a whole cluster as it is now, which goes on by itself in virtual time.

    snapshot ──▶ ClusterSnapshot ──▶ Engine.resumed(snapshot)

A snapshot has a part for each owner of state: driver, queue, controllers, store. Where they are actors, each gives its
own, in this order, a moment after the other. So each part may be a little newer than the one before, never older, and
the engine brings them together (`reconciled`): the driver and every controller go on from the version of the store that
each had seen, with the events since then; a pod that was on its way from one owner to another is put where it was
going. While nothing happens in the cluster, the parts are of one moment, and the fork decides what the cluster itself
would decide.

An engine's own snapshot (`Engine.snapshot`) is of one moment always: so a fork can be forked.
"""

from collections.abc import Sequence

import attrs

from kschedd.controllers.runner import ControllerState
from kschedd.queue.entry import SubQueue
from kschedd.queue.scheduling_queue import SchedulingQueue
from kschedd.queue.snapshot import QueueSnapshot
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.fork import DriverSnapshot
from kschedd.store.store import Store


@attrs.frozen(eq=False)
class SchedulerSnapshot:
    """`version`: every write up to this one has been observed by the driver."""

    driver: DriverSnapshot
    version: int


@attrs.frozen(eq=False)
class ClusterSnapshot:
    """See the module. To be resumed once. `next_leftover_s`: the next flush of unschedulable pods.

    The store's log goes back to the earliest version that the scheduler or a controller has seen.
    """

    scheduler: SchedulerSnapshot
    queue: QueueSnapshot
    controllers: Sequence[ControllerState]
    store: Store
    now_s: float
    start_s: float
    next_leftover_s: float


def earliest(scheduler: SchedulerSnapshot, controllers: Sequence[ControllerState]) -> int:
    """The version that a store's log has to go back to."""
    return min([scheduler.version, *(each.version for each in controllers)])


def reconciled(driver: SchedulingDriver, queue: SchedulingQueue, now_ns: int) -> None:
    """Have each pending pod in one place: see the module."""
    attempted = {entry.uid for entry in driver.popped_entries}
    for entry in driver.popped_entries:
        queued = queue.entry(entry.key)
        if queued is not None and queued.uid == entry.uid and queued.place is not SubQueue.IN_FLIGHT:
            driver.hand_back(entry.uid)
    popped = [
        entry
        for entry in queue.in_flight_pods()
        if entry.uid not in attempted and entry.uid not in driver.binding_cycles
    ]
    if popped:
        driver.popped(popped)
    held = {entry.uid for entry in (*queue.entries(), *queue.in_flight_pods(), *driver.popped_entries)}
    for pod in driver.pending.waiting_for_queue(held):
        if driver.machine.responsible(pod.scheduler_name) and not driver.machine.cluster.is_assumed(pod):
            queue.add(pod, now_ns)
