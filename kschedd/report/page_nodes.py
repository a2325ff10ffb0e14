"""Sections about nodes: heat maps over time, heat maps of scores, and the fullest nodes at the end."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from kschedd.report.axis import Floats
from kschedd.report.drawing import heat_map, share_top
from kschedd.report.history import MOST_MAPS
from kschedd.report.markup import Child, Markup, el
from kschedd.report.model import NodeGroup, Report
from kschedd.report.page_parts import NONE, heat_key, node_address, percent, table, time_scale

_LABELLED: Final = 40  # maximum number of rows that each have a label
_FEW: Final = 12
_FULLEST: Final = 20


def maps(report: Report) -> Iterator[Child]:
    if not report.groups:
        yield el("p", "There was no node.")
        return
    shown = report.maps[:MOST_MAPS]
    each = "One row is one node" if report.nodes_in_row == 1 else f"One row is up to {report.nodes_in_row} nodes"
    yield el(
        "p",
        f"{each}, one column is a column of time. A darker color (in dark mode: a brighter one) is a larger requested "
        "share. A click on a cell shows the nodes at that time.",
    )
    top = share_top(max((float(each_map.cells.max(initial=0.0)) for each_map in shown), default=0.0))
    top = min(top, 1.0)
    yield heat_key(percent(top, 0 if top >= 0.01 else 2), "of the capacity")
    for n, each_map in enumerate(shown):
        drawing = heat_map(
            f"Nodes over time: {each_map.name}",
            each_map.cells / top,
            f"{len(report.groups)} rows of nodes by {report.columns.count} columns of time",
        )
        framed = el(
            "div",
            _side(report.groups),
            el("div", drawing, cls="cells", data_map="time", style=_height(len(report.groups))),
            time_scale(report.columns),
            cls="maps",
        )
        yield el("details", el("summary", each_map.name), framed, open=n == 0)


def _height(rows: int) -> str:
    each = 26.0 if rows <= _FEW else 15.0 if rows <= _LABELLED else max(2.6, 520 / rows)
    return f"height:{rows * each:.0f}px"


def _side(groups: Sequence[NodeGroup]) -> Markup:
    """Return the names of the rows; the names of the zones if there are too many rows."""
    if len(groups) <= _LABELLED:
        labels = [el("a", group.label, href=node_address(group.nodes[0]), title=group.label) for group in groups]
        return el("div", labels, cls="side")
    spans: list[tuple[str, int, int]] = []
    for n, group in enumerate(groups):
        if spans and spans[-1][0] == group.zone:
            spans[-1] = group.zone, spans[-1][1], spans[-1][2] + 1
        else:
            spans.append((group.zone, n, 1))
    labels = [
        el(
            "a",
            zone or f"{rows} rows",
            href=node_address(groups[first].nodes[0]),
            title=zone or None,
            style=f"flex-grow:{rows}",
        )
        for zone, first, rows in spans
    ]
    return el("div", labels, cls="side zoned")


def scores(report: Report) -> Iterator[Child]:
    found = report.scores
    if found is None:
        none = "No attempt had several feasible nodes, so no node was scored."
        yield el(
            "p",
            none
            if report.columns.virtual
            else "The log of a daemon does not contain scores; `kschedd explain POD` shows them.",
        )
        return
    yield el(
        "p",
        f"The mean score of each plugin for each row of nodes, as a share of its maximum score, in {found.samples:,} "
        "attempts, whose scores were computed again. The nodes are from left to right in the order in which they are "
        "above from top to bottom. Nodes without a score are left blank.",
    )
    yield heat_key("100 %", "of the maximum score")
    cells = _of_most(found.cells, found.weights)
    drawing = heat_map("Mean scores of nodes by plugin", cells.T, f"{len(found.plugins)} plugins by rows of nodes")
    side = el("div", (el("span", name, title=name) for name in found.plugins), cls="side plugins")
    yield el(
        "div",
        side,
        el("div", drawing, cls="cells", data_map="scores", style=f"height:{24 * len(found.plugins)}px"),
        el("div", el("span", report.groups[0].label), el("span", report.groups[-1].label), cls="ends"),
        cls="maps",
    )
    rows = []
    for n, plugin in enumerate(found.plugins):
        known = found.cells[:, n]
        known = known[~np.isnan(known)]
        figures = (
            (f"{known.min():.1f}", f"{known.mean():.1f}", f"{known.max():.1f}") if len(known) else (NONE, NONE, NONE)
        )
        rows.append((plugin, str(found.weights[n]), *figures))
    heads = ("plugin", "weight", "minimum", "mean", "maximum")
    yield table("Weighted scores over the rows of nodes", heads, rows, numbers=range(1, 5))
    if found.left_out:
        yield el(
            "p", f"Out-of-tree plugins are missing, because they are not called twice: {', '.join(found.left_out)}."
        )


def _of_most(cells: Floats, weights: Sequence[int]) -> Floats:
    most = np.array([100.0 * max(weight, 1) for weight in weights])
    shares: Floats = cells / most
    return shares


def fullest(report: Report) -> Iterator[Child]:
    """Yield the nodes with the largest requested share of any resource."""
    usage = report.at_end.usage
    if not usage.nodes:
        yield el("p", "There is no node at the end.")
        return
    shares = {
        name: np.array(usage.requested[name]) / np.maximum(np.array(capacity), 1)
        for name, capacity in usage.allocatable.items()
        if name in usage.requested and any(usage.requested[name])
    }
    shares["pods"] = np.array(usage.pods) / np.maximum(np.array(usage.allowed_pods), 1)
    most = np.max(list(shares.values()), axis=0)
    order = sorted(range(len(usage.nodes)), key=lambda at: (-most[at], usage.nodes[at]))[:_FULLEST]
    rows = [
        (
            el("a", usage.nodes[at], href=node_address(usage.nodes[at])),
            usage.zones[at] or NONE,
            usage.conditions[at] or "ready",
            *(percent(float(share[at])) for share in shares.values()),
        )
        for at in order
    ]
    heads = ("node", "zone", "state", *shares)
    yield table(f"The {len(rows)} fullest of {len(usage.nodes):,} nodes", heads, rows, numbers=range(3, len(heads)))
