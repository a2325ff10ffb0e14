"""Output of the differences of a fork: lines that begin with +, ~ or -, and a summary.

+  added: placed pods, new nodes and objects
~  changed: pods that moved to another node, nodes, objects, the configuration
-  lost: pods that are no longer placed or were deleted, nodes, objects
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kschedd.printing.columns.ages import span
from kschedd.printing.reports.placements import LONG, summary_text
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.printing.terminal.tables import flowing

_COLORS: Final = {"+": "green", "~": "yellow", "-": "red"}
_COUNTED: Final = ("moved", "placed", "pending", "gone", "orphaned", "ended")

Raw = Mapping[str, Any]


def diff_text(diff: Raw, style: TerminalStyle, most: int) -> str:
    """Return all differences, with at most `most` pods."""
    lines = [*_pods(diff["pods"][:most], style)]
    if len(diff["pods"]) >= LONG:
        summary = summary_text(diff["summary"], compared=True, title="Changed pods:")
        lines = [_summary(diff), "", *summary.splitlines(), *lines]
    if len(diff["pods"]) > most:
        lines.append(f"  ... and {len(diff['pods']) - most} more pods (--limit)")
    lines += _others(diff, style)
    if not lines:
        return "nothing is different\n"
    lines += [_usage(diff["usage"]), _summary(diff)]
    return flowing(style.plain("".join(f"{line}\n" for line in lines)), style)


def is_different(diff: Raw) -> bool:
    return any(diff[part] for part in ("pods", "nodes", "objects", "config"))


def without_place(diff: Raw) -> list[Raw]:
    """Return the pods that have no node now, and that had one before or did not exist."""
    return [pod for pod in diff["pods"] if pod["change"] == "pending"]


def _pods(pods: Sequence[Raw], style: TerminalStyle) -> Iterator[str]:
    for pod in pods:
        text = f"pod {pod['namespace']}/{pod['name']}"
        successor = f" as {pod['successor']}" if pod["successor"] else ""
        change = pod["change"]
        if change == "moved":
            text += f": {pod['node'] or 'pending'} → {pod['to']}{successor}"
        elif change == "placed":
            text += f" → {pod['to']}"
        elif change == "pending":
            text += f": {pod['node']} → pending{successor}" if pod["node"] else " pending"
        else:
            text += f" {change}{' from ' + pod['node'] if pod['node'] else ''}"
        yield _line(pod["sign"], text, style)
        for why in (pod["placement"], pod["cause"], pod["why"]):
            if why:
                yield f"    {why}"


def _others(diff: Raw, style: TerminalStyle) -> Iterator[str]:
    for node in diff["nodes"]:
        yield _line(node["sign"], f"node {node['name']}: {', '.join(node['what'])}", style)
    for obj in diff["objects"]:
        where = f"{obj['namespace']}/" if obj["namespace"] else ""
        what = f": {', '.join(obj['what'])}" if obj["what"] else ""
        yield _line(obj["sign"], f"{obj['kind'].lower()} {where}{obj['name']}{what}", style)
    for change in diff["config"]:
        yield _line("~", f"configuration: {change}", style)
    for budget in diff["budgets"]:
        pods = ", ".join(budget["pods"][:5]) + (", ..." if len(budget["pods"]) > 5 else "")
        yield f"! budget {budget['namespace']}/{budget['name']} allows no disruption: it keeps {pods}"


def _line(sign: str, text: str, style: TerminalStyle) -> str:
    return style.paint(f"{sign} {text}", _COLORS[sign])


def _usage(usage: Sequence[Raw]) -> str:
    return "requested: " + ", ".join(
        f"{each['resource']} {100 * each['before']:.1f} % → {100 * each['after']:.1f} %" for each in usage
    )


def _summary(diff: Raw) -> str:
    counted = Counter(pod["change"] for pod in diff["pods"])
    counts = ", ".join(f"{counted[change]} {change}" for change in _COUNTED if counted[change]) or "none different"
    after = f", after {span(diff['elapsed_s'])}" if diff["elapsed_s"] >= 1 else ""
    return f"pods: {counts}{after}"
