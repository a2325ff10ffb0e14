"""Attempts for running pods with a deferred resize, in which most plugins are skipped.

The pod is already on its node, and the node's usage includes its desired resources. The pod fits if the node is not
overcommitted. If the pod fits, the kubelet resizes it, and the scheduler does nothing. If the node is overcommitted,
preemption looks for victims on the node.

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
    """Return the profile's plugins that are skipped in an attempt for a deferred resize."""
    return SKIPPING & frozenset(framework.in_tree)
