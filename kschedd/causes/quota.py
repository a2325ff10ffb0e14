"""Diagnosis of a ResourceQuota: its usage, and the workloads whose pods it rejects."""

from collections.abc import Callable

from kschedd.api.objects import Object
from kschedd.api.quantity import nanos
from kschedd.causes.answers import DiagnosisAnswer
from kschedd.causes.diagnosis import causes_and_remedies, causes_of
from kschedd.causes.findings import FoundCause, named
from kschedd.causes.pending import short_workloads
from kschedd.causes.trial import Trials
from kschedd.causes.words import counted, joined, some
from kschedd.causes.workload import ExaminedWorkload
from kschedd.clusters.virtual import MethodsOf
from kschedd.simulation.engine import Engine

KIND = "ResourceQuota"


def quota_diagnosis(
    engine: Engine,
    quota: Object,
    methods: MethodsOf,
    *,
    program: str = "kschedd",
    trying: bool = True,
    check: Callable[[], None] = lambda: None,
) -> DiagnosisAnswer:
    """Diagnose a quota.

    The numbers in the answer count pods of the rejected workloads; the remedies are for the first workload.
    """
    held: list[tuple[ExaminedWorkload, FoundCause]] = []
    for workload in short_workloads(engine, quota.namespace):
        check()
        refusal = next((each for each in causes_of(engine, workload.obj) if named(quota) in each.objects), None)
        if refusal is not None:
            held.append((workload, refusal))
    workloads = [workload for workload, _ in held]
    finding = _holding(quota, held) if held else _idle(quota)
    first = workloads[0] if held else ExaminedWorkload(quota, ())
    trials = Trials(engine, first, methods, check) if trying and held else None
    return DiagnosisAnswer(
        workload=named(quota),
        wanted=sum(workload.wanted for workload in workloads),
        scheduled=sum(len(workload.scheduled) for workload in workloads),
        pending=sum(len(workload.pending) for workload in workloads),
        missing=sum(workload.missing for workload in workloads),
        examined="",
        blocking_nodes=[],
        **causes_and_remedies(first, [finding], trials, program),
    )


def _holding(quota: Object, held: list[tuple[ExaminedWorkload, FoundCause]]) -> FoundCause:
    _, first = held[0]
    if len(held) == 1:
        message = f"{held[0][0].label}: {first.message}"
    else:
        parts = [f"{counted(workload.missing, 'pod')} of {workload.label}" for workload, _ in held]
        message = f"{KIND} {quota.name} refuses {joined(parts)}"
    return FoundCause(
        first.code,
        message,
        [named(quota), *(named(workload.obj) for workload, _ in held[:3])],
        ["spec.hard"],
        _usage(quota),
        first.options,
        certain=first.certain,
    )


def _idle(quota: Object) -> FoundCause:
    used_up = [resource for resource, used, hard in _amounts(quota) if nanos(used) >= nanos(hard)]
    rest = f"; {some(used_up)} {'is' if len(used_up) == 1 else 'are'} used up" if used_up else ""
    return FoundCause(
        "NothingIsWrong",
        f"{KIND} {quota.name} holds back no pods now{rest}",
        [named(quota)],
        ["spec.hard"],
        _usage(quota),
        passing=True,
    )


def _usage(quota: Object) -> list[str]:
    return [f"{resource}: {used} of {hard} used" for resource, used, hard in _amounts(quota)]


def _amounts(quota: Object) -> list[tuple[str, str, str]]:
    """Return the used amount and the limit of each resource."""
    used = quota.status.get("used") or {}
    return [
        (resource, str(used.get(resource, "0")), str(hard))
        for resource, hard in sorted((quota.spec.get("hard") or {}).items())
    ]
