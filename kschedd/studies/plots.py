"""Plots of the tables of runs and sweeps on matplotlib: `kschedd plot`. Plots require the extra `plots` or `research`.

| plot | of | shows |
|---|---|---|
| usage, fragmentation | runs | requested and fragmented share of each resource, over load or time |
| waits | runs | share of the pods that waited at most so long |
| queues | runs | lengths of the queue's parts, over load or time |
| costs | runs | price per hour of all nodes and of nodes with pods, over load or time (`--prices`, `--pools`) |
| scaling | runs | numbers of nodes, of launches in progress and of draining nodes, over time (`--pools`) |
| metrics | a sweep | mean and deviation of one metric over the seeds of each configuration |
| pareto | a sweep | two metrics of each configuration, with the front of those that no other one beats in both |
| heatmap | a sweep | mean of a metric by the values of two dimensions |

The same tables result in the same bytes of SVG. For metrics that count scheduled pods or used capacity, larger is
better; for all others, smaller is better.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Final

import attrs

from kschedd.errors import KscheddError
from kschedd.sdk.plots import style
from kschedd.sdk.records import optional_library
from kschedd.simulation.results.measures import short_names
from kschedd.studies.groups import dimensions_of, grouped, label_of, metrics_of
from kschedd.studies.rows import PATTERN, SweepRows, read_rows
from kschedd.studies.run import OK

Row = Mapping[str, Any]

RUN_PLOTS: Final = ("usage", "fragmentation", "waits", "queues", "costs", "scaling")
SWEEP_PLOTS: Final = ("metrics", "pareto", "heatmap")
SUFFIXES: Final = (".svg", ".png", ".html")
_OF_A_RUN: Final = ("usage", "fragmentation", "waits")  # plots that are drawn by default
_QUEUES: Final = ("running", "pending", "unschedulable", "backoff", "gated")
_COSTS: Final = ("cost_hour", "cost_hour_used")
_SCALING: Final = ("nodes", "starting", "leaving")
_TABLES: Final = {"waits": "pods", "queues": "queues", "costs": "costs", "scaling": "scaling"}
_NEEDED: Final = {"costs": "--prices or --pools", "scaling": "--pools"}  # flags that add tables to a run
_LINE: Final = 0.3  # inches for a line with a label
_CHARACTER: Final = 0.09  # inches for a character of a label
_FITTING: Final = 60  # number of characters of labels that fit beside each other under a plot
_MARKERS: Final = "osD^vP*X<>"
_MOST_COLORS: Final = 10  # number of colors before they repeat
_SALT: Final = {"svg.hashsalt": "kschedd"}
_PAGE: Final = '<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>{picture}</html>\n'


@attrs.define(eq=False)
class PlotError(KscheddError):
    """A plot cannot be drawn from the given tables."""

    why: str


@attrs.frozen(kw_only=True)
class PlotChoice:
    """What is drawn.

    `kinds`: the plots to draw; () means the default plots. `x`, `y`, `value`: metrics or dimensions of a sweep.
    """

    kinds: tuple[str, ...] = ()
    x: str = ""
    y: str = ""
    value: str = ""


def draw(folders: Sequence[Path], out: Path, choice: PlotChoice) -> None:
    """Draw the tables in the folders, and write the plot to a file. Raises PlotError and MissingLibraryError."""
    if out.suffix not in SUFFIXES:
        raise PlotError(f"{out}: the name must end in {', '.join(SUFFIXES)}")
    optional_library("matplotlib", "plots").use("Agg")
    panels = list(_panels(folders, choice))
    with style() as pyplot, pyplot.rc_context(_SALT):
        size = 6.4 * len(panels), 4.8
        figure, axes = pyplot.subplots(1, len(panels), figsize=size, squeeze=False, layout="constrained")
        try:
            for panel, one in zip(panels, axes[0], strict=True):
                panel(one)
            _save(figure, out)
        finally:
            pyplot.close(figure)


def _save(figure: Any, out: Path) -> None:
    import io

    picture = io.BytesIO()
    metadata = {"Date": None} if out.suffix != ".png" else {}
    figure.savefig(picture, format="png" if out.suffix == ".png" else "svg", metadata=metadata)
    data = picture.getvalue()
    if out.suffix == ".html":
        svg = data.decode("utf-8")
        data = _PAGE.format(title=escape(out.stem), picture=svg[svg.index("<svg") :]).encode()
    try:
        out.write_bytes(data)
    except OSError as fault:
        raise PlotError(f"{out}: cannot be written: {fault.strerror}") from fault


def _panels(folders: Sequence[Path], choice: PlotChoice) -> Iterator[Callable[[Any], None]]:
    """Yield functions that each draw a panel on its Axes."""
    if any(list(folder.glob(PATTERN)) for folder in folders):
        if len(folders) > 1:
            raise PlotError("one sweep at a time: give one folder with rows.jsonl")
        if wrong := [kind for kind in choice.kinds if kind not in SWEEP_PLOTS]:
            raise PlotError(f'a sweep has no plot "{wrong[0]}" (allowed: {", ".join(SWEEP_PLOTS)})')
        rows = SweepRows([row for row in read_rows(folders[0]) if row["status"] == OK])
        if not rows:
            raise PlotError(f"{folders[0]}: no run of the sweep succeeded")
        for kind in choice.kinds or ("metrics",):
            yield partial(_OF_SWEEPS[kind], rows=rows, choice=choice)
        return
    if wrong := [kind for kind in choice.kinds if kind not in RUN_PLOTS]:
        raise PlotError(f'a run has no plot "{wrong[0]}" (allowed: {", ".join(RUN_PLOTS)})')
    usual: tuple[str, ...] = _OF_A_RUN
    if not choice.kinds and all(_axis(_table(folder, "usage"))[0] == "load" for folder in folders):
        usual = usual[:2]  # waiting times have no meaning if all pods are created at the same time
    for kind in choice.kinds or usual:
        table = _TABLES.get(kind, "usage")
        tables = {folder.name: _table(folder, table) for folder in folders}
        yield partial(_OF_RUNS[kind], tables=tables)


def _table(folder: Path, name: str) -> list[Row]:
    path = folder / f"{name}.jsonl"
    if not path.exists() and name in _NEEDED and (folder / "usage.jsonl").exists():
        raise PlotError(f"{folder}: has no table {name}, which `kschedd simulate --out` writes with {_NEEDED[name]}")
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except OSError as fault:
        what = "is not a folder of `kschedd simulate --out` or `kschedd sweep`"
        raise PlotError(f"{folder}: {what}: {path.name}: {fault.strerror}") from fault
    except ValueError as fault:
        raise PlotError(f"{path}: is not JSON Lines: {fault}") from fault


# -- runs -----------------------------------------------------------------------------------------------------------

Tables = Mapping[str, Sequence[Row]]


def _axis(rows: Sequence[Row]) -> tuple[str, str]:
    """Return the column of the time axis and its label: the requested load if the run has it, otherwise the time."""
    if any(row["load"] for row in rows):
        return "load", "requested load (share of the capacity)"
    return "time_s", "virtual time (s)"


def _over_time(axes: Any, tables: Tables, column: str, label: str) -> None:
    for folder, rows in tables.items():
        axis, name = _axis(rows)
        short = short_names(list(dict.fromkeys(row["resource"] for row in rows)))
        for resource, title in short.items():
            mine = [row for row in rows if row["resource"] == resource and row[axis] is not None]
            prefix = f"{folder}: " if len(tables) > 1 else ""
            axes.plot([row[axis] for row in mine], [row[column] for row in mine], label=f"{prefix}{title}")
        axes.set(xlabel=name)
    axes.set(ylabel=label, ylim=(0, None))
    axes.legend()


def _usage(axes: Any, tables: Tables) -> None:
    _over_time(axes, tables, "used", "requested share of the capacity")


def _fragmentation(axes: Any, tables: Tables) -> None:
    _over_time(axes, tables, "fragmented", "free and unusable share of the capacity")


def _waits(axes: Any, tables: Tables) -> None:
    for folder, rows in tables.items():
        waits = sorted(row["wait_s"] for row in rows if row["wait_s"] is not None)
        axes.step(waits, [(place + 1) / len(waits) for place in range(len(waits))], where="post", label=folder)
    axes.set(xlabel="wait for a node (virtual s)", ylabel="share of the pods with a node", ylim=(0, 1.02))
    if len(tables) > 1:
        axes.legend()


def _columns(axes: Any, tables: Tables, columns: Sequence[str], label: str) -> None:
    """Draw a line for each column that has a value other than 0."""
    for folder, rows in tables.items():
        axis, name = _axis(rows)
        mine = [row for row in rows if row[axis] is not None]
        for column in columns:
            if any(row[column] for row in mine):
                prefix = f"{folder}: " if len(tables) > 1 else ""
                axes.plot([row[axis] for row in mine], [row[column] for row in mine], label=f"{prefix}{column}")
        axes.set(xlabel=name)
    axes.set(ylabel=label, ylim=(0, None))
    if axes.get_legend_handles_labels()[1]:
        axes.legend()


def _queues(axes: Any, tables: Tables) -> None:
    _columns(axes, tables, _QUEUES, "pods")


def _costs(axes: Any, tables: Tables) -> None:
    _columns(axes, tables, _COSTS, "price per hour")


def _scaling(axes: Any, tables: Tables) -> None:
    _columns(axes, tables, _SCALING, "nodes")


# -- sweeps ---------------------------------------------------------------------------------------------------------


def larger_is_better(metric: str) -> bool:
    """Return whether a larger value of the metric is better."""
    return metric == "placed" or "_used_" in metric


def non_dominated(points: Sequence[Sequence[float]], larger: Sequence[bool]) -> list[int]:
    """Return the numbers of the points for which no other point is as good in all coordinates and better in one."""
    signed = [[-value if up else value for value, up in zip(point, larger, strict=True)] for point in points]
    return [
        number
        for number, one in enumerate(signed)
        if not any(all(a <= b for a, b in zip(other, one, strict=True)) and other != one for other in signed)
    ]


def _metric(rows: SweepRows, name: str, flag: str, default: Sequence[str]) -> str:
    """Return the metric that a flag names; without the flag, the first default metric that the rows contain.

    Raises PlotError.
    """
    there = metrics_of(rows)
    found = name or next((each for each in default if each in there), there[0] if there else "")
    if found not in there:
        raise PlotError(f'{flag} "{found}": no such metric (allowed: {", ".join(there)})')
    return found


def _varied(rows: SweepRows) -> list[str]:
    return [name for name in dimensions_of(rows) if len({json.dumps(row.get(name)) for row in rows}) > 1]


def _groups(rows: SweepRows, *metrics: str) -> list[tuple[tuple[str, ...], list[list[float]]]]:
    """Return the labels of each configuration, one for each dimension, and the values of its metrics over all seeds."""
    found = []
    for key, group in grouped(rows, _varied(rows)):
        values = [[float(row[metric]) for row in group if row.get(metric) is not None] for metric in metrics]
        if all(values):
            found.append((tuple(map(label_of, key)), values))
    if not found:
        raise PlotError(f"no row has {' and '.join(metrics)}")
    return found


def _colored(groups: Sequence[tuple[tuple[str, ...], Any]]) -> dict[str, int]:
    """Return the color number of each value of the last dimension; {} if there is only one dimension."""
    return {value: number for number, value in enumerate(dict.fromkeys(key[-1] for key, _ in groups if len(key) > 1))}


def _enlarge(axes: Any, lines: int, longest: int) -> None:
    """Enlarge the figure until it has space for this number of lines, with labels of `longest` characters."""
    width, height = axes.figure.get_size_inches()
    axes.figure.set_size_inches(width + _CHARACTER * max(longest - 20, 0), max(height, _LINE * lines + 1.5))


def _metrics(axes: Any, rows: SweepRows, choice: PlotChoice) -> None:
    """Draw a line for each configuration; values of the last dimension share a line, and have a color each."""
    metric = _metric(rows, choice.y, "--y", ("gpu_milli_used_end", "placed"))
    groups = _groups(rows, metric)
    colors = _colored(groups)
    labels = [", ".join(key[:-1] if colors else key) or "all" for key, _ in groups]
    lines = {label: line for line, label in enumerate(dict.fromkeys(labels))}
    for value, number in (colors or {"": 0}).items():
        mine = [
            (lines[label], values)
            for label, (key, [values]) in zip(labels, groups, strict=True)
            if not colors or key[-1] == value
        ]
        deviations = [stdev(values) if len(values) > 1 else 0.0 for _, values in mine]
        means, places = [fmean(values) for _, values in mine], [line for line, _ in mine]
        axes.errorbar(
            means,
            places,
            xerr=deviations,
            fmt=_MARKERS[number % len(_MARKERS)],
            capsize=3,
            label=value,
            color=f"C{number}",
        )
    axes.set_yticks(range(len(lines)), list(lines))
    axes.set(xlabel=f"{metric}: mean and deviation over seeds", ylim=(len(lines) - 0.5, -0.5))
    if colors:
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    _enlarge(axes, len(lines), max(map(len, lines)) + max(map(len, colors), default=0))


def _pareto(axes: Any, rows: SweepRows, choice: PlotChoice) -> None:
    names = [
        _metric(rows, choice.x, "--x", ("unusable_nodes",)),
        _metric(rows, choice.y, "--y", ("gpu_milli_used_end", "placed")),
    ]
    groups = _groups(rows, *names)
    points = [(fmean(x), fmean(y)) for _, [x, y] in groups]
    front = sorted(points[number] for number in non_dominated(points, [larger_is_better(name) for name in names]))
    colors = _colored(groups) if len(groups) > _MOST_COLORS else {}
    named = set[str]()
    for place, ((key, _), point) in enumerate(zip(groups, points, strict=True)):
        label = key[-1] if colors else ", ".join(key) or "all"
        number = colors.get(label, place)
        marker = _MARKERS[number % len(_MARKERS)]
        axes.scatter(*point, label="_" if label in named else label, color=f"C{number}", marker=marker)
        named.add(label)
    axes.plot([x for x, _ in front], [y for _, y in front], color="black", linewidth=1, label="Pareto front")
    axes.set(xlabel=names[0], ylabel=names[1])
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    _enlarge(axes, len(named), 20 + max(map(len, named)))


def _heatmap(axes: Any, rows: SweepRows, choice: PlotChoice) -> None:
    metric = _metric(rows, choice.value, "--value", ("gpu_milli_used_end", "placed"))
    varied = _varied(rows)
    chosen = [choice.x or next(iter(varied), ""), choice.y or next(iter(varied[1:]), "")]
    if len(set(chosen) & set(varied)) < 2:
        raise PlotError(
            f"heatmap: --x and --y must be two parameters that vary (allowed: {', '.join(varied) or 'nothing'})"
        )
    cells = {(label_of(x), label_of(y)): group for [x, y], group in grouped(rows, chosen)}
    columns, lines = list(dict.fromkeys(x for x, _ in cells)), list(dict.fromkeys(y for _, y in cells))
    values = [
        [fmean([float(row[metric]) for row in cells[x, y]]) if (x, y) in cells else float("nan") for x in columns]
        for y in lines
    ]
    picture = axes.imshow(values, aspect="auto", origin="lower")
    axes.grid(visible=False)
    longest = max(map(len, columns))
    axes.set_xticks(range(len(columns)), columns, rotation=0 if longest * len(columns) < _FITTING else 90)
    axes.set_yticks(range(len(lines)), lines)
    axes.set(xlabel=chosen[0], ylabel=chosen[1])
    axes.figure.colorbar(picture, ax=axes, label=metric)
    _enlarge(axes, len(lines) + longest // 3, max(map(len, lines)) + len(columns))


_OF_RUNS: Final[Mapping[str, Callable[..., None]]] = {
    "usage": _usage,
    "fragmentation": _fragmentation,
    "waits": _waits,
    "queues": _queues,
    "costs": _costs,
    "scaling": _scaling,
}
_OF_SWEEPS: Final[Mapping[str, Callable[..., None]]] = {"metrics": _metrics, "pareto": _pareto, "heatmap": _heatmap}
