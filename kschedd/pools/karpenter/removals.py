"""Removals: which candidates are deleted because their pods find room on the other nodes.

A removal that needs a new node is left to the caller.

Source: sigs.k8s.io/karpenter, pkg/controllers/disruption/multinodeconsolidation.go and singlenodeconsolidation.go.
"""

from collections.abc import Collection, Sequence
from typing import Final

import attrs

from kschedd.api.pods import Pod
from kschedd.pools.karpenter.candidates import ManagedNode
from kschedd.pools.trials import PlacementTrials

#: largest number of nodes that one command removes
MOST_NODES: Final = 100


def find_room(trials: PlacementTrials, removed: Sequence[ManagedNode], destinations: Collection[str]) -> bool:
    """Return whether the pods of the removed nodes fit on the destinations; `trials` is unchanged afterwards.

    The pods are placed by descending requests of cpu and memory, on the first node by name.
    """
    mark = trials.mark()
    try:
        for each in removed:
            for pod in trials.pods_on(each.name):
                trials.remove_pod(pod)
            trials.remove_node(each.name)
        names = sorted({*destinations} - {each.name for each in removed})
        return all(_placed(trials, pod, names) for pod in _largest_first(removed))
    finally:
        trials.revert(mark)


def _largest_first(removed: Sequence[ManagedNode]) -> list[Pod]:
    pods = [attrs.evolve(pod, node_name="") for each in removed for pod in each.reschedulable]
    return sorted(pods, key=lambda pod: (-pod.requests.get("cpu", 0), -pod.requests.get("memory", 0)))


def _placed(trials: PlacementTrials, pod: Pod, names: Sequence[str]) -> bool:
    feasible = {*trials.feasible(pod)}
    for name in names:
        if name in feasible:
            trials.place(pod, name)
            return True
    return False
