"""Tests that incremental counts equal new counts after any sequence of changes."""

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, precondition, rule

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.selecting.selectors import parse_label_selector
from kschedd.api.selecting.terms import PodAffinityTerm, parse_pod_affinity_term
from kschedd.cache.counts import PodMatcher, TermKind, pod_matcher, spread_matcher
from kschedd.cache.domain_counter import DomainCounter, RowSet
from kschedd.cache.scheduler_cache import SchedulerCache
from tests.plugins.random_clusters import KEYS, NAMESPACES, namespace, node, nodes, pod, pods, selectors, terms

NODE_NAMES = ("node-0", "node-1", "node-2")


class AnySequence(RuleBasedStateMachine):
    """A state machine that checks every counter against plain lists after each change."""

    settled = Bundle("settled")

    def __init__(self) -> None:
        super().__init__()
        self.cluster = SchedulerCache()
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.kinds: list[PodMatcher] = []
        self.serial = 0

    # -- changes ------------------------------------------------------------------------------------------------

    @rule(data=st.data(), name=st.sampled_from(NODE_NAMES))
    def put_node(self, data: st.DataObject, name: str) -> None:
        self.nodes[name] = data.draw(nodes(name))
        self.cluster.put(self.nodes[name])

    @rule(name=st.sampled_from(NODE_NAMES))
    def remove_node(self, name: str) -> None:
        if self.nodes.pop(name, None) is not None:
            self.cluster.remove_node(name)

    @rule(target=settled, data=st.data(), on=st.sampled_from(NODE_NAMES))
    def add_pod(self, data: st.DataObject, on: str) -> str:
        self.serial += 1
        made = data.draw(pods(f"pod-{self.serial}", on))
        self.pods[made.uid] = made
        self.cluster.put(made)
        return made.uid

    @rule(data=st.data(), on=st.sampled_from(NODE_NAMES), confirmed=st.booleans(), target=settled)
    def assume_pod(self, data: st.DataObject, on: str, confirmed: bool) -> Any:
        self.serial += 1
        made = data.draw(pods(f"pod-{self.serial}"))
        placed = self.cluster.assume(made, on)
        if not confirmed:
            assert self.cluster.forget(made)
            return multiple()
        self.cluster.put(placed)
        self.pods[placed.uid] = placed
        return placed.uid

    @rule(uid=settled, app=st.sampled_from(("web", "db", "cache")), terminating=st.booleans())
    def change_pod(self, uid: str, app: str, terminating: bool) -> None:
        old = self.pods[uid]
        spec = {key: value for key, value in old.spec.items() if key != "nodeName"}
        labels = {**old.labels, "app": app}
        new = pod(old.name, old.namespace, labels, spec, on=old.node_name, terminating=terminating)
        self.pods[uid] = new
        self.cluster.put(new)

    @rule(uid=consumes(settled))
    def remove_pod(self, uid: str) -> None:
        self.cluster.remove(self.pods.pop(uid))

    @rule(name=st.sampled_from(NAMESPACES), team=st.sampled_from((None, "", "one", "two")))
    def change_namespace(self, name: str, team: str | None) -> None:
        if team is None:
            if self.namespaces.pop(name, None) is not None:
                self.cluster.remove(namespace(name, {}))
        else:
            self.namespaces[name] = {"team": team} if team else {}
            self.cluster.put(namespace(name, self.namespaces[name]))

    # -- questions, which make counters ---------------------------------------------------------------------------

    @rule(raws=st.lists(terms, min_size=1, max_size=2), own=st.sampled_from(NAMESPACES))
    def ask_for_terms(self, raws: list[dict[str, Any]], own: str) -> None:
        self.kinds.append(pod_matcher([parse_pod_affinity_term(raw, own) for raw in raws]))

    @rule(raw=selectors, own=st.sampled_from(NAMESPACES))
    def ask_for_spread(self, raw: dict[str, Any] | None, own: str) -> None:
        self.kinds.append(spread_matcher(own, parse_label_selector(raw)))

    # -- what must hold -------------------------------------------------------------------------------------------

    @invariant()
    def counters_equal_counts_from_scratch(self) -> None:
        counts = self.cluster.counts
        for kind in self.kinds:
            expected = [p for p in self.pods.values() if self.of_kind(kind, p)]
            self.check(counts.matching(kind), expected, [1] * len(expected))

    @invariant()
    def carried_terms_equal_counts_from_scratch(self) -> None:
        carriers: dict[tuple[TermKind, PodAffinityTerm], list[tuple[Pod, int]]] = {}
        for p in self.pods.values():
            if p.node_name in self.nodes:
                for kind, term, weight in terms_of(p):
                    carriers.setdefault((kind, term), []).append((p, weight))
        found = self.cluster.counts.existing_terms
        assert found.keys() == carriers.keys()
        for key, pairs in carriers.items():
            who = [p for p, _ in pairs]
            self.check(found[key].count, who, [1] * len(who))
            if key[0] == "preferred":
                self.check(found[key].weight, who, [weight for _, weight in pairs])

    @precondition(lambda self: self.pods)
    @invariant()
    def a_pod_finds_the_terms_that_speak_of_it(self) -> None:
        counts = self.cluster.counts
        for p in self.pods.values():
            labels = self.namespaces.get(p.namespace, {})
            for kind in get_args(TermKind):
                expected = {
                    id(existing_terms)
                    for (of, term), existing_terms in counts.existing_terms.items()
                    if of == kind and term.matches(p.namespace, p.labels, labels)
                }
                found = [id(existing_terms) for existing_terms in counts.existing_terms_matching(kind, p.signature)]
                assert len(found) == len(expected)
                assert set(found) == expected

    def of_kind(self, kind: PodMatcher, p: Pod) -> bool:
        if kind.live and p.deletion_timestamp:
            return False
        for term in kind.terms:
            selector = term.namespace_selector
            chosen = p.namespace in term.namespaces
            if selector is not None and not chosen:
                known = p.namespace in self.namespaces
                chosen = selector.empty or (known and selector.matches(self.namespaces[p.namespace]))
            if not chosen or not term.selector.matches(p.labels):
                return False
        return True

    def check(self, counter: DomainCounter, who: list[Pod], amounts: list[int]) -> None:
        table = self.cluster.table
        by_row = np.zeros(table.capacity, dtype=np.int64)
        for p, amount in zip(who, amounts, strict=True):
            if p.node_name in self.nodes:
                by_row[table.row_of[p.node_name]] += amount
        assert counter.rows()[: table.capacity].tolist() == by_row.tolist()
        for key in KEYS:
            column = table.label(key)
            for among in (None, self.on_disks()):
                expected = [0] * (len(column.values) + 1)
                for name, its_node in self.nodes.items():
                    row = table.row_of[name]
                    if key in its_node.labels and (among is None or among.mask[row]):
                        expected[column.numbers[its_node.labels[key]]] += int(by_row[row])
                domains = counter.by_domain(key, among)
                assert domains.counts.tolist() == expected
                assert domains.total == sum(expected)
                values = sorted(
                    {
                        column.numbers[its_node.labels[key]]
                        for name, its_node in self.nodes.items()
                        if key in its_node.labels and (among is None or among.mask[table.row_of[name]])
                    }
                )
                if values:
                    assert domains.least(np.array(values)) == min(expected[value] for value in values)

    def on_disks(self) -> RowSet:
        mask = np.zeros(self.cluster.table.capacity, dtype=np.bool_)
        for name, its_node in self.nodes.items():
            mask[self.cluster.table.row_of[name]] = its_node.labels.get("disk") == "ssd"
        return self.cluster.counts.row_set(mask)


def terms_of(p: Pod) -> list[tuple[TermKind, PodAffinityTerm, int]]:
    shape = p.signature
    return [
        *(("required-anti", term, 0) for term in shape.required_anti_affinity),
        *(("required", term, 0) for term in shape.required_affinity),
        *(("preferred", weighted.term, weighted.weight) for weighted in shape.preferred_affinity),
        *(("preferred", weighted.term, -weighted.weight) for weighted in shape.preferred_anti_affinity),
    ]


TestAnySequence = AnySequence.TestCase
TestAnySequence.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def test_kinds_nobody_asked_for_lately_are_forgotten_and_made_again() -> None:
    cluster = SchedulerCache()
    cluster.table.most_counters = 2
    cluster.put(node("a", {"rack": "r1"}))

    def add(number: int) -> None:
        cluster.put(pod(f"p-{number}", labels={"app": "web"}, on="a"))

    add(0)
    kinds = [spread_matcher("red", parse_label_selector({"matchLabels": {"app": app}})) for app in ("web", "db", "x")]
    first = cluster.counts.matching(kinds[0])
    add(1)
    assert first.rows().sum() == 2
    second = cluster.counts.matching(kinds[1])
    assert cluster.counts.matching(kinds[0]) is first
    cluster.counts.matching(kinds[2])
    assert (first.dropped, second.dropped, cluster.counts.counters) == (False, True, 2)
    cluster.counts.matching(kinds[1])
    assert first.dropped
    add(2)
    again = cluster.counts.matching(kinds[0])
    add(3)
    assert again.rows().sum() == 4
    assert again.by_domain("rack").total == 4


def test_label_keys_that_come_and_go_leave_no_index_behind() -> None:
    counts = SchedulerCache().counts
    counts.table.most_counters = 3
    for number in range(50):
        for value in ("web", "db"):
            counts.matching(spread_matcher("red", parse_label_selector({"matchLabels": {f"app-{number}": value}})))
    assert counts.indexed_labels == {"app-48", "app-49"}


def test_equal_row_sets_are_one() -> None:
    counts = SchedulerCache().counts
    mask = np.array([True, False])
    assert counts.row_set(mask) is counts.row_set(mask.copy())
    assert counts.row_set(~mask).number != counts.row_set(mask).number
