"""CinderLimits: limits a node to 256 volumes of OpenStack Cinder.

The plugin belongs to older releases; now NodeVolumeLimits counts these volumes for their CSI driver. Source:
Kubernetes v1.30, plugins/nodevolumelimits/non_csi.go (getMaxVolumeFunc).
"""

from typing import ClassVar

from kschedd.api.nodes import Node
from kschedd.plugins.older.volume_limits import InTreeVolumeLimits


class CinderLimits(InTreeVolumeLimits):
    name: ClassVar = "CinderLimits"
    plugin: ClassVar = "kubernetes.io/cinder"
    volume_id: ClassVar = "volumeID"
    limit_key: ClassVar = "attachable-volumes-cinder"

    def default_limit(self, node: Node) -> int:
        return 256
