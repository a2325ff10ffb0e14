"""Use of node pools over a run: nodes by pool and time, node hours and cost."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kschedd.report.axis import Floats
from kschedd.report.model import Columns, PoolUse


def use_of_pools(nodes: Sequence[Mapping[str, Any]], columns: Columns) -> list[PoolUse]:
    """Return the use of each pool, by name. `nodes` are rows of the table `pool_nodes`; their times are in seconds."""
    by_pool: dict[str, list[Mapping[str, Any]]] = {}
    for row in nodes:
        if row["pool"] is not None:
            by_pool.setdefault(row["pool"], []).append(row)
    return [_use_of(name, by_pool[name], columns) for name in sorted(by_pool)]


def _use_of(name: str, rows: Sequence[Mapping[str, Any]], columns: Columns) -> PoolUse:
    removed = sum(row["deleted_s"] is not None for row in rows)
    begun = np.array([row["created_s"] for row in rows])
    ended = np.array([columns.until_s if row["deleted_s"] is None else row["deleted_s"] for row in rows])
    return PoolUse(
        name,
        sum(row["created_s"] > 0 for row in rows),
        removed,
        len(rows) - removed,
        float((ended - begun).sum()) / 3600,
        sum(row["cost"] for row in rows),
        _means(begun, ended, columns),
    )


def _means(begun: Floats, ended: Floats, columns: Columns) -> Floats:
    """Return the mean number of nodes in each column of time."""
    starts = np.arange(columns.count) * float(columns.width_s)
    ends = np.minimum(starts + columns.width_s, columns.until_s)
    means = np.zeros(columns.count)
    for column, (start, end) in enumerate(zip(starts, ends, strict=True)):
        overlap = np.minimum(ended, end) - np.maximum(begun, start)
        means[column] = overlap[overlap > 0].sum() / (end - start)
    return means
