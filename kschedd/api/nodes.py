"""Nodes, with the fields that scheduling reads.

Source: Kubernetes v1.34, api/core/v1/types.go (NodeSpec, NodeStatus); image names as
scheduler/framework/plugins/imagelocality normalizes them.
Units: allocatable CPU in millicores, every other resource in whole units.
"""

from collections.abc import Mapping
from typing import Any, Final, Self

from kschedd.api.base import Object, version_of
from kschedd.api.resources import Resources, amounts
from kschedd.api.selecting.terms import Taint, parse_taint
from kschedd.values import fast_frozen

Raw = Mapping[str, Any]

ZONE_LABEL = "topology.kubernetes.io/zone"
REGION_LABEL = "topology.kubernetes.io/region"
BETA_ZONE_LABEL = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION_LABEL = "failure-domain.beta.kubernetes.io/region"
HOSTNAME_LABEL = "kubernetes.io/hostname"
#: deprecated node labels -> current labels
RENAMED_LABELS: Final[Mapping[str, str]] = {
    BETA_ZONE_LABEL: ZONE_LABEL,
    BETA_REGION_LABEL: REGION_LABEL,
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}


@fast_frozen(eq=False)
class Node(Object):
    allocatable: Resources
    taints: tuple[Taint, ...]
    unschedulable: bool
    images: tuple[tuple[str, int | None], ...]  # (name, size in bytes if known) for each name of each image

    @classmethod
    def from_raw(cls, raw: Raw) -> Self:
        meta = raw.get("metadata") or {}
        spec = raw.get("spec") or {}
        status = raw.get("status") or {}
        return cls(
            "Node",
            meta.get("name", ""),
            "",
            meta.get("uid") or "",
            version_of(meta.get("resourceVersion")),
            meta.get("labels") or {},
            raw,
            amounts(status.get("allocatable")),
            tuple(parse_taint(taint) for taint in spec.get("taints") or ()),
            bool(spec.get("unschedulable")),
            tuple(
                (name, image.get("sizeBytes"))
                for image in status.get("images") or ()
                for name in image.get("names") or ()
            ),
        )

    @property
    def zone(self) -> str:
        """The zone by which nodes are visited: region and zone joined, or "" without both labels.

        The beta label takes precedence over the current label, even if it is empty. Source:
        component-helpers/node/topology (GetZoneKey).
        """
        labels = self.labels
        zone = labels.get(BETA_ZONE_LABEL, labels.get(ZONE_LABEL, ""))
        region = labels.get(BETA_REGION_LABEL, labels.get(REGION_LABEL, ""))
        return f"{region}:\x00:{zone}" if region or zone else ""
