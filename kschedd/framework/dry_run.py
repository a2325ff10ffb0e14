"""Optional methods of in-tree filter plugins that let an attempt, or preemption, try many nodes at once.

Each row of a what-if copy represents a separate cluster, in which pods were removed from (or added to) that node only.
A plugin whose PreFilter state follows pods (AddPod, RemovePod) would need a copy of the state for each row. With
`dry_run_columns` it instead returns the differences between these clusters, as one column for each number that its
filter reads. With `affected_by` it declares which pods a filter never reads: the filter is not called again when such a
pod is put back. With `known_to_pass`, a filter that judges one node at a time skips nodes that need no check.

They are called on in-tree plugins only; none changes a result.
"""

from collections.abc import Sequence
from typing import Protocol

from kschedd.api.pods import Pod, PodSpec
from kschedd.cache.table import Bools, Ints, NodeTable, Rows, TableCopy
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.interface import Plugin
from kschedd.framework.status import Status


class DryRunColumns(Protocol):
    """The inputs of a plugin's filter, for each row of a what-if copy."""

    def follow(self, rows: Rows, kinds: Ints, of: Sequence[Pod], amount: int, /) -> None:
        """Apply AddPod (`amount` 1) or RemovePod (-1) of a pod on each of these rows, which may repeat.

        `kinds` are indices into `of`, which has one pod of each kind; pods of one kind have the same signature.
        """

    def codes(self, rows: Rows, /) -> Ints:
        """Return the filter's verdict on each row: 0 passes, other numbers are codes of the plugin's `code_status`."""

    def status(self, code: int, /) -> Status:
        """Return the status of a code, for a plugin without `code_status`."""


class TriesRowsTogether(Plugin, Protocol):
    def dry_run_columns(self, state: CycleState, pod: Pod, table: TableCopy, /) -> DryRunColumns | None:
        """Return the columns for an unchanged copy, from the state of `pre_filter`, which is not modified.

        None: without that state the filter passes every node.
        """


class AffectedBySomePods(Plugin, Protocol):
    def affected_by(self, spec: PodSpec, /) -> bool:
        """Return whether a pod with this spec can affect the filter.

        Rule: if False, the filter's verdict on a node is the same with and without such a pod there.
        """


class KnownToPass(Plugin, Protocol):
    def known_to_pass(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, /) -> Bools:
        """Return which rows the filter certainly passes.

        Rule: if True, the filter passes the node of that row, and the call would record nothing that is needed later.
        """
