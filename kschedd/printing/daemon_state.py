"""What the daemon says of itself as tables: who is connected, and how far its limits are used."""

from collections.abc import Mapping, Sequence
from typing import Any

from kschedd.printing.ages import span
from kschedd.printing.tables import Table

Raw = Mapping[str, Any]


def clients_table(clients: Sequence[Raw]) -> Table:
    """Who is connected: the system says which process a client on the Unix socket is."""
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
