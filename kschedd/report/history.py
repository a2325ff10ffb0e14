"""Nodes over time, as the answer of `nodes.history`: a letter for each node, resource and column of time."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

import attrs
import numpy as np

from kschedd.report.decisions import Decision
from kschedd.report.model import ColumnFacts, Columns, HeatMap, NodeGroup
from kschedd.report.page_parts import when

MOST_MAPS: Final = 4
_CODES: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"

NodeName = Annotated[str, "node"]
Letters = Annotated[str, "letters"]


@attrs.frozen
class AttemptNamed:
    pod: str
    attempt: int


@attrs.frozen
class ColumnAnswer:
    """The attempts in a column of time."""

    attempts: int
    placed: int
    failed: int
    preempted: int
    first: Annotated[Sequence[AttemptNamed], "the first attempts, at most 2"]


@attrs.frozen
class HistoryAnswer:
    """Rows of nodes by columns of time. All columns have the same width, at most 300 of them."""

    columns: Annotated[Sequence[Annotated[str, "time"]], "the beginning of each column as text"]
    attempts: Annotated[Sequence[ColumnAnswer], "by column"]
    nodes: Annotated[
        Sequence[Sequence[NodeName]], "the nodes of each row, deleted nodes included; nodes of a row share their mean"
    ]
    zones: Annotated[Sequence[Annotated[str, "zone"]], "by row"]
    shares: Annotated[
        Mapping[Annotated[str, "resource"], Sequence[Letters]],
        "for each row one letter per column: the requested share in steps of 2 %, 0 to 9, a to z, A to Z, - and _",
    ]


def history(
    columns: Columns,
    groups: Sequence[NodeGroup],
    maps: Sequence[HeatMap],
    by_column: Sequence[ColumnFacts],
    decisions: Mapping[int, Decision],
) -> HistoryAnswer:
    return HistoryAnswer(
        [when(columns, number * columns.width_s) for number in range(columns.count)],
        [
            ColumnAnswer(
                each.attempts,
                each.placed,
                each.failed,
                each.preempted,
                [AttemptNamed(decisions[number].pod, decisions[number].attempt) for number in each.decisions],
            )
            for each in by_column
        ],
        [group.nodes for group in groups],
        [group.zone for group in groups],
        {each.name: _letters(each) for each in maps[:MOST_MAPS]},
    )


def _letters(each: HeatMap) -> list[str]:
    assert each.cells.ndim == 2, "groups by columns"
    codes = np.clip(np.round(np.nan_to_num(each.cells) * 50), 0, len(_CODES) - 1).astype(np.int64)
    return ["".join(_CODES[code] for code in row) for row in codes.tolist()]
