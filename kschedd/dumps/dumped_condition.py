"""The PodScheduled condition of a pending pod in a dump, which the cluster's own scheduler wrote.

The scheduler here replaces it with its own condition. The dumped condition is therefore kept in an annotation, which is
removed when the cluster is saved.
"""

import json
import math
from typing import Any, Final

import attrs

from kschedd.api.pods import Pod
from kschedd.api.text.json_text import json_value
from kschedd.api.text.times import seconds

Raw = dict[str, Any]

ANNOTATION: Final = "kschedd.io/dumped-condition"


@attrs.frozen
class DumpedCondition:
    """The dumped condition; times in seconds since the epoch.

    `since`: the time when the condition became False, which later messages do not change.
    """

    reason: str
    message: str
    since: float | None
    dumped: float | None  # the latest time in the dump


def with_condition(pod: Raw, dumped: float | None) -> Raw:
    """Return a pod of a dump; a pending pod gets the annotation."""
    spec, status = pod.get("spec"), pod.get("status")
    if not isinstance(spec, dict) or spec.get("nodeName") or not isinstance(status, dict):
        return pod
    meta = pod["metadata"]
    annotations = meta.get("annotations") or {}
    if not isinstance(annotations, dict):
        return pod
    conditions = status.get("conditions")
    for one in conditions if isinstance(conditions, list) else ():
        if isinstance(one, dict) and one.get("type") == "PodScheduled" and one.get("status") == "False":
            kept = {
                "reason": str(one.get("reason") or ""),
                "message": str(one.get("message") or ""),
                "since": _seconds(one.get("lastTransitionTime")),
                "dumped": dumped,
            }
            return {**pod, "metadata": {**meta, "annotations": {**annotations, ANNOTATION: json.dumps(kept)}}}
    return pod


def dumped_condition(pod: Pod) -> DumpedCondition | None:
    """Return the dumped condition; None if there is none, or if the annotation was changed to an invalid value."""
    text = (pod.metadata.get("annotations") or {}).get(ANNOTATION)
    if text is None:
        return None
    try:
        kept: Any = json_value(text)
        since, dumped = kept["since"], kept["dumped"]
        return DumpedCondition(str(kept["reason"]), str(kept["message"]), _number(since), _number(dumped))
    except (ValueError, TypeError, KeyError, OverflowError):
        return None


def _seconds(text: Any) -> float | None:
    try:
        return seconds(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _number(value: Any) -> float | None:
    number = None if value is None else float(value)
    if number is not None and not math.isfinite(number):
        raise ValueError("no time")
    return number
