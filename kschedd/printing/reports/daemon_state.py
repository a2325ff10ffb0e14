"""Tables of the daemon's state: connected clients, and limits with their present usage."""

from collections.abc import Mapping, Sequence
from typing import Any

from kschedd.printing.columns.ages import span
from kschedd.printing.terminal.tables import Table

Raw = Mapping[str, Any]


def limits_table(limits: Sequence[Raw]) -> Table:
    """Return each limit, its usage, and the effect of reaching it."""
    rows = [
        (
            str(bound["name"]),
            _amount(bound["limit"], bound["unit"]) + ("" if bound["limit"] == bound["default"] else " (set)"),
            _amount(bound["used"], bound["unit"]),
            _amount(bound["most"], bound["unit"]),
            str(bound["what"]),
            str(bound["reached"]),
        )
        for bound in limits
    ]
    return Table(("LIMIT", "AT", "USED", "PEAK", "OF WHAT", "WHEN REACHED"), tuple(rows))


def _amount(value: int | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "bytes" and value >= 1 << 10:
        return f"{value / (1 << 20):.3g} MiB" if value >= 1 << 20 else f"{value / (1 << 10):.3g} KiB"
    return f"{value} {unit}".rstrip()


def clients_table(clients: Sequence[Raw]) -> Table:
    """Return the connected clients. For a client on the Unix socket, the operating system identifies the process."""
    rows = [
        (
            str(client["number"]),
            str(client["user"]) + (" (read-only)" if client["read_only"] else ""),
            str(client["address"] or ("-" if client["pid"] is None else f"pid {client['pid']}, uid {client['uid']}")),
            span(client["connected_s"]),
            "-" if client["idle_s"] is None else span(client["idle_s"]),
            str(client["requests"]),
            str(client["streams"]),
            str(client["waiting_bytes"]),
        )
        for client in clients
    ]
    return Table(("CLIENT", "USER", "FROM", "CONNECTED", "IDLE", "REQUESTS", "STREAMS", "UNREAD BYTES"), tuple(rows))
