"""The state of a node's kubelet, from the node's annotation `kschedd.io/kubelet`.

(none)     it runs: it renews its Lease, reports the node's status, starts and ends pods
stopped    it has stopped (`kschedd node stop`): no heartbeats, and its pods stay unchanged
none       it is not simulated: no Lease, and users set the state of the node and its pods
"""

from typing import Final, Literal

from kschedd.api.conditions import condition
from kschedd.api.objects import Object
from kschedd.store.cluster_api import ClusterWriter

KUBELET: Final = "kschedd.io/kubelet"
STOPPED: Final = "stopped"
NONE: Final = "none"
KubeletState = Literal["", "stopped", "none"]


def kubelet_state(node: Object) -> KubeletState:
    """Return the kubelet's state; "" means running, also for an unknown annotation value."""
    found = (node.metadata.get("annotations") or {}).get(KUBELET)
    return STOPPED if found == STOPPED else NONE if found == NONE else ""


def kubelet_runs(node: Object) -> bool:
    return not kubelet_state(node)


def stop_silent(cluster: ClusterWriter) -> None:
    """Stop the simulated kubelets of nodes whose Ready condition is Unknown, because their real kubelets are silent."""
    for node in cluster.list("Node"):
        ready = condition(node.status, "Ready")
        if ready is not None and ready.get("status") == "Unknown" and kubelet_runs(node):
            cluster.merge_patch("Node", "", node.name, {"metadata": {"annotations": {KUBELET: STOPPED}}})
