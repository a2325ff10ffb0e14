"""Methods for the lifecycle of nodes: kubelets that stop and start, zones, and pods that will be evicted."""

from collections.abc import Sequence
from typing import Any, TypeVar

import attrs

from kschedd.api.nodes import BETA_REGION_LABEL, BETA_ZONE_LABEL, REGION_LABEL, ZONE_LABEL
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.text.times import stamp
from kschedd.controllers.kubelets.state import KUBELET, STOPPED
from kschedd.controllers.nodes.cloud_nodes import initialization
from kschedd.controllers.nodes.nodelifecycle import NodeLifecycle
from kschedd.controllers.nodes.tainteviction import TaintEviction
from kschedd.controllers.running.controller import Controller
from kschedd.service.cluster import ClusterBackend
from kschedd.service.errors import RpcError
from kschedd.service.nodes.answers import LeavingAnswer, LeavingPod, UpcomingAnswer, ZoneAnswer, ZonesAnswer
from kschedd.service.nodes.changes import check_simulated, edit_node
from kschedd.service.objects.answers import ChangeAnswer
from kschedd.service.objects.editing import merging
from kschedd.service.params import Param
from kschedd.service.request import Request
from kschedd.service.table import Call, Methods, method
from kschedd.store.cluster_api import ClusterReader

_NODE = Param("name", "string", doc="the node's name")
C = TypeVar("C", bound=Controller)


@attrs.frozen(eq=False)
class LifecycleMethods(Methods):
    _cluster: ClusterBackend

    @method(
        "nodes.stop",
        (_NODE,),
        doc="Stops the simulated kubelet of a node: its heartbeats end, and the node's pods keep their state.",
        answer=ChangeAnswer,
    )
    async def stop(self, call: Call) -> Any:
        return await self._set(call, STOPPED)

    @method("nodes.start", (_NODE,), doc="Starts the simulated kubelet of a node after a stop.", answer=ChangeAnswer)
    async def start(self, call: Call) -> Any:
        return await self._set(call, None)

    async def _set(self, call: Call, state: str | None) -> Any:
        def wanted(node: Object) -> Request:
            check_simulated(node)
            return merging("Node", node, {"metadata": {"annotations": {KUBELET: state}}}, "")

        return await edit_node(self._cluster, call, wanted)

    @method(
        "nodes.initialize",
        (_NODE,),
        doc="Removes the taint node.cloudprovider.kubernetes.io/uninitialized from a node, as its cloud provider "
        "does. Sets the labels of zone, region and instance type from the node's annotations "
        "`kschedd.io/cloud-zone`, `kschedd.io/cloud-region` and `kschedd.io/cloud-instance-type`.",
        answer=ChangeAnswer,
    )
    async def initialize(self, call: Call) -> Any:
        return await edit_node(self._cluster, call, lambda node: merging("Node", node, initialization(node) or {}, ""))

    @method(
        "nodes.zones",
        reads=True,
        doc=(
            "Returns the zones of the cluster, each with its state in the node lifecycle controller and the rate at "
            "which its nodes get NoExecute taints. The answer also contains the nodes that are about to change their "
            "state."
        ),
        answer=ZonesAnswer,
    )
    async def zones(self, call: Call) -> Any:
        return await self._cluster.ask_controllers(
            lambda controllers, store: _zones(_only(controllers, NodeLifecycle), store)
        )

    @method(
        "nodes.leaving",
        reads=True,
        doc="Lists the pods that will be evicted when their toleration of NoExecute taints expires.",
        answer=LeavingAnswer,
    )
    async def leaving(self, call: Call) -> Any:
        return await self._cluster.ask_controllers(
            lambda controllers, store: _leaving(_only(controllers, TaintEviction), store)
        )


def _only(controllers: Sequence[Controller], kind: type[C]) -> C:
    for controller in controllers:
        if isinstance(controller, kind):
            return controller
    raise RpcError("conflict", "no controllers run in this cluster", {})


def _zones(lifecycle: NodeLifecycle, store: ClusterReader) -> ZonesAnswer:
    zones = []
    for key, zone in sorted(lifecycle.zones.items()):
        region, _, name = key.partition(":\x00:")
        waiting = list(zone.waiting)
        zones.append(ZoneAnswer(name, region, zone.state, zone.ready, zone.not_ready, zone.rate.per_s, waiting))
    nodes = [
        UpcomingAnswer(each.node, _zone_of(store, each.node), each.what, _time(each.at_s))
        for each in lifecycle.upcoming()
    ]
    return ZonesAnswer(zones, nodes)


def _zone_of(store: ClusterReader, name: str) -> str:
    node = store.find("Node", "", name)
    labels = {} if node is None else node.labels
    zone = labels.get(BETA_ZONE_LABEL, labels.get(ZONE_LABEL, ""))
    return zone or labels.get(BETA_REGION_LABEL, labels.get(REGION_LABEL, ""))


def _time(at_s: float | None) -> str | None:
    return None if at_s is None else stamp(at_s)


def _leaving(eviction: TaintEviction, store: ClusterReader) -> LeavingAnswer:
    pods = []
    for (namespace, name), timer in eviction.timers().items():
        pod = store.find("Pod", namespace, name)
        if isinstance(pod, Pod):
            taints = [str(each.taint.key) for each in eviction.taints_of(pod.node_name)]
            times = stamp(timer.since_s), stamp(timer.at_s)
            pods.append(LeavingPod(namespace, name, pod.node_name, taints, *times))
    return LeavingAnswer(pods)
