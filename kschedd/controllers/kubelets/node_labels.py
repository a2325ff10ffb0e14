"""The labels that a kubelet gives its node: hostname, operating system, architecture; zone and the like if given.

Operating system and architecture are those of status.nodeInfo, else linux and amd64. Zone, region and instance type are
the cloud's to say: where a node has one of them under its old name only, it gets it under the present one too.
Source: Kubernetes v1.34, pkg/kubelet/kubelet_node_status.go (initialNode, updateDefaultLabels),
controller/nodelifecycle/node_lifecycle_controller.go (labelReconcileInfo), cloud-provider/controllers/node.
"""

from collections.abc import Mapping
from typing import Final

from kschedd.api.nodes import (
    BETA_REGION_LABEL,
    BETA_ZONE_LABEL,
    HOSTNAME_LABEL,
    REGION_LABEL,
    ZONE_LABEL,
    Node,
)

OS: Final = "kubernetes.io/os"
ARCH: Final = "kubernetes.io/arch"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
_BETA: Final[Mapping[str, str]] = {OS: "beta.kubernetes.io/os", ARCH: "beta.kubernetes.io/arch"}
_OLD_NAMES: Final[Mapping[str, str]] = {
    ZONE_LABEL: BETA_ZONE_LABEL,
    REGION_LABEL: BETA_REGION_LABEL,
    INSTANCE_TYPE: "beta.kubernetes.io/instance-type",
}


def missing_labels(node: Node) -> dict[str, str]:
    """The labels that the node should have besides those it has."""
    there = node.labels
    info = node.status.get("nodeInfo") or {}
    wanted = {
        HOSTNAME_LABEL: node.name,
        OS: there.get(OS) or info.get("operatingSystem") or "linux",
        ARCH: there.get(ARCH) or info.get("architecture") or "amd64",
    }
    wanted.update({_BETA[key]: wanted[key] for key in _BETA})
    wanted.update({key: there[old] for key, old in _OLD_NAMES.items() if there.get(old)})
    return {key: text for key, text in wanted.items() if key not in there}
