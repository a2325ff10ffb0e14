"""The verdict of every filter on every node, not only of the first filter that rejects it.

The scheduler stops at the first rejection of a node. An explanation needs all rejections, to list every requirement
that the pod does not meet. Plugins are called without a cache. The status of a plugin that raises is Error, as in an
attempt.

Nodes with nominated pods are evaluated as upstream does: first with the nominated pods, then, if the pod fits, without.
Source: Kubernetes v1.34, scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods).
"""

from collections.abc import Callable, Iterator, Sequence

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.table import NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Status, error, fault_text
from kschedd.scheduling.filtering.filters import Filters, plain_shard
from kschedd.scheduling.nominations.counted import NominatedByRow
from kschedd.scheduling.profiles.profile import EnabledFilter, EvaluationStyle

Tick = Callable[[str, str], None]
"""A function called after each step, with its extension point and plugin."""


@attrs.define(eq=False)
class NodeVerdict:
    """All rejections of one node in the profile's order; empty if the pod fits on the node.

    Nodes with equal rejections share the object.
    """

    row: int
    rejections: tuple[Status, ...] = ()
    nominated: tuple[Pod, ...] = ()  # the counted nominated pods, if the node is rejected because of them


def judge(
    filters: Filters, state: CycleState, pod: Pod, rows: Rows, counted: NominatedByRow, tick: Tick
) -> list[NodeVerdict]:
    """Return the verdicts on these rows, in their order."""
    table = filters.cluster.table
    columns: list[Sequence[Status | None]] = []
    for filter_ in filters.profile.filters:
        if filter_.name in state.skip_filter:
            continue
        column = _call_filter(filter_, state, pod, table, rows)
        if column is not None:
            columns.append(column)
        tick("Filter", filter_.name)
    if columns:
        verdicts = [*map(NodeVerdict, rows.tolist(), _shared(columns))]
    else:
        verdicts = [*map(NodeVerdict, rows.tolist())]
    if counted:
        for verdict in verdicts:
            if not verdict.rejections and verdict.row in counted:
                verdict.rejections = _with_nominated(filters, state, pod, verdict.row, counted[verdict.row])
                verdict.nominated = counted[verdict.row] if verdict.rejections else ()
    return verdicts


def any_passes(filters: Filters, state: CycleState, pod: Pod, rows: Rows) -> bool:
    """Return whether every filter passes on one of these rows; nominated pods are not counted."""
    table = filters.cluster.table
    called = [filter_ for filter_ in filters.profile.filters if filter_.name not in state.skip_filter]
    per_node = [filter_ for filter_ in called if filter_.style is EvaluationStyle.PER_NODE]
    for filter_ in called:
        if filter_ in per_node:
            continue
        try:
            codes = filter_.vector.filter_rows(state, pod, table, rows)
        except Exception:  # a plugin's exception is an error on every node
            return False
        if codes is not None:
            rows = rows[codes == 0]
    return any(
        all(plain_shard(filter_, state, pod, table, [row])()[0] is None for filter_ in per_node)
        for row in rows.tolist()
    )


def _shared(columns: Sequence[Sequence[Status | None]]) -> Iterator[tuple[Status, ...]]:
    """Return the statuses of each row; rows with equal statuses share one object."""
    known: dict[tuple[int, ...], tuple[Status, ...]] = {}
    for statuses in zip(*columns, strict=True):
        key = tuple(map(id, statuses))
        found = known.get(key)
        if found is None:
            found = known[key] = tuple([status for status in statuses if status is not None])
        yield found


def _call_filter(
    filter_: EnabledFilter, state: CycleState, pod: Pod, table: NodeTable, rows: Rows
) -> Sequence[Status | None] | None:
    """Return the filter's verdict on each row; None if the filter rejects no row."""
    if filter_.style is EvaluationStyle.PER_NODE:
        return plain_shard(filter_, state, pod, table, rows.tolist())()
    try:
        codes = filter_.vector.filter_rows(state, pod, table, rows)
        if codes is None:
            return None
        words: dict[int, Status | None] = {0: None}
        listed = codes.tolist()
        # np.unique is not used: its first call loads numpy.ma, which takes 15 ms.
        for code in sorted(set(listed)):
            if code:
                words[code] = filter_.vector.code_status(state, pod, code).by(filter_.name)
        return [words[code] for code in listed] if len(words) > 1 else None
    except Exception as fault:  # a plugin's exception ends here, not in the daemon
        return [error(fault_text(fault)).by(filter_.name)] * len(rows)


def _with_nominated(
    filters: Filters, state: CycleState, pod: Pod, row: int, nominated: tuple[Pod, ...]
) -> tuple[Status, ...]:
    """Return the filters' verdict on a row, with the pods nominated to the row's node present."""
    copy = filters.cluster.table.copy_rows([row])
    own = state.clone()
    notified = filters.pre_filter_extensions(own)
    try:
        for other in nominated:
            copy.add_pod(0, other)
            filters.notify("add_pod", notified, own, pod, other, copy, 0)
    except Exception as fault:  # a plugin's exception ends here, not in the daemon
        return (error(fault_text(fault)),)
    only = np.zeros(1, dtype=np.int64)
    called = [f for f in filters.profile.filters if f.name not in own.skip_filter]
    statuses = [(_call_filter(f, own, pod, copy, only) or (None,))[0] for f in called]
    return tuple([status for status in statuses if status is not None])
