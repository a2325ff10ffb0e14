"""Preemptors wait until the deletion of each of their victims has begun."""

import attrs

from kschedd.api.pods import Pod
from kschedd.queue.evictions import PendingEvictions
from kschedd.store.objects.log import WatchEvent
from tests.queue.conftest import Make


def deleted(uid: str) -> WatchEvent:
    gone = named(uid)
    return WatchEvent("DELETED", gone, gone, 1)


def named(uid: str) -> Pod:
    return Make().pod(uid, uid=uid)


def test_a_preemptor_waits_for_each_of_its_victims() -> None:
    evictions = PendingEvictions()
    evictions.begin("p", ["a", "b"])
    evictions.observe([deleted("a"), deleted("other")])
    assert "p" in evictions
    evictions.observe([deleted("b")])
    assert "p" not in evictions


def test_a_victim_counts_as_gone_when_its_deletion_begins() -> None:
    evictions = PendingEvictions()
    evictions.begin("p", ["a"])
    ending = attrs.evolve(named("a"), deletion_timestamp="2026-01-01T00:00:00Z")
    evictions.observe([WatchEvent("MODIFIED", named("a"), named("a"), 1)])
    assert "p" in evictions
    evictions.observe([WatchEvent("MODIFIED", named("a"), ending, 2)])
    assert "p" not in evictions


def test_changed_objects_of_other_kinds_are_no_victims(make: Make) -> None:
    evictions = PendingEvictions()
    evictions.begin("p", ["a"])
    node = make.node()
    evictions.observe([WatchEvent("MODIFIED", node, node, 1)])
    assert "p" in evictions


def test_two_preemptors_may_wait_for_one_victim() -> None:
    evictions = PendingEvictions()
    evictions.begin("p", ["a", "b"])
    evictions.begin("q", ["a"])
    evictions.observe([deleted("a")])
    assert "q" not in evictions
    assert "p" in evictions
    evictions.begin("q", ["b"])
    evictions.end("p")
    evictions.observe([deleted("b")])
    assert not evictions.snapshot()


def test_a_new_attempt_replaces_the_victims_of_the_last_one() -> None:
    evictions = PendingEvictions()
    evictions.begin("p", ["a"])
    evictions.begin("p", ["b"])
    evictions.observe([deleted("a")])
    assert "p" in evictions
    evictions.observe([deleted("b")])
    assert "p" not in evictions
    evictions.begin("p", ["c"])
    evictions.begin("p", [])
    assert "p" not in evictions


def test_failed_and_deleted_preemptors_are_forgotten() -> None:
    evictions = PendingEvictions()
    evictions.begin("p", ["a"])
    evictions.begin("q", ["a"])
    evictions.end("p", "unknown")
    assert "p" not in evictions
    evictions.observe([deleted("q")])
    assert not evictions.snapshot()


def test_a_copy_goes_on_by_itself() -> None:
    evictions, copied = PendingEvictions(), PendingEvictions()
    evictions.begin("p", ["a", "b"])
    copied.restore(evictions.snapshot())
    assert "p" in copied
    copied.observe([deleted("a"), deleted("b")])
    assert "p" not in copied
    assert "p" in evictions
