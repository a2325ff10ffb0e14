"""Queueing hints: the plugins that rejected a pod decide whether an event may make the pod schedulable.

Source: Kubernetes v1.34, scheduler/backend/queue/scheduling_queue.go (isEventOfInterest, isPodWorthRequeuing). Only
SchedulingQueue and UnschedulablePods call this class. A hint that raises an exception is treated as Queue, so that no
pod gets stuck, and is reported to `on_fault`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import IntEnum, auto
from typing import Any

import attrs

from kschedd.api.pods import Pod, PodSignature
from kschedd.framework.events import (
    QUEUE,
    QUEUE_SKIP,
    ClusterEvent,
    ClusterEventWithHint,
    Concerns,
    Hint,
    QueueingHint,
    matches,
)
from kschedd.queue.entry import QueuedPod
from kschedd.queue.times import QueueTimes

Registrations = Mapping[str, Mapping[str, Sequence[ClusterEventWithHint]]]
"""scheduler name -> plugin -> its registered events and hints (see `kschedd.framework.events.hint_map`)."""

FaultReport = Callable[[str, str, Exception], None]
"""Called with the plugin, the pod's key, and the exception that the plugin raised."""


class Strategy(IntEnum):
    SKIP = auto()
    AFTER_BACKOFF = auto()
    IMMEDIATELY = auto()


@attrs.frozen
class RequeueDecision:
    strategy: Strategy
    plugin: str = ""  # plugin whose hint returned Queue; "" if no hint was called


SKIP = RequeueDecision(Strategy.SKIP)
AFTER_BACKOFF = RequeueDecision(Strategy.AFTER_BACKOFF)


@attrs.frozen(eq=False)
class MatchedRegistration:
    """A registration that matches an event."""

    plugin: str
    hint: Hint | None
    by_signature: bool
    concerns: Concerns | None = None

    def concerned(self, signature: PodSignature, old: Any, new: Any) -> Collection[str] | None:
        """Return the pods of the signature for which the hint may return Queue; None means any pod of the signature."""
        return None if self.hint is None or self.concerns is None else self.concerns(signature, old, new)


@attrs.define(eq=False)
class HintTable:
    registrations: Registrations
    on_fault: FaultReport | None = None
    times: QueueTimes | None = None
    _matching: dict[tuple[str, str, int], tuple[MatchedRegistration, ...] | None] = attrs.field(
        factory=dict, init=False
    )
    _relevant: dict[tuple[str, str, int, frozenset[str], frozenset[str]], tuple[MatchedRegistration, ...] | None] = (
        attrs.field(factory=dict, init=False)
    )
    _of_interest: dict[ClusterEvent, bool] = attrs.field(factory=dict, init=False)
    _registered_for: dict[tuple[str, str, int], bool] = attrs.field(factory=dict, init=False)

    def of_interest(self, event: ClusterEvent) -> bool:
        """Return whether any plugin of any profile is registered for this event."""
        known = self._of_interest.get(event)
        if known is None:
            known = event.wildcard or any(self.matching(profile, event) for profile in self.registrations)
            self._of_interest[event] = known
        return known

    def is_registered_for(self, plugin: str, event: ClusterEvent) -> bool:
        """Return whether the plugin, in any profile, is registered for this event."""
        kind = (plugin, event.resource.value, event.action.value)
        known = self._registered_for.get(kind)
        if known is None:
            known = any(
                matches(registered.event, event)
                for plugins in self.registrations.values()
                for registered in plugins.get(plugin, ())
            )
            self._registered_for[kind] = known
        return known

    def matching(self, profile: str, event: ClusterEvent) -> tuple[MatchedRegistration, ...] | None:
        """Return the registrations that match the event, in the order of the plugins; None for an unknown profile."""
        kind = (profile, event.resource.value, event.action.value)
        if kind not in self._matching:
            plugins = self.registrations.get(profile)
            self._matching[kind] = (
                None
                if plugins is None
                else tuple(
                    MatchedRegistration(plugin, registered.hint, registered.by_signature, registered.concerns)
                    for plugin, events in plugins.items()
                    for registered in events
                    if matches(registered.event, event)
                )
            )
        return self._matching[kind]

    def relevant(
        self, profile: str, unschedulable: frozenset[str], pending: frozenset[str], event: ClusterEvent
    ) -> tuple[MatchedRegistration, ...] | None:
        """Return the registrations in `matching` of the plugins in either set; None for an unknown profile."""
        kind = (profile, event.resource.value, event.action.value, unschedulable, pending)
        if kind not in self._relevant:
            found = self.matching(profile, event)
            self._relevant[kind] = (
                None if found is None else tuple(a for a in found if a.plugin in unschedulable or a.plugin in pending)
            )
        return self._relevant[kind]

    def decide(self, entry: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> RequeueDecision:
        """Return how the event requeues one pod. This method implements the reference rule, without an index."""
        if not entry.unschedulable_plugins and not entry.pending_plugins:
            return AFTER_BACKOFF
        if event.wildcard:
            # A wildcard event for one pod (ForceActivate) applies to that pod only.
            if new is not None and not (isinstance(new, Pod) and new.uid == entry.pod.uid):
                return SKIP
            return AFTER_BACKOFF
        relevant = self.relevant(entry.pod.scheduler_name, entry.unschedulable_plugins, entry.pending_plugins, event)
        if relevant is None:
            return AFTER_BACKOFF
        return self.combine(entry, relevant, event, old, new, None)

    def combine(
        self,
        entry: QueuedPod,
        relevant: tuple[MatchedRegistration, ...],
        event: ClusterEvent,
        old: Any,
        new: Any,
        answers: dict[tuple[int, PodSignature], QueueingHint] | None,
    ) -> RequeueDecision:
        """Call the hints of the registrations that match one event.

        `answers` caches results that are valid for all pods of the signature.
        """
        pending = entry.pending_plugins
        decision = SKIP
        for number, registration in enumerate(relevant):
            if registration.hint is None:
                hint = QUEUE
            elif registration.by_signature and answers is not None:
                which = (number, entry.pod.signature)
                known = answers.get(which)
                if known is None:
                    known = answers[which] = self._call(registration, entry, event, old, new)
                hint = known
            else:
                hint = self._call(registration, entry, event, old, new)
            if hint is QUEUE_SKIP:
                continue
            if registration.plugin in pending:
                return RequeueDecision(Strategy.IMMEDIATELY, registration.plugin)
            if decision is SKIP:
                decision = RequeueDecision(Strategy.AFTER_BACKOFF, registration.plugin)
            if not pending:
                break
        return decision

    def answers(self, entry: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> list[tuple[str, str]]:
        """Return each rejecting plugin's hint result for the event, to explain why the pod was not requeued."""
        answer: dict[str, QueueingHint] = {}
        for registration in self.matching(entry.pod.scheduler_name, event) or ():
            hint = QUEUE if registration.hint is None else self._call(registration, entry, event, old, new)
            if answer.get(registration.plugin) is not QUEUE:
                answer[registration.plugin] = hint
        rejecting = sorted(entry.unschedulable_plugins | entry.pending_plugins)
        return [(plugin, answer[plugin].value if plugin in answer else "not registered") for plugin in rejecting]

    def _call(
        self, registration: MatchedRegistration, entry: QueuedPod, event: ClusterEvent, old: Any, new: Any
    ) -> QueueingHint:
        assert registration.hint is not None
        times = self.times
        began_s = 0.0 if times is None else times.start()
        try:
            hint = registration.hint(entry.pod, old, new)
            label = hint.value
        except Exception as fault:  # a plugin's exception is treated as Queue
            hint, label = QUEUE, "Error"
            if self.on_fault is not None:
                self.on_fault(registration.plugin, entry.key, fault)
        if times is not None:
            times.hint(registration.plugin, event.label, label, began_s)
        return hint
