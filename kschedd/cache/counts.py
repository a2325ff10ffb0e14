"""Counts of pods by node and by topology domain, kept up to date as pods come and go.

PodTopologySpread and InterPodAffinity both ask "how many pods of this kind run in that domain". Counting afresh walks over
every pod; here each kind that somebody once asked for is a counter, and a pod that comes or goes touches just the counters
of the kinds it belongs to. Two sorts of kind:

* `Matching`: pods that match every one of some terms (namespaces and selector): what an incoming pod's own terms speak of.
* `Carrying`: pods that carry a given term themselves: what decides whether the pods already there mind the newcomer.

Pods are held in groups (same namespace, same labels, terminating or not), because a selector sees nothing else of them:
a new counter is filled from the groups and never walks over pods.

Invariant: every counter equals a count made from scratch (tests/cache holds it to that after any sequence of changes).
Shapes: a `Domains.counts` has one int64 for each value number of its label column.
Source: Kubernetes v1.34, plugins/podtopologyspread/common.go, plugins/interpodaffinity/filtering.go and scoring.go.
"""

from collections import OrderedDict
from collections.abc import Mapping
from itertools import count
from typing import Literal

import attrs
import numpy as np

from kschedd.api.pods import Pod, PodShape
from kschedd.api.selectors import LabelSelector
from kschedd.api.terms import PodAffinityTerm
from kschedd.cache.table import Bools, Ints, NodeTable

Carried = Literal["required-anti", "required", "preferred"]
Labels = Mapping[str, str]
GroupKey = tuple[str, frozenset[tuple[str, str]]]

# Counters that nobody asked for lately are dropped beyond this many, so that long-gone shapes cost nothing.
_MATCHING_LIMIT = 1024
_DOMAINS_LIMIT = 256


@attrs.define(eq=False)
class Domains:
    """Counts by the values of one topology key, over the rows that `included` has (None: every row)."""

    table: NodeTable
    key: str
    included: Bools | None
    counts: Ints
    version: int  # of the table's labels when the counts were last made from the rows

    def add(self, row: int, amount: int) -> None:
        if self.version != self.table.labels_version:
            return  # to be made anew anyway before anyone reads it
        number = self.table.label(self.key).ids[row]
        if number >= 0 and (self.included is None or self.included[row]):
            if number >= len(self.counts):
                self.counts = np.concatenate((self.counts, np.zeros(number + 16 - len(self.counts), dtype=np.int64)))
            self.counts[number] += amount


def domain_counts(table: NodeTable, key: str, by_row: Ints, included: Bools | None) -> Ints:
    """`by_row` summed by the value each row has for `key`; rows without the key, or not included, do not count."""
    column = table.label(key)
    chosen = column.ids >= 0
    if included is not None:
        chosen = chosen & included
    weights = by_row[chosen]
    counts = np.bincount(column.ids[chosen], weights=weights, minlength=len(column.values))
    return counts.astype(np.int64)


@attrs.define(eq=False)
class Counter:
    """One kind of pods: an amount for each row that has any, and its sums by topology domain."""

    by_row: dict[int, int] = attrs.field(factory=dict)
    domains: OrderedDict[tuple[str, int], Domains] = attrs.field(factory=OrderedDict)

    def add(self, row: int, amount: int) -> None:
        total = self.by_row.get(row, 0) + amount
        if total:
            self.by_row[row] = total
        else:
            del self.by_row[row]
        for domains in self.domains.values():
            domains.add(row, amount)

    def rows(self, table: NodeTable) -> Ints:
        """The amounts as a column."""
        column = np.zeros(table.capacity, dtype=np.int64)
        if self.by_row:
            size = len(self.by_row)
            rows = np.fromiter(self.by_row.keys(), dtype=np.int64, count=size)
            column[rows] = np.fromiter(self.by_row.values(), dtype=np.int64, count=size)
        return column

    def by_domain(self, table: NodeTable, key: str, included: Bools | None = None, number: int = 0) -> Ints:
        """Sums by value number of `key`; `number` names the set `included` (0: every row), to tell sets apart."""
        column = table.label(key)
        domains = self.domains.get((key, number))
        if domains is None or domains.version != table.labels_version:
            counts = domain_counts(table, key, self.rows(table), included)
            domains = Domains(table, key, included, counts, table.labels_version)
            self.domains[key, number] = domains
            while len(self.domains) > _DOMAINS_LIMIT:
                self.domains.popitem(last=False)
        if len(domains.counts) < len(column.values):
            domains.counts = np.concatenate(
                (domains.counts, np.zeros(len(column.values) - len(domains.counts), dtype=np.int64))
            )
        return domains.counts


@attrs.frozen
class Kind:
    """Pods that match every one of `terms` (topology keys are not looked at); `live`: terminating ones are left out."""

    terms: tuple[PodAffinityTerm, ...]
    live: bool

    def includes(self, group: "Group", namespaces: Mapping[str, Labels]) -> bool:
        if self.live and group.terminating:
            return False
        labels = namespaces.get(group.namespace)
        for term in self.terms:
            if group.namespace not in term.namespaces and (
                labels is None or term.namespace_selector is None or not term.namespace_selector.matches(labels)
            ):
                return False
            if not term.selector.matches(group.labels):
                return False
        return True


def spread_kind(namespace: str, selector: LabelSelector) -> Kind:
    """What a spread constraint counts: pods of its own namespace that match and are not being deleted."""
    return Kind((PodAffinityTerm(selector, "", frozenset((namespace,)), None),), live=True)


@attrs.define(eq=False)
class Group:
    """Pods that no selector can tell apart."""

    namespace: str
    labels: Labels
    terminating: bool
    by_row: dict[int, int] = attrs.field(factory=dict)
    counters: list[Counter] = attrs.field(factory=list)


@attrs.define(eq=False)
class CarriedTerm:
    """A term some pods carry: how many of them by row, and their weights summed (preferred terms; else the same)."""

    kind: Carried
    term: PodAffinityTerm
    count: Counter = attrs.field(factory=Counter)
    weight: Counter = attrs.field(factory=Counter)
    carriers: int = 0


@attrs.define(eq=False)
class PodCounts:
    """All counters of one table. Its owner tells it of every pod that comes to a row or leaves one."""

    table: NodeTable
    namespaces: dict[str, Labels] = attrs.field(factory=dict)
    carried: dict[tuple[Carried, PodAffinityTerm], CarriedTerm] = attrs.field(factory=dict)
    carried_version: int = 0  # grows when a term gets its first carrier or loses its last
    _groups: dict[tuple[GroupKey, bool], Group] = attrs.field(factory=dict)
    _matching: OrderedDict[Kind, Counter] = attrs.field(factory=OrderedDict)
    _minding: dict[tuple[int, str], tuple[int, list[CarriedTerm]]] = attrs.field(factory=dict)
    _sets: dict[bytes, int] = attrs.field(factory=dict)

    def add(self, row: int, pod: Pod, amount: int) -> None:
        """`amount` is 1 when the pod comes to the row, -1 when it leaves."""
        shape = pod.shape
        group = self._group(shape, bool(pod.deletion_timestamp))
        total = group.by_row.get(row, 0) + amount
        if total:
            group.by_row[row] = total
        else:
            del group.by_row[row]
            if not group.by_row:
                del self._groups[shape.group_key, group.terminating]
        for counter in group.counters:
            counter.add(row, amount)
        if shape.spec.has_pod_affinity:
            self._carry(row, shape, amount)

    def matching(self, kind: Kind) -> Counter:
        """The counter of pods of this kind: kept from an earlier question, or filled from the groups."""
        counter = self._matching.get(kind)
        if counter is None:
            counter = self._matching[kind] = Counter()
            for group in self._groups.values():
                if kind.includes(group, self.namespaces):
                    group.counters.append(counter)
                    for row, count in group.by_row.items():
                        counter.by_row[row] = counter.by_row.get(row, 0) + count
            if len(self._matching) > _MATCHING_LIMIT:
                _, oldest = self._matching.popitem(last=False)
                for group in self._groups.values():
                    if oldest in group.counters:
                        group.counters.remove(oldest)
        else:
            self._matching.move_to_end(kind)
        return counter

    def minding(self, kind: Carried, shape: PodShape) -> list[CarriedTerm]:
        """The terms of this kind, carried by pods already there, that speak of a pod of this shape."""
        key = (shape.number, kind)
        known = self._minding.get(key)
        if known is None or known[0] != self.carried_version:
            labels = self.namespaces.get(shape.namespace, {})
            found = [
                carried
                for (of, term), carried in self.carried.items()
                if of == kind and term.matches(shape.namespace, shape.labels, labels)
            ]
            if len(self._minding) > 4 * _MATCHING_LIMIT:
                self._minding.clear()
            known = self._minding[key] = (self.carried_version, found)
        return known[1]

    def set_namespace(self, name: str, labels: Labels | None) -> None:
        """A namespace has these labels now (None: it is gone). Counters whose terms may select it are made anew."""
        if self.namespaces.get(name) == labels and (labels is not None) == (name in self.namespaces):
            return
        if labels is None:
            del self.namespaces[name]
        else:
            self.namespaces[name] = labels
        self.carried_version += 1
        stale = [k for k in self._matching if any(term.namespace_selector is not None for term in k.terms)]
        dropped = {id(self._matching.pop(kind)) for kind in stale}
        if dropped:
            for group in self._groups.values():
                group.counters = [counter for counter in group.counters if id(counter) not in dropped]

    def set_number(self, included: Bools) -> int:
        """A number for this set of rows, the same for equal sets, never 0; for `Counter.by_domain`."""
        key = included.tobytes()
        number = self._sets.get(key)
        if number is None:
            if len(self._sets) > _MATCHING_LIMIT:
                self._sets.clear()
            number = self._sets[key] = next(_set_numbers)
        return number

    def _group(self, shape: PodShape, terminating: bool) -> Group:
        key = (shape.group_key, terminating)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(shape.namespace, shape.labels, terminating)
            for kind, counter in self._matching.items():
                if kind.includes(group, self.namespaces):
                    group.counters.append(counter)
        return group

    def _carry(self, row: int, shape: PodShape, amount: int) -> None:
        for term in shape.required_anti_affinity:
            self._carry_term("required-anti", term, row, amount, 1)
        for term in shape.required_affinity:
            self._carry_term("required", term, row, amount, 1)
        for weighted in shape.preferred_affinity:
            self._carry_term("preferred", weighted.term, row, amount, weighted.weight)
        for weighted in shape.preferred_anti_affinity:
            self._carry_term("preferred", weighted.term, row, amount, -weighted.weight)

    def _carry_term(self, kind: Carried, term: PodAffinityTerm, row: int, amount: int, weight: int) -> None:
        carried = self.carried.get((kind, term))
        if carried is None:
            carried = self.carried[kind, term] = CarriedTerm(kind, term)
            self.carried_version += 1
        carried.carriers += amount
        carried.count.add(row, amount)
        if kind == "preferred":
            carried.weight.add(row, amount * weight)
        if not carried.carriers:
            del self.carried[kind, term]
            self.carried_version += 1


_set_numbers = count(1)

