"""Volumes attached to each node, and how many more volumes of each driver can be attached to it.

Attached volumes are the volumes of the node's pods and of its VolumeAttachments. Attached volumes and free attachments
are cached by row of the cluster's table, and are computed again if objects on which they depend have changed. The
attached volumes depend on the node's CSINode, its pods, the pods' claims, the claims' volumes and classes, and the
VolumeAttachments. A change of a claim, a volume, a CSINode or a VolumeAttachment affects the rows that use it; a change
of a class affects all rows.
Shapes: one value for each row of the cluster's table.
Errors: no exception is raised; if upstream returns an error, a Fault is returned.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Final

import attrs
import numpy as np

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Bools, Ints, NodeTable, Rows
from kschedd.cache.versions import LABELS, ChangeLog, ObjectChange
from kschedd.storage.attachable import Attachable, Fault, IsMigrated, Storage, attachments_by_node, limits
from kschedd.storage.claims import claims_used, volume_of

_CLAIM: Final = "PersistentVolumeClaim"
_VOLUME: Final = "PersistentVolume"

Attached = frozenset[tuple[str, str]]  # (driver, handle)
_NOTHING: Final[Attached] = frozenset()
_NO_DRIVERS: Final[Mapping[str, int]] = {}
_NO_PODS: Final[Mapping[Pod, Attached]] = {}
_NO_ATTACHMENTS: Final[Set[tuple[str, str]]] = frozenset()
_ANY: Final = 1 << 62  # more than the number of volumes that may exist


def counted(wanted: Iterable[Attachable | Fault], csi_node: Object | None, is_migrated: IsMigrated) -> Attached | Fault:
    """Return the volumes that count on the node, or the first fault that counts on it."""
    found = set()
    for each in wanted:
        if each.plugin is not None and not is_migrated(each.plugin, csi_node):
            continue
        if isinstance(each, Fault):
            return each
        found.add((each.driver, each.handle))
    return frozenset(found)


@attrs.frozen
class Present:
    """The volumes attached to a node; `stamp` is the time of the computation."""

    csi_node: Object
    stamp: int
    of_pods: Mapping[Pod, Attached]  # by pod with volumes
    by_pods: Attached
    # number of volumes for each driver, including attached volumes that no pod on the node uses
    per_driver: Mapping[str, int]


class _Left:
    """How many more volumes of each driver can be attached, by row; `at` contains the times of the computations."""

    def __init__(self, rows: int) -> None:
        self.at: Ints = np.full(rows, -1, dtype=np.int64)
        # True for rows in which a fault prevents computing the attached volumes
        self.faulty: Bools = np.zeros(rows, dtype=np.bool_)
        self.of_driver: dict[str, Ints] = {}

    def put(self, row: int, at_most: Mapping[str, int], present: Present | Fault | None) -> None:
        """Store the values of a row; if `present` is None, there is no limit."""
        self.faulty[row] = isinstance(present, Fault)
        per_driver = present.per_driver if isinstance(present, Present) else _NO_DRIVERS
        for driver in at_most:
            if driver not in self.of_driver:
                self.of_driver[driver] = np.full(len(self.at), _ANY, dtype=np.int64)
        for driver, left in self.of_driver.items():
            most = at_most.get(driver)
            left[row] = _ANY if most is None else min(most, _ANY) - per_driver.get(driver, 0)


class _Readers:
    """The rows whose pods depend on an object, by the kind and the key of the object."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], set[int]] = {}

    def add(self, row: int, kind: str, key: str) -> None:
        self._rows.setdefault((kind, key), set()).add(row)

    def take(self, kind: str, keys: Iterable[str]) -> set[int]:
        """Remove and return the rows that depend on one of these objects.

        The removed rows are added again when they are computed again.
        """
        return set().union(*(self._rows.pop((kind, key), ()) for key in keys))

    def clear(self) -> None:
        self._rows.clear()


@attrs.define(eq=False)
class AttachedVolumes:
    _cluster: SchedulerCache
    _is_migrated: IsMigrated
    _logs: Mapping[str, ChangeLog[ObjectChange]] = attrs.field(init=False)
    _stamp: int = -1  # `_objects_at` contains the changes of objects up to this stamp
    # The stamp of the objects on which each row depends.
    _objects_at: Ints = attrs.field(factory=lambda: np.zeros(0, dtype=np.int64))
    _readers: _Readers = attrs.field(factory=_Readers)
    _present: dict[int, Present] = attrs.field(factory=dict)  # by row
    _left: _Left = attrs.field(factory=lambda: _Left(0))
    _limits: dict[str, tuple[Object, dict[str, int]]] = attrs.field(factory=dict)
    _attachments: Mapping[str, set[tuple[str, str]]] = attrs.field(factory=dict)  # by node

    def __attrs_post_init__(self) -> None:
        versions = self._cluster.versions
        self._logs = {kind: versions.follow(kind) for kind in ("CSINode", _CLAIM, _VOLUME)}

    def storage(self) -> Storage:
        of_kind = self._cluster.of_kind
        return Storage(of_kind(_CLAIM), of_kind(_VOLUME), of_kind("StorageClass"))

    def limits_of(self, csi_node: Object) -> Mapping[str, int]:
        known = self._limits.get(csi_node.name)
        if known is None or known[0] is not csi_node:
            if len(self._limits) > 2 * len(self._cluster.of_kind("CSINode")):  # mostly removed nodes
                self._limits.clear()
            known = self._limits[csi_node.name] = (csi_node, limits(csi_node))
        return known[1]

    # attached volumes

    def on(self, table: NodeTable, row: int, csi_node: Object) -> Present | Fault:
        """Return the volumes attached to the node of this row, in the cluster's table or in a what-if copy.

        In a what-if copy, the cached value of the cluster is used as long as the node has the same pods with volumes.
        """
        self._catch_up()
        versions, own = self._cluster.versions, table is self._cluster.table
        of_whole = row if own else self._cluster.table.row_of.get(table.names[row])
        known = None if of_whole is None else self._known(of_whole, csi_node)
        if own and known is not None and known.stamp >= versions.row_pods_at[row]:
            return known
        pods = [pod for pod in table.pods[row] if pod.signature.spec.restricting_volumes]
        before = _NO_PODS if known is None else known.of_pods
        if not own and known is not None and before.keys() == set(pods):
            return known
        attachments = self._attachments.get(table.names[row], _NO_ATTACHMENTS)
        if own:
            self._note_read(row, [pod for pod in pods if pod not in before], attachments)
        of_pods = self._of_pods(pods, csi_node, before)
        if isinstance(of_pods, Fault):
            return of_pods
        by_pods = _NOTHING.union(*of_pods.values())
        attached = by_pods.union(self._handles(attachments))
        per_driver = Counter(driver for driver, _ in attached) if attached else _NO_DRIVERS
        found = Present(csi_node, versions.now, of_pods, by_pods, per_driver)
        if own:
            self._present[row] = found
        return found

    def _known(self, row: int, csi_node: Object) -> Present | None:
        """Return the cached value of the row; None if objects on which it depends have changed."""
        known = self._present.get(row)
        if known is None or known.csi_node is not csi_node or known.stamp < self._objects_at[row]:
            return None
        return known

    def _of_pods(
        self, pods: Sequence[Pod], csi_node: Object, before: Mapping[Pod, Attached]
    ) -> dict[Pod, Attached] | Fault:
        found, storage = {}, self.storage()
        for pod in pods:
            theirs = before.get(pod)
            if theirs is None:
                count = counted(storage.attachables(pod, new=False), csi_node, self._is_migrated)
                if isinstance(count, Fault):
                    return count
                theirs = count
            found[pod] = theirs
        return found

    def _handles(self, attachments: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Yield the attacher and the handle of each attachment of a CSI volume."""
        volumes = self._cluster.of_kind(_VOLUME)
        for attacher, name in attachments:
            volume = volumes.get(name)
            source = None if volume is None else volume.spec.get("csi")
            if source is not None:
                yield attacher, source.get("volumeHandle") or ""

    # further volumes

    def room_for(self, wanted: Attached, rows: Rows) -> Bools:
        """Return which of these rows of the cluster's table can attach so many volumes of these drivers."""
        self._catch_up()
        versions, left = self._cluster.versions, self._left
        changed_at = np.maximum(versions.row_pods_at[rows], self._objects_at[rows])
        for row in rows[left.at[rows] < changed_at].tolist():
            self._count(row)
            left.at[row] = versions.now
        enough: Bools = ~left.faulty[rows]
        for driver, count in Counter([driver for driver, _ in wanted]).items():
            if driver in left.of_driver:
                enough &= left.of_driver[driver][rows] >= count
        return enough

    def _count(self, row: int) -> None:
        csi_node = self._cluster.of_kind("CSINode").get(self._cluster.table.names[row])
        at_most = {} if csi_node is None else self.limits_of(csi_node)
        present = None if csi_node is None or not at_most else self.on(self._cluster.table, row, csi_node)
        self._left.put(row, at_most, present)

    # changes

    def _note_read(self, row: int, pods: Iterable[Pod], attachments: Iterable[tuple[str, str]]) -> None:
        """Record that the row depends on these pods' claims, on the claims' volumes, and on the attached volumes."""
        claims, readers = self._cluster.of_kind(_CLAIM), self._readers
        for pod in pods:
            for use in claims_used(pod):
                readers.add(row, _CLAIM, use.key)
                claim = claims.get(use.key)
                if claim is not None:
                    readers.add(row, _VOLUME, volume_of(claim))
        for _, volume in attachments:
            readers.add(row, _VOLUME, volume)

    def _catch_up(self) -> None:
        """Update the stamps of rows that depend on changed objects."""
        versions, stamp = self._cluster.versions, self._stamp
        if versions.parts_at <= stamp:
            return
        self._stamp = versions.now
        rows = self._rows_concerned(stamp)
        if rows is None:
            size = self._cluster.table.capacity
            self._objects_at = np.full(size, versions.now, dtype=np.int64)
            self._left = _Left(size)
            self._present.clear()
            self._readers.clear()
        elif rows:
            self._objects_at[list(rows)] = versions.now

    def _rows_concerned(self, stamp: int) -> set[int] | None:
        """Return the rows that changes after the stamp may affect; None means all rows."""
        versions, row_of = self._cluster.versions, self._cluster.table.row_of
        nodes = versions.nodes.since(stamp) if versions.changed(stamp, LABELS) else []
        changes = {kind: log.since(stamp) for kind, log in self._logs.items()}
        names = self._nodes_with_other_attachments() if versions.changed(stamp, "VolumeAttachment") else set()
        grown = len(self._objects_at) != self._cluster.table.capacity
        if nodes is None or None in changes.values() or grown or versions.changed(stamp, "StorageClass"):
            return None
        found = set(nodes)
        for kind, changed in changes.items():
            keys = [key for key, _ in changed or ()]
            if kind == "CSINode":
                names.update(keys)
            else:
                found |= self._readers.take(kind, keys)
        found.update(row_of[name] for name in names if name in row_of)
        return found

    def _nodes_with_other_attachments(self) -> set[str]:
        before, self._attachments = self._attachments, attachments_by_node(self._cluster.of_kind("VolumeAttachment"))
        now = self._attachments
        return {node for node in before.keys() | now.keys() if before.get(node) != now.get(node)}
