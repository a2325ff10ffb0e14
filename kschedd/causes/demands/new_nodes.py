"""Nodes that a remedy adds: copies of existing nodes and of the objects that their drivers created."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np

from kschedd.api.nodes import Node
from kschedd.api.similar_nodes import similar_csi_node, similar_node, similar_slice
from kschedd.cache.table import Ints
from kschedd.causes.case import Case
from kschedd.causes.findings import ADD_OBJECT, RemedyOption
from kschedd.causes.steps import RemedyStep, created
from kschedd.causes.words import counted

MOST_NODES: Final = 16  # maximum number of nodes that a remedy adds


def more_nodes(case: Case, full: Collection[str], waiting: int = 0) -> list[RemedyOption]:
    """Return options that add copies of the largest node for `count` pods (0: the workload's pending pods).

    Return no option if more than MOST_NODES nodes would be needed.
    """
    like, least = nodes_needed(case, full, waiting)
    if least > MOST_NODES:
        return []
    found = []
    for number in dict.fromkeys((least, min(waiting or _waiting(case), MOST_NODES))):
        steps = [step for place in range(number) for step in created_nodes(case, like.raw, place)]
        summary = f"add {counted(number, 'node')} like {like.name}"
        found.append(RemedyOption(summary, ADD_OBJECT, steps=steps, target=f"node/{like.name}"))
    return found


def nodes_needed(case: Case, full: Collection[str], waiting: int = 0) -> tuple[Node, int]:
    """Return the largest of the given nodes, and the number of its copies that all pending pods need."""
    names = sorted(full)
    each = rooms(case, names)
    most = int(each.max())
    like = case.nodes[names[int(np.flatnonzero(each == most)[-1])]]
    return like, -(-(waiting or _waiting(case)) // max(1, most))


def rooms(case: Case, names: Sequence[str], *, free: bool = False) -> Ints:
    """Return how many copies of the pod each of these nodes can hold if empty; with `free`, beside its pods."""
    amounts = case.frees if free else case.there
    each = case.there(names, "pods")
    for resource, amount in case.requested.items():
        each = np.minimum(each, amounts(names, resource) // amount)
    return each


def _waiting(case: Case) -> int:
    return max(1, len(case.workload.pending), case.workload.wanted - len(case.workload.scheduled))


def created_nodes(case: Case, like: Mapping[str, Any], place: int) -> list[RemedyStep]:
    """Return the steps that add a copy of this node, its CSINode, and, if the pod needs them, its ResourceSlices."""
    step = created_node(case, like, place)
    name, old = str(step.calls[0][1]["manifest"]["metadata"]["name"]), str(like["metadata"]["name"])
    spec = case.pod.pod_spec
    csi_node = case.store.find("CSINode", "", old) if spec.volumes else None
    slices = case.store.list("ResourceSlice") if spec.resource_claims else ()
    return [
        step,
        *([created(similar_csi_node(csi_node.raw, name))] if csi_node is not None else []),
        *(created(similar_slice(each.raw, name)) for each in slices if each.spec.get("nodeName") == old),
    ]


def created_node(case: Case, like: Mapping[str, Any], place: int) -> RemedyStep:
    """Return the step that adds a ready copy of this node."""
    name = _free_name(case, str(like["metadata"]["name"]), place)
    made = similar_node(like, name)
    made["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    return created(made)


def _free_name(case: Case, like: str, place: int) -> str:
    number = 1
    while True:
        name = f"{like}-more-{number}"
        if name not in case.nodes:
            if not place:
                return name
            place -= 1
        number += 1
