"""Resource requests of each node's admitted pods, updated with every pod event instead of summed at each admission.

Owns the counts. After a pod's deletion, a sum is too high until the event arrives; a sum is never too low. Before a
pod is rejected, the caller must refresh the counts (`recount`).
"""

from collections.abc import Callable, Iterable, Mapping

from kschedd.api.node_fit import HostPort
from kschedd.api.pods import Pod, PodSignature
from kschedd.controllers.kubelets.admission import NodeUsage
from kschedd.values import fast_frozen

Key = tuple[str, str]  # namespace, name


@fast_frozen(eq=False)
class AdmittedPod:
    """An admitted pod, and the requests with which it is counted."""

    uid: str
    node_name: str
    signature: PodSignature
    requests: Mapping[str, int]
    ports: tuple[HostPort, ...]


def is_admitted(pod: Pod) -> bool:
    """Return whether the kubelet has admitted the pod, according to the pod's status."""
    return bool(pod.start_time) or pod.phase not in ("", "Pending")


class Accounts:
    def __init__(self) -> None:
        self._pods: dict[Key, AdmittedPod] = {}
        self._usage: dict[str, NodeUsage] = {}

    def of_pod(self, key: Key) -> AdmittedPod | None:
        return self._pods.get(key)

    def on_node(self, node_name: str) -> NodeUsage:
        return self._usage.get(node_name) or NodeUsage()

    def add(self, pod: Pod, requests: Mapping[str, int]) -> None:
        """Count the pod with its requests, replacing its previous entry."""
        key = pod.namespace, pod.name
        if key in self._pods:
            self.remove(key)
        admitted = AdmittedPod(pod.uid, pod.node_name, pod.signature, requests, pod.pod_spec.host_ports)
        self._pods[key] = admitted
        usage = self._usage.get(pod.node_name)
        if usage is None:
            usage = self._usage[pod.node_name] = NodeUsage()
        usage.add(admitted.requests, admitted.ports)

    def remove(self, key: Key) -> AdmittedPod | None:
        """Remove the pod from the counts, and return its previous entry."""
        gone = self._pods.pop(key, None)
        if gone is not None:
            usage = self._usage[gone.node_name]
            usage.add(gone.requests, gone.ports, -1)
            if not usage.pods:
                del self._usage[gone.node_name]
        return gone

    def recount(
        self, node_name: str, present: Iterable[Pod], requests_of: Callable[[Pod], Mapping[str, int]]
    ) -> list[Key]:
        """Count the node's current pods again. Return the counted pods that no longer exist."""
        there = {(pod.namespace, pod.name): pod for pod in present}
        stale = []
        for key, admitted in [(key, pod) for key, pod in self._pods.items() if pod.node_name == node_name]:
            now = there.get(key)
            if now is None or now.uid != admitted.uid or now.finished:
                stale.append(key)
                self.remove(key)
        for pod in there.values():
            if not pod.finished and (is_admitted(pod) or (pod.namespace, pod.name) in self._pods):
                self.add(pod, requests_of(pod))
        return stale
