"""For each kind that a mirror may not read, the answers that may be wrong.

Pure.
"""

from collections.abc import Mapping
from typing import Final

_CLAIMS: Final = "placements of pods with persistent volumes"
_DEVICES: Final = "placements of pods that request devices"
_REPLACEMENTS: Final = "pods that a drain, a node's end or a rollout creates in a fork"
_OWNED: Final = f"{_REPLACEMENTS}; remedies for workloads"
AFFECTED: Final[Mapping[str, str]] = {
    "Node": "all placements, explanations and capacities",
    "Pod": "all answers",
    "Namespace": "namespace selectors of pod affinity",
    "PriorityClass": "priorities of pods that are created in a fork",
    "RuntimeClass": "overhead and nodes of pods that are created in a fork",
    "ResourceQuota": "rejections of pods that are created in a fork",
    "LimitRange": "default requests of pods that are created in a fork",
    "PodDisruptionBudget": "victims of preemption; drains",
    "StorageClass": _CLAIMS,
    "CSINode": "limits of volumes per node",
    "CSIDriver": _CLAIMS,
    "CSIStorageCapacity": _CLAIMS,
    "PersistentVolume": _CLAIMS,
    "PersistentVolumeClaim": _CLAIMS,
    "VolumeAttachment": "limits of volumes per node",
    "DeviceClass": _DEVICES,
    "ResourceSlice": _DEVICES,
    "ResourceClaimTemplate": _DEVICES,
    "ResourceClaim": _DEVICES,
    "DeviceTaintRule": _DEVICES,
    "Service": "default spreading of pods",
    "ReplicationController": f"default spreading of pods; {_REPLACEMENTS}",
    "ReplicaSet": f"default spreading of pods; {_OWNED}",
    "StatefulSet": f"default spreading of pods; {_OWNED}",
    "Deployment": _OWNED,
    "DaemonSet": _OWNED,
    "Job": _OWNED,
    "CronJob": _OWNED,
}


def affected_by(kind: str) -> str:
    """Return the answers that may be wrong without this kind."""
    return AFFECTED.get(kind, "placements of pods that use this kind")
