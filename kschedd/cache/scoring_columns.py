"""Utilization of each node by resource, including the pod to schedule: the input of both resource scores.

Source: Kubernetes v1.34, plugins/noderesources/resource_allocation.go.
Units: CPU in millicores, other resources in whole units. Shapes: one int64 for each row and resource.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from kschedd.api.resources import PLAIN_AMOUNT, Resources
from kschedd.api.selecting.resource_names import is_scalar
from kschedd.cache.table import CPU, MEMORY, Ints, NodeTable, Rows
from kschedd.values import fast_frozen

_ALWAYS: Final = ("cpu", "memory", "ephemeral-storage")  # resources that are included even if the pod requests none
_CPU_AND_MEMORY: Final = [CPU, MEMORY]


@fast_frozen(eq=False)
class Fractions:
    """The requested amount, with the pod's request added, and the allocatable amount of each resource.

    `wraps` is true if amounts may be negative or results may overflow int64. Overflowing amounts must wrap around as
    upstream.
    """

    places: tuple[int, ...]  # indices of these resources in the profile's list
    used: Ints  # resources by rows
    capacity: Ints  # the same shape
    wraps: bool

    @property
    def rows(self) -> int:
        rows: int = self.used.shape[1]
        return rows

    @property
    def columns(self) -> list[tuple[int, Ints, Ints]]:
        """The index, requested and allocatable amounts of each resource."""
        return list(zip(self.places, self.used, self.capacity, strict=True))

    @property
    def complete(self) -> bool:
        """True if every node offers some amount of each resource."""
        return bool(np.count_nonzero(self.capacity) == self.capacity.size)


def scoring_resources(
    requests: Resources, table: NodeTable, rows: Rows, names: Sequence[str], *, nonzero: bool
) -> Fractions:
    """Return the utilization of these rows by resource, with the pod's `requests` added.

    With `nonzero`, existing pods without a cpu or memory request are counted with upstream's default request. Extended
    resources that the pod does not request, and resources without a column, are omitted.
    """
    places, numbers, amounts = [], [], []
    wraps = table.wraps
    for place, name in enumerate(names):
        requested = requests.get(name, 0)
        wraps = wraps or not 0 <= requested <= PLAIN_AMOUNT
        if name in _ALWAYS or (requested and is_scalar(name)):
            places.append(place)
            numbers.append(table.resource(name))
            amounts.append(requested)
    if numbers == _CPU_AND_MEMORY:  # the default resources of a profile
        used = (table.nonzero if nonzero else table.requested[:2]).take(rows, axis=1)
        capacity = table.cpu_and_memory(rows)
    else:
        used = np.zeros((len(numbers), len(rows)), dtype=np.int64)
        capacity = np.zeros_like(used)
        for line, number in enumerate(numbers):
            sums = table.nonzero if nonzero and number in _CPU_AND_MEMORY else table.requested
            used[line], capacity[line] = sums[number][rows], table.allocatable[number][rows]
    return Fractions(tuple(places), used + column(tuple(amounts)), capacity, wraps)


def amounts_of(table: NodeTable, rows: Rows, name: str) -> tuple[int, int]:
    """Return the requested and the allocatable amounts of these rows, without rows that lack the resource.

    Pods without a cpu or memory request are counted with upstream's default request.
    """
    number = table.resource(name)
    sums = table.nonzero if number in _CPU_AND_MEMORY else table.requested
    allocatable = table.allocatable[number][rows]
    return int(sums[number][rows][allocatable != 0].sum()), int(allocatable.sum())


@lru_cache(4096)
def column(amounts: tuple[int, ...]) -> Ints:
    """Return the amounts as a read-only column vector."""
    return np.array(amounts, dtype=np.int64)[:, np.newaxis]


def truncated(dividend: Ints, divisor: Ints) -> Ints:
    """Return the quotient rounded towards zero, as in Go; division by zero gives 0."""
    by = np.where(divisor == 0, 1, divisor)
    with np.errstate(over="ignore"):  # the lowest int64 divided by -1 overflows
        quotient = dividend // by
        inexact = (quotient * by != dividend) & ((dividend < 0) != (by < 0))
    towards_zero: Ints = np.where(divisor == 0, 0, quotient + inexact)
    return towards_zero
