"""Why the pods of a PodGroup are where they are, or nowhere: the group's cycle on a fork, and what would place it.

Suggestions come from three sources, and each was tried, with the whole group: what the members that fit nowhere lack,
one after the other until the group fits; more nodes like the largest; and a group that needs no more pods than fit.
"""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import attrs

from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.cache.pod_groups import min_count
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.model import Config
from kschedd.explain.answers import Command, GroupExplanation, GroupSuggestion, MemberAnswer
from kschedd.explain.judging import judge
from kschedd.explain.remedies import Proposal, proposals
from kschedd.explain.trial import applied
from kschedd.framework.changes import Change, ChangedObjects, add_node, create
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.handle import Handle
from kschedd.framework.interface import PRE_ENQUEUE
from kschedd.framework.registry import Registry
from kschedd.framework.remedies import RemedyContext
from kschedd.framework.status import Code, Status, error, fault_text, unschedulable
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.attempt.outcome import FitError
from kschedd.scheduling.attempt.ties import by_name
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.gangs.counted import group_fault, try_counted
from kschedd.scheduling.gangs.cycle import order_of_members, profile_fault, try_group
from kschedd.scheduling.gangs.trial import TriedGroup, TriedMember
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.nominations.counted import NominatedPods
from kschedd.scheduling.nominations.nominator import Nominator
from kschedd.scheduling.verdicts import Diagnosis

_MOST_CHANGES: Final = 8  # of a suggestion
_MOST_NODES: Final = 16  # that are added
_MOST_PROPOSALS: Final = 4  # of the first member that lacks something


@attrs.frozen(eq=False)
class GroupFork:
    """A fork of the cluster for a group, to be used up by `explain_group`."""

    key: str
    cluster: SchedulerCache
    handle: Handle
    nominator: Nominator
    config: Config
    registry: Registry


def begin_group(machine: SchedulingMachine, nominator: Nominator, key: str) -> GroupFork | None:
    """To be called between two attempts, by whoever owns the machine. None: there is no such group, nor a pod of it."""
    if machine.groups.object(key) is None and not machine.groups.pods(key):
        return None
    cluster = machine.cluster.fork()
    handle = machine.handle.fork(cluster)
    held = Nominator()
    held.copy_of(nominator)
    handle.nominated_pods = held.on_node
    return GroupFork(key, cluster, handle, held, machine.config, machine.registry)


def explain_group(fork: GroupFork) -> GroupExplanation:
    """The explanation; see the module."""
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
    """One explanation in the making, on a machine of its own."""

    def __init__(self, machine: SchedulingMachine, nominator: Nominator, key: str) -> None:
        self._machine, self._nominator, self._key = machine, nominator, key
        self._groups = machine.groups
        self._order: dict[str, int] = {}

    def run(self) -> GroupExplanation:
        groups, key = self._groups, self._key
        group = groups.object(key)
        pods, scheduled = groups.pods(key), groups.scheduled(key)
        gated = {pod.uid: status for pod in groups.waiting_for_node(key) if (status := self._gate(pod)) is not None}
        tried, first = self._try()
        policy = {} if group is None else group.spec.get("schedulingPolicy") or {}
        found = [] if self._placed(tried) or not groups.waiting_for_node(key) else self._suggestions(group, first)
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
            would_fit_if=[each.sentence for each in found],
            suggestions=found,
        )

    def _node_of(self, pod: Pod) -> str:
        known = self._machine.cluster.pod(pod.uid)
        return pod.node_name if known is None else known.node_name

    def _placed(self, tried: TriedGroup) -> bool:
        return tried.status.code is Code.SUCCESS and bool(tried.members)

    def _needed(self, group: Object) -> int:
        return min_count(group) if self._machine.handle.rules.gang_scheduling else 0

    def _left_out(self, tried: TriedGroup) -> list[Pod]:
        """Those that an error kept from being tried."""
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
            except Exception as fault:  # a plugin's fault ends here, not in the daemon
                status = error(fault_text(fault))
            if status is not None and status.code is not Code.SUCCESS:
                return status.by(plugin.name)
        return None

    # -- trials -------------------------------------------------------------------------------------------------

    def _try(self) -> tuple[TriedGroup, list[Proposal]]:
        """The group's cycle as things are, and what its first member that fits nowhere would need."""
        waiting = [pod for pod in self._groups.waiting_for_node(self._key) if self._gate(pod) is None]
        entries = order_of_members([self._entry(pod) for pod in waiting])
        counted = self._machine.handle.rules.gangs_counted
        if not entries:
            return TriedGroup(unschedulable(""), ()), []
        fault = group_fault(self._machine, self._key, entries) if counted else profile_fault(entries)
        if fault:
            return TriedGroup(error(fault), ()), []
        found: list[Proposal] = []

        def look(member: TriedMember) -> None:
            if member.failed is not None and not member.preempts and not found:
                found.extend(self._proposals(member.entry.pod))

        attempt = try_counted if counted else try_group
        return drive(attempt(self._machine, self._nominator, entries, 0.0, self._broken, look)), found

    def _entry(self, pod: Pod) -> QueuedPod:
        at = self._order.setdefault(pod.uid, len(self._order))
        return QueuedPod(pod, pod.key, at)

    def _broken(self, entry: QueuedPod, fault: Exception) -> FitError:
        return FitError(entry.pod, error(fault_text(fault)), Diagnosis(0), CycleState())

    def _proposals(self, pod: Pod) -> list[Proposal]:
        """What would have the pod fit, with those of its group that were tried before it on their nodes."""
        scheduler = self._machine.schedulers[pod.scheduler_name]
        cluster, state = self._machine.cluster, CycleState()
        status = scheduler.pre_filters.at_once(state, pod).status
        verdicts = []
        if status is None:
            counted = NominatedPods(cluster.table, pod, self._nominator.nominated).everywhere
            verdicts = judge(scheduler.filters, state, pod, cluster.table.order, counted, lambda point, plugin: None)
        context = RemedyContext(cluster, state, pod)
        return proposals(scheduler.profile.plugins, context, None, status, verdicts, fits=False)

    # -- suggestions --------------------------------------------------------------------------------------------

    def _suggestions(self, group: Object | None, first: Sequence[Proposal]) -> list[GroupSuggestion]:
        lacking = (self._step_by_step(one) for one in first[:_MOST_PROPOSALS])
        found = [next(filter(None, lacking), None), self._more_nodes()]
        if group is not None and self._needed(group):
            found.append(self._smaller(group))
        return sorted(filter(None, found), key=lambda each: len(each.commands))  # the least change first

    def _step_by_step(self, first: Proposal) -> GroupSuggestion | None:
        """One change after the other, each what the next member needs that fits nowhere."""
        taken: list[Proposal] = []
        proposal: Proposal | None = first
        while proposal is not None and proposal.changes is not None and len(taken) < _MOST_CHANGES:
            taken.append(proposal)
            changes = [change for one in taken for change in one.changes or ()]
            tried, more = self._with(changes)
            if self._placed(tried):
                return _told(_together(taken), changes, tried)
            known = {one.sentence for one in taken}
            possible = [one for one in more if one.changes is not None]
            proposal = next((one for one in possible if one.sentence not in known), next(iter(possible), None))
        return None

    def _more_nodes(self) -> GroupSuggestion | None:
        table = self._machine.cluster.table
        nodes = [node for node in table.nodes if node is not None]
        like = max(nodes, key=lambda node: (node.allocatable.get("cpu", 0), node.name), default=None)
        changes: list[Change] = []
        for number in range(1, _MOST_NODES + 1):
            changes.append(add_node(f"new-{number}", like))
            tried, _ = self._with(changes)
            if self._placed(tried):
                kind = "" if like is None else f" like {like.name}"
                return _told(f"there {'were' if number > 1 else 'was'} {_count(number)}{kind}", changes, tried)
        return None

    def _smaller(self, group: Object) -> GroupSuggestion | None:
        """The group as if it needed no more pods than there are and fit."""
        there = len(self._groups.pods(self._key))
        tried, _ = self._try() if there >= min_count(group) else self._with(self._needing(group, there))
        scheduled = len(self._groups.scheduled(self._key))
        enough = scheduled + sum(bool(member.node_name) and not member.preempts for member in tried.members)
        if not 0 < enough < min_count(group) or enough == scheduled:
            return None
        changes = self._needing(group, enough)
        tried, _ = self._with(changes)
        pods = "1 pod" if enough == 1 else f"{enough} pods"
        return _told(f"it needed {pods} at once", changes, tried) if self._placed(tried) else None

    def _needing(self, group: Object, number: int) -> list[Change]:
        return _needing(group, number, changes=self._machine.handle.rules.groups_of_v1beta1)

    def _with(self, changes: Sequence[Change]) -> tuple[TriedGroup, list[Proposal]]:
        waiting = self._groups.waiting_for_node(self._key)
        with applied(self._machine.cluster, waiting[0], changes):
            return self._try()


def _needing(group: Object, number: int, *, changes: bool) -> list[Change]:
    """Return what makes the group need so many pods: `changes`, or it is made anew, as its spec never changes."""
    policy = {**group.spec["schedulingPolicy"], "gang": {"minCount": number}}
    if changes:
        changed = parse({**group.raw, "spec": {**group.spec, "schedulingPolicy": policy}})
        patch = json.dumps({"spec": {"schedulingPolicy": {"gang": {"minCount": number}}}})
        command = f"patch podgroup {group.name} -n {group.namespace} --type merge -p '{patch}'"
        return [Change(command, lambda cluster, pod: ChangedObjects((changed,)))]
    named = {"name": group.name, "namespace": group.namespace}
    wanted = {**_kind_of(group), "metadata": named, "spec": {**group.spec, "schedulingPolicy": policy}}
    remove = Change(f"delete podgroup {group.name}", lambda cluster, pod: ChangedObjects(remove=(group,)))
    return [remove, create(wanted)]


def _together(taken: Sequence[Proposal]) -> str:
    """The sentences as one; what was asked for again is said with how often."""
    times = Counter(one.sentence for one in taken)
    return ", and ".join(text if count == 1 else f"{text} ({count} times)" for text, count in times.items())


def _count(number: int) -> str:
    return "one more node" if number == 1 else f"{number} more nodes"


def _kind_of(group: Object) -> dict[str, Any]:
    return {"apiVersion": group.raw["apiVersion"], "kind": "PodGroup"}


def _told(sentence: str, changes: Sequence[Change], tried: TriedGroup) -> GroupSuggestion:
    return GroupSuggestion(
        sentence,
        [Command(change.command, change.input) for change in changes],
        {member.entry.key: member.node_name for member in tried.members if member.node_name},
        list(dict.fromkeys(key for change in changes for key in change.displaced)),
    )


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
