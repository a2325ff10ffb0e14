"""AddedPods: the amounts that nominated pods would add to a node table, summed by row.

The caller updates the sums when nominations change. A few array operations add the pods of any number of rows to a
what-if copy, or subtract these pods.

Shapes: those of the table's columns with the same names. Sums wrap around as int64, like the table's sums.
"""

from collections.abc import Sequence

import attrs
import numpy as np

from kschedd.api.pods import Pod, PodSpec
from kschedd.api.quantity import wrapped
from kschedd.cache.table import Ints, NodeTable, Rows, TableCopy


@attrs.define(eq=False)
class AddedPods:
    size: int
    _requested: dict[str, Ints] = attrs.field(factory=dict, init=False)  # by resource
    _nonzero: Ints = attrs.field(init=False)
    _pod_count: Ints = attrs.field(init=False)
    _ports: dict[int, list[PodSpec]] = attrs.field(factory=dict, init=False)  # row -> specs with host ports

    def __attrs_post_init__(self) -> None:
        self._nonzero = np.zeros((2, self.size), dtype=np.int64)
        self._pod_count = np.zeros(self.size, dtype=np.int64)

    def put(self, table: NodeTable, row: int, pods: Sequence[Pod]) -> None:
        """Set the pods of the row."""
        sums: dict[str, int] = {}
        cpu = memory = 0
        for pod in map(table.counted, pods):
            for name, amount in pod.requests.items():
                if amount and name != "pods":
                    sums[name] = sums.get(name, 0) + amount
            added_cpu, added_memory = pod.nonzero_requests
            cpu, memory = cpu + added_cpu, memory + added_memory
        for name in sums:
            if name not in self._requested:
                self._requested[name] = np.zeros(self.size, dtype=np.int64)
        for name, column in list(self._requested.items()):
            column[row] = wrapped(sums.get(name, 0))
            if not column.any():
                del self._requested[name]
        self._nonzero[:, row] = wrapped(cpu), wrapped(memory)
        self._pod_count[row] = len(pods)
        self._ports.pop(row, None)
        specs = [pod.signature.spec for pod in pods if pod.signature.spec.host_ports]
        if specs:
            self._ports[row] = specs

    def count(self, copy: TableCopy, rows: Rows, of: Rows, sign: int) -> None:
        """Add (1) or subtract (-1) the pods of the rows `of` on the given distinct rows of a copy."""
        for name, column in self._requested.items():
            number = copy.resource(name)  # call `resource` first, because it may replace the columns by larger arrays
            copy.requested[number][rows] += sign * column[of]
        for number in (0, 1):
            copy.nonzero[number][rows] += sign * self._nonzero[number][of]
        copy.pod_count[rows] += sign * self._pod_count[of]
        if self._ports:
            for row, own in zip(rows.tolist(), of.tolist(), strict=True):
                for spec in self._ports.get(own, ()):
                    copy.count_ports(row, spec, sign)
        copy.versions.touch_each(rows)
