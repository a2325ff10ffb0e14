"""Explanation of a PodGroup's scheduling, from a run of its cycle on a fork."""

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.cache.pod_groups import min_count
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.model import Config
from kschedd.explain.answers import GroupExplanation, MemberAnswer
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.handle import Handle
from kschedd.framework.interface import PRE_ENQUEUE
from kschedd.framework.registry import Registry
from kschedd.framework.status import Code, Status, error, fault_text, unschedulable
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.attempt.outcome import FitError
from kschedd.scheduling.attempt.ties import by_name
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.gangs.counted import group_fault, try_counted
from kschedd.scheduling.gangs.cycle import order_of_members, profile_fault, try_group
from kschedd.scheduling.gangs.trial import TriedGroup, TriedMember
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.nominations.nominator import Nominator
from kschedd.scheduling.verdicts import Diagnosis


@attrs.frozen(eq=False)
class GroupFork:
    """A fork of the cluster for one call of `explain_group`."""

    key: str
    cluster: SchedulerCache
    handle: Handle
    nominator: Nominator
    config: Config
    registry: Registry


def begin_group(machine: SchedulingMachine, nominator: Nominator, key: str) -> GroupFork | None:
    """Return a fork for the group; None if neither the group nor any of its pods exists.

    Call this function between two attempts of the scheduler.
    """
    if machine.groups.object(key) is None and not machine.groups.pods(key):
        return None
    cluster = machine.cluster.fork()
    handle = machine.handle.fork(cluster)
    held = Nominator()
    held.copy_of(nominator)
    handle.nominated_pods = held.on_node
    return GroupFork(key, cluster, handle, held, machine.config, machine.registry)


def explain_group(fork: GroupFork) -> GroupExplanation:
    """Return the explanation of a PodGroup."""
    fork.cluster.recount()
    machine = SchedulingMachine(
        fork.config,
        registry=fork.registry,
        cluster=fork.cluster,
        choose=by_name,
        remember=False,
        handle=fork.handle,
    )
    return _Explaining(machine, fork.nominator, fork.key).run()


class _Explaining:
    """An explanation in progress, with its own state machine."""

    def __init__(self, machine: SchedulingMachine, nominator: Nominator, key: str) -> None:
        self._machine, self._nominator, self._key = machine, nominator, key
        self._groups = machine.groups
        self._order: dict[str, int] = {}

    def run(self) -> GroupExplanation:
        groups, key = self._groups, self._key
        group = groups.object(key)
        pods, scheduled = groups.pods(key), groups.scheduled(key)
        gated = {pod.uid: status for pod in groups.waiting_for_node(key) if (status := self._gate(pod)) is not None}
        tried = self._try()
        policy = {} if group is None else group.spec.get("schedulingPolicy") or {}
        return GroupExplanation(
            pod_group=key,
            exists=group is not None,
            policy=next(iter(policy), ""),
            min_count=0 if group is None else self._needed(group),
            pods=len(pods),
            scheduled=len(scheduled),
            fits=self._placed(tried),
            message=tried.status.message,
            members=[
                *(_member(pod, "scheduled", node=self._node_of(pod)) for pod in scheduled),
                *(_tried(member) for member in tried.members),
                *(_member(pod, "error", status=tried.status) for pod in self._left_out(tried)),
                *(_member(pod, "gated", status=gated[pod.uid]) for pod in pods if pod.uid in gated),
            ],
        )

    def _node_of(self, pod: Pod) -> str:
        known = self._machine.cluster.pod(pod.uid)
        return pod.node_name if known is None else known.node_name

    def _placed(self, tried: TriedGroup) -> bool:
        return tried.status.code is Code.SUCCESS and bool(tried.members)

    def _needed(self, group: Object) -> int:
        return min_count(group) if self._machine.handle.rules.gang_scheduling else 0

    def _left_out(self, tried: TriedGroup) -> list[Pod]:
        """Return the pods of the group that the run did not attempt, because an earlier pod had an error."""
        seen = {member.entry.uid for member in tried.members}
        waiting = self._groups.waiting_for_node(self._key)
        return [pod for pod in waiting if pod.uid not in seen and self._gate(pod) is None]

    def _gate(self, pod: Pod) -> Status | None:
        scheduler = self._machine.schedulers.get(pod.scheduler_name)
        if scheduler is None:
            return unschedulable(f'no profile here is called "{pod.scheduler_name}", as the scheduler of the pod is')
        for plugin in scheduler.profile.at(PRE_ENQUEUE):
            try:
                status: Status | None = plugin.pre_enqueue(pod)
            except Exception as fault:  # an exception of a plugin must not reach the daemon
                status = error(fault_text(fault))
            if status is not None and status.code is not Code.SUCCESS:
                return status.by(plugin.name)
        return None

    def _try(self) -> TriedGroup:
        """Run the group's scheduling cycle in the present state of the cluster."""
        waiting = [pod for pod in self._groups.waiting_for_node(self._key) if self._gate(pod) is None]
        entries = order_of_members([self._entry(pod) for pod in waiting])
        counted = self._machine.handle.rules.gangs_counted
        if not entries:
            return TriedGroup(unschedulable(""), ())
        fault = group_fault(self._machine, self._key, entries) if counted else profile_fault(entries)
        if fault:
            return TriedGroup(error(fault), ())
        attempt = try_counted if counted else try_group
        return drive(attempt(self._machine, self._nominator, entries, 0.0, self._broken))

    def _entry(self, pod: Pod) -> QueuedPod:
        at = self._order.setdefault(pod.uid, len(self._order))
        return QueuedPod(pod, pod.key, at)

    def _broken(self, entry: QueuedPod, fault: Exception) -> FitError:
        return FitError(entry.pod, error(fault_text(fault)), Diagnosis(0), CycleState())


def _member(pod: Pod, state: str, *, node: str = "", status: Status | None = None) -> MemberAnswer:
    plugin, message = ("", "") if status is None else (status.plugin, status.message)
    return MemberAnswer(pod.key, state, node or None, plugin, message)


def _tried(member: TriedMember) -> MemberAnswer:
    pod, failed = member.entry.pod, member.failed
    if failed is None:
        return _member(pod, "fits", node=member.node_name)
    state = "preempts" if member.preempts else "unschedulable" if failed.reason == "Unschedulable" else "error"
    plugins = ", ".join(sorted(failed.unschedulable_plugins | failed.pending_plugins))
    return MemberAnswer(pod.key, state, member.node_name or None, plugins, failed.message)
