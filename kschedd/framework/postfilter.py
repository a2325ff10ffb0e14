"""The arguments of PostFilter plugins: the failed attempt, dry runs of preemption, and their results.

The scheduler implements `FailedAttemptView`; plugins only call its methods. Values otherwise.

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
    """A node on which the pod would fit if these victims were evicted; the most important victim is first."""

    node_name: str
    victims: tuple[Pod, ...]
    pdb_violations: int  # number of victims whose eviction violates a PodDisruptionBudget


@attrs.frozen(eq=False)
class DryRun:
    """The result of a dry run on some nodes.

    If there is no candidate, `message` contains the reasons in the format of a fit error.
    """

    candidates: tuple[Candidate, ...]
    best: Candidate | None
    ties: tuple[str, ...]  # sorted names of all candidates that equal the best candidate by every criterion
    message: str = ""
    fault: str = ""  # message of the filter or extender that failed, if there is no candidate
    nominated_node: str | None = ""  # without a candidate: None: keep the pod's nomination; "": clear it


@attrs.frozen(eq=False)
class Preemption:
    """The details of a successful preemption, for `explain`."""

    candidates: tuple[Candidate, ...]
    ties: tuple[str, ...]
    cleared: tuple[Pod, ...]  # pods whose nomination to the node is cleared
    deleted: tuple[Pod, ...]  # victims that are deleted, or whose binding is rejected


class PostFilterView(Protocol):
    """One failed attempt: the filters' verdicts, the nominated pods, and dry runs of preemption."""

    def code_on(self, node_name: str) -> Code:
        """Return the status code of the filters for this node, even if the node was not visited."""

    def rows_with(self, code: Code) -> Rows:
        """Return the rows of the nodes rejected with this code, in visiting order."""

    def nominated_on(self, node_name: str) -> Sequence[Pod]:
        """Return the pods nominated to the node, in the order of nomination."""

    def dry_run(self, state: CycleState, pod: Pod, rows: Rows, offset: int, wanted: int) -> DryRun:
        """Find the pods of lower priority to evict, row by row from `rows[offset]`, wrapping around.

        The search ends with `wanted` candidates, if at least one of them violates no PodDisruptionBudget.
        """
