"""Pending pods grouped by cause: one pod of each workload is examined; those with one cause are told together."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

from kschedd.answers import plain
from kschedd.api.conditions import condition
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.causes.answers import DiagnosisAnswer, ObjectNamed, PendingGroup
from kschedd.causes.case import case_of
from kschedd.causes.diagnosis import causes, diagnosis
from kschedd.causes.findings import FoundCause, named
from kschedd.causes.workload import ExaminedWorkload, workload_of
from kschedd.clusters.virtual import MethodsOf
from kschedd.printing.reports import causes as reports
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.simulation.engine import Engine

_MOST_EXAMINED: Final = 1_000  # workloads; pods of others are told with those that the scheduler rejects likewise


@attrs.define
class _Group:
    cause: FoundCause
    objects: list[Object]
    count: int = 0
    certain: bool = True


def pending_groups(engine: Engine, pods: Sequence[Pod], check: Callable[[], None]) -> list[PendingGroup]:
    """The groups of those of these pods that have no node; the largest first."""
    return [_told(group) for group in _groups(engine, pods, check)]


def _groups(engine: Engine, pods: Sequence[Pod], check: Callable[[], None]) -> list[_Group]:
    groups: dict[tuple[str, str], _Group] = {}
    by_owner: dict[str | int, _Group] = {}  # by what a pod's own controller is, or a spec without one
    by_workload: dict[str, _Group] = {}
    by_message: dict[str, _Group] = {}
    for pod in pods:
        if pod.node_name or pod.deleting or pod.finished:
            continue
        owner = pod.owner
        near = pod.signature.id if owner is None else owner.uid
        group = by_owner.get(near)
        if group is None:
            workload = workload_of(engine.store, pod)
            group = by_workload.get(workload.obj.uid)
            message = _message(pod)
            if group is None and len(by_workload) >= _MOST_EXAMINED:
                group = by_message.get(message)
            if group is None:
                check()
                cause = _cause(engine, workload)
                group = groups.setdefault((cause.code, cause.message), _Group(cause, []))
                group.objects.append(workload.obj)
                group.certain &= cause.certain
                by_message.setdefault(message, group)
                by_workload[workload.obj.uid] = group
            by_owner[near] = group
        elif owner is None:
            group.objects.append(pod)
        group.count += 1
    return sorted(groups.values(), key=lambda group: (-group.count, group.cause.code, group.cause.message))


def _cause(engine: Engine, workload: ExaminedWorkload) -> FoundCause:
    pod = workload.pending[0]
    known = pod.scheduler_name in engine.machine.schedulers
    return next(causes(engine, workload, pod, case_of(engine, workload, pod) if known else None))


def _message(pod: Pod) -> str:
    return str((condition(pod.status, "PodScheduled") or {}).get("message") or "")


def _told(group: _Group) -> PendingGroup:
    workloads = [named(obj) for obj in group.objects]
    confidence = "certain" if group.certain else "likely"
    return PendingGroup(group.cause.code, group.cause.message, group.count, workloads, confidence)


@attrs.frozen(eq=False)
class PendingCauses:
    """Why pods are pending at the end of a run: all of them by cause, and what would help one workload of each of the
    largest groups."""

    groups: Sequence[PendingGroup]
    diagnoses: Sequence[DiagnosisAnswer]

    @property
    def texts(self) -> list[tuple[ObjectNamed, str]]:
        """The workloads that were diagnosed, and what is wrong with each."""
        return [(each.workload, reports.diagnosis(plain(each), TerminalStyle())) for each in self.diagnoses]

    def text(self) -> str:
        table = reports.pending(plain(self.groups), None, TerminalStyle())
        return "\n".join([table, *(text for _, text in self.texts)]).rstrip()

    def as_json(self) -> dict[str, Any]:
        return {"pending": plain(self.groups), "diagnoses": plain(self.diagnoses)}


def pending_causes(
    engine: Engine, methods: MethodsOf, most: int, check: Callable[[], None] = lambda: None
) -> PendingCauses | None:
    """See `PendingCauses`; None where no pod is pending. `most`: groups of which one workload is diagnosed."""
    pods = [pod for pod in engine.store.list("Pod") if isinstance(pod, Pod)]
    groups = _groups(engine, pods, check)
    if not groups:
        return None
    found = [diagnosis(engine, group.objects[0], methods, check=check) for group in groups[:most]]
    return PendingCauses([_told(group) for group in groups], found)
