"""The page of figures: results of the benchmark as Markdown, with plots, beside kube-scheduler's figures.

A plot has a line for each workload, on a logarithmic scale: the runs as points, their median as a bar's end, and the
recorded figure of kube-scheduler with its least and greatest run. Nothing is measured here.
"""

import math
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from kschedd.bench.environment import BenchEnvironment
from kschedd.bench.figures import Figure, recorded
from kschedd.bench.report import ReportRow
from kschedd.report.markup import Markup, el, joined

Result = tuple[BenchEnvironment, Sequence[ReportRow]]

_TITLES: Final = {"algo": "The decision alone", "e2e": "The whole scheduler: store, watch, queue, attempt, binding"}
_LINE, _LEFT, _WIDTH, _TOP = 26, 250, 900, 34
_STYLE: Final = """
text { font: 13px system-ui, sans-serif; fill: #555 } .bar { fill: #2a6fdb; opacity: .75 } .run { fill: #12397a }
.kube { stroke: #c2571a; stroke-width: 3 } .span { stroke: #c2571a } .grid { stroke: #8884 }
@media (prefers-color-scheme: dark) { text { fill: #bbb } .run { fill: #bcd4ff } }
"""


def write_page(page: Path, results: Sequence[Result]) -> list[Path]:
    """Write the page and its plots beside it; the files written. Raises OSError, SharedError, ResultFileError."""
    page.parent.mkdir(parents=True, exist_ok=True)
    rows = [row for _, found in results for row in found]
    written = [page]
    text = [_HEAD, *([_OWN_TIME] if any(row.own_time for row in rows) else []), *_about(results)]
    for (mode, nodes, percentage, rate, journal), group in groupby(sorted(rows, key=_section), key=_section):
        section = list(group)
        name = f"{page.stem.lower()}-{mode}-{nodes}"
        name += f"-{percentage}percent" if percentage else ""
        name += f"-{rate:g}a-second" if rate else ""
        name += "-journal" if journal else ""
        plot = page.with_name(f"{name}.svg")
        plot.write_text(f"{plotted(section)}\n", encoding="utf-8")
        written.append(plot)
        title = f"{_TITLES.get(mode, mode)}, {nodes:,} nodes"
        title += f", {percentage} % of them scored" if percentage else ""
        title += f", {rate:g} pods offered a second" if rate else ""
        title += ", with a journal" if journal else ""
        text += [f"## {title}\n", f"![{title}: pods a second]({plot.name})\n", _table(section)]
    page.write_text("\n".join(text), encoding="utf-8")
    return written


_HEAD: Final = """\
# Figures

Made by `kschedd bench --page` of result files. Pods a second: the median of the runs, with the least and the greatest.
The times are those of one decision (`algo`) or from creation to binding (`e2e`, where all pods are offered at once and
most of it is waiting). kube-scheduler's figures are those recorded of 1.34.1 on 2 cores; a ratio means something only
where both were measured on machines of one kind with nothing else running: the last column says how many cores others
used meanwhile, at most. In a plot a bar ends at the median, points are runs, the upright line is kube-scheduler's
figure; the scale is logarithmic.
"""

_OWN_TIME: Final = """\
Times are those in which the scheduler ran or slept: the time for which it was ready to run and others had the processor
is left out. Caches that are shared with others still make it slower than on a quiet machine.
"""


def _about(results: Sequence[Result]) -> list[str]:
    lines = ["| commit | date | machine | Python | numpy | load when it began |", "|---|---|---|---|---|---|"]
    for about, _ in results:
        cells = (about.commit, about.date, about.machine, about.python, about.numpy, about.load)
        lines.append(f"| {' | '.join(cell.replace('|', '/') or 'not known' for cell in cells)} |")
    return ["\n".join(lines) + "\n"]


def _section(row: ReportRow) -> tuple[str, int, int, float, bool]:
    return row.mode, row.nodes, row.percentage, row.offered_rate, row.journal


def _table(rows: Sequence[ReportRow]) -> str:
    heading: tuple[str, ...] = ("workload", "pods", "pods/s", "least to greatest", "runs", "kube-scheduler", "ratio")
    asked = any(row.answers_p99_ms is not None for row in rows)
    heading += ("p50 ms", "p99 ms", *(("answers p50 ms", "answers p99 ms") * asked), "MiB", "others")
    lines = [f"| {' | '.join(heading)} |", f"|---{'|--:' * (len(heading) - 1)}|"]
    for row in rows:
        known = _recorded(row)
        kube, ratio = ("-", "-")
        if known is not None:
            kube = f"{known.pods_per_second.median:,.0f}"
            ratio = _times(row.pods_per_second / known.pods_per_second.median)
        others = "-" if row.other_cpu is None else f"{row.other_cpu:.2f}"
        speeds = row.runs
        cells = (
            *(row.workload, f"{row.pods:,}", f"{row.pods_per_second:,.0f}"),
            *(f"{min(speeds):,.0f} to {max(speeds):,.0f}", str(len(speeds)), kube, ratio),
            *(f"{row.p50_ms:.3f}", f"{row.p99_ms:.3f}"),
            *(map(_or_none, (row.answers_p50_ms, row.answers_p99_ms)) if asked else ()),
            *(f"{row.rss_mb:,.0f}", others),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _or_none(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _times(ratio: float) -> str:
    return f"{ratio:.1f}x" if ratio < 10 else f"{ratio:.0f}x"


def _recorded(row: ReportRow) -> Figure | None:
    if row.journal:
        return None
    return recorded(row.workload, row.nodes, row.mode, row.percentage, offered_rate=row.offered_rate)


def plotted(rows: Sequence[ReportRow]) -> Markup:
    """The plot of one section, as SVG that needs nothing else."""
    figures = [_recorded(row) for row in rows]
    values = [speed for row in rows for speed in row.runs if speed > 0]
    values += [figure.pods_per_second.min for figure in figures if figure is not None]
    values += [figure.pods_per_second.max for figure in figures if figure is not None]
    low = math.floor(math.log10(min(values, default=1.0)))
    high = max(math.ceil(math.log10(max(values, default=10.0))), low + 1)
    room = _WIDTH - _LEFT - 40

    def x(value: float) -> float:
        return round(_LEFT + room * (math.log10(max(value, 10.0**low)) - low) / (high - low), 1)

    height = _TOP + _LINE * len(rows) + 10
    shapes: list[Markup] = [el("style", Markup(_STYLE))]
    for power in range(low, high + 1):
        at = x(10.0**power)
        shapes.append(el("line", cls="grid", x1=at, x2=at, y1=_TOP - 6, y2=height - 6))
        shapes.append(
            el("text", f"{10**power:,}" if power >= 0 else f"{10.0**power:g}", x=at, y=20, text_anchor="middle")
        )
    for number, (row, figure) in enumerate(zip(rows, figures, strict=True)):
        shapes += _line(row, figure, _TOP + _LINE * number, x)
    title = "Pods a second by workload"
    return el(
        "svg",
        el("title", title),
        joined(shapes),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH} {height}",
        role="img",
        aria_label=title,
    )


def _line(row: ReportRow, figure: Figure | None, top: int, x: Callable[[float], float]) -> list[Markup]:
    middle = top + _LINE // 2
    end = x(row.pods_per_second)
    shapes = [
        el("text", row.workload, x=_LEFT - 8, y=middle + 4, text_anchor="end"),
        el(
            "rect",
            el("title", f"{row.pods_per_second:,.0f} pods/s"),
            cls="bar",
            x=_LEFT,
            y=top + 5,
            width=round(max(end - _LEFT, 0.0), 1),
            height=_LINE - 10,
        ),
    ]
    shapes += [el("circle", cls="run", cx=x(speed), cy=middle, r=2.5) for speed in row.runs]
    if figure is not None:
        speed = figure.pods_per_second
        at = x(speed.median)
        shapes.append(el("line", cls="span", x1=x(speed.min), x2=x(speed.max), y1=middle, y2=middle))
        said = el("title", f"kube-scheduler: {speed.median:,.0f} pods/s")
        shapes.append(el("line", said, cls="kube", x1=at, x2=at, y1=top + 3, y2=top + _LINE - 3))
    return shapes
