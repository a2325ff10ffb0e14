"""Optional methods of in-tree filter plugins that let an attempt, or preemption, try many nodes in one call.

Each row of a what-if copy represents a separate cluster, in which pods were removed from (or added to) only that node.
A plugin whose PreFilter state follows pods (AddPod, RemovePod) would need a copy of the state for each row. With
`dry_run_columns`, the plugin returns the differences between these clusters instead, as one column for each number that
its filter reads. `affected_by` returns whether a pod can change the filter's result. If preemption's dry run restores a
pod that cannot, it does not call the filter again. With `known_to_pass`, a filter that evaluates one node at a time can
skip nodes that need no check.

The scheduler calls these methods only on in-tree plugins, and they never change a result.
"""

from collections.abc import Sequence
from typing import Protocol

from kschedd.api.pods import Pod, PodSpec
from kschedd.cache.table import Bools, Ints, NodeTable, Rows, TableCopy
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.interface import Plugin
from kschedd.framework.status import Status


class DryRunColumns(Protocol):
    """The inputs of a plugin's filter for each row of a what-if copy."""

    def follow(self, rows: Rows, kinds: Ints, of: Sequence[Pod], amount: int, /) -> None:
        """Apply AddPod (`amount` 1) or RemovePod (-1) of a pod to each of these rows; a row may occur repeatedly.

        `kinds` contains indices into `of`, which contains one pod of each kind; pods of the same kind have equal
        signatures.
        """

    def codes(self, rows: Rows, /) -> Ints:
        """Return the filter's verdict on each row: 0 passes, other numbers are codes for the plugin's `code_status`."""

    def status(self, code: int, /) -> Status:
        """Return the status of a code, for a plugin without `code_status`."""


class TriesRowsTogether(Plugin, Protocol):
    def dry_run_columns(self, state: CycleState, pod: Pod, table: TableCopy, /) -> DryRunColumns | None:
        """Return the columns for an unchanged copy, from the state of `pre_filter`, which must not be modified.

        Return None if that state is missing; the filter then passes every node.
        """


class AffectedBySomePods(Plugin, Protocol):
    def affected_by(self, spec: PodSpec, /) -> bool:
        """Return whether a pod with this spec can affect the filter.

        Rule: if the result is False, the filter's verdict on a node is the same with and without a pod with this spec
        on it.
        """


class KnownToPass(Plugin, Protocol):
    def known_to_pass(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, /) -> Bools:
        """Return the rows for which the filter certainly passes, as a mask.

        Rule: if a value is True, the filter passes the node of that row, and a call would record nothing that is needed
        later.
        """
