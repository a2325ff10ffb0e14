"""Nodes as numpy columns with stable row numbers, and the pods on each of them.

A row belongs to one node from the time it is added until it is removed; then the row is free for another node. All
columns have the same length (`capacity`), rows without a node are not `alive`. Everybody may read the columns, only
the owner of the table changes them, between two cycles or on a copy of its own (`copy_rows`), never within a cycle.

Three logs say what changed, so that a remembered evaluation looks again at these rows only: `node_changes` (the Node
object), `pod_changes` (which pods run on it, and what they take of it) and `pod_updates` (a pod on it has a new version
that takes the same: other annotations, another status, or it is being deleted).

Units: int64 throughout; CPU in millicores, other resources in whole units. Sums wrap around as upstream's do; `wraps`
tells that an amount was seen with which some arithmetic may.
Shapes: `allocatable` and `requested` are R resources by `capacity` rows (a resource is one contiguous column);
`nonzero` is 2 (cpu, memory) by rows; all others have one value a row.
Source: Kubernetes v1.34, scheduler/framework/types.go (NodeInfo), backend/cache/node_tree.go (order of nodes).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import attrs
import numpy as np
import numpy.typing as npt

from kschedd.api.nodes import HOSTNAME_LABEL, ZONE_LABEL, Node
from kschedd.api.pods import Pod, PodSpec
from kschedd.api.quantity import wrapped
from kschedd.api.resources import PLAIN_AMOUNT
from kschedd.api.terms import Taint

Rows = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

CPU, MEMORY, STORAGE = 0, 1, 2
_KNOWN = ("cpu", "memory", "ephemeral-storage")
_LOG_LIMIT = 1 << 16
_PLAIN_OF_POD = 1 << 46  # of these sums are plain amounts, however many pods a node runs
_EXPECTED = (HOSTNAME_LABEL, ZONE_LABEL)  # sooner or later asked for, so their columns are kept from the start


@attrs.define(eq=False)
class LabelColumn:
    """One label key over all rows: `ids[row]` is the number of the row's value, -1 where the node lacks the key."""

    key: str
    ids: npt.NDArray[np.int32]
    numbers: dict[str, int]
    values: list[str]

    def number(self, value: str) -> int:
        """The value's number; a new value gets the next one."""
        number = self.numbers.get(value)
        if number is None:
            number = self.numbers[value] = len(self.values)
            self.values.append(value)
        return number


@attrs.define(eq=False)
class ImageState:
    size: int  # bytes, as told by the first node that had it
    rows: set[int]


@attrs.define(eq=False)
class ChangeLog:
    """Rows in the order they changed. `position` only grows; a reader far behind is told to look at everything."""

    rows: list[int] = attrs.field(factory=list)
    _dropped: int = 0

    @property
    def position(self) -> int:
        return self._dropped + len(self.rows)

    def add(self, row: int) -> None:
        rows = self.rows
        rows.append(row)
        if len(rows) > _LOG_LIMIT:
            half = _LOG_LIMIT // 2
            del rows[:half]
            self._dropped += half

    def since(self, position: int) -> list[int] | None:
        """The rows that changed after `position`, with repetitions; None if that is too long ago to know."""
        start = position - self._dropped
        return None if start < 0 else self.rows[start:]


def _grown(array: npt.NDArray[Any], capacity: int, fill: int | bool = 0) -> npt.NDArray[Any]:
    shape = (*array.shape[:-1], capacity)
    bigger = np.full(shape, fill, dtype=array.dtype)
    bigger[..., : array.shape[-1]] = array
    return bigger


class NodeTable:
    """The columns. Rows are int64 index arrays wherever a method takes several."""

    def __init__(self, capacity: int = 64) -> None:
        self.capacity = capacity
        self.names: list[str] = [""] * capacity
        self.nodes: list[Node | None] = [None] * capacity
        self.pods: list[list[Pod]] = [[] for _ in range(capacity)]
        self.row_of: dict[str, int] = {}
        self._free: list[int] = list(range(capacity - 1, -1, -1))
        self.resources: dict[str, int] = {name: number for number, name in enumerate(_KNOWN)}
        self.alive: Bools = np.zeros(capacity, dtype=np.bool_)
        self.allocatable: Ints = np.zeros((len(_KNOWN), capacity), dtype=np.int64)
        self.requested: Ints = np.zeros((len(_KNOWN), capacity), dtype=np.int64)
        self.nonzero: Ints = np.zeros((2, capacity), dtype=np.int64)
        self.allowed_pods: Ints = np.zeros(capacity, dtype=np.int64)
        self.pod_count: Ints = np.zeros(capacity, dtype=np.int64)
        self.unschedulable: Bools = np.zeros(capacity, dtype=np.bool_)
        self.taints: npt.NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)
        self.taint_sets: list[tuple[Taint, ...]] = [()]
        self._taint_numbers: dict[tuple[Taint, ...], int] = {(): 0}
        self._labels = {key: LabelColumn(key, np.full(capacity, -1, dtype=np.int32), {}, []) for key in _EXPECTED}
        self.ports: dict[int, set[tuple[str, str, int]]] = {}
        self.images: dict[str, ImageState] = {}  # by the names that nodes report, as they report them
        self.claims: dict[str, dict[int, int]] = {}  # "namespace/claim" -> row -> pods using it there
        self.pods_version: Ints = np.zeros(capacity, dtype=np.int64)
        self.node_changes = ChangeLog()
        self.pod_changes = ChangeLog()
        self.pod_updates = ChangeLog()
        self.labels_version = 0  # grows when a node comes, goes, or changes labels, taints or unschedulable
        self.images_version = 0  # grows when which node has which image changes, or the number of nodes does
        self.wraps = False  # whether some amount is negative, or so large that sums or products may not fit an int64
        self._zones: dict[str, dict[int, None]] = {}
        self._order: Rows | None = None

    # -- nodes ------------------------------------------------------------------------------------------------

    @property
    def node_count(self) -> int:
        return len(self.row_of)

    @property
    def order(self) -> Rows:
        """The rows in the order nodes are visited: round and round over the zones, one of each at a time."""
        if self._order is None:
            queues = [list(rows) for rows in self._zones.values()]
            longest = max(map(len, queues), default=0)
            if len(queues) == 1:
                ordered = queues[0]
            else:
                ordered = [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]
            self._order = np.array(ordered, dtype=np.int64)
        return self._order

    def label(self, key: str) -> LabelColumn:
        """The column of a label key, made when first asked for and kept up to date from then on."""
        column = self._labels.get(key)
        if column is None:
            values = [None if node is None else node.labels.get(key) for node in self.nodes]
            different = list(dict.fromkeys([value for value in values if value is not None]))
            numbers: dict[str | None, int] = {value: number for number, value in enumerate(different)}
            ids = np.array([numbers.get(value, -1) for value in values], dtype=np.int32)
            column = self._labels[key] = LabelColumn(key, ids, cast(dict[str, int], numbers), different)
        return column

    def resource(self, name: str) -> int:
        """The number of a resource's column; one that nobody named yet gets a column of zeros."""
        number = self.resources.get(name)
        if number is None:
            number = self.resources[name] = len(self.resources)
            empty = np.zeros((1, self.capacity), dtype=np.int64)
            self.allocatable = np.concatenate((self.allocatable, empty))
            self.requested = np.concatenate((self.requested, empty))
        return number

    def put_node(self, node: Node) -> int:
        """Add a node, or take in its new version. Returns its row."""
        row = self.row_of.get(node.name)
        if row is None:
            row = self._new_row(node.name)
            old = None
        else:
            old = self.nodes[row]
        self.nodes[row] = node
        if old is None or old.zone != node.zone:
            self._move_zone(row, old, node)
        if old is None or old.allocatable != node.allocatable:
            self._set_allocatable(row, node)
        if (
            old is None
            or old.labels != node.labels
            or old.taints != node.taints
            or old.unschedulable != node.unschedulable
        ):
            self._set_labels(row, node)
            self.labels_version += 1
        if old is None or old.images != node.images:
            self._set_images(row, old, node)
        self.node_changes.add(row)
        return row

    def remove_node(self, name: str) -> int | None:
        """Forget a node; pods still on it stay in its row's list until they go. Returns the row it had."""
        row = self.row_of.pop(name, None)
        if row is None:
            return None
        node = self.nodes[row]
        assert node is not None
        self._zones[node.zone].pop(row)
        if not self._zones[node.zone]:
            del self._zones[node.zone]
        self._order = None
        self._forget_images(row, node)
        for pod in list(self.pods[row]):
            self.remove_pod(row, pod)
        self.names[row] = ""
        self.nodes[row] = None
        self.alive[row] = False
        self.allocatable[:, row] = 0
        self.allowed_pods[row] = 0
        self.taints[row] = 0
        self.unschedulable[row] = False
        for column in self._labels.values():
            column.ids[row] = -1
        self.labels_version += 1
        self.images_version += 1
        self.node_changes.add(row)
        self._free.append(row)
        return row

    def _new_row(self, name: str) -> int:
        if not self._free:
            self._grow()
        row = self._free.pop()
        self.row_of[name] = row
        self.names[row] = name
        self.alive[row] = True
        return row

    def _grow(self) -> None:
        old, new = self.capacity, self.capacity * 2
        more = new - old
        self.names += [""] * more
        self.nodes += [None] * more
        self.pods += [[] for _ in range(more)]
        for column in (
            "alive",
            "allocatable",
            "requested",
            "nonzero",
            "allowed_pods",
            "pod_count",
            "unschedulable",
        ):
            setattr(self, column, _grown(getattr(self, column), new))
        self.taints = _grown(self.taints, new)
        self.pods_version = _grown(self.pods_version, new)
        for label in self._labels.values():
            label.ids = _grown(label.ids, new, -1)
        self._free = list(range(new - 1, old - 1, -1))
        self.capacity = new

    def _move_zone(self, row: int, old: Node | None, node: Node) -> None:
        if old is not None:
            self._zones[old.zone].pop(row)
            if not self._zones[old.zone]:
                del self._zones[old.zone]
        self._zones.setdefault(node.zone, {})[row] = None
        self._order = None

    def _set_allocatable(self, row: int, node: Node) -> None:
        self.allocatable[:, row] = 0
        for name, amount in node.allocatable.items():
            if name == "pods":
                continue
            number = self.resource(name)
            self.allocatable[number, row] = amount
            if not 0 <= amount <= PLAIN_AMOUNT:
                self.wraps = True
        self.allowed_pods[row] = node.allocatable.get("pods", 0)

    def _set_labels(self, row: int, node: Node) -> None:
        for key, column in self._labels.items():
            value = node.labels.get(key)
            column.ids[row] = -1 if value is None else column.number(value)
        number = self._taint_numbers.get(node.taints)
        if number is None:
            number = self._taint_numbers[node.taints] = len(self.taint_sets)
            self.taint_sets.append(node.taints)
        self.taints[row] = number
        self.unschedulable[row] = node.unschedulable

    def _set_images(self, row: int, old: Node | None, node: Node) -> None:
        if old is not None:
            self._forget_images(row, old)
        for name, size in node.images:
            state = self.images.get(name)
            if state is None:
                state = self.images[name] = ImageState(size, set())
            state.rows.add(row)
        self.images_version += 1

    def _forget_images(self, row: int, node: Node) -> None:
        for name in {name for name, _ in node.images}:
            state = self.images[name]
            state.rows.discard(row)
            if not state.rows:
                del self.images[name]

    # -- pods -------------------------------------------------------------------------------------------------

    def add_pod(self, row: int, pod: Pod) -> None:
        self._count(row, pod, 1)
        self.pods[row].append(pod)
        self.pods_version[row] += 1
        self.pod_changes.add(row)

    def remove_pod(self, row: int, pod: Pod) -> None:
        """Take the pod (known by its uid) off the row. Its place is taken by the last one, as upstream does."""
        pods = self.pods[row]
        place = self._place(row, pod)
        self._count(row, pods[place], -1)
        pods[place] = pods[-1]
        pods.pop()
        self.pods_version[row] += 1
        self.pod_changes.add(row)

    def replace_pod(self, row: int, old: Pod, new: Pod) -> None:
        """A new version of a pod on the same row; it changes no column where it asks for the same as before."""
        if old.shape is new.shape and old.requests == new.requests:
            pods = self.pods[row]
            place = self._place(row, old)
            pods[place] = pods[-1]
            pods[-1] = new
            self.pods_version[row] += 1
            self.pod_updates.add(row)
        else:
            self.remove_pod(row, old)
            self.add_pod(row, new)

    def _place(self, row: int, pod: Pod) -> int:
        pods = self.pods[row]
        if pods and pods[-1] is pod:
            return len(pods) - 1
        uid = pod.uid
        for place, candidate in enumerate(pods):
            if candidate is pod or candidate.uid == uid:
                return place
        raise AssertionError(f"pod {pod.key} is expected on row {row} ({self.names[row]})")

    def _count(self, row: int, pod: Pod, sign: int) -> None:
        for name, amount in pod.requests.items():
            if name != "pods" and amount:
                number = self.resource(name)
                total = self.requested.item(number, row) + sign * amount
                self.requested[number, row] = total if 0 <= total <= PLAIN_AMOUNT else self._wrapped(total)
        cpu, memory = pod.nonzero_requests
        total = self.nonzero.item(0, row) + sign * cpu
        self.nonzero[0, row] = total if 0 <= total <= PLAIN_AMOUNT else self._wrapped(total)
        total = self.nonzero.item(1, row) + sign * memory
        self.nonzero[1, row] = total if 0 <= total <= PLAIN_AMOUNT else self._wrapped(total)
        self.pod_count[row] += sign
        spec = pod.shape.spec
        if spec.host_ports:
            used = self.ports.setdefault(row, set())
            if sign > 0:
                used.update(spec.host_ports)
            else:
                used.difference_update(spec.host_ports)
                if not used:
                    del self.ports[row]
        if spec.volumes:
            for claim in claim_keys(pod):
                users = self.claims.setdefault(claim, {})
                users[row] = users.get(row, 0) + sign
                if users[row] <= 0:
                    del users[row]
                    if not users:
                        del self.claims[claim]

    def _wrapped(self, total: int) -> int:
        """The sum as it stands in a column, once it is none of the plain ones."""
        self.wraps = True
        return wrapped(total)

    # -- copies for what-if ------------------------------------------------------------------------------------

    def copy_rows(self, rows: Iterable[int]) -> "TableCopy":
        """A table with copies of these rows, numbered from 0, to try changes on. Values keep their numbers."""
        chosen = np.fromiter(rows, dtype=np.int64)
        return TableCopy(self, chosen)

    def __iter__(self) -> Iterator[int]:
        return iter(self.row_of.values())


class TableCopy(NodeTable):
    """Some rows of another table. Label columns are copied when asked for; images stay those of the whole table."""

    def __init__(self, whole: NodeTable, rows: Rows) -> None:
        self.whole = whole
        self.rows_of_whole = rows
        chosen = rows.tolist()
        self.capacity = len(chosen)
        self.names = [whole.names[row] for row in chosen]
        self.nodes = [whole.nodes[row] for row in chosen]
        self.pods = [list(whole.pods[row]) for row in chosen]
        self.row_of = {name: row for row, name in enumerate(self.names)}
        self._free = []
        self.resources = dict(whole.resources)
        self.alive = whole.alive[rows]
        self.allocatable = whole.allocatable[:, rows]
        self.requested = whole.requested[:, rows]
        self.nonzero = whole.nonzero[:, rows]
        self.allowed_pods = whole.allowed_pods[rows]
        self.pod_count = whole.pod_count[rows]
        self.unschedulable = whole.unschedulable[rows]
        self.taints = whole.taints[rows]
        self.taint_sets = whole.taint_sets
        self._labels = {}
        self.ports = {number: set(whole.ports[row]) for number, row in enumerate(chosen) if row in whole.ports}
        self.images = whole.images
        self.claims = {}  # who uses a claim is asked of the whole table only
        self.pods_version = whole.pods_version[rows]
        self.node_changes = ChangeLog()
        self.pod_changes = ChangeLog()
        self.pod_updates = ChangeLog()
        self.labels_version = whole.labels_version
        self.images_version = whole.images_version
        self.wraps = whole.wraps
        self._zones = {}
        self._order = np.arange(len(chosen), dtype=np.int64)

    def label(self, key: str) -> LabelColumn:
        column = self._labels.get(key)
        if column is None:
            whole = self.whole.label(key)
            column = LabelColumn(key, whole.ids[self.rows_of_whole], whole.numbers, whole.values)
            self._labels[key] = column
        return column

    def add_each(self, rows: Sequence[int], pods: Sequence[Pod]) -> None:
        """One pod to each of these rows, all different: as `add_pod`, but pods that ask alike are counted together."""
        for row, pod in zip(rows, pods, strict=True):
            self.pods[row].append(pod)
        self._count_each(rows, pods, 1)

    def remove_each(self, rows: Sequence[int], pods: Sequence[Pod]) -> None:
        """The contrary of `add_each`."""
        there = self.pods
        for row, pod in zip(rows, pods, strict=True):
            on_row = there[row]
            place = self._place(row, pod)
            on_row[place] = on_row[-1]
            on_row.pop()
        self._count_each(rows, pods, -1)

    def _count_each(self, rows: Sequence[int], pods: Sequence[Pod], sign: int) -> None:
        alike: dict[PodSpec, list[int]] = {}
        for row, pod in zip(rows, pods, strict=True):
            spec = pod.shape.spec
            if spec.host_ports or spec.volumes or pod.requests is not spec.requests:
                self._count(row, pod, sign)
            elif spec in alike:
                alike[spec].append(row)
            else:
                alike[spec] = [row]
        for spec, found in alike.items():
            places = np.array(found, dtype=np.int64)
            for name, amount in spec.requests.items():
                if name != "pods" and amount:
                    self.requested[self.resource(name), places] += self._plain(sign * amount)
            cpu, memory = spec.nonzero_requests
            self.nonzero[0, places] += self._plain(sign * cpu)
            self.nonzero[1, places] += self._plain(sign * memory)
            self.pod_count[places] += sign
        self.pods_version[rows] += 1

    def _plain(self, amount: int) -> int:
        return amount if -_PLAIN_OF_POD <= amount <= _PLAIN_OF_POD else self._wrapped(amount)


def claim_keys(pod: Pod) -> list[str]:
    """`namespace/name` of every PersistentVolumeClaim the pod uses; of an ephemeral volume the one made for it."""
    keys = []
    for volume in pod.shape.spec.volumes:
        source = volume.get("persistentVolumeClaim")
        if source:
            keys.append(f"{pod.namespace}/{source.get('claimName', '')}")
        elif volume.get("ephemeral"):
            keys.append(f"{pod.namespace}/{pod.name}-{volume.get('name', '')}")
    return keys
