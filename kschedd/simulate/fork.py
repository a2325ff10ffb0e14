"""Forks: a copy of a whole cluster as it is now, which goes on by itself in virtual time.

    ClusterSnapshot (kschedd.scheduling.snapshots.cluster) ──▶ Engine(resumed=...)

A snapshot has a part for each owner of state: driver, queue, controllers, store. Each part may be a little newer than
the one before, and the engine brings them together (`reconciled`): the driver and every controller go on from the
version of the store that each had seen, with the events since then; a pod that was on its way from one owner to another
is put where it was going. While nothing happens in the cluster, the parts are of one moment, and the fork decides what
the cluster itself would decide.

An engine's own snapshot (`Engine.snapshot`) is of one moment always: so a fork can be forked.
"""

from kschedd.queue.entry import SubQueue
from kschedd.queue.scheduling_queue import SchedulingQueue
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.inputs import PodsPopped


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
        if entry.uid not in attempted and entry.uid not in driver.bindings.cycles
    ]
    if popped:
        driver.step(PodsPopped(popped))
    held = {entry.uid for entry in (*queue.entries(), *queue.in_flight_pods(), *driver.popped_entries)}
    for pod in driver.pending.waiting_for_queue(held):
        if driver.machine.responsible(pod.scheduler_name) and not driver.machine.cluster.is_assumed(pod):
            queue.add(pod, now_ns)
