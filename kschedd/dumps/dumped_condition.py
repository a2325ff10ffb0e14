"""What the cluster's own scheduler last said of a pod that is pending in a dump: its PodScheduled condition.

The scheduler here writes a condition of its own in its place, so the dumped one is kept as an annotation, which saving
takes away again.
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
    """Times in seconds since the epoch. `since`: when the condition became False, which no later message moves."""

    reason: str
    message: str
    since: float | None
    dumped: float | None  # the latest time that the dump has


def with_condition(pod: Raw, dumped: float | None) -> Raw:
    """A pod of a dump; one that is pending with the annotation."""
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
    """None also where somebody has changed the annotation to what it cannot be."""
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
