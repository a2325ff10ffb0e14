"""Evaluation of a pod's spread constraints: the counted rows, the domains, and the matching pods.

The constraints are the pod's own, or the default constraints with the selector of its Services and controller. The
result depends only on the pod's signature, labels and taints, so it is cached until labels or taints change. Pods with
equal affinity and tolerations share the set of counted rows.

Source: Kubernetes v1.34, plugins/podtopologyspread/common.go.
Errors: none.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.api.selecting.selectors import LabelSelector
from kschedd.api.selecting.terms import (
    NO_EXECUTE,
    NO_SCHEDULE,
    SpreadConstraint,
    Taint,
    Toleration,
    parse_spread_constraint,
)
from kschedd.cache.counts import PodMatcher, spread_matcher
from kschedd.cache.domain_counter import RowSet, TopologyPairCounts
from kschedd.cache.nodematch import matching_rows
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Bools, Ints
from kschedd.cache.versions import LABELS
from kschedd.plugins.topology.podtopologyspread_args import PodTopologySpreadArgs
from kschedd.plugins.topology.podtopologyspread_default_selector import DefaultSelectors

HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"


@attrs.frozen(eq=False)
class ReadyConstraint:
    """A spread constraint with its matcher and domains, for pods of one signature.

    A ready constraint is valid until labels change.
    """

    constraint: SpreadConstraint
    kind: PodMatcher | None  # matcher of the pods to count; None: an empty selector, which matches no pods
    among: RowSet | None  # rows whose pods are counted; None: every row that has the key
    values: Ints | None  # value ids of the domains; None: every value of the key
    domains: int
    selects_itself: int  # 1 if the pod matches its own constraint


def _by_action(args: PodTopologySpreadArgs) -> dict[str, list[Mapping[str, Any]]]:
    raws = [(default.when_unsatisfiable, default.raw) for default in args.constraints]
    return {action: [raw for when, raw in raws if when == action] for action in (HARD, SOFT)}


@attrs.define(eq=False)
class SpreadConstraints:
    """The prepared constraints of pods in one cluster, for one configuration."""

    _args: PodTopologySpreadArgs
    _cluster: SchedulerCache
    _defaults: Mapping[str, Sequence[Mapping[str, Any]]] = attrs.field(init=False)  # as in a pod's spec
    _selectors: DefaultSelectors = attrs.field(init=False)
    # the fields below are valid until labels change
    _stamp: int = attrs.field(init=False, default=-1)
    # by pod signature without amounts, and by the two other arguments
    _ready: dict[tuple[int, str, LabelSelector | None], tuple[ReadyConstraint, ...]] = attrs.field(
        init=False, factory=dict
    )
    _allowed: dict[tuple[Any, ...], RowSet | None] = attrs.field(init=False, factory=dict)
    _values: dict[tuple[str, int], tuple[Ints | None, int]] = attrs.field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        self._defaults = _by_action(self._args)
        self._selectors = DefaultSelectors(self._cluster)

    def of(self, pod: Pod, action: str) -> tuple[ReadyConstraint, ...]:
        """Return the pod's own constraints with this `action`, or the defaults if the pod has no constraints."""
        signature = pod.signature
        own = signature.spread_constraints
        selector: LabelSelector | None = None
        if not own:
            if not self._defaults[action]:
                return ()
            selector = self._selectors.of(pod)
            if selector.empty:
                return ()
        versions = self._cluster.versions
        if versions.at[LABELS] > self._stamp:
            self._stamp = versions.now
            self._ready.clear()
            self._allowed.clear()
            self._values.clear()
        key = (signature.signature_ignoring_amounts, action, selector)
        readies = self._ready.get(key)
        if readies is None:
            if len(self._ready) >= self._cluster.table.most_counters:
                self._ready.clear()
            constraints = self._stated(pod, selector, action)
            keys = tuple(sorted({constraint.topology_key for constraint in constraints}))
            if action == SOFT and not self.all_keys_needed(pod):
                keys = ()
            readies = tuple(self._made_ready(pod, constraint, keys) for constraint in constraints)
            self._ready[key] = readies
        return readies

    def hard(self, pod: Pod) -> Sequence[SpreadConstraint]:
        """Return the pod's hard constraints as its spec contains them."""
        if pod.signature.spread_constraints:
            return self._stated(pod, None, HARD)
        selector = self._selectors.of(pod) if self._defaults[HARD] else None
        return () if selector is None or selector.empty else self._stated(pod, selector, HARD)

    @property
    def defaults_are_hard(self) -> bool:
        """True if some default constraint is hard."""
        return bool(self._defaults[HARD])

    def all_keys_needed(self, pod: Pod) -> bool:
        """Return whether a node must have all topology keys.

        With the System default constraints, a node needs only the hostname label.
        """
        return bool(pod.signature.spread_constraints) or self._args.defaulting_type != "System"

    def domains(self, ready: ReadyConstraint) -> TopologyPairCounts:
        """Return the number of matching pods by domain."""
        key = ready.constraint.topology_key
        if ready.kind is None:
            column = self._cluster.table.label(key)
            return TopologyPairCounts(column, None, np.zeros(len(column.values) + 1, dtype=np.int64), 0)
        return self._cluster.counts.matching(ready.kind).by_domain(key, ready.among)

    def rows_counted(self, ready: ReadyConstraint) -> Ints:
        """Return the number of matching pods by row, for all rows."""
        if ready.kind is None:
            return np.zeros(self._cluster.table.capacity, dtype=np.int64)
        return self._cluster.counts.matching(ready.kind).rows()

    def with_unlabelled(self, ready: ReadyConstraint, counts: Ints, seen: Bools) -> Ints:
        """Return the counts with an additional domain "" for nodes without the key, as upstream counts them.

        `seen` contains the values of the nodes to score; its last element is for nodes without the key. The pods of all
        nodes without the key are added to that domain, even if none of these nodes is scored.
        """
        table = self._cluster.table
        column = table.label(ready.constraint.topology_key)
        empty = column.numbers.get("")
        if empty is None or not (seen[empty] or seen[-1]):
            return counts
        lacking = table.alive & (column.ids < 0)
        if ready.among is not None:
            lacking &= ready.among.mask
        seen[empty], seen[-1] = True, False
        counts = counts.copy()
        counts[empty] += int(self.rows_counted(ready)[lacking].sum())
        return counts

    def _stated(self, pod: Pod, selector: LabelSelector | None, action: str) -> list[SpreadConstraint]:
        if selector is None:
            return [c for c in pod.signature.spread_constraints if c.when_unsatisfiable == action]
        stated = (parse_spread_constraint(raw, pod.labels) for raw in self._defaults[action])
        return [attrs.evolve(constraint, selector=selector) for constraint in stated]

    def _made_ready(self, pod: Pod, constraint: SpreadConstraint, keys: tuple[str, ...]) -> ReadyConstraint:
        among = self._allowed_rows(pod, constraint, keys)
        values, domains = self._domain_values(constraint.topology_key, among)
        selector = constraint.selector
        kind = None if selector.empty else spread_matcher(pod.namespace, selector)
        return ReadyConstraint(constraint, kind, among, values, domains, int(selector.matches(pod.labels)))

    def _allowed_rows(self, pod: Pod, constraint: SpreadConstraint, keys: tuple[str, ...]) -> RowSet | None:
        """Return the rows whose pods count: those with all `keys` that affinity and taints allow, if honored."""
        spec = pod.pod_spec
        honored: tuple[Any, ...] = (constraint.topology_key, keys)
        if constraint.honor_affinity:
            honored += (tuple(spec.node_selector.items()), spec.required_node_affinity)
        if constraint.honor_taints:
            honored += (spec.tolerations,)
        if honored in self._allowed:
            return self._allowed[honored]
        table = self._cluster.table
        all_rows = table.alive & (table.label(constraint.topology_key).ids >= 0) if keys else table.alive
        allowed = all_rows
        for key in keys:
            allowed = allowed & (table.label(key).ids >= 0)
        if constraint.honor_affinity and (spec.node_selector or spec.required_node_affinity is not None):
            allowed = allowed & matching_rows(table, spec.node_selector, spec.required_node_affinity, None)
        if constraint.honor_taints:
            tolerated = np.array([_tolerated(taints, spec.tolerations) for taints in table.taint_sets])
            allowed = allowed & tolerated[table.taints]
        among = None if np.array_equal(allowed, all_rows) else self._cluster.counts.row_set(allowed)
        if len(self._allowed) >= table.most_counters:
            self._allowed.clear()
        self._allowed[honored] = among
        return among

    def _domain_values(self, key: str, among: RowSet | None) -> tuple[Ints | None, int]:
        """Return the value ids that occur in the rows (None: all ids of the column), and the number of these ids."""
        place = (key, 0 if among is None else among.number)
        known = self._values.get(place)
        if known is None:
            table = self._cluster.table
            column = table.label(key)
            there = np.zeros(len(column.values) + 1, dtype=np.bool_)
            there[column.ids[table.alive if among is None else among.mask]] = True
            values = np.flatnonzero(there[:-1])
            known = (None if len(values) == len(column.values) else values, len(values))
            if len(self._values) >= table.most_counters:
                self._values.clear()
            self._values[place] = known
        return known


def _tolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> bool:
    return all(
        taint.effect not in (NO_SCHEDULE, NO_EXECUTE) or any(t.tolerates(taint) for t in tolerations)
        for taint in taints
    )
