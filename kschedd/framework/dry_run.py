"""Optional methods of in-tree filter plugins that let an attempt, or preemption, try many nodes in one call.

Each row of a what-if copy represents a separate cluster, in which pods changed on that node only. A plugin whose
PreFilter state follows pods (AddPod, RemovePod) would need a copy of the state for each row. To avoid these copies,
`dry_run_columns` returns the differences between the clusters of the rows, as one column for each number that the
plugin's filter reads. `affected_by` returns whether a pod can change the filter's result. If the pod cannot,
preemption's dry run restores it without another call of the filter. With `known_to_pass`, a filter that evaluates one
node at a time can skip nodes that need no check.

The scheduler calls these methods only on in-tree plugins; the methods never change a result.
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
        """Return the status of a code; for plugins without `code_status`."""


class TriesRowsTogether(Plugin, Protocol):
    def dry_run_columns(self, state: CycleState, pod: Pod, table: TableCopy, /) -> DryRunColumns | None:
        """Return the columns for an unchanged copy, from the state of `pre_filter`; the state must not be modified.

        Return None if the state is missing, in which case the filter passes every node.
        """


class AffectedBySomePods(Plugin, Protocol):
    def affected_by(self, spec: PodSpec, /) -> bool:
        """Return whether a pod with this spec can affect the filter.

        Rule: if the result is False, adding such a pod to a node does not change the filter's verdict on the node.
        """


class KnownToPass(Plugin, Protocol):
    def known_to_pass(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, /) -> Bools:
        """Return a mask of the rows that the filter certainly passes.

        Rule: if a value is True, the filter passes this row, and a call of the filter would store no data.
        """
