"""The dashboard as lines of a screen. The lines are a pure function of the data, the view, and the screen's size.

Nodes are shown as bars with their names if all of them fit. If not all nodes fit, a heat map shows one cell for each
node, or for every few nodes. The letter of a cell has the same meaning as its color, so that no information is lost
without colors.
"""

from collections.abc import Sequence
from math import ceil

import attrs

from kschedd.printing.terminal.safe import safe
from kschedd.printing.terminal.tables import width_of
from kschedd_repl.dashboard.data import PLACES, DashboardData, DashboardPane, DashboardView, NodeColumns, Raw
from kschedd_repl.prompt.status_bar import StatusBar

Fragment = tuple[str, str]  # style name, text
Line = list[Fragment]

_BLOCKS = "▁▂▃▄▅▆▇█"
_PLAIN_BLOCKS = "_.-=+*%#"
_BAR_WIDTH = 38  # width of a node that is shown as a bar, including its name
_LEAST_DECISIONS = 3


@attrs.frozen
class ScreenSize:
    width: int
    height: int
    unicode: bool = True


@attrs.frozen
class NodeLayout:
    """A layout of nodes: There are `each` nodes per cell, and `columns` cells of `width` characters per row."""

    bars: bool
    each: int
    columns: int
    width: int
    rows: int


def node_layout(count: int, size: ScreenSize, rows: int) -> NodeLayout:
    """Return the most spacious layout in which `count` nodes fit into this number of rows."""
    wide = max(size.width // _BAR_WIDTH, 1)
    if count <= wide * rows:
        return NodeLayout(True, 1, wide, size.width // wide, min(rows, max(ceil(count / wide), 1)))
    for width in (3, 2, 1):
        columns = max((size.width - 2) // width, 1)
        if count <= columns * rows:
            return NodeLayout(False, 1, columns, width, ceil(count / columns))
    columns = max(size.width - 2, 1)
    each = ceil(count / (columns * rows))
    return NodeLayout(False, each, columns, 1, ceil(ceil(count / each) / columns))


def screen_lines(data: DashboardData, view: DashboardView, size: ScreenSize) -> list[Line]:
    """Return the lines of the screen, exactly one for each row and at most as wide as the screen."""
    lines = pane_lines(view.panes[-1], view, size) if view.panes else overview_lines(data, view, size)
    lines = lines[: size.height] + [[] for _ in range(size.height - len(lines))]
    return [cut(line, size) for line in lines]


# -- the overview ---------------------------------------------------------------------------------------------------


def room_for_nodes(size: ScreenSize) -> int:
    """Return the number of screen rows that remain for the nodes beside the other parts of the dashboard."""
    return max(size.height - len(PLACES) - 6 - _LEAST_DECISIONS, 1)


def overview_lines(data: DashboardData, view: DashboardView, size: ScreenSize) -> list[Line]:
    lines = [_title(data, size), *_queue(data, size)[: max(size.height - 12, 1)]]
    lines.append(_heading(_nodes_heading(data.nodes, view), size))
    layout = node_layout(len(data.nodes.names), size, room_for_nodes(size))
    lines += _nodes(data.nodes, view, layout, size)
    lines.append(_chosen(data.nodes, view))
    lines.append(_heading("latest decisions", size))
    decisions = list(data.decisions or data.status.get("last_decisions") or ())[::-1]
    room = max(size.height - len(lines) - 1, 0)
    lines += [_decision(decision, size) for decision in decisions[:room]]
    lines += [[] for _ in range(room - len(decisions))]
    lines.append(_keys("q leave  ? help  arrows choose  Enter look into  r resource  u pending", view))
    return lines


def _title(data: DashboardData, size: ScreenSize) -> Line:
    bar = StatusBar(data.info, data.status, data.clock)
    sign = " │ " if size.unicode else " | "
    status = data.status
    parts = [
        f"{status.get('nodes', 0)} nodes",
        f"{status.get('pods', 0)} pods",
        f"{status.get('scheduled', 0)} scheduled",
        f"{status.get('failed_attempts', 0)} failed",
        *bar.time_parts(),
    ]
    state = "  NO DAEMON: waiting for it" if not data.connected else f"  STOPPED: {safe(bar.stopped_at)}"
    state = state if not data.connected or bar.stopped_at else ""
    while len(parts) > 2 and width_of(f" kschedd{state}{sign}{sign.join(parts)}") > size.width:
        parts.pop()  # the seed, then the time, then the totals
    line: Line = [("class:title", " kschedd"), ("", sign + sign.join(parts))]
    if state:
        line.insert(1, ("class:stopped", state))
    return line


def _queue(data: DashboardData, size: ScreenSize) -> list[Line]:
    lines: list[Line] = []
    for name, label in (*((place, place) for place in PLACES), ("decisions_per_s", "decisions/s")):
        samples = data.samples.get(name, ())
        now = samples[-1] if samples else 0.0
        room = max(size.width - 24, 0)
        lines.append(
            [("class:label", f" {label:<13}"), ("", f"{now:>7.0f}  "), ("class:spark", spark(samples, room, size))]
        )
    return lines


def spark(samples: Sequence[float], room: int, size: ScreenSize) -> str:
    """Return the latest samples as a sparkline, scaled to the highest sample; it is flat if all samples are zero."""
    shown = samples[-room:] if room else ()
    signs = _BLOCKS if size.unicode else _PLAIN_BLOCKS
    highest = max(shown, default=0.0)
    if highest <= 0:
        return signs[0] * len(shown)
    last = len(signs) - 1
    return "".join(signs[0 if value <= 0 else max(1, round(value / highest * last))] for value in shown)


def _nodes_heading(nodes: NodeColumns, view: DashboardView) -> str:
    return f"nodes by {view.resource} requested: {nodes.total(view.resource):.0%} of all"


def _nodes(nodes: NodeColumns, view: DashboardView, layout: NodeLayout, size: ScreenSize) -> list[Line]:
    if not nodes.names:
        return [[("class:label", " there are no nodes")]]
    shares = nodes.shares(view.resource)
    chosen = view.chosen(nodes)
    lines: list[Line] = []
    per_row = layout.columns * layout.each
    for start in range(0, len(shares), per_row):
        line: Line = [("", " ")]
        for first in range(start, min(start + per_row, len(shares)), layout.each):
            group = range(first, min(first + layout.each, len(shares)))
            style = "class:chosen " if chosen in group else ""
            if layout.bars:
                line += _bar(nodes, first, shares[first], style, layout.width, size)
            else:
                line.append(_cell(nodes, group, shares, style, layout.width))
        lines.append(line)
    return lines


def _bar(nodes: NodeColumns, place: int, share: float, chosen: str, width: int, size: ScreenSize) -> Line:
    """Return a node as a bar, such as `node-a1 ████░░░░ 52%`."""
    name = nodes.names[place]
    room = max(width - 14, 6)
    shown = name if len(name) <= room // 2 else name[: max(room // 2 - 1, 1)] + "~"
    length = max(width - room // 2 - 9, 3)
    full = min(round(share * length), length)
    signs = "█░" if size.unicode else "#."
    mark = "c" if nodes.cordoned[place] else " "
    return [
        (chosen + ("class:cordoned" if nodes.cordoned[place] else ""), f"{shown:<{room // 2}}{mark}"),
        (heat_style(share), signs[0] * full),
        ("class:label", signs[1] * (length - full)),
        ("", f" {share:>4.0%}  "),
    ]


def _cell(nodes: NodeColumns, group: range, shares: Sequence[float], chosen: str, width: int) -> Fragment:
    """Return a cell for the fullest of its nodes: a digit for tens of percent, X for full, c for cordoned."""
    share = max(shares[place] for place in group)
    letter = "c" if all(nodes.cordoned[place] for place in group) else heat_letter(share)
    return (chosen + heat_style(share), f"{letter:<{width}}" if width < 3 else f"{letter} ".rjust(width))


def heat_letter(share: float) -> str:
    return "X" if share >= 0.995 else str(int(share * 10))


def heat_style(share: float) -> str:
    """Return the style of a share, from heat0 (empty) to heat5 (full)."""
    return f"class:heat{5 if share >= 0.95 else min(ceil(share * 5), 4)}"


def _chosen(nodes: NodeColumns, view: DashboardView) -> Line:
    place = view.chosen(nodes)
    if place < 0:
        return []
    amounts = [f"{name} {nodes.amounts(name, place)}" for name in ("cpu", "memory", "pods")]
    zone = f" {nodes.zones[place]}" if nodes.zones[place] else ""
    cordoned = "  cordoned" if nodes.cordoned[place] else ""
    return [("class:title", f" {nodes.names[place]}"), ("", f"{zone}  {'  '.join(amounts)}{cordoned}")]


def _decision(decision: Raw, size: ScreenSize) -> Line:
    arrow = "→" if size.unicode else "->"
    pod, node = safe(str(decision.get("pod"))), decision.get("node")
    if node:
        score = decision.get("score")
        more = f"  score {score}" if score is not None else ""
        return [("", f" {pod} "), ("class:good", f"{arrow} {safe(str(node))}"), ("class:label", more)]
    return [("", f" {pod} "), ("class:bad", "no node"), ("", f"  {safe(str(decision.get('message') or ''))}")]


# -- panes ----------------------------------------------------------------------------------------------------------


def room_in_pane(size: ScreenSize) -> int:
    return max(size.height - 2, 1)


def pane_lines(pane: DashboardPane, view: DashboardView, size: ScreenSize) -> list[Line]:
    lines: list[Line] = [_heading(pane.title, size)]
    room = room_in_pane(size)
    shown = pane.lines[pane.top : pane.top + room]
    if pane.loading:
        shown = ("...",)
    for place, text in enumerate(shown, pane.top):
        style = "class:chosen" if pane.keys and place == pane.selected else ""
        lines.append([(style, f" {safe(text)[pane.left :]}")])
    lines += [[] for _ in range(room - len(shown))]
    keys = "q back  arrows move"
    if pane.keys:
        keys += "  Enter look into  e explain"
    elif pane.source[0] == "pod":
        keys += "  e explain"
    elif pane.source[0] == "node":
        keys += "  d describe"
    lines.append(_keys(keys, view))
    return lines


# -- lines ----------------------------------------------------------------------------------------------------------


def _heading(text: str, size: ScreenSize) -> Line:
    sign = "─" if size.unicode else "-"
    return [("class:heading", f"{sign * 2} {text} {sign * max(size.width - width_of(text) - 4, 0)}")]


def _keys(text: str, view: DashboardView) -> Line:
    return [("class:keys", f" {view.message or text} ")]


def cut(line: Line, size: ScreenSize) -> Line:
    """Return the line, cut at the edge of the screen; a mark at its end shows that it goes on."""
    if width_of("".join(text for _, text in line)) <= size.width:
        return line
    mark = "…" if size.unicode else ">"
    kept: Line = []
    left = size.width - 1
    for style, text in line:
        if width_of(text) > left:
            while text and width_of(text) > left:
                text = text[: max(len(text) - max(width_of(text) - left, 1), 0)]
            kept.append((style, text))
            break
        kept.append((style, text))
        left -= width_of(text)
    return [*kept, ("class:label", mark)]
