"""CheapNodes: a plugin that evaluates all nodes in one call, as columns.

A node's price is in its label `example.com/price: "0.40"`. Cheaper nodes score higher. A pod with the label
`example.com/most: "0.50"` is not scheduled to a more expensive node, nor to a node without a price.

    kschedd run --plugin examples/plugins/cheap_nodes.py --config CONFIG

    profiles:
      - plugins:
          multiPoint:
            enabled: [{name: CheapNodes, weight: 5}]

`table` has a column for each label key, with the number of the value in every row. There are far fewer prices than
nodes, so each price is parsed once and looked up for all rows in one step.

`depends_on = {"node"}` declares that the result for a node depends only on its Node object and the pod's signature
(spec, namespace, labels). The results are then cached, and only changed nodes are evaluated again.
"""

from collections.abc import Sequence
from typing import ClassVar, Self

import attrs
import numpy as np

from kschedd.plugin import (
    ActionType,
    ClusterEventWithHint,
    CycleState,
    EventResource,
    Handle,
    Ints,
    NodeTable,
    Pod,
    RawArgs,
    Rows,
    Status,
    default_normalize,
    on,
    unresolvable,
)

PRICE, MOST = "example.com/price", "example.com/most"
TOO_DEAR, NO_PRICE = 1, 2
_UNKNOWN = -1


def thousandths(text: str) -> int:
    """Return a price as an integer that can be compared and scored; `_UNKNOWN` if it is invalid."""
    try:
        price = round(float(text) * 1000)
    except (ValueError, OverflowError):
        return _UNKNOWN
    return max(price, _UNKNOWN)


@attrs.define(eq=False)
class CheapNodes:
    name: ClassVar = "CheapNodes"
    depends_on: ClassVar = frozenset({"node"})
    _prices: list[int] = attrs.field(factory=list)  # prices, indexed by the number of the label's value

    @classmethod
    def from_args(cls, args: RawArgs, handle: Handle) -> Self:
        return cls()

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints | None:
        """Return a code for each row, 0 for rows that pass; None passes all rows."""
        wanted = pod.labels.get(MOST)
        if wanted is None:
            return None
        prices = self._of(table, rows)
        codes = np.where(prices > thousandths(wanted), TOO_DEAR, 0)
        return np.where(prices == _UNKNOWN, NO_PRICE, codes).astype(np.int64)

    def code_status(self, state: CycleState, pod: Pod, code: int) -> Status:
        """Return the status for a code; it is called only when the message is needed."""
        if code == NO_PRICE:
            return unresolvable("node(s) had no price")
        return unresolvable(f"node(s) cost more than {pod.labels[MOST]}")

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        """Return the price; it is cached until the node changes, so it must not depend on the other rows."""
        return self._of(table, rows)

    def normalize(self, state: CycleState, pod: Pod, scores: Ints) -> Ints:
        """Normalize the prices; a node without a price counts as the most expensive feasible node."""
        return default_normalize(np.where(scores == _UNKNOWN, scores.max(initial=0), scores), reverse=True)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return [on(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)]

    def _of(self, table: NodeTable, rows: Rows) -> Ints:
        column = table.label(PRICE)
        for value in column.values[len(self._prices) :]:
            self._prices.append(thousandths(value))
        # Rows without the label have the number -1, which selects the last entry.
        by_number = np.array([*self._prices, _UNKNOWN], dtype=np.int64)
        return by_number[column.ids[rows]]
