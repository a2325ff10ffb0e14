"""Methods over nodes: cordon, uncordon, taint."""

from collections.abc import Callable
from typing import Any

import attrs

from kschedd.rpc import methods_edit as edit
from kschedd.rpc.aside import change
from kschedd.rpc.cluster import ClusterBackend
from kschedd.rpc.methods_objects import CHANGED, DRY_RUN, OVERWRITE
from kschedd.rpc.params import Param
from kschedd.rpc.table import Call, Method
from kschedd.store.cluster_api import ClusterWriter

_NODE = Param("name", "string", doc="the node's name")


@attrs.frozen(eq=False)
class NodeMethods:
    _cluster: ClusterBackend

    def table(self) -> list[Method]:
        return [
            Method(
                "nodes.cordon",
                self.cordon,
                (_NODE, DRY_RUN),
                doc="Lets no more pods onto a node; those on it stay.",
                returns=CHANGED,
            ),
            Method(
                "nodes.uncordon",
                self.uncordon,
                (_NODE, DRY_RUN),
                doc="Lets pods onto a node again.",
                returns=CHANGED,
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
                returns=CHANGED,
            ),
        ]

    async def cordon(self, call: Call) -> Any:
        return await self._changed(call, lambda store: edit.cordon(store, call["name"], True, call["dry_run"]))

    async def uncordon(self, call: Call) -> Any:
        return await self._changed(call, lambda store: edit.cordon(store, call["name"], False, call["dry_run"]))

    async def taint(self, call: Call) -> Any:
        return await self._changed(
            call, lambda store: edit.taint(store, call["name"], call["taints"], call["overwrite"])
        )

    async def _changed(self, call: Call, request: Callable[[ClusterWriter], Any]) -> Any:
        return await change(self._cluster, call, request, lambda store: store.find("Node", "", call["name"]))
