"""The page: a report's sections in one HTML file that loads no other resource.

The page needs no JavaScript: drawings are SVG, details are expandable elements, and rows and columns of tables have
anchors for links. The script only adds a description of the cell under the pointer or the keyboard cursor.
"""

import json
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any, Final

import numpy as np

from kschedd.report import page_decisions, page_nodes
from kschedd.report.drawing import count_top, lines, share_top, stack
from kschedd.report.markup import Child, Markup, el, joined
from kschedd.report.model import Checked, Report
from kschedd.report.page_parts import NONE, TIMES, chart, lasting, many, percent, section, table, when

_MOST_LINES: Final = 8
_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src 'unsafe-inline'; img-src data:">
<meta name="generator" content="kschedd">
"""


def page(report: Report) -> str:
    """Return the whole file. Return the page. Equal reports result in equal pages."""
    sections = [*_sections(report)]
    contents = el("nav", el("ul", (el("li", el("a", title, href=f"#{name}")) for name, title, _ in sections)))
    body = joined(
        el(
            "header",
            el("h1", report.title),
            el("dl", (joined(el("div", el("dt", name), el("dd", value))) for name, value in report.facts), cls="facts"),
            contents,
        ),
        el("main", (made for _, _, made in sections)),
        el("aside", id="panel", hidden=True, aria_live="polite"),
        el("footer", "Made by kschedd. This file is complete: nothing is loaded from anywhere."),
    )
    return (
        _PAGE
        + el("title", report.title)
        + "\n"
        + el("style", Markup(_asset("page.css")))
        + "\n</head>\n<body>\n"
        + body
        + "\n"
        + el("script", Markup(_for_script(_cells(report))), type="application/json", id="cells")
        + "\n"
        + el("script", Markup(_asset("page.js")))
        + "\n</body>\n</html>\n"
    )


def _asset(name: str) -> str:
    return (files("kschedd.report") / name).read_text(encoding="utf-8")


def _for_script(value: Any) -> str:
    """Return JSON that cannot close the HTML element around it."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _sections(report: Report) -> Iterator[tuple[str, str, Markup]]:
    made: list[tuple[str, str, Sequence[Child]]] = []
    if report.checked is not None:
        made.append(("checked", "Does it fit?", [*_checked(report.checked)]))
    made += [
        ("use", "Utilisation", [*_use(report)]),
        ("nodes", "Nodes over time", [*page_nodes.maps(report)]),
        *((("pools", "Node pools", [*_pools(report)]),) if report.pools else ()),
        ("pending", "Pending pods", [*_pending(report)]),
        ("funnels", "From all nodes to one", [*page_decisions.funnels(report)]),
        ("scores", "Scores", [*page_nodes.scores(report)]),
        ("zones", "Zones and skew", [*_zones(report)]),
        ("slowest", "Slowest decisions", [*page_decisions.slowest(report)]),
        ("columns", "What happened when", [*_columns(report)]),
        ("groups", "Nodes", [*page_nodes.groups(report)]),
        ("decisions", "Decisions", [*page_decisions.decisions(report)]),
        ("rules", "How this was made", [*_rules(report)]),
    ]
    for name, title, content in made:
        yield name, title, section(name, title, *content)


# -- what check found -----------------------------------------------------------------------------------------------


def _checked(checked: Checked) -> Iterator[Child]:
    yield el("p", checked.verdict, cls="verdict good" if checked.fits else "verdict bad")
    for each in checked.unplaced:
        remedy = el("p", "What would help: ", each.remedy, cls="remedy") if each.remedy else None
        yield el("div", el("h3", each.pod), el("p", each.why), remedy, cls="card")
    if checked.troubles:
        yield el("ul", (el("li", each) for each in checked.troubles))
    if checked.displaced:
        yield table("Pods of the cluster that are moved, evicted or go", ("pod", "what", "why"), checked.displaced)
    if checked.usage:
        rows = [(name, percent(before), percent(after)) for name, before, after in checked.usage]
        yield table("Requested share of the nodes' capacity", ("resource", "before", "after"), rows, numbers=(1, 2))


# -- utilisation ----------------------------------------------------------------------------------------------------


def _use(report: Report) -> Iterator[Child]:
    if not report.use:
        yield el("p", "The cluster has no nodes.")
        return
    shown = report.use[:_MOST_LINES]
    yield el("p", "What pods request of what all nodes have, as the mean of each column of time.")
    top = share_top(max(use.most for use in shown))
    drawing = lines(
        "Utilisation over time, by resource",
        [(use.resource, use.series) for use in shown],
        top,
        "; ".join(f"{use.resource}: mean {percent(use.mean)}, at the end {percent(use.end)}" for use in shown),
    )
    yield chart(drawing, report.columns, [percent(top * part / 4, 0 if top >= 0.04 else 2) for part in range(5)])
    rows = [
        (
            joined(el("span", cls=f"key f{n % 9}"), use.resource),
            percent(use.mean),
            joined(percent(use.most), " ", _column_link(report, use.series)),
            percent(use.end),
            use.capacity,
        )
        for n, use in enumerate(shown)
    ]
    yield table("", ("resource", "mean", "most", "at the end", "capacity"), rows, numbers=(1, 2, 3, 4))


def _column_link(report: Report, series: Any) -> Markup:
    column = int(np.argmax(series))
    return el("a", f"at {when(report.columns, column * report.columns.width_s)}", href=f"#t-{column}")


# -- node pools -----------------------------------------------------------------------------------------------------


def _pools(report: Report) -> Iterator[Child]:
    shown = report.pools[:_MOST_LINES]
    yield el("p", "The number of nodes of each pool, as the mean of each column of time.")
    top = count_top(max(float(pool.series.max()) for pool in shown))
    drawing = lines("Nodes of each pool over time", [(pool.name, pool.series) for pool in shown], top)
    yield chart(drawing, report.columns, [many(top * part / 4) for part in range(5)])
    rows = [
        (
            joined(el("span", cls=f"key f{n % 9}") if n < len(shown) else None, pool.name),
            *(f"{count:,}" for count in (pool.launched, pool.removed, pool.nodes)),
            f"{pool.node_hours:,.1f}",
            f"{pool.cost:,.2f}",
        )
        for n, pool in enumerate(report.pools)
    ]
    if len(report.pools) > 1:
        total = (
            "all pools",
            f"{sum(pool.launched for pool in report.pools):,}",
            f"{sum(pool.removed for pool in report.pools):,}",
            f"{sum(pool.nodes for pool in report.pools):,}",
            f"{sum(pool.node_hours for pool in report.pools):,.1f}",
            f"{sum(pool.cost for pool in report.pools):,.2f}",
        )
        rows.append(total)
    heads = ("pool", "launched", "removed", "at the end", "node hours", "cost")
    yield table("", heads, rows, numbers=range(1, len(heads)))


# -- pending --------------------------------------------------------------------------------------------------------


def _pending(report: Report) -> Iterator[Child]:
    if not report.pending:
        yield el("p", "No pod was pending.")
        return
    total = np.sum([each.series for each in report.pending], axis=0)
    most = float(total.max())
    yield el("p", "How many pods had no node, by what their last attempt failed for; the mean of each column of time.")
    if most > 0:
        top = count_top(most)
        drawing = stack(
            "Pending pods over time, by reason", [(each.reason, each.series) for each in report.pending], top
        )
        yield chart(drawing, report.columns, [many(top * part / 4) for part in range(5)])
    else:
        yield el("p", "Every pod that got a node got it in the moment in which it came.")
    rows = [
        (
            joined(el("span", cls=f"key f{n % 9}"), each.reason),
            f"{each.end:,}",
            lasting(each.pod_s),
            f"{each.failures:,}",
            joined(
                ", ".join(each.pods[:2]) + (" …" if len(each.pods) > 2 else ""),
                joined(" ", el("a", "why", href=f"#d-{each.example}")) if each.example is not None else None,
            ),
        )
        for n, each in enumerate(report.pending)
    ]
    heads = ("reason", "at the end", f"pods {TIMES} time", "failed attempts", "such as")
    yield table("", heads, rows, numbers=(1, 2, 3))
    if report.causes:
        shown = report.causes[:_MOST_LINES]
        groups = [
            (f"{each.pods:,}", each.code, each.cause, ", ".join(each.workloads[:2]) + " …" * (len(each.workloads) > 2))
            for each in shown
        ]
        yield table("Pending at the end, by cause", ("pods", "code", "cause", "workloads"), groups, numbers=(0,))
    for explained in report.explained:
        yield el(
            "details",
            el("summary", "What is wrong with ", el("b", explained.workload), ", and what would help"),
            el("pre", explained.text, tabindex="0"),
        )


# -- zones ----------------------------------------------------------------------------------------------------------


def _zones(report: Report) -> Iterator[Child]:
    if not report.zones:
        yield el("p", "No node has the label topology.kubernetes.io/zone.")
        return
    shown = report.zones[:_MOST_LINES]
    most = count_top(max(float(zone.series.max()) for zone in shown))
    drawing = lines("Pods by zone over time", [(zone.name, zone.series) for zone in shown], most)
    yield chart(drawing, report.columns, [many(most * part / 4) for part in range(5)])
    resources = list(dict.fromkeys(name for zone in report.zones for name in zone.use))
    rows = [
        (
            joined(el("span", cls=f"key f{n % 9}") if n < len(shown) else None, zone.name),
            f"{zone.nodes:,}",
            f"{zone.pods:,}",
            *(percent(zone.use[name]) if name in zone.use else NONE for name in resources),
        )
        for n, zone in enumerate(report.zones)
    ]
    yield table("", ("zone", "nodes", "pods", *resources), rows, numbers=range(1, len(resources) + 3))
    if report.spread:
        heads = ("workload", *(zone.name for zone in report.zones), "skew")
        rows = [(each.workload, *map(str, each.pods), str(each.skew)) for each in report.spread]
        caption = "Workloads by how unevenly their pods stand over the zones, at the end"
        yield table(caption, heads, rows, numbers=range(1, len(heads)))


# -- columns of time ------------------------------------------------------------------------------------------------


def _columns(report: Report) -> Iterator[Child]:
    columns = report.columns
    rows = []
    for number, facts in enumerate(report.by_column):
        links = (joined(" ", el("a", f"#{each}", href=f"#d-{each}")) for each in facts.decisions)
        rows.append(
            el(
                "tr",
                el("th", when(columns, number * columns.width_s), scope="row"),
                *(
                    el("td", f"{count:,}", cls="n")
                    for count in (facts.attempts, facts.placed, facts.failed, facts.preempted)
                ),
                el("td", links),
                id=f"t-{number}",
            )
        )
    heads = ("from", "attempts", "placed", "failed", "preempted", "first decisions")
    head = el("tr", (el("th", each, scope="col") for each in heads))
    yield el(
        "details",
        el("summary", f"{columns.count} columns of {lasting(columns.width_s)}"),
        el("div", el("table", el("thead", head), el("tbody", rows)), cls="wide"),
        open=columns.count <= 12,
    )


# -- rules ----------------------------------------------------------------------------------------------------------


def _rules(report: Report) -> Iterator[Child]:
    columns = report.columns
    lines = [
        f"Time is drawn in {columns.count} columns of {lasting(columns.width_s)}. A run begins with columns of one "
        "second; whenever 300 are used, neighboring columns are merged. A column shows the mean of an amount over its "
        "time.",
        f"Nodes are drawn in {len(report.groups)} rows of up to {report.nodes_in_row} neighbors by name within a zone. "
        "A row shows the mean of its nodes, deleted nodes included.",
        "A step of a funnel shows how many nodes a plugin rejected of those that it evaluated. A search ends once "
        "enough nodes fit (percentageOfNodesToScore); the other nodes are not evaluated.",
        "These attempts are shown in detail: the first two of each column, the first of each kind of reason, those "
        "whose pods waited longest, and a sample with scores.",
    ]
    if columns.virtual:
        lines.append(
            "Time is virtual: an attempt takes none. The same input and seed give the same file, byte for byte."
        )
    yield el("ul", (el("li", each) for each in (*lines, *report.notes)))


# -- for the script -------------------------------------------------------------------------------------------------


def _cells(report: Report) -> dict[str, Any]:
    columns = report.columns
    return {
        "columns": [when(columns, number * columns.width_s) for number in range(columns.count)],
        "facts": [[each.attempts, each.placed, each.failed, each.preempted] for each in report.by_column],
        "first": [list(each.decisions) for each in report.by_column],
        "rows": [group.label for group in report.groups],
        "zones": [group.zone for group in report.groups],
        **page_nodes.cells(report),
    }
