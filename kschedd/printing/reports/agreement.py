"""Output of `compare --mirror`, which compares a mirrored cluster's placements with the daemon's choices."""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.text.times import stamp
from kschedd.printing.columns.ages import span
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.printing.terminal.tables import Table, render

Raw = Mapping[str, Any]

_RESULTS: Final = {
    "equal": "the node is one of those that this daemon would choose",
    "race": "the same in another state of the last 2 s: decided before the latest changes were observed",
    "partial search": "another node has more points, but the search possibly ended before it",
    "lower score": "another node has more points",
    "rejected": "a filter rejects the node",
    "unknown node": "the mirror does not have the node",
}
_EXPLAINED: Final = frozenset(("equal", "race", "partial search"))


def differs(found: Raw) -> bool:
    """Return whether a placement differs, and the cause is neither a race nor a partial search."""
    return any(pods for result, pods in found["results"].items() if result not in _EXPLAINED)


def as_text(found: Raw, most: int, now: float, style: TerminalStyle) -> str:
    results = found["results"]
    evaluated = sum(results.values())
    since = f"since {stamp(found['since_s'])} ({span(now - found['since_s'])})"
    if not found["bound"]:
        return f"The mirrored cluster has bound no pod {since}.\n"
    lines = [f"{_pods(found['bound'])} bound {since}; {evaluated:,} evaluated."]
    if evaluated:
        lines.append(f"{results.get('equal', 0) / evaluated:.1%} of them are on a node that this daemon would choose.")
    if found["of_others"]:
        lines.append(f"{_pods(found['of_others'])} of schedulers without a profile here: not evaluated")
    if found["not_evaluated"]:
        lines.append(f"{_pods(found['not_evaluated'])} bound faster than they can be evaluated")
    counted = tuple((name, f"{results[name]:,}", text) for name, text in _RESULTS.items() if results.get(name))
    by_plugin = tuple((each["plugin"], each["result"], f"{each['pods']:,}") for each in found["plugins"])
    tables = (Table(("RESULT", "PODS", "MEANING"), counted), Table(("PLUGIN", "RESULT", "PODS"), by_plugin))
    lines += [line for table in tables if table.rows for line in ("", *render(table, style).splitlines())]
    latest = list(reversed(found["latest"]))
    if latest:
        lines += ["", f"latest differences ({min(len(latest), most)}, the newest first):"]
    for each in latest[:most]:
        here = ", ".join(each["expected"]) or "no node"
        lines += [
            f"~ {stamp(each['at_s'])} {each['pod']}: {each['node']} there, {here} here ({each['result']})",
            f"    {each['why']}",
        ]
    return "\n".join(lines) + "\n"


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count:,} pods"
