"""Checks of a pod against one node: labels, name, and free host ports.

The scheduler's plugins, the kubelets' admission and the controllers that select nodes use these checks. Source:
Kubernetes v1.34, component-helpers/scheduling/corev1/nodeaffinity (RequiredNodeAffinity), scheduler/framework/types.go
(HostPortInfo).
"""

from collections.abc import Collection

from kschedd.api.nodes import Node
from kschedd.api.pods import PodSpec

HostPort = tuple[str, str, int]  # host IP, protocol, port
_EVERY_IP = "0.0.0.0"


def node_matches(spec: PodSpec, node: Node) -> bool:
    """Return whether a node matches nodeSelector and required affinity. Raises SelectorError for an invalid term."""
    if any(node.labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    required = spec.required_node_affinity
    return required is None or required.matches(node.labels, node.name)


def ports_conflict(wanted: Collection[HostPort], used: Collection[HostPort]) -> bool:
    """Return whether a wanted port conflicts with a used port; the address 0.0.0.0 means every address."""
    for ip, protocol, port in wanted:
        for used_ip, used_protocol, used_port in used:
            if port == used_port and protocol == used_protocol and (ip == used_ip or _EVERY_IP in (ip, used_ip)):
                return True
    return False
