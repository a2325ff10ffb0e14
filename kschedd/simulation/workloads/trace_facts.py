"""Figures of a trace: counts, times, requests and totals, for comparison with the publisher's figures."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.simulation.workloads.trace import Trace

_SCALES: Final = {"cpu": (1000, "cores"), "memory": (1 << 30, "GiB"), "ephemeral-storage": (1 << 30, "GiB")}
_HOUR_S: Final = 3600


@attrs.frozen(kw_only=True)
class ResourceFacts:
    """Requests for a resource, in the resource's unit; `hours` is the sum of amount times lifetime, in hours."""

    unit: str
    pods: int
    total: float
    largest: float
    hours: float
    capacity: float


@attrs.frozen(kw_only=True)
class TraceFacts:
    """Figures of a trace. Times in seconds."""

    pods: int
    ending: int
    first_s: float
    last_s: float
    end_s: float
    most_at_once: int
    shapes: int
    priorities: Mapping[str, int]
    labels: Mapping[str, Mapping[str, int]]  # by label: number of pods for each value, most frequent first
    resources: Mapping[str, ResourceFacts]
    nodes: int


def facts_of(trace: Trace) -> TraceFacts:
    """Return the figures of a trace."""
    requested: dict[int, Mapping[str, int]] = {}
    total: Counter[str] = Counter()
    pods: Counter[str] = Counter()
    largest: dict[str, int] = {}
    hours: Counter[str] = Counter()
    priorities: Counter[str] = Counter()
    labels: dict[str, Counter[str]] = {}
    for pod in trace.pods:
        spec = pod.raw["spec"]
        requests = requested.get(id(spec))
        if requests is None:
            requests = requested[id(spec)] = Pod.from_raw(pod.raw).requests
        lifetime = 0.0 if pod.deleted_s is None else pod.deleted_s - pod.created_s
        for name, amount in requests.items():
            total[name] += amount
            pods[name] += amount > 0
            largest[name] = max(largest.get(name, 0), amount)
            hours[name] += amount * lifetime / _HOUR_S  # type: ignore[assignment]
        priorities[spec.get("priorityClassName", "none")] += 1
        for label, value in (pod.raw["metadata"].get("labels") or {}).items():
            labels.setdefault(label, Counter())[value] += 1
    capacity: Counter[str] = Counter()
    for raw in trace.nodes:
        capacity.update(Node.from_raw(raw).allocatable)
    resources = {}
    for name in total:
        scale, unit = _SCALES.get(name, (1, ""))
        resources[name] = ResourceFacts(
            unit=unit,
            pods=pods[name],
            total=total[name] / scale,
            largest=largest[name] / scale,
            hours=hours[name] / scale,
            capacity=capacity[name] / scale,
        )
    created = [pod.created_s for pod in trace.pods]
    ends = [pod.deleted_s for pod in trace.pods if pod.deleted_s is not None]
    return TraceFacts(
        pods=len(created),
        ending=len(ends),
        first_s=min(created, default=0.0),
        last_s=max(created, default=0.0),
        end_s=max([*ends, *created], default=0.0),
        most_at_once=_most_at_once(created, ends),
        shapes=len({str(requests) for requests in requested.values()}),
        priorities=dict(priorities.most_common()),
        labels={label: dict(values.most_common()) for label, values in labels.items()},
        resources=resources,
        nodes=len(trace.nodes),
    )


def _most_at_once(created: list[float], ends: list[float]) -> int:
    """Return the largest number of simultaneous pods, assuming that no pod waits for a node."""
    now = most = 0
    for _, change in sorted([*((time, 1) for time in created), *((time, -1) for time in ends)]):
        now += change
        most = max(most, now)
    return most
