"""InterPodAffinity: affinity and anti-affinity between the incoming pod and existing pods, in both directions.

A required affinity term needs a pod in the node's topology domain that matches all the pod's terms. If no pod in the
cluster matches, a pod that matches its own terms passes. A required anti-affinity term requires a domain without a
matching pod. The required anti-affinity terms of existing pods exclude the domains of these pods. Preferred
terms of the pod and of existing pods add their weights. Required affinity terms of existing pods that match the
incoming pod also add a weight.

The number of pods in a domain that match a term, or have the term, is read from the cache's counters. An attempt
therefore costs a few vector operations per term, whatever the number of existing pods.

Rules: namespace_selector_kept; nominated_pods_wake, affinity_wakes_more and any_anti_affinity_wakes, in the hint after
a pod has changed.
Source: Kubernetes v1.34, v1.36 and v1.37, plugins/interpodaffinity (filtering.go, scoring.go, plugin.go).
Shapes: counts have an int64 for each value id of the key's column, and a last element, 0, for rows without the key.
Errors: none. A pod with selectors that cannot be parsed is unschedulable on every node.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from typing import ClassVar, Self

import attrs
import numpy as np

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod, PodSignature
from kschedd.api.selecting.selectors import EVERYTHING, SelectorError
from kschedd.api.selecting.terms import PodAffinityTerm
from kschedd.cache.counts import PodMatcher, pod_matcher
from kschedd.cache.domain_counter import FEW_DOMAINS, TopologyPairCounts
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Bools, Ints, NodeTable, Rows, TableCopy
from kschedd.config.args import arg
from kschedd.config.versions.rules import Rules
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
from kschedd.framework.status import SKIP, Status, unresolvable
from kschedd.plugins.topology.interpodaffinity_state import (
    MINDED,
    NOT_NEAR,
    STATUS_OF_CODE,
    TOO_NEAR,
    AffinityColumns,
    AffinityFiltering,
    AffinityTally,
    AffinityTerms,
)

_FILTER, _SCORE = "InterPodAffinity", "InterPodAffinity/score"
_REMEMBERED = 1024


_NO_TERMS = AffinityTerms(None, (), (), ())


def as_asked(term: PodAffinityTerm) -> PodAffinityTerm:
    """Return an incoming pod's term in the form that releases before 1.37 compare with existing pods.

    Upstream adds to the term the namespaces that the namespaceSelector selects. Upstream is meant to clear the selector
    as well, but clears it only in a copy (kubernetes#141526). The selector is therefore evaluated a second time, on a
    namespace without labels. A selector that matches empty labels (only NotIn and DoesNotExist) therefore selects every
    namespace.
    """
    selector = term.namespace_selector
    if selector is None or not selector.matches({}):
        return term
    return attrs.evolve(term, namespace_selector=EVERYTHING)


def as_stated(term: PodAffinityTerm) -> PodAffinityTerm:
    """Return an incoming pod's term in the form that is compared with existing pods under namespace_selector_kept."""
    return term


AsEvaluated = Callable[[PodAffinityTerm], PodAffinityTerm]


def evaluated_by(rules: Rules) -> AsEvaluated:
    """Return the function that converts an incoming pod's terms for comparison with existing pods in a version."""
    return as_stated if rules.namespace_selector_kept else as_asked


@lru_cache(_REMEMBERED)
def matcher(terms: tuple[PodAffinityTerm, ...], as_evaluated: AsEvaluated) -> PodMatcher:
    """Return a matcher for existing pods that match all these terms of an incoming pod."""
    return pod_matcher(map(as_evaluated, terms))


@attrs.frozen
class InterPodAffinityArgs:
    hard_pod_affinity_weight: int = arg(1, bounds=(0, 100))
    ignore_preferred_terms_of_existing_pods: bool = False


@attrs.frozen
class _HintRules:
    """The version rules that affect the queueing hint for a change of a pod."""

    nominated_pods_wake: bool
    affinity_wakes_more: bool
    any_anti_affinity_wakes: bool

    def after_pod_change(self, pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        if self.affinity_wakes_more and new is not None and new.uid == pod.uid:
            return QUEUE
        if not ((old is None or self._counts(old)) and (new is None or self._counts(new))):
            return QUEUE_SKIP
        keeps_away = _any_matches if self.any_anti_affinity_wakes else _all_match
        if self.affinity_wakes_more and new is None and old is not None and _excludes(old, pod, keeps_away):
            return QUEUE
        return _after_pod_on_node(pod, old, new, keeps_away)

    def _counts(self, other: Pod) -> bool:
        return bool(other.node_name or (self.nominated_pods_wake and other.nominated_node_name))


_SpeakOf = Callable[[Sequence[PodAffinityTerm], Pod], bool]


def _excludes(other: Pod, pod: Pod, keeps_away: _SpeakOf) -> bool:
    """Return whether the other pod's required anti-affinity excludes this pod. Invalid terms never match."""
    try:
        return keeps_away(other.signature.required_anti_affinity, pod)
    except SelectorError:
        return False


@attrs.define(eq=False)
class InterPodAffinity:
    name: ClassVar = "InterPodAffinity"
    args_type: ClassVar = InterPodAffinityArgs
    without_pre_filter: ClassVar = 'error reading "PreFilterInterPodAffinity" from cycleState: not found'
    without_pre_score: ClassVar = 'failed to read "PreScoreInterPodAffinity" from cycleState: not found'
    depends_on: ClassVar = None

    _args: InterPodAffinityArgs
    _cluster: SchedulerCache
    _hint_rules: _HintRules
    _as_evaluated: AsEvaluated
    _terms: dict[int, AffinityTerms] = attrs.field(factory=dict)  # by signature id

    @classmethod
    def from_args(cls, args: InterPodAffinityArgs, handle: Handle) -> Self:
        rules = handle.rules
        hints = _HintRules(rules.nominated_pods_wake, rules.affinity_wakes_more, rules.any_anti_affinity_wakes)
        return cls(args, handle.cluster, hints, evaluated_by(rules))

    def repeats_while_unchanged(self, pod: Pod, cluster: SchedulerCache) -> Sequence[str]:
        matching, signature, terms = cluster.counts.existing_terms_matching, pod.signature, self._own(pod.signature)
        skips = []
        if terms.candidates is None and not terms.away and not matching("required-anti", signature):
            skips.append("pre_filter")
        if not terms.preferred and not matching("required", signature) and not matching("preferred", signature):
            skips.append("pre_score")
        return skips

    # -- filter -----------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: Pod, cluster: SchedulerCache) -> Status | None:
        try:
            terms = self._own(pod.signature)
        except SelectorError as wrong:
            return unresolvable(f"parsing pod: {wrong}")
        counts = cluster.counts
        minded: dict[str, AffinityTally] = {}
        for existing_terms in counts.existing_terms_matching("required-anti", pod.signature):
            key = existing_terms.term.topology_key
            domains = existing_terms.count.by_domain(key)
            if not domains.total:
                continue
            known = minded.get(key)
            if known is None:
                minded[key] = AffinityTally(key, domains.counts, domains.total)
            else:
                minded[key] = AffinityTally(key, known.counts + domains.counts, known.total + domains.total)
        if terms.candidates is None and not terms.away and not minded:
            return SKIP
        near: list[AffinityTally] = []
        itself = False
        if terms.candidates is not None:
            counter = counts.matching(terms.candidates)
            near = [_tally(key, counter.by_domain(key)) for key in terms.near_keys]
            itself = terms.candidates.includes(pod.namespace, pod.labels, counts.namespaces)
        away = [_tally(key, counts.matching(kind).by_domain(key)) for kind, key in terms.away]
        state.data[_FILTER] = AffinityFiltering(cluster.table, terms, itself, near, away, minded)
        return None

    def add_pod(self, state: CycleState, pod: Pod, other: Pod, node: NodeInfo) -> None:
        self._adjust(state, pod, other, node, 1)

    def remove_pod(self, state: CycleState, pod: Pod, other: Pod, node: NodeInfo) -> None:
        self._adjust(state, pod, other, node, -1)

    def _adjust(self, state: CycleState, pod: Pod, other: Pod, node: NodeInfo, amount: int) -> None:
        filtering: AffinityFiltering | None = state.data.get(_FILTER)
        if filtering is None:
            return
        table, terms = filtering.table, filtering.terms
        row = table.row_of[node.name]
        namespaces = self._cluster.counts.namespaces
        if terms.candidates is not None and terms.candidates.includes(other.namespace, other.labels, namespaces):
            for tally in filtering.candidates:
                tally.add(table, row, amount)
        for (kind, _), tally in zip(terms.away, filtering.away, strict=True):
            if kind.includes(other.namespace, other.labels, namespaces):
                tally.add(table, row, amount)
        if not other.pod_spec.has_pod_affinity:
            return
        namespace_labels = namespaces.get(pod.namespace, {})
        for term in other.signature.required_anti_affinity:
            if term.matches(pod.namespace, pod.labels, namespace_labels):
                key = term.topology_key
                minded = filtering.minded.get(key)
                if minded is None:
                    nobody = np.zeros(len(table.label(key).values) + 1, dtype=np.int64)
                    minded = filtering.minded[key] = AffinityTally(key, nobody, 0, changed=True)
                minded.add(table, row, amount)

    def dry_run_columns(self, state: CycleState, pod: Pod, table: TableCopy) -> AffinityColumns | None:
        filtering: AffinityFiltering | None = state.data.get(_FILTER)
        return None if filtering is None else AffinityColumns(pod, filtering, table, self._cluster.counts.namespaces)

    def verdict_key(self, pod: Pod, state: CycleState) -> Hashable:
        filtering: AffinityFiltering = state.data[_FILTER]
        tallies = [*filtering.minded.values(), *filtering.away, *filtering.candidates]
        if any([len(tally.counts) > FEW_DOMAINS for tally in tallies]):
            return None
        return filtering.first_of_its_kind, *[(tally.key, (tally.counts > 0).tobytes()) for tally in tallies]

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        filtering: AffinityFiltering = state.data[_FILTER]
        codes = np.zeros(len(rows), dtype=np.int64)
        at = table.places(rows)
        # Upstream checks in the order near, away, minded; the reverse order of writes makes the first failing check
        # win.
        for tally in filtering.minded.values():
            if tally.total:
                _reject(codes, tally.counts[table.label(tally.key).ids[at]] > 0, MINDED)
        for tally in filtering.away:
            if tally.total:
                _reject(codes, tally.counts[table.label(tally.key).ids[at]] > 0, TOO_NEAR)
        first = filtering.first_of_its_kind
        for tally in filtering.candidates:
            ids = table.label(tally.key).ids[at]
            _reject(codes, ids < 0 if first else tally.counts[ids] <= 0, NOT_NEAR)
        return codes

    def code_status(self, state: CycleState, pod: Pod, code: int) -> Status:
        return STATUS_OF_CODE[code]

    # -- score ------------------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, cluster: SchedulerCache, rows: Rows) -> Status | None:
        """Return Skip if no term of the pod or of existing pods affects any node."""
        terms = self._own(pod.signature)
        if self._args.ignore_preferred_terms_of_existing_pods and not terms.preferred:
            return SKIP
        counts, signature = cluster.counts, pod.signature
        found: list[tuple[str, Ints, int]] = []  # topology key, sums by domain, weight
        for kind, key, weight in terms.preferred:
            domains = counts.matching(kind).by_domain(key)
            if domains.total:
                found.append((key, domains.counts, weight))
        if self._args.hard_pod_affinity_weight > 0:
            for existing_terms in counts.existing_terms_matching("required", signature):
                key = existing_terms.term.topology_key
                domains = existing_terms.count.by_domain(key)
                if domains.total:
                    found.append((key, domains.counts, self._args.hard_pod_affinity_weight))
        for existing_terms in counts.existing_terms_matching("preferred", signature):
            key = existing_terms.term.topology_key
            if existing_terms.count.by_domain(key).total:
                found.append((key, existing_terms.weight.by_domain(key).counts, 1))
        if not found:
            return SKIP
        state.data[_SCORE] = found
        return None

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        found: list[tuple[str, Ints, int]] = state.data[_SCORE]
        scores = np.zeros(len(rows), dtype=np.int64)
        at = table.places(rows)
        for key, of_key in _by_key(found).items():
            ids = table.label(key).ids[at]
            if len(of_key[0][0]) <= len(rows):
                worth = of_key[0][0] * of_key[0][1]
                for counts, weight in of_key[1:]:
                    worth += counts * weight
                scores += worth[ids]
            else:
                for counts, weight in of_key:
                    scores += counts[ids] * weight
        return scores

    def normalize(self, state: CycleState, pod: Pod, scores: Ints) -> Ints:
        least, most = lowest(scores), highest(scores)
        if most == least:
            return np.zeros(len(scores), dtype=np.int64)
        return (MAX_NODE_SCORE * ((scores - least) / (most - least))).astype(np.int64)

    def _own(self, signature: PodSignature) -> AffinityTerms:
        if not signature.spec.has_pod_affinity:
            return _NO_TERMS
        terms = self._terms.get(signature.id)
        if terms is None:
            near, away = signature.required_affinity, signature.required_anti_affinity
            preferred = [(weighted.term, weighted.weight) for weighted in signature.preferred_affinity]
            preferred += [(weighted.term, -weighted.weight) for weighted in signature.preferred_anti_affinity]
            terms = AffinityTerms(
                matcher(near, self._as_evaluated) if near else None,
                tuple(dict.fromkeys([term.topology_key for term in near])),
                tuple([(matcher((term,), self._as_evaluated), term.topology_key) for term in away]),
                tuple(
                    [(matcher((term,), self._as_evaluated), term.topology_key, weight) for term, weight in preferred]
                ),
            )
            if len(self._terms) >= _REMEMBERED:
                self._terms.clear()
            self._terms[signature.id] = terms
        return terms

    # -- queueing hints --------------------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        action = ActionType
        pods = action.ADD | action.UPDATE_POD_LABEL | action.DELETE
        nodes = action.ADD | action.UPDATE_NODE_LABEL
        return (
            on(EventResource.POD, pods, self._hint_rules.after_pod_change, by_signature=True),
            on(EventResource.NODE, nodes, _after_node_change, by_signature=True),
        )


def _tally(key: str, domains: TopologyPairCounts) -> AffinityTally:
    return AffinityTally(key, domains.counts, domains.total)


def _reject(codes: Ints, rejected: Bools, code: int) -> None:
    # Usually no row is rejected; a write with an empty mask would cost as much as any other write.
    if np.count_nonzero(rejected):
        codes[rejected] = code


def _by_key(found: Iterable[tuple[str, Ints, int]]) -> dict[str, list[tuple[Ints, int]]]:
    of_key: dict[str, list[tuple[Ints, int]]] = {}
    for key, counts, weight in found:
        of_key.setdefault(key, []).append((counts, weight))
    return of_key


def _all_match(terms: Sequence[PodAffinityTerm], pod: Pod) -> bool:
    """Return whether all terms match the pod, or False if there are no terms.

    As in kube-scheduler, hints ignore namespace labels.
    """
    return bool(terms) and all([term.matches(pod.namespace, pod.labels, {}) for term in terms])


def _any_matches(terms: Sequence[PodAffinityTerm], pod: Pod) -> bool:
    """Return whether any of the terms matches the pod."""
    return any(_all_match((term,), pod) for term in terms)


def _after_pod_on_node(pod: Pod, old: Pod | None, new: Pod | None, keeps_away: _SpeakOf) -> QueueingHint:
    try:
        near, away = pod.signature.required_affinity, pod.signature.required_anti_affinity
    except SelectorError:
        return QUEUE
    if new is None:
        assert old is not None, "an event has an old or a new pod"
        return QUEUE if keeps_away(away, old) else QUEUE_SKIP
    if old is None:
        return QUEUE if _all_match(near, new) else QUEUE_SKIP
    came_near = not _all_match(near, old) and _all_match(near, new)
    went_away = keeps_away(away, old) and not keeps_away(away, new)
    return QUEUE if came_near or went_away else QUEUE_SKIP


def _after_node_change(pod: Pod, old: Node | None, new: Node | None) -> QueueingHint:
    try:
        near, away = pod.signature.required_affinity, pod.signature.required_anti_affinity
    except SelectorError:
        return QUEUE
    assert new is not None, "a node that goes is no registered event"
    if old is None:
        # A node without the key satisfies any anti-affinity term, so a new node may always help.
        helps = bool(away) or any(term.topology_key in new.labels for term in near)
        return QUEUE if helps else QUEUE_SKIP
    for terms, left_helps in ((near, False), (away, True)):
        for key in {term.topology_key for term in terms}:
            before, after = old.labels.get(key), new.labels.get(key)
            if before == after:
                continue
            if before is None:
                helps = not left_helps  # the node has joined a domain
            elif after is None:
                helps = left_helps  # the node has left its domain
            else:
                helps = True
            if helps:
                return QUEUE
    return QUEUE_SKIP
