"""Tests that a keyed heap returns items in order after any insertions, replacements and removals."""

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
        else:
            first = min(model, key=lambda k: model[k], default=None)
            assert heap.take() == first
            model.pop(first or "", None)
        assert len(heap) == len(model)
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
