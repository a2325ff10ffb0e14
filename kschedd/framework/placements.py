"""Placements: the sets of nodes in which a PodGroup is tried.

Source: Kubernetes v1.37, kube-scheduler/framework/interface.go (Placement, PodGroupAssignments).
"""

from collections.abc import Sequence

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.table import Rows


@attrs.frozen(eq=False)
class Placement:
    """A set of nodes: its rows in visiting order, and the value of its topology key ("" without a constraint)."""

    name: str
    rows: Rows


@attrs.frozen(eq=False)
class PlacedPods:
    """A placement with the pods of the group that fit there in this cycle."""

    placement: Placement
    pods: Sequence[Pod]
