from random import Random

import attrs
import pytest

from kschedd.actors.decisions import DecisionRecord
from kschedd.actors.events import EventRecord
from kschedd.scheduling.records import NORMAL, WARNING, AttemptRecord, SchedulerEvent


def failed(name: str, at: float, about: str = "no room") -> SchedulerEvent:
    return SchedulerEvent(at, WARNING, "FailedScheduling", "default", name, about)


def test_equal_events_are_counted_together_and_count_as_new() -> None:
    record = EventRecord()
    record.extend([failed("a", 1.0)])
    record.extend([failed("b", 2.0)])
    record.extend([failed("a", 3.0)])
    assert [(told.first.name, told.count, told.first.at_s, told.last_s) for told in record.latest()] == [
        ("b", 1, 2.0, 2.0),
        ("a", 2, 1.0, 3.0),
    ]


def test_the_events_not_repeated_for_longest_are_dropped() -> None:
    record = EventRecord(kept=2)
    for at, name in enumerate("abac"):
        record.extend([failed(name, float(at))])
    assert [told.first.name for told in record.latest()] == ["a", "c"]


def test_events_are_found_by_pod_and_only_so_many() -> None:
    record = EventRecord()
    for at, name in enumerate("abab"):
        record.extend([failed(name, float(at), f"because {at}")])
    assert [told.message for told in record.latest("default", "a")] == ["because 0", "because 2"]
    assert [told.message for told in record.latest(limit=1)] == ["because 3"]
    assert record.latest("elsewhere") == []


def test_one_can_follow_what_was_told_since() -> None:
    record = EventRecord()
    record.extend([failed("a", 1.0)])
    record.extend([failed("b", 1.0)])
    seen = record.number
    assert record.since(seen) == []
    record.extend([failed("a", 2.0)])
    assert [(told.first.name, told.count) for told in record.since(seen)] == [("a", 2)]


def test_a_number_of_another_record_or_of_before_what_is_kept_does_not_do_to_follow_from() -> None:
    record = EventRecord(kept=2, instance="this")
    for at, name in enumerate("abac"):  # the fourth has b's series dropped, whose number was 2
        record.extend([failed(name, float(at))])
    assert [number for number in range(6) if record.reaches_back_to(number, "this")] == [2, 3, 4]
    assert record.reaches_back_to(2, None)
    assert not record.reaches_back_to(2, "another")


def test_what_was_listed_does_not_change_afterwards() -> None:
    record = EventRecord()
    record.extend([failed("a", 1.0)])
    [told] = record.latest()
    record.extend([failed("a", 2.0)])
    assert told.count == 1


def test_words_are_made_when_somebody_looks() -> None:
    record = EventRecord()
    record.extend([SchedulerEvent(1.0, NORMAL, "Scheduled", "default", "web", "n1")])
    assert record.latest()[0].message == "Successfully assigned default/web to n1"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        pytest.param("a" * 1024, "a" * 1024, id="as-long-as-may-be"),
        pytest.param("a" * 1025, "a" * 1020 + " ...", id="longer"),
        pytest.param("a" + "ä" * 512, "a" + "ä" * 509 + " ...", id="counted-in-bytes"),
    ],
)
def test_long_messages_are_cut_as_upstream_cuts_them(said: str, shown: str) -> None:
    assert failed("a", 1.0, said).message == shown


def decision(pod: str, at: float, node: str = "n1") -> AttemptRecord:
    return AttemptRecord(at, pod, "uid", 1, node, 1, 1, 1, None, 0.001)


def test_decisions_are_counted_and_found_by_pod() -> None:
    record = DecisionRecord(kept=3)
    for at, (name, node) in enumerate([("a", "n1"), ("b", ""), ("a", ""), ("c", "n1")]):
        record.extend([decision(name, float(at), node)])
    assert (record.scheduled, record.failed) == (2, 2)
    assert [(d.pod, d.at_s) for d in record.of("a")] == [("a", 2.0)]
    assert [d.pod for d in record.of(None, 2)] == ["a", "c"]


@pytest.mark.parametrize("many", [1, 3, 50])
def test_what_is_recorded_many_at_a_time_is_recorded_as_one_after_the_other(many: int) -> None:
    dice = Random(many)
    decisions = [decision(dice.choice("abc"), 100 + number / 7, dice.choice(("n1", ""))) for number in range(100)]
    events = [failed(dice.choice("abcdef"), number / 7) for number in range(100)]
    whole, single = (DecisionRecord(kept=30), EventRecord(kept=4)), (DecisionRecord(kept=30), EventRecord(kept=4))
    for first in range(0, 100, many):
        whole[0].extend(decisions[first : first + many])
        whole[1].extend(events[first : first + many])
    for number in range(100):
        single[0].extend([decisions[number]])
        single[1].extend([events[number]])
    told = [(one.of(), one.scheduled, one.failed, one.rate(114.0), one.rate(116.5)) for one, _ in (whole, single)]
    assert told[0] == told[1]
    series = [[attrs.astuple(each, recurse=False) for each in one.latest()] for _, one in (whole, single)]
    assert series[0] == series[1]
    backs = [[one.reaches_back_to(number, None) for number in range(100)] for _, one in (whole, single)]
    assert backs[0] == backs[1]


def test_the_rate_is_that_of_the_last_few_seconds() -> None:
    record = DecisionRecord()
    assert record.rate(100.0) == 0.0
    for at in (90.0, *(96.0 + step / 100 for step in range(400))):
        record.extend([decision("a", at)])
    assert record.rate(100.0) == 100.0
    assert record.rate(200.0) == 0.0
