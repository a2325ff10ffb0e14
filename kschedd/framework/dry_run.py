"""Optional methods of in-tree filter plugins that let an attempt, or preemption, try many nodes at once.

Each row of a what-if copy stands for a cluster of its own, in which pods were removed from (or added to) that node and
no other. A plugin whose PreFilter state follows pods (AddPod, RemovePod) would need a copy of the state for each row.
With `dry_run_columns` it says instead what differs between these clusters, as one column for each number that its
filter reads. And `affected_by` tells which pods a filter never looks at: it is not asked again when such a pod is let
back.

And `known_to_pass` spares a filter that looks at one node at a time those that it need not look at.

They are called on from in-tree plugins only; none changes a result.
"""

from collections.abc import Sequence
from typing import Protocol

from kschedd.api.pods import Pod, PodSpec
from kschedd.cache.table import Bools, Ints, NodeTable, Rows, TableCopy
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.interface import Plugin
from kschedd.framework.status import Status


class DryRunColumns(Protocol):
    """What a plugin's filter reads, for each row of a what-if copy."""

    def follow(self, rows: Rows, kinds: Ints, of: Sequence[Pod], amount: int, /) -> None:
        """AddPod (`amount` 1) or RemovePod (-1) of a pod on each of these rows, which may repeat;
        `of` has one pod of each kind, all of which have one signature."""

    def codes(self, rows: Rows, /) -> Ints:
        """The filter's verdict on each row: 0 passes, other numbers as the plugin's `code_status` has them."""

    def status(self, code: int, /) -> Status:
        """The status of a code, for a plugin that has no `code_status`."""


class TriesRowsTogether(Plugin, Protocol):
    def dry_run_columns(self, state: CycleState, pod: Pod, table: TableCopy, /) -> DryRunColumns | None:
        """The columns for a copy on which nothing has been changed yet, from the state of `pre_filter`, which stays
        as it is. None: without that state the filter passes every node."""


class AffectedBySomePods(Plugin, Protocol):
    def affected_by(self, spec: PodSpec, /) -> bool:
        """Rule: where false, the filter's verdict on a node is the same with a pod of this spec there and without."""


class KnownToPass(Plugin, Protocol):
    def known_to_pass(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, /) -> Bools:
        """Rule: where true, the filter passes the node of that row, and nobody misses what asking it would note."""
