"""All filters' verdicts on every node.

The scheduler stops at the first rejection of a node. An explanation needs all rejections, to list every requirement
that the pod does not meet. Plugins are called without a cache. A plugin that raises an exception gives the status
Error, as in an attempt.

Nodes with nominated pods are evaluated as upstream does: first with the nominated pods, then, if the pod fits, without.
Source: Kubernetes v1.34, scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt

from kschedd.api.pods import Pod
from kschedd.cache.table import NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Status, error, fault_text
from kschedd.scheduling.filtering.filters import Filters, plain_shard
from kschedd.scheduling.nominations.counted import NominatedByRow
from kschedd.scheduling.profiles.profile import EnabledFilter, EvaluationStyle

_WIDEST: Final = 1 << 32  # above this number, combinations of codes are numbered by occurrence

Tick = Callable[[str, str], None]
"""A function called after each step, with its extension point and plugin."""


@attrs.define(eq=False)
class NodeVerdict:
    """All rejections of one node in the profile's order; empty if the pod fits on the node.

    Nodes with equal rejections share one object.
    """

    row: int
    rejections: tuple[Status, ...] = ()
    nominated: tuple[Pod, ...] = ()  # nominated pods that were added, if the node is rejected because of them


def judge(
    filters: Filters, state: CycleState, pod: Pod, rows: Rows, counted: NominatedByRow, tick: Tick
) -> list[NodeVerdict]:
    """Return the verdicts on these rows, in their order."""
    columns = _columns(filters, state, pod, rows, tick)
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


def judge_alike(
    filters: Filters, state: CycleState, pod: Pod, rows: Rows, tick: Tick
) -> list[tuple[tuple[Status, ...], Rows]]:
    """Return the rows grouped by equal verdicts, each group by its first row; nominated pods are ignored."""
    numbers, width = np.zeros(len(rows), dtype=np.int64), 1
    columns = _columns(filters, state, pod, rows, tick)
    for column in columns:
        codes = sorted(column.statuses)
        number = {status: place for place, status in enumerate(dict.fromkeys(column.statuses.values()))}
        own = np.array([number[column.statuses[code]] for code in codes], dtype=np.int64)  # equal for equal statuses
        numbers = numbers * len(number) + own[np.searchsorted(np.array(codes, dtype=np.int64), column.codes)]
        width *= len(number)
        if width > _WIDEST:
            known = np.array(sorted(set(numbers.tolist())), dtype=np.int64)
            numbers, width = np.searchsorted(known, numbers), len(known)
    if not len(rows):
        return []
    ordered = np.argsort(numbers, kind="stable")
    ends = np.flatnonzero(np.diff(numbers[ordered])) + 1
    found = []
    for places in sorted(np.split(ordered, ends), key=lambda group: group.item(0)):
        each = [column.statuses[column.codes.item(places.item(0))] for column in columns]
        found.append((tuple([status for status in each if status is not None]), rows[places]))
    return found


def _columns(filters: Filters, state: CycleState, pod: Pod, rows: Rows, tick: Tick) -> list["_Column"]:
    table = filters.cluster.table
    columns: list[_Column] = []
    for filter_ in filters.profile.filters:
        if filter_.name in state.skip_filter:
            continue
        column = _call_filter(filter_, state, pod, table, rows)
        if column is not None:
            columns.append(column)
        tick("Filter", filter_.name)
    return columns


def any_passes(filters: Filters, state: CycleState, pod: Pod, rows: Rows) -> bool:
    """Return whether all filters pass on one of these rows; nominated pods are ignored."""
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


@attrs.frozen(eq=False)
class _Column:
    """One filter's verdicts: a code for each row, and the status of each code."""

    codes: npt.NDArray[np.signedinteger[Any]]
    statuses: Mapping[int, Status | None]


def _shared(columns: Sequence[_Column]) -> Iterator[tuple[Status, ...]]:
    """Return the statuses of each row; rows with equal statuses share one object."""
    known: dict[tuple[int, ...], tuple[Status, ...]] = {}
    for codes in zip(*[column.codes.tolist() for column in columns], strict=True):
        found = known.get(codes)
        if found is None:
            each = [column.statuses[code] for column, code in zip(columns, codes, strict=True)]
            found = known[codes] = tuple([status for status in each if status is not None])
        yield found


def _call_filter(filter_: EnabledFilter, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> _Column | None:
    """Return the filter's verdict on each row; None if the filter rejects no row."""
    if filter_.style is EvaluationStyle.PER_NODE:
        verdicts = plain_shard(filter_, state, pod, table, rows.tolist())()
        numbers = {status: place for place, status in enumerate(dict.fromkeys(verdicts))}
        numbered = np.array([*map(numbers.__getitem__, verdicts)], dtype=np.int64)
        return _Column(numbered, {number: status for status, number in numbers.items()})
    try:
        codes = filter_.vector.filter_rows(state, pod, table, rows)
        if codes is None:
            return None
        words: dict[int, Status | None] = {0: None}
        # `np.unique` would load numpy.ma on its first call, which takes 15 ms.
        for code in sorted(set(codes.tolist())):
            if code:
                words[code] = filter_.vector.code_status(state, pod, code).by(filter_.name)
        return _Column(codes, words) if len(words) > 1 else None
    except Exception as fault:  # an exception of a plugin must not reach the daemon
        return _Column(np.ones(len(rows), dtype=np.int64), {1: error(fault_text(fault)).by(filter_.name)})


def _with_nominated(
    filters: Filters, state: CycleState, pod: Pod, row: int, nominated: tuple[Pod, ...]
) -> tuple[Status, ...]:
    """Return the filters' verdict on a row with its nominated pods added."""
    copy = filters.cluster.table.copy_rows([row])
    own = state.clone()
    notified = filters.pre_filter_extensions(own)
    try:
        for other in nominated:
            copy.add_pod(0, other)
            filters.notify("add_pod", notified, own, pod, other, copy, 0)
    except Exception as fault:  # an exception of a plugin must not reach the daemon
        return (error(fault_text(fault)),)
    only = np.zeros(1, dtype=np.int64)
    called = [f for f in filters.profile.filters if f.name not in own.skip_filter]
    columns = [column for f in called if (column := _call_filter(f, own, pod, copy, only)) is not None]
    return next(_shared(columns), ())
