"""Pending pods by cause: one pod of each workload is examined, and each group contains all pods with one cause.

Pods that spec.nodeName put on a node without their claims are pending as well: they never start.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.answers import plain
from kschedd.api.conditions import condition
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.causes.answers import DiagnosisAnswer, ObjectNamed, PendingGroup, RemedyAnswer
from kschedd.causes.case import case_of
from kschedd.causes.claimed.devices import unscheduled_devices
from kschedd.causes.claimed.storage import unscheduled_claims
from kschedd.causes.diagnosis import causes, diagnosis
from kschedd.causes.findings import FoundCause, named
from kschedd.causes.workload import ExaminedWorkload, workload_of
from kschedd.clusters.virtual import MethodsOf
from kschedd.dumps.dumped_condition import dumped_refusal
from kschedd.printing.reports import causes as reports
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.scheduling.records import PodPreempted
from kschedd.simulation.engine import Engine
from kschedd.storage.claims import claims_named

_NOT_KNOWN: Final[Mapping[str, Sequence[PodPreempted]]] = {}
_NUMBER: Final = re.compile(r"\d+")
_CREATORS: Final = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job")
MOST_PODS: Final = 200  # maximum number of pods of a workload for which a remedy is searched
_MOST_EXAMINED: Final = 50  # maximum number of examined workloads; others are grouped by the scheduler's message


@attrs.define
class _Group:
    cause: FoundCause
    objects: list[Object]
    count: int = 0
    missing: int = 0
    certain: bool = True


def pending_groups(
    engine: Engine,
    namespace: str | None,
    check: Callable[[], None],
    remedy_of: Callable[[Object], RemedyAnswer | None] = lambda obj: None,
    most: int = 0,
    preempted: Mapping[str, Sequence[PodPreempted]] = _NOT_KNOWN,
) -> list[PendingGroup]:
    """Return the groups of pending pods in this namespace (None: all), and of pods that controllers cannot create.

    The largest group is first. `remedy_of` searches for a remedy for a workload. `remedy_of` is called for the smallest
    workload of each of the first `most` groups, unless this workload has more than MOST_PODS pods, whose rollout takes
    long even on a fork. `preempted` contains the known preempted pods by namespace.
    """
    answers, left = [], most
    for group in _groups(engine, namespace, check, preempted):
        group.objects.sort(key=_wanted)
        searched = left > 0 and not group.cause.passing
        left -= searched
        small = searched and _wanted(group.objects[0]) <= MOST_PODS
        answers.append(_group_answer(group, remedy_of(group.objects[0]) if small else None))
    return answers


def _wanted(obj: Object) -> int:
    return ExaminedWorkload(obj, ()).wanted


def _groups(
    engine: Engine,
    namespace: str | None,
    check: Callable[[], None],
    preempted: Mapping[str, Sequence[PodPreempted]] = _NOT_KNOWN,
) -> list[_Group]:
    groups: dict[tuple[str, str], _Group] = {}
    by_owner: dict[str | tuple[str, int], _Group] = {}  # by controller; pods without a controller by spec
    by_workload: dict[str, _Group] = {}
    by_message: dict[str, _Group] = {}

    def examined(workload: ExaminedWorkload) -> _Group:
        check()
        cause = _cause(engine, workload, preempted)
        group = groups.setdefault((cause.code, cause.message), _Group(cause, []))
        group.objects.append(workload.obj)
        group.certain &= cause.certain
        by_workload[workload.obj.uid] = group
        return group

    for pod in engine.store.list("Pod", namespace):
        if not isinstance(pod, Pod) or pod.deleting or pod.finished:
            continue
        if pod.node_name and not _lacks_claims(engine, pod):
            continue
        owner = pod.owner
        near = (pod.namespace, id(pod.signature.spec)) if owner is None else owner.uid
        group = by_owner.get(near)
        if group is None:
            workload = workload_of(engine.store, pod)
            group = by_workload.get(workload.obj.uid)
            message = _message(pod)
            if group is None and len(by_workload) >= _MOST_EXAMINED:
                group = by_message.get(message)
                if group is not None:
                    group.certain = False
                    group.objects.append(workload.obj)
                    by_workload[workload.obj.uid] = group
            if group is None:
                group = examined(workload)
                by_message.setdefault(message, group)
            by_owner[near] = group
        elif owner is None:
            group.objects.append(pod)
        group.count += 1
    for workload in short_workloads(engine, namespace):
        group = by_workload.get(workload.obj.uid) or examined(workload)
        group.missing += workload.missing
    found = [group for group in groups.values() if group.count or not group.cause.passing]
    return sorted(found, key=lambda group: (-group.count - group.missing, group.cause.code, group.cause.message))


def short_workloads(engine: Engine, namespace: str | None) -> Iterator[ExaminedWorkload]:
    """Yield the workloads with pods that are not created."""
    for kind in _CREATORS:
        for obj in engine.store.list(kind, namespace):
            if obj.owner is None:
                workload = workload_of(engine.store, obj)
                if workload.missing or dumped_refusal(obj):
                    yield workload


def _lacks_claims(engine: Engine, pod: Pod) -> bool:
    """Return whether spec.nodeName put the pod on its node, so that the scheduler did not allocate its claims."""
    spec = pod.pod_spec
    if pod.phase not in ("", "Pending") or not (spec.resource_claims or claims_named(pod)):
        return False
    alone = ExaminedWorkload(pod, (pod,))
    return (unscheduled_claims(engine.store, alone) or unscheduled_devices(engine.store, alone)) is not None


def _cause(engine: Engine, workload: ExaminedWorkload, preempted: Mapping[str, Sequence[PodPreempted]]) -> FoundCause:
    pod = next(iter(workload.pending), None)
    case = None
    if pod is not None and pod.scheduler_name in engine.machine.schedulers:
        case = case_of(engine, workload, pod, preempted.get(workload.obj.namespace, ()))
    return next(causes(engine, workload, pod, case))


def _message(pod: Pod) -> str:
    """Return the scheduler's reasons, without their numbers."""
    return _NUMBER.sub("", str((condition(pod.status, "PodScheduled") or {}).get("message") or ""))


def _group_answer(group: _Group, remedy: RemedyAnswer | None = None) -> PendingGroup:
    workloads = [named(obj) for obj in group.objects]
    confidence = "certain" if group.certain else "likely"
    cause = group.cause
    return PendingGroup(cause.code, cause.message, group.count, group.missing, workloads, confidence, remedy)


@attrs.frozen(eq=False)
class PendingCauses:
    """The pods that are pending at the end of a run, by cause.

    Each of the largest groups contains a remedy for one of its workloads.
    """

    groups: Sequence[PendingGroup]
    diagnoses: Sequence[DiagnosisAnswer]

    @property
    def texts(self) -> list[tuple[ObjectNamed, str]]:
        """Return the message of the cause of each diagnosed workload."""
        return [(each.workload, reports.diagnosis(plain(each), TerminalStyle())) for each in self.diagnoses]

    def text(self) -> str:
        table = reports.pending(plain(self.groups), None, TerminalStyle())
        return "\n".join([table, *(text for _, text in self.texts)]).rstrip()

    def as_json(self) -> dict[str, Any]:
        return {"pending": plain(self.groups), "diagnoses": plain(self.diagnoses)}


def pending_causes(
    engine: Engine, methods: MethodsOf, most: int, diagnosed: int = 0, check: Callable[[], None] = lambda: None
) -> PendingCauses | None:
    """Return the pending pods by cause; None if no pod is pending.

    For the first `most` groups, a workload is diagnosed and remedies are tried; for the first `diagnosed` groups, a
    workload is diagnosed.
    """
    groups = _groups(engine, None, check)
    if not groups:
        return None
    found = [
        diagnosis(engine, group.objects[0], methods, trying=number < most, check=check)
        for number, group in enumerate(groups[: max(most, diagnosed)])
    ]
    remedies = [next(iter(each.remedies), None) for each in found] + [None] * len(groups)
    return PendingCauses([_group_answer(*pair) for pair in zip(groups, remedies, strict=False)], found)
