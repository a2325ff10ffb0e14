"""Methods over nodes: more of a kind, cordon, uncordon, taint."""

from itertools import count as numbers
from itertools import islice
from typing import Annotated, Any, Final

import attrs

from kschedd.api.similar_nodes import similar_csi_node, similar_node, similar_slice
from kschedd.service.cluster import ClusterBackend
from kschedd.service.execution import Executor
from kschedd.service.nodes.editing import edit_node
from kschedd.service.objects import editing as edit
from kschedd.service.objects.answers import ChangeAnswer
from kschedd.service.objects.parameters import DRY_RUN, OVERWRITE
from kschedd.service.params import Param
from kschedd.service.table import Call, Method
from kschedd.service.workers import GivenUp
from kschedd.store.cluster_api import ClusterWriter

_NODE = Param("name", "string", doc="the node's name")
MOST_ADDED: Final = 10_000


@attrs.frozen(eq=False)
class NodeMethods:
    _cluster: ClusterBackend

    def table(self) -> list[Method]:
        return [
            Method(
                "nodes.add",
                self.add,
                (
                    Param("like", "string", doc="the node that they are to be like"),
                    Param("count", "integer", False, 1, "how many", (), 1, MOST_ADDED),
                    Param("prefix", "string|null", False, doc="what their names begin with; null: that node's name"),
                ),
                doc="Creates nodes like one that is there: its labels, taints, capacity, CSI drivers and devices; not "
                "what is so of that node alone or now, such as its addresses, that it is cordoned, or not ready. "
                "All of them, or none.",
                returns="the prefix and the first numbers that are free",
                answer=list[Annotated[str, "name"]],
            ),
            Method(
                "nodes.cordon",
                self.cordon,
                (_NODE, DRY_RUN),
                doc="Lets no more pods onto a node; those on it stay.",
                answer=ChangeAnswer,
            ),
            Method(
                "nodes.uncordon",
                self.uncordon,
                (_NODE, DRY_RUN),
                doc="Lets pods onto a node again.",
                answer=ChangeAnswer,
            ),
            Method(
                "nodes.taint",
                self.taint,
                (
                    _NODE,
                    Param(
                        "taints", "string[]", doc="`key=value:NoSchedule` sets one; `key:NoExecute-`, `key-` take away"
                    ),
                    OVERWRITE,
                ),
                doc="Sets and takes away taints of a node, all of them or none.",
                answer=ChangeAnswer,
            ),
        ]

    async def add(self, call: Call) -> Any:
        like, count, prefix = call["like"], call["count"], call["prefix"] or call["like"]
        executor = Executor.of(self._cluster, call)
        return await executor.aside(lambda store, given_up: _added(store, like, count, prefix, given_up))

    async def cordon(self, call: Call) -> Any:
        return await edit_node(self._cluster, call, lambda node: edit.cordon(node, True, call["dry_run"]))

    async def uncordon(self, call: Call) -> Any:
        return await edit_node(self._cluster, call, lambda node: edit.cordon(node, False, call["dry_run"]))

    async def taint(self, call: Call) -> Any:
        return await edit_node(self._cluster, call, lambda node: edit.taint(node, call["taints"], call["overwrite"]))


def _added(store: ClusterWriter, like: str, count: int, prefix: str, given_up: GivenUp) -> list[str]:
    """Create the nodes, with what belongs to each; their names. Raises ApiError."""
    node, drivers = store.get("Node", "", like), store.find("CSINode", "", like)
    devices = [each for each in store.list("ResourceSlice") if (each.raw.get("spec") or {}).get("nodeName") == like]
    there = {each.name for each in store.list("Node")}
    free = (name for number in numbers(1) if (name := f"{prefix}-{number}") not in there)
    names = list(islice(free, count))
    for name in names:
        given_up.check()
        store.create(similar_node(node.raw, name))
        if drivers is not None:
            store.create(similar_csi_node(drivers.raw, name))
        for each in devices:
            store.create(similar_slice(each.raw, name))
    return names
