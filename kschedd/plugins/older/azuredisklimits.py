"""AzureDiskLimits: limits a node to 16 Azure disks.

The plugin belongs to older releases; now NodeVolumeLimits counts these volumes for their CSI driver. Source:
Kubernetes v1.30, plugins/nodevolumelimits/non_csi.go (getMaxVolumeFunc).
"""

from typing import ClassVar

from kschedd.api.nodes import Node
from kschedd.plugins.older.volume_limits import InTreeVolumeLimits


class AzureDiskLimits(InTreeVolumeLimits):
    name: ClassVar = "AzureDiskLimits"
    plugin: ClassVar = "kubernetes.io/azure-disk"
    volume_id: ClassVar = "diskName"
    limit_key: ClassVar = "attachable-volumes-azure-disk"

    def default_limit(self, node: Node) -> int:
        return 16
