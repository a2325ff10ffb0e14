"""Tests that a keyed heap returns items in order after any insertions, replacements and removals."""

from collections.abc import Callable
from typing import ClassVar
from weakref import WeakSet

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.queue.keyed_heap import KeyedHeap

KEYS = st.sampled_from("abcdefgh")


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), KEYS, st.integers(0, 5)),
            st.tuples(st.just("remove"), KEYS, st.just(0)),
            st.tuples(st.just("take"), st.just(""), st.just(0)),
            st.tuples(st.just("copy"), st.just(""), st.just(0)),
        ),
        max_size=400,
    )
)
def test_it_agrees_with_a_sorted_list(steps: list[tuple[str, str, int]]) -> None:
    heap: KeyedHeap[str] = KeyedHeap()
    model: dict[str, tuple[int, int]] = {}  # key -> order, arrival
    for number, (what, key, order) in enumerate(steps):
        if what == "put":
            heap.put(key, order, key)
            model[key] = (order, number)
        elif what == "remove":
            assert heap.remove(key) == (key if key in model else None)
            model.pop(key, None)
        elif what == "copy":
            heap = KeyedHeap.of(heap.items())
        else:
            first = min(model, key=lambda k: model[k], default=None)
            assert heap.take() == first
            model.pop(first or "", None)
        assert len(heap) == len(model)
        assert list(heap) == list(model)
        assert heap.ordered() == sorted(model, key=lambda k: model[k])
        head = heap.peek()
        assert (head is None) == (not model)
        if head is not None:
            assert head == (model[head[1]][0], min(model, key=lambda k: model[k]))


def test_items_of_equal_order_leave_as_they_came() -> None:
    heap: KeyedHeap[int] = KeyedHeap()
    for number in range(200):
        heap.put(str(number), 1, number)
    for number in range(0, 200, 2):
        heap.remove(str(number))
    assert [heap.take() for _ in range(len(heap))] == list(range(1, 200, 2))
    assert heap.take() is None


def test_a_removed_key_is_not_there() -> None:
    heap: KeyedHeap[int] = KeyedHeap()
    heap.put("a", 1, 1)
    assert "a" in heap
    assert heap.get("a") == 1
    heap.remove("a")
    assert "a" not in heap
    assert heap.get("a") is None
    assert heap.peek() is None


class Thing:
    """A value that can be counted while something refers to it, and an order whose comparisons are counted."""

    alive: ClassVar[WeakSet["Thing"]] = WeakSet()
    compared = 0

    def __init__(self, order: int) -> None:
        self.order = order
        self.alive.add(self)

    def __lt__(self, other: "Thing") -> bool:
        type(self).compared += 1
        return self.order < other.order


def _replaced(heap: KeyedHeap[Thing], number: int) -> None:
    thing = Thing(number)
    heap.put(str(number % 10), thing, thing)


def _removed(heap: KeyedHeap[Thing], number: int) -> None:
    heap.remove(str(number % 10))
    _replaced(heap, number)


@pytest.mark.parametrize("change", [_replaced, _removed])
def test_stale_items_are_freed_without_much_work(change: Callable[[KeyedHeap[Thing], int], None]) -> None:
    heap: KeyedHeap[Thing] = KeyedHeap()
    Thing.compared = most = 0
    for number in range(2000):
        change(heap, number)
        most = max(most, len(Thing.alive))
    assert most <= 2 * 10 + 66
    assert Thing.compared < 2000 * 3


def test_removed_items_are_freed_with_most_of_the_heap() -> None:
    heap: KeyedHeap[Thing] = KeyedHeap()
    for number in range(500):
        heap.put(str(number), number, Thing(number))
    for number in range(490):
        heap.remove(str(number))
    assert len(Thing.alive) <= 2 * 10 + 66


def test_an_empty_heap_keeps_nothing() -> None:
    heap: KeyedHeap[Thing] = KeyedHeap()
    for empty in (lambda: heap.remove("a"), heap.clear):
        heap.put("a", 1, Thing(1))
        empty()
        assert (len(heap), len(Thing.alive)) == (0, 0)
