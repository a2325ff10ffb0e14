"""Sections about nodes: heat maps over time, heat maps of scores, and the list of nodes to which their rows link."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from kschedd.report.axis import Floats
from kschedd.report.drawing import heat_map, share_top
from kschedd.report.markup import Child, Markup, el, joined
from kschedd.report.model import HeatMap, NodeGroup, Report
from kschedd.report.page_parts import NONE, heat_key, percent, table, time_scale

MOST_MAPS: Final = 4
_LABELLED: Final = 40  # maximum number of rows that each have a label
_FEW: Final = 12
_CODES: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"  # a cell's share, 2 % each
_NONE: Final = "."


def maps(report: Report) -> Iterator[Child]:
    if not report.groups:
        yield el("p", "There was no node.")
        return
    shown = report.maps[:MOST_MAPS]
    each = "One row is one node" if report.nodes_in_row == 1 else f"One row is up to {report.nodes_in_row} nodes"
    yield el(
        "p",
        f"{each}, one column a column of time; the darker (by night: the brighter), the more of it pods request. ",
        "A row's name leads to its nodes.",
    )
    top = share_top(max((float(each_map.cells.max(initial=0.0)) for each_map in shown), default=0.0))
    top = min(top, 1.0)
    yield heat_key(percent(top, 0 if top >= 0.01 else 2), "of what there is")
    for n, each_map in enumerate(shown):
        drawing = heat_map(
            f"Nodes over time: {each_map.name}",
            each_map.cells / top,
            f"{len(report.groups)} rows of nodes by {report.columns.count} columns of time",
        )
        framed = el(
            "div",
            _side(report.groups),
            el("div", drawing, cls="cells", tabindex="0", data_map=n, style=_height(len(report.groups))),
            time_scale(report.columns),
            cls="map",
        )
        yield el("details", el("summary", each_map.name), framed, open=n == 0, cls="tab")


def _height(rows: int) -> str:
    each = 26.0 if rows <= _FEW else 15.0 if rows <= _LABELLED else max(2.6, 520 / rows)
    return f"height:{rows * each:.0f}px"


def _side(groups: Sequence[NodeGroup]) -> Markup:
    """Return the names of the rows; the names of the zones if there are too many rows."""
    if len(groups) <= _LABELLED:
        labels = [el("a", group.label, href=f"#g-{n}", title=group.label) for n, group in enumerate(groups)]
        return el("div", labels, cls="side")
    spans: list[tuple[str, int, int]] = []
    for n, group in enumerate(groups):
        if spans and spans[-1][0] == group.zone:
            spans[-1] = group.zone, spans[-1][1], spans[-1][2] + 1
        else:
            spans.append((group.zone, n, 1))
    labels = [
        el("a", zone or f"{rows} rows", href=f"#g-{first}", title=zone or None, style=f"flex-grow:{rows}")
        for zone, first, rows in spans
    ]
    return el("div", labels, cls="side zoned")


def scores(report: Report) -> Iterator[Child]:
    found = report.scores
    if found is None:
        none = "No attempt had more than one node to choose from, so none was scored."
        yield el("p", none if report.columns.virtual else "A daemon keeps no scores; `kschedd explain POD` shows them.")
        return
    yield el(
        "p",
        f"The mean score that each plugin gave each row of nodes, of the most it can give, in {found.samples:,} "
        "attempts that were worked out once more. Nodes stand from left to right as they stand above from top to "
        "bottom; a gap: not scored in any of these.",
    )
    yield heat_key("100 %", "of the most a plugin can give")
    cells = _of_most(found.cells, found.weights)
    drawing = heat_map("Mean scores of nodes by plugin", cells.T, f"{len(found.plugins)} plugins by rows of nodes")
    side = el("div", (el("span", name, title=name) for name in found.plugins), cls="side plugins")
    yield el(
        "div",
        side,
        el("div", drawing, cls="cells", tabindex="0", data_map="scores", style=f"height:{24 * len(found.plugins)}px"),
        el("div", el("span", report.groups[0].label), el("span", report.groups[-1].label), cls="ends"),
        cls="map",
    )
    rows = []
    for n, plugin in enumerate(found.plugins):
        known = found.cells[:, n]
        known = known[~np.isnan(known)]
        figures = (
            (f"{known.min():.1f}", f"{known.mean():.1f}", f"{known.max():.1f}") if len(known) else (NONE, NONE, NONE)
        )
        rows.append((plugin, str(found.weights[n]), *figures))
    heads = ("plugin", "weight", "least", "mean", "most")
    yield table("Weighted scores over the rows of nodes", heads, rows, numbers=range(1, 5))
    if found.left_out:
        yield el(
            "p", f"Out-of-tree plugins are missing, because they are not called twice: {', '.join(found.left_out)}."
        )


def _of_most(cells: Floats, weights: Sequence[int]) -> Floats:
    most = np.array([100.0 * max(weight, 1) for weight in weights])
    shares: Floats = cells / most
    return shares


def groups(report: Report) -> Iterator[Child]:
    resources = list(dict.fromkeys(name for group in report.groups for node in group.nodes for name in node.use))
    heads = ("node", "pods", *resources)
    for n, group in enumerate(report.groups):
        rows = [
            (
                joined(node.name, " (gone)") if node.gone else node.name,
                f"{node.pods:,}",
                *(percent(node.use[name]) if name in node.use else NONE for name in resources),
            )
            for node in group.nodes
        ]
        zone = el("span", f" in {group.zone}", cls="dim") if group.zone else None
        yield el(
            "details",
            el("summary", group.label, zone, _scores_of(report, n)),
            table("Requested at the end", heads, rows, numbers=range(1, len(heads))),
            id=f"g-{n}",
        )


def _scores_of(report: Report, row: int) -> Markup | None:
    found = report.scores
    if found is None or np.isnan(found.cells[row]).all():
        return None
    figures = " · ".join(
        f"{plugin} {value:.0f}" for plugin, value in zip(found.plugins, found.cells[row], strict=True) if value == value
    )
    return el("small", f"mean scores: {figures}")


def cells(report: Report) -> dict[str, Any]:
    """Return the values for the script, as text with one letter per cell."""
    found: dict[str, Any] = {
        "maps": [{"name": each.name, "cells": _letters(each)} for each in report.maps[:MOST_MAPS]],
        "codes": _CODES,
    }
    if report.scores is not None:
        named = HeatMap("scores", _of_most(report.scores.cells, report.scores.weights))
        found["scores"] = {"plugins": list(report.scores.plugins), "cells": _letters(named)}
    return found


def _letters(each: HeatMap) -> list[str]:
    assert each.cells.ndim == 2, "groups by columns"
    shares = np.where(np.isnan(each.cells), -1.0, each.cells)
    codes = np.clip(np.round(shares * 50), -1, len(_CODES) - 1).astype(np.int64)
    return ["".join(_CODES[code] if code >= 0 else _NONE for code in row) for row in codes.tolist()]
