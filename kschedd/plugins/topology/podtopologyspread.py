"""PodTopologySpread: spreads the pods selected by a constraint evenly over the domains of its topology key.

A hard constraint rejects a node if its domain would exceed the minimum by more than maxSkew. A soft constraint prefers
domains with fewer pods. Only nodes that have all topology keys form domains. Depending on the constraint's policies,
the pod's node affinity and tolerations must also match these nodes.

Results that depend only on labels (the counted rows, the domains) are cached until labels change. Numbers of pods
are read from the cache's counters. The plugin's work for an attempt is a few vector operations over domains and rows.

Rules: nominated_pods_wake, in the hint for a change of a pod.
Source: Kubernetes v1.34 and v1.36, plugins/podtopologyspread (common.go, filtering.go, scoring.go, plugin.go).
Shapes: counts are int64, with an element for each value of the topology key and a last element for nodes without the
key.
Errors: none.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import attrs
import numpy as np
import numpy.typing as npt

from kschedd.api.nodes import HOSTNAME_LABEL, Node
from kschedd.api.pods import Pod
from kschedd.api.selecting.terms import SpreadConstraint
from kschedd.cache.domain_counter import FEW_DOMAINS
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Bools, Ints, NodeTable, Rows, TableCopy
from kschedd.cache.table_without_pods import TableWithoutPods
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
from kschedd.framework.handle import Handle
from kschedd.framework.interface import MAX_NODE_SCORE
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.normalize import highest, lowest
from kschedd.framework.status import SKIP, Status, unresolvable, unschedulable
from kschedd.plugins.topology.podtopologyspread_args import PodTopologySpreadArgs
from kschedd.plugins.topology.podtopologyspread_constraints import HARD, SOFT, ReadyConstraint, SpreadConstraints
from kschedd.values import fast_frozen

NO_LABEL, TOO_SKEWED = 1, 2
_NOT_MATCHED = "node(s) didn't match pod topology spread constraints"
_STATUS = {
    NO_LABEL: unresolvable(_NOT_MATCHED + " (missing required label)"),
    TOO_SKEWED: unschedulable(_NOT_MATCHED),
}
_FILTER, _SCORE = "PodTopologySpread", "PodTopologySpread/score"
_FIRST = 512  # nodes
_CONCERNED = {"pre_filter": HARD, "pre_score": SOFT}  # extension point -> the kind of constraints used at the point

Floats = npt.NDArray[np.floating[Any]]


@attrs.define(eq=False)
class _Tally:
    """The number of matching pods in each domain, during this attempt.

    `counts` is the array of the cache until the first change, which copies the array.
    """

    ready: ReadyConstraint
    counts: Ints
    least: int  # lowest count of all domains; 0 if there are fewer domains than minDomains
    changed: bool = False

    @classmethod
    def of(cls, ready: ReadyConstraint, constraints: SpreadConstraints) -> Self:
        domains = constraints.domains(ready)
        enough = ready.domains >= ready.constraint.min_domains
        return cls(ready, domains.counts, domains.least(ready.values) if enough else 0)

    @property
    def most(self) -> int:
        """The largest number of matching pods in a domain to which another pod may be added."""
        return self.ready.constraint.max_skew + self.least - self.ready.selects_itself

    def codes(self, ids: Ints) -> Ints:
        """Return the code of a node in each of these domains; the domains are given as value ids."""
        most = self.most
        if len(self.counts) > len(ids):
            codes = (self.counts[ids] > most) * np.int64(TOO_SKEWED)
            codes[ids < 0] = NO_LABEL
            return codes
        by_domain = (self.counts > most) * np.int64(TOO_SKEWED)
        by_domain[-1] = NO_LABEL
        codes = by_domain[ids]
        return codes

    def add(self, number: int, amount: int) -> None:
        if not self.changed:
            self.counts = self.counts.copy()
            self.changed = True
        self.counts[number] += amount
        if self.ready.domains >= self.ready.constraint.min_domains:
            sums = self.counts[:-1] if self.ready.values is None else self.counts[self.ready.values]
            self.least = int(sums.min())

    def clone(self) -> "_Tally":
        self.changed = False  # two tallies may share the array until it is copied before a write
        return _Tally(self.ready, self.counts, self.least)


@fast_frozen(eq=False)
class _Filtering:
    table: NodeTable
    tallies: tuple[_Tally, ...]

    def clone(self) -> "_Filtering":
        return _Filtering(self.table, tuple(tally.clone() for tally in self.tallies))


@attrs.define(eq=False)
class _DomainColumns:
    """One constraint in the dry run; only the row's own domain and the minimum differ between rows."""

    tally: _Tally
    ids: Ints  # value id of each row
    counts: Ints  # pods in the row's domain
    others_least: Ints | None  # minimum over the other domains; None: 0, because of minDomains
    among_domains: Bools  # true if the row's domain is included in the minimum
    may_count: Bools  # pods on the row count

    @classmethod
    def of(cls, tally: _Tally, table: TableCopy) -> Self:
        ready, counts = tally.ready, tally.counts
        ids = table.label(ready.constraint.topology_key).ids
        among_domains = ids >= 0 if ready.values is None else np.isin(ids, ready.values)
        may_count = np.ones(len(ids), dtype=np.bool_) if ready.among is None else ready.among.mask[table.rows_of_whole]
        own = counts[ids]
        others_least: Ints | None = None
        if ready.domains >= ready.constraint.min_domains:
            sums = np.sort(counts[:-1] if ready.values is None else counts[ready.values])
            least = int(sums[0])
            others_least = np.full(len(ids), least, dtype=np.int64)
            if len(sums) == 1:
                others_least[among_domains] = np.iinfo(np.int64).max
            elif sums[1] > least:
                others_least[among_domains & (own == least)] = sums[1]
        return cls(tally, ids, own, others_least, among_domains, may_count)

    def codes(self, rows: Rows) -> Ints:
        there = self.counts[rows]
        ready = self.tally.ready
        most: Ints | int = ready.constraint.max_skew - ready.selects_itself
        if self.others_least is not None:
            others = self.others_least[rows]
            most = most + np.where(self.among_domains[rows], np.minimum(others, there), others)
        codes = (there > most) * np.int64(TOO_SKEWED)
        codes[self.ids[rows] < 0] = NO_LABEL
        return codes


class _SpreadColumns:
    """The plugin's dry-run columns."""

    def __init__(self, namespace: str, tallies: Sequence[_Tally], table: TableCopy) -> None:
        self._namespace = namespace
        self._columns = [_DomainColumns.of(tally, table) for tally in tallies]
        self._size = len(table.names)
        self._labelled = np.logical_and.reduce([column.ids >= 0 for column in self._columns])
        self._of: Sequence[Pod] = ()
        self._selected: list[Bools] = []  # by constraint: a mask of the pods that the constraint selects

    def follow(self, rows: Rows, kinds: Ints, of: Sequence[Pod], amount: int) -> None:
        if of is not self._of:
            self._of, self._selected = of, [self._which(column.tally.ready.constraint, of) for column in self._columns]
        for column, selected in zip(self._columns, self._selected, strict=True):
            if selected.any():
                pods = np.bincount(rows[selected[kinds]], minlength=self._size)
                column.counts += np.where(self._labelled & column.may_count, pods * amount, 0)

    def _which(self, constraint: SpreadConstraint, of: Sequence[Pod]) -> Bools:
        """Return which of these pods the constraint selects, as a mask.

        As in kube-scheduler, terminating pods are included here.
        """
        namespace, selector = self._namespace, constraint.selector
        return np.array([other.namespace == namespace and selector.matches(other.labels) for other in of])

    def codes(self, rows: Rows) -> Ints:
        codes = self._columns[0].codes(rows)
        for column in self._columns[1:]:
            codes = np.where(codes == 0, column.codes(rows), codes)
        return codes

    def status(self, code: int) -> Status:
        return _STATUS[code]


@attrs.frozen(eq=False)
class _Scoring:
    rows: Rows
    raw: Ints
    ignored: Bools | None  # nodes that lack one of the keys; None: no node lacks a key


@attrs.define(eq=False)
class PodTopologySpread:
    name: ClassVar = "PodTopologySpread"
    args_type: ClassVar = PodTopologySpreadArgs
    without_pre_filter: ClassVar = 'reading "PreFilterPodTopologySpread" from cycleState: not found'
    without_pre_score: ClassVar = 'error reading "PreScorePodTopologySpread" from cycleState: not found'
    depends_on: ClassVar = None

    _constraints: SpreadConstraints
    _nominated_pods_wake: bool

    @classmethod
    def from_args(cls, args: PodTopologySpreadArgs, handle: Handle) -> Self:
        return cls(SpreadConstraints(args, handle.cluster), handle.rules.nominated_pods_wake)

    def repeats_while_unchanged(self, pod: Pod, cluster: SchedulerCache) -> Sequence[str]:
        return [point for point, action in _CONCERNED.items() if not self._constraints.of(pod, action)]

    # -- filter -----------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: Pod, cluster: SchedulerCache) -> Status | None:
        readies = self._constraints.of(pod, HARD)
        if not readies:
            return SKIP
        state.data[_FILTER] = _Filtering(cluster.table, tuple(_Tally.of(ready, self._constraints) for ready in readies))
        return None

    def add_pod(self, state: CycleState, pod: Pod, other: Pod, node: NodeInfo) -> None:
        self._adjust(state, pod, other, node, 1)

    def remove_pod(self, state: CycleState, pod: Pod, other: Pod, node: NodeInfo) -> None:
        self._adjust(state, pod, other, node, -1)

    def _adjust(self, state: CycleState, pod: Pod, other: Pod, node: NodeInfo, amount: int) -> None:
        filtering: _Filtering | None = state.data.get(_FILTER)
        if filtering is None or other.namespace != pod.namespace:
            return
        table = filtering.table
        row = table.row_of[node.name]
        for tally in filtering.tallies:
            if table.label(tally.ready.constraint.topology_key).ids[row] < 0:
                return
        # As in kube-scheduler, terminating pods are included here, although the counters omit them.
        for tally in filtering.tallies:
            ready = tally.ready
            if ready.constraint.selector.matches(other.labels) and (ready.among is None or ready.among.mask[row]):
                tally.add(int(table.label(ready.constraint.topology_key).ids[row]), amount)

    def dry_run_columns(self, state: CycleState, pod: Pod, table: TableCopy) -> "_SpreadColumns | None":
        filtering: _Filtering | None = state.data.get(_FILTER)
        return None if filtering is None else _SpreadColumns(pod.namespace, filtering.tallies, table)

    def verdict_key(self, pod: Pod, state: CycleState) -> bytes | None:
        key = b""
        for tally in state.data[_FILTER].tallies:
            if len(tally.counts) > FEW_DOMAINS:
                return None
            key += (tally.counts > tally.most).tobytes()
        return key

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        filtering: _Filtering = state.data[_FILTER]
        codes: Ints | None = None
        at = table.places(rows)
        for tally in filtering.tallies:
            more = tally.codes(table.label(tally.ready.constraint.topology_key).ids[at])
            codes = more if codes is None else np.where(codes == 0, more, codes)
        assert codes is not None, "a pod without hard constraints is expected to skip the filter"
        return codes

    def code_status(self, state: CycleState, pod: Pod, code: int) -> Status:
        return _STATUS[code]

    # -- score ------------------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, cluster: SchedulerCache, rows: Rows) -> Status | None:
        readies = self._constraints.of(pod, SOFT)
        if not readies:
            return SKIP
        state.data[_SCORE] = self._scoring(pod, cluster.table, rows, readies)
        return None

    def _scoring(self, pod: Pod, table: NodeTable, rows: Rows, readies: Sequence[ReadyConstraint]) -> _Scoring:
        at = table.places(rows)
        numbers = [table.label(ready.constraint.topology_key).ids[at] for ready in readies]
        lacking: Bools | None = None  # mask of rows that lack one of the keys
        for ids in numbers:
            if lowest(ids) < 0:
                lacking = ids < 0 if lacking is None else lacking | (ids < 0)
        all_needed = self._constraints.all_keys_needed(pod)
        ignored = lacking if all_needed else None
        scored = len(rows) if ignored is None else len(rows) - int(np.count_nonzero(ignored))
        total: Floats | None = None
        points: Floats
        raw: Ints | None = None
        for ready, ids in zip(readies, numbers, strict=True):
            constraint = ready.constraint
            if constraint.topology_key == HOSTNAME_LABEL:
                weight = math.log(scored + 2)
                counted = self._constraints.rows_counted(ready)[at] * (not isinstance(table, TableWithoutPods))
                points = counted * weight + float(constraint.max_skew - 1)
                if lacking is not None:
                    points[ids < 0] = 0.0
            else:
                counts = self._constraints.domains(ready).counts
                seen = _values_among(ids if ignored is None else ids[~ignored], len(counts))
                if not all_needed:
                    counts = self._constraints.with_unlabelled(ready, counts, seen)
                weight = math.log(int(np.count_nonzero(seen)) + 2)
                by_domain = counts * weight + float(constraint.max_skew - 1)
                by_domain[-1] = 0.0
                if len(readies) == 1 and len(by_domain) < len(ids):
                    raw = _rounded(by_domain)[ids]  # rounding the few domains is faster than rounding the many rows
                    break
                points = by_domain[ids]
            total = points if total is None else total + points
        if raw is None:
            assert total is not None, "a pod without soft constraints is expected to skip the score"
            raw = _rounded(total)
        if ignored is not None:
            raw[ignored] = 0
        return _Scoring(rows, raw, ignored)

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        scoring: _Scoring = state.data[_SCORE]
        if isinstance(table, TableWithoutPods):  # count the pods of these nodes again
            scoring = state.data[_SCORE] = self._scoring(pod, table, rows, self._constraints.of(pod, SOFT))
        if rows is scoring.rows:
            return scoring.raw
        by_row = np.zeros(table.capacity, dtype=np.int64)
        by_row[scoring.rows] = scoring.raw
        raw: Ints = by_row[rows]
        return raw

    def normalize(self, state: CycleState, pod: Pod, scores: Ints) -> Ints:
        ignored = state.data[_SCORE].ignored
        counted = scores if ignored is None else scores[~ignored]
        most = highest(counted) if len(counted) else 0
        if most == 0:
            normalized = np.full(len(scores), MAX_NODE_SCORE, dtype=np.int64)
        else:
            normalized = MAX_NODE_SCORE * (most + lowest(counted) - scores) // most
        if ignored is not None:
            normalized[ignored] = 0
        return normalized

    # -- queueing hints --------------------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        action = ActionType
        pods = action.ADD | action.UPDATE_POD_LABEL | action.UPDATE_POD_TOLERATION | action.DELETE
        nodes = action.ADD | action.DELETE | action.UPDATE_NODE_LABEL | action.UPDATE_NODE_TAINT
        # Default constraints also depend on the pod's controller.
        by_signature = not self._constraints.defaults_are_hard
        return (
            on(EventResource.POD, pods, self._after_pod_change, by_signature=by_signature),
            on(EventResource.NODE, nodes, self._after_node_change, by_signature=by_signature),
        )

    def _after_pod_change(self, pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        for version in (old, new):
            if version is not None and not self._involved(version, pod):
                return QUEUE_SKIP
        constraints = self._constraints.hard(pod)
        if old is not None and new is not None:
            if new.uid == pod.uid and new.pod_spec.tolerations != old.pod_spec.tolerations:
                if any(constraint.honor_taints for constraint in constraints):
                    return QUEUE
            changed = any(c.selector.matches(old.labels) != c.selector.matches(new.labels) for c in constraints)
            return QUEUE if changed else QUEUE_SKIP
        there = new if new is not None else old
        assert there is not None, "an event has an old or a new pod"
        return QUEUE if any(c.selector.matches(there.labels) for c in constraints) else QUEUE_SKIP

    def _involved(self, other: Pod, pod: Pod) -> bool:
        node = other.node_name or (self._nominated_pods_wake and other.nominated_node_name)
        return other.uid == pod.uid or (bool(node) and other.namespace == pod.namespace)

    def _after_node_change(self, pod: Pod, old: Node | None, new: Node | None) -> QueueingHint:
        keys = [constraint.topology_key for constraint in self._constraints.hard(pod)]
        had = old is not None and all(key in old.labels for key in keys)
        has = new is not None and all(key in new.labels for key in keys)
        if old is None or new is None:
            return QUEUE if had or has else QUEUE_SKIP
        if had != has:
            return QUEUE
        moved = any(old.labels.get(key, "") != new.labels.get(key, "") for key in keys)
        return QUEUE if has and (moved or _raw_taints(old) != _raw_taints(new)) else QUEUE_SKIP


def _raw_taints(node: Node) -> Sequence[Any]:
    """Return the taints including timeAdded, which upstream also compares."""
    taints: Sequence[Any] = node.spec.get("taints") or ()
    return taints


def _values_among(ids: Ints, size: int) -> Bools:
    """Return for each value id whether it is in `ids`; the last element is for id -1."""
    seen = np.zeros(size, dtype=np.bool_)
    seen[ids[:_FIRST]] = True
    rest = ids[_FIRST:]
    # Usually the label has few values, and the first nodes already have all of them.
    if len(rest) and (np.count_nonzero(seen[:-1]) < size - 1 or lowest(rest) < 0):
        seen[rest] = True
    return seen


def _rounded(points: Floats) -> Ints:
    """Round nonnegative numbers to the nearest integer, halves up."""
    whole = np.floor(points)
    return (whole + (points - whole >= 0.5)).astype(np.int64)
