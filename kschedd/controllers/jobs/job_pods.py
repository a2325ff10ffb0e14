"""Pods of a Job: manifests of new pods, tracking finalizers, and the order of removal.

Source: Kubernetes v1.34, pkg/controller/job/{job_controller,indexed_job_utils,tracking_utils}.go.
"""

import math
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Final

from kschedd.api.conditions import condition
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.text.times import seconds
from kschedd.controllers.jobs.failure_policy import match_failure
from kschedd.controllers.jobs.indexes import COMPLETION_INDEX, UNKNOWN_INDEX, completion_index
from kschedd.controllers.jobs.pod_backoff import (
    FAILURE_COUNT,
    IGNORED_FAILURE_COUNT,
    failure_count,
    ignored_failure_count,
)
from kschedd.controllers.templates import pod_from_template
from kschedd.controllers.workloads.pod_state import first_by_rank
from kschedd.store.writes import Patch, patch_of
from kschedd.values import in_parts

TRACKING: Final = "batch.kubernetes.io/job-tracking"
INDEX_VARIABLE: Final = "JOB_COMPLETION_INDEX"
_LONGEST_GENERATE_NAME: Final = 58
_PART: Final = 250  # number of pods processed between two pauses, in less than 1 ms

Raw = Mapping[str, Any]


def is_tracked(pod: Pod) -> bool:
    """Return whether the pod has the tracking finalizer, which is removed when the Job has counted the pod."""
    return TRACKING in (pod.metadata.get("finalizers") or ())


def untracked(pod: Pod) -> Patch:
    """Return the patch that removes the finalizer."""
    left = [each for each in pod.metadata.get("finalizers") or () if each != TRACKING]
    return patch_of(pod, {"metadata": {"finalizers": left or None}})


def replaces_failed_only(spec: Raw) -> bool:
    """Return whether a pod is replaced only after it has failed, not while it is being deleted."""
    return spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy") is not None


def has_failed(pod: Pod, spec: Raw) -> bool:
    if pod.phase == "Failed":
        return True
    return not replaces_failed_only(spec) and bool(pod.deletion_timestamp) and pod.phase != "Succeeded"


def plain_pod(job: Object) -> dict[str, Any]:
    """Return the manifest of a new pod without an index."""
    return _tracked(pod_from_template(job, job.spec.get("template") or {}))


def _tracked(wanted: dict[str, Any]) -> dict[str, Any]:
    meta = wanted["metadata"]
    if TRACKING not in (meta.get("finalizers") or ()):
        meta["finalizers"] = [*(meta.get("finalizers") or ()), TRACKING]
    return wanted


def indexed_pod(job: Object, index: int, replaced: Pod | None) -> dict[str, Any]:
    """Return the manifest of a new pod with this index.

    `replaced` is the failed pod that the new pod replaces, if known.
    """
    wanted = plain_pod(job)
    meta = wanted["metadata"]
    suffix = f"-{index}-"
    meta["generateName"] = job.name[: _LONGEST_GENERATE_NAME - len(suffix)] + suffix
    meta["labels"] = {**(meta.get("labels") or {}), COMPLETION_INDEX: str(index)}
    meta["annotations"] = {**(meta.get("annotations") or {}), COMPLETION_INDEX: str(index)}
    if job.spec.get("backoffLimitPerIndex") is not None:
        meta["annotations"] |= _failure_counts(job, replaced)
    spec = dict(wanted["spec"])
    for field in ("initContainers", "containers"):
        if spec.get(field):
            spec[field] = [_with_index(container) for container in spec[field]]
    spec["hostname"] = f"{job.name}-{index}"
    wanted["spec"] = spec
    return wanted


def _failure_counts(job: Object, replaced: Pod | None) -> dict[str, str]:
    failed = ignored = 0
    if replaced is not None:
        counted = match_failure(job.spec.get("podFailurePolicy"), replaced).counted
        failed = failure_count(replaced) + counted
        ignored = ignored_failure_count(replaced) + (not counted)
    counts = {FAILURE_COUNT: str(failed)}
    return {**counts, IGNORED_FAILURE_COUNT: str(ignored)} if ignored else counts


def _with_index(container: Raw) -> dict[str, Any]:
    variables = container.get("env") or ()
    if any(variable.get("name") == INDEX_VARIABLE for variable in variables):
        return dict(container)
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}}
    return {**container, "env": [*variables, {"name": INDEX_VARIABLE, "valueFrom": source}]}


def to_remove(job: Object, pods: Sequence[Pod], at_least: int) -> Generator[None, None, list[Pod]]:
    """Return the active pods to delete, step by step.

    Pods whose index is unknown, too high or duplicate are first; they are followed by surplus pods.
    """
    removed: list[Pod] = []
    left = pods
    if job.spec.get("completionMode") == "Indexed":
        removed, left = yield from _duplicates(pods, job.spec.get("completions") or 0)
    if len(removed) < at_least:
        removed += yield from first_by_rank(left, _removal_rank, at_least - len(removed))
    return removed


def _duplicates(pods: Sequence[Pod], completions: int) -> Generator[None, None, tuple[list[Pod], list[Pod]]]:
    by_index: dict[int, list[Pod]] = {}
    for some in in_parts(pods, _PART):
        for pod in some:
            by_index.setdefault(completion_index(pod), []).append(pod)
        yield
    removed: list[Pod] = []
    left: list[Pod] = []
    for index in sorted(by_index):
        same = by_index[index]
        if index == UNKNOWN_INDEX or index >= completions:
            removed += same
            continue
        ranked = (yield from first_by_rank(same, _removal_rank, None)) if len(same) > 1 else same
        removed += ranked[:-1]
        left.append(ranked[-1])
    return removed, left


def _removal_rank(pod: Pod) -> tuple[Any, ...]:
    """Return the pod's rank in the order of removal; the lowest rank is removed first.

    The order is: unassigned, pending, not ready, recently ready, often restarted, young pods.
    """
    ready = condition(pod.status, "Ready")
    is_ready = ready is not None and ready.get("status") == "True"
    since = seconds(ready["lastTransitionTime"]) if ready and ready.get("lastTransitionTime") else math.inf
    restarts = max((each.get("restartCount") or 0 for each in pod.status.get("containerStatuses") or ()), default=0)
    created = pod.metadata.get("creationTimestamp")
    return (
        bool(pod.node_name),
        {"Pending": 0, "": 0, "Unknown": 1}.get(pod.phase, 2),
        is_ready,
        -since if is_ready else 0.0,
        -restarts,
        -(seconds(created) if created else 0.0),
        pod.name,
    )
