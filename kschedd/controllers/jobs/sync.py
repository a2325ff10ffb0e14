"""One sync of a Job: computes pods to create and delete, and the status, from the Job, its tally and the time.

A pod has a finalizer until the Job has counted it. A sync therefore writes the status twice. First, ended pods are
listed in `uncountedTerminatedPods`, and a condition announces how the Job will end (SuccessCriteriaMet, FailureTarget).
Second, the finalizers of the listed pods are removed, and the listed pods are counted. The Job then becomes Complete or
Failed, unless some of its pods are still being deleted.

Ended pods that were counted cost nothing, however many there are.
Source: Kubernetes v1.34, pkg/controller/job/job_controller.go (syncJob, manageJob, trackJobStatusAndRemoveFinalizers).
"""

from collections.abc import Collection, Generator, Mapping, Sequence
from typing import Any, Final, Literal

import attrs

from kschedd.api.conditions import condition, is_true
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.text.times import seconds, stamp
from kschedd.controllers.jobs.failure_policy import match_failure, match_success
from kschedd.controllers.jobs.indexes import UNKNOWN_INDEX, IndexSet, completion_index
from kschedd.controllers.jobs.job_pods import (
    has_failed,
    indexed_pod,
    is_tracked,
    plain_pod,
    replaces_failed_only,
    to_remove,
)
from kschedd.controllers.jobs.job_tally import JobTally
from kschedd.controllers.jobs.pod_backoff import (
    PodBackoff,
    failure_count,
    finished_at,
    ignored_failure_count,
    index_ready_at,
)
from kschedd.values import in_parts

BURST: Final = 500  # maximum number of pods created or deleted in a sync
MAX_UNCOUNTED: Final = 500  # maximum number of pods listed as uncounted in a sync
BACKOFF_LIMIT_EXCEEDED: Final = "BackoffLimitExceeded"
EndType = Literal["SuccessCriteriaMet", "FailureTarget", "Failed"]

Raw = Mapping[str, Any]


@attrs.frozen
class End:
    """The end of the Job announced by its interim condition."""

    type: EndType
    reason: str
    message: str

    @property
    def succeeded(self) -> bool:
        return self.type == "SuccessCriteriaMet"


@attrs.define(eq=False)
class JobSync:
    """The result of a sync. Times are in seconds."""

    listed: dict[str, Any] | None = None  # status to write first; None if the status is unchanged
    flushed: dict[str, Any] | None = None  # status after the finalizers are removed; None if unchanged
    create: list[dict[str, Any]] = attrs.field(factory=list)
    delete: list[Pod] = attrs.field(factory=list)
    # pods to delete without counting, after their finalizers are removed
    forget: list[Pod] = attrs.field(factory=list)
    counted: list[Pod] = attrs.field(factory=list)  # pods whose finalizers are removed between the two writes
    events: list[tuple[bool, str, str]] = attrs.field(factory=list)  # (is a warning, reason, message)
    again_at: float | None = None
    backoff: PodBackoff = attrs.field(factory=PodBackoff)


def is_finished(job: Object) -> bool:
    return is_true(job.status, "Complete") or is_true(job.status, "Failed")


def syncing(
    job: Object, pods: JobTally, backoff: PodBackoff, now: float, *, may_create: bool = True
) -> Generator[None, None, JobSync]:
    """Run one sync, step by step. `may_create` is False after the API server has rejected a pod."""
    return _Sync(job, pods, backoff, now, may_create).run()


class _Sync:
    def __init__(self, job: Object, pods: JobTally, backoff: PodBackoff, now: float, may_create: bool) -> None:
        spec = self._spec = job.spec
        self._job = job
        self._now = now
        self._may_create = may_create
        self._outcome = JobSync()
        self._indexed = spec.get("completionMode") == "Indexed"
        self._completions: int | None = spec.get("completions")
        self._parallelism: int = 1 if spec.get("parallelism") is None else spec["parallelism"]
        self._suspended = bool(spec.get("suspend"))
        self._per_index = self._indexed and spec.get("backoffLimitPerIndex") is not None
        self._pods = pods
        self._ended = self._sorted(pods.ended())  # includes pods being deleted
        self._status: dict[str, Any] = dict(job.status)
        self._conditions: list[Raw] = list(job.status.get("conditions") or ())
        uncounted = job.status.get("uncountedTerminatedPods") or {}
        self._uncounted: dict[str, list[str]] = {
            "succeeded": list(uncounted.get("succeeded") or ()),
            "failed": list(uncounted.get("failed") or ()),
        }
        self._was_uncounted = {name: frozenset(uids) for name, uids in self._uncounted.items()}
        self._ready = pods.ready
        self._terminating = sum(not pod.finished for pod in self._ended)
        succeeded, failed = self._newly_ended()
        self._backoff = backoff.after(succeeded, failed)
        self._succeeded = (job.status.get("succeeded") or 0) + len(succeeded) + len(self._uncounted["succeeded"])
        ignored = sum(not match_failure(spec.get("podFailurePolicy"), pod).counted for pod in failed)
        counted = len(failed) - ignored if spec.get("podFailurePolicy") else len(failed)
        self._failed = (job.status.get("failed") or 0) + counted + len(self._uncounted["failed"])
        self._succeeded_before = self._succeeded_indexes = IndexSet()
        self._failed_indexes: IndexSet | None = None
        self._delayed: dict[int, Pod] = {}  # index -> failed pod to be replaced later
        self._end: End | None = None

    def _newly_ended(self) -> tuple[list[Pod], list[Pod]]:
        """Return the succeeded and the failed tracked pods that are not listed yet."""
        valid = [
            pod for pod in self._ended if is_tracked(pod) and (not self._indexed or self._index_of(pod) is not None)
        ]
        succeeded = [p for p in valid if p.phase == "Succeeded" and p.uid not in self._was_uncounted["succeeded"]]
        failed = [p for p in valid if has_failed(p, self._spec) and p.uid not in self._was_uncounted["failed"]]
        return succeeded, failed

    def _sorted(self, pods: list[Pod]) -> list[Pod]:
        return sorted(pods, key=completion_index) if self._indexed else pods

    def _index_of(self, pod: Pod) -> int | None:
        index = completion_index(pod)
        return None if index == UNKNOWN_INDEX or index >= (self._completions or 0) else index

    def run(self) -> Generator[None, None, JobSync]:
        if not self._status.get("startTime") and not self._suspended:
            self._status["startTime"] = stamp(self._now)
        self._decide_end()
        active = self._pods.actives
        if self._end is not None:
            self._outcome.delete = self._pods.active()
            self._terminating += active
            active = self._ready = 0
        else:
            active = yield from self._manage()
        self._status |= {"active": active, "ready": self._ready, "terminating": self._terminating}
        self._track()
        self._outcome.backoff = self._backoff
        return self._outcome

    # the end of the Job

    def _decide_end(self) -> None:
        self._end = self._decided() or self._failing_pod() or self._limit_exceeded()
        if not self._indexed:
            return
        completions = self._completions or 0
        before = IndexSet.parse(self._status.get("completedIndexes") or "", completions)
        new = [
            index
            for pod in self._ended
            if pod.phase == "Succeeded" and is_tracked(pod) and (index := self._index_of(pod)) is not None
        ]
        self._succeeded_before, self._succeeded_indexes = before, before.union(IndexSet.of(new))
        self._succeeded = self._succeeded_indexes.total
        if self._per_index:
            self._count_failed_indexes(completions)
        if self._end is None:
            met = match_success(self._spec.get("successPolicy"), completions, self._succeeded_indexes)
            if met is not None:
                self._end = End("SuccessCriteriaMet", "SuccessPolicy", met)

    def _decided(self) -> End | None:
        """Return the result of the Job from its status, if an earlier sync has written the result."""
        found = condition(self._job.status, "SuccessCriteriaMet")
        if found is not None and found.get("status") == "True":
            return End("SuccessCriteriaMet", found.get("reason") or "", found.get("message") or "")
        found = condition(self._job.status, "FailureTarget")
        if found is not None and found.get("status") == "True":
            return End("Failed", found.get("reason") or "", found.get("message") or "")
        return None

    def _failing_pod(self) -> End | None:
        policy = self._spec.get("podFailurePolicy")
        for pod in self._ended if policy else ():
            if has_failed(pod, self._spec) and (why := match_failure(policy, pod).message) is not None:
                return End("FailureTarget", "PodFailurePolicy", why)
        return None

    def _limit_exceeded(self) -> End | None:
        limit = self._spec.get("backoffLimit")
        limit = 6 if limit is None else limit
        if self._failed > limit or self._restarted_too_often(limit):
            return End("FailureTarget", BACKOFF_LIMIT_EXCEEDED, "Job has reached the specified backoff limit")
        deadline_s, started = self._spec.get("activeDeadlineSeconds"), self._status.get("startTime")
        if deadline_s is None or not started or self._suspended:
            return None
        at = seconds(started) + deadline_s
        if at <= self._now:
            return End("FailureTarget", "DeadlineExceeded", "Job was active longer than specified deadline")
        self._again(at)
        return None

    def _restarted_too_often(self, limit: int) -> bool:
        template = (self._spec.get("template") or {}).get("spec") or {}
        if template.get("restartPolicy") != "OnFailure":
            return False
        restarts = self._pods.restarts
        return restarts > 0 if limit == 0 else restarts >= limit

    def _count_failed_indexes(self, completions: int) -> None:
        before = IndexSet.parse(self._status.get("failedIndexes") or "", completions)
        new = [
            index
            for pod in self._ended
            if is_tracked(pod) and (index := self._index_of(pod)) is not None and self._fails_its_index(pod)
        ]
        failed = self._failed_indexes = before.union(IndexSet.of(new))
        if self._end is None:
            most = self._spec.get("maxFailedIndexes")
            if most is not None and failed.total > most:
                why = "Job has exceeded the specified maximal number of failed indexes"
                self._end = End("FailureTarget", "MaxFailedIndexesExceeded", why)
            elif failed.total > 0 and failed.total + self._succeeded_indexes.total >= completions:
                self._end = End("FailureTarget", "FailedIndexes", "Job has failed indexes")
        active = self._pods.indexes
        for pod in self._ended:
            index = self._index_of(pod)
            if index is None or not is_tracked(pod) or not has_failed(pod, self._spec):
                continue
            if index in self._succeeded_indexes or index in failed or index in active:
                continue
            last = self._delayed.get(index)
            if last is None or (_failures(last) <= _failures(pod) and finished_at(pod) >= finished_at(last)):
                self._delayed[index] = pod

    def _fails_its_index(self, pod: Pod) -> bool:
        if not has_failed(pod, self._spec):
            return False
        match = match_failure(self._spec.get("podFailurePolicy"), pod)
        if match.action == "FailIndex":
            return True
        return match.counted and failure_count(pod) >= self._spec["backoffLimitPerIndex"]

    # pods

    def _manage(self) -> Generator[None, None, int]:
        """Create and delete pods. Return the number of active pods after creating and deleting pods."""
        active = self._pods.actives
        if not self._job.deleting:
            active = yield from self._scale(active)
        if self._is_complete(active):
            why = "Reached expected number of succeeded pods"
            self._end = End("SuccessCriteriaMet", "CompletionsReached", why)
        elif not self._job.deleting:
            self._note_suspension()
        return active

    def _is_complete(self, active: int) -> bool:
        if active:
            return False
        return self._succeeded > 0 if self._completions is None else self._succeeded >= self._completions

    def _note_suspension(self) -> None:
        if self._suspended:
            if self._ensure("Suspended", "True", "JobSuspended", "Job suspended"):
                self._outcome.events.append((False, "Suspended", "Job suspended"))
        elif self._ensure("Suspended", "False", "JobResumed", "Job resumed"):
            self._outcome.events.append((False, "Resumed", "Job resumed"))
            self._status["startTime"] = stamp(self._now)

    def _scale(self, active: int) -> Generator[None, None, int]:
        if self._suspended:
            wanted = 0
        elif self._completions is None:
            wanted = active if self._succeeded else self._parallelism
        else:
            wanted = max(0, min(self._completions - self._succeeded, self._parallelism))
        surplus: list[Pod] = []
        if active > wanted or (self._indexed and self._pods.misplaced(self._completions or 0)):
            surplus = yield from to_remove(self._job, self._pods.active(), max(0, active - wanted))
        if surplus:
            gone = surplus if self._suspended else surplus[:BURST]
            if len(gone) < len(surplus):
                self._again(self._now)
            self._outcome.forget = gone
            self._terminating += len(gone)
            for some in in_parts(gone, BURST):
                self._ready -= sum(is_true(pod.status, "Ready") for pod in some)
                yield
            return active - len(gone)
        terminating = self._terminating if replaces_failed_only(self._spec) else 0
        missing = wanted - terminating - active
        if missing <= 0 or self._suspended or not self._may_create:
            return active
        return self._make(active, missing)

    def _make(self, active: int, missing: int) -> int:
        if not self._per_index and (at := self._backoff.ready_at()) > self._now:
            self._again(at)
            return 0  # report no active pods while the Job backs off, as upstream does
        count = min(missing, BURST)
        if not self._indexed:
            self._outcome.create = [plain_pod(self._job)] * count
        else:
            done = self._succeeded_indexes
            if self._failed_indexes is not None:
                done = done.union(self._failed_indexes)
            used = self._indexes_in_use()
            free = done.first_missing(count + len(used), self._completions or 0)
            indexes = [index for index in free if index not in used][:count]
            if self._per_index and indexes:
                indexes = self._indexes_not_backing_off(indexes)
                if not indexes:
                    return 0
            count = len(indexes)
            self._outcome.create = [indexed_pod(self._job, index, self._delayed.get(index)) for index in indexes]
        return active + count

    def _indexes_in_use(self) -> Collection[int]:
        active = self._pods.indexes
        if not replaces_failed_only(self._spec):
            return active
        return {*active, *(completion_index(pod) for pod in self._ended if not pod.finished)}

    def _indexes_not_backing_off(self, indexes: Sequence[int]) -> list[int]:
        times = {index: index_ready_at(self._delayed.get(index)) for index in indexes}
        later = [at for at in times.values() if at > self._now]
        if later:
            self._again(min(later))
        return [index for index, at in times.items() if at <= self._now]

    def _again(self, at: float) -> None:
        self._outcome.again_at = at if self._outcome.again_at is None else min(at, self._outcome.again_at)

    # counting

    def _track(self) -> None:
        """Run the two counting steps of the module's docstring."""
        self._count_untracked(frozenset())
        new_indexes, reached_most = self._list_ended()
        if self._indexed:
            self._succeeded_indexes = self._succeeded_indexes.union(IndexSet.of(new_indexes))
            self._status["succeeded"] = self._succeeded_indexes.total
            self._status["completedIndexes"] = str(self._succeeded_indexes)
            if self._failed_indexes is not None:
                self._status["failedIndexes"] = str(self._failed_indexes)
        if self._end is not None and self._end.type != "Failed":
            self._ensure(self._end.type, "True", self._end.reason, self._end.message)
        self._outcome.listed = self._status_now(self._job.status)
        self._count_untracked(frozenset(pod.uid for pod in self._outcome.counted))
        if self._end is not None and not reached_most and not any(self._uncounted.values()) and not self._terminating:
            self._finish(self._end)
        self._outcome.flushed = self._status_now(self._outcome.listed or self._job.status)

    def _count_untracked(self, losing: frozenset[str]) -> None:
        """Count the listed pods without a finalizer, including pods whose finalizer this sync removes."""
        for field, uids in self._uncounted.items():
            left = [uid for uid in uids if uid not in losing and self._pods.is_tracked(uid)]
            self._status[field] = (self._status.get(field) or 0) + len(uids) - len(left)
            self._uncounted[field] = left

    def _list_ended(self) -> tuple[list[int], bool]:
        """Add the ended pods to the uncounted pods in the status.

        Return newly succeeded indexes, and whether further ended pods remain.
        """
        new_indexes: list[int] = []
        every = self._job.deleting or self._end is not None
        for pod in self._sorted(list(self._pods.items.values())) if every else self._ended:
            if not is_tracked(pod) or not self._may_untrack(pod):
                continue
            self._outcome.counted.append(pod)
            index = self._index_of(pod)
            if pod.phase == "Succeeded" and pod.uid not in self._was_uncounted["failed"]:
                if not self._indexed and pod.uid not in self._was_uncounted["succeeded"]:
                    self._uncounted["succeeded"].append(pod.uid)
                elif self._indexed and index is not None and index not in self._succeeded_before:
                    new_indexes.append(index)
            elif has_failed(pod, self._spec) or (self._end is not None and not self._end.succeeded):
                known = pod.uid in self._was_uncounted["failed"] or (self._indexed and index is None)
                if not known and match_failure(self._spec.get("podFailurePolicy"), pod).counted:
                    self._uncounted["failed"].append(pod.uid)
            if len(new_indexes) + sum(map(len, self._uncounted.values())) >= MAX_UNCOUNTED:
                self._again(self._now)
                return new_indexes, True
        return new_indexes, False

    def _may_untrack(self, pod: Pod) -> bool:
        if self._job.deleting or self._end is not None or pod.phase == "Succeeded":
            return True
        if not has_failed(pod, self._spec):
            return False
        delayed = self._delayed.get(completion_index(pod))
        return delayed is None or delayed.uid != pod.uid

    def _finish(self, end: End) -> None:
        kind = "Complete" if end.succeeded else "Failed"
        self._ensure(kind, "True", end.reason, end.message)
        if end.succeeded:
            self._status["completionTime"] = stamp(self._now)
            if self._completions is not None and self._status["succeeded"] > self._completions:
                why = "Too many succeeded pods running after completion count reached"
                self._outcome.events.append((True, "TooManySucceededPods", why))
            self._outcome.events.append((False, "Completed", "Job completed"))
        else:
            self._outcome.events.append((True, end.reason, end.message))

    # the status

    def _ensure(self, type_: str, status: str, reason: str, message: str) -> bool:
        """Set a condition, unless it is missing and False. Return whether the call changed a condition."""
        at = stamp(self._now)
        wanted = {"type": type_, "status": status, "lastProbeTime": at, "lastTransitionTime": at}
        wanted |= {name: text for name, text in (("reason", reason), ("message", message)) if text}
        for place, found in enumerate(self._conditions):
            if found.get("type") == type_:
                stated = (found.get("status"), found.get("reason") or "", found.get("message") or "")
                if stated == (status, reason, message):
                    return False
                self._conditions[place] = wanted
                return True
        if status == "False":
            return False
        self._conditions.append(wanted)
        return True

    def _status_now(self, before: Raw) -> dict[str, Any] | None:
        """Return the status to write, or None if it is unchanged."""
        status = {name: value for name, value in self._status.items() if name in _ALWAYS or value}
        uncounted = {name: list(uids) for name, uids in self._uncounted.items() if uids}
        status |= {"uncountedTerminatedPods": uncounted}
        if self._conditions:
            status["conditions"] = list(self._conditions)
        return None if status == before else status


_ALWAYS: Final = frozenset(("ready", "terminating", "failedIndexes"))


def _failures(pod: Pod) -> int:
    return failure_count(pod) + ignored_failure_count(pod)
