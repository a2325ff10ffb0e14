"""InterPodAffinity's state in an attempt: pods by domain for each term, and columns for preemption's dry run.

In the dry run, every row represents a separate cluster, in which pods were removed from that row's node only. Only the
count of the node's own domain and the total differ between rows. Each row therefore needs only one number instead of a
copy of the state.

Source: Kubernetes v1.34, plugins/interpodaffinity/filtering.go (preFilterState, updateWithPod). Shapes: counts of a
tally have an int64 for each value id of the key's column, and a last element, 0, for rows without the key. Counts and
totals of a column have one element for each row.
"""

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.counts import PodMatcher
from kschedd.cache.table import Bools, Ints, NodeTable, Rows, TableCopy
from kschedd.framework.status import Status, unresolvable, unschedulable

NOT_NEAR, TOO_NEAR, MINDED = 1, 2, 3
STATUS_OF_CODE = {
    NOT_NEAR: unresolvable("node(s) didn't match pod affinity rules"),
    TOO_NEAR: unschedulable("node(s) didn't match pod anti-affinity rules"),
    MINDED: unschedulable("node(s) didn't satisfy existing pods anti-affinity rules"),
}


@attrs.frozen(eq=False)
class AffinityTerms:
    """A signature's own terms, as matchers for the counters."""

    candidates: PodMatcher | None  # matcher of the pods that match all required affinity terms
    near_keys: tuple[str, ...]
    away: tuple[tuple[PodMatcher, str], ...]  # for each required anti-affinity term: matcher and topology key
    # for each preferred term: matcher, topology key, and weight (negative for anti-affinity)
    preferred: tuple[tuple[PodMatcher, str, int], ...]


@attrs.define(eq=False)
class AffinityTally:
    """The number of pods in each domain of one topology key, in this attempt.

    `counts` is the cache's own array until the first change.
    """

    key: str
    counts: Ints
    total: int
    changed: bool = False

    def add(self, table: NodeTable, row: int, amount: int) -> None:
        number = table.label(self.key).ids[row]
        if number < 0:
            return
        if not self.changed:
            self.counts = self.counts.copy()
            self.changed = True
        self.counts[number] += amount
        self.total += amount

    def clone(self) -> "AffinityTally":
        self.changed = False  # two tallies may share the array until it is copied before a write
        return AffinityTally(self.key, self.counts, self.total)


@attrs.define(eq=False)
class AffinityFiltering:
    table: NodeTable
    terms: AffinityTerms
    speaks_of_itself: bool
    candidates: list[AffinityTally]  # counts for required affinity, in the order of `near_keys`
    away: list[AffinityTally]  # counts for required anti-affinity, in the order of the terms
    minded: dict[str, AffinityTally]  # by topology key

    @property
    def first_of_its_kind(self) -> bool:
        """True if the pod matches its own terms and no domain has a matching pod; nodes then need only the keys."""
        return self.speaks_of_itself and not any(tally.total for tally in self.candidates)

    def clone(self) -> "AffinityFiltering":
        return attrs.evolve(
            self,
            candidates=[tally.clone() for tally in self.candidates],
            away=[tally.clone() for tally in self.away],
            minded={key: tally.clone() for key, tally in self.minded.items()},
        )


class _DomainColumn:
    """A tally in the dry run; only the count of the row's own domain and the total differ between rows."""

    def __init__(self, tally: AffinityTally | None, key: str, table: TableCopy) -> None:
        self.ids = table.label(key).ids
        nobody = np.zeros(len(self.ids), dtype=np.int64)
        self.counts = nobody if tally is None else tally.counts[self.ids]
        self.totals = nobody.copy() if tally is None else nobody + tally.total

    def add(self, rows: Rows, amount: int) -> None:
        pods = np.bincount(rows, minlength=len(self.ids)) * amount
        pods[self.ids < 0] = 0
        self.counts += pods
        self.totals += pods

    def has_any(self, rows: Rows) -> Bools:
        """Return whether each row's domain contains a matching pod."""
        there: Bools = (self.counts[rows] > 0) & (self.totals[rows] != 0)
        return there


class AffinityColumns:
    """The plugin's dry-run columns."""

    def __init__(
        self, pod: Pod, filtering: AffinityFiltering, table: TableCopy, namespaces: Mapping[str, Mapping[str, str]]
    ) -> None:
        self._pod, self._terms, self._namespaces, self._table = pod, filtering.terms, namespaces, table
        self._speaks_of_itself = filtering.speaks_of_itself
        self._candidates = [_DomainColumn(tally, tally.key, table) for tally in filtering.candidates]
        self._away = [_DomainColumn(tally, tally.key, table) for tally in filtering.away]
        self._minded = {key: _DomainColumn(tally, key, table) for key, tally in filtering.minded.items()}
        self._of: Sequence[Pod] = ()
        # by pod: the columns in which the pod is counted, and how often
        self._counting: list[tuple[_DomainColumn, Ints]] = []

    def follow(self, rows: Rows, kinds: Ints, of: Sequence[Pod], amount: int) -> None:
        if of is not self._of:
            columns_of = [self._find(other) for other in of]
            counting = {id(column): column for columns in columns_of for column in columns}.values()
            self._of = of
            self._counting = [
                (column, np.array([columns.count(column) for columns in columns_of])) for column in counting
            ]
        for column, times in self._counting:
            column.add(np.repeat(rows, times[kinds]), amount)

    def _find(self, other: Pod) -> list[_DomainColumn]:
        """Return the columns in which the pod is counted; a column occurs as often as it counts the pod."""
        found: list[_DomainColumn] = []
        terms, namespaces = self._terms, self._namespaces
        if terms.candidates is not None and terms.candidates.includes(other.namespace, other.labels, namespaces):
            found += self._candidates
        for (kind, _), column in zip(terms.away, self._away, strict=True):
            if kind.includes(other.namespace, other.labels, namespaces):
                found.append(column)
        if other.pod_spec.has_pod_affinity:
            namespace_labels = namespaces.get(self._pod.namespace, {})
            for term in other.signature.required_anti_affinity:
                if term.matches(self._pod.namespace, self._pod.labels, namespace_labels):
                    key = term.topology_key
                    if key not in self._minded:
                        self._minded[key] = _DomainColumn(None, key, self._table)
                    found.append(self._minded[key])
        return found

    def codes(self, rows: Rows) -> Ints:
        # The first failing check wins, because codes are written in reverse order, as in `filter_rows`.
        codes = np.zeros(len(rows), dtype=np.int64)
        for column in self._minded.values():
            codes[column.has_any(rows)] = MINDED
        for column in self._away:
            codes[column.has_any(rows)] = TOO_NEAR
        if self._candidates:
            first = np.full(len(rows), self._speaks_of_itself)
            for column in self._candidates:
                first &= column.totals[rows] == 0
            for column in self._candidates:
                codes[np.where(first, column.ids[rows] < 0, column.counts[rows] <= 0)] = NOT_NEAR
        return codes

    def status(self, code: int) -> Status:
        return STATUS_OF_CODE[code]
