"""Arguments of PostFilter plugins: the failed attempt, dry runs of preemption, and their results.

The scheduler implements `FailedAttemptView`; plugins only call it. Values otherwise.

Source: Kubernetes v1.34, scheduler/framework/preemption/preemption.go (Candidate, Interface).
"""

from collections.abc import Sequence
from typing import Protocol

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.table import Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Code


@attrs.frozen(eq=False)
class Candidate:
    """A node where the pod would fit if these victims were evicted; most important first."""

    node_name: str
    victims: tuple[Pod, ...]
    pdb_violations: int  # victims whose eviction a PodDisruptionBudget does not allow


@attrs.frozen(eq=False)
class DryRun:
    """The result of a dry run on some nodes. Without a candidate, `message` has the reasons in a fit error's form."""

    candidates: tuple[Candidate, ...]
    best: Candidate | None
    ties: tuple[str, ...]  # names of all candidates as good as the best by every criterion, sorted
    message: str = ""
    fault: str = ""  # set if a filter or an extender failed and there is no candidate
    nominated_node: str | None = ""  # without a candidate: None keeps the pod's nomination, "" clears it


@attrs.frozen(eq=False)
class Preemption:
    """The details of a successful preemption, for `explain`."""

    candidates: tuple[Candidate, ...]
    ties: tuple[str, ...]
    cleared: tuple[Pod, ...]  # pods that lose their nomination to the node
    deleted: tuple[Pod, ...]  # victims for which a delete call is made, or that leave their binding cycle


class PostFilterView(Protocol):
    """One failed attempt: the filters' verdicts, the nominated pods, and dry runs of preemption."""

    def code_on(self, node_name: str) -> Code:
        """Return the filters' status code for this node; unvisited nodes have one, too."""

    def rows_with(self, code: Code) -> Rows:
        """Return the rows of the nodes rejected with this code, in visiting order."""

    def nominated_on(self, node_name: str) -> Sequence[Pod]:
        """Return the pods nominated to the node, in the order of nomination."""

    def dry_run(self, state: CycleState, pod: Pod, rows: Rows, offset: int, wanted: int) -> DryRun:
        """Find the pods of lower priority to evict, row by row from `rows[offset]`, wrapping around.

        It ends with `wanted` candidates, of which at least one violates no PodDisruptionBudget.
        """
