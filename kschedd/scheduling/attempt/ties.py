"""Ties: the choice between several nodes with the highest total.

Before 1.35 kube-scheduler chooses a node at random. Since 1.35 kube-scheduler selects the first entry of a binary heap
over the feasible nodes in visiting order. Since 1.35 kube-scheduler chooses at random only if an extender has scored.
The heap is Go's container/heap: an entry moves up only if its total is higher, and of two children with equal totals
the left child moves. The selected root is the first of the best nodes in pre-order of the tree. The root is not always
the best node that was visited first.

Rules: ties_in_order. Source: Kubernetes v1.34 and v1.36, scheduler/schedule_one.go (selectHost, newSortedNodeScores).
"""

from collections.abc import Callable, MutableSequence, Sequence
from functools import lru_cache
from random import Random
from typing import Any, Final

import attrs
import numpy as np

from kschedd.cache.table import Ints, Rows

Choose = Callable[[Rows, Sequence[str], Ints | None], int]
"""Picks one of several best nodes and returns its row.

The arguments are their rows in visiting order, the names of all rows, and the positions of the best nodes among the
feasible ones. The positions are None if an extender has scored.
"""

_DEPTH: Final = 24  # number of levels of the largest heap with cached ranks


def by_name(rows: Rows, names: Sequence[str], places: Ints | None = None) -> int:
    """Return the alphabetically first of the best nodes."""
    first: int = min(rows.tolist(), key=names.__getitem__)
    return first


@attrs.define(eq=False)
class NodeTies:
    """The tie break of a Kubernetes release: a random choice by a seeded generator, or the first node in heap order."""

    random: Random
    drawn: bool = True

    def __call__(self, rows: Rows, names: Sequence[str], places: Ints | None = None) -> int:
        if self.drawn or places is None:
            return int(rows[self.random.randrange(len(rows))])
        return int(rows[first_in_heap(places)])

    def fork(self) -> "NodeTies":
        """Return a copy that makes the same choices in the future."""
        random = Random()
        random.setstate(self.random.getstate())
        return NodeTies(random, self.drawn)


def first_in_heap(places: Ints) -> int:
    """Return the index of the place that comes first in the pre-order of a binary heap; `places` must be ascending."""
    if places[0] == 0:
        return 0
    return int(_ranks((places.item(-1) + 1).bit_length())[places].argmin())


@lru_cache(_DEPTH)
def _ranks(levels: int) -> Ints:
    """Return the pre-order rank of each position of a full heap with `levels` levels."""
    numbers = np.arange(1, 1 << levels)  # the root is 1, the children of n are 2n and 2n + 1
    level = np.frexp(numbers)[1].astype(np.int64) - 1
    # The path from the root is the node's number in binary without its first digit. Paths compare like words: if two
    # paths are equal when padded with zeros, the shorter path comes first.
    paths = (numbers - (1 << level)) << (levels - 1 - level)
    ranks: Ints = np.empty(len(numbers), dtype=np.int64)
    ranks[np.lexsort((level, paths))] = np.arange(len(numbers))
    return ranks


def heapify(totals: MutableSequence[int], *columns: MutableSequence[Any]) -> None:
    """Reorder the totals, and the columns likewise, as a heap with the highest total first (container/heap's Init)."""
    for at in range(len(totals) // 2 - 1, -1, -1):
        _sift_down((totals, *columns), at)


def pop_first(totals: MutableSequence[int], *columns: MutableSequence[Any]) -> None:
    """Remove the first entry of the heap from the totals and all columns (container/heap's Pop)."""
    both = totals, *columns
    _swap(both, 0, len(totals) - 1)
    for column in both:
        column.pop()
    _sift_down(both, 0)


def _sift_down(columns: Sequence[MutableSequence[Any]], at: int) -> None:
    totals = columns[0]
    end = len(totals)
    while (child := 2 * at + 1) < end:
        if child + 1 < end and totals[child + 1] > totals[child]:
            child += 1
        if totals[child] <= totals[at]:
            return
        _swap(columns, at, child)
        at = child


def _swap(columns: Sequence[MutableSequence[Any]], one: int, other: int) -> None:
    for values in columns:
        values[one], values[other] = values[other], values[one]
