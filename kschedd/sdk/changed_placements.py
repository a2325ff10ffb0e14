"""What a change, or another configuration, does to placements: the daemon's answers, with their lists as tables."""

from typing import Any

import attrs

from kschedd.sdk.records import Records
from kschedd.simulation.changes import DiffAnswer, NodeChange, ObjectChange, PodChange, UsageChange
from kschedd.simulation.comparison import ChangedPod, PlacementComparison


@attrs.frozen
class PlannedChanges(DiffAnswer):
    """What `plan` returns: the differences between the fork at its end and the cluster.

    * `pods`: those that are placed, moved, pending, gone, ended or orphaned; `nodes`, `objects`: those that differ.
    * `usage`: the requested share of the nodes' resources, from 0 to 1, before and after.
    * `elapsed_s`: the virtual time that passed in the fork.
    """

    pods: Records[PodChange]
    nodes: Records[NodeChange]
    objects: Records[ObjectChange]
    usage: Records[UsageChange]


@attrs.frozen
class ConfigComparison(PlacementComparison):
    """What `compare` returns for a configuration: `a` is the present one, `b` the other one.

    * `different`: the pods with another node, or another reason for none, in the order of their attempts.
    * `pending`: how many pods have no node, first by `a`, then by `b`.
    """

    different: Records[ChangedPod]


def planned(found: DiffAnswer) -> PlannedChanges:
    """Return the answer with tables."""
    return PlannedChanges(
        **_with_tables(found, pods=PodChange, nodes=NodeChange, objects=ObjectChange, usage=UsageChange)
    )


def compared(found: PlacementComparison) -> ConfigComparison:
    """Return the answer with tables."""
    return ConfigComparison(**_with_tables(found, different=ChangedPod))


def _with_tables(found: Any, **kinds: type[Any]) -> dict[str, Any]:
    fields = attrs.asdict(found, recurse=False)
    return fields | {name: Records(kind, fields[name]) for name, kind in kinds.items()}
