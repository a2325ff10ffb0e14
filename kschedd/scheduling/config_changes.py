"""Changes of the configuration at run time, which can be undone in reverse order.

This class stores the configuration that preceded each change. Undoing a change restores the previous configuration; the
latest change is undone first. The queue receives each change, and the pending pods of profiles that were added or
removed.
"""

from collections import deque
from typing import Annotated, Any, Final

import attrs

from kschedd.config.changing.values import changed_origins, values
from kschedd.config.model import Config
from kschedd.errors import KscheddError
from kschedd.queue.entry import SECOND
from kschedd.queue.operations import EventsObserved, Reconfigured
from kschedd.queue.scheduling_queue import QueueSettings
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.inputs import ChangeConfig, Reconfigure, UndoConfigChange
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.nominations.pending import PendingPods
from kschedd.scheduling.popped import PoppedPods
from kschedd.store.objects.log import ADDED, DELETED, EventType, WatchEvent

CHANGES_KEPT: Final = 100


@attrs.frozen
class ChangedValue:
    path: str
    before: Annotated[Any, "the old value; null if there was none"]
    after: Annotated[Any, "the new value; null if there is none"]


@attrs.frozen(eq=False)
class ConfigChange:
    number: int
    at_s: float
    what: str
    before: Config
    after: Config

    @property
    def values(self) -> list[ChangedValue]:
        old = {one.path: one.value for one in values(self.before)}
        new = {one.path: one.value for one in values(self.after)}
        return [
            ChangedValue(path, old.get(path), new.get(path))
            for path in (*old, *(path for path in new if path not in old))
            if old.get(path) != new.get(path)
        ]


@attrs.define(eq=False)
class NothingToUndo(KscheddError, rpc_code="conflict"):
    """The error if no configuration change is left to undo."""

    def __str__(self) -> str:
        return "the configuration is as at the start: there is no change to undo"


class ConfigChanges:
    """The changes of a driver's configuration."""

    def __init__(self, machine: SchedulingMachine, pending: PendingPods, effects: Effects, popped: PoppedPods) -> None:
        self._machine = machine
        self._pending = pending
        self._effects = effects
        self._popped = popped
        self.made: deque[ConfigChange] = deque(maxlen=CHANGES_KEPT)
        self.count = 0

    @property
    def latest(self) -> ConfigChange:
        """The latest change. Raises NothingToUndo."""
        if not self.made:
            raise NothingToUndo()
        return self.made[-1]

    def change(self, given: ChangeConfig, now: float) -> ConfigChange:
        """Use a new configuration; the change can be undone."""
        before, origin = self._machine.config, f"change {self.count + 1}"
        config = attrs.evolve(given.config, origins=changed_origins(before, given.config, origin))
        self._use(config)
        self.count += 1
        change = ConfigChange(self.count, now, given.what, before, config)
        self.made.append(change)
        return change

    def undo(self, given: UndoConfigChange, now: float) -> ConfigChange:
        """Undo the latest change. Raises NothingToUndo."""
        change = self.latest
        self._use(change.before)
        self.made.pop()
        return change

    def reconfigure(self, given: Reconfigure, now: float) -> Config:
        """Use a new configuration and return the previous one, without counting a change."""
        return self._use(given.config)

    def _use(self, config: Config) -> Config:
        machine = self._machine
        before, served = machine.config, frozenset(machine.schedulers)
        machine.reconfigure(config)
        serves = frozenset(machine.schedulers)
        # Removals precede the new configuration and additions follow it, because the queue ignores pods of unknown
        # profiles.
        self._tell_of_pods(served - serves, DELETED)
        self._effects.queue.append(self.for_queue())
        self._tell_of_pods(serves - served, ADDED)
        return before

    def _tell_of_pods(self, profiles: frozenset[str], event: EventType) -> None:
        """Remove the pending pods of removed profiles from the queue, and add the pods of new profiles."""
        if not profiles:
            return
        cluster, popped = self._machine.cluster, {entry.uid for entry in self._popped.entries}
        pods = [
            pod
            for pod in self._pending.pods.values()
            if pod.scheduler_name in profiles and pod.uid not in popped and not cluster.is_assumed(pod)
        ]
        events = [WatchEvent(event, None, pod, pod.resource_version) for pod in pods]
        if events:
            for pod in pods:
                self._pending.handed_over(pod.uid)
            self._effects.queue.append(EventsObserved(events, frozenset(), frozenset()))

    def for_queue(self) -> Reconfigured:
        """Return the part of the configuration that the queue needs."""
        machine = self._machine
        config = machine.config
        return Reconfigured(
            machine.has_out_of_tree,
            frozenset(machine.schedulers),
            QueueSettings(
                config.pod_initial_backoff_s * SECOND,
                config.pod_max_backoff_s * SECOND,
                config.feature_gates.get("SchedulerPopFromBackoffQ", True),
                config.unschedulable_flush_s * SECOND,
                config.rules.bound_nominees_wake_none,
                config.rules.gated_pods_flushed,
                config.rules.gated_nominations_kept,
                config.rules.groups_queued,
                config.rules.resize_rules if config.rules.resizes_preempt else None,
            ),
            machine.sort_key(),
            machine.pre_enqueue(),
            machine.registrations(),
        )
