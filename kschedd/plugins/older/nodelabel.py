"""NodeLabel: filters and scores nodes by the presence or absence of label keys; label values are ignored.

The plugin belongs to older releases; now NodeAffinity's addedAffinity replaces it. Source: Kubernetes v1.22,
plugins/nodelabel/node_label.go.
Codes: 1, a required label is missing, or a forbidden label is present.
"""

from collections.abc import Sequence
from typing import ClassVar, Self

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.table import Bools, Ints, NodeTable, Rows
from kschedd.config.args import ArgsContext
from kschedd.config.parsing.reading import ConfigFields
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import ActionType, ClusterEventWithHint, EventResource, on
from kschedd.framework.handle import Handle
from kschedd.framework.interface import MAX_NODE_SCORE
from kschedd.framework.status import Status, unresolvable


@attrs.frozen
class NodeLabelArgs:
    present_labels: tuple[str, ...] = ()
    absent_labels: tuple[str, ...] = ()
    present_labels_preference: tuple[str, ...] = ()
    absent_labels_preference: tuple[str, ...] = ()

    @classmethod
    def check(cls, fields: ConfigFields, context: ArgsContext) -> None:
        for present, absent in (
            ("presentLabels", "absentLabels"),
            ("presentLabelsPreference", "absentLabelsPreference"),
        ):
            both = set(fields.place.value.get(present) or ()) & set(fields.place.value.get(absent) or ())
            if both:
                fields.place.reading.report(fields.path(absent), sorted(both), f"is also in {present}")


@attrs.frozen
class NodeLabel:
    name: ClassVar = "NodeLabel"
    args_type: ClassVar = NodeLabelArgs
    depends_on: ClassVar = frozenset({"node"})
    args: NodeLabelArgs

    @classmethod
    def from_args(cls, args: NodeLabelArgs, handle: Handle) -> Self:
        return cls(args)

    def idle_for(self, pod: Pod) -> Sequence[str]:
        return () if self.args.present_labels or self.args.absent_labels else ("filter",)

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints | None:
        if self.idle_for(pod):
            return None
        wrong = np.zeros(len(rows), dtype=np.bool_)
        for label in self.args.present_labels:
            wrong |= ~_has(table, rows, label)
        for label in self.args.absent_labels:
            wrong |= _has(table, rows, label)
        return wrong.astype(np.int64)

    def code_status(self, state: CycleState, pod: Pod, code: int) -> Status:
        return unresolvable("node(s) didn't have the requested labels")

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        present, absent = self.args.present_labels_preference, self.args.absent_labels_preference
        found = np.zeros(len(rows), dtype=np.int64)
        for label in present:
            found += _has(table, rows, label)
        for label in absent:
            found += ~_has(table, rows, label)
        return found * MAX_NODE_SCORE // max(len(present) + len(absent), 1)

    def events_to_register(self) -> list[ClusterEventWithHint]:
        return [on(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)]


def _has(table: NodeTable, rows: Rows, label: str) -> Bools:
    there: Bools = table.label(label).ids[rows] >= 0
    return there
