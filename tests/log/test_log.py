"""Tests of the log's retention, of queries, and that an entry is removed from all indexes at once."""

from random import Random

import attrs
import pytest

from kschedd.api.pods import Pod
from kschedd.log.events import event_of
from kschedd.log.log import Entry, Log
from kschedd.queue.entry import SECOND, Move, SubQueue
from kschedd.scheduling.records import AttemptRecord, PodBound, PodPreempted


def attempt(pod: str, at: float, node: str = "n1", message: str = "") -> AttemptRecord:
    return AttemptRecord(at, f"default/{pod}", "uid", 1, node, 1, 1, 1, None, 0.001, message)


def failed(pod: str, at: float, message: str = "no room") -> AttemptRecord:
    return attempt(pod, at, "", message)


def bound(pod: str, at: float) -> PodBound:
    return PodBound(at, f"default/{pod}", "uid", "n1", "default-scheduler")


def move(pod: str, at: int, target: SubQueue = SubQueue.ACTIVE) -> Move:
    return Move(at * SECOND, f"default/{pod}", "uid", SubQueue.OUTSIDE, target, "PodAdd")


def logged(*entries: Entry, most: int = 100) -> Log:
    log = Log(most)
    log.extend(entries)
    return log


def test_entries_of_all_kinds_are_read_in_the_order_in_which_they_came() -> None:
    entries = [move("a", 1), attempt("a", 1.0), bound("a", 2.0), move("b", 3), failed("b", 4.0)]
    log = logged(*entries)
    assert list(log) == entries
    assert len(log) == 5
    assert list(log.of("default/b")) == entries[3:]
    assert log.moves("default/a") == entries[:1]
    assert log.attempts() == [entries[1], entries[4]]
    assert log.attempts("default/a") == [entries[1]]


def test_the_latest_attempts_are_found_by_pod_and_only_so_many() -> None:
    log = logged(*(attempt(name, float(at)) for at, name in enumerate("abacb")))
    assert [one.pod for one in log.attempts(None, 2)] == ["default/c", "default/b"]
    assert [one.at_s for one in log.attempts("default/a", 1)] == [2.0]
    assert log.attempts("default/a", 0) == log.attempts(None, 0) == []


@pytest.mark.parametrize("most", [1, 3, 40, 100])
def test_the_oldest_entries_are_forgotten_and_what_is_read_of_a_pod_agrees(most: int) -> None:
    dice = Random(most)
    log = Log(most)
    entries: list[Entry] = []
    for at in range(300):
        name = dice.choice("abcde")
        entries.append(dice.choice((move(name, at), attempt(name, float(at)), failed(name, float(at)))))
        log.extend(entries[-1:])
        kept = list(log)
        assert most - 2 * max(most // 16, 1) < len(kept) <= most or at < most
        assert kept == entries[len(entries) - len(kept) :]
        assert len(log) == len(kept)
        for each in "abc":
            assert list(log.of(f"default/{each}")) == [entry for entry in kept if entry.pod == f"default/{each}"]


def test_what_is_appended_one_by_one_counts_as_well() -> None:
    log = Log(100)
    for at in range(5):
        log.append(move("a", at))
    assert len(log.moves("default/a")) == 5


@pytest.mark.parametrize("many", [1, 3, 50])
def test_what_is_logged_many_at_a_time_is_logged_as_one_after_the_other(many: int) -> None:
    dice = Random(many)
    entries: list[Entry] = []
    for number in range(200):
        name, at = dice.choice("abcdef"), 100 + number / 14
        entries.append(dice.choice((attempt(name, at), failed(name, at), bound(name, at), move(name, number))))
    whole, single = Log(60), Log(60)
    for first in range(0, 200, many):
        whole.extend(entries[first : first + many])
    for entry in entries:
        single.extend((entry,))
        assert len(single) <= 60
    reported = [(list(log), log.failed, log.rate(114.0), log.rate(116.5), log.events.number) for log in (whole, single)]
    assert reported[0] == reported[1]
    series = [[attrs.astuple(each, recurse=False) for each in log.events.latest()] for log in (whole, single)]
    assert series[0] == series[1]
    backs = [[log.events.reaches_back_to(number, None) for number in range(200)] for log in (whole, single)]
    assert backs[0] == backs[1]


# -- totals ---------------------------------------------------------------------------------------------------------


def test_failures_are_counted_beyond_what_is_kept() -> None:
    log = logged(*(failed("a", float(at)) for at in range(20)), attempt("a", 20.0), most=5)
    assert log.failed == 20


def test_the_rate_is_that_of_the_last_few_seconds() -> None:
    log = Log()
    assert log.rate(100.0) == 0.0
    log.extend([attempt("a", at) for at in (90.0, *(96.0 + step / 100 for step in range(400)))])
    assert log.rate(100.0) == 100.0
    assert log.rate(200.0) == 0.0


# -- Events ---------------------------------------------------------------------------------------------------------


def test_equal_events_are_counted_together_and_count_as_new() -> None:
    log = logged(failed("a", 1.0), failed("b", 2.0), failed("a", 3.0))
    assert [
        (reported.first.name, reported.count, reported.first.at_s, reported.last_s) for reported in log.events.latest()
    ] == [
        ("b", 1, 2.0, 2.0),
        ("a", 2, 1.0, 3.0),
    ]


def test_a_series_goes_with_its_last_entry_and_not_before() -> None:
    log = logged(*(failed(name, float(at)) for at, name in enumerate("abacd")), most=3)
    assert [(reported.first.name, reported.count) for reported in log.events.latest()] == [("a", 2), ("c", 1), ("d", 1)]
    log.extend([move("e", 5)])
    assert [reported.first.name for reported in log.events.latest()] == ["c", "d"]
    log.extend([move("e", 6), move("e", 7)])
    assert log.events.latest() == []
    assert len(log.events) == 0


def test_a_placement_is_no_event_until_the_pod_is_bound() -> None:
    log = logged(attempt("a", 1.0))
    assert log.events.latest() == []
    log.extend([bound("a", 2.0)])
    assert [reported.first.message for reported in log.events.latest()] == ["Successfully assigned default/a to n1"]


def test_events_are_found_by_pod_and_only_so_many() -> None:
    events = logged(*(failed(name, float(at), f"because {at}") for at, name in enumerate("abab"))).events
    assert [reported.first.message for reported in events.latest("default", "a")] == ["because 0", "because 2"]
    assert [reported.first.message for reported in events.latest(limit=1)] == ["because 3"]
    assert events.latest("elsewhere") == []


def test_one_can_follow_what_was_told_since() -> None:
    log = logged(failed("a", 1.0), failed("b", 1.0))
    seen = log.events.number
    assert log.events.since(seen) == []
    log.extend([failed("a", 2.0)])
    assert [(reported.first.name, reported.count) for reported in log.events.since(seen)] == [("a", 2)]


def test_a_number_of_another_log_or_of_before_what_is_kept_does_not_do_to_follow_from() -> None:
    log = Log(2, "this")
    log.extend([failed(name, float(at)) for at, name in enumerate("abac")])  # removes b's second entry
    events = log.events
    assert [number for number in range(6) if events.reaches_back_to(number, "this")] == [2, 3, 4]
    assert events.reaches_back_to(2, None)
    assert not events.reaches_back_to(2, "another")


def test_what_was_listed_does_not_change_afterwards() -> None:
    log = logged(failed("a", 1.0))
    [reported] = log.events.latest()
    log.extend([failed("a", 2.0)])
    assert reported.count == 1
    assert log.events.latest()[0].count == 2


@attrs.define(eq=False)
class Bell:
    closed: bool = False
    rung: int = 0

    def ring(self) -> None:
        self.rung += 1

    def close(self) -> None:
        self.closed = True


def test_subscribers_are_rung_for_events_only_and_not_once_they_are_closed() -> None:
    log, bell = Log(), Bell()
    log.subscribers.add(bell)
    log.extend([move("a", 1), attempt("a", 1.0)])
    log.ring()
    assert bell.rung == 0
    log.extend([bound("a", 2.0)])
    log.ring()
    log.ring()
    assert bell.rung == 1
    bell.close()
    log.extend([bound("b", 2.0)])
    log.ring()
    assert bell.rung == 1
    assert not log.subscribers


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        pytest.param("a" * 1024, "a" * 1024, id="as-long-as-may-be"),
        pytest.param("a" * 1025, "a" * 1020 + " ...", id="longer"),
        pytest.param("a" + "ä" * 512, "a" + "ä" * 509 + " ...", id="counted-in-bytes"),
    ],
)
def test_long_messages_are_cut_as_upstream_cuts_them(answer: str, shown: str) -> None:
    event = event_of(failed("a", 1.0, answer))
    assert event is not None
    assert event.message == shown


@pytest.mark.parametrize(("in_memory", "ending"), [(False, ""), (True, " (in kube-scheduler memory).")])
def test_a_preempted_pod_is_told_for_whom(in_memory: bool, ending: str) -> None:
    preemptor = Pod.from_raw(
        {"metadata": {"name": "great", "namespace": "shop", "uid": "uid-great"}, "spec": {"schedulerName": "mine"}}
    )
    event = event_of(PodPreempted(3.0, "shop/small", "uid-small", "n1", preemptor, in_memory))
    assert event is not None
    assert (event.type, event.reason, event.namespace, event.name) == ("Normal", "Preempted", "shop", "small")
    assert event.message == f"Preempted by pod uid-great on node n1{ending}"
    assert (event.uid, event.scheduler, event.preemptor) == ("uid-small", "mine", preemptor)
