"""Versions of the cluster: counters and logs of all changes.

Time in this module is the number of changes so far (`now`). Every mutation of the cache calls a `touch` method, which
stamps the changed parts. Every value derived from the cluster is stored with one stamp, the value of `now` at the time
of its computation. The value is valid until one of the parts from which it was computed changes after this stamp.

The parts, and the values derived from each part:

    NODES       a Node object, row by row (`nodes`)         evaluation cache, dry runs of preemption
    PODS        which pods a row runs, row by row (`pods`)  evaluation cache
    LABELS      a node was added or removed; its labels, taints or unschedulable changed   counts by domain, constraints
    IMAGES      which node has which image, or how many nodes there are                 ImageLocality
    TAINT_SETS  an id was reused for another set of taints                               TaintToleration
    TERMS       an affinity term's first pod came or its last one went; a namespace's labels    existing pods' terms
    a kind      some object of that kind ("Service", "ResourceClaim", ...); a followed kind also has a log of its
                changes (`follow`)                                                       plugins that read such objects

    POD_UPDATES a pod on a row has a new version with the same requests: other annotations or status, or it is being
                deleted; row by row (`pod_updates`)                                     plugins that read the pods

`row_pods_at` is the time of the last change of the row's pods: PODS or POD_UPDATES.

The cache writes the versions, and any code may read them.
Shapes: `row_pods_at` has one int64 for each row of the table.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final, Generic, TypeVar

import attrs
import numpy as np
import numpy.typing as npt

LABELS: Final = "labels"
IMAGES: Final = "images"
TAINT_SETS: Final = "taint sets"
TERMS: Final = "terms"

_LOG_LIMIT = 1 << 14
_OBJECT_LOG_LIMIT = 1 << 12  # smaller than other logs, because the log keeps deleted objects in memory

Entry = TypeVar("Entry")

ObjectChange = tuple[str, Any]
"""An object's key, and its new version; None: it was deleted."""


@attrs.define(eq=False)
class ChangeLog(Generic[Entry]):
    """Rows, or changes of objects, in the order of change, each with a stamp.

    A query for changes before the first entry returns None, because anything may have changed.
    """

    limit: int = _LOG_LIMIT
    at: int = 0  # stamp of the last change
    rows: list[Entry] = attrs.field(factory=list)
    dates: list[int] = attrs.field(factory=list)
    _forgotten: int = 0  # stamp of the last change that was dropped from the log

    def add(self, row: Entry, date: int) -> None:
        self.at = date
        self.rows.append(row)
        self.dates.append(date)
        if len(self.rows) > self.limit:
            self.forget_half()

    def forget_half(self) -> None:
        """Drop the older half of a full log."""
        half = self.limit // 2
        self._forgotten = self.dates[half - 1]
        del self.rows[:half], self.dates[:half]

    def since(self, stamp: int) -> list[Entry] | None:
        """Return the changes after the stamp, with repetitions; None if the log does not contain all of them."""
        if stamp < self._forgotten:
            return None
        return self.rows[bisect_right(self.dates, stamp) :]


@attrs.define(eq=False)
class Versions:
    row_pods_at: npt.NDArray[np.int64]
    now: int = 0
    nodes: ChangeLog[int] = attrs.field(factory=ChangeLog)
    pods: ChangeLog[int] = attrs.field(factory=ChangeLog)
    pod_updates: ChangeLog[int] = attrs.field(factory=ChangeLog)
    at: defaultdict[str, int] = attrs.field(factory=lambda: defaultdict(int))  # by part: time of its last change
    objects_at: int = 0  # time of the last change of an object other than a pod or a node
    parts_at: int = 0  # time of the last change of any part in `at`
    _followed: dict[str, ChangeLog[ObjectChange]] = attrs.field(factory=dict)  # by kind

    def fork(self) -> "Versions":
        """Return the current versions for a copy of the cluster. The new logs contain no earlier changes."""
        nodes, pods, updates = (
            ChangeLog[int](log.limit, log.at, forgotten=self.now) for log in (self.nodes, self.pods, self.pod_updates)
        )
        return Versions(
            self.row_pods_at.copy(), self.now, nodes, pods, updates, self.at.copy(), self.objects_at, self.parts_at
        )

    # -- recording changes --------------------------------------------------------------------------------------

    def touch_node(self, row: int, *parts: str) -> None:
        """Record that the row's Node object was replaced or removed; `parts` lists its changed parts."""
        self.now += 1
        self.nodes.add(row, self.now)
        for part in parts:
            self.at[part] = self.parts_at = self.now

    def touch_pods(self, row: int) -> None:
        """Record that a pod was added to or removed from the row."""
        # `ChangeLog.add` is inlined, because this code runs for every scheduled pod.
        log = self.pods
        self.now = self.row_pods_at[row] = log.at = now = self.now + 1
        log.rows.append(row)
        log.dates.append(now)
        if len(log.rows) > log.limit:
            log.forget_half()

    def touch_pods_of(self, rows: Sequence[int]) -> None:
        """Record a change of the pods on each of these rows, one after the other."""
        log, before = self.pods, self.now
        self.now = log.at = now = before + len(rows)
        dates, row_pods_at = range(before + 1, now + 1), self.row_pods_at
        for row, date in zip(rows, dates, strict=True):
            row_pods_at[row] = date
        log.rows += rows
        log.dates += dates
        if len(log.rows) > log.limit:
            log.forget_half()

    def touch_pod(self, row: int) -> None:
        """Record that a pod on the row has a new version with the same requests."""
        self.now = now = self.now + 1
        self.row_pods_at[row] = now
        self.pod_updates.add(row, now)

    def touch_each(self, rows: npt.NDArray[np.int64]) -> None:
        """Record that pods were added to or removed from these rows of a what-if copy, whose logs are not used."""
        self.now += 1
        self.row_pods_at[rows] = self.now

    def touch(self, part: str) -> None:
        """Record a change of a part that concerns more than one row."""
        self.now += 1
        self.at[part] = self.parts_at = self.now

    def touch_object(self, kind: str, change: ObjectChange | None = None) -> None:
        """Record that an object of this kind was added, updated or deleted."""
        self.touch(kind)
        self.objects_at = self.now
        log = self._followed.get(kind)
        if log is not None and change is not None:
            log.add(change, self.now)

    def follow(self, kind: str) -> ChangeLog[ObjectChange]:
        """Return the change log of this kind's objects. The log begins at the first call for the kind."""
        log = self._followed.get(kind)
        if log is None:
            log = self._followed[kind] = ChangeLog(_OBJECT_LOG_LIMIT, forgotten=self.now)
        return log

    def grow(self, capacity: int) -> None:
        """Extend the stamps to the table's new capacity."""
        dates = np.zeros(capacity, dtype=np.int64)
        dates[: len(self.row_pods_at)] = self.row_pods_at
        self.row_pods_at = dates

    # -- validity ---------------------------------------------------------------------------------------------------

    def latest(self, *parts: str) -> int:
        """Return the time of the last change of any of these parts; 0 if none has ever changed."""
        at, newest = self.at, 0
        for part in parts:  # runs for every pod; for a few names, a loop is faster than `max` of a list
            time = at.get(part, 0)
            if time > newest:
                newest = time
        return newest

    def changed(self, stamp: int, *parts: str) -> bool:
        """Return whether one of these parts changed after the stamp."""
        return self.latest(*parts) > stamp

    def rows_changed(self, stamp: int) -> bool:
        """Return whether the Node object or the pods of any row changed after the stamp."""
        return self.nodes.at > stamp or self.pods.at > stamp

    @property
    def last(self) -> int:
        """The time of the last change that may affect an in-tree filter's verdict."""
        return max(self.nodes.at, self.pods.at, *self.at.values())
