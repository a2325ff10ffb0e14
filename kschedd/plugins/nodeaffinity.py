"""NodeAffinity: filters by nodeSelector and required node affinity, scores by preferred terms.

Source: Kubernetes v1.34, plugins/nodeaffinity/node_affinity.go.
Codes: 1, the pod's own selector or affinity does not match; 2, the configuration's addedAffinity does not.
Shapes: one weight (int64) per row; weights of matching preferred terms are summed.
"""

from collections.abc import Collection, Hashable, Sequence
from typing import Any, ClassVar, Self

import attrs
import numpy as np

from kschedd.api.node_fit import node_matches
from kschedd.api.pods import Pod
from kschedd.api.selecting.selectors import (
    IN,
    NODE_NAME,
    NodeSelector,
    NodeSelectorTerm,
    SelectorError,
    parse_node_selector,
    parse_preferred_terms,
)
from kschedd.cache.nodematch import matching_rows
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import (
    QUEUE,
    QUEUE_SKIP,
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    on,
)
from kschedd.framework.fast_path import PRE_POINTS
from kschedd.framework.handle import Handle
from kschedd.framework.interface import PreFilterResult
from kschedd.framework.normalize import default_normalize
from kschedd.framework.status import SKIP, Status, error, unresolvable
from kschedd.plugins.nodeaffinity_args import NodeAffinityArgs

Preferred = tuple[tuple[int, NodeSelectorTerm], ...]


def named_nodes(raw_required: Any) -> frozenset[str] | None:
    """Return the node names to which required affinity restricts the pod; None if some term names no node."""
    named: frozenset[str] = frozenset()
    for term in raw_required.get("nodeSelectorTerms") or ():
        of_term: frozenset[str] | None = None
        for field in term.get("matchFields") or ():
            if field.get("key") == NODE_NAME and field.get("operator") == IN:
                values = frozenset(field.get("values") or ())
                of_term = values if of_term is None else of_term & values
        if of_term is None:
            return None
        named |= of_term
    return named


@attrs.frozen(eq=False)
class NodeAffinity:
    name: ClassVar = "NodeAffinity"
    args_type: ClassVar = NodeAffinityArgs
    depends_on: ClassVar = frozenset({"node"})
    added_required: NodeSelector | None = None
    added_preferred: Preferred = ()
    prefers: bool = False  # true if addedAffinity has preferred terms, even if all of them are empty

    @classmethod
    def from_args(cls, args: NodeAffinityArgs, handle: Handle) -> Self:
        added = args.added_affinity or {}
        required = added.get("requiredDuringSchedulingIgnoredDuringExecution")
        return cls(
            None if required is None else parse_node_selector(required),
            parse_preferred_terms(added.get("preferredDuringSchedulingIgnoredDuringExecution")),
            bool(added.get("preferredDuringSchedulingIgnoredDuringExecution")),
        )

    def idle_for(self, pod: Pod) -> Sequence[str]:
        spec = pod.signature.spec
        if spec.required_node is not None or self.added_required is not None or spec.node_selector:
            return ()
        return ("pre_filter",) if spec.required_node_affinity is None else ()

    def repeats_while_unchanged(self, pod: Pod, cluster: Any) -> Collection[str]:
        return PRE_POINTS

    def pre_filter(self, state: CycleState, pod: Pod, cluster: Any) -> Status | PreFilterResult | None:
        spec = pod.pod_spec
        if spec.required_node is not None:
            already_filtered = not spec.node_selector and self.added_required is None
            return PreFilterResult(frozenset((spec.required_node,)), already_filtered)
        if spec.required_node_affinity is None:
            return SKIP if self.added_required is None and not spec.node_selector else None
        raw = spec.raw["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        if not raw.get("nodeSelectorTerms"):
            return None
        named = named_nodes(raw)
        if named is None:
            return None
        return PreFilterResult(named) if named else unresolvable("pod affinity terms conflict")

    def verdict_key(self, pod: Pod, state: CycleState) -> Hashable:
        spec = pod.pod_spec
        return tuple(spec.node_selector.items()), spec.required_node_affinity

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        spec = pod.pod_spec
        if spec.required_node is not None and not spec.node_selector and self.added_required is None:
            elsewhere: Ints = (rows != table.row_of.get(spec.required_node, -1)).astype(np.int64)
            return elsewhere
        codes = (~matching_rows(table, spec.node_selector, spec.required_node_affinity, rows)).astype(np.int64)
        if self.added_required is not None:
            codes[~matching_rows(table, {}, self.added_required, rows)] = 2
        return codes

    def code_status(self, state: CycleState, pod: Pod, code: int) -> Status:
        if code == 2:
            return unresolvable("node(s) didn't match scheduler-enforced node affinity")
        return unresolvable("node(s) didn't match Pod's node affinity/selector")

    def pre_score(self, state: CycleState, pod: Pod, cluster: Any, rows: Rows) -> Status | None:
        try:
            preferred = pod.pod_spec.preferred_node_affinity
        except SelectorError as unreadable:
            return error(str(unreadable))
        raw = ((pod.pod_spec.raw.get("affinity") or {}).get("nodeAffinity") or {}).get(
            "preferredDuringSchedulingIgnoredDuringExecution"
        )
        # An explicit list of preferred terms is treated as present even if all its terms are empty.
        return SKIP if not preferred and raw is None and not self.prefers else None

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        weights = np.zeros(len(rows), dtype=np.int64)
        for weight, term in (*self.added_preferred, *pod.pod_spec.preferred_node_affinity):
            weights[matching_rows(table, {}, NodeSelector((term,)), rows)] += weight
        return weights

    def normalize(self, state: CycleState, pod: Pod, scores: Ints) -> Ints:
        return default_normalize(scores, reverse=False)

    def events_to_register(self) -> list[ClusterEventWithHint]:
        action = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        return [on(EventResource.NODE, action, self._after_node, by_signature=True)]

    def _after_node(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        if self.added_required is not None and not self.added_required.matches(new.labels, new.name):
            return QUEUE_SKIP
        if not node_matches(pod.pod_spec, new):
            return QUEUE_SKIP
        return QUEUE if old is None or not node_matches(pod.pod_spec, old) else QUEUE_SKIP
