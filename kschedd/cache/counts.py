"""Counts of pods by node and by topology domain, updated as pods are added and removed.

PodTopologySpread and InterPodAffinity both need the number of pods in a domain that match some selector. Without
counters, counting matching pods would require a visit to all pods. Each selector gets a counter at its first use.
Adding or removing a pod updates only the counters that match the pod. There are two kinds:

* `PodMatcher`: counts pods that match all of some terms (namespaces and selector), as an incoming pod's own terms
  require.
* `ExistingTerm`: counts pods that themselves have a given affinity or anti-affinity term. An ExistingTerm is used to
  decide whether the terms of existing pods match an incoming pod.

Pods are stored in groups (same namespace, same labels, terminating or not), because selectors read no other field of a
pod. A new counter is filled from the groups that share a label with the selector, without visiting single pods. Groups,
matchers and existing terms are indexed by namespace and label (`term_index`), so that many applications do not slow
each other down.

Invariant: every counter equals a new count of all pods.
Source: Kubernetes v1.34, plugins/podtopologyspread/common.go, plugins/interpodaffinity/filtering.go and scoring.go.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Literal, TypeVar

import attrs

from kschedd.api.pods import Pod, PodSignature
from kschedd.api.selecting.selectors import LabelSelector
from kschedd.api.selecting.terms import PodAffinityTerm
from kschedd.cache.domain_counter import DomainCounter, RowSet
from kschedd.cache.table import Bools, NodeTable
from kschedd.cache.term_index import TermKey, keys_matching, term_key
from kschedd.cache.versions import TERMS

TermKind = Literal["required-anti", "required", "preferred"]
Labels = Mapping[str, str]
_A = TypeVar("_A")
_K = TypeVar("_K")
_V = TypeVar("_V")
GroupKey = tuple[tuple[str, frozenset[tuple[str, str]]], bool]  # PodSignature.group_key, terminating

# Above this number, the least recently used entries are dropped.
_TERMS_MATCHING_LIMIT = 1024


@attrs.frozen(cache_hash=True)
class PodMatcher:
    """A predicate for the pods that match every one of `terms`; with `live`, terminating pods do not match.

    Created by `pod_matcher` and `spread_matcher`.
    """

    terms: tuple[PodAffinityTerm, ...]
    live: bool

    def includes(self, namespace: str, labels: Labels, namespaces: Mapping[str, Labels]) -> bool:
        """Return whether a pod with these labels matches. `namespaces` maps the existing namespaces to their labels."""
        for term in self.terms:
            if namespace not in term.namespaces and not _selected(term.namespace_selector, namespace, namespaces):
                return False
            if not term.selector.matches(labels):
                return False
        return True


def _selected(selector: LabelSelector | None, namespace: str, namespaces: Mapping[str, Labels]) -> bool:
    if selector is None:
        return False
    if selector.empty:
        return True  # the selector matches every namespace, known or not
    labels = namespaces.get(namespace)
    return labels is not None and selector.matches(labels)


def pod_matcher(terms: Iterable[PodAffinityTerm]) -> PodMatcher:
    """Return a matcher for pods that match all of these terms; their topology keys are ignored."""
    bare = {attrs.evolve(term, topology_key=""): None for term in terms}
    return PodMatcher(tuple(bare), live=False)


def spread_matcher(namespace: str, selector: LabelSelector) -> PodMatcher:
    """Return the matcher of a spread constraint: live pods of its own namespace that its selector matches."""
    return PodMatcher((PodAffinityTerm(selector, "", frozenset((namespace,)), None),), live=True)


@attrs.define(eq=False)
class Group:
    """Pods with equal namespace and labels, which no selector can distinguish."""

    namespace: str
    labels: Labels
    terminating: bool
    by_row: dict[int, int] = attrs.field(factory=dict)
    counters: list[DomainCounter] = attrs.field(factory=list)

    def join(self, counter: DomainCounter) -> None:
        """Add this counter to the group's list, and remove dropped counters from it."""
        self.counters = [known for known in self.counters if not known.dropped]
        self.counters.append(counter)


@attrs.define(eq=False)
class ExistingTerm:
    """A term of existing pods: their number in each row, and the sum of their weights if the term is preferred."""

    kind: TermKind
    term: PodAffinityTerm
    count: DomainCounter
    weight: DomainCounter
    carriers: int = 0


_TermsMatching = dict[TermKind, list[ExistingTerm]]


@attrs.define(eq=False)
class PodCounts:
    """All counters of one table. The cache must report every pod that is added to a row or removed from a row."""

    table: NodeTable
    namespaces: dict[str, Labels] = attrs.field(factory=dict)
    existing_terms: dict[tuple[TermKind, PodAffinityTerm], ExistingTerm] = attrs.field(factory=dict)
    _carried_at: dict[TermKey, dict[tuple[TermKind, PodAffinityTerm], ExistingTerm]] = attrs.field(factory=dict)
    _groups: dict[GroupKey, Group] = attrs.field(factory=dict)
    _groups_in: dict[str, dict[GroupKey, Group]] = attrs.field(factory=dict)  # by namespace
    # by label key, then by namespace and value; only for label keys that a matcher uses
    _groups_at: dict[str, dict[tuple[str, str], dict[GroupKey, Group]]] = attrs.field(factory=dict)
    _matching: OrderedDict[PodMatcher, DomainCounter] = attrs.field(factory=OrderedDict)
    _matching_at: dict[TermKey, dict[PodMatcher, DomainCounter]] = attrs.field(factory=dict)
    _indexed_for: Counter[str] = attrs.field(factory=Counter)  # by label key: number of matchers indexed by it
    # by namespace and labels (`PodSignature.group_key`): version stamp and terms
    _terms_matching: dict[tuple[str, frozenset[tuple[str, str]]], tuple[int, _TermsMatching]] = attrs.field(
        factory=dict
    )
    _sets: dict[bytes, RowSet] = attrs.field(factory=dict)

    @property
    def counters(self) -> int:
        """The number of pod matchers with a counter."""
        return len(self._matching)

    @property
    def carries_terms(self) -> bool:
        """True if any pod of the table has affinity or anti-affinity terms."""
        return bool(self.existing_terms)

    def add(self, row: int, pod: Pod, amount: int) -> None:
        """Count a pod: `amount` is 1 when the pod is added to the row, -1 when it is removed."""
        signature = pod.signature
        key = (signature.group_key, bool(pod.deletion_timestamp))
        group = self._groups.get(key)
        if group is None:
            group = self._found(key, signature)
        total = group.by_row.get(row, 0) + amount
        if total:
            group.by_row[row] = total
        else:
            del group.by_row[row]
            if not group.by_row:
                self._disband(key, group)
        for counter in group.counters:
            if not counter.dropped:
                counter.add(row, amount)
        if signature.spec.has_pod_affinity:
            self._carry(row, signature, amount)

    def prepare(self, pod: Pod) -> None:
        """Create the counters for pods equal to this pod, without counting the pod.

        Raises an exception if the pod is invalid.
        """
        key = (pod.signature.group_key, bool(pod.deletion_timestamp))
        if key not in self._groups:
            self._found(key, pod.signature)

    def add_each(self, rows: Sequence[int], pod: Pod) -> None:
        """Count a pod like this one, which must have no affinity terms, on each of these rows."""
        signature = pod.signature
        assert not signature.spec.has_pod_affinity, "pods with terms are counted one by one"
        key = (signature.group_key, bool(pod.deletion_timestamp))
        group = self._groups.get(key) or self._found(key, signature)
        by_row = group.by_row
        for row in rows:
            by_row[row] = by_row.get(row, 0) + 1
        for counter in group.counters:
            if not counter.dropped:
                for row in rows:
                    counter.add(row, 1)

    def matching(self, kind: PodMatcher) -> DomainCounter:
        """Return the counter of the matching pods: an existing one, or a new one filled from the groups."""
        counter = self._matching.get(kind)
        if counter is not None:
            self._matching.move_to_end(kind)
            return counter
        counter = self._matching[kind] = DomainCounter(self.table)
        place = term_key(kind.terms[0])
        self._matching_at.setdefault(place, {})[kind] = counter
        self._indexed_for[place[1]] += 1
        for group in self._groups_of(kind):
            group.join(counter)
            if not counter.by_row:
                counter.by_row = group.by_row.copy()
                continue
            for row, amount in group.by_row.items():
                counter.by_row[row] = counter.by_row.get(row, 0) + amount
        if len(self._matching) > self.table.most_counters:
            self._drop(next(iter(self._matching)))
        return counter

    def existing_terms_matching(self, kind: TermKind, signature: PodSignature) -> list[ExistingTerm]:
        """Return the existing pods' terms of this kind that match a pod of this signature."""
        known = self._terms_matching.get(signature.group_key)
        versions = self.table.versions
        if known is None or versions.at[TERMS] > known[0]:
            found: _TermsMatching = {"required-anti": [], "required": [], "preferred": []}
            namespace_labels = self.namespaces.get(signature.namespace, {})
            for key_in_index in keys_matching(signature.namespace, signature.labels) if self.existing_terms else ():
                for existing_terms in self._carried_at.get(key_in_index, {}).values():
                    if existing_terms.term.matches(signature.namespace, signature.labels, namespace_labels):
                        found[existing_terms.kind].append(existing_terms)
            if len(self._terms_matching) >= _TERMS_MATCHING_LIMIT:
                self._terms_matching.clear()
            known = self._terms_matching[signature.group_key] = (versions.now, found)
        return known[1][kind]

    def set_namespace(self, name: str, labels: Labels | None) -> None:
        """Set a namespace's labels (None: deleted). Counters whose terms may select the namespace are rebuilt."""
        if self.namespaces.get(name) == labels:
            return
        if labels is None:
            del self.namespaces[name]
        else:
            self.namespaces[name] = labels
        self.table.versions.touch(TERMS)
        for kind in [k for k in self._matching if any(t.namespace_selector is not None for t in k.terms)]:
            self._drop(kind)

    def row_set(self, included: Bools) -> RowSet:
        """Return the rows of the mask as a set; equal masks return the same object.

        The caller must not modify the mask. The result is an argument of `DomainCounter.by_domain`.
        """
        key = included.tobytes()
        known = self._sets.get(key)
        if known is None:
            if len(self._sets) >= self.table.most_counters:
                self._sets.clear()
            known = self._sets[key] = RowSet(next(_set_numbers), included)
        return known

    # -- groups -----------------------------------------------------------------------------------------------

    def _found(self, key: GroupKey, signature: PodSignature) -> Group:
        group = Group(signature.namespace, signature.labels, key[1])
        self._groups[key] = group
        self._groups_in.setdefault(signature.namespace, {})[key] = group
        for label, index in self._groups_at.items():
            if label in group.labels:
                index.setdefault((group.namespace, group.labels[label]), {})[key] = group
        for key_in_index in keys_matching(group.namespace, group.labels):
            for kind, counter in self._matching_at.get(key_in_index, {}).items():
                if self._includes(kind, group):
                    group.counters.append(counter)
        return group

    def _disband(self, key: GroupKey, group: Group) -> None:
        del self._groups[key]
        _take_out(self._groups_in, group.namespace, key)
        for label, index in self._groups_at.items():
            if label in group.labels:
                _take_out(index, (group.namespace, group.labels[label]), key)

    def _includes(self, kind: PodMatcher, group: Group) -> bool:
        if kind.live and group.terminating:
            return False
        return kind.includes(group.namespace, group.labels, self.namespaces)

    def _groups_of(self, kind: PodMatcher) -> list[Group]:
        namespace, label, value = term_key(kind.terms[0])
        among = [namespace] if namespace is not None else list(self._groups_in)
        candidates: list[Group] = []
        if label:
            index = self._groups_at.get(label)
            if index is None:
                index = self._groups_at[label] = self._indexed(label)
            for name in among:
                candidates += index.get((name, value), {}).values()
        else:
            for name in among:
                candidates += self._groups_in.get(name, {}).values()
        return [group for group in candidates if self._includes(kind, group)]

    def _indexed(self, label: str) -> dict[tuple[str, str], dict[GroupKey, Group]]:
        index: dict[tuple[str, str], dict[GroupKey, Group]] = {}
        for key, group in self._groups.items():
            if label in group.labels:
                index.setdefault((group.namespace, group.labels[label]), {})[key] = group
        return index

    def _drop(self, kind: PodMatcher) -> None:
        self._matching.pop(kind).dropped = True
        place = term_key(kind.terms[0])
        _take_out(self._matching_at, place, kind)
        label = place[1]
        self._indexed_for[label] -= 1
        if not self._indexed_for[label]:  # drop unused label keys, because every new group checks each key
            del self._indexed_for[label]
            self._groups_at.pop(label, None)

    @property
    def indexed_labels(self) -> frozenset[str]:
        """The label keys by which groups are indexed."""
        return frozenset(self._groups_at)

    # -- terms of existing pods ---------------------------------------------------------------------------------

    def _carry(self, row: int, signature: PodSignature, amount: int) -> None:
        for term in signature.required_anti_affinity:
            self._carry_term("required-anti", term, row, amount, 0)
        for term in signature.required_affinity:
            self._carry_term("required", term, row, amount, 0)
        for weighted in signature.preferred_affinity:
            self._carry_term("preferred", weighted.term, row, amount, weighted.weight)
        for weighted in signature.preferred_anti_affinity:
            self._carry_term("preferred", weighted.term, row, amount, -weighted.weight)

    def _carry_term(self, kind: TermKind, term: PodAffinityTerm, row: int, amount: int, weight: int) -> None:
        key = (kind, term)
        existing_terms = self.existing_terms.get(key)
        if existing_terms is None:
            existing_terms = self.existing_terms[key] = ExistingTerm(
                kind, term, DomainCounter(self.table), DomainCounter(self.table)
            )
            self._carried_at.setdefault(term_key(term), {})[key] = existing_terms
            self.table.versions.touch(TERMS)
        existing_terms.carriers += amount
        existing_terms.count.add(row, amount)
        if weight:
            existing_terms.weight.add(row, amount * weight)
        if not existing_terms.carriers:
            del self.existing_terms[key]
            _take_out(self._carried_at, term_key(term), key)
            self.table.versions.touch(TERMS)


def _take_out(index: dict[_A, dict[_K, _V]], place: _A, key: _K) -> None:
    entries = index[place]
    del entries[key]
    if not entries:
        del index[place]


_set_numbers = count(1)
