"""The method for the resource requests of all nodes, read from the scheduler's node table."""

from typing import Any

import attrs
import numpy as np

from kschedd.scheduling.driver import SchedulingDriver
from kschedd.service.cluster import ClusterBackend
from kschedd.service.nodes.answers import UsageAnswer
from kschedd.service.table import Call, Methods, method


@attrs.frozen(eq=False)
class UsageMethods(Methods):
    _cluster: ClusterBackend

    @method(
        "nodes.usage",
        reads=True,
        doc="Returns the requested resources of every node as the scheduler counts them, including pods that are "
        "about to be bound. The answer has one array per column; each node has the same index in all arrays.",
        answer=UsageAnswer,
    )
    async def usage(self, call: Call) -> Any:
        return await self._cluster.scheduler.query(node_usage)


def node_usage(driver: SchedulingDriver) -> UsageAnswer:
    """Return the columns of the answer, sorted by node name.

    The computation takes a few milliseconds for 5,000 nodes.
    """
    table = driver.machine.cluster.table
    ordered = sorted(table.row_of.items())
    rows = np.array([row for _, row in ordered], dtype=np.int64)
    zones = table.label("topology.kubernetes.io/zone")
    return UsageAnswer(
        nodes=[name for name, _ in ordered],
        zones=[zones.values[number] if number >= 0 else "" for number in zones.ids[rows].tolist()],
        cordoned=table.unschedulable[rows].tolist(),
        pods=table.pod_count[rows].tolist(),
        allowed_pods=table.allowed_pods[rows].tolist(),
        allocatable={name: table.allocatable[number][rows].tolist() for name, number in table.resources.items()},
        requested={name: table.requested[number][rows].tolist() for name, number in table.resources.items()},
    )
