"""Due times of a CronJob: the latest past time without a Job, and the next time.

Source: Kubernetes v1.34, pkg/controller/cronjob/utils.go (mostRecentScheduleTime, nextScheduleTime).
Units: seconds since the epoch.
"""

from typing import Final

import attrs

from kschedd.api.cron_schedule import Schedule, ScheduleError
from kschedd.api.objects import Object
from kschedd.api.text.times import seconds

_MANY: Final = 100


@attrs.frozen
class DueTime:
    """The result of a search for due times.

    The due times of a CronJob.
    """

    earliest: float  # start of the search
    at: float | None
    missed: int = 0

    @property
    def too_many(self) -> bool:
        return self.missed > _MANY


def due_time(cron_job: Object, now: float, schedule: Schedule, *, within_deadline: bool) -> DueTime:
    """Return the due times of a CronJob up to now. Raises ScheduleError for a schedule that is never due.

    `within_deadline` ignores times that startingDeadlineSeconds excludes.
    """
    last = cron_job.status.get("lastScheduleTime")
    earliest = seconds(last or cron_job.metadata["creationTimestamp"])
    deadline_s = cron_job.spec.get("startingDeadlineSeconds")
    if within_deadline and deadline_s is not None:
        earliest = max(earliest, now - deadline_s)
    first = schedule.next_after(earliest)
    second = None if first is None else schedule.next_after(first)
    if first is None or second is None:
        # Upstream represents a missing time by Go's zero time, which precedes every other time, and therefore reports
        # this error.
        raise ScheduleError("time difference between two schedules is less than 1 second")
    if now < first:
        return DueTime(earliest, None)
    if now < second:
        return DueTime(earliest, first)
    between = round(second - first)
    missed = int(now - first) // between + 1
    latest: float | None = None
    at = schedule.next_after(first + (missed - 2) * between)
    while at is not None and at <= now:
        latest = at
        at = schedule.next_after(at)
    return DueTime(earliest, latest, missed)


def next_time(cron_job: Object, now: float, schedule: Schedule) -> float | None:
    """Return the time at which to check the CronJob again."""
    try:
        due = due_time(cron_job, now, schedule, within_deadline=False)
    except ScheduleError:
        return schedule.next_after(now)
    base = due.at if due.at is not None else now if due.missed else due.earliest
    return schedule.next_after(base)
