"""The selector of a Job. By default the selector is generated and matches the Job's uid.

Source: Kubernetes v1.34, pkg/registry/batch/job/strategy.go (generateSelector).
"""

from typing import Any, Final

CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
JOB_NAME: Final = "batch.kubernetes.io/job-name"
_OLDER_CONTROLLER_UID: Final = "controller-uid"
_OLDER_JOB_NAME: Final = "job-name"
_OF_UID: Final = frozenset((CONTROLLER_UID, _OLDER_CONTROLLER_UID))
_GENERATED: Final = frozenset((*_OF_UID, JOB_NAME, _OLDER_JOB_NAME))

Raw = dict[str, Any]


def with_selector(job: Raw) -> Raw:
    """Return a new Job with generated selector and pod labels, or the unchanged Job if manualSelector is set.

    The Job must already have its UID. Existing labels of the template are kept; validation rejects wrong labels.
    """
    spec = job.get("spec") or {}
    if spec.get("manualSelector"):
        return job
    template = spec.get("template") or {}
    uid, name = job["metadata"]["uid"], job["metadata"].get("name") or ""
    own = {CONTROLLER_UID: uid, _OLDER_CONTROLLER_UID: uid, JOB_NAME: name, _OLDER_JOB_NAME: name}
    meta = template.get("metadata") or {}
    labelled = {**template, "metadata": {**meta, "labels": {**own, **(meta.get("labels") or {})}}}
    given = spec.get("selector") or {}
    selector = {**given, "matchLabels": {CONTROLLER_UID: uid, **(given.get("matchLabels") or {})}}
    return {**job, "spec": {**spec, "template": labelled, "selector": selector}}


def with_uid(job: Raw, uid: str) -> Raw:
    """Return the Job with another UID, also in the labels and the selector that were generated from the old UID."""
    old, spec = job["metadata"]["uid"], job["spec"]
    template, selector = spec.get("template") or {}, spec.get("selector") or {}
    changed = {**spec, "template": {**template, "metadata": _named(template.get("metadata") or {}, "labels", old, uid)}}
    if selector:
        changed["selector"] = _named(selector, "matchLabels", old, uid)
    return {**job, "metadata": {**_named(job["metadata"], "labels", old, uid), "uid": uid}, "spec": changed}


def _named(part: Raw, field: str, old: str, new: str) -> Raw:
    """Return this field of a Job with the new UID in its labels."""
    labels = part.get(field)
    if not labels:
        return part
    return {**part, field: {key: new if key in _OF_UID and value == old else value for key, value in labels.items()}}


def without_selector(job: Raw) -> Raw:
    """Return a Job without its generated selector and labels, or the unchanged Job if manualSelector is set."""
    spec = job.get("spec") or {}
    if spec.get("manualSelector"):
        return job
    template = spec.get("template") or {}
    spec = {name: value for name, value in spec.items() if name not in ("selector", "manualSelector")}
    spec["template"] = {**template, "metadata": _stated(template.get("metadata") or {})}
    return {**job, "metadata": _stated(job["metadata"]), "spec": spec}


def _stated(meta: Raw) -> Raw:
    labels = {key: value for key, value in (meta.get("labels") or {}).items() if key not in _GENERATED}
    rest = {name: value for name, value in meta.items() if name != "labels"}
    return {**rest, "labels": labels} if labels else rest


def with_own_labels(job: Raw) -> Raw:
    """Return the Job with the labels of its pod template if the Job has no labels."""
    labels = ((job["spec"].get("template") or {}).get("metadata") or {}).get("labels")
    if not labels:
        return job
    return {**job, "metadata": {**job["metadata"], "labels": labels}}
