"""A priority queue whose items can also be found, replaced and removed by key.

The heap uses heapq with lazy deletion: removing or replacing an item only updates the dictionary, and the stale heap
item is skipped when it reaches the top. The heap is rebuilt when more than half of it is stale, so every operation is
O(log n) amortised, and lookup is O(1). Items of equal order are returned in insertion order.
"""

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any, Generic, Self, TypeVar

V = TypeVar("V")

# Up to this number of stale items, rebuilding the heap costs more than it saves.
_FEW = 64


class KeyedHeap(Generic[V]):
    """A heap with keys.

    `order` may be any comparable value; the smallest is returned first.
    """

    __slots__ = ("_heap", "_items", "_next")

    def __init__(self) -> None:
        self._heap: list[tuple[Any, int, str, V]] = []
        self._items: dict[str, tuple[Any, int, str, V]] = {}
        self._next = 0

    @classmethod
    def of(cls, items: Iterable[tuple[Any, int, str, V]]) -> Self:
        """Return a heap of these items, in the form that `items` returns."""
        heap = cls()
        heap._items = {item[2]: item for item in items}
        heap._next = max((item[1] for item in heap._items.values()), default=0)
        heap._clean()
        return heap

    def items(self) -> list[tuple[Any, int, str, V]]:
        """Return all items in insertion order, each as order, tie-breaking number, key and value."""
        return list(self._items.values())

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: str) -> bool:
        return key in self._items

    def __iter__(self) -> Iterator[V]:
        """Iterate over all items in insertion order."""
        return (item[3] for item in self._items.values())

    def ordered(self) -> list[V]:
        """Return all items in the order in which `take` would return them."""
        return [item[3] for item in sorted(self._items.values(), key=lambda item: item[:2])]

    def get(self, key: str) -> V | None:
        item = self._items.get(key)
        return None if item is None else item[3]

    def put(self, key: str, order: Any, value: V) -> None:
        """Add an item, or replace the item with the same key."""
        self._next = number = self._next + 1
        item = (order, number, key, value)
        self._items[key] = item
        heappush(self._heap, item)
        if len(self._heap) > 2 * len(self._items) + _FEW:
            self._clean()

    def remove(self, key: str) -> V | None:
        item = self._items.pop(key, None)
        if item is None:
            return None
        if not self._items:
            self._heap.clear()
        elif len(self._heap) > 2 * len(self._items) + _FEW:
            self._clean()
        return item[3]

    def peek(self) -> tuple[Any, V] | None:
        """Return the next item and its order; None if empty."""
        heap, items = self._heap, self._items
        while heap:
            item = heap[0]
            if items.get(item[2]) is item:
                return item[0], item[3]
            heappop(heap)
        return None

    def take(self) -> V | None:
        """Remove and return the next item; None if empty."""
        heap, items = self._heap, self._items
        while heap:
            item = heappop(heap)
            if items.get(item[2]) is item:
                del items[item[2]]
                return item[3]
        return None

    def clear(self) -> None:
        self._heap.clear()
        self._items.clear()

    def _clean(self) -> None:
        self._heap = list(self._items.values())
        heapify(self._heap)
