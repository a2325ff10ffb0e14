"""Labels that a kubelet sets on its node: hostname, operating system, architecture, and, if known, zone and region.

Operating system and architecture are read from status.nodeInfo; the defaults are linux and amd64. Zone, region and
instance type are set by the cloud provider; a label under its deprecated name is copied to its current name.
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
    """Return the labels that the node lacks."""
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
