"""Tests that InterPodAffinity, computed in columns, gives the same results as the plain rule for each node and pod."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.selecting.terms import PodAffinityTerm
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.versions.kube_versions import V1_34, V1_36, V1_37, KubernetesVersion
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import ActionType, EventResource, QueueingHint
from kschedd.framework.handle import Handle
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.status import SKIP, Code
from kschedd.plugins.topology.interpodaffinity import InterPodAffinity, InterPodAffinityArgs
from kschedd.plugins.topology.interpodaffinity_state import MINDED, NOT_NEAR, TOO_NEAR
from tests.full_run import examples
from tests.plugins.random_clusters import HOST, RACK, ZONE, ScenarioCluster, node, pod, pods, worlds

Pair = tuple[str, str]


@attrs.define
class PlainFilter:
    """Counts of upstream's PreFilter: pods by (topology key, value)."""

    world: ScenarioCluster
    incoming: Pod
    near: Counter[Pair] = attrs.field(factory=Counter)
    away: Counter[Pair] = attrs.field(factory=Counter)
    minded: Counter[Pair] = attrs.field(factory=Counter)

    def own_term_speaks(self, term: PodAffinityTerm, other: Pod) -> bool:
        """Return whether one of the pod's own terms selects the other pod.

        The term's namespace selector selects among the existing namespaces, and is also evaluated for empty labels.
        """
        merged = set(term.namespaces)
        selector = term.namespace_selector
        if selector is not None and not selector.empty:
            merged |= {name for name, labels in self.world.namespaces.items() if selector.matches(labels)}
        chosen = other.namespace in merged or (selector is not None and selector.matches({}))
        return chosen and term.selector.matches(other.labels)

    def near_all(self, other: Pod) -> bool:
        terms = self.incoming.signature.required_affinity
        return bool(terms) and all(self.own_term_speaks(term, other) for term in terms)

    def count(self, other: Pod, where: Node, amount: int) -> None:
        def add(tally: Counter[Pair], key: str) -> None:
            if key in where.labels:
                tally[key, where.labels[key]] += amount

        if self.near_all(other):
            for term in self.incoming.signature.required_affinity:
                add(self.near, term.topology_key)
        for term in self.incoming.signature.required_anti_affinity:
            if self.own_term_speaks(term, other):
                add(self.away, term.topology_key)
        labels = self.world.namespaces.get(self.incoming.namespace, {})
        for term in other.signature.required_anti_affinity:
            if term.matches(self.incoming.namespace, self.incoming.labels, labels):
                add(self.minded, term.topology_key)

    @property
    def skipped(self) -> bool:
        shape = self.incoming.signature
        return not (+self.minded or shape.required_affinity or shape.required_anti_affinity)

    def code(self, where: Node) -> int:
        shape, labels = self.incoming.signature, where.labels
        keys = [term.topology_key for term in shape.required_affinity]
        if any(key not in labels for key in keys):
            return NOT_NEAR
        if any(self.near[key, labels[key]] <= 0 for key in keys) and not (
            not +self.near and self.near_all(self.incoming)
        ):
            return NOT_NEAR
        for term in shape.required_anti_affinity:
            if term.topology_key in labels and self.away[term.topology_key, labels[term.topology_key]] > 0:
                return TOO_NEAR
        return MINDED if any(self.minded[pair] > 0 for pair in labels.items()) else 0


def plain_filter(world: ScenarioCluster, incoming: Pod) -> PlainFilter:
    plain = PlainFilter(world, incoming)
    for where in world.nodes:
        for other in world.on(where):
            plain.count(other, where, 1)
    return plain


def plain_scores(
    world: ScenarioCluster, incoming: Pod, args: InterPodAffinityArgs, among: Sequence[Node]
) -> list[int] | None:
    """Return raw scores; None where upstream skips the plugin."""
    shape = incoming.signature
    if args.ignore_preferred_terms_of_existing_pods and not (shape.preferred_affinity or shape.preferred_anti_affinity):
        return None
    rule = PlainFilter(world, incoming)
    labels = world.namespaces.get(incoming.namespace, {})
    points: dict[Pair, int] = {}

    def add(term: PodAffinityTerm, where: Node, weight: int) -> None:
        if term.topology_key in where.labels:
            pair = term.topology_key, where.labels[term.topology_key]
            points[pair] = points.get(pair, 0) + weight

    for where in world.nodes:
        for other in world.on(where):
            for sign, preferred in ((1, shape.preferred_affinity), (-1, shape.preferred_anti_affinity)):
                for weighted in preferred:
                    if rule.own_term_speaks(weighted.term, other):
                        add(weighted.term, where, sign * weighted.weight)
            theirs = [(term, args.hard_pod_affinity_weight) for term in other.signature.required_affinity]
            theirs = theirs if args.hard_pod_affinity_weight else []
            theirs += [(weighted.term, weighted.weight) for weighted in other.signature.preferred_affinity]
            theirs += [(weighted.term, -weighted.weight) for weighted in other.signature.preferred_anti_affinity]
            for term, weight in theirs:
                if term.matches(incoming.namespace, incoming.labels, labels):
                    add(term, where, weight)
    if not points:
        return None
    return [sum(points.get(pair, 0) for pair in where.labels.items()) for where in among]


def plain_normalized(scores: list[int]) -> list[int]:
    least, most = min(scores), max(scores)
    return [int(100.0 * ((score - least) / (most - least))) if most > least else 0 for score in scores]


def plugin_for(
    cluster: SchedulerCache, args: InterPodAffinityArgs | None = None, version: KubernetesVersion = V1_34
) -> InterPodAffinity:
    return InterPodAffinity.from_args(args or InterPodAffinityArgs(), Handle(cluster, rules=version.rules))


def shuffled(world: ScenarioCluster, random: Any) -> tuple[list[Node], np.ndarray[Any, np.dtype[np.int64]]]:
    chosen = random.sample(world.nodes, random.randint(1, len(world.nodes)))
    return chosen, np.array([world.cluster.table.row_of[where.name] for where in chosen], dtype=np.int64)


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(worlds(), pods("incoming"), st.randoms(use_true_random=False))
def test_filter_equals_the_plain_rule(world: ScenarioCluster, incoming: Pod, random: Any) -> None:
    plugin, state = plugin_for(world.cluster), CycleState()
    plain = plain_filter(world, incoming)
    if plain.skipped:
        assert plugin.pre_filter(state, incoming, world.cluster) is SKIP
        return
    assert plugin.pre_filter(state, incoming, world.cluster) is None
    chosen, rows = shuffled(world, random)
    table = world.cluster.table
    before = [plain.code(where) for where in chosen]
    assert plugin.filter_rows(state, incoming, table, rows).tolist() == before

    what_if, where = state.clone(), world.fullest
    there = world.on(where)
    leaving = random.sample(there, random.randint(min(len(there), 1), len(there)))
    copy = table.copy_rows([table.row_of[where.name]])
    for other in leaving:
        plain.count(other, where, -1)
        plugin.remove_pod(what_if, incoming, other, NodeInfo(copy, 0))
    further, gone = what_if.clone(), plain.code(where)
    for other in leaving[1:]:
        plain.count(other, where, 1)
        plugin.add_pod(what_if, incoming, other, NodeInfo(copy, 0))
    after = plugin.filter_rows(what_if, incoming, copy, np.zeros(1, dtype=np.int64))
    assert after.tolist() == [plain.code(where)]
    assert plugin.filter_rows(further, incoming, copy, np.zeros(1, dtype=np.int64)).tolist() == [gone]
    assert plugin.filter_rows(state, incoming, table, rows).tolist() == before, "a what-if must not show outside"


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(
    worlds(),
    pods("incoming"),
    st.builds(InterPodAffinityArgs, st.sampled_from((0, 1, 50)), st.booleans()),
    st.randoms(use_true_random=False),
)
def test_scores_equal_the_plain_rule(
    world: ScenarioCluster, incoming: Pod, args: InterPodAffinityArgs, random: Any
) -> None:
    plugin, state = plugin_for(world.cluster, args), CycleState()
    chosen, rows = shuffled(world, random)
    expected = plain_scores(world, incoming, args, chosen)
    status = plugin.pre_score(state, incoming, world.cluster, rows)
    if expected is None:
        assert status is SKIP
        return
    assert status is None
    raw = plugin.score_rows(state, incoming, world.cluster.table, rows)
    assert raw.tolist() == expected
    assert plugin.normalize(state, incoming, raw).tolist() == plain_normalized(expected)


@settings(max_examples=20, deadline=None)
@given(worlds(), pods("incoming"), pods("joining"), st.randoms(use_true_random=False))
def test_in_the_dry_run_each_row_is_a_cluster_of_its_own(
    world: ScenarioCluster, incoming: Pod, joining: Pod, random: Any
) -> None:
    plugin, state, table = plugin_for(world.cluster), CycleState(), world.cluster.table
    if plugin.pre_filter(state, incoming, world.cluster) is SKIP:
        assert plugin.dry_run_columns(state, incoming, table.copy_rows([])) is None
        return
    columns = plugin.dry_run_columns(state, incoming, table.copy_rows(table.row_of[each.name] for each in world.nodes))
    assert columns is not None
    plain = [plain_filter(world, incoming) for _ in world.nodes]
    for codes in world.changed_rows(columns, joining, random, lambda row, *change: plain[row].count(*change)):
        assert codes == [each.code(where) for each, where in zip(plain, world.nodes, strict=True)]
        assert all(columns.status(code) is plugin.code_status(state, incoming, code) for code in codes if code)


def required(kind: str, key: str, app: str) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def verdicts(cluster: SchedulerCache, incoming: Pod) -> dict[str, tuple[Code, tuple[str, ...]] | None]:
    plugin, state = plugin_for(cluster), CycleState()
    if plugin.pre_filter(state, incoming, cluster) is SKIP:
        return {name: None for name in cluster.table.row_of}
    codes = plugin.filter_rows(state, incoming, cluster.table, cluster.table.order)
    found: dict[str, tuple[Code, tuple[str, ...]] | None] = {}
    for row, code in zip(cluster.table.order.tolist(), codes.tolist(), strict=True):
        status = plugin.code_status(state, incoming, code) if code else None
        found[cluster.table.names[row]] = None if status is None else (status.code, status.reasons)
    return found


def two_zones(*there: Pod) -> SchedulerCache:
    cluster = SchedulerCache()
    cluster.load([node("a", {HOST: "a", ZONE: "east"}), node("b", {HOST: "b", ZONE: "west"}), node("c", {HOST: "c"})])
    cluster.load(there)
    return cluster


NEAR = (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) didn't match pod affinity rules",))
AWAY = (Code.UNSCHEDULABLE, ("node(s) didn't match pod anti-affinity rules",))
MIND = (Code.UNSCHEDULABLE, ("node(s) didn't satisfy existing pods anti-affinity rules",))


@pytest.mark.parametrize(
    ("there", "incoming", "expected"),
    [
        pytest.param(
            [pod("db-0", labels={"app": "db"}, on="a")],
            pod("web", labels={"app": "web"}, spec=required("podAffinity", ZONE, "db")),
            {"a": None, "b": NEAR, "c": NEAR},
            id="affinity-wants-the-zone-of-the-other-pod",
        ),
        pytest.param(
            [],
            pod("db-0", labels={"app": "db"}, spec=required("podAffinity", ZONE, "db")),
            {"a": None, "b": None, "c": NEAR},
            id="the-first-of-a-series-goes-anywhere-with-the-key",
        ),
        pytest.param(
            [],
            pod("web", labels={"app": "web"}, spec=required("podAffinity", ZONE, "db")),
            {"a": NEAR, "b": NEAR, "c": NEAR},
            id="the-first-must-match-its-own-terms",
        ),
        pytest.param(
            [pod("db-0", labels={"app": "db"}, on="a")],
            pod("db-1", labels={"app": "db"}, spec=required("podAntiAffinity", ZONE, "db")),
            {"a": AWAY, "b": None, "c": None},
            id="anti-affinity-bars-the-zone-but-not-nodes-without-one",
        ),
        pytest.param(
            [pod("db-0", labels={"app": "db"}, spec=required("podAntiAffinity", HOST, "web"), on="b")],
            pod("web", labels={"app": "web"}),
            {"a": None, "b": MIND, "c": None},
            id="pods-already-there-may-mind",
        ),
        pytest.param(
            [pod("db-0", labels={"app": "db"}, spec=required("podAntiAffinity", RACK, "web"), on="b")],
            pod("web", labels={"app": "web"}),
            {"a": None, "b": None, "c": None},
            id="a-term-about-a-key-no-node-has-bars-nothing",
        ),
        pytest.param(
            [pod("db-0", labels={"app": "db"}, on="a", terminating=True)],
            pod("db-1", labels={"app": "db"}, spec=required("podAntiAffinity", HOST, "db")),
            {"a": AWAY, "b": None, "c": None},
            id="a-terminating-pod-still-counts",
        ),
    ],
)
def test_each_rule_has_its_own_words(
    there: list[Pod], incoming: Pod, expected: dict[str, tuple[Code, tuple[str, ...]] | None]
) -> None:
    assert verdicts(two_zones(*there), incoming) == expected


@pytest.mark.parametrize(
    ("there", "app", "before", "after"),
    [
        pytest.param([], "db", [0, 0, NOT_NEAR], [0, 0, NOT_NEAR], id="the-first-goes-where-the-key-is"),
        pytest.param(["a"], "db", [0, NOT_NEAR, NOT_NEAR], [0, NOT_NEAR, NOT_NEAR], id="without-the-only-one-also"),
        pytest.param(["a", "b"], "db", [0, 0, NOT_NEAR], [NOT_NEAR, NOT_NEAR, NOT_NEAR], id="not-without-one-of-two"),
        pytest.param([], "web", [NOT_NEAR] * 3, [NOT_NEAR] * 3, id="the-first-must-match-its-own-terms"),
        pytest.param(["a"], "web", [0, NOT_NEAR, NOT_NEAR], [NOT_NEAR] * 3, id="which-it-does-not"),
    ],
)
def test_in_the_dry_run_a_pod_may_become_the_first_of_its_kind(
    there: list[str], app: str, before: list[int], after: list[int]
) -> None:
    pods_there = [pod(f"db-{name}", labels={"app": "db"}, on=name) for name in there]
    cluster, state = two_zones(*pods_there), CycleState()
    plugin, incoming = plugin_for(cluster), pod("new", labels={"app": app}, spec=required("podAffinity", ZONE, "db"))
    assert plugin.pre_filter(state, incoming, cluster) is None
    columns = plugin.dry_run_columns(state, incoming, cluster.table.copy_rows(cluster.table.order))
    assert columns is not None
    assert columns.codes(np.arange(3)).tolist() == before
    rows = np.array([cluster.table.row_of[name] for name in there], dtype=np.int64)
    columns.follow(rows, np.arange(len(there)), pods_there, -1)
    assert columns.codes(np.arange(3)).tolist() == after


def preferred(key: str, app: str) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    weighted = [{"weight": 7, "podAffinityTerm": term}]
    return {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}}


@pytest.mark.parametrize(
    ("spec", "score"),
    [
        pytest.param(required("podAffinity", ZONE, "web"), 1, id="required-affinity-has-weight-one"),
        pytest.param(preferred(ZONE, "web"), 7, id="preferred-terms-are-not-ignored"),
    ],
)
def test_terms_of_existing_pods_count_by_default(spec: dict[str, Any], score: int) -> None:
    cluster, state = two_zones(pod("db-0", labels={"app": "db"}, spec=spec, on="a")), CycleState()
    plugin, incoming = plugin_for(cluster), pod("web", labels={"app": "web"})
    rows = np.array([cluster.table.row_of[name] for name in "abc"])
    assert plugin.pre_score(state, incoming, cluster, rows) is None
    assert plugin.score_rows(state, incoming, cluster.table, rows).tolist() == [score, 0, 0]


@pytest.mark.parametrize(
    ("there", "own", "points"),
    [
        pytest.param({}, {}, ["pre_filter", "pre_score"], id="no-terms"),
        pytest.param(required("podAntiAffinity", ZONE, "web"), {}, ["pre_score"], id="an-existing-pod-excludes-it"),
        pytest.param(required("podAntiAffinity", ZONE, "db"), {}, ["pre_filter", "pre_score"], id="or-another-pod"),
        pytest.param(required("podAffinity", ZONE, "web"), {}, ["pre_filter"], id="an-existing-pod-requires-it"),
        pytest.param(preferred(ZONE, "web"), {}, ["pre_filter"], id="an-existing-pod-prefers-it"),
        pytest.param({}, required("podAffinity", ZONE, "db"), ["pre_score"], id="it-requires-another-pod"),
        pytest.param({}, required("podAntiAffinity", ZONE, "db"), ["pre_score"], id="it-excludes-another-pod"),
        pytest.param({}, preferred(ZONE, "db"), ["pre_filter"], id="it-prefers-another-pod"),
    ],
)
def test_points_without_matching_terms_repeat_their_result(
    there: dict[str, Any], own: dict[str, Any], points: list[str]
) -> None:
    cluster = two_zones(pod("db-0", labels={"app": "db"}, spec=there, on="a"))
    incoming = pod("web", labels={"app": "web"}, spec=own)
    assert plugin_for(cluster).repeats_while_unchanged(incoming, cluster) == points


def test_in_the_dry_run_a_pod_that_joins_may_exclude_the_incoming_pod() -> None:
    """Check that only a row with the key of the joining pod's term becomes infeasible."""
    cluster, state = two_zones(), CycleState()
    plugin, incoming = (
        plugin_for(cluster),
        pod("web", labels={"app": "web"}, spec=required("podAntiAffinity", HOST, "a")),
    )
    assert plugin.pre_filter(state, incoming, cluster) is None
    rows = [cluster.table.row_of[name] for name in "abc"]
    columns = plugin.dry_run_columns(state, incoming, cluster.table.copy_rows(rows))
    assert columns is not None
    joining = pod("db-0", labels={"app": "db"}, spec=required("podAntiAffinity", ZONE, "web"))
    columns.follow(np.array([1, 2]), np.array([0, 0]), [joining], 1)
    assert columns.codes(np.arange(3)).tolist() == [0, MINDED, 0]


def test_pods_removed_and_added_in_the_attempt_change_the_counts_of_their_zones() -> None:
    there = [pod(f"db-{name}", labels={"app": "db"}, on=name) for name in "ab"]
    cluster, state = two_zones(*there), CycleState()
    plugin, table = plugin_for(cluster), cluster.table
    incoming = pod("new", labels={"app": "db"}, spec=required("podAntiAffinity", ZONE, "db"))
    assert plugin.pre_filter(state, incoming, cluster) is None
    rows = np.array([table.row_of[name] for name in "abc"])
    assert plugin.filter_rows(state, incoming, table, rows).tolist() == [TOO_NEAR, TOO_NEAR, 0]
    for number, other in enumerate(there):
        plugin.remove_pod(state, incoming, other, NodeInfo(table, number))
    assert plugin.filter_rows(state, incoming, table, rows).tolist() == [0, 0, 0]
    plugin.add_pod(state, incoming, there[1], NodeInfo(table, 1))
    assert plugin.filter_rows(state, incoming, table, rows).tolist() == [0, TOO_NEAR, 0]


def hint(
    incoming: Pod, resource: EventResource, old: Any, new: Any, version: KubernetesVersion = V1_34
) -> QueueingHint:
    for registered in plugin_for(SchedulerCache(), version=version).events_to_register():
        if registered.event.resource is resource:
            assert registered.hint is not None
            return registered.hint(incoming, old, new)
    raise AssertionError(f"{resource} is expected to be registered")


def test_it_waits_for_pods_and_for_nodes_with_other_labels() -> None:
    events = {entry.event.resource: entry.event.action for entry in plugin_for(SchedulerCache()).events_to_register()}
    assert events == {
        EventResource.POD: ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL,
        EventResource.NODE: ActionType.ADD | ActionType.UPDATE_NODE_LABEL,
    }


db_on_a, web_on_a = pod("x", labels={"app": "db"}, on="a"), pod("x", labels={"app": "web"}, on="a")
wants_db = pod("p", spec=required("podAffinity", ZONE, "db"))
hates_db = pod("p", spec=required("podAntiAffinity", ZONE, "db"))


@pytest.mark.parametrize(
    ("incoming", "old", "new", "expected"),
    [
        pytest.param(wants_db, None, db_on_a, QueueingHint.QUEUE, id="the-pod-it-wants-came"),
        pytest.param(wants_db, None, web_on_a, QueueingHint.QUEUE_SKIP, id="another-pod-came"),
        pytest.param(wants_db, None, pod("x", labels={"app": "db"}), QueueingHint.QUEUE_SKIP, id="it-has-no-node-yet"),
        pytest.param(wants_db, web_on_a, db_on_a, QueueingHint.QUEUE, id="a-pod-became-the-one-it-wants"),
        pytest.param(wants_db, db_on_a, None, QueueingHint.QUEUE_SKIP, id="the-pod-it-wants-went"),
        pytest.param(hates_db, db_on_a, None, QueueingHint.QUEUE, id="the-pod-it-shuns-went"),
        pytest.param(hates_db, db_on_a, web_on_a, QueueingHint.QUEUE, id="the-pod-it-shuns-became-another"),
        pytest.param(hates_db, None, db_on_a, QueueingHint.QUEUE_SKIP, id="the-pod-it-shuns-came"),
    ],
)
def test_hint_after_a_pod_changed(incoming: Pod, old: Pod | None, new: Pod | None, expected: QueueingHint) -> None:
    assert hint(incoming, EventResource.POD, old, new) is expected
    assert hint(incoming, EventResource.POD, old, new, V1_36) is expected


nominated_db = attrs.evolve(pod("x", labels={"app": "db"}), nominated_node_name="a")
db, web = pod("p", labels={"app": "db"}), pod("p", labels={"app": "web"})
hater = pod("x", spec=required("podAntiAffinity", ZONE, "db"), on="a")
unparsable = {"topologyKey": ZONE, "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Near"}]}}
of_unparsable = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [unparsable]}}
invalid = pod("x", spec={"affinity": of_unparsable}, on="a")


@pytest.mark.parametrize(
    ("incoming", "old", "new", "rule"),
    [
        pytest.param(wants_db, None, nominated_db, "nominated_pods_wake", id="the-pod-it-wants-is-nominated"),
        pytest.param(hates_db, nominated_db, None, "nominated_pods_wake", id="the-nominated-pod-it-shuns-went"),
        pytest.param(db, hater, None, "affinity_wakes_more", id="a-pod-that-shuns-it-went"),
        pytest.param(db, web, db, "affinity_wakes_more", id="its-own-labels-changed"),
        pytest.param(web, hater, None, "", id="a-pod-that-shuns-others-went"),
        pytest.param(db, invalid, None, "", id="a-pod-with-an-invalid-term-went"),
    ],
)
def test_hints_of_1_36_after_a_pod_changed(incoming: Pod, old: Pod | None, new: Pod | None, rule: str) -> None:
    requests = incoming, EventResource.POD, old, new
    assert hint(*requests, V1_34) is QueueingHint.QUEUE_SKIP
    assert hint(*requests, V1_36) is (QueueingHint.QUEUE if rule else QueueingHint.QUEUE_SKIP)
    if rule:
        assert hint(*requests, V1_34.with_rule(rule, V1_36)) is QueueingHint.QUEUE


def anti_affinity(*apps: str) -> dict[str, Any]:
    terms = [required("podAntiAffinity", ZONE, app)["affinity"]["podAntiAffinity"] for app in apps]
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {"podAntiAffinity": {name: [term for each in terms for term in each[name]]}}}


hates_both = pod("p", spec=anti_affinity("db", "web"))
both_hate = pod("x", spec=anti_affinity("db", "web"), on="a")


@pytest.mark.parametrize(
    ("incoming", "old", "new", "by_1_37"),
    [
        pytest.param(hates_both, db_on_a, None, True, id="one-of-those-it-shuns-went"),
        pytest.param(hates_both, db_on_a, pod("x", labels={"app": "a"}, on="a"), True, id="one-became-another"),
        pytest.param(hates_both, db_on_a, web_on_a, False, id="one-became-the-other"),
        pytest.param(db, both_hate, None, True, id="a-pod-that-shuns-it-among-others-went"),
        pytest.param(web, hater, None, False, id="a-pod-that-shuns-others-went"),
        pytest.param(web, web_on_a, None, False, id="no-terms-at-all"),
    ],
)
def test_one_anti_affinity_term_is_enough_to_wake_by_1_37(
    incoming: Pod, old: Pod, new: Pod | None, by_1_37: bool
) -> None:
    assert hint(incoming, EventResource.POD, old, new, V1_36) is QueueingHint.QUEUE_SKIP
    expected = QueueingHint.QUEUE if by_1_37 else QueueingHint.QUEUE_SKIP
    assert hint(incoming, EventResource.POD, old, new, V1_37) is expected


east, west, nowhere = node("a", {ZONE: "east"}), node("a", {ZONE: "west"}), node("a", {})


@pytest.mark.parametrize(
    ("incoming", "old", "new", "expected"),
    [
        pytest.param(wants_db, None, east, QueueingHint.QUEUE, id="affinity-new-node-with-the-key"),
        pytest.param(wants_db, None, nowhere, QueueingHint.QUEUE_SKIP, id="affinity-new-node-without-the-key"),
        pytest.param(wants_db, nowhere, east, QueueingHint.QUEUE, id="affinity-node-gets-the-key"),
        pytest.param(wants_db, east, nowhere, QueueingHint.QUEUE_SKIP, id="affinity-node-loses-the-key"),
        pytest.param(wants_db, east, west, QueueingHint.QUEUE, id="affinity-node-moves"),
        pytest.param(hates_db, None, nowhere, QueueingHint.QUEUE, id="anti-affinity-any-new-node"),
        pytest.param(hates_db, east, nowhere, QueueingHint.QUEUE, id="anti-affinity-node-loses-the-key"),
        pytest.param(hates_db, nowhere, east, QueueingHint.QUEUE_SKIP, id="anti-affinity-node-gets-the-key"),
        pytest.param(hates_db, east, east, QueueingHint.QUEUE_SKIP, id="anti-affinity-node-stays-where-it-is"),
        pytest.param(hates_db, east, west, QueueingHint.QUEUE, id="anti-affinity-node-moves"),
    ],
)
def test_hint_after_a_node_changed(incoming: Pod, old: Node | None, new: Node, expected: QueueingHint) -> None:
    assert hint(incoming, EventResource.NODE, old, new) is expected
