"""Properties of pods by which Cluster Autoscaler decides.

Source: sigs.k8s.io/cluster-autoscaler, pkg/utils/pod/pod.go and pkg/utils/drain/drain.go. Times are seconds since the
epoch.
"""

from typing import Final

from kschedd.api.pods import Pod
from kschedd.api.text.times import seconds

MIRROR: Final = "kubernetes.io/config.mirror"
_SOURCE: Final = "kubernetes.io/config.source"
_LIKE_DAEMON_SET: Final = "cluster-autoscaler.kubernetes.io/daemonset-pod"
_GRACE_S: Final = 30
_EXTRA_S: Final = 30  # a pod counts as gone this long after its grace period


def is_mirror(pod: Pod) -> bool:
    return MIRROR in pod.annotations


def is_daemon(pod: Pod) -> bool:
    """Return whether the pod belongs to a DaemonSet, or is annotated as such a pod."""
    owner = pod.owner
    return (owner is not None and owner.kind == "DaemonSet") or pod.annotations.get(_LIKE_DAEMON_SET) == "true"


def is_recreated(pod: Pod) -> bool:
    """Return whether the pod's controller creates another pod after an eviction, possibly on another node."""
    static = pod.annotations.get(_SOURCE, "api") != "api"
    return not (static or is_mirror(pod) or is_daemon(pod))


def is_terminal(pod: Pod) -> bool:
    """Return whether the pod never runs again."""
    policy = pod.spec.get("restartPolicy")
    return pod.phase == "Failed" or (pod.phase == "Succeeded" and policy in ("Never", "OnFailure"))


def terminates_for_long(pod: Pod, now_s: float) -> bool:
    """Return whether the pod has exceeded its grace period by 30 s, and therefore counts as gone."""
    if not pod.deletion_timestamp:
        return False
    grace_s = pod.spec.get("terminationGracePeriodSeconds")
    return seconds(pod.deletion_timestamp) + (_GRACE_S if grace_s is None else grace_s) + _EXTRA_S < now_s
