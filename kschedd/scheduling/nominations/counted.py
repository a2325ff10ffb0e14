"""The nominated pods that an attempt adds to nodes, by row: pods of equal or higher priority, except the attempted pod.

There may be thousands of nominations, and only a few change between two attempts. The nominations therefore log every
node whose nominated pods change. For each priority of attempted pods, a `NominatedByPriority` is updated from this log
and the log of the table's nodes. An attempt reads a view of a NominatedByPriority (`NominatedByRow`). The view differs
from the NominatedByPriority in at most one row: the node to which the attempted pod is nominated.

A cache that depends on nominated pods stores its view, and `NominatedByRow.differing` of a later view returns the
changed rows.

Invariant: the pods of a view equal those found by reading all nominations again. Shapes: `there` and `changed_at`
have one element for each row of the table.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from weakref import WeakKeyDictionary

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.api.resources import ResizeRules
from kschedd.cache.added_pods import AddedPods
from kschedd.cache.recently_used import RecentlyUsed
from kschedd.cache.table import Bools, Ints, NodeTable, Rows, TableCopy

Nominated = Mapping[str, Iterable[Pod]]  # node name -> pods nominated to it

_LOG_LIMIT = 1 << 16
_MEMORY = 32 << 20  # bytes for the columns of all priorities together
_BYTES_A_ROW = 64  # estimated size of a row, including the sums of a few resources
_FEWEST = 16  # minimum number of stored priorities, however large the cluster
_NOBODY: Final[tuple[Pod, ...]] = ()


class Nominations(dict[str, tuple[Pod, ...]]):
    """Node name -> pods nominated to it, in the order of nomination. Only the nominator changes this mapping."""

    def __init__(self) -> None:
        self.node_of: dict[str, str] = {}  # uid -> node
        self._changed: list[str] = []  # nodes whose nominated pods changed, in order
        self._forgotten = 0  # number of changes dropped from the log
        self._by_priority: WeakKeyDictionary[NodeTable, RecentlyUsed[int, NominatedByPriority]] = WeakKeyDictionary()

    def change(self, node_name: str, pods: tuple[Pod, ...]) -> None:
        """Set the pods nominated to the node."""
        if pods:
            self[node_name] = pods
        else:
            self.pop(node_name, None)
        self._changed.append(node_name)
        if len(self._changed) > _LOG_LIMIT:
            half = _LOG_LIMIT // 2
            self._forgotten += half
            del self._changed[:half]

    def copy_of(self, other: "Nominations") -> None:
        """Copy the nominations of another instance."""
        self.clear()
        self.update(other)
        self.node_of.clear()
        self.node_of.update(other.node_of)
        self._forgotten += len(self._changed) + 1
        self._changed.clear()

    @property
    def changes(self) -> int:
        """The number of changes so far."""
        return self._forgotten + len(self._changed)

    def changed_since(self, changes: int) -> list[str] | None:
        """Return the nodes that changed after change number `changes`; None if the log is too short."""
        if changes < self._forgotten:
            return None
        return self._changed[changes - self._forgotten :]

    def counted(self, table: NodeTable, pod: Pod) -> "NominatedByRow":
        """Return the nominated pods that an attempt of this pod adds to nodes, by row of the table."""
        found = self._of_priority(table, pod.priority)
        row = table.row_of.get(self.node_of.get(pod.uid, ""), -1)
        pods = found.pods.get(row, _NOBODY)
        others = tuple([other for other in pods if other.uid != pod.uid])
        if len(others) == len(pods):
            return NominatedByRow(found)
        return NominatedByRow(found, row, others)

    def _of_priority(self, table: NodeTable, priority: int) -> "NominatedByPriority":
        kept = self._by_priority.get(table)
        if kept is None:
            kept = self._by_priority[table] = RecentlyUsed()
        found = kept.get(priority)
        if found is None or found.size != table.capacity:
            most = max(_FEWEST, _MEMORY // (table.capacity * _BYTES_A_ROW))
            found = kept.keep(priority, NominatedByPriority(table.capacity, priority), most)
        found.follow(table, self)
        kept.move_to_end(priority)
        return found


class NominatedByPriority:
    """The nominated pods of this or a higher priority, by row."""

    def __init__(self, size: int, priority: int) -> None:
        self.size = size
        self.priority = priority
        self.pods: dict[int, tuple[Pod, ...]] = {}
        self.there: Bools = np.zeros(size, dtype=np.bool_)
        self.changed_at: Ints = np.zeros(size, dtype=np.int64)  # as numbers of updates
        self.updates = 0
        self._changes = -1  # number of nomination changes processed
        self._stamp = 0  # version of the table's nodes up to which changes were processed
        self._added = AddedPods(size)
        self._resize_rules: ResizeRules | None = None  # the table's rules, used to count `_added`
        self._stale: set[int] = set()  # rows for which `_added` is outdated

    def follow(self, table: NodeTable, nominations: Nominations) -> None:
        """Process changes of nominations and of the table's nodes."""
        versions, changes = table.versions, nominations.changes
        if changes == self._changes and versions.nodes.at <= self._stamp:
            return
        names, rows = nominations.changed_since(self._changes), versions.nodes.since(self._stamp)
        self._changes, self._stamp = changes, versions.now
        self.updates += 1
        if names is None or rows is None:
            names, rows = list(nominations), list(self.pods)
        for name in dict.fromkeys(names):
            row = table.row_of.get(name)
            if row is not None:
                self.count(row, nominations.get(name, _NOBODY))
        for row in dict.fromkeys(rows):
            self.count(row, nominations.get(table.names[row], _NOBODY))

    def count(self, row: int, nominated: tuple[Pod, ...]) -> None:
        """Update the pods nominated to the row's node."""
        priority = self.priority
        # Usually all nominated pods have the priority, so the tuple is reused.
        if not all([pod.priority >= priority for pod in nominated]):
            nominated = tuple([pod for pod in nominated if pod.priority >= priority])
        if self.pods.get(row, _NOBODY) == nominated:
            return
        if nominated:
            self.pods[row] = nominated
        else:
            del self.pods[row]
        self.there[row] = bool(nominated)
        self.changed_at[row] = self.updates
        self._stale.add(row)

    def added(self, table: NodeTable) -> AddedPods:
        """Return the amounts that these pods add to the rows of the table."""
        if table.resize_rules != self._resize_rules:
            self._resize_rules, self._stale = table.resize_rules, set(self.pods)
        for row in self._stale:
            self._added.put(table, row, self.pods.get(row, _NOBODY))
        self._stale.clear()
        return self._added


class NominatedByRow(Mapping[int, tuple[Pod, ...]]):
    """The nominated pods that one pod's attempt adds to nodes, by row; valid until nominations or nodes change."""

    __slots__ = ("_base", "_others", "_row", "_updates")

    def __init__(self, base: NominatedByPriority, row: int = -1, others: tuple[Pod, ...] = _NOBODY) -> None:
        """Create a view.

        On `row`, the node to which the pod itself is nominated, only the pods in `others` are added.
        """
        self._base, self._row, self._others = base, row, others
        self._updates = base.updates

    def __getitem__(self, row: int) -> tuple[Pod, ...]:
        if row != self._row:
            return self._base.pods[row]
        if not self._others:
            raise KeyError(row)
        return self._others

    def __contains__(self, row: object) -> bool:
        return row in self._base.pods and (row != self._row or bool(self._others))

    def __iter__(self) -> Iterator[int]:
        return iter([row for row in self._base.pods if row in self])

    def __len__(self) -> int:
        return len(self._base.pods) - (self._row >= 0 and not self._others)

    def places(self, rows: Rows) -> Ints:
        """Return the indices in `rows` of the rows with nominated pods."""
        if len(rows) == 1:
            return _FIRST if int(rows[0]) in self else _NONE
        places: Ints = self._base.there[rows].nonzero()[0]
        if self._row >= 0 and not self._others:
            places = places[rows[places] != self._row]
        return places

    def count(self, copy: TableCopy, rows: Rows, sign: int) -> None:
        """Add the nominated pods to these distinct rows of a table copy (`sign` 1), or subtract them (`sign` -1)."""
        of = copy.rows_of_whole[rows]
        if self._row >= 0:
            own = of == self._row
            others = AddedPods(1)
            others.put(copy.whole, 0, self._others)
            others.count(copy, rows[own], np.zeros(np.count_nonzero(own), dtype=np.int64), sign)
            rows, of = rows[~own], of[~own]
        self._base.added(copy.whole).count(copy, rows, of, sign)

    def differing(self, before: "NominatedByRow") -> Rows | None:
        """Return the rows whose pods differ from those in an earlier view; None means that any row may differ."""
        base = self._base
        if before._base is not base:
            return None
        if before._updates == base.updates:
            rows = _NONE
        else:
            rows = (base.changed_at > before._updates).nonzero()[0]
        if (self._row, self._others) != (before._row, before._others):
            own = [row for row in (self._row, before._row) if row >= 0]
            rows = np.concatenate((rows, np.array(own, dtype=np.int64)))
        return rows


_NONE: Final = np.zeros(0, dtype=np.int64)
_FIRST: Final = np.zeros(1, dtype=np.int64)
NO_NOMINATED: Final = NominatedByRow(NominatedByPriority(0, 0))


@attrs.define(eq=False)
class NominatedPods:
    """The nominated pods that an attempt adds to nodes, computed on first use and then fixed until its end.

    `apart` is true if other attempts may change the nominations while this attempt is stopped.
    """

    table: NodeTable
    pod: Pod
    nominated: Nominated
    apart: bool = False
    _everywhere: NominatedByRow | None = attrs.field(default=None, init=False)

    @property
    def everywhere(self) -> NominatedByRow:
        if self._everywhere is None:
            nominated = self.nominated
            if isinstance(nominated, Nominations) and not self.apart:
                self._everywhere = nominated.counted(self.table, self.pod)
            else:
                self._everywhere = self._by_itself() if nominated else NO_NOMINATED
        return self._everywhere

    @property
    def if_any(self) -> NominatedByRow:
        """The nominated pods on all nodes, for a search."""
        return self.everywhere if self.nominated else NO_NOMINATED

    def at(self, node_name: str) -> NominatedByRow:
        """Return the nominated pods that the attempt adds to this node.

        This method is for callers that need the nominated pods of only one node.
        """
        pods = self.nominated.get(node_name)
        return self.everywhere if pods and any(map(self._counts, pods)) else NO_NOMINATED

    def _counts(self, other: Pod) -> bool:
        return other.priority >= self.pod.priority and other.uid != self.pod.uid

    def _by_itself(self) -> NominatedByRow:
        counted = NominatedByPriority(self.table.capacity, self.pod.priority)
        for node_name, pods in self.nominated.items():
            row = self.table.row_of.get(node_name)
            if row is not None:
                counted.count(row, tuple(filter(self._counts, pods)))
        return NominatedByRow(counted)
