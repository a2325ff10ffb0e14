"""Each node's utilization with the pod on it, by resource: the input of both resource scores.

Source: Kubernetes v1.34, plugins/noderesources/resource_allocation.go.
Units: CPU in millicores, other resources in whole units. Shapes: one int64 a row and resource.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from kschedd.api.resources import PLAIN_AMOUNT, Resources
from kschedd.api.selecting.resource_names import is_scalar
from kschedd.cache.table import CPU, MEMORY, Ints, NodeTable, Rows
from kschedd.values import fast_frozen

_ALWAYS: Final = ("cpu", "memory", "ephemeral-storage")  # count whether or not the pod requests them
_CPU_AND_MEMORY: Final = [CPU, MEMORY]


@fast_frozen(eq=False)
class Fractions:
    """Of each resource that counts: requested with the pod, and allocatable.

    `wraps`: amounts may be negative, and results may overflow int64: they must wrap around as upstream's do.
    """

    places: tuple[int, ...]  # of these resources, in the list that was asked for
    used: Ints  # resources by rows
    capacity: Ints  # likewise
    wraps: bool

    @property
    def rows(self) -> int:
        rows: int = self.used.shape[1]
        return rows

    @property
    def columns(self) -> list[tuple[int, Ints, Ints]]:
        """Place, requested and allocatable of each resource."""
        return list(zip(self.places, self.used, self.capacity, strict=True))

    @property
    def complete(self) -> bool:
        """Whether every node has some of each resource."""
        return bool(np.count_nonzero(self.capacity) == self.capacity.size)


def scoring_resources(
    requests: Resources, table: NodeTable, rows: Rows, names: Sequence[str], *, nonzero: bool
) -> Fractions:
    """`requests` is what the pod requests; with `nonzero`, existing pods without a cpu or memory request count with
    upstream's default request.

    Extended resources that the pod does not request are left out, and so are names of no resource.
    """
    places, numbers, amounts = [], [], []
    wraps = table.wraps
    for place, name in enumerate(names):
        asked = requests.get(name, 0)
        wraps = wraps or not 0 <= asked <= PLAIN_AMOUNT
        if name in _ALWAYS or (asked and is_scalar(name)):
            places.append(place)
            numbers.append(table.resource(name))
            amounts.append(asked)
    if numbers == _CPU_AND_MEMORY:  # what is scored unless the profile says otherwise
        used = (table.nonzero if nonzero else table.requested[:2]).take(rows, axis=1)
        capacity = table.cpu_and_memory(rows)
    else:
        used = np.zeros((len(numbers), len(rows)), dtype=np.int64)
        capacity = np.zeros_like(used)
        for line, number in enumerate(numbers):
            sums = table.nonzero if nonzero and number in _CPU_AND_MEMORY else table.requested
            used[line], capacity[line] = sums[number][rows], table.allocatable[number][rows]
    return Fractions(tuple(places), used + _column(tuple(amounts)), capacity, wraps)


@lru_cache(4096)
def _column(amounts: tuple[int, ...]) -> Ints:
    """One amount a line, to be read only."""
    return np.array(amounts, dtype=np.int64)[:, np.newaxis]


def truncated(dividend: Ints, divisor: Ints) -> Ints:
    """Division towards zero, as Go divides; by zero it is 0."""
    by = np.where(divisor == 0, 1, divisor)
    with np.errstate(over="ignore"):  # the least int64 divided by -1
        quotient = dividend // by
        inexact = (quotient * by != dividend) & ((dividend < 0) != (by < 0))
    towards_zero: Ints = np.where(divisor == 0, 0, quotient + inexact)
    return towards_zero
