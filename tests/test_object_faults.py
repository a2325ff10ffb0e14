"""Tests of faults of objects: logged once per reason, retried with a growing delay, and removed on success."""

import pytest
from structlog.testing import capture_logs

from kschedd.object_faults import LONGEST_RETRY_S, FaultLedger, ObjectRef

WEB = ObjectRef("Deployment", "default", "web")


class Work:
    """Work that raises the exception in `fails` while it is set."""

    def __init__(self) -> None:
        self.fails: Exception | None = ValueError("odd")
        self.times: list[float] = []

    def __call__(self, now: float) -> list[str]:
        self.times.append(now)
        if self.fails is not None:
            raise self.fails
        return ["done"]


def test_what_went_wrong_is_logged_once_for_each_reason() -> None:
    ledger: FaultLedger[list[str]] = FaultLedger("deployments")
    work = Work()
    with capture_logs() as logs:
        assert ledger.run(WEB, work, 10.0) is None
        assert ledger.run(WEB, work, 11.0) is None
        work.fails = TypeError("worse")
        assert ledger.run(WEB, work, 12.0) is None
    assert [(line["event"], line["object"], line["component"]) for line in logs] == [
        ("object_fault", "Deployment/default/web", "deployments"),
        ("object_fault", "Deployment/default/web", "deployments"),
    ]
    assert logs[0]["why"].startswith("ValueError: odd")
    (fault,) = ledger.faults()
    assert (fault.ref, fault.count, fault.first_s, fault.last_s) == (WEB, 3, 10.0, 12.0)
    assert fault.why.startswith("TypeError: worse")


def test_it_is_tried_again_each_time_twice_as_late_and_never_later_than_the_limit() -> None:
    ledger: FaultLedger[list[str]] = FaultLedger("deployments")
    work = Work()
    ledger.run(WEB, work, 0.0)
    waits = []
    for _ in range(12):
        now = ledger.next_retry
        assert now is not None
        assert ledger.retry(now - 0.001) == []
        ledger.retry(now)
        waits.append(now - work.times[-2])
    assert waits[:4] == [1.0, 2.0, 4.0, 8.0]
    assert waits[-1] == LONGEST_RETRY_S


def test_once_it_goes_well_it_is_forgotten() -> None:
    ledger: FaultLedger[list[str]] = FaultLedger("deployments")
    work = Work()
    ledger.run(WEB, work, 0.0)
    work.fails = None
    assert ledger.retry(1.0) == [["done"]]
    assert not ledger
    assert ledger.next_retry is None
    assert ledger.faults() == []


def test_something_new_about_the_object_does_not_wait_for_the_retry() -> None:
    ledger: FaultLedger[list[str]] = FaultLedger("deployments")
    work = Work()
    ledger.run(WEB, work, 0.0)
    work.fails = None
    assert ledger.run(WEB, work, 0.5) == ["done"]
    assert ledger.retry(10.0) == []
    assert work.times == [0.0, 0.5]


def test_one_bad_object_leaves_the_others_be() -> None:
    ledger: FaultLedger[list[str]] = FaultLedger("deployments")

    def work(namespace: str, name: str, now: float) -> list[str]:
        if name == "bad":
            raise KeyError(name)
        return [name]

    keys = [("default", "a"), ("default", "bad"), ("default", "b")]
    assert ledger.each("Deployment", keys, work, 0.0) == ["a", "b"]
    assert [str(fault.ref) for fault in ledger.faults()] == ["Deployment/default/bad"]


def test_what_is_meant_to_end_the_program_goes_through() -> None:
    def interrupted(now: float) -> list[str]:
        raise KeyboardInterrupt

    ledger: FaultLedger[list[str]] = FaultLedger("deployments")
    with pytest.raises(KeyboardInterrupt):
        ledger.run(WEB, interrupted, 0.0)
    assert not ledger
