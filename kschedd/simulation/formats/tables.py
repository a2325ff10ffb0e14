"""Parsing the tables of a trace: CSV with a header line; every fault is collected and reported.

A Record is one row; its columns are accessed by name. Its methods parse a column as a type. For an invalid value they
record a fault and return a default value, so that parsing continues to the next fault. If there were faults, the caller
raises TraceError at the end. Unused columns are ignored.
"""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import attrs

from kschedd.api.selecting.names import dns_subdomain, is_dns_subdomain
from kschedd.errors import KscheddError

_MOST = 10**12
_NO_DEFAULTS: Mapping[str, str] = {}
_LONGEST_HEADING = 100_000
_WHOLE = re.compile("[0-9]{1,13}")
_DECIMAL = re.compile(r"[0-9]{1,13}(\.[0-9]{1,18})?([eE][-+]?[0-9]{1,2})?")
_SECONDS = re.compile(r"[0-9]{1,13}(\.[0-9]{1,18})?")
_MICROSECONDS = (
    6  # times are rounded to this number of decimals; published traces contain times such as 4031.0000000000005
)
_MOST_SHOWN = 20  # faults in a message


@attrs.frozen
class TraceFault:
    """One fault of a trace."""

    file: str
    line: int  # line number, from 1; 0 if the fault concerns the whole file
    column: str  # "" if the fault concerns the whole line
    value: str | None  # None if the value is missing
    allowed: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        column = f" {self.column}:" if self.column else ""
        value = "" if self.value is None else f" {_short(self.value)}:"
        return f"{place}:{column}{value} {self.allowed}"


@attrs.define(eq=False)
class TraceError(KscheddError):
    """An invalid trace, with all of its faults in line order."""

    faults: tuple[TraceFault, ...]

    def __str__(self) -> str:
        more = len(self.faults) - _MOST_SHOWN
        return "\n".join([*map(str, self.faults[:_MOST_SHOWN]), *[f"... and {more:,} more faults"] * (more > 0)])


def _short(value: str) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}... ({len(value)} characters)"


@lru_cache(4096)  # cached, because most pods have one of a few templates
def _whole(text: str) -> int | None:
    return int(text) if _WHOLE.fullmatch(text) else None


@attrs.define
class TraceRecord:
    """One row of a table."""

    file: str
    line: int
    cells: dict[str, str]
    faults: list[TraceFault]

    def refuse(self, column: str, allowed: str) -> None:
        self.faults.append(TraceFault(self.file, self.line, column, self.cells[column], allowed))

    def whole(self, column: str, least: int = 0, most: int = _MOST) -> int:
        """Return an integer from `least` to `most`; 0, with a fault recorded, for any other value."""
        number = _whole(self.cells[column])
        if number is not None and least <= number <= most:
            return number
        self.refuse(column, f"must be a whole number, {least} to {most}")
        return 0

    def number(self, column: str, least: float = 0, most: float = _MOST) -> float:
        """Return a decimal number from `least` to `most`; 0, with a fault recorded, for any other value."""
        text = self.cells[column]
        if _DECIMAL.fullmatch(text) and least <= float(text) <= most:
            return float(text)
        self.refuse(column, f"must be a number, {least:g} to {most:g}")
        return 0.0

    def seconds(self, column: str) -> float | None:
        """Return a time in seconds from the start of the trace; None, with a fault recorded, if it is invalid."""
        text = self.cells[column]
        if _SECONDS.fullmatch(text):
            return round(float(text), _MICROSECONDS)
        self.refuse(column, "must be seconds from the start of the trace, 0 or more")
        return None

    def seconds_or_empty(self, column: str) -> float | None:
        """Return a time as `seconds` does, or None for an empty column."""
        return self.seconds(column) if self.cells[column] else None

    def one_of(self, column: str, allowed: Collection[str]) -> str:
        text = self.cells[column]
        if text not in allowed:
            self.refuse(column, f"must be one of {', '.join(allowed)}")
        return text


def unique_name(record: TraceRecord, column: str, seen: dict[str, int], prefix: str = "") -> str:
    """Return the object name in the column; record a fault if it is invalid or a duplicate."""
    name = f"{prefix}{record.cells[column]}"
    if not is_dns_subdomain(name):
        for fault in dns_subdomain(name):
            record.refuse(column, fault)
    if name in seen:
        record.refuse(column, f"must be unique, line {seen[name]} has it too")
    seen.setdefault(name, record.line)
    return name


def records(
    path: Path, columns: Collection[str], faults: list[TraceFault], defaults: Mapping[str, str] = _NO_DEFAULTS
) -> Iterator[TraceRecord]:
    """Yield the rows of the table that have all columns; record faults for all other rows.

    `defaults` contains values for columns that the table may omit.
    """
    file = str(path)
    text = text_of(path, faults)
    if text is None:
        return
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    heading: list[str] | None = None
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error as fault:
            faults.append(TraceFault(file, line, "", None, f"is not CSV: {fault}"))
            if heading is None:
                return
            continue
        if not cells:
            continue
        if heading is None:
            if wrong := _heading_faults(file, line, cells, [name for name in columns if name not in defaults]):
                faults += wrong
                return
            heading = cells
        elif len(cells) != len(heading):
            why = f"has {len(cells)} columns, must have {len(heading)} as the heading has"
            faults.append(TraceFault(file, line, "", None, why))
        else:
            yield TraceRecord(file, line, {**defaults, **dict(zip(heading, cells, strict=True))}, faults)
    if heading is None:
        faults.append(TraceFault(file, 0, "", None, f"is empty, must have the columns {', '.join(columns)}"))


def heading_of(path: Path) -> tuple[str, ...]:
    """Return the columns of the first line; an empty result if the file is unreadable."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            first = file.readline(_LONGEST_HEADING).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError, EOFError, zlib.error):
        return ()
    return tuple(next(csv.reader([first.rstrip("\r\n")]), ()))


def text_of(path: Path, faults: list[TraceFault]) -> str | None:
    """Return the text of a file, possibly compressed with gzip; None, with a fault recorded, if it is unreadable."""
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as fault:
        why = getattr(fault, "strerror", None) or str(fault)
        faults.append(TraceFault(str(path), 0, "", None, f"cannot be read: {why}"))
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = data.count(b"\n", 0, fault.start) + 1
        faults.append(TraceFault(str(path), line, "", None, f"is not UTF-8: {fault.reason}"))
        return None


def _heading_faults(file: str, line: int, heading: list[str], columns: Collection[str]) -> list[TraceFault]:
    missing = [
        TraceFault(file, line, column, None, f"missing; the columns are {', '.join(heading)}")
        for column in columns
        if column not in heading
    ]
    twice = [
        TraceFault(file, line, column, None, "appears in the heading more than once")
        for column in columns
        if heading.count(column) > 1
    ]
    return missing + twice
