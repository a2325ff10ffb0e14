"""Tests of cutting a text to the size of a terminal."""

import pytest

from kschedd.printing.terminal.screen import first_screen, rows_of
from kschedd.printing.terminal.style import TerminalStyle


@pytest.mark.parametrize(
    ("line", "columns", "rows"),
    [
        pytest.param("", 10, 1, id="an-empty-line-is-a-row"),
        pytest.param("0123456789", 10, 1, id="as-long-as-a-row"),
        pytest.param("01234567890", 10, 2, id="one-letter-more"),
        pytest.param("\x1b[32m0123456789\x1b[0m", 10, 1, id="colors-take-no-room"),
        pytest.param("漢字漢字漢字", 10, 2, id="wide-letters-take-two-columns"),
        pytest.param("x" * 1000, 0, 1, id="no-terminal"),
    ],
)
def test_rows(line, columns, rows) -> None:
    assert rows_of(line, columns) == rows


TEN = "".join(f"line {n}\n" for n in range(10))


def test_what_fits_is_shown_whole() -> None:
    assert first_screen(TEN, TerminalStyle(width=20, height=13), taken=2) == TEN


def test_of_what_does_not_fit_the_head_is_shown() -> None:
    shown = first_screen(TEN, TerminalStyle(width=20, height=8), taken=2).splitlines()
    assert shown == ["line 0", "line 1", "line 2", "line 3", "... and 6 more lines"]


def test_lines_that_go_on_in_the_next_row_count() -> None:
    text = "head\n" + "x" * 45 + "\n" + "y\n" * 9
    shown = first_screen(text, TerminalStyle(width=20, height=8)).splitlines()
    assert shown == ["head", "x" * 45, "y", "y", "... and 7 more lines"]
    assert sum(rows_of(line, 20) for line in shown) == 7
