"""NodePreferAvoidPods: a node annotation lists controllers whose pods should avoid the node.

A node scores 0 for pods of the named ReplicationControllers or ReplicaSets, and 100 for all other pods. With the usual
weight of 10000, this outweighs every other score. The plugin belongs to older releases; now a taint with the effect
PreferNoSchedule replaces it. Source: Kubernetes v1.22, plugins/nodepreferavoidpods/node_prefer_avoid_pods.go. Errors:
none. An invalid annotation has no effect.
"""

from typing import Any, ClassVar, Final, Self

import attrs
import numpy as np

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.text.json_text import json_value
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.handle import Handle
from kschedd.framework.interface import MAX_NODE_SCORE

ANNOTATION: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_CONTROLLERS: Final = ("ReplicationController", "ReplicaSet")


@attrs.define(eq=False)
class NodePreferAvoidPods:
    name: ClassVar = "NodePreferAvoidPods"
    depends_on: ClassVar = None  # None: a pod's controller is not part of its signature
    _avoided: dict[str, frozenset[tuple[str, str]]] = attrs.field(factory=dict)  # by the annotation's text

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        return cls()

    def constant_score(self, pod: Pod, table: NodeTable) -> int | None:
        return None if _controller(pod) else MAX_NODE_SCORE

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        scores = np.full(len(rows), MAX_NODE_SCORE, dtype=np.int64)
        controller = _controller(pod)
        if controller is not None:
            nodes = table.nodes
            for place, row in enumerate(rows.tolist()):
                node = nodes[row]
                if node is not None and controller in self._avoided_by(node):
                    scores[place] = 0
        return scores

    def _avoided_by(self, node: Node) -> frozenset[tuple[str, str]]:
        text = node.annotations.get(ANNOTATION)
        if not text:
            return frozenset()
        known = self._avoided.get(text)
        if known is None:
            if len(self._avoided) >= 4096:
                self._avoided.clear()
            known = self._avoided[text] = avoided(text)
        return known


def _controller(pod: Pod) -> tuple[str, str] | None:
    """Return the kind and uid of the pod's controller, if its kind can be avoided."""
    owner = pod.owner
    return (owner.kind, owner.uid) if owner is not None and owner.kind in _CONTROLLERS else None


def avoided(text: str) -> frozenset[tuple[str, str]]:
    """Return the kinds and uids of the controllers that the annotation names; none if it is invalid."""
    try:
        value: Any = json_value(text)
        controllers = [one["podSignature"]["podController"] for one in value["preferAvoidPods"]]
        return frozenset((str(one["kind"]), str(one["uid"])) for one in controllers)
    except (ValueError, KeyError, TypeError):
        return frozenset()
