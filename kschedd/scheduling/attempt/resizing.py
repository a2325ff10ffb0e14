"""Attempts for pods that run already and whose resize is deferred: most plugins have nothing to say to them.

The pod is on its node, counted with what it is to have. It fits if the node is not overcommitted; then the kubelet
will resize it, and nothing is left for the scheduler to do. Else preemption looks for victims on that node.

Rules: resizes_preempt.
Source: Kubernetes v1.37: the plugins that begin with `if resource.IsPodResizeDeferred(pod)`.
"""

from typing import Final

from kschedd.scheduling.profiles.profile import Framework

SKIPPING: Final = frozenset(
    {
        "NodeUnschedulable",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeDeclaredFeatures",
    }
)


def skipping(framework: Framework) -> frozenset[str]:
    """Return the profile's plugins that take no part in such an attempt."""
    return SKIPPING & frozenset(framework.in_tree)
