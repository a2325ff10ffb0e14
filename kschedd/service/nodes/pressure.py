"""The method that has a node be short of something: its kubelet states the pressure and evicts pods."""

from typing import Any

import attrs

from kschedd.api.annotation_values import AnnotationError
from kschedd.api.simulation_annotations import PRESSURE, PRESSURES, pressures_of
from kschedd.controllers.kubelets.state import KUBELET, NONE, kubelet_state
from kschedd.service.cluster import ClusterBackend
from kschedd.service.errors import RpcError
from kschedd.service.execution import change
from kschedd.service.objects.editing import change_result
from kschedd.service.objects.methods import CHANGED
from kschedd.service.params import Param
from kschedd.service.table import Call, Method
from kschedd.store.cluster_api import ClusterWriter


@attrs.frozen(eq=False)
class PressureMethods:
    _cluster: ClusterBackend

    def table(self) -> list[Method]:
        return [
            Method(
                "nodes.pressure",
                self.pressure,
                (
                    Param("name", "string", doc="the node's name"),
                    Param("pressure", "string", doc=f"what the node is short of: one of {', '.join(PRESSURES)}"),
                    Param("on", "boolean", False, True, "false: it is short of that no longer"),
                ),
                doc="Has a node be short of memory, disk or process ids, whatever its pods are said to use: its "
                "simulated kubelet states the condition, keeps pods away and evicts one pod after the other, until it "
                f"is told that this is over. Kept in the node's annotation `{PRESSURE}`.",
                returns=CHANGED,
            ),
        ]

    async def pressure(self, call: Call) -> Any:
        name, pressure, on = call["name"], call["pressure"], call["on"]
        if pressure not in PRESSURES:
            raise RpcError("invalid", f'no pressure "{pressure}": allowed are {", ".join(PRESSURES)}', {})

        def request(store: ClusterWriter) -> dict[str, Any]:
            node = store.get("Node", "", name)
            if kubelet_state(node) == NONE:
                why = f'node "{name}": nobody simulates its kubelet ({KUBELET}: {NONE}); state its conditions by hand'
                raise RpcError("conflict", why, {"name": name})
            try:
                now = set(pressures_of(node.annotations.get(PRESSURE, "")))
            except AnnotationError:  # it counts as absent
                now = set()
            wanted = now | {pressure} if on else now - {pressure}
            text = ",".join(each for each in PRESSURES if each in wanted) or None
            patch = {"metadata": {"annotations": {PRESSURE: text}}}
            return change_result(node, store.merge_patch("Node", "", name, patch))

        return await change(self._cluster, call, request, lambda store: store.find("Node", "", name))
