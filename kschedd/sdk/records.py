"""Tables of typed records, which can be converted to data frames and are displayed in notebooks and terminals."""

from collections.abc import Callable, Iterator, Sequence
from html import escape
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

import attrs

from kschedd.answers import plain
from kschedd.errors import KscheddError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

R = TypeVar("R", bound=attrs.AttrsInstance)

_SHOWN_ROWS: Final = 20
_LONGEST_CELL: Final = 60  # maximum number of characters of a cell in text output; HTML shows whole cells


@attrs.define(eq=False)
class MissingLibraryError(KscheddError):
    """A conversion or a plot requires a library that is not installed."""

    package: str
    extra: str

    def __str__(self) -> str:
        return f'{self.package} is not installed; install it with: pip install "kschedd[{self.extra}]"'


def optional_library(name: str, extra: str) -> ModuleType:
    """Import a library that an extra of kschedd installs. Raises MissingLibraryError."""
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        raise MissingLibraryError(name.partition(".")[0], extra) from missing


class ConvertibleTable:
    """A table that can be converted to data frames.

    `to_pandas` and the other conversions require the library of that name.
    """

    __slots__ = ()

    def _by_column(self) -> dict[str, list[Any]]:
        """Return the values of each column."""
        raise NotImplementedError

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a pandas DataFrame with one row for each record. Raises MissingLibraryError."""
        frame: pandas.DataFrame = optional_library("pandas", "frames").DataFrame(self._by_column())
        return frame

    def to_polars(self) -> "polars.DataFrame":
        """Return a Polars DataFrame with one row for each record. Raises MissingLibraryError."""
        frame: polars.DataFrame = optional_library("polars", "frames").DataFrame(self._by_column(), strict=False)
        return frame

    def to_arrow(self) -> "pyarrow.Table":
        """Return a pyarrow Table with one row for each record. Raises MissingLibraryError."""
        table: pyarrow.Table = optional_library("pyarrow", "frames").table(self._by_column())
        return table


class Records(ConvertibleTable, Sequence[R], Generic[R]):
    """An immutable sequence of records of one class; the fields and properties of the class are the columns.

    `columns` lists them. Two tables are equal if their records are equal. `to_pandas`, `to_polars` and `to_arrow`
    require the library of that name: pip install "kschedd[frames]". In data frames, columns with several values per
    record contain lists and dicts.
    """

    __slots__ = ("_records", "kind")

    def __init__(self, kind: type[R], records: Sequence[R] = ()) -> None:
        self.kind = kind
        self._records = tuple(records)

    @overload
    def __getitem__(self, index: int) -> R: ...
    @overload
    def __getitem__(self, index: slice) -> "Records[R]": ...
    def __getitem__(self, index: int | slice) -> "R | Records[R]":
        if isinstance(index, slice):
            return Records(self.kind, self._records[index])
        return self._records[index]

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[R]:
        return iter(self._records)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Records) and (self.kind, self._records) == (other.kind, other._records)

    def __hash__(self) -> int:
        return hash((self.kind, self._records))

    def __reduce__(self) -> Any:
        return Records, (self.kind, self._records)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns: the fields of the class, then its properties."""
        return *self._fields, *self._properties

    @property
    def _fields(self) -> tuple[str, ...]:
        return tuple(field.name for field in attrs.fields(self.kind))

    @property
    def _properties(self) -> tuple[str, ...]:
        return tuple(name for name, value in vars(self.kind).items() if isinstance(value, property))

    def where(self, condition: Callable[[R], bool]) -> "Records[R]":
        """Return the records for which `condition` is true."""
        return Records(self.kind, [record for record in self._records if condition(record)])

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one dict for each record, with JSON values."""
        found: list[dict[str, Any]] = plain(self._records)
        derived = self._properties
        if not derived:
            return found
        return [
            {**row, **{name: getattr(record, name) for name in derived}}
            for row, record in zip(found, self._records, strict=True)
        ]

    def _by_column(self) -> dict[str, list[Any]]:
        rows = self.to_dicts()
        return {name: [row[name.removesuffix("_")] for row in rows] for name in self.columns}

    # -- shown --------------------------------------------------------------------------------------------------

    def _rows(self) -> list[list[str]]:
        return [
            ["" if value is None else str(value) for value in attrs.astuple(record, recurse=False)]
            for record in self._records[:_SHOWN_ROWS]
        ]

    def _more(self) -> str:
        more = len(self) - _SHOWN_ROWS
        return f"... {more} more" if more > 0 else ""

    def __repr__(self) -> str:
        heads, rows = list(self._fields), [[_cut(cell) for cell in row] for row in self._rows()]
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (heads, *rows)
        ]
        more = self._more()
        return "\n".join(
            [f"{len(self)} x {self.kind.__name__}", *(line.rstrip() for line in lines), *[more] * bool(more)]
        )

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in self._fields)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in self._rows())
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{len(self)} rows {self._more()}</p>"
        )

    def __rich_repr__(self) -> Iterator[Any]:
        yield self.kind.__name__
        yield "records", list(self._records)


def _cut(text: str) -> str:
    """Return a cell on one line, shortened if it is too long."""
    line = text.replace("\n", " ")
    return line if len(line) <= _LONGEST_CELL else f"{line[: _LONGEST_CELL - 3]}..."
