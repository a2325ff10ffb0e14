"""Tests that PodTopologySpread, computed in columns, gives the same results as the plain rule for each node and pod."""

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.api.selecting.selectors import EVERYTHING, parse_label_selector
from kschedd.api.selecting.terms import SpreadConstraint
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.versions.kube_versions import V1_34, V1_36, KubernetesVersion
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import ActionType, EventResource, QueueingHint
from kschedd.framework.handle import Handle
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.status import SKIP, Code
from kschedd.plugins.topology.podtopologyspread import NO_LABEL, TOO_SKEWED, PodTopologySpread
from kschedd.plugins.topology.podtopologyspread_args import DefaultConstraint, PodTopologySpreadArgs
from kschedd.plugins.topology.podtopologyspread_constraints import SpreadConstraints
from kschedd.plugins.topology.podtopologyspread_default_selector import DefaultSelectors
from tests.full_run import examples
from tests.plugins.random_clusters import HOST, KEYS, RACK, ZONE, ScenarioCluster, node, pod, pods, selectors, worlds

HARD: Final = "DoNotSchedule"
SOFT: Final = "ScheduleAnyway"


def allows(constraint: SpreadConstraint, incoming: Pod, where: Node) -> bool:
    """Return whether the constraint includes the node."""
    if constraint.honor_affinity:
        if any(where.labels.get(key) != value for key, value in incoming.pod_spec.node_selector.items()):
            return False
        required = incoming.pod_spec.required_node_affinity
        if required is not None and not required.matches(where.labels, where.name):
            return False
    if constraint.honor_taints:
        for taint in where.taints:
            tolerated = any(toleration.tolerates(taint) for toleration in incoming.pod_spec.tolerations)
            if taint.effect != "PreferNoSchedule" and not tolerated:
                return False
    return True


def counted(constraint: SpreadConstraint, incoming: Pod, there: Sequence[Pod]) -> int:
    """Return the number of pods that the constraint counts on the node.

    An empty selector counts no pods, as upstream.
    """
    if constraint.selector.empty:
        return 0
    return sum(
        constraint.selector.matches(other.labels)
        for other in there
        if other.namespace == incoming.namespace and not other.deletion_timestamp
    )


@attrs.define
class PlainFilter:
    incoming: Pod
    constraints: list[SpreadConstraint]
    tallies: list[dict[str, int]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.tallies = [{} for _ in self.constraints]

    def eligible(self, where: Node) -> bool:
        return all(constraint.topology_key in where.labels for constraint in self.constraints)

    def count_node(self, where: Node, there: Sequence[Pod]) -> None:
        for constraint, tally in zip(self.constraints, self.tallies, strict=True):
            if self.eligible(where) and allows(constraint, self.incoming, where):
                value = where.labels[constraint.topology_key]
                tally[value] = tally.get(value, 0) + counted(constraint, self.incoming, there)

    def change(self, other: Pod, where: Node, amount: int) -> None:
        if other.namespace != self.incoming.namespace or not self.eligible(where):
            return
        for constraint, tally in zip(self.constraints, self.tallies, strict=True):
            if constraint.selector.matches(other.labels) and allows(constraint, self.incoming, where):
                tally[where.labels[constraint.topology_key]] += amount

    def code(self, where: Node) -> int:
        for constraint, tally in zip(self.constraints, self.tallies, strict=True):
            value = where.labels.get(constraint.topology_key)
            if value is None:
                return NO_LABEL
            least = 0 if len(tally) < constraint.min_domains else min(tally.values())
            itself = constraint.selector.matches(self.incoming.labels)
            if tally.get(value, 0) + itself - least > constraint.max_skew:
                return TOO_SKEWED
        return 0


def plain_scores(
    world: ScenarioCluster, incoming: Pod, constraints: list[SpreadConstraint], among: Sequence[Node], *, all_keys: bool
) -> tuple[list[int], list[bool]]:
    """Return the raw scores, and the ignored nodes."""

    def complete(where: Node) -> bool:
        return not all_keys or all(constraint.topology_key in where.labels for constraint in constraints)

    scored = [where for where in among if complete(where)]
    scores = [0.0 for _ in among]
    for constraint in constraints:
        key = constraint.topology_key
        domains = {where.labels.get(key, ""): 0 for where in scored}
        size = len(scored) if key == HOST else len(domains)
        for where in world.nodes:
            value = where.labels.get(key, "")
            if value in domains and complete(where) and allows(constraint, incoming, where):
                domains[value] += counted(constraint, incoming, world.on(where))
        for place, where in enumerate(among):
            if complete(where) and key in where.labels:
                here = counted(constraint, incoming, world.on(where)) if key == HOST else domains[where.labels[key]]
                scores[place] += here * math.log(size + 2) + (constraint.max_skew - 1)
    return [math.floor(score + 0.5) for score in scores], [not complete(where) for where in among]


def plain_normalized(scores: list[int], ignored: list[bool]) -> list[int]:
    among = [score for score, out in zip(scores, ignored, strict=True) if not out]
    most, least = max(among, default=0), min(among, default=0)
    return [
        0 if out else 100 if most == 0 else 100 * (most + least - score) // most
        for score, out in zip(scores, ignored, strict=True)
    ]


constraints = st.fixed_dictionaries(
    {
        "maxSkew": st.sampled_from((1, 1, 1, 2)),
        "topologyKey": st.sampled_from(KEYS),
        "whenUnsatisfiable": st.sampled_from((HARD, SOFT)),
        "labelSelector": selectors,
    },
    optional={
        "minDomains": st.integers(1, 4),
        "nodeAffinityPolicy": st.sampled_from(("Honor", "Ignore")),
        "nodeTaintsPolicy": st.sampled_from(("Honor", "Ignore")),
        "matchLabelKeys": st.just(["tier"]),
    },
)


@st.composite
def spread_pods(draw: st.DrawFn) -> Pod:
    drawn = draw(pods("incoming"))
    stated = draw(st.lists(constraints, min_size=1, max_size=3))
    spec = {**drawn.spec, "topologySpreadConstraints": stated}
    return pod("incoming", drawn.namespace, drawn.labels, spec)


def plugin_for(cluster: SchedulerCache, args: PodTopologySpreadArgs | None = None) -> PodTopologySpread:
    return PodTopologySpread.from_args(args or PodTopologySpreadArgs(), Handle(cluster))


def shuffled(world: ScenarioCluster, random: Any) -> tuple[list[Node], np.ndarray[Any, np.dtype[np.int64]]]:
    chosen = random.sample(world.nodes, random.randint(1, len(world.nodes)))
    return chosen, np.array([world.cluster.table.row_of[where.name] for where in chosen], dtype=np.int64)


def stated(incoming: Pod, action: str) -> list[SpreadConstraint]:
    return [c for c in incoming.signature.spread_constraints if c.when_unsatisfiable == action]


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(worlds(), spread_pods(), st.randoms(use_true_random=False))
def test_filter_equals_the_plain_rule(world: ScenarioCluster, incoming: Pod, random: Any) -> None:
    plugin, state = plugin_for(world.cluster), CycleState()
    plain = PlainFilter(incoming, stated(incoming, HARD))
    if not plain.constraints:
        assert plugin.pre_filter(state, incoming, world.cluster) is SKIP
        return
    for where in world.nodes:
        plain.count_node(where, world.on(where))
    assert plugin.pre_filter(state, incoming, world.cluster) is None
    chosen, rows = shuffled(world, random)
    table = world.cluster.table
    before = [plain.code(where) for where in chosen]
    assert plugin.filter_rows(state, incoming, table, rows).tolist() == before

    what_if, where = state.clone(), world.fullest
    copy = table.copy_rows([table.row_of[where.name]])
    there = world.on(where)
    leaving = random.sample(there, random.randint(min(len(there), 1), len(there)))
    for other in leaving:
        plain.change(other, where, -1)
        plugin.remove_pod(what_if, incoming, other, NodeInfo(copy, 0))
    further, gone = what_if.clone(), plain.code(where)
    for other in leaving[1:]:
        plain.change(other, where, 1)
        plugin.add_pod(what_if, incoming, other, NodeInfo(copy, 0))
    after = plugin.filter_rows(what_if, incoming, copy, np.zeros(1, dtype=np.int64))
    assert after.tolist() == [plain.code(where)]
    assert plugin.filter_rows(further, incoming, copy, np.zeros(1, dtype=np.int64)).tolist() == [gone]
    assert plugin.filter_rows(state, incoming, table, rows).tolist() == before, "a what-if must not show outside"


@settings(max_examples=20, deadline=None)
@given(worlds(), spread_pods(), pods("joining"), st.randoms(use_true_random=False))
def test_in_the_dry_run_each_row_is_a_cluster_of_its_own(
    world: ScenarioCluster, incoming: Pod, joining: Pod, random: Any
) -> None:
    plugin, state, table = plugin_for(world.cluster), CycleState(), world.cluster.table
    if plugin.pre_filter(state, incoming, world.cluster) is not None:
        return
    columns = plugin.dry_run_columns(state, incoming, table.copy_rows(table.row_of[each.name] for each in world.nodes))
    assert columns is not None
    plain = [PlainFilter(incoming, stated(incoming, HARD)) for _ in world.nodes]
    for each in plain:
        for where in world.nodes:
            each.count_node(where, world.on(where))
    for codes in world.changed_rows(columns, joining, random, lambda row, *change: plain[row].change(*change)):
        assert codes == [each.code(where) for each, where in zip(plain, world.nodes, strict=True)]
        assert all(columns.status(code) is plugin.code_status(state, incoming, code) for code in codes if code)


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(worlds(), spread_pods(), st.randoms(use_true_random=False))
def test_scores_equal_the_plain_rule(world: ScenarioCluster, incoming: Pod, random: Any) -> None:
    plugin, state = plugin_for(world.cluster), CycleState()
    soft = stated(incoming, SOFT)
    chosen, rows = shuffled(world, random)
    status = plugin.pre_score(state, incoming, world.cluster, rows)
    if not soft:
        assert status is SKIP
        return
    assert status is None
    expected, ignored = plain_scores(world, incoming, soft, chosen, all_keys=True)
    raw = plugin.score_rows(state, incoming, world.cluster.table, rows)
    assert raw.tolist() == expected
    assert plugin.score_rows(state, incoming, world.cluster.table, rows[::-1].copy()).tolist() == expected[::-1]
    assert plugin.normalize(state, incoming, raw).tolist() == plain_normalized(expected, ignored)


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(worlds(), pods("incoming"), st.booleans(), st.randoms(use_true_random=False))
def test_default_constraints_equal_the_plain_rule(
    world: ScenarioCluster, incoming: Pod, system: bool, random: Any
) -> None:
    """Check that System defaults treat a node without the zone's label as one whose zone is named ""."""
    web: dict[str, Any] = {"kind": "Service", "metadata": {"name": "web", "namespace": incoming.namespace}}
    world.cluster.put(parse({**web, "spec": {"selector": {"app": "web"}}}))
    listed = (DefaultConstraint(1, ZONE, SOFT), DefaultConstraint(2, RACK, SOFT), DefaultConstraint(1, RACK, HARD))
    args = PodTopologySpreadArgs() if system else PodTopologySpreadArgs(listed, "List")
    plugin, state = plugin_for(world.cluster, args), CycleState()
    chosen, rows = shuffled(world, random)
    filtered = plugin.pre_filter(state, incoming, world.cluster)
    scored = plugin.pre_score(state, incoming, world.cluster, rows)
    if incoming.labels.get("app") != "web":
        assert (filtered, scored) == (SKIP, SKIP)
        return
    selects = parse_label_selector({"matchLabels": {"app": "web"}})

    def applied(skew: int, key: str, action: str) -> SpreadConstraint:
        return SpreadConstraint(skew, key, action, selects, 1, honor_affinity=True, honor_taints=False)

    soft = (
        [applied(3, HOST, SOFT), applied(5, ZONE, SOFT)] if system else [applied(1, ZONE, SOFT), applied(2, RACK, SOFT)]
    )
    expected, ignored = plain_scores(world, incoming, soft, chosen, all_keys=not system)
    raw = plugin.score_rows(state, incoming, world.cluster.table, rows)
    assert raw.tolist() == expected
    assert plugin.normalize(state, incoming, raw).tolist() == plain_normalized(expected, ignored)
    if system:
        assert filtered is SKIP
        return
    plain = PlainFilter(incoming, [applied(1, RACK, HARD)])
    for where in world.nodes:
        plain.count_node(where, world.on(where))
    codes = plugin.filter_rows(state, incoming, world.cluster.table, rows)
    assert codes.tolist() == [plain.code(where) for where in chosen]


def test_system_defaults_count_nodes_without_a_zone_where_the_zone_is_empty() -> None:
    """Count the pods on the node without the label for the zone named "", although the pod cannot run there."""
    cluster = SchedulerCache()
    for name, labels in (("n1", {ZONE: ""}), ("n2", {ZONE: "a"}), ("n3", {})):
        cluster.put(node(name, {HOST: name, **labels}))
    cluster.put(pod("there", labels={"app": "web"}, on="n3"))
    service: dict[str, Any] = {"kind": "Service", "metadata": {"name": "web", "namespace": "red"}}
    cluster.put(parse({**service, "spec": {"selector": {"app": "web"}}}))
    plugin, state = plugin_for(cluster, PodTopologySpreadArgs()), CycleState()
    incoming = pod("new", labels={"app": "web"})
    rows = np.array([cluster.table.row_of["n1"], cluster.table.row_of["n2"]])
    assert plugin.pre_score(state, incoming, cluster, rows) is None
    assert plugin.score_rows(state, incoming, cluster.table, rows).tolist() == [7, 6]


@pytest.mark.parametrize(("disk", "without_zone"), [({}, 2), ({"disk": "ssd"}, 0)])
def test_system_defaults_count_nodes_without_a_zone_only_if_the_pod_may_run_there(
    disk: dict[str, str], without_zone: int
) -> None:
    cluster = SchedulerCache()
    for name, labels in (("n1", {ZONE: "", "disk": "ssd"}), ("n2", {ZONE: "a", "disk": "ssd"}), ("n3", {})):
        cluster.put(node(name, {HOST: name, **labels}))
    for number, name in enumerate(("n2", "n3", "n3")):
        cluster.put(pod(f"there{number}", labels={"app": "web"}, on=name))
    plugin = plugin_for(cluster, PodTopologySpreadArgs())
    cluster.put(service({"app": "web"}))
    incoming, state = pod("new", labels={"app": "web"}, spec={"nodeSelector": disk}), CycleState()
    rows = np.array([cluster.table.row_of["n1"], cluster.table.row_of["n2"]])
    assert plugin.pre_score(state, incoming, cluster, rows) is None
    scores = plugin.score_rows(state, incoming, cluster.table, rows)
    # Two pods in the zone "", or one pod in zone a and on n2; the largest skews are 3 for nodes and 5 for zones.
    assert scores.tolist() == [round(pods * math.log(2 + 2) + (3 - 1) + (5 - 1)) for pods in (without_zone, 1 + 1)]


def service(selector: dict[str, str]) -> Object:
    raw: dict[str, Any] = {"kind": "Service", "metadata": {"name": "web", "namespace": "red"}}
    return parse({**raw, "spec": {"selector": selector}})


def test_default_constraints_follow_the_services_of_the_pod() -> None:
    cluster = SchedulerCache()
    cluster.load([node("a", {HOST: "a"}), node("b", {HOST: "b"})])
    cluster.put(pod("front", labels={"app": "web", "tier": "front"}, on="a"))
    cluster.put(pod("back", labels={"app": "web", "tier": "back"}, on="b"))
    plugin = plugin_for(cluster, PodTopologySpreadArgs((DefaultConstraint(1, HOST, HARD),), "List"))
    incoming = pod("new", labels={"app": "web", "tier": "front"})

    def fits() -> list[str]:
        state = CycleState()
        if plugin.pre_filter(state, incoming, cluster) is SKIP:
            return ["a", "b"]
        codes = plugin.filter_rows(state, incoming, cluster.table, cluster.table.order)
        return [cluster.table.names[row] for row in cluster.table.order[codes == 0]]

    assert fits() == ["a", "b"]
    cluster.put(service({"tier": "front"}))
    assert fits() == ["b"]
    cluster.put(service({"app": "web"}))
    assert fits() == ["a", "b"]


def test_the_rows_of_one_pods_node_selector_hold_for_another_pod() -> None:
    cluster = SchedulerCache()
    cluster.load([node("a", {HOST: "a", "disk": "ssd"}), node("b", {HOST: "b", "disk": "ssd"}), node("c", {HOST: "c"})])
    for name in "ab":
        cluster.put(pod(f"on-{name}", labels={"app": "web"}, on=name))
    plugin = plugin_for(cluster)
    for skew in (1, 2):  # node c, which has no pod, is no domain for these pods
        incoming = spread(constraint(HOST, maxSkew=skew), nodeSelector={"disk": "ssd"})
        state = CycleState()
        assert plugin.pre_filter(state, incoming, cluster) is None
        codes = plugin.filter_rows(state, incoming, cluster.table, cluster.table.order)
        assert codes.tolist()[:2] == [0, 0]


def constraint(key: str = ZONE, action: str = HARD, *, selector: Any = None, **fields: Any) -> dict[str, Any]:
    chosen = {"matchLabels": {"app": "web"}} if selector is None else selector
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": chosen, **fields}


def spread(*constraints: dict[str, Any], **fields: Any) -> Pod:
    return pod("new", labels={"app": "web"}, spec={"topologySpreadConstraints": list(constraints), **fields})


def verdicts(cluster: SchedulerCache, incoming: Pod) -> dict[str, str]:
    plugin, state = plugin_for(cluster), CycleState()
    assert plugin.pre_filter(state, incoming, cluster) is None
    codes = plugin.filter_rows(state, incoming, cluster.table, cluster.table.order)
    names = [cluster.table.names[row] for row in cluster.table.order]
    words = {0: "fits", NO_LABEL: "no label", TOO_SKEWED: "too skewed"}
    return {name: words[code] for name, code in sorted(zip(names, codes.tolist(), strict=True))}


def documented(*extra: Node) -> SchedulerCache:
    """Return the documentation's cluster: zones A and B of two nodes each, two pods in zone A, one pod on node3."""
    cluster = SchedulerCache()
    zones = {"node1": "A", "node2": "A", "node3": "B", "node4": "B"}
    cluster.load(node(name, {HOST: name, ZONE: zone}) for name, zone in zones.items())
    cluster.load(extra)
    cluster.load(
        pod(f"web-{number}", labels={"app": "web"}, on=on) for number, on in enumerate(("node1", "node2", "node3"))
    )
    return cluster


node5 = node("node5", {HOST: "node5", ZONE: "C"})
not_in_c = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "NotIn", "values": ["C"]}]}]
            }
        }
    }
}


@pytest.mark.parametrize(
    ("cluster", "incoming", "fit"),
    [
        pytest.param(
            documented(), spread(constraint()), {"node3", "node4"}, id="one-constraint-fills-the-emptier-zone"
        ),
        pytest.param(
            documented(), spread(constraint(), constraint(HOST)), {"node4"}, id="two-constraints-both-must-hold"
        ),
        pytest.param(documented(node5), spread(constraint()), {"node5"}, id="an-empty-zone-is-the-emptiest"),
        pytest.param(
            documented(node5),
            spread(constraint(), **not_in_c),
            {"node3", "node4", "node5"},
            id="affinity-excludes-zone-c",
        ),
        pytest.param(
            documented(node5),
            spread(constraint(nodeAffinityPolicy="Ignore"), **not_in_c),
            {"node5"},
            id="affinity-can-be-ignored",
        ),
        pytest.param(
            documented(), spread(constraint(minDomains=2)), {"node3", "node4"}, id="as-many-domains-as-required"
        ),
        pytest.param(
            documented(),
            spread(constraint(HOST, minDomains=4), constraint(minDomains=3)),
            set(),
            id="each-key-has-its-own-number-of-domains",
        ),
        pytest.param(
            documented(),
            spread(constraint(minDomains=3)),
            set(),
            id="too-few-domains-make-the-least-zero",
        ),
        pytest.param(
            documented(),
            spread(constraint(selector={"matchLabels": {"app": "db"}})),
            {"node1", "node2", "node3", "node4"},
            id="a-pod-that-its-selector-leaves-out-adds-nothing",
        ),
        pytest.param(
            documented(node("node6", {HOST: "node6", ZONE: "B"}, [{"key": "busy", "effect": "NoSchedule"}])),
            spread(constraint(HOST, nodeTaintsPolicy="Honor")),
            {"node4", "node6"},
            id="a-node-with-a-taint-is-no-domain-but-is-judged",
        ),
    ],
)
def test_documented_examples(cluster: SchedulerCache, incoming: Pod, fit: set[str]) -> None:
    assert {name for name, word in verdicts(cluster, incoming).items() if word == "fits"} == fit


@pytest.mark.parametrize(
    ("change", "where", "fit"),
    [
        pytest.param("remove_pod", "node1", {"node1", "node2", "node3", "node4"}, id="a-pod-of-the-fuller-zone-leaves"),
        pytest.param("add_pod", "node4", {"node1", "node2", "node3", "node4"}, id="a-pod-fills-the-emptier-zone"),
        pytest.param("add_pod", "node1", {"node3", "node4"}, id="a-pod-joins-the-fuller-zone"),
    ],
)
def test_a_pod_added_or_removed_in_the_attempt_counts_in_its_zone(change: str, where: str, fit: set[str]) -> None:
    cluster, state = documented(), CycleState()
    plugin, incoming, table = plugin_for(cluster), spread(constraint()), cluster.table
    assert plugin.pre_filter(state, incoming, cluster) is None
    other = pod("web-other", labels={"app": "web"}, on=where)
    getattr(plugin, change)(state, incoming, other, NodeInfo(table, table.row_of[where]))
    codes = plugin.filter_rows(state, incoming, table, table.order)
    assert {table.names[row] for row in table.order[codes == 0]} == fit


def test_in_the_dry_run_every_constraint_must_hold() -> None:
    cluster, state = documented(), CycleState()
    plugin, incoming, table = plugin_for(cluster), spread(constraint(), constraint(HOST)), cluster.table
    assert plugin.pre_filter(state, incoming, cluster) is None
    columns = plugin.dry_run_columns(state, incoming, table.copy_rows(table.row_of[f"node{n}"] for n in (1, 2, 3, 4)))
    assert columns is not None
    assert columns.codes(np.arange(4)).tolist() == [TOO_SKEWED, TOO_SKEWED, TOO_SKEWED, 0]


def test_in_the_dry_run_pods_on_a_node_that_affinity_excludes_do_not_count() -> None:
    cluster, state = documented(node5), CycleState()
    plugin, incoming, table = plugin_for(cluster), spread(constraint(minDomains=3), **not_in_c), cluster.table
    assert plugin.pre_filter(state, incoming, cluster) is None
    columns = plugin.dry_run_columns(
        state, incoming, table.copy_rows(table.row_of[name] for name in ("node4", "node5"))
    )
    assert columns is not None
    joining = pod("web-other", labels={"app": "web"})
    columns.follow(np.array([1]), np.array([0]), [joining], 1)
    assert columns.codes(np.arange(2)).tolist() == [TOO_SKEWED, 0]


@pytest.mark.parametrize(
    ("actions", "points"),
    [((), ["pre_filter", "pre_score"]), ((HARD,), ["pre_score"]), ((SOFT,), ["pre_filter"]), ((HARD, SOFT), [])],
)
def test_points_without_constraints_repeat_their_result(actions: tuple[str, ...], points: list[str]) -> None:
    cluster = documented()
    incoming = spread(*(constraint(action=action) for action in actions))
    assert plugin_for(cluster).repeats_while_unchanged(incoming, cluster) == points


def test_conflicting_constraints_leave_no_node() -> None:
    cluster = SchedulerCache()
    cluster.load([node("node1", {HOST: "node1", ZONE: "A"}), node("node2", {HOST: "node2", ZONE: "A"})])
    cluster.load([node("node3", {HOST: "node3", ZONE: "B"})])
    places = ("node1", "node2", "node2", "node3", "node3")
    cluster.load(pod(f"web-{number}", labels={"app": "web"}, on=on) for number, on in enumerate(places))
    both = spread(constraint(), constraint(HOST))
    assert set(verdicts(cluster, both).values()) == {"too skewed"}
    cluster.put(pod("web-9", labels={"app": "web"}, on="node1"))
    assert verdicts(cluster, both) == {"node1": "too skewed", "node2": "too skewed", "node3": "fits"}


def test_words_of_a_verdict() -> None:
    plugin, incoming = plugin_for(SchedulerCache()), spread(constraint())
    missing = plugin.code_status(CycleState(), incoming, NO_LABEL)
    skewed = plugin.code_status(CycleState(), incoming, TOO_SKEWED)
    words = "node(s) didn't match pod topology spread constraints"
    assert (missing.code, missing.reasons) == (
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        (f"{words} (missing required label)",),
    )
    assert (skewed.code, skewed.reasons) == (Code.UNSCHEDULABLE, (words,))


def test_a_node_without_all_keys_is_ignored_and_does_not_count_as_a_domain() -> None:
    cluster = documented(node("node5", {HOST: "node5"}))
    cluster.load(pod(f"more-{number}", labels={"app": "web"}, on="node1") for number in range(4))
    plugin, state, rows = plugin_for(cluster), CycleState(), cluster.table.order
    incoming = spread(constraint(action=SOFT), constraint(HOST, SOFT, maxSkew=3))
    assert plugin.pre_score(state, incoming, cluster, rows) is None
    raw = plugin.score_rows(state, incoming, cluster.table, rows)
    names = [cluster.table.names[row] for row in rows]
    by_zone, by_node = {"A": 6, "B": 1}, {"node1": 5, "node2": 1, "node3": 1, "node4": 0}
    zones = {"node1": "A", "node2": "A", "node3": "B", "node4": "B"}
    expected = {
        name: round(by_zone[zone] * math.log(2 + 2) + by_node[name] * math.log(4 + 2) + 2)
        for name, zone in zones.items()
    }
    assert dict(zip(names, raw.tolist(), strict=True)) == {**expected, "node5": 0}
    scores = dict(zip(names, plugin.normalize(state, incoming, raw).tolist(), strict=True))
    assert scores["node4"] == 100
    assert scores["node5"] == 0


def test_labels_that_change_between_attempts_are_seen() -> None:
    cluster = documented()
    plugin = plugin_for(cluster)

    def fits() -> set[str]:
        state, incoming = CycleState(), spread(constraint())
        assert plugin.pre_filter(state, incoming, cluster) is None
        codes = plugin.filter_rows(state, incoming, cluster.table, cluster.table.order)
        return {cluster.table.names[row] for row in cluster.table.order[codes == 0]}

    assert fits() == {"node3", "node4"}
    cluster.put(node("node2", {HOST: "node2", ZONE: "C"}))
    assert fits() == {"node1", "node2", "node3", "node4"}
    cluster.put(pod("web-7", labels={"app": "web"}, on="node4"))
    assert fits() == {"node1", "node2"}
    cluster.remove_node("node1")
    assert fits() == {"node2"}


def test_what_was_worked_out_for_pods_long_ago_is_forgotten() -> None:
    cluster = SchedulerCache()
    cluster.load(node(f"n{number}", {HOST: f"n{number}", ZONE: f"z{number % 3}"}) for number in range(40))
    cluster.table.most_counters = 4
    constraints = SpreadConstraints(PodTopologySpreadArgs(), cluster)

    def worked_out(number: int) -> list[weakref.ref[Any]]:
        (ready,) = constraints.of(spread(constraint(), nodeSelector={HOST: f"n{number}"}), HARD)
        assert ready.domains == 1
        return [weakref.ref(ready.among), weakref.ref(ready.values)]

    first = worked_out(0)
    for number in range(1, 40):
        last = worked_out(number)
    assert [kept() for kept in first] == [None, None]
    assert None not in [kept() for kept in last]


def controller(kind: str, version: str, selector: Any) -> Object:
    return parse(
        {
            "apiVersion": version,
            "kind": kind,
            "metadata": {"name": "owner", "namespace": "red"},
            "spec": {"selector": selector},
        }
    )


def owned(kind: str, version: str, *, namespace: str = "red") -> Pod:
    ref = {"apiVersion": version, "kind": kind, "name": "owner", "uid": "1", "controller": True}
    return pod("p", namespace, {"app": "web", "tier": "front"}, ownerReferences=[ref])


@pytest.mark.parametrize(
    ("there", "incoming", "expected"),
    [
        pytest.param([], pod("p", labels={"app": "web"}), "", id="nothing-selects-it"),
        pytest.param(
            [controller("Service", "v1", {"app": "web"}), controller("Service", "v1", {"app": "db"})],
            pod("p", labels={"app": "db"}),
            "app=db",
            id="services-that-match-it",
        ),
        pytest.param(
            [controller("Service", "v1", {})], pod("p", labels={"app": "db"}), "", id="a-service-without-selector"
        ),
        pytest.param(
            [controller("ReplicationController", "v1", {"tier": "front"}), controller("Service", "v1", {"app": "web"})],
            owned("ReplicationController", "v1"),
            "app=web,tier=front",
            id="its-replication-controller",
        ),
        pytest.param(
            [controller("ReplicaSet", "apps/v1", {"matchExpressions": [{"key": "tier", "operator": "Exists"}]})],
            owned("ReplicaSet", "apps/v1"),
            "tier",
            id="its-replica-set",
        ),
        pytest.param(
            [controller("StatefulSet", "apps/v1", {"matchLabels": {"app": "web"}})],
            owned("StatefulSet", "apps/v1"),
            "app=web",
            id="its-stateful-set",
        ),
        pytest.param(
            [controller("ReplicaSet", "apps/v1", {"matchLabels": {"app": "web"}})],
            owned("ReplicaSet", "extensions/v1beta1"),
            "",
            id="an-owner-of-another-group",
        ),
        pytest.param(
            [controller("ReplicaSet", "apps/v1", {"matchLabels": {"app": "web"}})],
            owned("ReplicaSet", "apps/v1", namespace="blue"),
            "",
            id="an-owner-in-another-namespace",
        ),
    ],
)
def test_default_selector(there: list[Object], incoming: Pod, expected: str) -> None:
    cluster = SchedulerCache()
    defaults = DefaultSelectors(cluster)
    assert defaults.of(incoming) is EVERYTHING
    cluster.load(there)
    assert str(defaults.of(incoming)) == expected


def test_equal_pods_of_different_controllers_have_different_default_selectors() -> None:
    cluster = SchedulerCache()
    cluster.load(
        [controller("Service", "v1", {"app": "web"}), controller("ReplicationController", "v1", {"tier": "a"})]
    )
    defaults, of_controller = DefaultSelectors(cluster), owned("ReplicationController", "v1")
    alone = pod("p", labels=of_controller.labels)
    assert alone.signature is of_controller.signature
    for _ in range(2):
        assert [str(defaults.of(each)) for each in (of_controller, alone)] == ["app=web,tier=a", "app=web"]


Hinted = Callable[[Pod, Any, Any], QueueingHint]


def hint(resource: EventResource, args: PodTopologySpreadArgs | None = None) -> Hinted:
    for registered in plugin_for(SchedulerCache(), args).events_to_register():
        if registered.event.resource is resource:
            assert registered.hint is not None
            return registered.hint
    raise AssertionError(f"{resource} is expected to be registered")


def test_it_waits_for_pods_and_for_nodes_with_other_labels_or_taints() -> None:
    events = {entry.event.resource: entry.event.action for entry in plugin_for(SchedulerCache()).events_to_register()}
    pods_ = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION
    nodes_ = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
    assert events == {EventResource.POD: pods_, EventResource.NODE: nodes_}


web, db = pod("x", labels={"app": "web"}, on="a"), pod("x", labels={"app": "db"}, on="a")
waiting = spread(constraint())
twice = spread(constraint(), constraint(selector={"matchLabels": {"tier": "front"}}))
tolerant = spread(constraint(nodeTaintsPolicy="Honor"), tolerations=[{"operator": "Exists"}])
honoring = spread(constraint(nodeTaintsPolicy="Honor"))
half_honoring = spread(constraint(HOST), constraint(nodeTaintsPolicy="Honor"))


@pytest.mark.parametrize(
    ("incoming", "old", "new", "expected"),
    [
        pytest.param(waiting, None, web, QueueingHint.QUEUE, id="a-counted-pod-came"),
        pytest.param(waiting, web, None, QueueingHint.QUEUE, id="a-counted-pod-went"),
        pytest.param(waiting, None, db, QueueingHint.QUEUE_SKIP, id="another-pod-came"),
        pytest.param(waiting, web, db, QueueingHint.QUEUE, id="a-pod-is-no-longer-counted"),
        pytest.param(waiting, web, web, QueueingHint.QUEUE_SKIP, id="a-pod-changed-otherwise"),
        pytest.param(
            waiting, None, pod("x", "blue", {"app": "web"}, on="a"), QueueingHint.QUEUE_SKIP, id="in-another-namespace"
        ),
        pytest.param(waiting, None, pod("x", labels={"app": "web"}), QueueingHint.QUEUE_SKIP, id="it-has-no-node-yet"),
        pytest.param(twice, None, web, QueueingHint.QUEUE, id="a-pod-that-one-constraint-counts-came"),
        pytest.param(twice, web, db, QueueingHint.QUEUE, id="one-constraint-no-longer-counts-a-pod"),
        pytest.param(honoring, honoring, tolerant, QueueingHint.QUEUE, id="it-tolerates-more-itself"),
        pytest.param(waiting, honoring, tolerant, QueueingHint.QUEUE_SKIP, id="tolerating-more-does-not-help-it"),
        pytest.param(
            half_honoring,
            half_honoring,
            spread(constraint(HOST), constraint(nodeTaintsPolicy="Honor"), tolerations=[{"operator": "Exists"}]),
            QueueingHint.QUEUE,
            id="it-tolerates-more-itself-and-one-constraint-honors-taints",
        ),
    ],
)
def test_hint_after_a_pod_changed(incoming: Pod, old: Pod | None, new: Pod | None, expected: QueueingHint) -> None:
    assert hint(EventResource.POD)(incoming, old, new) is expected


east, west, nowhere = node("a", {ZONE: "east"}), node("a", {ZONE: "west"}), node("a", {})
tainted, tainted_off = node("a", {ZONE: "east"}, [{"key": "busy"}]), node("a", {}, [{"key": "busy"}])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, east, QueueingHint.QUEUE, id="a-node-with-the-keys-came"),
        pytest.param(None, nowhere, QueueingHint.QUEUE_SKIP, id="a-node-without-the-keys-came"),
        pytest.param(east, None, QueueingHint.QUEUE, id="a-node-with-the-keys-went"),
        pytest.param(nowhere, None, QueueingHint.QUEUE_SKIP, id="a-node-without-the-keys-went"),
        pytest.param(east, west, QueueingHint.QUEUE, id="a-node-moved"),
        pytest.param(east, nowhere, QueueingHint.QUEUE, id="a-node-lost-the-key"),
        pytest.param(east, tainted, QueueingHint.QUEUE, id="its-taints-changed"),
        pytest.param(nowhere, tainted_off, QueueingHint.QUEUE_SKIP, id="taints-of-a-node-without-the-keys"),
        pytest.param(east, east, QueueingHint.QUEUE_SKIP, id="nothing-that-counts-changed"),
    ],
)
def test_hint_after_a_node_changed(old: Node | None, new: Node | None, expected: QueueingHint) -> None:
    assert hint(EventResource.NODE)(waiting, old, new) is expected


def test_hints_do_not_go_by_shape_where_default_constraints_are_hard() -> None:
    """The default constraints' selector depends on the pod's controller, which is not part of its shape."""
    listed = PodTopologySpreadArgs((DefaultConstraint(1, ZONE, HARD),), "List")
    assert not any(entry.by_signature for entry in plugin_for(SchedulerCache(), listed).events_to_register())
    assert all(entry.by_signature for entry in plugin_for(SchedulerCache()).events_to_register())


@pytest.mark.parametrize("version", [V1_34, V1_36, V1_34.with_rule("nominated_pods_wake", V1_36)], ids=lambda v: v.name)
def test_a_nominated_pod_that_is_counted_wakes_others_by_a_rule(version: KubernetesVersion) -> None:
    made = PodTopologySpread.from_args(PodTopologySpreadArgs(), Handle(SchedulerCache(), rules=version.rules))
    [after_pod] = [each.hint for each in made.events_to_register() if each.event.resource is EventResource.POD]
    nominated = attrs.evolve(pod("x", labels={"app": "web"}), nominated_node_name="a")
    assert after_pod is not None
    expected = QueueingHint.QUEUE if version.rules.nominated_pods_wake else QueueingHint.QUEUE_SKIP
    assert after_pod(waiting, None, nominated) is expected
    assert after_pod(waiting, nominated, None) is expected
