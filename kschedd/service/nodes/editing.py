"""Changes of one node, which a call names: what `nodes.cordon` and its like have in common."""

from collections.abc import Callable

from kschedd.api.objects import Object
from kschedd.controllers.kubelets.state import KUBELET, NONE, kubelet_state
from kschedd.service.cluster import ClusterBackend
from kschedd.service.errors import RpcError
from kschedd.service.execution import Executor
from kschedd.service.objects.answers import ChangeAnswer
from kschedd.service.objects.editing import change_result
from kschedd.service.request import Request
from kschedd.service.table import Call


async def edit_node(cluster: ClusterBackend, call: Call, make: Callable[[Object], Request]) -> ChangeAnswer:
    """Serve the request that `make` makes of the node; the answer to a change."""
    name = call["name"]
    executor = Executor.of(cluster, call)
    response = await executor.edit(lambda store: store.get("Node", "", name), lambda store, node: make(node))
    return change_result(response)


def check_simulated(node: Object) -> None:
    """Raise RpcError if no simulated kubelet runs on the node."""
    if kubelet_state(node) == NONE:
        why = f'node "{node.name}": nobody simulates its kubelet ({KUBELET}: {NONE}); state its conditions by hand'
        raise RpcError("conflict", why, {"name": node.name})
