"""The CronJob controller: creates Jobs on schedule, and deletes old Jobs beyond the history limits.

A Job's name ends with its scheduled minute, so two Jobs are never created for the same time. Running Jobs are listed in
status.active. If the controller was not running at the scheduled time, it creates the Job for the latest missed time
when it runs again, if startingDeadlineSeconds allows.

The controller stores the time at which each CronJob is due next. Source: Kubernetes v1.34,
pkg/controller/cronjob/cronjob_controllerv2.go.
"""

import datetime
from collections.abc import Mapping, Sequence
from email.utils import format_datetime
from functools import partial
from typing import Any, Final

from kschedd.api.conditions import is_true
from kschedd.api.cron_schedule import Schedule, ScheduleError, parse_schedule, zone_of
from kschedd.api.objects import Object
from kschedd.api.text.times import seconds, stamp
from kschedd.controllers.jobs.cron_times import due_time, next_time
from kschedd.controllers.jobs.sync import is_finished
from kschedd.controllers.object_events import EventRecorder
from kschedd.controllers.running.controller import View
from kschedd.controllers.running.timers import Timers
from kschedd.controllers.templates import controller_in, controller_reference, controller_uid
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import AlreadyExists, ApiError
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.store.writes import Create, Delete, Write, status_of

COMPONENT: Final = "cronjob-controller"
SCHEDULED_AT: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_RETRY_S: Final = 10.0  # after a Job was rejected
Key = tuple[str, str]  # namespace, name


class CronJobs:
    name: Final = "cronjobs"
    kinds: Final = frozenset(("CronJob", "Job"))

    def __init__(self) -> None:
        self._due: Timers[Key] = Timers()
        self._reported: dict[Key, str] = {}  # the last warning written for each CronJob
        self._events = EventRecorder(COMPONENT)
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        return self._due.next

    def concerns(self, event: WatchEvent) -> bool:
        owner = event.new.owner
        return event.new.kind == "CronJob" or (owner is not None and owner.kind == "CronJob")

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        changed: dict[Key, None] = {}
        for event in events:
            new = event.new
            if new.kind == "CronJob":
                changed[new.namespace, new.name] = None
                if event.type == DELETED:
                    self._due.clear((new.namespace, new.name))
                    self._reported.pop((new.namespace, new.name), None)
            elif (owner := new.owner) is not None and owner.kind == "CronJob":
                changed[new.namespace, owner.name] = None
        changed.update(dict.fromkeys(self._due.due(now)))
        return self.faults.each("CronJob", changed, partial(self._look_at, view), now)

    def _look_at(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        cron_job = view.find("CronJob", namespace, name)
        if cron_job is None:
            return []
        jobs = [job for job in view.owned_by(cron_job.uid) if job.kind == "Job" and controller_uid(job) == cron_job.uid]
        sync = _Sync(cron_job, jobs, view, now, self._reported, self._events)
        writes = sync.run()
        key = (namespace, name)
        if sync.again_at is None:
            self._due.clear(key)
        else:
            self._due.set(key, max(sync.again_at, now))
        return writes

    def on_performed(self, write: Write, obj: Object, view: View, now: float) -> Sequence[Write]:
        """Record the creation of a Job."""
        owner = controller_in(view, obj) if isinstance(write, Create) and obj.kind == "Job" else None
        return () if owner is None else self._events.event(owner, "SuccessfulCreate", f"Created job {obj.name}", now)

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Write an event if a Job was rejected, and retry later."""
        if not isinstance(write, Create) or write.raw.get("kind") != "Job" or isinstance(error, AlreadyExists):
            return []
        meta = write.raw["metadata"]
        cron_job = view.find("CronJob", meta["namespace"], meta["ownerReferences"][0]["name"])
        if cron_job is None:
            return []
        key = (cron_job.namespace, cron_job.name)
        self._due.set(key, now + _RETRY_S)
        why = f"Error creating job: {error}"
        if self._reported.get(key) == why:
            return []
        self._reported[key] = why
        return self._events.event(cron_job, "FailedCreate", why, now, warning=True)


class _Sync:
    """One sync of a CronJob and its Jobs; `again_at` is the time of the next sync (None: only after a change)."""

    def __init__(
        self,
        cron_job: Object,
        jobs: Sequence[Object],
        view: View,
        now: float,
        reported: dict[Key, str],
        events: EventRecorder,
    ) -> None:
        self._cron_job = cron_job
        self._jobs = jobs
        self._view = view
        self._now = now
        self._reported = reported
        self._events = events
        self._writes: list[Write] = []
        self._active: list[Mapping[str, Any]] = list(cron_job.status.get("active") or ())
        self._status: dict[str, Any] = {}
        self.again_at: float | None = None

    def run(self) -> list[Write]:
        self._follow_jobs()
        if not self._cron_job.deleting:
            if "lastScheduleTime" not in self._status:  # the write of lastScheduleTime triggers the next sync
                self._serve()
            self._trim_history()
        active = self._active or None
        if active != (self._cron_job.status.get("active") or None):
            self._status["active"] = active
        if self._status:
            self._writes.append(status_of(self._cron_job, self._status))
        return self._writes

    # existing Jobs

    def _follow_jobs(self) -> None:
        listed = {each.get("uid") for each in self._active}
        for job in self._jobs:
            if not is_finished(job):
                if job.uid not in listed and not self._list(job):
                    why = f"Saw a job that the controller did not create or forgot: {job.name}"
                    self._warn("UnexpectedJob", why)
                continue
            if job.uid in listed:
                self._unlist(job.uid)
                condition = "Complete" if is_true(job.status, "Complete") else "Failed"
                self._note("SawCompletedJob", f"Saw completed job: {job.name}, condition: {condition}")
            done = job.status.get("completionTime")
            last = self._status.get("lastSuccessfulTime") or self._cron_job.status.get("lastSuccessfulTime")
            if is_true(job.status, "Complete") and done and (not last or seconds(done) > seconds(last)):
                self._status["lastSuccessfulTime"] = done
        there = {job.uid for job in self._jobs}
        for each in list(self._active):
            found = self._view.find("Job", self._cron_job.namespace, str(each.get("name")))
            if each.get("uid") not in there and found is None:
                self._unlist(str(each.get("uid")))
                self._note("MissingJob", f"Active job went missing: {each.get('name')}")

    def _list(self, job: Object) -> bool:
        """Add a Job of this CronJob to status.active, or return False if the Job was created in another way."""
        scheduled = job.annotations.get(SCHEDULED_AT)
        try:
            at = seconds(scheduled) if scheduled else None
        except ValueError:
            return False
        if at is None or job.name != _job_name(self._cron_job, at):
            return False
        reference = {"apiVersion": "batch/v1", "kind": "Job", "namespace": job.namespace, "name": job.name}
        self._active = [*self._active, {**reference, "uid": job.uid, "resourceVersion": str(job.resource_version)}]
        last = self._cron_job.status.get("lastScheduleTime")
        if not last or at > seconds(last):
            self._status["lastScheduleTime"] = stamp(at)
        return True

    def _unlist(self, uid: str) -> None:
        self._active = [each for each in self._active if each.get("uid") != uid]

    # the schedule

    def _serve(self) -> None:
        spec = self._cron_job.spec
        time_zone = spec.get("timeZone")
        if time_zone is not None:
            try:
                zone_of(time_zone)
            except ScheduleError as fault:
                self._warn("UnknownTimeZone", f'invalid timeZone: "{time_zone}": {fault}')
                return
        if spec.get("suspend"):
            return
        text = str(spec.get("schedule") or "")
        try:
            schedule = parse_schedule(text, time_zone or "")
        except ScheduleError as fault:
            self._warn("UnparseableSchedule", f'unparseable schedule: "{text}" : {fault}')
            return
        try:
            due = due_time(self._cron_job, self._now, schedule, within_deadline=True)
        except ScheduleError as fault:
            self._warn("InvalidSchedule", f"invalid schedule: {text} : {fault}")
            return
        if due.at is not None:
            if due.too_many:
                why = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
                self._warn("TooManyMissedTimes", why)
            self._start(due.at)
        self.again_at = self._next(schedule)

    def _next(self, schedule: Schedule) -> float | None:
        at = next_time(self._cron_job, self._now, schedule)
        # The object's status does not yet contain the time for which this sync created a Job.
        return at if at is None or at > self._now else schedule.next_after(self._now)

    def _start(self, at: float) -> None:
        name = _job_name(self._cron_job, at)
        last = self._cron_job.status.get("lastScheduleTime")
        if any(each.get("name") == name for each in self._active) or (last and seconds(last) == at):
            return
        found = self._view.find("Job", self._cron_job.namespace, name)
        if found is not None:
            # If status.active lacks a Job of this CronJob, the Job has ended. A Job of another owner is never added
            # to status.active.
            if controller_uid(found) == self._cron_job.uid:
                self._status["lastScheduleTime"] = stamp(at)
            return
        spec = self._cron_job.spec
        deadline_s = spec.get("startingDeadlineSeconds")
        if deadline_s is not None and at + deadline_s < self._now:
            self._warn("MissSchedule", f"Missed scheduled time to start a job: {_rfc1123(at)}")
            return
        policy = spec.get("concurrencyPolicy") or "Allow"
        if policy == "Forbid" and self._active:
            self._skip(at)
            return
        if policy == "Replace":
            self._replace()
        self._writes.append(Create(self._job(name, at)))

    def _skip(self, at: float) -> None:
        """Write an Event, once per scheduled time, that the previous Job is still running."""
        why = "Not starting job because prior execution is running and concurrency policy is Forbid"
        if self._reported.get(self._key) != f"{why} {at}":
            self._reported[self._key] = f"{why} {at}"
            self._note("JobAlreadyActive", why)

    def _replace(self) -> None:
        for each in list(self._active):
            job = self._view.find("Job", self._cron_job.namespace, str(each.get("name")))
            if job is not None:
                self._delete(job)
        self._active = []

    def _job(self, name: str, at: float) -> dict[str, Any]:
        template = self._cron_job.spec.get("jobTemplate") or {}
        meta = template.get("metadata") or {}
        when = datetime.datetime.fromtimestamp(int(at), zone_of(self._cron_job.spec.get("timeZone") or ""))
        scheduled = when.isoformat().replace("+00:00", "Z")
        wanted: dict[str, Any] = {
            "name": name,
            "namespace": self._cron_job.namespace,
            "annotations": {**(meta.get("annotations") or {}), SCHEDULED_AT: scheduled},
            "ownerReferences": [controller_reference(self._cron_job)],
        }
        if meta.get("labels"):
            wanted["labels"] = meta["labels"]
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": wanted, "spec": template.get("spec") or {}}

    # history

    def _trim_history(self) -> None:
        spec = self._cron_job.spec
        for type_, field, default in (
            ("Complete", "successfulJobsHistoryLimit", 3),
            ("Failed", "failedJobsHistoryLimit", 1),
        ):
            limit = default if spec.get(field) is None else spec[field]
            ended = [job for job in self._jobs if is_true(job.status, type_) and not job.deleting]
            for job in sorted(ended, key=_start_order)[: max(0, len(ended) - limit)]:
                self._delete(job)

    def _delete(self, job: Object) -> None:
        self._unlist(job.uid)
        self._writes.append(Delete("Job", job.namespace, job.name, job.uid))
        self._note("SuccessfulDelete", f"Deleted job {job.name}")

    # events

    @property
    def _key(self) -> Key:
        return self._cron_job.namespace, self._cron_job.name

    def _note(self, reason: str, message: str) -> None:
        self._writes += self._events.event(self._cron_job, reason, message, self._now)

    def _warn(self, reason: str, message: str) -> None:
        """Write a warning Event, unless it equals the previous one."""
        if self._reported.get(self._key) != message:
            self._reported[self._key] = message
            self._writes += self._events.event(self._cron_job, reason, message, self._now, warning=True)


def _job_name(cron_job: Object, at: float) -> str:
    return f"{cron_job.name}-{int(at) // 60}"


def _start_order(job: Object) -> tuple[bool, float, str]:
    started = job.status.get("startTime")
    return started is None, seconds(started) if started else 0.0, job.name


def _rfc1123(at: float) -> str:
    return format_datetime(datetime.datetime.fromtimestamp(int(at), datetime.UTC))
