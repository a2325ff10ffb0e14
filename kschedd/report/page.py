"""The file of a report: the page of a daemon with stored answers, and a summary of the run.

The summary needs no JavaScript: drawings are SVG, details are expandable elements, and columns of time have anchors for
links. The other views read the answers in the file.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from kschedd.causes.answers import ObjectNamed
from kschedd.page.files import one_file
from kschedd.report import page_nodes
from kschedd.report.drawing import count_top, lines, share_top, stack
from kschedd.report.frozen import answers_of
from kschedd.report.markup import Child, Markup, el, joined, text
from kschedd.report.model import Checked, Report
from kschedd.report.page_parts import (
    NONE,
    TIMES,
    chart,
    decision_link,
    lasting,
    many,
    percent,
    section,
    table,
    when,
)

_MOST_LINES: Final = 8


def page(report: Report) -> str:
    """Return the whole file. Equal reports result in equal files."""
    sections = [*_sections(report)]
    summary = joined(
        el("h1", report.title),
        el("dl", (joined(el("div", el("dt", name), el("dd", value))) for name, value in report.facts), cls="facts"),
        el(
            "nav",
            el("ul", (el("li", el("a", title, href=f"#{name}")) for name, title, _ in sections)),
            aria_label="Sections",
            cls="sections",
        ),
        (made for _, _, made in sections),
        el("footer", "Made by kschedd. This file is complete: nothing is loaded from anywhere."),
    )
    return one_file(text(report.title), summary, answers_of(report))


def _sections(report: Report) -> Iterator[tuple[str, str, Markup]]:
    made: list[tuple[str, str, Sequence[Child]]] = []
    if report.checked is not None:
        made.append(("checked", "Does it fit?", [*_checked(report.checked)]))
    made += [
        ("use", "Utilization", [*_use(report)]),
        ("nodes", "Nodes over time", [*page_nodes.maps(report)]),
        *((("pools", "Node pools", [*_pools(report)]),) if report.pools else ()),
        ("pending", "Pending pods", [*_pending(report)]),
        ("scores", "Scores", [*page_nodes.scores(report)]),
        ("zones", "Zones and skew", [*_zones(report)]),
        ("slowest", "Slowest decisions", [*_slowest(report)]),
        ("columns", "Attempts over time", [*_columns(report)]),
        ("fullest", "Fullest nodes", [*page_nodes.fullest(report)]),
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
    if displaced := [(each.pod, each.change, each.cause) for each in checked.changes if each.displaced]:
        yield table("Pods of the cluster that are moved, evicted or deleted", ("pod", "change", "cause"), displaced)
    if checked.usage:
        rows = [(name, percent(before), percent(after)) for name, before, after in checked.usage]
        yield table("Requested share of the nodes' capacity", ("resource", "before", "after"), rows, numbers=(1, 2))


# -- utilization ----------------------------------------------------------------------------------------------------


def _use(report: Report) -> Iterator[Child]:
    if not report.use:
        yield el("p", "The cluster has no nodes.")
        return
    shown = report.use[:_MOST_LINES]
    yield el("p", "Requests of pods as a share of the capacity of all nodes; the mean of each column of time.")
    top = share_top(max(use.most for use in shown))
    drawing = lines(
        "Utilization over time, by resource",
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
    yield table("", ("resource", "mean", "maximum", "at the end", "capacity"), rows, numbers=(1, 2, 3, 4))


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
    yield el("p", "Pending pods by the reason of their last attempt; the mean of each column of time.")
    if most > 0:
        top = count_top(most)
        drawing = stack(
            "Pending pods over time, by reason", [(each.reason, each.series) for each in report.pending], top
        )
        yield chart(drawing, report.columns, [many(top * part / 4) for part in range(5)])
    else:
        yield el("p", "Each scheduled pod got its node at the time at which it was created.")
    rows = [
        (
            joined(el("span", cls=f"key f{n % 9}"), each.reason),
            f"{each.end:,}",
            lasting(each.pod_s),
            f"{each.failures:,}",
            joined(
                ", ".join(each.pods[:2]) + (" …" if len(each.pods) > 2 else ""),
                joined(" ", decision_link(report.decisions[each.example], "why")) if each.example is not None else None,
            ),
        )
        for n, each in enumerate(report.pending)
    ]
    heads = ("reason", "at the end", f"pods {TIMES} time", "failed attempts", "examples")
    yield table("", heads, rows, numbers=(1, 2, 3))
    if report.at_end.pending:
        groups = [
            (
                f"{group.count + group.missing:,}",
                group.code,
                group.message,
                ", ".join(map(_named, group.workloads[:2])) + " …" * (len(group.workloads) > 2),
                NONE if group.remedy is None else group.remedy.summary,
            )
            for group in report.at_end.pending[:_MOST_LINES]
        ]
        heads = ("pods", "code", "cause", "workloads", "remedy")
        yield table("Pending at the end, by cause", heads, groups, numbers=(0,))


def _named(obj: ObjectNamed) -> str:
    return f"{obj.kind.lower()}/{obj.name}" + (f" in {obj.namespace}" if obj.namespace else "")


# -- the slowest decisions ------------------------------------------------------------------------------------------


def _slowest(report: Report) -> Iterator[Child]:
    if not report.slowest:
        yield el("p", "No pod waited: each scheduled pod got its node at the time at which it was created.")
        return
    chosen = [report.decisions[number] for number in report.slowest]
    timed = any(each.took_s is not None for each in chosen)
    yield el(
        "p",
        "The attempts that took longest, as measured, with the pod's waiting time if known."
        if timed
        else "The pods that waited longest for a node, from when they first entered the active queue.",
    )
    rows = [
        (
            decision_link(each, each.pod),
            NONE if each.waited_s is None else lasting(each.waited_s),
            *([NONE if each.took_s is None else f"{each.took_s * 1000:,.2f} ms"] if timed else []),
            str(each.attempt),
            f"{each.visited:,}",
            f"{each.feasible:,}",
            each.node,
        )
        for each in chosen
    ]
    heads = ("pod", "waited", *(["took"] if timed else []), "attempts", "evaluated nodes", "feasible", "node")
    yield table("", heads, rows, numbers=range(1, len(heads) - 1))


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
        caption = "The most unevenly spread workloads at the end"
        yield table(caption, heads, rows, numbers=range(1, len(heads)))


# -- columns of time ------------------------------------------------------------------------------------------------


def _columns(report: Report) -> Iterator[Child]:
    columns = report.columns
    rows = []
    for number, facts in enumerate(report.by_column):
        links = (joined(" ", decision_link(report.decisions[each], f"#{each}")) for each in facts.decisions)
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
        el(
            "div",
            el("table", el("thead", head), el("tbody", rows)),
            cls="wide",
            tabindex=0,
            role="group",
            aria_label="attempts by time",
        ),
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
        "The filters of an attempt reject the nodes that they evaluated. A search ends when enough nodes are feasible "
        "(percentageOfNodesToScore); the other nodes are not evaluated.",
        "The view Decision contains these attempts: the first two of each column, the first of each kind of reason, "
        "those whose pods waited longest, and a sample with scores.",
        "The other views show the state at the end. They need JavaScript.",
    ]
    if columns.virtual:
        lines.append(
            "Time is virtual: an attempt takes none. The same input and seed give the same file, byte for byte."
        )
    yield el("ul", (el("li", each) for each in (*lines, *report.notes)))
