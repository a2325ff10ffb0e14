"""Tests of timers of controllers: due keys are returned in order of time."""

from kschedd.controllers.running.timers import Timers


def test_of_more_than_may_be_due_at_once_the_rest_is_due_the_next_time() -> None:
    timers: Timers[int] = Timers()
    for key in range(5):
        timers.set(key, 10.0 - key)
    assert timers.due(9.0, 2) == [4, 3]
    assert timers.next == 8.0
    assert timers.due(9.0, 9) == [2, 1]
    assert timers.due(9.0) == []
    assert timers.next == 10.0
