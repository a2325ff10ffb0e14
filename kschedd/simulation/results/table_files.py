"""Tables as files: Files of tables: JSON Lines always, and Parquet as well if pyarrow is installed.

    with TableFile(folder / "pods", {"pod": "text", "created_s": "real"}) as table:
        table.append({"pod": "default/a", "created_s": 0.0})

Each column of a table has a type: text, whole or real. Values may be null; pandas, Polars and DuckDB read both formats
directly. Rows are written in order, in blocks. A Parquet table without rows still has its columns.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Final, Literal

from kschedd.errors import KscheddError

ColumnType = Literal["text", "whole", "real"]

_ROWS_AT_ONCE: Final = 10_000
_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


class TableFileError(KscheddError):
    """The error if a table's file cannot be written."""


def parquet_is_there() -> bool:
    """Return whether tables are also written as Parquet, because pyarrow is installed."""
    return find_spec("pyarrow") is not None


class TableFile:
    """Context manager for a table that is being written. Raises TableFileError."""

    def __init__(self, stem: Path, columns: Mapping[str, ColumnType]) -> None:
        self._columns = dict(columns)
        self._path = stem.with_name(f"{stem.name}.jsonl")
        with self._reported():
            self._file: IO[str] = self._path.open("w", encoding="utf-8", newline="\n")
        self._parquet = _ParquetFile(stem, self._columns) if parquet_is_there() else None
        self._rows: list[Mapping[str, Any]] = []

    def __enter__(self) -> "TableFile":
        return self

    def __exit__(self, *_: object) -> None:
        with self._reported():
            self._flush()
            self._file.close()
            if self._parquet is not None:
                self._parquet.close()

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row; missing columns are null."""
        self._rows.append(row)
        if len(self._rows) >= _ROWS_AT_ONCE:
            with self._reported():
                self._flush()

    def _flush(self) -> None:
        rows = [{name: row.get(name) for name in self._columns} for row in self._rows]
        self._rows.clear()
        self._file.writelines(f"{_encoded(row)}\n" for row in rows)
        if self._parquet is not None and rows:
            self._parquet.write(rows)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except OSError as fault:
            raise TableFileError(f"{self._path}: cannot be written: {fault.strerror}") from fault


class _ParquetFile:
    """A table in Parquet, with one row group for each block."""

    def __init__(self, stem: Path, columns: Mapping[str, ColumnType]) -> None:
        import pyarrow
        import pyarrow.parquet

        types = {"text": pyarrow.string(), "whole": pyarrow.int64(), "real": pyarrow.float64()}
        self._arrow = pyarrow
        self._schema = pyarrow.schema([(name, types[of]) for name, of in columns.items()])
        self._writer = pyarrow.parquet.ParquetWriter(stem.with_name(f"{stem.name}.parquet"), self._schema)

    def write(self, rows: list[dict[str, Any]]) -> None:
        self._writer.write_table(self._arrow.Table.from_pylist(rows, schema=self._schema))

    def close(self) -> None:
        self._writer.close()
