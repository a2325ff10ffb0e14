"""Objects whose status a controller writes before it counts for other objects.

A ResourceQuota limits nothing until its controller has counted what exists, a PodDisruptionBudget allows no disruption
until its pods are counted, and a pod with an unbound claim is unschedulable. Objects that are applied one after the
other meet these statuses as they are then. Objects that are applied together do so only if the controllers run in
between; `must_settle` returns where.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.kinds import kind_of

_AWAITED: Final = frozenset(("ResourceQuota", "PodDisruptionBudget", "PersistentVolumeClaim"))
_COUNTS_WHAT_IS_THERE: Final = "ResourceQuota"


def must_settle(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether the controllers must run between two objects that are applied one after the other.

    A quota does not limit the pods of workloads that were applied before it, so these are created first.
    """
    first, second = kind_of(before).name, kind_of(after).name
    if second in _AWAITED:
        return second == _COUNTS_WHAT_IS_THERE and first not in _AWAITED
    return first in _AWAITED
