"""The order of applied objects: controllers may have to run between two objects that are applied together.

A ResourceQuota has no effect until its controller has counted the existing objects. A PodDisruptionBudget allows no
disruption until its pods are counted. A pod with an unbound claim is unschedulable. The pods of a workload consume a
quota. If objects are applied separately, all these effects occur. If objects are applied together, these effects occur
only if the controllers run in between. `controllers_run_between` returns whether the controllers must run between two
objects.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.schemas.kinds import kind_of

_QUOTA: Final = "ResourceQuota"
_AWAITED: Final = frozenset((_QUOTA, "PodDisruptionBudget", "PersistentVolumeClaim"))
_WORKLOADS: Final = frozenset(("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job"))


def controllers_run_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether controllers must run between two objects that are applied one after the other."""
    first, second = kind_of(before).name, kind_of(after).name
    if second in _AWAITED:  # a quota does not limit objects that were applied before it
        return second == _QUOTA and first not in _AWAITED
    return first in _AWAITED or (first in _WORKLOADS and second == "Pod")
