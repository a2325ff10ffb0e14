"""What would make a rejected pod fit, as plugins say it: data and the view they are given for it.

A filter plugin may have a method `remedies(context, row, status)`: the smallest changes that would content it on that
row, each completing the sentence "it would fit if ...". One without it has its own reason repeated.
Costs only order the sentences: 1 for a change, more for changes that reach further, a fraction more for larger amounts.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.cluster import Cluster
from kschedd.cache.table import NodeTable
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.interface import Plugin
from kschedd.framework.status import Status


@attrs.frozen
class Change:
    """Completes the sentence "it would fit if ..."; `cost` only orders."""

    text: str
    cost: float


@attrs.frozen(eq=False)
class RemedyContext:
    """The cluster as it is, and the state of the attempt in which the pod was rejected."""

    cluster: Cluster
    state: CycleState
    pod: Pod

    @property
    def table(self) -> NodeTable:
        return self.cluster.table

    def name(self, row: int) -> str:
        return self.table.names[row]

    def labels(self, row: int) -> Mapping[str, str]:
        node = self.table.nodes[row]
        return {} if node is None else node.labels

    def label_number(self, row: int, key: str) -> int:
        """The number of the row's value of a label, as counts by domain have it; -1 if it has none."""
        return int(self.table.label(key).ids[row])

    def domain(self, row: int, key: str) -> list[int]:
        """The rows in the same topology domain, the row itself among them; none if it has no such label."""
        ids = self.table.label(key).ids
        if ids[row] < 0:
            return []
        same = self.table.order
        return [int(other) for other in same[ids[same] == ids[row]]]

    def repeated(self, row: int, status: Status) -> Change:
        """The plugin's own reason, where nothing better is known."""
        said = status.message or status.code.label
        return Change(f'{status.plugin} did not say "{said}" of {self.name(row)}', 4)


class RemedyPlugin(Plugin, Protocol):
    def remedies(self, context: RemedyContext, row: int, status: Status, /) -> Sequence[Change]:
        """What would have to change on this row, which the plugin rejected with `status`. In-tree plugins only."""


def joined(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
