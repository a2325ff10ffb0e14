"""GCEPDLimits: limits a node to 16 persistent disks of Google Compute Engine.

Newer releases have no such plugin: NodeVolumeLimits counts these disks as volumes of their CSI driver. Source:
Kubernetes v1.30, plugins/nodevolumelimits/non_csi.go (getMaxVolumeFunc).
"""

from typing import ClassVar

from kschedd.api.nodes import Node
from kschedd.plugins.older.volume_limits import InTreeVolumeLimits


class GCEPDLimits(InTreeVolumeLimits):
    name: ClassVar = "GCEPDLimits"
    plugin: ClassVar = "kubernetes.io/gce-pd"
    volume_id: ClassVar = "pdName"
    limit_key: ClassVar = "attachable-volumes-gce-pd"

    def default_limit(self, node: Node) -> int:
        return 16
