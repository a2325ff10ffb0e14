"""Tests of the lock of a scheduler with out-of-tree plugins: a plugin's thread and the scheduler exclude each other."""

from threading import Event, Thread

import pytest

from kschedd.framework.exclusion import SchedulerLock, passed_on, to_be_taken


class Change:
    """A thread that takes the lock, as a call from a plugin does before a change."""

    def __init__(self, lock: SchedulerLock) -> None:
        self._lock = lock
        self.made = Event()
        Thread(target=self._make, daemon=True).start()

    def _make(self) -> None:
        with self._lock.taken():
            self.made.set()

    @property
    def waits(self) -> bool:
        return not self.made.wait(0.05)


@pytest.fixture
def lock() -> SchedulerLock:
    return SchedulerLock()


def test_a_change_waits_until_the_step_waits_for_a_plugin(lock: SchedulerLock) -> None:
    with lock.held(passes_on=True):
        change = Change(lock)
        assert change.waits
        with passed_on():
            assert change.made.wait(10)
        assert Change(lock).waits, "the step goes on"


def test_a_change_waits_until_the_end_of_a_step_that_keeps_the_lock(lock: SchedulerLock) -> None:
    with lock.held():
        change = Change(lock)
        with passed_on():
            assert change.waits
    assert change.made.wait(10)


def test_a_plugin_takes_the_lock_before_a_change_unless_its_thread_keeps_the_lock(lock: SchedulerLock) -> None:
    assert to_be_taken() is None
    with lock.known():
        assert to_be_taken() is lock
        with lock.held():
            assert to_be_taken() is None
        assert to_be_taken() is lock
        with lock.held(passes_on=True):
            assert to_be_taken() is lock
    assert to_be_taken() is None


def test_a_thread_without_the_lock_releases_nothing(lock: SchedulerLock) -> None:
    with passed_on(), lock.known(), passed_on():
        change = Change(lock)
        assert change.made.wait(10)
