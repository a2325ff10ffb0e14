"""Tests of the CronJob controller with a store, with cases from upstream's cronjob_controllerv2_test.go."""

from typing import Any

import pytest

from kschedd.api.cron_schedule import ScheduleError, parse_schedule
from kschedd.api.objects import Object
from kschedd.api.text.times import seconds, stamp
from kschedd.controllers.garbage import GarbageCollector
from kschedd.controllers.jobs.cron_times import due_time, next_time
from kschedd.controllers.jobs.cronjobs import CronJobs
from kschedd.controllers.runner import ControllerRunner
from kschedd.store.store import Store
from tests.store.manifests import Clock

START = seconds("2025-01-01T10:00:00Z")
TEMPLATE = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}}}


class Run:
    def __init__(self) -> None:
        self.clock = Clock(START)
        self.store = Store(now=self.clock)
        self.runner = ControllerRunner(self.store, [CronJobs(), GarbageCollector()])

    def cron_job(self, schedule: str = "0 * * * *", **spec: Any) -> None:
        raw = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "cj", "namespace": "default"}}
        self.store.create({**raw, "spec": {"schedule": schedule, "jobTemplate": TEMPLATE, **spec}})
        self.go()

    def change(self, **spec: Any) -> None:
        self.store.merge_patch("CronJob", "default", "cj", {"spec": spec})
        self.go()

    def go(self, minutes: float = 0) -> None:
        """Advance virtual time and process every deadline on the way."""
        end = self.clock.now + minutes * 60
        self.runner.run_until_idle()
        while (at := self.runner.next_deadline) is not None and at <= end:
            self.clock.now = max(self.clock.now, at)
            self.runner.run_until_idle()
        self.clock.now = end

    def jobs(self) -> list[Object]:
        return list(self.store.list("Job"))

    def times(self) -> list[str]:
        return [stamp(int(job.name.rpartition("-")[2]) * 60)[11:16] for job in self.jobs()]

    def end(self, job: Object, type_: str = "Complete") -> None:
        at = stamp(self.clock.now)
        before = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[type_]
        conditions = [{"type": each, "status": "True", "lastTransitionTime": at} for each in (before, type_)]
        done = {"conditions": conditions, "startTime": at}
        if type_ == "Complete":
            done["completionTime"] = at
        self.store.patch_status("Job", "default", job.name, done)
        self.go()

    def status(self) -> dict[str, Any]:
        return dict(self.store.get("CronJob", "default", "cj").status)

    def events(self) -> list[tuple[str, str]]:
        written = sorted(self.store.list("Event"), key=lambda event: event.resource_version)
        return [(event.raw["reason"], event.raw["message"]) for event in written]


@pytest.fixture
def run() -> Run:
    return Run()


def test_a_job_is_made_each_time_the_schedule_comes(run: Run) -> None:
    run.cron_job()
    assert run.jobs() == []
    assert run.runner.next_deadline == START + 3600
    run.go(61)
    [job] = run.jobs()
    assert job.name == f"cj-{int(START + 3600) // 60}"
    assert job.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"] == "2025-01-01T11:00:00Z"
    [reference] = job.metadata["ownerReferences"]
    assert (reference["kind"], reference["name"], reference["controller"]) == ("CronJob", "cj", True)
    status = run.status()
    assert status["lastScheduleTime"] == "2025-01-01T11:00:00Z"
    assert [(each["kind"], each["name"], each["uid"]) for each in status["active"]] == [("Job", job.name, job.uid)]
    assert run.events() == [("SuccessfulCreate", f"Created job {job.name}")]
    run.end(job)
    assert "active" not in run.status()
    assert run.status()["lastSuccessfulTime"] == "2025-01-01T11:01:00Z"
    assert run.events()[-1] == ("SawCompletedJob", f"Saw completed job: {job.name}, condition: Complete")


def test_the_time_zone_counts(run: Run) -> None:
    run.cron_job("0 9 * * *", timeZone="America/New_York")
    run.go(24 * 60)
    [job] = run.jobs()
    scheduled = job.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert scheduled == "2025-01-01T09:00:00-05:00"
    assert run.status()["lastScheduleTime"] == "2025-01-01T14:00:00Z"


@pytest.mark.parametrize(
    ("policy", "times", "active", "reasons"),
    [
        pytest.param("Allow", ["11:00", "12:00"], 2, ["SuccessfulCreate", "SuccessfulCreate"], id="allow"),
        pytest.param("Forbid", ["11:00"], 1, ["SuccessfulCreate", "JobAlreadyActive"], id="forbid"),
        pytest.param(
            "Replace", ["12:00"], 1, ["SuccessfulCreate", "SuccessfulDelete", "SuccessfulCreate"], id="replace"
        ),
    ],
)
def test_what_happens_to_a_job_that_still_runs(
    run: Run, policy: str, times: list[str], active: int, reasons: Any
) -> None:
    run.cron_job(concurrencyPolicy=policy)
    run.go(121)
    assert run.times() == times
    assert len(run.status()["active"]) == active
    assert [reason for reason, _ in run.events()] == reasons


def test_a_forbidden_time_is_made_up_for_when_the_job_before_ends(run: Run) -> None:
    run.cron_job(concurrencyPolicy="Forbid")
    run.go(125)
    run.end(run.jobs()[0])
    assert run.times() == ["11:00", "12:00"]
    assert run.status()["lastScheduleTime"] == "2025-01-01T12:00:00Z"


def test_but_not_after_the_starting_deadline(run: Run) -> None:
    run.cron_job(concurrencyPolicy="Forbid", startingDeadlineSeconds=200)
    run.go(125)
    run.end(run.jobs()[0])
    assert run.times() == ["11:00"]
    run.go(60)
    assert run.times() == ["11:00", "13:00"]


def test_a_suspended_cron_job_makes_none_and_catches_up_with_the_last(run: Run) -> None:
    run.cron_job(suspend=True)
    run.go(185)
    assert run.jobs() == []
    assert run.runner.next_deadline is None
    run.change(suspend=False)
    assert run.times() == ["13:00"]


def test_histories_are_kept_to_their_limits(run: Run) -> None:
    run.cron_job(successfulJobsHistoryLimit=2, failedJobsHistoryLimit=1)
    for type_ in ("Complete", "Failed", "Complete", "Failed", "Complete"):
        run.go(60)
        run.end(next(job for job in run.jobs() if not job.status.get("conditions")), type_)
    assert run.times() == ["13:00", "14:00", "15:00"]
    gone = [text for reason, text in run.events() if reason == "SuccessfulDelete"]
    assert gone == [f"Deleted job cj-{int(START + hours * 3600) // 60}" for hours in (2, 1)]


def test_by_default_three_that_completed_and_one_that_failed_are_kept(run: Run) -> None:
    run.cron_job()
    for number in range(10):
        run.go(60)
        type_ = "Failed" if number % 2 else "Complete"
        run.end(next(job for job in run.jobs() if not job.status.get("conditions")), type_)
    assert run.times() == ["15:00", "17:00", "19:00", "20:00"]


def test_a_changed_schedule_counts_at_once(run: Run) -> None:
    run.cron_job("0 0 1 1 *")
    run.go(5)
    run.change(schedule="*/10 * * * *")
    run.go(6)
    assert run.times() == ["10:10"]


def test_a_job_that_went_missing_is_forgotten(run: Run) -> None:
    run.cron_job()
    run.go(61)
    [job] = run.jobs()
    run.store.delete("Job", "default", job.name)
    run.go()
    assert "active" not in run.status()
    assert run.events()[-1] == ("MissingJob", f"Active job went missing: {job.name}")


def test_a_job_that_a_user_made_of_it_is_mentioned(run: Run) -> None:
    run.cron_job()
    owner = run.store.get("CronJob", "default", "cj")
    reference = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "cj", "uid": owner.uid, "controller": True}
    meta = {"name": "by-hand", "namespace": "default", "ownerReferences": [reference]}
    run.store.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": TEMPLATE["spec"]})
    run.go()
    assert run.events() == [("UnexpectedJob", "Saw a job that the controller did not create or forgot: by-hand")]
    assert "active" not in run.status()


def test_a_restart_lists_the_job_that_was_made_just_before(run: Run) -> None:
    run.cron_job()
    run.go(61)
    run.store.patch_status("CronJob", "default", "cj", {"active": None, "lastScheduleTime": None})
    again = ControllerRunner(run.store, [CronJobs()])
    again.run_until_idle()
    assert len(run.jobs()) == 1
    assert len(run.status()["active"]) == 1
    assert run.status()["lastScheduleTime"] == "2025-01-01T11:00:00Z"


def test_deleting_it_deletes_its_jobs(run: Run) -> None:
    run.cron_job()
    run.go(61)
    run.store.delete("CronJob", "default", "cj")
    run.go(600)
    assert run.jobs() == []
    assert run.runner.next_deadline is None


@pytest.mark.parametrize(
    ("spec", "reason", "text"),
    [
        pytest.param(
            {"timeZone": "Mars/Olympus"},
            "UnknownTimeZone",
            'invalid timeZone: "Mars/Olympus": unknown time zone Mars/Olympus',
            id="time-zone",
        ),
        pytest.param(
            {"schedule": "* *"},
            "UnparseableSchedule",
            'unparseable schedule: "* *" : expected exactly 5 fields, found 2: [* *]',
            id="schedule",
        ),
        pytest.param(
            {"schedule": "59 23 31 2 *"},
            "InvalidSchedule",
            "invalid schedule: 59 23 31 2 * : time difference between two schedules is less than 1 second",
            id="a-day-that-never-is",
        ),
    ],
)
def test_what_can_never_be_is_said_once(run: Run, spec: dict[str, Any], reason: str, text: str) -> None:
    """Such objects come from a cluster's dump, because an API server rejects the first two."""
    raw = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "cj", "namespace": "default"}}
    whole = {"schedule": "0 * * * *", "jobTemplate": TEMPLATE, **spec}
    run.store.take_over(
        Object.from_raw(
            {**raw, "metadata": {**raw["metadata"], "uid": "u", "creationTimestamp": stamp(START)}, "spec": whole}
        )
    )
    run.runner = ControllerRunner(run.store, [CronJobs()])
    run.go(120)
    assert run.jobs() == []
    assert run.events() == [(reason, text)]


def cron_job(last: str = "", created: str = "2025-01-01T10:00:00Z", **spec: Any) -> Object:
    meta = {"name": "cj", "namespace": "default", "uid": "u", "creationTimestamp": created}
    status = {"lastScheduleTime": last} if last else {}
    return Object.from_raw({"kind": "CronJob", "metadata": meta, "spec": spec, "status": status})


@pytest.mark.parametrize(
    ("given", "now", "due", "missed", "following"),
    [
        pytest.param(cron_job(), "10:30", None, 0, "11:00", id="not-yet"),
        pytest.param(cron_job(), "11:00", "11:00", 0, "12:00", id="just-now"),
        pytest.param(cron_job(), "11:59", "11:00", 0, "12:00", id="one-missed"),
        pytest.param(cron_job(), "13:30", "13:00", 3, "14:00", id="the-latest-of-several"),
        pytest.param(cron_job("2025-01-01T12:00:00Z"), "12:30", None, 0, "13:00", id="served"),
        pytest.param(cron_job("2025-01-01T12:00:00Z"), "14:10", "14:00", 2, "15:00", id="since-the-last-one"),
        pytest.param(cron_job(startingDeadlineSeconds=300), "12:04", "12:00", 0, "13:00", id="within-the-deadline"),
        pytest.param(cron_job(startingDeadlineSeconds=300), "12:06", None, 0, "13:00", id="after-the-deadline"),
        pytest.param(cron_job(created="2024-12-01T00:00:00Z"), "10:10", "10:00", 754, "11:00", id="too-many"),
    ],
)
def test_which_time_is_due(given: Object, now: str, due: str | None, missed: int, following: str) -> None:
    moment, schedule = seconds(f"2025-01-01T{now}:00Z"), parse_schedule("0 * * * *")
    found = due_time(given, moment, schedule, within_deadline=True)
    assert found.at == (seconds(f"2025-01-01T{due}:00Z") if due else None)
    assert (found.missed, found.too_many) == (missed, missed > 100)
    assert next_time(given, moment, schedule) == seconds(f"2025-01-01T{following}:00Z")


def test_every_counts_from_the_last_time() -> None:
    every = parse_schedule("@every 7m")
    given = cron_job("2025-01-01T10:00:00Z")
    assert due_time(given, seconds("2025-01-01T10:30:00Z"), every, within_deadline=False).at == seconds(
        "2025-01-01T10:28:00Z"
    )


def test_a_schedule_that_never_comes_has_no_time() -> None:
    with pytest.raises(ScheduleError, match="time difference between two schedules is less than 1 second"):
        due_time(cron_job(), START, parse_schedule("0 0 30 2 *"), within_deadline=False)
    assert next_time(cron_job(), START, parse_schedule("0 0 30 2 *")) is None
