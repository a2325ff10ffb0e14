"""The victims of a preemption, the criterion by which they were chosen, and the other candidates.

Source: Kubernetes v1.34, scheduler/framework/preemption/preemption.go (pickOneNodeForPreemption).
"""

from collections.abc import Callable, Sequence
from typing import Final

from kschedd.explain.answers import CandidatesLeft, PreemptionAnswer, PreemptionCandidate
from kschedd.framework.postfilter import Candidate
from kschedd.framework.postfilter import Preemption as Details
from kschedd.scheduling.preemption.dry_run import earliest_start

_SHOWN: Final = 20  # candidates
_LIFT: Final = 1 << 31  # added to make every priority positive, as upstream does

_CRITERIA: Final[tuple[tuple[str, Callable[[Candidate], int]], ...]] = (
    ("fewest violated disruption budgets", lambda candidate: candidate.pdb_violations),
    ("lowest priority of the highest victim", lambda candidate: candidate.victims[0].priority),
    ("lowest sum of priorities", lambda candidate: sum(pod.priority + _LIFT for pod in candidate.victims)),
    ("fewest victims", lambda candidate: len(candidate.victims)),
    ("latest start of the victims", lambda candidate: -earliest_start(candidate.victims)),
)


def preemption_answer(node: str, victims: list[str], details: Details | None) -> PreemptionAnswer:
    """Return the description of a preemption on this node.

    `details` is None for an out-of-tree plugin, because its candidates are unknown.
    """
    candidates: Sequence[Candidate] = () if details is None else details.candidates
    valued = [(tuple(value(each) for _, value in _CRITERIA), each) for each in candidates]
    ranked = sorted(valued, key=lambda pair: (pair[0], pair[1].node_name))
    left, steps, decided_by = len(ranked), [], ""
    for number, (name, _) in enumerate(_CRITERIA, 1):
        if left < 2:
            break
        best = ranked[0][0][:number]
        left = sum(values[:number] == best for values, _ in ranked[:left])
        steps.append(CandidatesLeft(name, left))
        if left == 1:
            decided_by = name
    if left > 1:
        decided_by = "the first by name"
    return PreemptionAnswer(
        node,
        victims,
        [_candidate(each) for _, each in ranked[:_SHOWN]],
        len(candidates),
        decided_by,
        steps,
        [each.node_name for _, each in ranked[:left] if each.node_name != node],
    )


def _candidate(candidate: Candidate) -> PreemptionCandidate:
    priorities = [pod.priority for pod in candidate.victims]
    victims = [pod.key for pod in candidate.victims]
    return PreemptionCandidate(
        candidate.node_name,
        victims,
        candidate.pdb_violations,
        max(priorities, default=0),
        sum(priorities),
        len(priorities),
    )
