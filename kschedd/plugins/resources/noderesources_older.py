"""Resource scores of releases up to v1.22, computed separately for each configured resource.

These scores differ from those of the current NodeResourcesFit in three ways. A resource that the node lacks is
included. An extended resource is included even if the pod does not request it. Utilization is the share that is not
free, rounded up.

Source: Kubernetes v1.22, plugins/noderesources/least_allocated.go, most_allocated.go, requested_to_capacity_ratio.go,
resource_allocation.go.
Units: CPU in millicores, other resources in whole units; scores are int64. Division truncates towards zero, as in Go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kschedd.api.pods import Pod
from kschedd.api.selecting.resource_names import is_scalar
from kschedd.cache.scoring_columns import truncated
from kschedd.cache.table import CPU, MEMORY, Ints, NodeTable, Rows
from kschedd.config.scoring_args import CPU_AND_MEMORY, ResourceWeight, ShapePoint
from kschedd.framework.interface import MAX_NODE_SCORE


def utilizations(
    pod: Pod, table: NodeTable, rows: Rows, resources: Sequence[ResourceWeight]
) -> Iterator[tuple[int, Ints, Ints]]:
    """Yield each resource's weight, the requests for the resource with the pod's request added, and its capacity."""
    requests = pod.pod_spec.fit_score_requests
    for resource in resources:
        name = resource.name
        requested = requests.get(name, 0)
        if name == "cpu":
            yield resource.weight, table.nonzero[0][rows] + requested, table.allocatable[CPU][rows]
        elif name == "memory":
            yield resource.weight, table.nonzero[1][rows] + requested, table.allocatable[MEMORY][rows]
        elif name == "ephemeral-storage" or is_scalar(name):
            number = table.resource(name)
            yield resource.weight, table.requested[number][rows] + requested, table.allocatable[number][rows]
        else:
            nothing = np.zeros(len(rows), dtype=np.int64)
            yield resource.weight, nothing, nothing


def least_allocated(pod: Pod, table: NodeTable, rows: Rows, resources: Sequence[ResourceWeight]) -> Ints:
    total, weights = np.zeros(len(rows), dtype=np.int64), 0
    for weight, requested, capacity in utilizations(pod, table, rows, resources):
        free = np.where(requested > capacity, 0, capacity - requested)
        total += truncated(free * MAX_NODE_SCORE, capacity) * weight
        weights += weight
    return _within_range(total // weights)


def most_allocated(pod: Pod, table: NodeTable, rows: Rows, resources: Sequence[ResourceWeight]) -> Ints:
    total, weights = np.zeros(len(rows), dtype=np.int64), 0
    for weight, requested, capacity in utilizations(pod, table, rows, resources):
        total += truncated(np.minimum(requested, capacity) * MAX_NODE_SCORE, capacity) * weight
        weights += weight
    return _within_range(total // weights)


def requested_to_capacity_ratio(
    pod: Pod, table: NodeTable, rows: Rows, resources: Sequence[ResourceWeight], curve: Ints
) -> Ints:
    """Return the weighted mean of the resources' scores, without resources that score 0.

    `curve` contains the score for each utilization from 0 to 100 (`broken_linear`).
    """
    total, weights = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    for weight, requested, capacity in utilizations(pod, table, rows, resources):
        percent = 100 - truncated((capacity - requested) * 100, capacity)
        percent = np.where((capacity == 0) | (requested > capacity), 100, percent)
        score = curve[np.clip(percent, 0, 100)]
        total += score * weight
        weights += (score > 0) * weight
    return np.floor(total / np.maximum(weights, 1) + 0.5).astype(np.int64)


def balanced(pod: Pod, table: NodeTable, rows: Rows) -> Ints:
    """Return a score for how close the shares of cpu and memory are, or 0 if one of them is exhausted.

    Source: Kubernetes v1.18, plugins/noderesources/balanced_allocation.go (balancedResourceScorer).
    """
    cpu, memory = (
        np.where(capacity == 0, 1.0, requested / np.where(capacity == 0, 1, capacity))
        for _, requested, capacity in utilizations(pod, table, rows, CPU_AND_MEMORY)
    )
    scores = (1 - np.abs(cpu - memory)) * MAX_NODE_SCORE
    return np.where((cpu >= 1) | (memory >= 1), 0, scores).astype(np.int64)


def broken_linear(shape: Sequence[ShapePoint], scale: int) -> Ints:
    """Return the integer score for each utilization from 0 to 100, interpolated between the points, times `scale`."""
    scores = []
    for percent in range(101):
        before: ShapePoint | None = None
        score = shape[-1].score * scale
        for point in shape:
            if percent <= point.utilization:
                score = point.score * scale
                if before is not None:
                    rise = (point.score - before.score) * scale * (percent - before.utilization)
                    run = point.utilization - before.utilization
                    score = before.score * scale + (rise // run if rise >= 0 else -(-rise // run))
                break
            before = point
        scores.append(score)
    return np.array(scores, dtype=np.int64)


def _within_range(scores: Ints) -> Ints:
    """Clip scores that are out of range because of negative or overflowing amounts; upstream reports an error."""
    return np.clip(scores, 0, MAX_NODE_SCORE)
