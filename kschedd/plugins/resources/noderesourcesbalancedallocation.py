"""NodeResourcesBalancedAllocation: nodes with more even utilization across resources score higher.

The balance of a node is (1 - standard deviation of the used fractions) * 100, truncated. The score is the balance of
the node including the pod. With the rule balance_before_and_after, the score is the change of the balance caused by the
pod; 75 means no change. Pods without requests are not scored, because all of them would be scheduled to the same node.

With the argument `arithmetic: difference`, the default for configuration files of v1.18, the score is 100 minus the
difference between the utilizations of cpu and memory. With this argument, pods without requests are scored as well, and
the score is 0 if cpu or memory is exhausted (module `noderesources_older`).

Devices that provide an extended resource are counted as in NodeResourcesFit (rule extended_resources).

Rules: balance_before_and_after, extended_resources.
Source: Kubernetes v1.34 and v1.36, plugins/noderesources/balanced_allocation.go.
Units: fractions are float64, computed in upstream's order of operations so that truncation gives equal results.
"""

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, ClassVar, Final, Self

import attrs
import numpy as np
import numpy.typing as npt

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.scoring_columns import Fractions, column, scoring_resources
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.devices.device_totals import with_devices
from kschedd.devices.dra_manager import DRAManager
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.handle import Handle
from kschedd.framework.interface import MAX_NODE_SCORE
from kschedd.framework.status import SKIP, Status
from kschedd.plugins.resources.noderesources_args import NodeResourcesBalancedAllocationArgs
from kschedd.plugins.resources.noderesources_older import balanced

_HALF: Final = MAX_NODE_SCORE // 2
# plain numbers would be converted to arrays at each use
_ONE, _TWO, _MOST = np.array(1.0), np.array(2.0), np.array(float(MAX_NODE_SCORE))
Floats = npt.NDArray[np.float64]


@attrs.frozen(eq=False)
class NodeResourcesBalancedAllocation:
    name: ClassVar = "NodeResourcesBalancedAllocation"
    args_type: ClassVar = NodeResourcesBalancedAllocationArgs
    depends_on: ClassVar = frozenset({"node", "requested"})
    resources: tuple[str, ...]
    _score: Callable[[Fractions, Sequence[int]], Ints]
    _devices: DRAManager | None  # None: devices do not provide extended resources
    _as_in_1_18: bool = False

    @classmethod
    def from_args(cls, args: NodeResourcesBalancedAllocationArgs, handle: Handle) -> Self:
        scorer = before_and_after if handle.rules.balance_before_and_after else after
        devices = handle.shared(DRAManager) if handle.rules.extended_resources else None
        names = tuple(resource.name for resource in args.resources)
        return cls(names, scorer, devices, args.arithmetic == "difference")

    def repeats_while_unchanged(self, pod: Pod, cluster: Any) -> Collection[str]:
        return ("pre_score",)

    def cache_key(self, cluster: SchedulerCache) -> Hashable:
        """Return a key that changes with the number of devices that provide the scored resources."""
        if self._devices is None or not (classes := self._devices.resolver.classes()):
            return 0
        return self._devices.stamp if any(name in classes for name in self.resources) else 0

    def pre_score(self, state: CycleState, pod: Pod, cluster: Any, rows: Rows) -> Status | None:
        return SKIP if not self._as_in_1_18 and self._best_effort(pod) else None

    def _best_effort(self, pod: Pod) -> bool:
        return not any(pod.pod_spec.requests.get(name) for name in self.resources)

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        if self._as_in_1_18:
            return balanced(pod, table, rows)
        requests = pod.pod_spec.requests
        requested = [requests.get(name, 0) for name in self.resources]
        if not any(requested):  # PreScore skips these pods, but the profile may disable PreScore
            return np.zeros(len(rows), dtype=np.int64)
        fractions = scoring_resources(requests, table, rows, self.resources, nonzero=False)
        if self._devices is not None:
            fractions = with_devices(fractions, self.resources, requested, table, rows, self._devices)
        return self._score(fractions, requested)


def after(fractions: Fractions, requested: Sequence[int]) -> Ints:
    """Return the balance of each node including the pod."""
    if len(fractions.places) == 2 and fractions.complete:
        shares: Floats = np.minimum(fractions.used / fractions.capacity, _ONE)
        deviation: Floats = np.abs((shares[0] - shares[1]) / _TWO)
    else:
        deviation = _deviation(fractions.columns, fractions.rows)
    scores: Floats = (_ONE - deviation) * _MOST
    if fractions.wraps:
        with np.errstate(invalid="ignore"):  # values outside int64 become the smallest int64
            return scores.astype(np.int64)
    return scores.astype(np.int64)


def before_and_after(fractions: Fractions, requested: Sequence[int]) -> Ints:
    """Return the change of each node's balance caused by the pod, as a number from 50 to 100; 75 means no change."""
    rows = fractions.rows
    without = fractions.used - column(tuple([requested[place] for place in fractions.places]))
    both = np.concatenate((fractions.used, without), axis=1), np.concatenate((fractions.capacity,) * 2, axis=1)
    even = after(Fractions(fractions.places, *both, fractions.wraps), requested)
    more = _HALF + even[:rows] - even[rows:]
    return _HALF + ((more + (more < 0)) >> 1)  # half of the change, rounded towards zero


def _deviation(columns: list[tuple[int, Ints, Ints]], rows: int) -> Floats:
    """Return the population standard deviation over the resources, for each row.

    For two resources, the deviation is half of the difference between their values.
    """
    present = [capacity != 0 for _, _, capacity in columns]
    fractions = [np.minimum(used / np.where(capacity == 0, 1, capacity), 1.0) for _, used, capacity in columns]
    count = np.zeros(rows, dtype=np.int64)
    total = np.zeros(rows)
    for fraction, counts in zip(fractions, present, strict=True):
        count += counts
        total = np.where(counts, total + fraction, total)
    mean = total / np.maximum(count, 1)
    squares = np.zeros(rows)
    first = np.zeros(rows)
    last = np.zeros(rows)
    seen = np.zeros(rows, dtype=np.int64)
    for fraction, counts in zip(fractions, present, strict=True):
        squares = np.where(counts, squares + np.square(fraction - mean), squares)
        first = np.where(counts & (seen == 0), fraction, first)
        last = np.where(counts, fraction, last)
        seen += counts
    deviation = np.where(count > 2, np.sqrt(squares / np.maximum(count, 1)), 0.0)
    return np.where(count == 2, np.abs((first - last) / 2), deviation)
