"""The rows of a sweep in a folder: `rows.jsonl`, or `rows-I-of-N.jsonl` of a shard, and the same rows in Parquet.

A row is appended by a single write as soon as its run ends. After `kill -9`, all rows of the file except perhaps the
last are complete; an incomplete row is removed when the sweep is resumed. A lock prevents two sweeps from writing the
same file. Rows of all shards in the folder count as finished.
"""

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from kschedd.errors import KscheddError
from kschedd.sdk.records import ConvertibleTable, optional_library
from kschedd.simulation.results.table_files import parquet_is_there

Row = Mapping[str, Any]

PATTERN: Final = "rows*.jsonl"


class RowsFileError(KscheddError):
    """A file of rows cannot be used."""


class SweepRows(ConvertibleTable, Sequence[Row]):
    """The rows of a sweep; there is one row for each run.

    `columns` are the columns of all rows, in order of appearance.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = tuple(rows)

    def __getitem__(self, index: Any) -> Any:
        return SweepRows(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for row in self._rows for name in row))

    def _by_column(self) -> dict[str, list[Any]]:
        """Return the columns; values that are not scalars, and columns with several types, become JSON text."""
        return {name: _alike([row.get(name) for row in self._rows]) for name in self.columns}

    def __repr__(self) -> str:
        return f"<SweepRows: {len(self)} rows, {len(self.columns)} columns>"


def _alike(values: list[Any]) -> list[Any]:
    kinds = {float if isinstance(value, int) and not isinstance(value, bool) else type(value) for value in values}
    if len(kinds - {type(None)}) <= 1 and not kinds & {dict, list, tuple}:
        return values
    return [None if value is None else value if isinstance(value, str) else json.dumps(value) for value in values]


class RowsFile:
    """The file of one sweep or shard, locked while it is open."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @classmethod
    @contextmanager
    def opened(cls, folder: Path, shard: tuple[int, int] = (1, 1)) -> "Iterator[RowsFile]":
        """Open the file in the existing folder, and remove an incomplete last row. Raises RowsFileError."""
        name = "rows" if shard[1] == 1 else f"rows-{shard[0]}-of-{shard[1]}"
        path = folder / f"{name}.jsonl"
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_APPEND, 0o644)
        except OSError as fault:
            raise RowsFileError(f"{path}: cannot be opened: {fault.strerror}") from fault
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as fault:
                raise RowsFileError(
                    f"{path}: another sweep is writing this file; wait for it, or use --shard"
                ) from fault
            text = path.read_bytes()
            os.ftruncate(descriptor, text.rfind(b"\n") + 1)
        except BaseException:
            os.close(descriptor)
            raise
        file = cls(path, descriptor)
        try:
            yield file
        finally:
            os.close(file._descriptor)

    def append(self, row: Row) -> None:
        """Append a row by a single write."""
        os.write(self._descriptor, _line(row))

    def forget(self, statuses: Sequence[str]) -> None:
        """Remove the rows with these statuses, so that their runs are performed again.

        A file with the other rows replaces the file in one step, so a killed process loses no row.
        """
        kept = b"".join([_line(row) for row in _read(self._path) if row.get("status") not in statuses])
        beside = self._path.with_suffix(".new")
        descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_APPEND, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with open(descriptor, "ab", closefd=False) as file:
                file.write(kept)
            os.replace(beside, self._path)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(self._descriptor)
        self._descriptor = descriptor

    def write_parquet(self) -> None:
        """Write the rows of this file in Parquet beside it, if pyarrow is installed."""
        if parquet_is_there():
            parquet = optional_library("pyarrow.parquet", "frames")
            parquet.write_table(SweepRows(_read(self._path)).to_arrow(), self._path.with_suffix(".parquet"))


def read_rows(folder: Path) -> SweepRows:
    """Return the rows of all shards in a folder, without incomplete last rows. Raises RowsFileError.

    If several files have a row of one run, a row without an error is returned.
    """
    found: dict[str, Row] = {}
    for path in sorted(folder.glob(PATTERN)):
        for row in _read(path):
            run = str(row["run"])
            if run not in found or found[run].get("status") != "ok":
                found[run] = row
    return SweepRows(found.values())


def _line(row: Row) -> bytes:
    return f"{json.dumps(row, ensure_ascii=False, separators=(',', ':'))}\n".encode()


def _read(path: Path) -> list[Row]:
    found: list[Row] = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(keepends=True), start=1):
        if not text.endswith("\n"):
            break  # being written
        try:
            row = json.loads(text)
        except ValueError:
            row = None
        if not isinstance(row, dict) or "run" not in row:
            raise RowsFileError(f"{path}:{number}: is no row of a sweep; give another folder with --out")
        found.append(row)
    return found
