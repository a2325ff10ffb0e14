"""Validation of Jobs and CronJobs.

Source: Kubernetes v1.34, pkg/apis/batch/validation/validation.go.
Takes objects that match the schema and have their defaults, Jobs with their generated selector; appends to `faults`.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final
from zoneinfo import ZoneInfo

from kschedd.api.cron_schedule import ScheduleError, parse_schedule
from kschedd.api.fields import FieldError, invalid, required, unsupported
from kschedd.api.requirements import SelectorError
from kschedd.api.selectors import parse_label_selector
from kschedd.api.validation_names import dns_label, dns_subdomain, qualified_name
from kschedd.registry.go_structs import go_struct
from kschedd.registry.validation_resources import NOT_NEGATIVE
from kschedd.registry.validation_selectors import validate_label_selector
from kschedd.registry.validation_workloads import validate_template

Raw = dict[str, Any]
Faults = list[FieldError]

CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
JOB_NAME: Final = "batch.kubernetes.io/job-name"
_MODES: Final = ("NonIndexed", "Indexed")
_INDEXED: Final = "requires indexed completion mode"
_COUNTS: Final = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
)
_MOST_PARALLEL: Final = 100_000


def validate_job(job: Raw, faults: Faults) -> None:
    meta, spec = job.get("metadata") or {}, job.get("spec") or {}
    if not spec.get("manualSelector"):
        _validate_generated(meta, spec, faults)
    validate_job_spec(spec, "spec", faults)
    selector = spec.get("selector")
    if selector is None:
        faults.append(required("spec.selector"))
    else:
        validate_label_selector(selector, "spec.selector", faults)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if not _selects(selector, labels or {}):
        why = "`selector` does not match template `labels`"
        shown = None if labels is None else dict(sorted(labels.items()))
        faults.append(invalid("spec.template.metadata.labels", shown, why))
    if spec.get("completionMode") == "Indexed" and (spec.get("completions") or 0) > 0:
        last = f"{meta.get('name') or ''}-{spec['completions'] - 1}"
        if dns_label(last):
            why = f"will not able to create pod with invalid DNS label: {last}"
            faults.append(invalid("metadata.name", meta.get("name") or "", why))


def _validate_generated(meta: Raw, spec: Raw, faults: Faults) -> None:
    """Selector and labels that name the Job's uid and name, as they were generated."""
    selector = spec.get("selector")
    uid, name = meta.get("uid"), meta.get("name") or ""
    if selector is None or uid is None:
        return
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    expected = {CONTROLLER_UID: uid, JOB_NAME: name, "controller-uid": uid, "job-name": name}
    for key, value in expected.items():
        here = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            faults.append(required(here, f"must be '{value}'"))
        elif labels[key] != value:
            faults.append(invalid(here, dict(sorted(labels.items())), f"must be '{value}'"))
    if not _selects(selector, expected):
        faults.append(invalid("spec.selector", _shown(selector), "`selector` not auto-generated"))


def _selects(selector: Raw | None, labels: Mapping[str, str]) -> bool:
    """Whether a selector matches; no selector matches nothing, one that cannot be parsed is refused elsewhere."""
    if selector is None:
        return False
    try:
        return parse_label_selector(selector).matches(labels)
    except SelectorError:
        return True


def _shown(selector: Raw) -> Raw:
    """A selector without what it does not say."""
    shown = {field: selector[field] for field in ("matchLabels", "matchExpressions") if selector.get(field)}
    if labels := shown.get("matchLabels"):
        shown["matchLabels"] = dict(sorted(labels.items()))
    return shown


def validate_job_spec(spec: Raw, path: str, faults: Faults) -> None:
    for field in _COUNTS:
        if (value := spec.get(field)) is not None and value < 0:
            faults.append(invalid(f"{path}.{field}", value, NOT_NEGATIVE))
    failed = spec.get("maxFailedIndexes")
    if failed is not None:
        if failed < 0:
            faults.append(invalid(f"{path}.maxFailedIndexes", failed, NOT_NEGATIVE))
        if spec.get("backoffLimitPerIndex") is None:
            faults.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if (manager := spec.get("managedBy")) is not None:
        _validate_manager(manager, f"{path}.managedBy", faults)
    _validate_mode(spec, path, faults)
    policy = spec.get("podFailurePolicy")
    if policy is not None:
        _validate_failure_policy(spec, policy, f"{path}.podFailurePolicy", faults)
    if (success := spec.get("successPolicy")) is not None:
        _validate_success_policy(spec, success, f"{path}.successPolicy", faults)
    if (replacement := spec.get("podReplacementPolicy")) is not None:
        here = f"{path}.podReplacementPolicy"
        if policy is not None and replacement != "Failed":
            faults.append(unsupported(here, replacement, ("Failed",)))
        elif replacement not in ("Failed", "TerminatingOrFailed"):
            faults.append(unsupported(here, replacement, ("Failed", "TerminatingOrFailed")))
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


def _validate_manager(name: str, path: str, faults: Faults) -> None:
    domain, slash, rest = name.partition("/")
    if not slash or not domain or not rest:
        faults.append(invalid(path, name, 'must be a domain-prefixed path (such as "acme.io/foo")'))
    else:
        faults += [invalid(path, domain, why) for why in dns_subdomain(domain)]
    if len(name) > 63:
        faults.append(FieldError(path, name, "Too long: may not be more than 63 bytes"))


def _validate_mode(spec: Raw, path: str, faults: Faults) -> None:
    mode = spec.get("completionMode")
    if mode is None:
        return
    if mode not in _MODES:
        faults.append(unsupported(f"{path}.completionMode", mode, _MODES))
    if mode == "Indexed":
        if spec.get("completions") is None:
            faults.append(required(f"{path}.completions", f"when completion mode is {mode}"))
        if (parallel := spec.get("parallelism") or 0) > _MOST_PARALLEL:
            why = f"must be less than or equal to {_MOST_PARALLEL} when completion mode is {mode}"
            faults.append(invalid(f"{path}.parallelism", parallel, why))
    else:
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if (value := spec.get(field)) is not None:
                faults.append(invalid(f"{path}.{field}", value, _INDEXED))


_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_STATUSES: Final = ("False", "True", "Unknown")


def _validate_failure_policy(spec: Raw, policy: Raw, path: str, faults: Faults) -> None:
    rules = policy.get("rules") or ()
    pod = (spec.get("template") or {}).get("spec") or {}
    names = {each.get("name") for field in ("containers", "initContainers") for each in pod.get(field) or ()}
    if len(rules) > 20:
        faults.append(FieldError(f"{path}.rules", None, f"Too many: {len(rules)}: must have at most 20 items"))
    for index, rule in enumerate(rules):
        here = f"{path}.rules[{index}]"
        action = rule.get("action") or ""
        if not action:
            faults.append(required(f"{here}.action", f"valid values: {list(_ACTIONS)}".replace("'", '"')))
        elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            faults.append(invalid(f"{here}.action", action, "requires the backoffLimitPerIndex to be set"))
        elif action not in _ACTIONS:
            faults.append(unsupported(f"{here}.action", action, _ACTIONS))
        if (codes := rule.get("onExitCodes")) is not None:
            _validate_exit_codes(codes, names, f"{here}.onExitCodes", faults)
        patterns = rule.get("onPodConditions") or ()
        for number, pattern in enumerate(patterns):
            there = f"{here}.onPodConditions[{number}]"
            faults += [invalid(f"{there}.type", pattern.get("type") or "", why) for why in _type(pattern)]
            status = pattern.get("status") or ""
            if not status:
                faults.append(required(f"{there}.status", f"valid values: {list(_STATUSES)}".replace("'", '"')))
            elif status not in _STATUSES:
                faults.append(unsupported(f"{there}.status", status, _STATUSES))
        if codes is not None and patterns:
            shown = {"Action": action, "OnExitCodes": codes, "OnPodConditions": patterns}
            why = "specifying both OnExitCodes and OnPodConditions is not supported"
            faults.append(invalid(here, shown, why))
        elif codes is None and not patterns:
            shown = {"Action": action, "OnExitCodes": None, "OnPodConditions": []}
            faults.append(invalid(here, shown, "specifying one of OnExitCodes and OnPodConditions is required"))


def _type(pattern: Raw) -> tuple[str, ...]:
    return qualified_name(pattern.get("type") or "")


def _validate_exit_codes(codes: Raw, names: set[Any], path: str, faults: Faults) -> None:
    operator, values = codes.get("operator") or "", codes.get("values") or []
    if not operator:
        faults.append(required(f"{path}.operator", 'valid values: ["In" "NotIn"]'))
    elif operator not in ("In", "NotIn"):
        faults.append(unsupported(f"{path}.operator", operator, ("In", "NotIn")))
    container = codes.get("containerName")
    if container is not None and container not in names:
        why = "must be one of the container or initContainer names in the pod template"
        faults.append(invalid(f"{path}.containerName", container, why))
    here = f"{path}.values"
    if not values:
        faults.append(invalid(here, values, "at least one value is required"))
    elif len(values) > 255:
        faults.append(FieldError(here, None, f"Too many: {len(values)}: must have at most 255 items"))
    if any(one >= other for one, other in pairwise(values)):
        if len(set(values)) < len(values):
            for index, value in enumerate(values):
                if value in values[:index]:
                    faults.append(FieldError(f"{here}[{index}]", value, f"Duplicate value: {value}"))
        if values != sorted(values):
            faults.append(invalid(here, values, "must be ordered"))
    if operator == "In" and 0 in values:
        faults.append(invalid(f"{here}[{values.index(0)}]", 0, "must not be 0 for the In operator"))


def _validate_success_policy(spec: Raw, policy: Raw, path: str, faults: Faults) -> None:
    rules = policy.get("rules") or []
    if spec.get("completionMode") != "Indexed":
        faults.append(invalid(path, go_struct("batch.v1.SuccessPolicy", policy), _INDEXED))
        return
    if not rules:
        why = "at least one rules must be specified when the successPolicy is specified"
        faults.append(required(f"{path}.rules", why))
    completions = spec.get("completions") or 0
    for index, rule in enumerate(rules):
        here = f"{path}.rules[{index}]"
        count = rule.get("succeededCount")
        if count is None and rule.get("succeededIndexes") is None:
            faults.append(required(here, "at least one of succeededCount or succeededIndexes must be specified"))
        if count is not None:
            if count < 0:
                faults.append(invalid(f"{here}.succeededCount", count, NOT_NEGATIVE))
            if count > completions:
                why = f"must be less than or equal to {completions} (the number of specified completions)"
                faults.append(invalid(f"{here}.succeededCount", count, why))


# --- CronJobs ------------------------------------------------------------------------------------------------------

_POLICIES: Final = ("Allow", "Forbid", "Replace")
_LONGEST_NAME: Final = 52  # a Job's name has eleven more characters


def validate_cron_job(item: Raw, faults: Faults) -> None:
    spec = item.get("spec") or {}
    schedule, zone = spec.get("schedule") or "", spec.get("timeZone")
    if not schedule:
        faults.append(required("spec.schedule"))
    else:
        _validate_schedule(schedule, zone, faults)
    if zone is not None:
        _validate_zone(zone, faults)
    if (deadline := spec.get("startingDeadlineSeconds")) is not None and deadline < 0:
        faults.append(invalid("spec.startingDeadlineSeconds", deadline, NOT_NEGATIVE))
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
    name = (item.get("metadata") or {}).get("name") or ""
    if len(name) > _LONGEST_NAME:
        faults.append(invalid("metadata.name", name, f"must be no more than {_LONGEST_NAME} characters"))


def _validate_schedule(schedule: str, zone: str | None, faults: Faults) -> None:
    if "TZ" in schedule:
        why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        faults.append(invalid("spec.schedule", schedule, why))
        return
    try:
        parse_schedule(schedule)
    except ScheduleError as wrong:
        faults.append(invalid("spec.schedule", schedule, str(wrong)))


def _validate_zone(zone: str, faults: Faults) -> None:
    if not zone:
        faults.append(invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string"))
    elif zone.lower() == "local":
        why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        faults.append(invalid("spec.timeZone", zone, why))
    else:
        try:
            ZoneInfo(zone)
        except (ValueError, OSError, KeyError):
            faults.append(invalid("spec.timeZone", zone, f"unknown time zone {zone}"))
