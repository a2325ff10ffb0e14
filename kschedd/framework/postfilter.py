"""What PostFilter plugins receive: the failed attempt, dry runs of preemption, and their results.

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
    """A node where the pod would fit if these pods were evicted; most important first."""

    node_name: str
    victims: tuple[Pod, ...]
    pdb_violations: int  # victims whose eviction a PodDisruptionBudget does not allow


@attrs.frozen(eq=False)
class DryRun:
    """Result of a dry run on some nodes. Without a candidate, `message` gives the reasons as a fit error does."""

    candidates: tuple[Candidate, ...]
    best: Candidate | None
    ties: tuple[str, ...]  # names of all candidates as good as the best by every criterion, sorted
    message: str = ""
    fault: str = ""  # a filter or an extender failed, and there is no candidate
    nominated_node: str | None = ""  # without a candidate: None leaves the pod's nomination, "" clears it


@attrs.frozen(eq=False)
class Preemption:
    """Details of a successful preemption, for `explain`."""

    candidates: tuple[Candidate, ...]
    ties: tuple[str, ...]
    cleared: tuple[Pod, ...]  # pods that lose their nomination to the node
    deleted: tuple[Pod, ...]  # the victims that a delete call is made for, or that leave their binding cycle


class PostFilterView(Protocol):
    """One failed attempt: the filters' verdicts, the nominated pods, and dry runs of preemption."""

    def code_on(self, node_name: str) -> Code:
        """The filters' status code for this node; a node that was not checked has a code, too."""

    def rows_with(self, code: Code) -> Rows:
        """The rows of the nodes rejected with this code, in visiting order."""

    def nominated_on(self, node_name: str) -> Sequence[Pod]:
        """The pods nominated to the node, in the order of their nomination."""

    def dry_run(self, state: CycleState, pod: Pod, rows: Rows, offset: int, wanted: int) -> DryRun:
        """Find which pods of lower priority would have to be evicted, row by row from `rows[offset]`, wrapping around.

        It ends with `wanted` candidates, of which at least one violates no PodDisruptionBudget.
        """
