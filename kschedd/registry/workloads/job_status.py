"""Validation of a Job's status: the consistency of its counts, times, lists of indexes and conditions.

Source: Kubernetes v1.34, pkg/apis/batch/validation/validation.go (ValidateJobUpdateStatus),
pkg/registry/batch/job/strategy.go (getStatusValidationOptions). An error of the old status is reported only if it is
related to the change.
"""

from collections.abc import Mapping
from typing import Any

from kschedd.api.schemas.fields import FieldError, duplicate, invalid, required
from kschedd.api.schemas.schema import type_named
from kschedd.registry.go_structs import go_struct
from kschedd.registry.same import same_in
from kschedd.registry.workloads.job_policies import IndexesError, parse_indexes, parse_interval, without_value

Raw = Mapping[str, Any]
Faults = list[FieldError]

_CONDITIONS = "status.conditions"


def validate_job_status(old: Raw, new: Raw, faults: Faults) -> None:
    change = _Change(old, new)
    _uncounted(change.after.get("uncountedTerminatedPods") or {}, faults)
    _conditions_before_times(change, faults)
    _times(change, faults)
    _conditions_with_reasons(change, faults)
    _finished(change, faults)
    _indexes(change, faults)
    _counts(change, faults)
    _success(change, faults)
    _transitions(change, faults)


class _Change:
    """A change of a Job's status."""

    def __init__(self, old: Raw, new: Raw) -> None:
        self.spec: Raw = new.get("spec") or {}
        self.before: Raw = old.get("status") or {}
        self.after: Raw = new.get("status") or {}
        self.was, self.now = _true_of(self.before), _true_of(self.after)
        self.finished = not self.now.isdisjoint(("Complete", "Failed"))
        self.finish = self.finished is self.was.isdisjoint(("Complete", "Failed"))

    def of(self, *fields: str) -> bool:
        """Return whether one of the fields changes; for a pointer, an absent value differs from an empty value."""
        return any(not same_in(self.before, self.after, field, type_named("batch.v1.JobStatus")) for field in fields)

    def state(self, *kinds: str) -> bool:
        """Return whether a condition of one of these types changes to or from True."""
        return any((kind in self.was) is not (kind in self.now) for kind in kinds)


def _true_of(status: Raw) -> frozenset[str]:
    conditions = status.get("conditions") or ()
    return frozenset(each.get("type") or "" for each in conditions if each.get("status") == "True")


def _uncounted(pods: Raw, faults: Faults) -> None:
    seen = set()
    for field in ("succeeded", "failed"):
        for index, uid in enumerate(pods.get(field) or ()):
            here = f"status.uncountedTerminatedPods.{field}[{index}]"
            if not uid:
                faults.append(invalid(here, uid, "must not be empty"))
            elif uid in seen:
                faults.append(duplicate(here, uid))
            seen.add(uid)


def _conditions_before_times(change: _Change, faults: Faults) -> None:
    if {"Complete", "Failed"} <= change.now and change.state("Complete", "Failed"):
        faults.append(without_value(_CONDITIONS, "cannot set Complete=True and Failed=true conditions"))
    if {"Complete", "FailureTarget"} <= change.now and change.state("Complete", "FailureTarget"):
        faults.append(without_value(_CONDITIONS, "cannot set Complete=True and FailureTarget=true conditions"))


def _times(change: _Change, faults: Faults) -> None:
    start, end = change.after.get("startTime"), change.after.get("completionTime")
    complete = "Complete" in change.now
    if change.state("Complete") or change.of("completionTime"):
        if end and not complete:
            why = "cannot set completionTime when there is no Complete=True condition"
            faults.append(invalid("status.completionTime", end, why))
        if complete and not end:
            faults.append(required("status.completionTime", "completionTime is required for Complete jobs"))
    if change.of("startTime", "completionTime") and start and end and end < start:
        faults.append(invalid("status.completionTime", end, "completionTime cannot be set before startTime"))


def _conditions_with_reasons(change: _Change, faults: Faults) -> None:
    # A failure's reason is immutable, so it is checked only if the failed indexes change.
    failed = change.state("Failed") or change.of("failedIndexes")
    complete = change.state("Complete", "SuccessCriteriaMet")
    for kind, reason, changes in (("Failed", "FailureTarget", failed), ("Complete", "SuccessCriteriaMet", complete)):
        if kind in change.now and reason not in change.now and changes:
            why = f"cannot set {kind}=True condition without the {reason}=true condition"
            faults.append(without_value(_CONDITIONS, why))


def _finished(change: _Change, faults: Faults) -> None:
    if not change.finished:
        return
    after, spec = change.after, change.spec
    if after.get("active") and (change.finish or change.of("active")):
        faults.append(invalid("status.active", after["active"], "active>0 is invalid for finished job"))
    never_starts = spec.get("suspend") and spec.get("completions") == 0
    if not after.get("startTime") and (change.finish or change.of("startTime")) and not never_starts:
        faults.append(required("status.startTime", "startTime is required for finished job"))
    pods = after.get("uncountedTerminatedPods") or {}
    if (pods.get("succeeded") or pods.get("failed")) and (change.finish or change.of("uncountedTerminatedPods")):
        why = "uncountedTerminatedPods needs to be empty for finished job"
        shown = go_struct("batch.v1.UncountedTerminatedPods", pods)
        faults.append(invalid("status.uncountedTerminatedPods", shown, why))


def _indexes(change: _Change, faults: Faults) -> None:
    completed, failed = change.after.get("completedIndexes") or "", change.after.get("failedIndexes")
    completions, limit = change.spec.get("completions"), change.spec.get("backoffLimitPerIndex")
    # For completed indexes, "" equals an absent value; for failed indexes, it does not.
    other_completed = (change.before.get("completedIndexes") or "") != completed
    other_failed = change.before.get("failedIndexes") != failed
    if other_completed and completions is not None:
        _readable("completedIndexes", completed, completions, faults)
    if other_failed and failed is not None and completions is not None and limit is not None:
        _readable("failedIndexes", failed, completions, faults)
    if other_completed and completed and change.spec.get("completionMode") != "Indexed":
        why = "cannot set non-empty completedIndexes when non-indexed completion mode"
        faults.append(invalid("status.completedIndexes", completed, why))
    if other_failed and failed is not None and limit is None:
        why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        faults.append(invalid("status.failedIndexes", failed, why))
    if (other_completed or other_failed) and failed is not None and completions is not None:
        common = _overlap(_intervals(completed, completions), _intervals(failed, completions))
        if common is not None:
            why = f"failedIndexes and completedIndexes overlap at index: {common}"
            faults.append(invalid("status.failedIndexes", failed, why))


def _readable(field: str, text: str, completions: int, faults: Faults) -> None:
    try:
        parse_indexes(text, completions)
    except IndexesError as wrong:
        faults.append(invalid(f"status.{field}", text, f"error parsing {field}: {wrong}"))


def _intervals(text: str, completions: int) -> list[tuple[int, int]]:
    """Return the intervals that can be parsed, in their order."""
    found = []
    for part in text.split(",") if text else ():
        try:
            found.append(parse_interval(part, completions))
        except IndexesError:
            continue
    return found


def _overlap(ones: list[tuple[int, int]], others: list[tuple[int, int]]) -> int | None:
    """Return the first index that is in both ascending lists, or None."""
    at = there = 0
    while at < len(ones) and there < len(others):
        (first, last), (other_first, other_last) = ones[at], others[there]
        if first <= other_last and other_first <= last:
            return max(first, other_first)
        if first <= other_first:
            at += 1
        else:
            there += 1
    return None


def _counts(change: _Change, faults: Faults) -> None:
    after = change.after
    terminating, ready = after.get("terminating") or 0, after.get("ready") or 0
    if terminating > 0 and change.finished and (change.finish or change.of("terminating")):
        faults.append(invalid("status.terminating", terminating, "terminating>0 is invalid for finished job"))
    of_ready = after.get("ready") is not None and change.of("ready", "active")
    if of_ready and ready > (after.get("active") or 0):
        faults.append(invalid("status.ready", ready, "cannot set more ready pods than active"))


def _success(change: _Change, faults: Faults) -> None:
    met = "SuccessCriteriaMet" in change.now
    for kind in ("Failed", "FailureTarget"):
        if met and kind in change.now:
            faults.append(without_value(_CONDITIONS, f"cannot set SuccessCriteriaMet=True and {kind}=true conditions"))
    if change.spec.get("successPolicy") is not None and not met and "Complete" in change.now:
        why = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        faults.append(without_value(_CONDITIONS, why))


def _transitions(change: _Change, faults: Faults) -> None:
    before, after, spec = change.before, change.after, change.spec
    for kind in ("Failed", "Complete", "FailureTarget"):
        if kind in change.was and kind not in change.now:
            faults.append(without_value(_CONDITIONS, f"cannot disable the terminal {kind}=True condition"))
    # A Job can be scaled down if its completions equal its parallelism.
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for field in ("failed", "succeeded"):
        count = after.get(field) or 0
        if count < (before.get(field) or 0) and not (elastic and field == "succeeded"):
            faults.append(invalid(f"status.{field}", count, f"cannot decrease the {field} counter"))
    ends = before.get("completionTime"), after.get("completionTime")
    if all(ends) and ends[0] != ends[1]:
        faults.append(invalid("status.completionTime", ends[1], "completionTime cannot be mutated"))
    if before.get("startTime") and change.of("startTime"):
        _start_changed(change, faults)
    if "SuccessCriteriaMet" in change.was and "SuccessCriteriaMet" not in change.now:
        faults.append(without_value(_CONDITIONS, "cannot disable the SuccessCriteriaMet=True condition"))
    if "Complete" in change.was and "SuccessCriteriaMet" in change.now - change.was:
        why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        faults.append(without_value(_CONDITIONS, why))


def _start_changed(change: _Change, faults: Faults) -> None:
    if change.spec.get("suspend") or "Suspended" in change.was:  # a Job that was resumed has a new start time
        return
    how = "modified" if change.after.get("startTime") else "removed"
    faults.append(required("status.startTime", f"startTime cannot be {how} for unsuspended job"))
