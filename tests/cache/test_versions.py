"""Tests of change logs that report dropped entries, and of change times that only grow."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.cache.versions import IMAGES, LABELS, TAINT_SETS, TERMS, ChangeLog, Versions


def versions(rows: int = 8) -> Versions:
    return Versions(np.zeros(rows, dtype=np.int64))


def test_a_log_names_the_rows_that_changed_after_a_stamp() -> None:
    kept = versions()
    kept.touch_pods(3)
    stamp = kept.now
    kept.touch_node(5)
    kept.touch_pods(1)
    kept.touch_pods(3)
    assert (kept.pods.since(stamp), kept.nodes.since(stamp)) == ([1, 3], [5])
    assert kept.pods.since(kept.now) == []


@given(st.lists(st.integers(0, 7), max_size=40), st.integers(2, 6), st.integers(0, 40))
def test_a_log_that_overflows_forgets_the_oldest_and_says_so(rows: list[int], limit: int, stamp: int) -> None:
    log = ChangeLog(limit)
    for date, row in enumerate(rows, 1):
        log.add(row, date)
    found = log.since(stamp)
    assert found is None or found == rows[stamp:]
    assert found is not None or stamp < len(rows) - limit // 2
    assert log.at == len(rows)
    assert len(log.rows) == len(log.dates) <= limit


def test_of_a_kind_that_is_followed_each_object_is_logged() -> None:
    kept = versions()
    kept.touch_object("ResourceClaim", ("d/a", None))
    log = kept.follow("ResourceClaim")
    assert log.since(0) is None, "what was before nobody knows"
    stamp = kept.now
    kept.touch_object("ResourceClaim", ("d/b", "made"))
    kept.touch_object("Service", ("d/s", "made"))
    kept.touch_object("ResourceClaim", ("d/b", None))
    assert kept.follow("ResourceClaim").since(stamp) == [("d/b", "made"), ("d/b", None)]
    assert kept.fork().follow("ResourceClaim").since(stamp) is None


@pytest.mark.parametrize(
    ("part", "changes"),
    [
        pytest.param(LABELS, lambda kept: kept.touch_node(0, LABELS), id="labels"),
        pytest.param(IMAGES, lambda kept: kept.touch_node(0, LABELS, IMAGES), id="one-of-two"),
        pytest.param("Service", lambda kept: kept.touch_object("Service"), id="a-kind"),
    ],
)
def test_a_stamp_holds_until_a_part_it_was_made_from_changes(part: str, changes) -> None:
    kept = versions()
    stamp = kept.now
    kept.touch_object("Secret")
    kept.touch_pods(1)
    assert not kept.changed(stamp, part, "Pod")
    changes(kept)
    assert kept.changed(stamp, part)
    assert not kept.changed(kept.now, part)


def test_dates_of_rows_outlive_growth() -> None:
    kept = versions(2)
    kept.touch_pods(1)
    kept.grow(4)
    kept.touch_pod(3)
    assert kept.row_pods_at.tolist() == [0, 1, 0, 2]
    assert not kept.rows_changed(1), "a new version that asks for the same is no change of a row"


@pytest.mark.parametrize("touch", [lambda kept, row: kept.touch_pods(row), lambda kept, row: kept.touch_pods_of([row])])
def test_a_full_log_forgets_half_with_the_next_change(touch: Callable[[Versions, int], None]) -> None:
    kept = versions()
    kept.pods.limit = 4
    for row in range(4):
        touch(kept, row)
    assert kept.pods.since(0) == [0, 1, 2, 3]
    touch(kept, 4)
    assert (kept.pods.since(0), kept.pods.since(2)) == (None, [2, 3, 4])
    assert kept.row_pods_at.tolist()[:5] == [1, 2, 3, 4, 5]


def test_time_is_the_number_of_changes() -> None:
    kept = versions()
    assert (kept.now, kept.last, kept.parts_at, kept.objects_at) == (0, 0, 0, 0)
    for number, touch in enumerate(
        (
            lambda: kept.touch_node(1, LABELS),
            lambda: kept.touch_pods(1),
            lambda: kept.touch_pod(1),
            lambda: kept.touch_each(np.array([1, 2])),
            lambda: kept.touch(TERMS),
            lambda: kept.touch_object("Service"),
        ),
        1,
    ):
        touch()
        assert kept.now == number
    kept.touch_pods_of([1, 2, 3])
    assert kept.now == 9


def test_rows_change_with_their_pods_or_their_node_and_the_last_change_is_the_newest() -> None:
    kept = versions()
    for touch in (lambda: kept.touch_pods(1), lambda: kept.touch_node(2), lambda: kept.touch_pods_of([1, 2])):
        before = kept.now
        assert not kept.rows_changed(before)
        touch()
        assert kept.rows_changed(before)
        assert kept.last == kept.now > before
    for part in (LABELS, IMAGES, TAINT_SETS, TERMS):
        assert kept.latest(part) == 0, "no part has changed so far"
        kept.touch(part)
        assert kept.last == kept.latest(part) == kept.parts_at == kept.now
    last = kept.last
    kept.touch_pod(3)
    assert (kept.last, kept.pod_updates.since(last)) == (last, [3])
    kept.touch_each(np.array([4, 5]))
    assert kept.row_pods_at.tolist()[3:6] == [last + 1, last + 2, last + 2]
