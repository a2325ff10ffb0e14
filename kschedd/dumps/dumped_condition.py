"""Messages of the dumped cluster about pods that it did not schedule or create: conditions, Events of rejections.

The scheduler and the controllers of this cluster overwrite these messages. The PodScheduled condition of a pending pod,
and the reason why pods of a workload were rejected, are therefore stored in an annotation, which is removed when the
cluster is saved.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.text.json_text import json_value
from kschedd.api.text.times import seconds

Raw = dict[str, Any]

Key = tuple[str, str, str]
"""Kind, namespace and name."""

ANNOTATION: Final = "kschedd.io/dumped-condition"
FAILED_CREATE: Final = "FailedCreate"
REFUSED_KINDS: Final = frozenset(
    ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job")
)


@attrs.frozen
class DumpedCondition:
    """The dumped condition, with times in seconds since the epoch.

    `since`: the time when the condition became False; later messages do not change this time.
    """

    reason: str
    message: str
    since: float | None
    dumped: float | None  # the latest time in the dump
    generation: Any = None  # of the object then


def with_condition(raw: Raw, dumped: float | None, refusals: Mapping[Key, str] = {}) -> Raw:
    """Return an object of a dump; a pending pod and a workload whose pods are rejected get the annotation.

    `refusals`: the messages of Events about rejected pods, by the object of the Event.
    """
    spec, status, meta = raw.get("spec"), raw.get("status"), raw["metadata"]
    annotations = meta.get("annotations") or {}
    if not isinstance(spec, dict) or not isinstance(status, dict) or not isinstance(annotations, dict):
        return raw
    pod = raw["kind"] == "Pod"
    if pod and spec.get("nodeName"):
        return raw
    wanted = ("PodScheduled", "False") if pod else ("ReplicaFailure", "True")
    conditions = status.get("conditions")
    found: Raw | None = next(
        (
            one
            for one in (conditions if isinstance(conditions, list) else ())
            if isinstance(one, dict) and (one.get("type"), one.get("status")) == wanted
        ),
        None,
    )
    key = (str(raw["kind"]), str(meta.get("namespace")), str(meta.get("name")))
    if found is None and key in refusals and _lacks_pods(spec, status):
        found = {"reason": FAILED_CREATE, "message": refusals[key]}
    if found is None:
        return raw
    kept = {
        "reason": str(found.get("reason") or ""),
        "message": str(found.get("message") or ""),
        "since": _seconds(found.get("lastTransitionTime")),
        "dumped": dumped,
        "generation": meta.get("generation"),
    }
    return {**raw, "metadata": {**meta, "annotations": {**annotations, ANNOTATION: json.dumps(kept)}}}


def _lacks_pods(spec: Raw, status: Raw) -> bool:
    """Return whether a workload has fewer pods than it needs, so that an Event about a rejection is still current."""
    if "desiredNumberScheduled" in status:
        return bool(status.get("currentNumberScheduled") != status["desiredNumberScheduled"])
    if "replicas" in spec:
        return bool((status.get("replicas") or 0) != spec["replicas"])
    return not status.get("active") and not status.get("succeeded")


def refusal_told(event: Raw) -> tuple[Key, str] | None:
    """Return the object whose pods were rejected according to an Event, and the reason; None for other Events."""
    about, message = event.get("involvedObject"), event.get("message")
    if event.get("reason") != FAILED_CREATE or not isinstance(about, dict) or not isinstance(message, str):
        return None
    return (str(about.get("kind")), str(about.get("namespace")), str(about.get("name"))), message


def dumped_refusal(obj: Object) -> str:
    """Return the reason why pods of a workload were rejected before the dump; "" if there is none or it has changed."""
    found = dumped_condition(obj)
    if found is None or found.reason != FAILED_CREATE or found.generation != obj.metadata.get("generation"):
        return ""
    return found.message


def dumped_condition(obj: Object) -> DumpedCondition | None:
    """Return the dumped condition; None if there is no annotation, or if the annotation is invalid."""
    text = (obj.metadata.get("annotations") or {}).get(ANNOTATION)
    if text is None:
        return None
    try:
        kept: Any = json_value(text)
        since, dumped = kept["since"], kept["dumped"]
        generation = kept.get("generation")
        return DumpedCondition(str(kept["reason"]), str(kept["message"]), _number(since), _number(dumped), generation)
    except (ValueError, TypeError, KeyError, OverflowError, AttributeError):
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
