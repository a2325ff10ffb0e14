"""NodeResourcesFit: filters nodes by free resources, and scores nodes by utilization.

If a DeviceClass provides an extended resource (rule extended_resources), DynamicResources filters nodes whose
allocatable lacks the resource, and the devices are included in the score.

A placement of a PodGroup is always scored by MostAllocated over the sums of its nodes, whatever the configured
strategy.

Rules: extended_resources, fields_of_1_37 (score_placements).
Source: Kubernetes v1.34, v1.36 and v1.37, plugins/noderesources/fit.go (fitsRequest, ScorePlacement),
resource_allocation.go, least_allocated.go, most_allocated.go, requested_to_capacity_ratio.go. Units: int64; CPU in
millicores, memory and storage in bytes, other resources in counts; scores 0 to 100. Shapes: N rows; one contiguous
column for each resource. Columns are only read, never written. Codes: bit 0, a request exceeds the node's allocatable;
bit 1, too many pods; bit 2 + i, the i-th requested resource is insufficient. If a pod requests more than 32 resources,
the bits from 2 on are a number that identifies the set of insufficient resources.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from itertools import compress
from typing import Any, ClassVar, Self

import attrs
import numpy as np

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.resources import DEFAULT_RESIZE, ResizeRules, Resources
from kschedd.api.selecting.resource_names import is_extended, is_scalar
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.scoring_columns import Fractions, amounts_of, scoring_resources, truncated
from kschedd.cache.table import Bools, Ints, NodeTable, Rows
from kschedd.config.scoring_args import ShapePoint, piecewise_linear
from kschedd.devices.device_totals import with_devices
from kschedd.devices.dra_manager import DRAManager
from kschedd.devices.extended_resources import IMPLICIT
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import (
    QUEUE,
    QUEUE_SKIP,
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    on,
)
from kschedd.framework.handle import Handle
from kschedd.framework.interface import MAX_NODE_SCORE
from kschedd.framework.placements import PlacedPods
from kschedd.framework.status import Status, unresolvable, unschedulable
from kschedd.plugins.resources.noderesources_args import NodeResourcesFitArgs, ScoringStrategy
from kschedd.values import fast_frozen

_UNRESOLVABLE, _TOO_MANY_PODS, _FIRST_RESOURCE = 1, 2, 2
_PLAIN = ("cpu", "memory", "ephemeral-storage")
_MOST_SHAPES = 1024
_MOST_BITS = 32  # maximum number of requested resources; each has one bit of the code

_LEAST = -(1 << 63)  # smallest number in a column of int64

_NONE, _MOST = np.array(0), np.array(MAX_NODE_SCORE)  # for few rows, arrays are twice as fast as plain numbers

Scorer = Callable[[Fractions], Ints]


@fast_frozen(eq=False)
class _Lines:
    """Columns of resources that are compared in one operation, one line for each resource.

    The lines are consecutive columns of the table, from the first resource to the last. If there are many columns
    between the resources, the lines are a copy (`block` is None).
    """

    names: tuple[str, ...]  # names of the requested resources, in the order of upstream's reasons
    numbers: tuple[int, ...]  # their columns
    block: slice | None
    places: tuple[int, ...]  # their lines
    lines: tuple[int, ...]  # all lines
    bits: Ints  # by line: bit of the code that marks the resource as insufficient

    def of(self, table: NodeTable, at: Rows | slice) -> tuple[Ints, Ints]:
        """Return the allocatable and the requested amounts of these rows."""
        allocatable, requested = table.allocatable, table.requested
        if self.block is None:
            both = [np.array([column[number][at] for number in self.numbers]) for column in (allocatable, requested)]
            return both[0], both[1]
        allocatable, requested = allocatable[self.block], requested[self.block]
        if isinstance(at, slice):
            return allocatable[:, at], requested[:, at]
        return allocatable.take(at, axis=1), requested.take(at, axis=1)

    def amounts(self, requested: list[int]) -> Ints:
        """Return the pod's requests for these resources, as a column.

        For a resource that the pod does not request, the value is the smallest int64, which every node satisfies.
        """
        if self.places == self.lines:
            return np.array(requested)[:, np.newaxis]
        by_line = [_LEAST] * len(self.lines)
        for place, amount in zip(self.places, requested, strict=True):
            by_line[place] = amount
        return np.array(by_line)[:, np.newaxis]


def _lines_of(names: tuple[str, ...], numbers: tuple[int, ...]) -> _Lines:
    first, end = min(numbers, default=0), max(numbers, default=-1) + 1
    together = len(names) <= _MOST_BITS and end - first <= 2 * len(names)
    places = tuple(number - first for number in numbers) if together else tuple(range(len(names)))
    bits = np.zeros(end - first if together else len(names), dtype=np.int64)
    for place, line in enumerate(places[:_MOST_BITS]):  # further resources have no bit
        bits[line] = 1 << _FIRST_RESOURCE + place
    return _Lines(names, numbers, slice(first, end) if together else None, places, tuple(range(len(bits))), bits)


_Wanted = tuple[_Lines, Ints]
"""The compared columns, and the requested amounts."""


def requested_resources(requests: Resources) -> list[tuple[str, int]]:
    """Return the requests that are compared with a node, in the order of upstream's reasons."""
    plain = [(name, requests[name]) for name in _PLAIN if requests.get(name, 0) > 0]
    # A negative amount (after an overflow) is compared as in kube-scheduler, except for cpu, memory and storage.
    scalar = [(name, n) for name, n in sorted(requests.items()) if n and name not in _PLAIN and is_scalar(name)]
    return plain + scalar


@attrs.define(eq=False)
class NodeResourcesFit:
    name: ClassVar = "NodeResourcesFit"
    args_type: ClassVar = NodeResourcesFitArgs
    idle_points: ClassVar = frozenset({"pre_filter", "pre_score"})
    rule_of_point: ClassVar = {"placement_score": "fields_of_1_37"}
    without_pre_filter: ClassVar = 'error reading "PreFilterNodeResourcesFit" from cycleState: not found'
    depends_on: ClassVar = frozenset({"node", "requested"})
    ignored: frozenset[str]
    ignored_groups: frozenset[str]
    strategy: ScoringStrategy
    _score: Scorer
    _devices: DRAManager | None  # None: devices do not provide extended resources
    _resize: ResizeRules = DEFAULT_RESIZE
    _resizes_preempt: bool = False
    _wants: dict[object, _Wanted] = attrs.field(factory=dict)  # compared resources, by `PodSpec.resource_requests`
    _lines: dict[tuple[str, ...], _Lines] = attrs.field(factory=dict)  # columns by the names of their resources
    _numbering: int = 0  # number of the table's numbering of resources for which `_lines` is valid
    _looked_at: dict[object, list[tuple[str, int]]] = attrs.field(factory=dict)  # by that key, for hints
    _statuses: dict[tuple[object, int], Status] = attrs.field(factory=dict)  # by key of `_wants`, and code
    _scored: list[str] = attrs.field(init=False)  # resources
    # Sets of insufficient resources by number; number 0 is the empty set.
    _scarce: list[tuple[str, ...]] = attrs.field(factory=lambda: [()])
    _scarce_numbers: dict[tuple[str, ...], int] = attrs.field(factory=lambda: {(): 0})

    @classmethod
    def from_args(cls, args: NodeResourcesFitArgs, handle: Handle) -> Self:
        strategy = args.scoring_strategy
        weights = tuple(resource.weight for resource in strategy.resources)
        scorer = {
            "LeastAllocated": lambda: least_allocated(weights),
            "MostAllocated": lambda: most_allocated(weights),
            "RequestedToCapacityRatio": lambda: requested_to_capacity_ratio(weights, strategy.shape),
        }[strategy.type]()
        devices = handle.shared(DRAManager) if handle.rules.extended_resources else None
        ignored = frozenset(args.ignored_resources)
        groups = frozenset(args.ignored_resource_groups)
        rules = handle.rules
        return cls(ignored, groups, strategy, scorer, devices, rules.resize_rules, rules.resizes_preempt)

    def cache_key(self, cluster: SchedulerCache) -> Hashable:
        """Return a key that changes with the resources that devices provide and, if scored, with their amounts."""
        if self._devices is None:
            return 0
        classes = self._devices.resolver.classes()
        if classes and any(resource.name in classes for resource in self.strategy.resources):
            return self._devices.stamp
        return cluster.versions.latest("DeviceClass")

    def __attrs_post_init__(self) -> None:
        self._scored = [resource.name for resource in self.strategy.resources]

    # -- filter -----------------------------------------------------------------------------------------------

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints | None:
        lines, amounts = self._wanted(pod, table)
        at, places = table.span(rows)
        full = table.pod_count[at] >= table.allowed_pods[at]
        codes = full * _TOO_MANY_PODS if np.count_nonzero(full) else None
        if lines.names:
            allocatable, requested = lines.of(table, at)
            # A pod to be resized is already counted on the node, with its amounts after the resize.
            lacks = (np.minimum(amounts, 0) if state.resizes else amounts) > allocatable - requested
            if self._devices is not None:
                self._leave_to_devices(lines, lacks, allocatable)
            if np.count_nonzero(lacks):
                lacking: Ints = self._set_codes(lines, lacks) if len(lines.names) > _MOST_BITS else lines.bits @ lacks
                never = lacks & (amounts > allocatable)
                if np.count_nonzero(never):
                    lacking |= np.logical_or.reduce(never) * _UNRESOLVABLE
                codes = lacking if codes is None else codes | lacking
        return codes if codes is None or places is None else codes[places]

    def _leave_to_devices(self, lines: _Lines, lacks: Bools, allocatable: Ints) -> None:
        """Clear the codes of resources that devices of a DeviceClass may provide on the node."""
        by_devices = self._by_devices()
        if by_devices:
            for name, line in zip(lines.names, lines.places, strict=True):
                if name in by_devices:
                    lacks[line] &= allocatable[line] > 0

    def _set_codes(self, lines: _Lines, lacks: Bools) -> Ints:
        """Return the codes for a pod that requests more resources than there are bits."""
        sets, set_of_row = np.unique(lacks, axis=1, return_inverse=True)
        numbers = [self._scarce_number(tuple(compress(lines.names, scarce))) for scarce in sets.T.tolist()]
        codes: Ints = np.array(numbers, dtype=np.int64)[set_of_row.reshape(-1)] << _FIRST_RESOURCE
        return codes

    def _by_devices(self) -> Mapping[str, Object]:
        """Return the resources that a DeviceClass provides on nodes whose allocatable lacks the resources."""
        return {} if self._devices is None else self._devices.resolver.classes()

    def _scarce_number(self, names: tuple[str, ...]) -> int:
        number = self._scarce_numbers.get(names)
        if number is None:
            number = self._scarce_numbers[names] = len(self._scarce)
            self._scarce.append(names)
        return number

    def code_status(self, state: CycleState, pod: Pod, code: int) -> Status:
        key = pod.pod_spec.resource_requests, code
        status = self._statuses.get(key)
        if status is None:
            reasons = ["Too many pods"] if code & _TOO_MANY_PODS else []
            reasons += [f"Insufficient {name}" for name in self._lacking(pod, code >> _FIRST_RESOURCE)]
            if len(self._statuses) >= _MOST_SHAPES:
                self._statuses.clear()
            status = (unresolvable if code & _UNRESOLVABLE else unschedulable)(*reasons).by(self.name)
            self._statuses[key] = status
        return status

    def _lacking(self, pod: Pod, code: int) -> Sequence[str]:
        # Not read from `_wants`, because the entry may have been dropped since the code was stored.
        names = [name for name, _ in self._compared(pod) if not self._ignores(name)]
        if len(names) > _MOST_BITS:
            return self._scarce[code]
        return [name for place, name in enumerate(names) if code >> place & 1]

    def _wanted(self, pod: Pod, table: NodeTable) -> _Wanted:
        """Return every resource that is compared for this pod."""
        asks = pod.pod_spec.resource_requests
        if self._numbering != table.numbering:
            self._wants.clear()
            self._lines.clear()
            self._numbering = table.numbering
        wanted = self._wants.get(asks)
        if wanted is None:
            if len(self._wants) >= _MOST_SHAPES:
                self._wants.clear()
                self._lines.clear()
            compared = [one for one in requested_resources(asks.requests) if not self._ignores(one[0])]
            names = tuple([name for name, _ in compared])
            lines = self._lines.get(names)
            if lines is None:
                lines = self._lines[names] = _lines_of(names, tuple([table.resource(name) for name in names]))
            wanted = self._wants[asks] = lines, lines.amounts([amount for _, amount in compared])
        return wanted

    def _ignores(self, name: str) -> bool:
        if not is_extended(name):
            return False
        return name in self.ignored or name.partition("/")[0] in self.ignored_groups

    # -- score ------------------------------------------------------------------------------------------------

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        names, requests = self._scored, pod.pod_spec.fit_score_requests
        fractions = scoring_resources(requests, table, rows, names, nonzero=True)
        if self._devices is not None:
            requested = [requests.get(name, 0) for name in names]
            fractions = with_devices(fractions, names, requested, table, rows, self._devices)
        return self._score(fractions)

    def score_placements(self, group: Object, placements: Sequence[PlacedPods], table: NodeTable) -> Sequence[int]:
        """Return the utilization of each placement's resources, with the requests of the group's pods added."""
        return [self._placement_score(placed, table) for placed in placements]

    def _placement_score(self, placed: PlacedPods, table: NodeTable) -> int:
        total = weight_sum = 0
        for resource in self.strategy.resources:
            name = resource.name
            requested = sum(pod.pod_spec.fit_score_requests.get(name, 0) for pod in placed.pods)
            if not (name in _PLAIN or (requested and is_scalar(name))):
                continue
            used, allocatable = amounts_of(table, placed.placement.rows, name)
            if allocatable:
                total += min(requested + used, allocatable) * MAX_NODE_SCORE // allocatable * resource.weight
                weight_sum += resource.weight
        return total // weight_sum if weight_sum else 0

    # -- events -----------------------------------------------------------------------------------------------

    def events_to_register(self) -> list[ClusterEventWithHint]:
        of_pods = ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN
        of_nodes = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE
        if self._resizes_preempt:
            of_pods |= ActionType.UPDATE_POD_SCALE_UP
        alike = not self._resizes_preempt  # whether a pod is being resized, and its node, are not part of its signature
        events = [
            on(EventResource.POD, of_pods, self._after_pod, by_signature=alike),
            on(EventResource.NODE, of_nodes, self._after_node, by_signature=alike),
        ]
        if self._devices is not None:
            changed = ActionType.ADD | ActionType.UPDATE
            events.append(on(EventResource.DEVICE_CLASS, changed, self._after_class, by_signature=True))
        return events

    def _after_pod(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        resizes = self._resizes_preempt and pod.resize_deferred
        if resizes and (new or old).node_name != pod.node_name:
            return QUEUE_SKIP
        if new is None:
            return QUEUE if old.node_name or old.nominated_node_name else QUEUE_SKIP
        if new.uid == pod.uid and not pod.node_name:
            return QUEUE
        if not new.node_name:
            return QUEUE_SKIP
        before, after = old.counted(self._resize).requests, new.counted(self._resize).requests
        if resizes and any(after.get(name, 0) > before.get(name, 0) for name in after):
            return QUEUE
        freed = (before.get(name, 0) > after.get(name, 0) for name, _ in self._compared(pod))
        return QUEUE if any(freed) else QUEUE_SKIP

    def _after_node(self, pod: Pod, old: Node | None, new: Node) -> QueueingHint:
        if self._resizes_preempt and pod.resize_deferred and new.name != pod.node_name:
            return QUEUE_SKIP
        requested = self._compared(pod)
        has = new.allocatable
        if has.get("pods", 0) < 1:
            return QUEUE_SKIP
        by_devices = self._by_devices()
        for name, amount in requested:
            if amount > has.get(name, 0) and (name not in by_devices or has.get(name, 0) > 0):
                return QUEUE_SKIP
        if old is None or has.get("pods", 0) > old.allocatable.get("pods", 0):
            return QUEUE
        grew = (
            has.get(name, 0) > old.allocatable.get(name, 0) or (name in by_devices and has.get(name, 0) <= 0)
            for name, _ in requested
        )
        return QUEUE if any(grew) else QUEUE_SKIP

    def _after_class(self, pod: Pod, old: Object | None, new: Object) -> QueueingHint:
        """Queue the pod if the class newly provides a resource that the pod requests."""
        requests, named = pod.pod_spec.requests, new.spec.get("extendedResourceName")
        if old is None and IMPLICIT + new.name in requests:
            return QUEUE
        unchanged = old is not None and old.spec.get("extendedResourceName") == named
        return QUEUE if named in requests and not unchanged else QUEUE_SKIP

    def _compared(self, pod: Pod) -> list[tuple[str, int]]:
        asks = pod.pod_spec.resource_requests
        compared = self._looked_at.get(asks)
        if compared is None:
            if len(self._looked_at) >= _MOST_SHAPES:
                self._looked_at.clear()
            compared = self._looked_at[asks] = requested_resources(asks.requests)
        return compared


@lru_cache(64)
def _counted(weights: tuple[int, ...], places: tuple[int, ...]) -> tuple[Ints, Ints, bool]:
    """Return the (read-only) weights of these resources, their sum (at least 1), and whether all weights are 1."""
    counted = [weights[place] for place in places]
    return np.array(counted, dtype=np.int64), np.array(max(sum(counted), 1)), set(counted) <= {1}


def _average(fractions: Fractions, weights: tuple[int, ...], score: Callable[[Ints, Ints], Ints]) -> Ints:
    """Return the weighted mean of the resources' scores, truncated."""
    by_resource, weight_sum, alike = _counted(weights, fractions.places)
    capacity = fractions.capacity
    total: Ints
    if fractions.complete:
        shares = score(fractions.used, capacity)
        # With equal weights a sum is enough, which is four times as fast as a product of integers.
        total = np.add.reduce(shares) if alike else by_resource @ shares
    else:
        counts = capacity != 0
        total = by_resource @ np.where(counts, score(fractions.used, np.where(counts, capacity, 1)), 0)
        weight_sum = np.maximum(by_resource @ counts, 1)
    mean: Ints = truncated(total, weight_sum) if fractions.wraps else total // weight_sum
    return mean


def least_allocated(weights: tuple[int, ...]) -> Scorer:
    def free_share(requested: Ints, capacity: Ints) -> Ints:
        shares = capacity - requested
        np.maximum(shares, _NONE, out=shares)
        shares *= _MOST
        shares //= capacity
        return shares

    def wrapping(requested: Ints, capacity: Ints) -> Ints:
        return np.where(requested > capacity, 0, truncated((capacity - requested) * MAX_NODE_SCORE, capacity))

    return lambda fractions: _average(fractions, weights, wrapping if fractions.wraps else free_share)


def most_allocated(weights: tuple[int, ...]) -> Scorer:
    def used_share(requested: Ints, capacity: Ints) -> Ints:
        return np.minimum(requested, capacity) * MAX_NODE_SCORE // capacity

    def wrapping(requested: Ints, capacity: Ints) -> Ints:
        return truncated(np.minimum(requested, capacity) * MAX_NODE_SCORE, capacity)

    return lambda fractions: _average(fractions, weights, wrapping if fractions.wraps else used_share)


def requested_to_capacity_ratio(weights: tuple[int, ...], shape: tuple[ShapePoint, ...]) -> Scorer:
    scores = np.array([piecewise_linear(shape, percent) for percent in range(101)], dtype=np.int64)

    def plain(requested: Ints, capacity: Ints) -> Ints:
        percent = np.minimum(requested, capacity) * 100 // np.maximum(capacity, 1)
        return np.where(capacity > 0, scores[percent], 0)

    def wrapping(requested: Ints, capacity: Ints) -> Ints:
        percent = np.where(requested > capacity, 100, truncated(requested * 100, capacity))
        # the curve is constant below its first and above its last point
        return np.where(capacity != 0, scores[np.clip(percent, 0, 100)], 0)

    def score(fractions: Fractions) -> Ints:
        total = np.zeros(fractions.rows, dtype=np.int64)
        weight_sum = np.zeros(fractions.rows, dtype=np.int64)
        of = wrapping if fractions.wraps else plain
        for place, requested, capacity in fractions.columns:
            of_resource = of(requested, capacity)
            total += of_resource * weights[place]
            weight_sum += (of_resource > 0) * weights[place]
        return np.floor(total / np.maximum(weight_sum, 1) + 0.5).astype(np.int64)

    return score
