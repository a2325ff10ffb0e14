"""The selector of a Job: unless the user sets one (manualSelector), it matches the Job's uid.

Source: Kubernetes v1.34, pkg/registry/batch/job/strategy.go (generateSelector).
"""

from typing import Any, Final

CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
JOB_NAME: Final = "batch.kubernetes.io/job-name"

Raw = dict[str, Any]


def with_selector(job: Raw, *, own_labels: bool) -> Raw:
    """A new Job, whose uid is set, with generated selector and pod labels; unchanged if manualSelector is set.

    A Job without labels of its own has those of its pods.
    """
    spec = job.get("spec") or {}
    template = spec.get("template")
    if spec.get("manualSelector") or not template:
        return job
    uid, name = job["metadata"]["uid"], job["metadata"]["name"]
    own = {CONTROLLER_UID: uid, "controller-uid": uid, JOB_NAME: name, "job-name": name}
    meta = template.get("metadata") or {}
    labelled = {**template, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), **own}}}
    if not own_labels:
        job = {**job, "metadata": {**job["metadata"], "labels": labelled["metadata"]["labels"]}}
    given = spec.get("selector") or {}
    selector = {**given, "matchLabels": {**(given.get("matchLabels") or {}), CONTROLLER_UID: uid}}
    return {**job, "spec": {**spec, "template": labelled, "selector": selector}}
