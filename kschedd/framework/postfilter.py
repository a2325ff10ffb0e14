"""What PostFilter plugins are given to try changes with, and what preemption says of the room it could make.

The one who runs the attempt implements `PostFilterView`; plugins only ask it. Values otherwise.

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
    """A node where the pod would fit if these pods went; the most important one comes first."""

    node_name: str
    victims: tuple[Pod, ...]
    pdb_violations: int  # victims whose eviction a PodDisruptionBudget does not allow


@attrs.frozen(eq=False)
class DryRun:
    """What trying some nodes came to. Without any candidate `message` says why not, as a fit error does."""

    candidates: tuple[Candidate, ...]
    best: Candidate | None
    ties: tuple[str, ...]  # names of all candidates as good as the best by every criterion, sorted
    message: str = ""
    fault: str = ""  # a filter failed, and there is no candidate


@attrs.frozen(eq=False)
class Preemption:
    """What a successful preemption looked at and takes along, for those who explain it."""

    candidates: tuple[Candidate, ...]
    ties: tuple[str, ...]
    cleared: tuple[Pod, ...]  # pods that lose their nomination to the node


class PostFilterView(Protocol):
    """One failed attempt: what the filters said, who is nominated where, and a way to try what would help."""

    def code_on(self, node_name: str) -> Code:
        """What the filters said of this node; a node nobody asked about has a code too."""

    def rows_with(self, code: Code) -> Rows:
        """The rows of the nodes rejected with this code, in visiting order."""

    def nominated_on(self, node_name: str) -> Sequence[Pod]:
        """The pods nominated to the node, in the order of their nomination."""

    def dry_run(self, state: CycleState, pod: Pod, rows: Rows, offset: int, wanted: int) -> DryRun:
        """Try which pods of lower priority would have to go, row by row from `rows[offset]` round the end.

        It ends with `wanted` candidates, of which at least one violates no PodDisruptionBudget.
        """
