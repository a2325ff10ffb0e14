"""The method that simulates resource pressure on a node: its kubelet reports the condition and evicts pods."""

from typing import Any

import attrs

from kschedd.api.objects import Object
from kschedd.api.simulation.annotations import PRESSURE, PRESSURES, pressures_of
from kschedd.api.simulation.values import AnnotationError
from kschedd.service.cluster import ClusterBackend
from kschedd.service.errors import RpcError
from kschedd.service.nodes.changes import check_simulated, edit_node
from kschedd.service.objects.answers import ChangeAnswer
from kschedd.service.objects.editing import merging
from kschedd.service.params import Param
from kschedd.service.request import Request
from kschedd.service.table import Call, Methods, method


@attrs.frozen(eq=False)
class PressureMethods(Methods):
    _cluster: ClusterBackend

    @method(
        "nodes.pressure",
        (
            Param("name", "string", doc="the node's name"),
            Param("pressure", "string", doc=f"the resource that runs short: one of {', '.join(PRESSURES)}"),
            Param("on", "boolean", False, True, "false: end the pressure"),
        ),
        doc="Puts a node under pressure of memory, disk or process IDs, whatever its pods use: its simulated kubelet "
        "reports the condition, keeps new pods away and evicts one pod after the other, until the pressure is ended. "
        f"The pressure is stored in the node's annotation `{PRESSURE}`.",
        answer=ChangeAnswer,
    )
    async def pressure(self, call: Call) -> Any:
        pressure, on = call["pressure"], call["on"]
        if pressure not in PRESSURES:
            raise RpcError("invalid", f'no pressure "{pressure}": allowed are {", ".join(PRESSURES)}', {})

        def wanted(node: Object) -> Request:
            check_simulated(node)
            try:
                now = set(pressures_of(node.annotations.get(PRESSURE, "")))
            except AnnotationError:  # an invalid annotation is ignored
                now = set()
            then = now | {pressure} if on else now - {pressure}
            text = ",".join(each for each in PRESSURES if each in then) or None
            return merging("Node", node, {"metadata": {"annotations": {PRESSURE: text}}}, "")

        return await edit_node(self._cluster, call, wanted)
