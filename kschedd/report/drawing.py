"""Drawings as SVG, which pure functions create from numbers.

A drawing has the coordinates of its data (a column has the width 1); the page scales it to the available width. A
drawing contains no text, because scaling would distort it; labels are placed next to the drawing. Colors are classes
that the page's style defines for light and dark mode.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from kschedd.report.axis import Floats
from kschedd.report.markup import Markup, el, joined

LEVELS: Final = 9
OVER: Final = LEVELS + 1  # above capacity


def level(share: float) -> int:
    """Return the color level of a share: 0 for 0 %, 1 to 9 for up to 100 %, 10 for more."""
    if not share > 0:
        return 0
    return min(math.ceil(round(share * LEVELS, 6)), OVER)


def levels(cells: Floats) -> list[list[int]]:
    """Return the color levels of many values; -1 for missing values."""
    known = np.where(np.isnan(cells), 0.0, cells)
    found = np.clip(np.ceil(np.round(known * LEVELS, 6)), 0, OVER).astype(np.int64)
    found[np.isnan(cells)] = -1
    rows: list[list[int]] = found.tolist()
    return rows


def svg(title: str, width: float, height: float, *shapes: Markup, cls: str = "", description: str = "") -> Markup:
    return el(
        "svg",
        el("title", title),
        el("desc", description) if description else None,
        *shapes,
        viewBox=f"0 0 {width:g} {height:g}",
        preserveAspectRatio="none",
        role="img",
        aria_label=title,
        cls=cls or None,
    )


def heat_map(title: str, cells: Floats, description: str = "") -> Markup:
    """Draw shares as a heat map of rows and columns.

    There is a path for each color level, with one stroke for each run of equal cells in a row.
    """
    rows, columns = cells.shape
    strokes: dict[int, list[str]] = {}
    at: dict[int, tuple[int, int]] = {}
    for y, row in enumerate(levels(cells)):
        x = 0
        while x < columns:
            first, now = x, row[x]
            while x < columns and row[x] == now:
                x += 1
            if now:
                known = strokes.setdefault(now, [])
                before = at.get(now)
                known.append(f"M{first} {y}.5" if before is None else f"m{first - before[0]} {y - before[1]}")
                known.append(f"h{x - first}")
                at[now] = x, y
    paths = (el("path", cls="l-none" if n < 0 else f"l{n}", d="".join(strokes[n])) for n in sorted(strokes))
    return svg(title, max(columns, 1), max(rows, 1), *paths, cls="heat", description=description)


def steps(series: Sequence[float], most: float) -> str:
    """Return the path of a line that is constant within each column; `most` is drawn at height 100."""
    parts = [f"M0 {_y(series[0], most)}"]
    for column, value in enumerate(series):
        y = _y(value, most)
        if column and y != _y(series[column - 1], most):
            parts.append(f"V{y}")
        parts.append(f"H{column + 1}")
    return _shortened(parts)


def _shortened(parts: list[str]) -> str:
    """Remove each horizontal move that another horizontal move follows."""
    kept = [part for part, after in zip(parts, [*parts[1:], ""], strict=True) if not (part[0] == after[:1] == "H")]
    return "".join(kept)


def _y(value: float, most: float) -> str:
    return f"{100 - 100 * value / most:.2f}".rstrip("0").rstrip(".")


def lines(title: str, named: Sequence[tuple[str, Floats]], most: float, description: str = "") -> Markup:
    """Draw one line for each series; `most` is the top of the scale."""
    count = len(named[0][1])
    drawn = [
        el("path", el("title", name), cls=f"line c{n % 9}", d=steps(series.tolist(), most))
        for n, (name, series) in enumerate(named)
    ]
    return svg(title, count, 100, _grid(count), *reversed(drawn), cls="lines", description=description)


def stack(title: str, named: Sequence[tuple[str, Floats]], most: float, description: str = "") -> Markup:
    """Draw stacked areas, the first one at the bottom."""
    count = len(named[0][1])
    below = np.zeros(count)
    drawn = []
    for n, (name, series) in enumerate(named):
        above = below + series
        top = steps(above.tolist(), most)
        back = _reversed_steps(below.tolist(), most)
        drawn.append(el("path", el("title", name), cls=f"area f{n % 9}", d=f"{top}{back}Z"))
        below = above
    return svg(title, count, 100, _grid(count), *drawn, cls="lines", description=description)


def _reversed_steps(series: Sequence[float], most: float) -> str:
    parts = [f"V{_y(series[-1], most)}"]
    for column in range(len(series) - 1, -1, -1):
        y = _y(series[column], most)
        if column < len(series) - 1 and y != _y(series[column + 1], most):
            parts.append(f"V{y}")
        parts.append(f"H{column}")
    return _shortened(parts)


def _grid(width: int) -> Markup:
    return joined(el("path", cls="grid", d=f"M0 {y}H{width}") for y in (0, 25, 50, 75, 100))


def _rounded_up(value: float) -> float:
    """Return the smallest of 1, 2, 5, 10, 20 ... (and their multiples by powers of ten) that is at least `value`."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= value * 0.999999)


def share_top(most: float) -> float:
    """Return the top of a scale for shares: 100 %, or less if all shares are small."""
    return 1.0 if most <= 0 or 0.4 < most <= 1 else _rounded_up(most)


def count_top(most: float) -> float:
    """Return the top of a scale for counts; a quarter of it is an integer."""
    return 4 * max(_rounded_up(most / 4), 1.0) if most > 0 else 4.0
