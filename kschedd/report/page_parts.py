"""Parts that the sections of the page share: headings, tables, charts with labels, amounts as text."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

from kschedd.report.decisions import Decision
from kschedd.report.markup import Child, Markup, el, joined
from kschedd.report.model import Columns
from kschedd.simulation.summary import span

NONE: Final = "\u2013"  # shown for a missing value
TIMES: Final = "\u00d7"
_TICKS: Final = 5


def section(name: str, title: str, *content: Child) -> Markup:
    return el("section", el("h2", title, id=f"{name}-title"), *content, id=name, aria_labelledby=f"{name}-title")


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Child]], numbers: Iterable[int] = ()) -> Markup:
    """`numbers`: the columns that are right-aligned."""
    right = set(numbers)
    head = el("tr", (el("th", each, scope="col", cls="n" if n in right else None) for n, each in enumerate(heads)))
    body = (el("tr", (el("td", cell, cls="n" if n in right else None) for n, cell in enumerate(row))) for row in rows)
    return el(
        "div",
        el("table", el("caption", caption) if caption else None, el("thead", head), el("tbody", body)),
        cls="wide",
        tabindex=0,  # a narrow window scrolls it
        role="group",
        aria_label=caption or f"table by {heads[0]}",
    )


def chart(drawing: Markup, columns: Columns, up: Sequence[str]) -> Markup:
    """Return a drawing over time with its scales; `up` are the labels from bottom to top."""
    scale = el("div", (el("span", each) for each in reversed(up)), cls="up", aria_hidden="true")
    return el("div", scale, drawing, time_scale(columns), cls="chart")


def time_scale(columns: Columns) -> Markup:
    """Return labels at equal distances; each links to the events of its time."""
    end = columns.count * columns.width_s
    places = sorted(
        {min(round(part * (columns.count - 1) / (_TICKS - 1)), columns.count - 1) for part in range(_TICKS)}
    )
    ticks = [
        el(
            "a",
            when(columns, place * columns.width_s),
            href=f"#t-{place}",
            style=f"left:{100 * place / columns.count:.2f}%",
        )
        for place in (places if columns.count > 1 else [0])
    ]
    return el("div", *ticks, cls="along", data_end=when(columns, end))


def when(columns: Columns, time_s: float) -> str:
    """Return a time of the run: in virtual time the seconds since its start, otherwise the time of day."""
    if columns.virtual:
        return lasting(time_s)
    at = datetime.fromtimestamp(columns.start_s + time_s, UTC)
    return at.strftime("%H:%M:%S" if columns.width_s < 60 else "%d %b %H:%M" if columns.width_s >= 3600 else "%H:%M")


def lasting(seconds: float) -> str:
    """Return a duration without trailing zeros: `7h5m`, `12h`, `3d`."""
    text = span(seconds)
    for part, shorter in (("m0s", "m"), ("h0m", "h"), ("d0h", "d")):
        text = text.removesuffix(part) + shorter if text.endswith(part) else text
    return text


def percent(share: float, places: int = 1) -> str:
    return f"{100 * share:.{places}f} %"


def many(count: float) -> str:
    return f"{count:,.10g}"


def heat_key(top: str, words: str) -> Markup:
    """Return the legend of a heat map's colors."""
    steps = (el("span", cls=f"key k{n}") for n in range(10))
    return el("p", "0 ", joined(steps), f" {top} {words} ", el("span", cls="key k10"), " more", cls="keys")


def decision_link(decision: Decision, label: str) -> Markup:
    """Return a link to the attempt in the view Decision."""
    parts = (*decision.pod.split("/", 1), str(decision.attempt))
    return el("a", label, href=f"#/decision/{'/'.join(quote(part, safe='') for part in parts)}")


def node_address(name: str) -> str:
    """Return the address of the node in the view Nodes."""
    return f"#/nodes/{quote(name, safe='')}"
