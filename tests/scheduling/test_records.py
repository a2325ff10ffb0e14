"""Tests of the log entries of attempts."""

from kschedd.scheduling.records import OUTCOME, AttemptRecord


def record() -> AttemptRecord:
    return AttemptRecord(
        at_s=10.0,
        pod="default/web",
        uid="u1",
        attempt=2,
        node="n1",
        feasible=5,
        visited=7,
        ties=3,
        score=300,
        took_s=0.25,
        message="0/7 nodes are available",
        nominated_node="n2",
    )


def test_a_decision_log_contains_the_decision_but_neither_its_time_nor_its_duration() -> None:
    assert dict(zip(OUTCOME, record().outcome, strict=True)) == {
        "pod": "default/web",
        "attempt": 2,
        "node": "n1",
        "feasible": 5,
        "visited": 7,
        "ties": 3,
        "score": 300,
        "message": "0/7 nodes are available",
        "nominated_node": "n2",
    }


def test_a_record_is_of_an_attempt_that_cannot_be_repeated_unless_stated_otherwise() -> None:
    made = record()
    assert not made.of_binding
    assert (made.version, made.attempted, made.lead) == (0, None, None)
