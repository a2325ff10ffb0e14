"""EBSLimits: limits a node to 39 volumes of AWS Elastic Block Store, or 25 for Nitro instance types.

The plugin belongs to older releases; now NodeVolumeLimits counts these volumes for their CSI driver. Source:
Kubernetes v1.30, plugins/nodevolumelimits/non_csi.go (getMaxVolumeFunc).
"""

import re
from typing import ClassVar

from kschedd.api.nodes import Node
from kschedd.plugins.older.volume_limits import InTreeVolumeLimits

_INSTANCE_TYPE = "node.kubernetes.io/instance-type"
_BETA_INSTANCE_TYPE = "beta.kubernetes.io/instance-type"
_NITRO = re.compile("^[cmr]5.*|t3|z1d")


class EBSLimits(InTreeVolumeLimits):
    name: ClassVar = "EBSLimits"
    plugin: ClassVar = "kubernetes.io/aws-ebs"
    volume_id: ClassVar = "volumeID"
    limit_key: ClassVar = "attachable-volumes-aws-ebs"

    def default_limit(self, node: Node) -> int:
        kind = node.labels.get(_INSTANCE_TYPE) or node.labels.get(_BETA_INSTANCE_TYPE) or ""
        return 25 if _NITRO.search(kind) else 39
