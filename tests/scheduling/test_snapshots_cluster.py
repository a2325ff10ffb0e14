"""Tests of the versions and the defaults of a snapshot of a whole cluster."""

from typing import Any

import attrs
import pytest

from kschedd.scheduling.snapshots.cluster import ClusterSnapshot, earliest


@attrs.frozen
class Observer:
    """A scheduler or a controller that has observed all writes up to a version."""

    version: int

    @property
    def observed(self) -> int:
        return self.version


@pytest.mark.parametrize(
    ("driver", "controllers", "version"),
    [
        pytest.param(7, [], 7, id="the-scheduler-alone"),
        pytest.param(7, [9, 5, 8], 5, id="a-controller-has-observed-less"),
        pytest.param(4, [9, 5], 4, id="the-scheduler-has-observed-least"),
    ],
)
def test_the_log_of_a_snapshot_begins_with_the_earliest_observed_version(
    driver: int, controllers: list[int], version: int
) -> None:
    observers: Any = [Observer(number) for number in (driver, *controllers)]
    assert earliest(observers[0], observers[1:]) == version


def test_an_engine_schedules_from_a_snapshot_and_is_not_stopped_unless_stated_otherwise() -> None:
    nothing: Any = None
    made = ClusterSnapshot(nothing, nothing, (), nothing, now_s=1.0, start_s=0.0, next_leftover_s=30.0)
    assert (made.reading, made.stopped, made.fresh) == (False, False, ())
