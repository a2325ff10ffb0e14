"""The Binding subresource: the change to the bound pod, and the reasons for rejecting a binding.

Source: Kubernetes v1.34, pkg/registry/core/pod/storage/storage.go (BindingREST, setPodNodeAndMetadata).
Raises: Conflict and Invalid, with the messages of kube-apiserver.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from kschedd.api.objects import Raw
from kschedd.api.pods import Pod
from kschedd.api.schemas.fields import invalid, required
from kschedd.api.selecting.names import dns_subdomain
from kschedd.store.errors import Conflict, Invalid

_NOTHING: Mapping[str, Any] = {}


@lru_cache(256)
def _newborn_bound(qos: str, at: str) -> Raw:
    """Return the status after binding, for a pod whose status was never changed before.

    Pods with an unchanged status share one status object if they are bound within the same second.
    """
    return {"phase": "Pending", "qosClass": qos, "conditions": [_scheduled(at)]}


@lru_cache(64)
def _scheduled(at: str) -> Raw:
    return {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": at}


def refuse_binding(pod: Pod, node_name: str, uid: str) -> None:
    """Raise the API server's error if this pod cannot be bound to this node."""
    if not node_name:
        raise Invalid("Binding", pod.name, (required("target.name"),))
    if wrong := dns_subdomain(node_name):
        raise Invalid("Binding", pod.name, tuple(invalid("target.name", node_name, why) for why in wrong))
    if uid and uid != pod.uid:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {pod.uid}"
        raise Conflict("Pod", pod.name, why)
    why = ""
    if pod.deletion_timestamp:
        why = f"pod {pod.name} is being deleted, cannot be assigned to a host"
    elif pod.node_name:
        why = f'pod {pod.name} is already assigned to node "{pod.node_name}"'
    elif pod.signature.spec.scheduling_gates:
        why = f"pod {pod.name} has non-empty .spec.schedulingGates"
    if why:
        raise Conflict("Pod", pod.name, why, "binding")


def bound(pod: Pod, node_name: str, version: int, at: str) -> Pod:
    """Return the pod after binding: nodeName set, PodScheduled=True, nominatedNodeName cleared."""
    raw = pod.raw
    status = raw.get("status") or _NOTHING
    if len(status) == 2 and status.get("phase") == "Pending" and "qosClass" in status:
        new_status = _newborn_bound(status["qosClass"], at)
    else:
        conditions = [c for c in status.get("conditions") or () if c.get("type") != "PodScheduled"]
        kept = {name: value for name, value in status.items() if name != "nominatedNodeName"}
        new_status = {**kept, "conditions": [_scheduled(at), *conditions]}
    stored = {
        **raw,
        "metadata": {**raw["metadata"], "resourceVersion": str(version)},
        "spec": {**raw["spec"], "nodeName": node_name},
        "status": new_status,
    }
    return Pod(
        "Pod",
        pod.name,
        pod.namespace,
        pod.uid,
        version,
        pod.signature.labels,
        stored,
        pod.signature,
        node_name,
        "",
        pod.phase,
        pod.start_time,
        "",
    )
