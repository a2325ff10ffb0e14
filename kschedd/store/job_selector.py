"""The selector of a Job: unless the user sets one (manualSelector), it matches the Job's uid.

Source: Kubernetes v1.34, pkg/registry/batch/job/strategy.go (generateSelector).
"""

from typing import Any, Final

CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
JOB_NAME: Final = "batch.kubernetes.io/job-name"

Raw = dict[str, Any]


def with_selector(job: Raw) -> Raw:
    """A new Job, whose uid is set, with generated selector and pod labels; unchanged if manualSelector is set.

    Labels that the template has already are left: validation refuses those that are wrong.
    """
    spec = job.get("spec") or {}
    if spec.get("manualSelector"):
        return job
    template = spec.get("template") or {}
    uid, name = job["metadata"]["uid"], job["metadata"].get("name") or ""
    own = {CONTROLLER_UID: uid, "controller-uid": uid, JOB_NAME: name, "job-name": name}
    meta = template.get("metadata") or {}
    labelled = {**template, "metadata": {**meta, "labels": {**own, **(meta.get("labels") or {})}}}
    given = spec.get("selector") or {}
    selector = {**given, "matchLabels": {CONTROLLER_UID: uid, **(given.get("matchLabels") or {})}}
    return {**job, "spec": {**spec, "template": labelled, "selector": selector}}


def with_own_labels(job: Raw) -> Raw:
    """The Job with the labels of its pods, where it has none of its own."""
    labels = ((job["spec"].get("template") or {}).get("metadata") or {}).get("labels")
    if not labels:
        return job
    return {**job, "metadata": {**job["metadata"], "labels": labels}}
