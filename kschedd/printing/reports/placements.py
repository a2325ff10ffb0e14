"""Output of a summary of pods by namespace, workload and zone, which is printed before a long list of pods."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kschedd.printing.terminal.style import TerminalStyle
from kschedd.printing.terminal.tables import Table, render

LONG: Final = 20  # number of pods; shorter lists have no summary
_MOST_ROWS: Final = 10

Raw = Mapping[str, Any]


def summary_tables(summary: Raw, *, compared: bool) -> Iterator[tuple[Table, int]]:
    """Yield the tables with more than one row, each with the number of omitted rows.

    With `compared`, two states are compared. Without `compared`, only the second state counts.
    """
    namespaces: Sequence[Raw] = summary["namespaces"]
    some = compared and any(group["changed"] < group["pods"] for group in namespaces)
    for title, key in (("NAMESPACE", "namespaces"), ("WORKLOAD", "workloads")):
        groups = summary[key]
        if len(groups) > 1:
            heads = (title, "PODS", *["DIFFERENT"] * some, "PENDING")
            rows = tuple(
                (
                    group["name"] or "(no controller)",
                    f"{group['pods']:,}",
                    *[f"{group['changed']:,}"] * some,
                    _pending(group) if compared else f"{group['pending']:,}",
                )
                for group in groups[:_MOST_ROWS]
            )
            yield Table(heads, rows), len(groups) - len(rows)
    zones: Sequence[Raw] = summary["zones"]
    if any(zone["zone"] for zone in zones):
        heads = ("ZONE", *(("PODS BEFORE", "PODS AFTER") if compared else ("PODS",)))
        rows = tuple(
            (
                zone["zone"] or "(no zone)",
                *[f"{zone['before']:,}"] * compared,
                f"{zone['after']:,}",
            )
            for zone in zones[:_MOST_ROWS]
        )
        yield Table(heads, rows), len(zones) - len(rows)


def summary_text(summary: Raw, *, compared: bool, title: str = "") -> str:
    """Return the title and the tables as text, each table followed by an empty line; "" without tables."""
    parts = []
    for table, left_out in summary_tables(summary, compared=compared):
        more = f"... and {left_out:,} more (-o json lists all)\n" if left_out else ""
        parts.append(f"{render(table, TerminalStyle())}{more}\n")
    return (f"{title}\n" if parts and title else "") + "".join(parts)


def _pending(group: Raw) -> str:
    before, after = group["pending_before"], group["pending"]
    return f"{after:,}" if before == after else f"{before:,} -> {after:,}"
