"""Rejection of requests about placements by a mirror that may not read nodes.

Without nodes, every pod would be reported as unschedulable with the message "no nodes available to schedule pods".
"""

from collections.abc import Iterable
from typing import Final

from kschedd.service.daemon.process import DaemonState
from kschedd.service.errors import RpcError
from kschedd.service.table import Method

ABOUT_PLACEMENTS: Final = frozenset(
    (
        *("scheduler.explain", "scheduler.explain_group", "causes.explain", "causes.pending"),
        *("capacity.pods", "capacity.nodes", "capacity.compare"),
    )
)


def rejecting_without_nodes(methods: Iterable[Method], daemon: DaemonState) -> list[Method]:
    """Return the methods; methods about placements raise RpcError while the mirror may not read nodes."""

    def check() -> None:
        mirror = None if daemon.mirror is None else daemon.mirror()
        if mirror is not None and any(each.kind == "Node" for each in mirror.unread):
            raise RpcError(
                "forbidden",
                f"the mirror may not read the nodes of {mirror.server}, so placements are unknown: grant get, list and "
                'watch on "nodes" (examples/in-cluster/mirror.yaml) and start the mirror again',
            )

    return [method.checked(check) if method.name in ABOUT_PLACEMENTS else method for method in methods]
