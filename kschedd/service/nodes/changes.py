"""Methods for nodes: add copies, cordon, uncordon, taint."""

from collections.abc import Callable, Sequence
from itertools import count as numbers
from itertools import islice
from typing import Annotated, Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.similar_nodes import similar_csi_node, similar_node, similar_slice
from kschedd.controllers.kubelets.state import KUBELET, NONE, kubelet_state
from kschedd.service.cluster import ClusterBackend
from kschedd.service.errors import RpcError
from kschedd.service.execution import Executor
from kschedd.service.objects import editing as edit
from kschedd.service.objects.answers import ChangeAnswer
from kschedd.service.objects.editing import change_result
from kschedd.service.objects.parameters import DRY_RUN, OVERWRITE
from kschedd.service.params import Param
from kschedd.service.request import Request
from kschedd.service.table import Call, Methods, method
from kschedd.service.workers import GivenUp
from kschedd.store.cluster_api import ClusterWriter

_NODE = Param("name", "string", doc="the node's name")
MOST_ADDED: Final = 10_000


@attrs.frozen(eq=False)
class NodeMethods(Methods):
    _cluster: ClusterBackend

    @method(
        "nodes.add",
        (
            Param("like", "string", doc="the node to copy"),
            Param("count", "integer", False, 1, "number of nodes", (), 1, MOST_ADDED),
            Param(
                "prefix", "string|null", False, doc="prefix of the new nodes' names; null: the name of the copied node"
            ),
        ),
        doc="Creates copies of an existing node with its labels, taints, capacity, CSI drivers and devices. State "
        "that belongs to one node, such as addresses, a cordon or the condition NotReady, is not copied. Creates all "
        "copies or none.",
        returns="the names: the prefix and the first free numbers",
        answer=Sequence[Annotated[str, "name"]],
    )
    async def add(self, call: Call) -> Any:
        like, count, prefix = call["like"], call["count"], call["prefix"] or call["like"]
        executor = Executor.of(self._cluster, call)
        return await executor.aside(lambda store, given_up: _added(store, like, count, prefix, given_up))

    @method(
        "nodes.cordon",
        (_NODE, DRY_RUN),
        doc="Cordons a node: no more pods are scheduled to it; its present pods stay.",
        answer=ChangeAnswer,
        judged=True,
    )
    async def cordon(self, call: Call) -> Any:
        return await edit_node(self._cluster, call, lambda node: edit.cordon(node, True, call["dry_run"]))

    @method(
        "nodes.uncordon",
        (_NODE, DRY_RUN),
        doc="Uncordons a node: pods may be scheduled to it again.",
        answer=ChangeAnswer,
        judged=True,
    )
    async def uncordon(self, call: Call) -> Any:
        return await edit_node(self._cluster, call, lambda node: edit.cordon(node, False, call["dry_run"]))

    @method(
        "nodes.taint",
        (
            _NODE,
            Param(
                "taints",
                "string[]",
                doc="`key=value:NoSchedule` sets a taint; `key:NoExecute-` and `key-` remove taints",
            ),
            OVERWRITE,
        ),
        doc="Sets and removes taints of a node, either all of them or none.",
        answer=ChangeAnswer,
        judged=True,
    )
    async def taint(self, call: Call) -> Any:
        return await edit_node(self._cluster, call, lambda node: edit.taint(node, call["taints"], call["overwrite"]))


def _added(store: ClusterWriter, like: str, count: int, prefix: str, given_up: GivenUp) -> list[str]:
    """Create the nodes with their related objects; return their names. Raises ApiError."""
    node, drivers = store.get("Node", "", like), store.find("CSINode", "", like)
    devices = [each for each in store.list("ResourceSlice") if (each.raw.get("spec") or {}).get("nodeName") == like]
    there = {each.name for each in store.list("Node")}
    free = (name for number in numbers(1) if (name := f"{prefix}-{number}") not in there)
    names = list(islice(free, count))
    version = (node.status.get("nodeInfo") or {}).get("kubeletVersion")
    for name in names:
        given_up.check()
        made = similar_node(node.raw, name)
        if version:
            made["status"]["nodeInfo"] = {"kubeletVersion": version}
        store.create(made)
        if drivers is not None:
            store.create(similar_csi_node(drivers.raw, name))
        for each in devices:
            store.create(similar_slice(each.raw, name))
    return names


async def edit_node(cluster: ClusterBackend, call: Call, make: Callable[[Object], Request]) -> ChangeAnswer:
    """Execute the request that `make` creates for the node; return the answer about the change."""
    name = call["name"]
    executor = Executor.of(cluster, call)
    response = await executor.edit(lambda store: store.get("Node", "", name), lambda store, node: make(node))
    return change_result(response)


def check_simulated(node: Object) -> None:
    """Raise RpcError if the node has no simulated kubelet."""
    if kubelet_state(node) == NONE:
        why = f'node "{node.name}": its kubelet is not simulated ({KUBELET}: {NONE}); set its conditions manually'
        raise RpcError("conflict", why, {"name": node.name})
