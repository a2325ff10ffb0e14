"""Who would make way, and why these: the candidates of a preemption, and the criterion that chose among them.

    node, victims   the chosen candidate
    candidates      [{node, victims, violations, highest, sum, victim_count}], the best first, at most 20
    candidate_count how many there were
    decided_by      the criterion after which one candidate was left; "" if there was only one from the beginning
    left            [{criterion, candidates}]: how many were left after each, in upstream's order
    tied            candidates as good as the chosen one by all of them: the first by name is taken

Source: Kubernetes v1.34, scheduler/framework/preemption/preemption.go (pickOneNodeForPreemption).
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from kschedd.framework.postfilter import Candidate
from kschedd.framework.postfilter import Preemption as Details
from kschedd.scheduling.preemption import earliest_start

_TOLD: Final = 20  # candidates
_LIFT: Final = 1 << 31  # makes every priority positive, as upstream does: more victims never weigh less than fewer

_CRITERIA: Final[tuple[tuple[str, Callable[[Candidate], int]], ...]] = (
    ("fewest violated disruption budgets", lambda candidate: candidate.pdb_violations),
    ("lowest priority of the highest victim", lambda candidate: candidate.victims[0].priority),
    ("lowest sum of priorities", lambda candidate: sum(pod.priority + _LIFT for pod in candidate.victims)),
    ("fewest victims", lambda candidate: len(candidate.victims)),
    ("latest start of the victims", lambda candidate: -earliest_start(candidate.victims)),
)


def told(node: str, details: Details | None) -> dict[str, Any]:
    """What there is to say of a preemption that chose this node; None: an out-of-tree plugin's, which says no more."""
    left: Sequence[Candidate] = () if details is None else details.candidates
    candidates = left
    decided_by, steps = "", []
    for name, value in _CRITERIA:
        if len(left) < 2:
            break
        least = min(map(value, left))
        left = [candidate for candidate in left if value(candidate) == least]
        steps.append({"criterion": name, "candidates": len(left)})
        if len(left) == 1:
            decided_by = name
    if len(left) > 1:
        decided_by = "the first by name"
    ranked = sorted(candidates, key=lambda c: (*(value(c) for _, value in _CRITERIA), c.node_name))
    return {
        "candidates": [_candidate(each) for each in ranked[:_TOLD]],
        "candidate_count": len(candidates),
        "decided_by": decided_by,
        "left": steps,
        "tied": [candidate.node_name for candidate in left if candidate.node_name != node],
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    priorities = [pod.priority for pod in candidate.victims]
    return {
        "node": candidate.node_name,
        "victims": [pod.key for pod in candidate.victims],
        "violations": candidate.pdb_violations,
        "highest": max(priorities, default=0),
        "sum": sum(priorities),
        "victim_count": len(priorities),
    }
