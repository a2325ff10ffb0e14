"""Remedies for rejections by DynamicResources, used by `explain`.

Sources: the reasons of `kschedd.plugins.devices.dynamicresources`.
"""

import re
from typing import Final

import attrs

from kschedd.devices.allocation.allocator import Allocator
from kschedd.devices.allocation.one_more import one_more_slice
from kschedd.framework.changes import Change, create
from kschedd.framework.remedies import Remedy, RemedyContext, by_pattern, by_reason
from kschedd.framework.status import Status

CANNOT_ALLOCATE: Final = "cannot allocate all claims"
NOT_AVAILABLE: Final = "resourceclaim not available on the node"

_BEFORE_FILTER: Final = (
    (r"request .+: device class (.+) does not exist", "the DeviceClass {} existed"),
    (r'resourceclaim(?:\.resource\.k8s\.io)? "(.+)" not found', "the ResourceClaim {} existed"),
)
_ON_A_NODE: Final = {
    CANNOT_ALLOCATE: "devices that suit its resource claims were free on the node",
    NOT_AVAILABLE: "the devices of its resource claims could be reached from the node",
}


def before_filter(status: Status) -> list[Remedy]:
    found = by_pattern(status, _BEFORE_FILTER)
    return [attrs.evolve(remedy, changes=_missing_class(status.message)) for remedy in found]


def on_a_node(context: RemedyContext, row: int, status: Status, allocator: Allocator | None) -> list[Remedy]:
    changes: tuple[Change, ...] = ()
    node = context.table.nodes[row]
    if CANNOT_ALLOCATE in status.reasons and node is not None and allocator is not None:
        more = one_more_slice(allocator, context.cluster.of_kind("ResourceSlice").values(), node)
        changes = () if more is None else (create(more),)
    return [attrs.evolve(remedy, changes=changes) for remedy in by_reason(status, _ON_A_NODE)]


def _missing_class(said: str) -> tuple[Change, ...]:
    found = re.search(r"device class (.+) does not exist", said)
    if found is None:
        return ()
    return (
        create({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": found[1]}, "spec": {}}),
    )
