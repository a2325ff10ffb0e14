"""Methods over the Binding subresource: for whoever places pods besides the scheduler, as a binding extender does."""

from typing import Any

import attrs

from kschedd.service.cluster import ClusterBackend
from kschedd.service.params import Param
from kschedd.service.table import Call, Method
from kschedd.store.cluster_api import ClusterWriter


@attrs.frozen(eq=False)
class BindingMethods:
    _cluster: ClusterBackend

    def table(self) -> list[Method]:
        return [
            Method(
                "pods.bind",
                self.bind,
                (
                    Param("name", "string", doc="the pod's name"),
                    Param("node", "string", doc="the name of the node it gets"),
                    Param("namespace", "string", False, "default", "its namespace"),
                    Param("uid", "string", False, "", "precondition: only the pod with this uid"),
                ),
                doc="Gives a pod its node, as the scheduler does: what an extender that binds calls. A pod that has "
                "one is refused with `conflict`; whether the node is there, or has room, is not asked.",
                returns="`{node}`.",
            )
        ]

    async def bind(self, call: Call) -> Any:
        def request(store: ClusterWriter) -> dict[str, str]:
            bound = store.bind(call["namespace"], call["name"], call["node"], uid=call["uid"])
            return {"node": bound.node_name}

        return await self._cluster.store.do(request)
