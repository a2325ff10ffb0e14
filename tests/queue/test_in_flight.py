"""Tests that the events kept for pods in flight equal those of a plain list, however many are dropped."""

from random import Random
from typing import Any

import pytest

from kschedd.framework.events import ActionType, ClusterEvent, EventResource
from kschedd.queue import in_flight
from kschedd.queue.entry import QueuedPod
from kschedd.queue.in_flight import InFlight
from kschedd.queue.snapshot import EntryCopies, EntryStates
from tests.queue.conftest import Make

EVENT = ClusterEvent(EventResource.NODE, ActionType.ADD)


class Plain:
    """A list of all events, and for each pod in flight its length when the pod was popped."""

    def __init__(self) -> None:
        self.events: list[tuple[int, int]] = []  # (event number, observation number)
        self.popped: dict[str, int] = {}

    def since(self, uid: str, seen: int) -> list[int]:
        return [number for number, of in self.events[self.popped[uid] :] if not 0 < of <= seen]

    def kept(self) -> list[int]:
        oldest = next(iter(self.popped.values()), len(self.events))
        return [number for number, _ in self.events[oldest:]]


def _entry(make: Make, number: int) -> QueuedPod:
    return QueuedPod(make.pod(f"p{number}"), f"d/p{number}", 0, attempts=1)


def _restored(original: InFlight) -> InFlight:
    restored = InFlight()
    restored.restore(original.snapshot(), EntryCopies(EntryStates.of(original)))
    return restored


@pytest.mark.parametrize("batch", [1, 3, 256])
@pytest.mark.parametrize("seed", range(5))
def test_events_since_a_pop_are_those_of_a_plain_list(
    seed: int, batch: int, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_flight, "_BATCH", batch)
    random, tested, plain = Random(seed), InFlight(), Plain()
    for number in range(400):
        match random.choice(("pop", "event", "event", "event", "done")):
            case "pop" if len(plain.popped) < 5:
                entry = _entry(make, number)
                tested.begin(entry)
                plain.popped[entry.uid] = len(plain.events)
                assert tested.get(entry.uid) is entry
            case "event":
                observation = random.choice((0, number, number - 5))
                tested.happened(EVENT, None, number, observation)
                plain.events.append((number, observation))
            case "done":
                uid = random.choice([*plain.popped, "another"])
                expected = tested.get(uid)
                assert tested.done(uid) is expected
                assert (expected is None) is (plain.popped.pop(uid, None) is None)
        if number % 50 == 0:
            tested = _restored(tested)
        assert [entry.uid for entry in tested] == list(plain.popped)
        assert len(tested) == len(plain.popped)
        assert [happened.new for happened in tested.events()] == plain.kept()
        assert tested.events_kept == len(plain.kept())
        for uid in plain.popped:
            assert uid in tested
            for seen in (0, number - 3):
                assert [happened.new for happened in tested.since_pop(uid, seen)] == plain.since(uid, seen)


@pytest.mark.parametrize("batch", [4, 8])
def test_events_are_dropped_with_the_last_pod_and_in_batches_before(batch: int, make: Make, monkeypatch: Any) -> None:
    monkeypatch.setattr(in_flight, "_BATCH", batch)
    tested = InFlight()
    entries = [_entry(make, number) for number in range(3)]
    held = []

    def happen(times: int) -> None:
        for _ in range(times):
            tested.happened(EVENT, None, None, 0)

    happen(2)  # nobody is in flight
    for entry in entries:
        tested.begin(entry)
        happen(4)
    for entry in entries:
        held.append(len(tested.snapshot().events))
        tested.done(entry.uid)
    held.append(len(tested.snapshot().events))
    # The first pod's four events are a third of all, and are kept; with the second pod's they are two thirds.
    assert held == [12, 12, 4, 0]


def test_clear_forgets_pods_and_events(make: Make) -> None:
    tested = InFlight()
    tested.begin(_entry(make, 1))
    tested.happened(EVENT, None, None, 0)
    tested.clear()
    assert (len(tested), tested.events(), tested.snapshot().events) == (0, [], [])
    tested.begin(_entry(make, 1))
    assert list(tested.since_pop("uid-p1", 0)) == []


def test_a_pod_is_in_flight_once(make: Make) -> None:
    tested = InFlight()
    tested.begin(_entry(make, 1))
    with pytest.raises(AssertionError, match="d/p1 is in flight already"):
        tested.begin(_entry(make, 1))
