"""An explanation as text: for a terminal without colours, for scenario files, for whoever reads logs.

What is made here is read by people; programs read the map that `explain` returns.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_MOST_NODES = 40


def in_words(found: Mapping[str, Any]) -> str:
    """The whole explanation, several lines."""
    return "\n".join(_lines(found))


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"{found['pod']}: {_headline(found)}"
    if found["message"]:
        yield f"  {found['message']}"
    for note in found["notes"]:
        yield f"  ({note})"
    if found["gated_by"]:
        yield f"  held back by {found['gated_by']['plugin']}: {', '.join(found['gated_by']['reasons'])}"
    if found["pre_filter"]:
        yield f"  rejected everywhere by {found['pre_filter']['plugin']}: {', '.join(found['pre_filter']['reasons'])}"
    else:
        yield from _verdicts(found["verdicts"])
    if found["totals"]:
        yield from _scores(found)
    preemption = found["preemption"]
    if preemption:
        victims = ", ".join(preemption["victims"]) or "pods that are terminating already"
        yield f"preemption: {victims} would make way on {preemption['node']}"
    if found["would_fit_if"]:
        yield "it would fit if"
        yield from (f"  - {sentence}" for sentence in found["would_fit_if"])
    decision = found["decision"]
    if decision:
        yield "as it was decided: " + ", ".join(
            f"{name} {value}" for name, value in decision.items() if value not in ("", None)
        )


def _headline(found: Mapping[str, Any]) -> str:
    if found["node"]:
        return f"on {found['node']}"
    if found["chosen"]:
        return f"would go to {found['chosen']}"
    if found["ties"]:
        return f"would go to one of {', '.join(found['ties'][:8])}{', ...' if len(found['ties']) > 8 else ''}"
    return "fits nowhere"


def _verdicts(verdicts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    rows = [("NODE", "PLUGIN", "VERDICT", "REASONS")]
    for verdict in verdicts[:_MOST_NODES]:
        if verdict["plugin"] is None:
            rows.append((verdict["node"], "-", "fits", ""))
            continue
        crowd = f" (with {', '.join(verdict['nominated'])} nominated)" if verdict["nominated"] else ""
        rows.append((verdict["node"], verdict["plugin"], verdict["code"], ", ".join(verdict["reasons"]) + crowd))
        rows += [("", also["plugin"], also["code"], ", ".join(also["reasons"])) for also in verdict["also"]]
    yield from _table(rows)
    if len(verdicts) > _MOST_NODES:
        yield f"  ... and {len(verdicts) - _MOST_NODES} more nodes"


def _scores(found: Mapping[str, Any]) -> Iterator[str]:
    plugins = list(found["scores"])
    yield "scores (raw -> normalized x weight)"
    rows = [("NODE", *plugins, "TOTAL")]
    nodes = sorted(found["totals"], key=lambda node: -found["totals"][node])
    for node in nodes[:_MOST_NODES]:
        cells = [found["scores"][plugin][node] for plugin in plugins]
        weights = [found["weights"][plugin] for plugin in plugins]
        said = [f"{c['raw']} -> {c['normalized']}x{w}" for c, w in zip(cells, weights, strict=True)]
        rows.append((node, *said, str(found["totals"][node])))
    yield from _table(rows)


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield ("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))).rstrip()
