"""The controllers an embedded cluster has: what makes pods, runs them, taints nodes, binds volumes and claims, and
clears up.

The daemon gives each an actor of its own; simulations settle them in this order.
"""

from kschedd.controllers.claims import ResourceClaims
from kschedd.controllers.controller import Controller
from kschedd.controllers.deployments import Deployments
from kschedd.controllers.ephemeral import EphemeralVolumes
from kschedd.controllers.garbage import GarbageCollector
from kschedd.controllers.kubelet import Kubelets
from kschedd.controllers.nodetaints import NodeTaints
from kschedd.controllers.provisioner import Provisioner
from kschedd.controllers.replicasets import ReplicaSets
from kschedd.controllers.volumes import VolumeController


def embedded_controllers(provision_delay_s: float = 1.0) -> list[Controller]:
    """New ones. `provision_delay_s` is how long a volume takes to be made where its class does not say."""
    return [
        NodeTaints(),
        Deployments(),
        ReplicaSets(),
        Kubelets(),
        GarbageCollector(),
        VolumeController(),
        Provisioner(provision_delay_s),
        EphemeralVolumes(),
        ResourceClaims(),
    ]
