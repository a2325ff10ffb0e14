"""Validation of Jobs and CronJobs.

Source: Kubernetes v1.34, pkg/apis/batch/validation/validation.go. The functions require objects that match the schema
and have their defaults (Jobs with their generated selector), and append errors to `faults`.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, invalid, required, unsupported
from kschedd.api.selecting.names import dns_label, dns_subdomain, does_not_match
from kschedd.api.selecting.requirements import SelectorError
from kschedd.api.selecting.selectors import parse_label_selector
from kschedd.registry.validation_resources import NOT_NEGATIVE
from kschedd.registry.validation_selectors import validate_label_selector
from kschedd.registry.workloads.job_policies import INDEXED_ONLY, validate_failure_policy, validate_success_policy
from kschedd.registry.workloads.validation import validate_template

Raw = dict[str, Any]
Faults = list[FieldError]

CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
JOB_NAME: Final = "batch.kubernetes.io/job-name"
_MODES: Final = ("NonIndexed", "Indexed")
_COUNTS: Final = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_MOST_INDEXES: Final = 100_000  # maximum number of parallel indexes, and maximum number of failed indexes
_MANY_COMPLETIONS: Final = 100_000
_MOST_OF_MANY: Final = 10_000


def validate_job(job: Raw, faults: Faults) -> None:
    _validate_job(job, faults, (CONTROLLER_UID, JOB_NAME))


def validate_updated_job(job: Raw, old: Mapping[str, Any], faults: Faults) -> None:
    """Append the errors of a changed Job.

    Prefixed labels are not required if the pods of the old Job lack them (Jobs created before 1.27).
    """
    labels = _template_labels(old.get("spec") or {}) or {}
    prefixed = (CONTROLLER_UID, JOB_NAME) if CONTROLLER_UID in labels and JOB_NAME in labels else ()
    _validate_job(job, faults, prefixed)


def _validate_job(job: Raw, faults: Faults, prefixed: tuple[str, ...]) -> None:
    meta, spec = job.get("metadata") or {}, job.get("spec") or {}
    if not spec.get("manualSelector"):
        _validate_generated(meta, spec, prefixed, faults)
    validate_job_spec(spec, "spec", faults)
    selector = spec.get("selector")
    if selector is None:
        faults.append(required("spec.selector"))
    else:
        validate_label_selector(selector, "spec.selector", faults)
    labels = _template_labels(spec)
    if not _selects(selector, labels or {}):
        why = "`selector` does not match template `labels`"
        shown = None if labels is None else dict(sorted(labels.items()))
        faults.append(invalid("spec.template.metadata.labels", shown, why))
    if spec.get("completionMode") == "Indexed" and (spec.get("completions") or 0) > 0:
        last = f"{meta.get('name') or ''}-{spec['completions'] - 1}"
        if dns_label(last):
            why = f"will not able to create pod with invalid DNS label: {last}"
            faults.append(invalid("metadata.name", meta.get("name") or "", why))


def _template_labels(spec: Mapping[str, Any]) -> Raw | None:
    labels: Raw | None = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    return labels


def _validate_generated(meta: Raw, spec: Raw, prefixed: tuple[str, ...], faults: Faults) -> None:
    """Check the generated selector and labels, which contain the Job's uid and name; `prefixed` labels are required."""
    selector = spec.get("selector")
    uid, name = meta.get("uid"), meta.get("name") or ""
    if selector is None or uid is None:
        return
    labels = _template_labels(spec) or {}
    expected = {"controller-uid": uid, "job-name": name}
    expected |= {key: uid if key == CONTROLLER_UID else name for key in prefixed}
    for key, value in expected.items():
        here = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            faults.append(required(here, f"must be '{value}'"))
        elif labels[key] != value:
            faults.append(invalid(here, dict(sorted(labels.items())), f"must be '{value}'"))
    if not _selects(selector, expected):
        faults.append(invalid("spec.selector", _shown(selector), "`selector` not auto-generated"))


def _selects(selector: Raw | None, labels: Mapping[str, str]) -> bool:
    """Return whether a selector matches the labels. A missing selector matches no labels.

    For an invalid selector the result is True, because another function reports the error.
    """
    if selector is None:
        return False
    try:
        return parse_label_selector(selector).matches(labels)
    except SelectorError:
        return True


def _shown(selector: Raw) -> Raw:
    """Return a selector without empty parts."""
    shown = {field: selector[field] for field in ("matchLabels", "matchExpressions") if selector.get(field)}
    if labels := shown.get("matchLabels"):
        shown["matchLabels"] = dict(sorted(labels.items()))
    return shown


def validate_job_spec(spec: Raw, path: str, faults: Faults) -> None:
    for field in _COUNTS:
        if (value := spec.get(field)) is not None and value < 0:
            faults.append(invalid(f"{path}.{field}", value, NOT_NEGATIVE))
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        faults.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if (manager := spec.get("managedBy")) is not None:
        _validate_manager(manager, f"{path}.managedBy", faults)
    _validate_mode(spec, path, faults)
    policy = spec.get("podFailurePolicy")
    if policy is not None:
        validate_failure_policy(spec, policy, f"{path}.podFailurePolicy", faults)
    if (success := spec.get("successPolicy")) is not None:
        validate_success_policy(spec, success, f"{path}.successPolicy", faults)
    if (replacement := spec.get("podReplacementPolicy")) is not None:
        allowed = ("Failed", "TerminatingOrFailed") if policy is None else ("Failed",)
        if replacement not in allowed:
            faults.append(unsupported(f"{path}.podReplacementPolicy", replacement, allowed))
    template = spec.get("template") or {}
    validate_template(template, f"{path}.template", faults)
    here = f"{path}.template.spec"
    restart = (template.get("spec") or {}).get("restartPolicy")
    if restart in ("Always", "", None):
        faults.append(required(f"{here}.restartPolicy", 'valid values: "OnFailure", "Never"'))
    elif restart not in ("OnFailure", "Never"):
        faults.append(unsupported(f"{here}.restartPolicy", restart, ("OnFailure", "Never")))
    elif policy is not None and restart != "Never":
        why = 'only "Never" is supported when podFailurePolicy is specified'
        faults.append(invalid(f"{here}.restartPolicy", restart, why))


_HTTP_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", re.ASCII)


def _validate_manager(name: str, path: str, faults: Faults) -> None:
    domain, slash, rest = name.partition("/")
    if not name:
        faults.append(required(path))
    elif not slash or not domain or not rest:
        faults.append(invalid(path, name, 'must be a domain-prefixed path (such as "acme.io/foo")'))
    else:
        faults += [invalid(path, domain, why) for why in dns_subdomain(domain)]
        if not _HTTP_PATH.fullmatch(rest):
            faults.append(invalid(path, rest, does_not_match("Invalid path", _HTTP_PATH.pattern)))
    if len(name) > 63:
        faults.append(FieldError(path, name, "Too long: may not be more than 63 bytes"))


def _validate_mode(spec: Raw, path: str, faults: Faults) -> None:
    mode = spec.get("completionMode")
    if mode is not None and mode not in _MODES:
        faults.append(unsupported(f"{path}.completionMode", mode, _MODES))
    if mode == "Indexed":
        _validate_indexed(spec, path, faults)
    elif mode in (None, "NonIndexed"):
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if (value := spec.get(field)) is not None:
                faults.append(invalid(f"{path}.{field}", value, INDEXED_ONLY))


def _validate_indexed(spec: Raw, path: str, faults: Faults) -> None:
    completions, failed, parallel = (spec.get(f) for f in ("completions", "maxFailedIndexes", "parallelism"))

    def at_most(field: str, value: int | None, most: int, words: str) -> None:
        if value is not None and value > most:
            faults.append(invalid(f"{path}.{field}", value, f"must be less than or equal to {words}"))

    if completions is None:
        faults.append(required(f"{path}.completions", "when completion mode is Indexed"))
    at_most("parallelism", parallel, _MOST_INDEXES, f"{_MOST_INDEXES} when completion mode is Indexed")
    if completions is not None:
        at_most("maxFailedIndexes", failed, completions, "completions")
    at_most("maxFailedIndexes", failed, _MOST_INDEXES, f"{_MOST_INDEXES}")
    if completions is None or completions <= _MANY_COMPLETIONS or spec.get("backoffLimitPerIndex") is None:
        return
    if failed is None:
        why = f"must be specified when completions is above {_MANY_COMPLETIONS}"
        faults.append(required(f"{path}.maxFailedIndexes", why))
    when = f"{_MOST_OF_MANY} when completions are above {_MANY_COMPLETIONS} and used with backoff limit per index"
    at_most("parallelism", parallel, _MOST_OF_MANY, when)
    at_most("maxFailedIndexes", failed, _MOST_OF_MANY, when)


# --- CronJobs ------------------------------------------------------------------------------------------------------

_POLICIES: Final = ("Allow", "Forbid", "Replace")
_LONGEST_NAME: Final = 52  # maximum length of a CronJob's name; its Jobs' names have eleven more characters


def validate_cron_job(item: Raw, faults: Faults) -> None:
    _validate_cron_job(item, {}, faults)
    name = (item.get("metadata") or {}).get("name") or ""
    if len(name) > _LONGEST_NAME:
        faults.append(invalid("metadata.name", name, f"must be no more than {_LONGEST_NAME} characters"))


def validate_updated_cron_job(item: Raw, old: Mapping[str, Any], faults: Faults) -> None:
    """Append the errors of a changed CronJob, except in its name, an unchanged time zone, or a zone in its schedule.

    A zone in the schedule is accepted only if the old schedule contained one.
    """
    _validate_cron_job(item, old.get("spec") or {}, faults)


def _validate_cron_job(item: Raw, old: Mapping[str, Any], faults: Faults) -> None:
    """Append the errors of a CronJob; `old` is the previous spec, or empty for a new one."""
    spec = item.get("spec") or {}
    schedule, zone = spec.get("schedule") or "", spec.get("timeZone")
    if not schedule:
        faults.append(required("spec.schedule"))
    else:
        _validate_schedule(schedule, zone, faults, zone_before="TZ" in (old.get("schedule") or ""))
    if (deadline := spec.get("startingDeadlineSeconds")) is not None and deadline < 0:
        faults.append(invalid("spec.startingDeadlineSeconds", deadline, NOT_NEGATIVE))
    if zone is not None and zone != old.get("timeZone"):
        _validate_zone(zone, faults)
    policy = spec.get("concurrencyPolicy") or ""
    if not policy:
        faults.append(required("spec.concurrencyPolicy"))
    elif policy not in _POLICIES:
        faults.append(unsupported("spec.concurrencyPolicy", policy, _POLICIES))
    template = (spec.get("jobTemplate") or {}).get("spec") or {}
    here = "spec.jobTemplate.spec"
    validate_job_spec(template, here, faults)
    if template.get("selector") is not None:
        faults.append(invalid(f"{here}.selector", _shown(template["selector"]), "`selector` will be auto-generated"))
    if template.get("manualSelector"):
        faults.append(unsupported(f"{here}.manualSelector", True, ("nil", "false")))
    for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        if (limit := spec.get(field)) is not None and limit < 0:
            faults.append(invalid(f"spec.{field}", limit, NOT_NEGATIVE))


def _validate_schedule(schedule: str, zone: str | None, faults: Faults, *, zone_before: bool) -> None:
    """Validate a schedule.

    A time zone in the schedule is allowed only if the previous schedule contained one.
    """
    # imported on demand, because most clusters have no CronJobs
    from kschedd.api.cron_schedule import ScheduleError, parse_schedule

    try:
        parse_schedule(schedule)
    except ScheduleError as wrong:
        faults.append(invalid("spec.schedule", schedule, str(wrong)))
    if "TZ" not in schedule or (zone_before and zone is None):
        return
    why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
    if zone_before:
        why = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
    faults.append(invalid("spec.schedule", schedule, why))


_ZONE_PART: Final = re.compile(r"(?!-)[A-Za-z._0-9+-]{1,14}", re.ASCII)


def _validate_zone(zone: str, faults: Faults) -> None:
    here, unknown = "spec.timeZone", f"unknown time zone {zone}"
    if not zone:
        faults.append(invalid(here, zone, "timeZone must be nil or non-empty string"))
        return
    if any(part in (".", "..") or not _ZONE_PART.fullmatch(part) for part in zone.split("/")):
        faults.append(invalid(here, zone, unknown))
        return
    if zone.lower() == "local":
        why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        faults.append(invalid(here, zone, why))
    if zone != "Local":
        from zoneinfo import ZoneInfo

        try:
            ZoneInfo(zone)
        except (ValueError, OSError, KeyError):
            faults.append(invalid(here, zone, unknown))
