"""Remedies: combined options, each tried with the whole workload before it is proposed.

Options for several causes are combined, because each cause alone makes the workload's nodes infeasible. A remedy is not
proposed if any replica stays pending, or if another pod loses its node. The exception, a remedy whose pods preempt a
single pod of lower priority, comes last and names this pod.
"""

from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Any, Final

from kschedd.causes.answers import RemedyAnswer
from kschedd.causes.findings import CHANGE_WORKLOAD, KINDS, FoundCause, RemedyOption
from kschedd.causes.steps import RemedyStep, changes_of, diff, steps_to
from kschedd.causes.trial import TrialOutcome, Trials
from kschedd.causes.words import cut, joined
from kschedd.causes.workload import ExaminedWorkload

_MOST_TRIED: Final = 6
_MOST_MIXED: Final = 24  # maximum number of combinations of several findings' options
MOST_FOUND: Final = 3
_MOST_PREEMPTING: Final = 2  # options that are tried although their pods may preempt another pod


def remedies(
    workload: ExaminedWorkload, findings: Sequence[FoundCause], trials: Trials, program: str, most: int = MOST_FOUND
) -> tuple[list[RemedyAnswer], list[str]]:
    """Return at most this many working remedies, best first, and the failed trials."""
    found: list[RemedyAnswer] = []
    failed: list[str] = []
    enough: list[set[str]] = []
    for options in islice(_together(findings), _MOST_TRIED):
        steps, text = carried_out(workload, options)
        parts = {option.summary for option in options}
        if not steps or any(less <= parts for less in enough):  # a subset of these options is already enough
            continue
        outcome = trials.run(steps)
        summary = cut(joined([*dict.fromkeys(option.summary for option in options)]))
        if not outcome.solves:
            failed.append(f"{summary}: {outcome.why_not}")
            continue
        enough.append(parts)
        found.append(_answer(len(found) + 1, summary, workload, options, steps, text, outcome, program))
        if len(found) == most:
            break
    return found, failed


def preempting(
    workload: ExaminedWorkload,
    findings: Sequence[FoundCause],
    trials: Trials,
    program: str,
    found: Sequence[RemedyAnswer],
) -> list[RemedyAnswer]:
    """Return a remedy that changes only the workload, whose pods then preempt one pod of lower priority.

    Returns an empty list if there is none, or if a remedy in `found` already changes only the workload.
    """
    pods = workload.pods
    if any(len(each.commands) == 1 and each.kind == CHANGE_WORKLOAD for each in found) or not pods:
        return []
    if pods[0].pod_spec.preemption_policy == "Never" or not trials.has_lower(pods[0].priority):
        return []
    for option in findings[0].options[:_MOST_PREEMPTING]:
        steps, text = carried_out(workload, [option])
        if not steps or option.kind != CHANGE_WORKLOAD or option.steps or option.less:
            continue
        outcome = trials.run(steps)
        victims = trials.lower(outcome.displaced, pods[0].priority)
        if len(victims) == 1 and len(outcome.displaced) == len(victims) + len(trials.created(outcome.displaced)):
            summary = f"{cut(option.summary)}, which preempts pod {victims[0]}"
            return [_answer(len(found) + 1, summary, workload, [option], steps, text, outcome, program)]
    return []


def keeps_all(remedy: RemedyAnswer, workload: ExaminedWorkload) -> bool:
    """Return whether the workload keeps all its replicas; some remedies scale it down."""
    return remedy.scheduled == f"{workload.wanted} of {workload.wanted}"


def _together(findings: Sequence[FoundCause]) -> Iterator[tuple[RemedyOption, ...]]:
    """Yield combinations with one option of each finding; combinations that change only the workload are first.

    If each finding concerns only some nodes, single options are tried before combinations.
    """
    whole = [finding.options for finding in findings if finding.options and not finding.partial]
    partial = [finding.options for finding in findings if finding.options and finding.partial]
    choices = [[*whole, one] for one in partial] if len(partial) > 1 else []
    found = [
        options for each in (*choices, [*whole, *partial]) if each for options in islice(product(*each), _MOST_MIXED)
    ]

    def place(options: tuple[RemedyOption, ...]) -> tuple[bool, int]:
        return any(option.less for option in options), max(KINDS.index(option.kind) for option in options)

    yield from sorted(found, key=place)


def carried_out(workload: ExaminedWorkload, options: Sequence[RemedyOption]) -> tuple[list[RemedyStep], str]:
    """Return the combined steps of these options, and the change of the workload's manifest as a diff."""
    after = _after(workload, options)
    # Objects that the pods need, such as a class or a node, are created before the pods.
    steps = [step for option in options for step in option.steps]
    changed = steps_to(workload, after)
    ended = [step for option in options for step in option.after] if changed else []
    return [*steps, *changed, *ended], diff(workload.obj.raw, after) if changed else ""


def _after(workload: ExaminedWorkload, options: Sequence[RemedyOption]) -> dict[str, Any]:
    """Return the workload's manifest after the edits of the options."""
    return workload.edited(*[option.edit for option in options if option.edit is not None])


def _answer(
    rank: int,
    summary: str,
    workload: ExaminedWorkload,
    options: Sequence[RemedyOption],
    steps: Sequence[RemedyStep],
    text: str,
    outcome: TrialOutcome,
    program: str,
) -> RemedyAnswer:
    kind = max((option.kind for option in options), key=KINDS.index)
    target = next((option.target for option in options if option.target), workload.label)
    return RemedyAnswer(
        rank=rank,
        summary=summary,
        kind=kind,
        target=target,
        commands=[step.shell(program) for step in steps],
        manifest_diff=text,
        changes=list(changes_of(workload.obj.raw, _after(workload, options))) if text else [],
        verified=outcome.solves,
        scheduled=f"{outcome.scheduled} of {outcome.wanted}",
        displaced=list(outcome.displaced),
    )
