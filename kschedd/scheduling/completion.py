"""Completion: the steps after an attempt. The pod is either assumed, reserved and permitted on the node, or rejected.

    complete(...)       one attempt → AssumedPod, whose binding cycle continues, or FailedAttempt, which is requeued
    completing(...)     the same, as a generator that the debugger may stop
    together(...)       several attempts of a run
    undo(...)           a binding failed: unreserve and forget; returns the failed attempt

If the pod is rejected, every step of Reserve and Permit is undone.

Source: Kubernetes v1.34, scheduler/schedule_one.go (schedulingCycle, handleBindingCycleError).
"""

from collections.abc import Hashable, Sequence
from functools import partial
from typing import cast

import attrs

from kschedd.api.pods import Pod
from kschedd.api.text.times import stamp
from kschedd.cache.scheduler_cache import SchedulerCache, counted_as
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.handle import Handle
from kschedd.framework.interface import (
    PERMIT,
    RESERVE,
    BindPlugin,
    PermitPlugin,
    PostFilterResult,
    UnreservePlugin,
)
from kschedd.framework.postfilter import Preemption
from kschedd.framework.status import Code, Status, error, fault_text
from kschedd.framework.writes import Plan, Write
from kschedd.object_faults import FaultLedger, ObjectRef
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.binding.waiting import MOST_WAIT_S, WaitingPod, WaitingPods
from kschedd.scheduling.debug.stepper import DROPPED, AttemptDropped, Stepper
from kschedd.scheduling.debug.work import Work, drive
from kschedd.scheduling.failure import FailedAttempt, failed_after_permit, failed_by_error, failed_on_one_node, stamped
from kschedd.scheduling.profiles import plugin_metrics as points
from kschedd.scheduling.profiles.contained import contained
from kschedd.scheduling.profiles.profile import Framework

# Extension points at which no plugin has work for a pod that is bound directly.
_BEFORE_BINDING = ("Reserve", "Permit")
PREEMPTION = "DefaultPreemption"  # plugin that is recorded as rejecting a waiting victim if no other plugin is given


class Completion:
    """The steps that follow an attempt.

    `extender_binds` is true if an extender binds pods; no pod may then skip steps.
    """

    def __init__(
        self, cluster: SchedulerCache, handle: Handle, waiting: WaitingPods, faults: FaultLedger[None]
    ) -> None:
        self._cluster = cluster
        self._handle = handle
        self._waiting = waiting
        self._faults = faults
        self.extender_binds = False

    def complete(
        self, entry: QueuedPod, result: ScheduleResult | FitError, now: float, *, permits: bool = True
    ) -> AssumedPod | FailedAttempt:
        """Complete an attempt without stops for the debugger.

        With `permits` False, Permit is omitted, because the pod is assumed only on trial.
        """
        binder = None
        if isinstance(result, ScheduleResult) and not self.extender_binds and not result.state.resizes:
            binder = result.framework.bound_by(result.pod, self._cluster.versions)
        if binder is not None:
            assert isinstance(result, ScheduleResult), "only what found a node is bound"
            try:
                assumed = self._cluster.assume(entry.pod, result.node_name)
            except Exception as fault:  # an error of this pod: only its attempt fails
                return self._broken(entry, result, failed_by_error(entry, fault_text(fault)), now)
            result.framework.times.skipped(_BEFORE_BINDING)
            return AssumedPod(entry, assumed, result, None, binder)
        return drive(self.completing(entry, result, now, None, permits=permits))

    def together(
        self, entries: Sequence[QueuedPod], results: Sequence[ScheduleResult]
    ) -> list[AssumedPod | FailedAttempt | None]:
        """Complete these attempts together. The result is None for an attempt that must be completed alone."""
        framework = results[0].framework
        by_template: dict[int, list[int]] = {}
        signature, template = None, 0
        for number, entry in enumerate(entries):
            if entry.pod.signature is not signature:
                signature = entry.pod.signature
                template = signature.signature_ignoring_node
            by_template.setdefault(template, []).append(number)
        counted_alike: dict[Hashable, list[int]] = {}
        binders: list[BindPlugin | None] = [None] * len(entries)
        for numbers in by_template.values():
            first = entries[numbers[0]].pod
            counted_alike.setdefault(counted_as(first.signature), []).extend(numbers)
            binder = framework.bound_by(first, self._cluster.versions)
            for number in numbers:
                binders[number] = binder
        run: list[AssumedPod | FailedAttempt | None] = [None] * len(entries)
        for numbers in counted_alike.values():
            pods = [entries[number].pod for number in numbers]
            try:
                placed = self._cluster.assume_each(pods, [results[number].node_name for number in numbers])
            except Exception:  # a fault of one pod: it occurs again when each pod is completed alone
                placed = None
            if placed is None:
                continue
            framework.times.skipped(_BEFORE_BINDING, len(placed))
            for number, pod in zip(numbers, placed, strict=True):
                run[number] = AssumedPod(entries[number], pod, results[number], None, binders[number])
        return run

    def completing(
        self,
        entry: QueuedPod,
        result: ScheduleResult | FitError,
        now: float,
        stepper: Stepper | None,
        *,
        permits: bool = True,
    ) -> Work[AssumedPod | FailedAttempt]:
        """Complete an attempt: the pod is assumed, reserved and permitted (or waits at Permit), or it is rejected.

        An exception in a step is a fault of the attempt's pod: the attempt fails with an error, and all its steps are
        undone.
        """
        try:
            return (yield from self._steps(entry, result, now, stepper, permits))
        except AttemptDropped:
            failed = failed_by_error(entry, DROPPED)
        except Exception as fault:  # an error of this pod: only its attempt fails
            failed = failed_by_error(entry, fault_text(fault))
        return self._broken(entry, result, failed, now)

    def _broken(
        self, entry: QueuedPod, result: ScheduleResult | FitError, failed: FailedAttempt, now: float
    ) -> FailedAttempt:
        """Undo the steps that preceded the failure."""
        self._waiting.pods.pop(entry.uid, None)
        if isinstance(result, ScheduleResult) and self._cluster.is_assumed(entry.pod):
            assumed = self._cluster.pod(entry.uid)
            assert assumed is not None, "what is assumed is there"
            failed = attrs.evolve(failed, writes=self._release(assumed, result, now))
        return failed

    def _steps(
        self,
        entry: QueuedPod,
        result: ScheduleResult | FitError,
        now: float,
        stepper: Stepper | None,
        permits: bool,
    ) -> Work[AssumedPod | FailedAttempt]:
        if isinstance(result, FitError):
            return self._reject(entry, result, now)
        framework, state, node_name = result.framework, result.state, result.node_name
        if state.resizes:  # the pod will fit after the kubelet has resized it
            why = f"pod {entry.uid}({entry.key}) is in the cache, so can't be assumed"
            return failed_by_error(entry, why)
        assumed = self._cluster.assume(entry.pod, node_name)
        times = framework.times
        began = times.start()
        for plugin in framework.at(RESERVE):
            if stepper is not None:
                yield from stepper.before("reserve", plugin.name, node=node_name)
            status = contained(framework, points.RESERVE, plugin, plugin.reserve, state, assumed, node_name)
            if status is not None and status.code != Code.SUCCESS:
                if stepper is not None:
                    yield from stepper.rejected("reserve", plugin.name, node=node_name)
                times.ended("Reserve", began, status.code.label)
                if not status.rejected:
                    status = error(f'running Reserve plugin "{plugin.name}": {status.message}')
                return self._take_back(entry, assumed, result, status.by(plugin.name), now)
        began = times.ended("Reserve", began)
        waits: dict[str, float] = {}
        for permitting in framework.at(PERMIT) if permits else ():
            if stepper is not None:
                yield from stepper.before("permit", permitting.name, node=node_name)
            status, wait_s = _permit(framework, permitting, state, assumed, node_name)
            if status is None or status.code == Code.SUCCESS:
                continue
            if status.code == Code.WAIT:
                waits[permitting.name] = min(wait_s, MOST_WAIT_S)
                if stepper is not None:
                    yield from stepper.waits(permitting.name, node_name)
            else:
                if stepper is not None:
                    yield from stepper.rejected("permit", permitting.name, node=node_name)
                times.ended("Permit", began, status.code.label)
                if not status.rejected:
                    status = error(f'running Permit plugin "{permitting.name}": {status.message}')
                return self._take_back(entry, assumed, result, status.by(permitting.name), now)
        times.ended("Permit", began, Code.WAIT.label if waits else Code.SUCCESS.label)
        waiting = None
        if waits:
            now = now if stepper is None else max(now, stepper.debugger.now_s)
            pending = {plugin: now + wait for plugin, wait in waits.items()}
            waiting = self._waiting.pods[assumed.uid] = WaitingPod(assumed, node_name, pending, waits)
        return AssumedPod(entry, assumed, result, waiting)

    def _reject(self, entry: QueuedPod, failed: FitError, now: float) -> FailedAttempt:
        diagnosis = failed.diagnosis
        post = failed.post_filter
        if failed.status.code == Code.ERROR:
            return failed_by_error(entry, failed.message)
        rejected = FailedAttempt(
            entry,
            "Unschedulable",
            failed.message,
            frozenset(diagnosis.unschedulable_plugins),
            frozenset(diagnosis.pending_plugins),
            failed.nominated_node,
        )
        return rejected if post is None else self.evict(rejected, post, now)

    def evict(self, failed: FailedAttempt, post: PostFilterResult, now: float) -> FailedAttempt:
        """Begin the preemption of a failed attempt, and reject victims that wait at Permit."""
        in_memory = self._handle.rules.victims_preempted_in_memory
        end = self._waiting.preempt if in_memory else self._waiting.reject
        for victim in post.rejected:
            end(victim.uid, post.status.plugin or PREEMPTION, "preempted")
        spared = (*post.rejected, *post.cancelled) if in_memory else ()
        return attrs.evolve(
            failed,
            writes=stamped(post.writes, stamp(now)),
            victims=_deleted(post),
            in_memory=frozenset(victim.uid for victim in spared),
            evicts=bool(post.victims and (post.writes or post.rejected or post.cancelled)),
        )

    def _take_back(
        self, entry: QueuedPod, assumed: Pod, result: ScheduleResult, status: Status, now: float
    ) -> FailedAttempt:
        """Undo the assumption of a pod that Reserve or Permit rejected."""
        return attrs.evolve(failed_on_one_node(entry, status), writes=self._release(assumed, result, now))

    def end_trial(self, assumed: AssumedPod, now: float) -> None:
        """Undo the trial assumption of a pod. Writes of Unreserve are dropped, because nothing was written."""
        self._release(assumed.pod, assumed.result, now)

    def _release(self, assumed: Pod, result: ScheduleResult, now: float) -> tuple[Write, ...]:
        """Unreserve the pod's resources and forget its node; return Unreserve's writes."""
        writes = _unreserve(result, assumed)
        ref = ObjectRef("Pod", assumed.namespace, assumed.name)
        self._faults.run(ref, partial(self._forget, assumed), now, "assumed")
        return writes

    def _forget(self, assumed: Pod, now: float) -> None:
        self._cluster.forget(assumed)

    def undo(self, assumed: AssumedPod, status: Status, now: float) -> FailedAttempt:
        """Undo a failed binding. The caller must also report the removed assumed pod to the queue."""
        at_permit = assumed.waiting is not None and assumed.waiting.rejection is not None
        failed = failed_on_one_node if at_permit else failed_after_permit
        return attrs.evolve(failed(assumed.entry, status), writes=self._release(assumed.pod, assumed.result, now))


def _deleted(post: PostFilterResult) -> tuple[Pod, ...]:
    """Return the victims to delete now: the plugin's list, or by default all victims that are not terminating yet."""
    if isinstance(post.details, Preemption):
        return post.details.deleted
    return tuple(victim for victim in post.victims if not victim.deletion_timestamp)


def _unreserve(result: ScheduleResult, pod: Pod) -> tuple[Write, ...]:
    """Call every plugin's Unreserve in reverse order, and return the writes that the plugins request."""
    writes: tuple[Write, ...] = ()
    for plugin in reversed(result.framework.at(RESERVE)):
        if hasattr(plugin, "unreserve"):
            unreserve = cast(UnreservePlugin, plugin).unreserve
            answer = contained(
                result.framework, points.UNRESERVE, plugin, unreserve, result.state, pod, result.node_name
            )
            if isinstance(answer, Plan):
                writes += answer.writes
    return writes


def _permit(
    framework: Framework, plugin: PermitPlugin, state: CycleState, pod: Pod, node_name: str
) -> tuple[Status | None, float]:
    answer = contained(framework, points.PERMIT, plugin, plugin.permit, state, pod, node_name)
    return answer if isinstance(answer, tuple) else (answer, 0.0)
