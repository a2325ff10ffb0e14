"""RowPods: the pods of each node in the order of preemption, most important first, cached across preemptions.

A preemption visits some hundred nodes, but only one or two of them have changed since the previous preemption. The
reprieve order of a node's pods and the kind of each pod depend only on these pods.

The result is cached for each row of the node table while the row's pods are unchanged (`Versions.row_pods_at`).
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from kschedd.api.pods import Pod
from kschedd.api.text.times import micros
from kschedd.cache.pod_batch import kind_of_pod
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.values import fast_frozen

NOT_STARTED: Final = (1 << 63) - 1
"""A value later than any other start: upstream treats a pod without a start time as starting now."""

_NEVER: Final = -1


def started(pod: Pod) -> int:
    """Return the start time of the pod, or NOT_STARTED if it is missing or cannot be parsed."""
    try:
        return micros(pod.start_time) if pod.start_time else NOT_STARTED
    except ValueError:
        return NOT_STARTED


def importance(pod: Pod) -> tuple[int, int]:
    """Return the sort key, more important pods first: higher priority, then earlier start."""
    return -pod.signature.spec.priority, started(pod)


def by_importance(pods: Sequence[Pod], unstarted_in_order: bool) -> tuple[Sequence[Pod], list[tuple[int, int]]]:
    """Return the pods and their sort keys, sorted by descending importance.

    Equal pods keep their order. Before 1.37, without `unstarted_in_order`, the order of equal pods that have not
    started is reversed. Upstream uses the time of the comparison as the start time of these pods, so the first of two
    pods appears older. (Go sorts lists of more than 12 elements differently, which kschedd does not reproduce.)
    """
    keys = list(map(importance, pods))
    if not unstarted_in_order and sum(start == NOT_STARTED for _, start in keys) > 1:
        pods, keys = pods[::-1], keys[::-1]
        order = sorted(range(len(keys)), key=lambda place: (keys[place], -place * (keys[place][1] != NOT_STARTED)))
    elif any(map(tuple.__gt__, keys, keys[1:])):
        order = sorted(range(len(keys)), key=keys.__getitem__)
    else:  # usual case: equal priorities, in order of start
        return pods, keys
    return [pods[place] for place in order], [keys[place] for place in order]


@fast_frozen(eq=False)
class RowPods:
    """The pods of one row, sorted by descending importance."""

    pods: Sequence[Pod]
    kinds: Sequence[object]  # kind of each pod, as in `PodBatch`
    priorities: Sequence[int]  # of each pod
    starts: Sequence[int]  # start time of each pod, as returned by `started`

    @classmethod
    def of(cls, pods: Sequence[Pod], unstarted_in_order: bool) -> "RowPods":
        pods, keys = by_importance(pods, unstarted_in_order)
        priorities, starts = [-priority for priority, _ in keys], [start for _, start in keys]
        return cls(tuple(pods), [kind_of_pod(pod) for pod in pods], priorities, starts)

    def below(self, priority: int) -> "RowPods":
        """Return the pods of lower priority."""
        priorities = self.priorities
        if not priorities or priorities[0] < priority:
            return self
        first = next((place for place, own in enumerate(priorities) if own < priority), len(priorities))
        return RowPods(self.pods[first:], self.kinds[first:], priorities[first:], self.starts[first:])


class PodsByImportance:
    """The cached pods of the rows of one table, in the order of preemption."""

    def __init__(self, table: NodeTable, unstarted_in_order: bool) -> None:
        self._table = table
        self._unstarted_in_order = unstarted_in_order
        self._known: list[RowPods | None] = []  # by row
        self._at: Ints = np.zeros(0, dtype=np.int64)  # stamps

    def on(self, rows: Rows) -> list[RowPods]:
        table, versions = self._table, self._table.versions
        if len(self._known) != table.capacity:
            self._known = [None] * table.capacity
            self._at = np.full(table.capacity, _NEVER, dtype=np.int64)
        known = self._known
        stale = rows[self._at[rows] < versions.row_pods_at[rows]]
        if len(stale):
            for row in stale.tolist():
                known[row] = RowPods.of(table.pods[row], self._unstarted_in_order)
            self._at[stale] = versions.now
        found = [known[row] for row in rows.tolist()]
        assert None not in found, "a row that is not stale is known"
        return found
