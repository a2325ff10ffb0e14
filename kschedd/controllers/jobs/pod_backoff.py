"""The back-off of a Job's pods: a failed pod is replaced 10 s after the first failure, doubling up to 10 min.

Failures are counted since the last success. With backoffLimitPerIndex each index has its own back-off; an annotation
passes its failure count from pod to pod. Source: Kubernetes v1.34, pkg/controller/job/backoff_utils.go.
"""

from collections.abc import Sequence
from typing import Any, Final

import attrs

from kschedd.api.conditions import condition
from kschedd.api.pods import Pod
from kschedd.api.text.times import duration_s, seconds

FIRST_S: Final = 10.0
LONGEST_S: Final = 600.0
FAILURE_COUNT: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURE_COUNT: Final = "batch.kubernetes.io/job-index-ignored-failure-count"


@attrs.frozen
class PodBackoff:
    failures: int = 0  # since the last success
    last_failure_s: float = 0.0

    def after(self, succeeded: Sequence[Pod], failed: Sequence[Pod]) -> "PodBackoff":
        """Return the failure record, updated with these ended pods."""
        if not succeeded:
            if not failed:
                return self
            return PodBackoff(self.failures + len(failed), max(map(finished_at, failed)))
        last_success = max(map(finished_at, succeeded))
        later = [at for at in map(finished_at, failed) if at > last_success]
        return PodBackoff(len(later), max(later, default=0.0))

    def ready_at(self) -> float:
        """Return the earliest time at which pods may be created."""
        return retry_at(self.failures, self.last_failure_s)


def retry_at(failures: int, last_failure_s: float) -> float:
    if not failures:
        return float("-inf")
    return last_failure_s + min(FIRST_S * 2.0 ** min(failures - 1, 20), LONGEST_S)


def index_ready_at(last_failed: Pod | None) -> float:
    """Return the earliest time at which a new pod may be created for the index of this failed pod."""
    if last_failed is None:
        return float("-inf")
    return retry_at(failure_count(last_failed) + ignored_failure_count(last_failed) + 1, finished_at(last_failed))


def failure_count(pod: Pod) -> int:
    """Return the number of failed earlier pods of the index; failures that a policy ignores are not counted."""
    return _count(pod, FAILURE_COUNT)


def ignored_failure_count(pod: Pod) -> int:
    return _count(pod, IGNORED_FAILURE_COUNT)


def _count(pod: Pod, annotation: str) -> int:
    try:
        count = int(pod.annotations.get(annotation) or 0)
    except (TypeError, ValueError):
        return 0
    return count if 0 <= count < 2**31 else 0


def finished_at(pod: Pod) -> float:
    """Return the time at which the pod ended.

    The result is the first known of these times: the end of its containers, its Ready condition, its deletion, its
    creation.
    """
    ends: list[Any] = [
        ((container.get("state") or {}).get("terminated") or {}).get("finishedAt")
        for container in pod.status.get("containerStatuses") or ()
    ]
    if ends and all(ends):
        return max(map(seconds, ends))
    ready = condition(pod.status, "Ready")
    if ready is not None and ready.get("status") == "False" and ready.get("lastTransitionTime"):
        return seconds(ready["lastTransitionTime"])
    if pod.deletion_timestamp:
        return seconds(pod.deletion_timestamp) - duration_s(pod.metadata.get("deletionGracePeriodSeconds") or 0)
    return seconds(pod.metadata["creationTimestamp"])
