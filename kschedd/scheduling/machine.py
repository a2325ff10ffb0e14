"""The scheduler as one state machine, which owns the cluster cache, schedules one pod at a time and runs bindings.

    observe(events)                     watch events
    begin(pod) → generator              one attempt; its result goes to `completion`
    completion.complete(...)
        → AssumedPod                    the pod is assumed on its node; `binding_steps.run` continues
        → FailedAttempt                 what to write, and the plugins that rejected it; the entry is requeued
    binding_steps                       the steps of binding cycles: permit, pre-bind, bind
    completion.undo(...)                a binding failed: unreserve and forget; returns the failed attempt

`SchedulingDriver` makes its calls one after the other, so the cluster never changes during an attempt. An assumed pod
keeps the framework (the plugin instances) of its attempt. A binding cycle therefore ends with the plugins with which it
began, even after a reconfiguration.

Source: Kubernetes v1.34, scheduler/schedule_one.go (schedulingCycle, bindingCycle, handleSchedulingFailure).
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from random import Random
from typing import TypeVar

import attrs
import numpy as np

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.cache.pod_groups import PodGroups
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Rows
from kschedd.config.model import Config, Profile
from kschedd.extenders.extender import HTTPExtender, extenders_of
from kschedd.framework.events import EVERY_EVENT, EXTENDER_NAME, ClusterEventWithHint, hint_map
from kschedd.framework.guarding.guarded import guarded
from kschedd.framework.handle import Handle
from kschedd.framework.interface import (
    FILTER,
    PERMIT,
    PRE_ENQUEUE,
    PRE_FILTER,
    QUEUE_SORT,
    RESERVE,
    ExtensionPoint,
    Plugin,
)
from kschedd.framework.registry import Registry
from kschedd.object_faults import FaultLedger, ObjectRef
from kschedd.queue.backoff import SortKey
from kschedd.queue.entry import QueuedPod
from kschedd.queue.gating import PreEnqueue
from kschedd.queue.hints import Registrations
from kschedd.scheduling.attempt.batch import Batches
from kschedd.scheduling.attempt.node_search import StartNode
from kschedd.scheduling.attempt.outcome import Attempt, FitError, ScheduleResult
from kschedd.scheduling.attempt.scheduler import Scheduler
from kschedd.scheduling.attempt.ties import Choose, NodeTies
from kschedd.scheduling.binding.run import AttemptRun
from kschedd.scheduling.binding.steps import BindingSteps
from kschedd.scheduling.binding.waiting import WaitingPods
from kschedd.scheduling.completion import Completion
from kschedd.scheduling.debug.stepper import Stepper
from kschedd.scheduling.failure import FailedAttempt
from kschedd.scheduling.nominations.counted import Nominated
from kschedd.scheduling.profiles.metrics import NO_TIMES, NoTimes, PointTimes, SchedulingMetrics
from kschedd.scheduling.profiles.profile import build_profile
from kschedd.store.objects.log import DELETED, WatchEvent

T = TypeVar("T")


@attrs.frozen(eq=False)
class Choices:
    """The state on which the choices of attempts depend: tie breaks between nodes, and the start of the next search."""

    choose: Choose
    start: int


class SchedulingMachine:
    """The scheduler as a state machine.

    `seed` determines random tie breaks; `choose` replaces all tie breaks. `handle` must belong to this cluster.
    """

    def __init__(
        self,
        config: Config,
        *,
        registry: Registry | None = None,
        cluster: SchedulerCache | None = None,
        seed: int = 0,
        choose: Choose | None = None,
        remember: bool = True,
        handle: Handle | None = None,
        metrics: SchedulingMetrics | None = None,
    ) -> None:
        self.metrics = metrics
        self.registry = guarded(registry)
        self.cluster = cluster or SchedulerCache()
        self.seed = seed
        self.faults: FaultLedger[None] = FaultLedger("scheduler cache")
        self.start = StartNode()
        self.waiting = WaitingPods()
        self.handle = handle or Handle(self.cluster, config.feature_gates, seed, config.rules)
        self.groups = self.handle.shared(PodGroups)
        self.batches = self.handle.shared(Batches)
        self.handle.allow = self.waiting.allow
        self.handle.reject = self.waiting.reject
        self.handle.waiting_pods = self._waiting_pods
        self.handle.decided_at_permit = self.waiting.decided
        self.choose: Choose = choose or NodeTies(Random(seed))
        self._remember = remember
        self.config = config
        self.schedulers: dict[str, Scheduler] = {}
        self.extenders: tuple[HTTPExtender, ...] = ()
        # true if a preemptor is not attempted while victims of it exist; replays of earlier recordings set it to False
        self.holds_preemptors = True
        self.completion = Completion(self.cluster, self.handle, self.waiting, self.faults)
        self.binding_steps = BindingSteps(self.handle, self.waiting)
        self.reconfigure(config)

    def reconfigure(self, config: Config) -> None:
        """Use this configuration from the next attempt on.

        If this method raises PluginLoadError, nothing has changed.
        """
        handle = self.handle
        if self.schedulers:
            self.batches.forget()
        before = handle.feature_gates, handle.rules
        handle.feature_gates, handle.rules = config.feature_gates, config.rules
        extenders = extenders_of(config.extenders)
        try:
            self.schedulers = {
                profile.scheduler_name: self._scheduler(config, profile, extenders) for profile in config.profiles
            }
        except Exception:  # raised again
            handle.feature_gates, handle.rules = before
            raise
        self.extenders = self.binding_steps.extenders = extenders
        self.completion.extender_binds = any(extender.binds for extender in extenders)
        if isinstance(self.choose, NodeTies):
            self.choose.drawn = not config.rules.ties_in_order
        self.config = config
        self.cluster.table.set_resize_rules(config.rules.resize_rules)

    def _scheduler(self, config: Config, profile: Profile, extenders: tuple[HTTPExtender, ...]) -> Scheduler:
        before = self.schedulers.get(profile.scheduler_name)
        framework = build_profile(
            config,
            profile,
            self.registry,
            self.handle,
            None if before is None else before.profile,
            None if self.metrics is None else self.metrics.plugins_of(profile.scheduler_name),
        )
        framework.times = self.times(framework.name)
        return Scheduler(
            framework,
            self.cluster,
            self.choose,
            self.start,
            self._remember,
            extenders,
            batches=self.batches,
            groups=self.groups,
        )

    def times(self, profile: str) -> PointTimes | NoTimes:
        """Return the timers of the extension points of this profile."""
        return NO_TIMES if self.metrics is None else self.metrics.times(profile)

    def choices(self) -> Choices:
        """Return a copy of the tie-break state and the start of the next search."""
        return Choices(self.choose.fork() if isinstance(self.choose, NodeTies) else self.choose, self.start.index)

    # -- what the queue needs to know -------------------------------------------------------------------------

    def responsible(self, scheduler_name: str) -> bool:
        return scheduler_name in self.schedulers

    @property
    def has_out_of_tree(self) -> bool:
        """True if any profile has out-of-tree plugins."""
        added = self.registry.added
        return any(name in added for profile in self.config.profiles for name in profile.names())

    def pre_enqueue(self) -> PreEnqueue:
        return {
            name: {plugin.name: plugin.pre_enqueue for plugin in scheduler.profile.at(PRE_ENQUEUE)}
            for name, scheduler in self.schedulers.items()
        }

    def registrations(self) -> Registrations:
        """Return the events registered by every plugin that may reject a pod, by profile."""
        points: tuple[ExtensionPoint[Plugin], ...] = (PRE_ENQUEUE, PRE_FILTER, FILTER, RESERVE, PERMIT)
        found: dict[str, Mapping[str, Sequence[ClusterEventWithHint]]] = {}
        for name, scheduler in self.schedulers.items():
            profile = scheduler.profile
            rejecting = {plugin.name: plugin for point in points for plugin in profile.at(point)}
            for filter_ in profile.filters:
                rejecting[filter_.name] = filter_.plugin
            taints_for_all = not self.handle.rules.taints_wake_their_own
            found[name] = hint_map(list(rejecting.values()), taints_for_all=taints_for_all)
            if self.extenders:
                found[name] = {**found[name], EXTENDER_NAME: EVERY_EVENT}
        return found

    def sort_key(self) -> SortKey:
        scheduler = next(iter(self.schedulers.values()))
        return scheduler.profile.at(QUEUE_SORT)[0].sort_key

    def _waiting_pods(self) -> Sequence[tuple[Pod, str]]:
        return [(waiting.pod, waiting.node_name) for waiting in self.waiting.pods.values()]

    # -- the cluster ------------------------------------------------------------------------------------------

    def observe(self, events: Iterable[WatchEvent], now: float = 0.0) -> None:
        """Apply events up to `now` (seconds). Unreadable objects are recorded in `faults` and omitted."""
        faults = self.faults
        if faults.by_object:
            faults.retry(now)
        for event in events:
            self.observe_each(event, now)

    def observe_each(self, event: WatchEvent, now: float) -> None:
        """Apply one event to the caches; earlier events that failed are not retried."""
        obj, faults = event.new, self.faults
        try:
            self._observe(event, now)
        except Exception as fault:  # a fault of this object
            faults.note(ObjectRef(obj.kind, obj.namespace, obj.name), partial(self._observe, event), fault, now)
        else:
            if faults.by_object:
                faults.strike_off(ObjectRef(obj.kind, obj.namespace, obj.name))

    def _observe(self, event: WatchEvent, now: float) -> None:
        if isinstance(event.new, Pod) and event.new.signature.spec.pod_group_name:
            (self.groups.remove if event.type == DELETED else self.groups.put)(event.new)
        if event.type == DELETED:
            self.forget_object(event.new)
        else:
            self.cluster.put(event.new)

    def forget_object(self, obj: Object) -> None:
        if isinstance(obj, Pod) and not obj.node_name and self.cluster.is_assumed(obj):
            self.cluster.mark_deleted(obj)  # the pod's running binding will fail and forget the pod
            return
        self.cluster.remove(obj)

    # -- attempts ---------------------------------------------------------------------------------------------

    def skips(self, pod: Pod) -> bool:
        """Return whether the pod is skipped, because it is being deleted or is already assumed on a node."""
        return bool(pod.deletion_timestamp) or self.cluster.is_assumed(pod)

    def begin(
        self,
        pod: Pod,
        nominated: Nominated,
        stepper: Stepper | None = None,
        *,
        cycle: int = 0,
        post_filters: bool = True,
        placement: Rows | None = None,
    ) -> Attempt:
        """Begin an attempt.

        `cycle` is the number of the scheduling cycle, or 0 if the attempt belongs to no cycle. `post_filters` False
        omits PostFilter, for a pod whose group preempts as a whole. With `placement`, only the nodes in these rows are
        considered.
        """
        scheduler, resizes = self.schedulers[pod.scheduler_name], self.resizes(pod)
        batching = scheduler.batched(pod, cycle, self.handle.now_s) if cycle and not resizes else None
        return scheduler.attempt(
            pod,
            nominated,
            stepper=stepper,
            batching=batching,
            post_filters=post_filters,
            resizes=resizes,
            placement=placement,
        )

    def resizes(self, pod: Pod) -> bool:
        """Return whether the pod already runs on its node, and is queued because its resize is deferred."""
        return bool(pod.node_name) and self.handle.rules.resizes_preempt and pod.resize_deferred

    def longest_run(self, pod: Pod) -> int:
        """Return the estimated number of attempts in a `run` that begins with a pod of this kind."""
        scheduler = self.schedulers.get(pod.scheduler_name)
        return (
            0
            if scheduler is None or scheduler.runs is None or self.completion.extender_binds
            else scheduler.runs.longest(pod)
        )

    def may_run(self, pod: Pod) -> bool:
        """Return whether pods of this kind may be in a run, because Bind is their only step after the attempt."""
        return self.schedulers[pod.scheduler_name].profile.bound_by(pod, self.cluster.versions) is not None

    def run(self, entries: Sequence[QueuedPod], now: float) -> AttemptRun:
        """Attempt as many of these pods as possible together, in order; all pods must have the same profile."""
        if self.metrics is not None:
            self.metrics.sampling.next_several(len(entries))
        scheduler = self.schedulers[entries[0].pod.scheduler_name]
        runs = scheduler.runs
        assert runs is not None, "otherwise the longest run is none"
        alone, run = runs.alone(entries[0].pod), AttemptRun()
        pods = [entry.pod for entry in entries]
        together = runs.together(pods) if alone else []
        if together:
            return AttemptRun(together, self.completion.together(entries[: len(together)], together))
        attempts = runs.in_turn(pods, scheduler.attempt_within, alone)
        for entry in entries:
            try:
                result = next(attempts, None)
            except Exception:  # a fault of a plugin or pod, which occurs again in the pod's single attempt
                break
            if result is None:
                break
            run.results.append(result)
            if not alone:
                outcome = self.completion.complete(entry, result, now)
                run.outcomes.append(outcome)
                if isinstance(outcome, FailedAttempt):
                    break
        if alone and run.results:
            run.outcomes.extend(self.completion.together(entries[: len(run.results)], run.results))
        return run

    def result_on(self, pod: Pod, node_name: str, failed: FitError) -> ScheduleResult:
        """Return a result with this node, for a pod that will fit on it after the victims of preemption are gone."""
        scheduler = self.schedulers[pod.scheduler_name]
        rows = np.array([self.cluster.table.row_of[node_name]], dtype=np.int64)
        verdicts = failed.diagnosis.verdicts or scheduler.pre_filters.no_verdicts(failed.state, pod, failed.status)
        visited = len(verdicts.rows)
        return ScheduleResult(pod, node_name, scheduler.profile, failed.state, rows, visited, None, None, 1, verdicts)
