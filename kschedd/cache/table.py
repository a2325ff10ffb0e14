"""Nodes as numpy columns with stable row numbers, and the pods of each node.

A row belongs to one node from the node's addition to its removal, and may then be reused for another node. All columns
have the same length (`capacity`); rows without a node are not `alive`. Any code may read the columns. Columns change
only between two scheduling cycles, or in a separate copy (`copy_rows`).

`versions` records the changes, so that cached evaluations recompute only the changed rows. The id of a label value or a
taint set is reused once no node has the value or set. `trim` drops columns if there are too many label keys or
resources.

Units: int64 throughout; CPU in millicores, other resources in whole units. Sums overflow as upstream; `wraps` is true
if an amount that may cause an overflow has occurred. Shapes: `allocatable` and `requested` have R resources by
`capacity` rows (each resource is a contiguous column), and `nonzero` has 2 (cpu, memory) by `capacity` rows. All other
columns have one value per row. Source: Kubernetes v1.34, scheduler/framework/types.go (NodeInfo),
backend/cache/node_tree.go (order of nodes).
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Self

import attrs
import numpy as np
import numpy.typing as npt

from kschedd.api.nodes import HOSTNAME_LABEL, ZONE_LABEL, Node
from kschedd.api.pods import Counted, Pod, PodSpec
from kschedd.api.quantity import wrapped
from kschedd.api.resources import PLAIN_AMOUNT, ResizeRules
from kschedd.api.selecting.terms import Taint
from kschedd.cache.versions import IMAGES, LABELS, TAINT_SETS, Versions

Rows = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

CPU, MEMORY, STORAGE = 0, 1, 2
_KNOWN = ("cpu", "memory", "ephemeral-storage")
_PLAIN_OF_POD = 1 << 46  # smaller requests cannot overflow in sums, however many pods a node runs
_FEWEST_IN_A_SLICE = 256  # rows
_LONG = 256  # minimum number of pods in a row for which their indices are recorded
_JUST_COME = 16  # number of pods at the end of a row's list in which a pod is searched first
_FEWEST_IN_A_SPAN = 1024  # rows
_SPARSEST = 4  # one row in this many
_MOST_LABELS, _MOST_RESOURCES = 256, 128  # default limits on the number of columns
_EXPECTED = (HOSTNAME_LABEL, ZONE_LABEL)  # keys whose column exists from the start


@attrs.define(eq=False)
class LabelColumn:
    """One label key for all rows: `ids[row]` is the id of the row's value, or -1 if the node lacks the key.

    An id belongs to its value as long as any row has the value, and may then be reused for another value. While the id
    is unused, its entry in `values` is "", and no row has this id. `renumbered` is incremented whenever an id is reused
    for another value.
    """

    key: str
    ids: Ints  # int64, because numpy converts index arrays of other types first
    numbers: dict[str, int]
    values: list[str]
    renumbered: int = 0
    _users: list[int] = attrs.field(factory=list)  # by id: number of rows with the value
    _free: list[int] = attrs.field(factory=list)

    @classmethod
    def of(cls, key: str, values: Sequence[str | None]) -> Self:
        """Return a column with these values, in row order."""
        column = cls(key, np.full(len(values), -1, dtype=np.int64), {}, [])
        column.ids[:] = [-1 if value is None else column._taken(value) for value in values]
        return column

    def set(self, row: int, value: str | None) -> None:
        """Set the row's value (None: the node lacks the key)."""
        old = int(self.ids[row])
        self.ids[row] = -1 if value is None else self._taken(value)
        if old >= 0:
            self._users[old] -= 1
            if not self._users[old]:
                del self.numbers[self.values[old]]
                self.values[old] = ""
                self._free.append(old)

    def _taken(self, value: str) -> int:
        """Count one more row with this value, and return the value's id."""
        number = self.numbers.get(value)
        if number is None:
            if self._free:
                number = self._free.pop()
                self.values[number] = value
                self.renumbered += 1
            else:
                number = len(self.values)
                self.values.append(value)
                self._users.append(0)
            self.numbers[value] = number
        self._users[number] += 1
        return number

    def fork(self) -> "LabelColumn":
        return LabelColumn(
            self.key,
            self.ids.copy(),
            self.numbers.copy(),
            self.values.copy(),
            self.renumbered,
            self._users.copy(),
            self._free.copy(),
        )


@attrs.define(eq=False)
class ImageState:
    size: int  # size in bytes, as reported by the first node with the image
    rows: set[int]


def _grown(array: npt.NDArray[Any], capacity: int, fill: int | bool = 0) -> npt.NDArray[Any]:
    shape = (*array.shape[:-1], capacity)
    bigger = np.full(shape, fill, dtype=array.dtype)
    bigger[..., : array.shape[-1]] = array
    return bigger


def _with_column(columns: Ints) -> Ints:
    """Return the columns with a zero column appended. The spare capacity doubles whenever all columns are in use."""
    count, capacity = columns.shape
    room = columns.base
    if not isinstance(room, np.ndarray) or room.shape[1:] != (capacity,) or len(room) <= count:
        room = np.zeros((2 * count, capacity), dtype=columns.dtype)
        room[:count] = columns
    return room[: count + 1]


def _attracting(node: Node) -> tuple[tuple[str, int], ...]:
    """Return the node's images that ImageLocality scores: images of known size, even if it is 0.

    The simulated kubelets list images of unknown size; kubelets of a real cluster always report the size.
    """
    return tuple([(name, size) for name, size in node.images if size is not None])


class NodeTable:
    """The nodes of a cluster as columns, with their pods. Methods for several rows take them as int64 index arrays."""

    # Limits for derived data, which can be computed again: node evaluations by class of pods (per profile), preemption
    # dry runs (per profile), and pod counters by node.
    most_evaluation_bytes: int = 192 << 20
    most_preemption_bytes: int = 128 << 20
    most_counters: int = 1024

    def __init__(self, capacity: int = 64) -> None:
        self.capacity = capacity
        self.names: list[str] = [""] * capacity
        self.nodes: list[Node | None] = [None] * capacity
        self.pods: list[list[Pod]] = [[] for _ in range(capacity)]
        # rows whose pod list is shared with a fork and must be copied before a change
        self._shared = bytearray(capacity)
        # for long lists: probable index of a pod in its row's list, by uid
        self._places: dict[str, int] = {}
        self.row_of: dict[str, int] = {}
        self._free: list[int] = list(range(capacity - 1, -1, -1))
        self._rows_kept: dict[str, int] = {}  # rows reserved by `lay_out` for nodes that are still to be added
        self.resources: dict[str, int] = {name: number for number, name in enumerate(_KNOWN)}
        self.numbering = 0  # incremented whenever indices of resource columns change
        self.most_labels, self.most_resources = _MOST_LABELS, _MOST_RESOURCES
        self._full_at = 0  # number of resource columns at the last check at which all were in use
        self.alive: Bools = np.zeros(capacity, dtype=np.bool_)
        self.allocatable: Ints = np.zeros((len(_KNOWN), capacity), dtype=np.int64)
        self.requested: Ints = np.zeros((len(_KNOWN), capacity), dtype=np.int64)
        self.nonzero: Ints = np.zeros((2, capacity), dtype=np.int64)
        self.allowed_pods: Ints = np.zeros(capacity, dtype=np.int64)
        self.pod_count: Ints = np.zeros(capacity, dtype=np.int64)
        self.unschedulable: Bools = np.zeros(capacity, dtype=np.bool_)
        self.taints: Ints = np.zeros(capacity, dtype=np.int64)
        self.taint_sets: list[tuple[Taint, ...]] = [()]
        self._taint_numbers: dict[tuple[Taint, ...], int] = {(): 0}
        # by id: number of rows with the taint set; id 0, the empty set, is never reused
        self._taint_users: list[int] = [1]
        self._free_taint_numbers: list[int] = []
        self._labels = {key: LabelColumn.of(key, [None] * capacity) for key in _EXPECTED}
        self.ports: dict[int, set[tuple[str, str, int]]] = {}
        self.images: dict[str, ImageState] = {}  # image states by image name, as reported by nodes
        self.claims: dict[str, dict[int, int]] = {}  # claim key -> row -> number of pods using it there
        self.versions = Versions(np.zeros(capacity, dtype=np.int64))
        self.resize_rules = ResizeRules(pod_level=False)
        self.wraps = False  # true if an amount is negative, or so large that sums or products may overflow int64
        self._zones: dict[str, dict[int, None]] = {}
        self._order: Rows | None = None
        self._ascends = True
        self._cpu_and_memory: tuple[Rows, int, Ints] | None = None  # rows, stamp, amounts

    # -- nodes ------------------------------------------------------------------------------------------------

    @property
    def node_count(self) -> int:
        return len(self.row_of)

    @property
    def order(self) -> Rows:
        """The rows in the order in which nodes are visited: round robin over the zones."""
        if self._order is None:
            queues = [list(rows) for rows in self._zones.values()]
            longest = max(map(len, queues), default=0)
            if len(queues) == 1:
                ordered = queues[0]
            else:
                ordered = [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]
            self._order = np.array(ordered, dtype=np.int64)
            self._ascends = bool((np.diff(self._order) > 0).all())
        return self._order

    def places(self, rows: Rows) -> Rows | slice:
        """Return the rows as an index for columns: a slice if they are consecutive.

        A slice is several times faster in large clusters, where thousands of rows are read for a pod. Values read
        through a slice must be copied before they are changed.
        """
        count, order = len(rows), self._order
        # Rows from other sources, for example from an extender, may be in any order.
        if count >= _FEWEST_IN_A_SLICE and order is not None and rows.base is order and self._ascends:
            first = rows.item(0)
            if rows.item(-1) - first == count - 1:
                return slice(first, first + count)
        return rows

    def span(self, rows: Rows) -> tuple[Rows | slice, Rows | None]:
        """Return an index for reading these rows of columns, and the rows' positions in the result (None: all of them).

        For thousands of rows that are close together, the index is a slice, which may include other rows.
        Reading a slice takes half the time, which matters if little is computed for each row.
        """
        count = len(rows)
        if count < _FEWEST_IN_A_SLICE:
            return rows, None
        at = self.places(rows)
        if count < _FEWEST_IN_A_SPAN or isinstance(at, slice):
            return at, None
        first, last = rows.item(rows.argmin()), rows.item(rows.argmax())
        if last - first >= _SPARSEST * count:
            return rows, None
        return slice(first, last + 1), rows - first

    def cpu_and_memory(self, rows: Rows) -> Ints:
        """Return the allocatable cpu and memory of these rows, read-only, and cached for the next plugin."""
        known, at = self._cpu_and_memory, self.versions.nodes.at
        if known is not None and known[0] is rows and known[1] == at:
            return known[2]
        found: Ints = self.allocatable[:2].take(rows, axis=1)
        self._cpu_and_memory = rows, at, found
        return found

    def label(self, key: str) -> LabelColumn:
        """Return the column of a label key, created on first use and kept up to date from then on."""
        column = self._labels.get(key)
        if column is None:
            values = [None if node is None else node.labels.get(key) for node in self.nodes]
            column = self._labels[key] = LabelColumn.of(key, values)
        return column

    def resource(self, name: str) -> int:
        """Return the index of a resource's column, created on first use and kept up to date from then on."""
        number = self.resources.get(name)
        if number is None:
            self.allocatable = _with_column(self.allocatable)
            self.requested = _with_column(self.requested)
            number = self.resources[name] = len(self.resources)
            for row, node in enumerate(self.nodes):
                if node is not None:
                    self.allocatable[number, row] = node.allocatable.get(name, 0)
        return number

    def make_every_resource(self) -> None:
        """Create columns also for resources of nodes that no pod has requested yet."""
        names = (name for node in self.nodes if node is not None for name in node.allocatable if name != "pods")
        for name in dict.fromkeys(names):
            self.resource(name)

    @property
    def columns(self) -> tuple[int, int]:
        """The numbers of label columns and of resource columns."""
        return len(self._labels), len(self.resources)

    def trim(self) -> None:
        """Drop columns, which are created again on demand. Call this method between two cycles.

        If there are more label columns than `most_labels`, all label columns are dropped. If there are more resources
        than `most_resources`, all resources are dropped that no pod on a node requests.
        """
        if len(self._labels) > self.most_labels:
            self._labels = {key: column for key, column in self._labels.items() if key in _EXPECTED}
            self.versions.touch(LABELS)  # new columns will have other ids
        if len(self.resources) > self.most_resources and len(self.resources) > 2 * self._full_at:
            self._trim_resources()

    def _trim_resources(self) -> None:
        used: Bools = (self.requested != 0).any(axis=1)
        used[: len(_KNOWN)] = True
        kept = np.flatnonzero(used)
        # The next check is due when the number of columns has doubled.
        self._full_at = len(kept)
        if len(kept) == len(self.resources):
            return
        names = list(self.resources)
        self.resources = {names[number]: place for place, number in enumerate(kept.tolist())}
        self.allocatable, self.requested = self.allocatable[kept], self.requested[kept]
        self.numbering += 1

    @property
    def layout(self) -> tuple[list[str], list[int]]:
        """The name of the node in each row ("" for a free row), and the free rows; the last free row is used next."""
        return self.names.copy(), self._free.copy()

    def lay_out(self, names: Sequence[str], free: Sequence[int]) -> None:
        """Give a new table the row layout of another table (its `layout`).

        If None is returned, the caller must add the nodes one by one.
        """
        assert not self.row_of, "a new table is expected"
        while self.capacity < len(names):
            self._grow()
        self._rows_kept = {name: row for row, name in enumerate(names) if name}
        self._free = list(free)

    @property
    def nodes_by_zone(self) -> list[Node]:
        """The nodes by zone; zones and nodes are in order of addition.

        Nodes added to a table in this order are visited in this order.
        """
        rows = [row for queue in self._zones.values() for row in queue]
        return [node for row in rows if (node := self.nodes[row]) is not None]

    def put_node(self, node: Node) -> int:
        """Add or update a node; return its row."""
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
        parts = []
        if (
            old is None
            or old.labels != node.labels
            or old.taints != node.taints
            or old.unschedulable != node.unschedulable
        ):
            self._set_labels(row, node)
            parts.append(LABELS)
        if old is None or _attracting(old) != _attracting(node):
            self._set_images(row, old, node)
            parts.append(IMAGES)
        self.versions.touch_node(row, *parts)
        return row

    def remove_node(self, name: str) -> int | None:
        """Remove a node; return its row. Pods on the node stay in the row's list until they are removed."""
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
        self._set_taints(row, ())
        self.unschedulable[row] = False
        for column in self._labels.values():
            column.set(row, None)
        self.versions.touch_node(row, LABELS, IMAGES)
        self._free.append(row)
        return row

    def _new_row(self, name: str) -> int:
        if self._rows_kept and name in self._rows_kept:
            row = self._rows_kept.pop(name)
        else:
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
        self._shared += bytes(more)
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
        self.versions.grow(new)
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
            number = self.resources.get(name)
            if number is not None:  # False if no pod has requested the resource yet
                self.allocatable[number, row] = amount
            if not 0 <= amount <= PLAIN_AMOUNT:
                self.wraps = True
        self.allowed_pods[row] = node.allocatable.get("pods", 0)

    def _set_labels(self, row: int, node: Node) -> None:
        for key, column in self._labels.items():
            column.set(row, node.labels.get(key))
        self._set_taints(row, node.taints)
        self.unschedulable[row] = node.unschedulable

    def _set_taints(self, row: int, taints: tuple[Taint, ...]) -> None:
        old = int(self.taints[row])
        number = self._taint_numbers.get(taints)
        if number is None:
            if self._free_taint_numbers:
                number = self._free_taint_numbers.pop()
                self.taint_sets[number] = taints
            else:
                number = len(self.taint_sets)
                self.taint_sets.append(taints)
                self._taint_users.append(0)
            self._taint_numbers[taints] = number
            self.versions.touch(TAINT_SETS)
        self.taints[row] = number
        if number:
            self._taint_users[number] += 1
        if old:
            self._taint_users[old] -= 1
            if not self._taint_users[old]:
                del self._taint_numbers[self.taint_sets[old]]
                self.taint_sets[old] = ()
                self._free_taint_numbers.append(old)

    def _set_images(self, row: int, old: Node | None, node: Node) -> None:
        if old is not None:
            self._forget_images(row, old)
        for name, size in _attracting(node):
            state = self.images.get(name)
            if state is None:
                state = self.images[name] = ImageState(size, set())
            state.rows.add(row)

    def _forget_images(self, row: int, node: Node) -> None:
        for name in {name for name, _ in _attracting(node)}:
            state = self.images[name]
            state.rows.discard(row)
            if not state.rows:
                del self.images[name]

    # -- pods -------------------------------------------------------------------------------------------------

    def add_pod(self, row: int, pod: Pod) -> None:
        self._count(row, pod, 1)
        if self._shared[row]:
            self._own(row)
        pods = self.pods[row]
        pods.append(pod)
        if len(pods) > _LONG:
            self._places[pod.uid] = len(pods) - 1
        self.versions.touch_pods(row)

    def add_each(self, rows: Sequence[int], pods: Sequence[Pod]) -> bool:
        """Add each of these pods to its row. The rows must be distinct, and the pods must have equal amounts.

        Return False, and change nothing, if the pods affect more than requested amounts, or if sums may overflow.
        """
        spec = pods[0].signature.spec
        if spec.host_ports or spec.restricting_volumes or any([pod.reports_resources for pod in pods]):
            return False
        sums = list(zip(self.nonzero, spec.nonzero_requests, strict=True))
        for name, amount in spec.requests.items():
            if amount and name != "pods":
                if name not in self.resources:
                    return False
                sums.append((self.requested[self.resources[name]], amount))
        totals = []
        for column, amount in sums:
            sum_at = column.item
            totals.append([sum_at(row) + amount for row in rows])
            if not 0 <= min(totals[-1]) <= max(totals[-1]) <= PLAIN_AMOUNT:
                return False
        for (column, _), found in zip(sums, totals, strict=True):
            for row, total in zip(rows, found, strict=True):
                column[row] = total
        for row, pod in zip(rows, pods, strict=True):
            if self._shared[row]:
                self._own(row)
            of_row = self.pods[row]
            of_row.append(pod)
            if len(of_row) > _LONG:
                self._places[pod.uid] = len(of_row) - 1
            self.pod_count[row] += 1
        self.versions.touch_pods_of(rows)
        return True

    def remove_pod(self, row: int, pod: Pod) -> None:
        """Remove the pod (by uid) from the row.

        The last pod of the list takes the index of the removed pod, as upstream.
        """
        if self._shared[row]:
            self._own(row)
        pods = self.pods[row]
        place = self._place(row, pod)
        self._count(row, pods[place], -1)
        self._move_last(pods, place)
        pods.pop()
        self._places.pop(pod.uid, None)
        self.versions.touch_pods(row)

    def replace_pod(self, row: int, old: Pod, new: Pod) -> None:
        """Replace a pod on a row by a new version. If the requests are equal, no column changes."""
        if old.signature is new.signature and (
            not (old.reports_resources or new.reports_resources)
            or self.counted(old).requests == self.counted(new).requests
        ):
            if self._shared[row]:
                self._own(row)
            pods = self.pods[row]
            place = self._place(row, old)
            self._move_last(pods, place)
            pods[-1] = new
            if len(pods) > _LONG:
                self._places[new.uid] = len(pods) - 1
            self.versions.touch_pod(row)
        else:
            self.remove_pod(row, old)
            self.add_pod(row, new)

    def _own(self, row: int) -> None:
        self.pods[row] = self.pods[row].copy()
        self._shared[row] = 0

    def _move_last(self, pods: list[Pod], place: int) -> None:
        """Copy the last pod of the list to this index."""
        last = pods[place] = pods[-1]
        if len(pods) > _LONG:
            self._places[last.uid] = place

    def _place(self, row: int, pod: Pod) -> int:
        """Return the index of a pod in its row's list.

        Most lookups are for recently added pods, near the end of the list. A node may have 100,000 pods.
        """
        pods, uid = self.pods[row], pod.uid
        for back, candidate in enumerate(islice(reversed(pods), _JUST_COME), 1):
            if candidate is pod or candidate.uid == uid:
                return len(pods) - back
        noted = self._places.get(uid, len(pods))
        if noted < len(pods) and pods[noted].uid == uid:
            return noted
        for place, candidate in enumerate(pods):
            if candidate.uid == uid:
                return place
        raise AssertionError(f"pod {pod.key} is expected on row {row} ({self.names[row]})")

    def set_resize_rules(self, rules: ResizeRules) -> None:
        """Apply these rules for counting reported pod resources, also to the pods already on the rows."""
        if rules == self.resize_rules:
            return
        resized = [(row, pod) for row in self for pod in self.pods[row] if pod.reports_resources]
        for row, pod in resized:
            self._count(row, pod, -1)
        self.resize_rules = rules
        for row, pod in resized:
            self._count(row, pod, 1)
            self.versions.touch_pods(row)

    def counted(self, pod: Pod) -> Counted:
        """Return the pod's requests according to this table's rules."""
        return pod.counted(self.resize_rules)

    def _count(self, row: int, pod: Pod, sign: int) -> None:
        counted = self.counted(pod)
        for name, amount in counted.requests.items():
            if amount and name != "pods":
                number = self.resources.get(name)
                if number is None:
                    number = self.resource(name)
                total = self.requested.item(number, row) + sign * amount
                self.requested[number, row] = total if 0 <= total <= PLAIN_AMOUNT else self._wrapped(total)
        cpu, memory = counted.nonzero_requests
        total = self.nonzero.item(0, row) + sign * cpu
        self.nonzero[0, row] = total if 0 <= total <= PLAIN_AMOUNT else self._wrapped(total)
        total = self.nonzero.item(1, row) + sign * memory
        self.nonzero[1, row] = total if 0 <= total <= PLAIN_AMOUNT else self._wrapped(total)
        self.pod_count[row] = self.pod_count.item(row) + sign
        spec = pod.signature.spec
        if spec.host_ports:
            self.count_ports(row, spec, sign)
        if spec.restricting_volumes:
            for claim in claim_keys(pod):
                users = self.claims.setdefault(claim, {})
                users[row] = users.get(row, 0) + sign
                if users[row] <= 0:
                    del users[row]
                    if not users:
                        del self.claims[claim]

    def count_ports(self, row: int, spec: PodSpec, sign: int) -> None:
        """Count the host ports of a pod that is added (1) or removed (-1)."""
        used = self.ports.setdefault(row, set())
        if sign > 0:
            used.update(spec.host_ports)
        else:
            used.difference_update(spec.host_ports)
            if not used:
                del self.ports[row]

    def _wrapped(self, total: int) -> int:
        """Return the sum wrapped to int64, for amounts that may overflow."""
        self.wraps = True
        return wrapped(total)

    # -- copies for what-if ------------------------------------------------------------------------------------

    def copy_rows(self, rows: Iterable[int]) -> "TableCopy":
        """Return a table with copies of these rows, numbered from 0, for trying changes.

        Label values keep their ids.
        """
        chosen = np.fromiter(rows, dtype=np.int64)
        return TableCopy(self, chosen)

    def fork(self) -> "NodeTable":
        """Return a separate, equal table with new change logs.

        Nodes and pods are shared, because they are immutable values. The rows' lists of pods are shared until one of
        the two tables changes them.
        """
        forked = copy.copy(self)
        for name, held in vars(self).items():
            if isinstance(held, np.ndarray | list | dict):
                setattr(forked, name, held.copy())
        forked._shared = bytearray(b"\1") * self.capacity
        self._shared = forked._shared.copy()
        forked.ports = {row: used.copy() for row, used in self.ports.items()}
        forked.images = {name: ImageState(state.size, state.rows.copy()) for name, state in self.images.items()}
        forked.claims = {claim: users.copy() for claim, users in self.claims.items()}
        forked.versions = self.versions.fork()
        forked._labels = {key: column.fork() for key, column in self._labels.items()}
        forked._zones = {zone: rows.copy() for zone, rows in self._zones.items()}
        return forked

    def __iter__(self) -> Iterator[int]:
        return iter(self.row_of.values())


class TableCopy(NodeTable):
    """Some rows of another table. Label columns are copied on demand; images are taken from the whole table.

    `joined` contains the rows to which pods were added that are not on these rows in the whole table, even if these
    pods were removed again. Code that changes `pods` directly must not add a pod that is on another row of the whole
    table.
    """

    def __init__(self, whole: NodeTable, rows: Rows) -> None:
        self.whole = whole
        self.rows_of_whole = rows
        self.joined: set[int] = set()
        chosen = rows.tolist()
        self.capacity = len(chosen)
        self.names = [whole.names[row] for row in chosen]
        self.nodes = [whole.nodes[row] for row in chosen]
        self.pods = [list(whole.pods[row]) for row in chosen]
        self._shared = bytearray(len(chosen))
        self._places = {}
        self.row_of = {name: row for row, name in enumerate(self.names)}
        self._free = []
        self.resources = dict(whole.resources)
        self.numbering = whole.numbering
        self.alive = whole.alive[rows]
        self.allocatable = whole.allocatable.take(rows, axis=1)
        self.requested = whole.requested.take(rows, axis=1)
        self.nonzero = whole.nonzero.take(rows, axis=1)
        self.allowed_pods = whole.allowed_pods[rows]
        self.pod_count = whole.pod_count[rows]
        self.unschedulable = whole.unschedulable[rows]
        self.taints = whole.taints[rows]
        self.taint_sets = whole.taint_sets
        self._labels = {}
        self.ports = {number: set(whole.ports[row]) for number, row in enumerate(chosen) if row in whole.ports}
        self.images = whole.images
        self.claims = {}  # the copy needs no users of claims, because they are read only from the original table
        self.versions = Versions(np.zeros(len(chosen), dtype=np.int64))
        self.resize_rules = whole.resize_rules
        self.wraps = whole.wraps
        self._zones = {}
        self._order = np.arange(len(chosen), dtype=np.int64)
        self._ascends = True
        self._cpu_and_memory = None

    def add_pod(self, row: int, pod: Pod) -> None:
        self.joined.add(row)
        super().add_pod(row, pod)

    def label(self, key: str) -> LabelColumn:
        column = self._labels.get(key)
        if column is None:
            whole = self.whole.label(key)
            column = LabelColumn(key, whole.ids[self.rows_of_whole], whole.numbers, whole.values)
            self._labels[key] = column
        return column

    def resource(self, name: str) -> int:
        if name not in self.resources:
            last = self.whole.resource(name)
            for made in list(self.whole.resources)[len(self.resources) : last + 1]:
                number = super().resource(made)
                for row, node in enumerate(self.nodes):
                    self.allocatable[number, row] = 0 if node is None else node.allocatable.get(made, 0)
        return self.resources[name]

    def plain(self, amount: int) -> int:
        """Return the amount of one pod, wrapped to int64 if sums with this amount may overflow."""
        return amount if -_PLAIN_OF_POD <= amount <= _PLAIN_OF_POD else self._wrapped(amount)


def claim_keys(pod: Pod) -> list[str]:
    """Return `namespace/name` of every PersistentVolumeClaim of the pod, including those of ephemeral volumes."""
    keys = []
    for volume in pod.signature.spec.restricting_volumes:
        source = volume.get("persistentVolumeClaim")
        if source:
            keys.append(f"{pod.namespace}/{source.get('claimName', '')}")
        elif volume.get("ephemeral"):
            keys.append(f"{pod.namespace}/{pod.name}-{volume.get('name', '')}")
    return keys
