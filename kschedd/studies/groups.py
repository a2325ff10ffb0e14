"""Rows of a sweep by their inputs: dimensions, metrics, and groups of rows that differ only in the seed."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kschedd.studies.rows import Row, SweepRows
from kschedd.studies.spec import COLUMNS_OF_RUNS

_LONGEST: Final = 60  # characters of a label


def dimensions_of(rows: SweepRows) -> list[str]:
    """Return the columns of all inputs except the seed: cluster, workload, profile, version, parameters."""
    return [name for name in _before_metrics(rows) if name not in ("run", "row_hash", "status", "error", "seed")]


def metrics_of(rows: SweepRows) -> list[str]:
    """Return the columns of metrics."""
    before = _before_metrics(rows)
    return [name for name in rows.columns if name not in before and name not in COLUMNS_OF_RUNS]


def grouped(rows: Iterable[Row], dimensions: Sequence[str]) -> Iterator[tuple[list[Any], list[Row]]]:
    """Yield the values of the dimensions and the rows with these values, in order of appearance."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(json.dumps([row.get(name) for name in dimensions]), []).append(row)
    for group in found.values():
        yield [group[0].get(name) for name in dimensions], group


def label_of(value: Any) -> str:
    """Return a short text for the value of a dimension; for a scoring strategy, its type."""
    if isinstance(value, Mapping) and isinstance(value.get("type"), str):
        return str(value["type"])
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _before_metrics(rows: SweepRows) -> list[str]:
    """Return the columns up to the seed, which is the last column before the metrics in each row."""
    names: dict[str, None] = {}
    for row in rows:
        for name in row:
            names[name] = None
            if name == "seed":
                break
    return list(names)
