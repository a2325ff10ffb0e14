"""Tests that preemption with cached dry runs finds the victims of the plain rule on every node.

The plain rule visits one node at a time, removes pods from a cluster of its own, and calls a scheduler without a cache
each time. The dry run differs in two ways: it tries many nodes at once on copies, and looks up earlier results.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.loading.load import default_config
from kschedd.config.versions.kube_versions import V1_34
from kschedd.framework.handle import Handle
from kschedd.framework.interface import PostFilterResult
from kschedd.framework.postfilter import Candidate
from kschedd.framework.registry import Registry
from kschedd.framework.status import Code, Status
from kschedd.scheduling.attempt.node_search import StartNode
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.attempt.scheduler import Scheduler
from kschedd.scheduling.attempt.ties import by_name
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.preemption.budgets import Budget, Budgets
from kschedd.scheduling.preemption.dry_run import earliest_start
from kschedd.scheduling.preemption.row_pods import NOT_STARTED, importance, started
from kschedd.scheduling.profiles.profile import build_profile
from tests.full_run import examples

CONFIG = default_config(version=V1_34)
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def node(name: str, cpu: int = 4, zone: str = "a", tainted: bool = False) -> Node:
    taints = [{"key": "k", "effect": "NoSchedule"}] if tainted else []
    return Node.from_raw(
        {
            "kind": "Node",
            "metadata": {"name": name, "labels": {HOST: name, ZONE: zone}},
            "spec": {"taints": taints},
            "status": {"allocatable": {"cpu": str(cpu), "memory": "8Gi", "pods": "8"}},
        }
    )


APART = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": HOST}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "x"}},
}
NEAR = {"labelSelector": {"matchLabels": {"app": "y"}}, "topologyKey": ZONE}
OVER_HOSTS = {**SPREAD, "topologyKey": HOST, "maxSkew": 2, "minDomains": 3}


def anti(term: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def disk(name: str) -> dict[str, Any]:
    return {"volumes": [{"name": name, "gcePersistentDisk": {"pdName": name}}]}


SHAPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "near": {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [NEAR]}}},
    "near itself": {
        "affinity": {
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**APART, "topologyKey": ZONE}]}
        }
    },
    "apart twice": {"affinity": anti({**APART, "topologyKey": ZONE}), "topologySpreadConstraints": [OVER_HOSTS]},
    "spread twice": {"topologySpreadConstraints": [SPREAD, OVER_HOSTS]},
    "disk": disk("one"),
    "apart": {
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}},
    },
    "spread": {"topologySpreadConstraints": [SPREAD]},
}


def pod(
    name: str,
    priority: int = 0,
    cpu: int = 1,
    *,
    on: str = "",
    app: str = "x",
    shape: str = "plain",
    start: int | None = None,
    port: int = 0,
    nominated: str = "",
    **fields: Any,
) -> Pod:
    container: dict[str, Any] = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}
    if port:
        container["ports"] = [{"containerPort": 1, "hostPort": port, "protocol": "TCP"}]
    spec: dict[str, Any] = {**SHAPES[shape], "containers": [container], "priority": priority, **fields}
    if on:
        spec["nodeName"] = on
    status: dict[str, Any] = {}
    if start is not None:
        status["startTime"] = f"2025-01-01T00:00:{start:02}Z"
    if nominated:
        status["nominatedNodeName"] = nominated
    meta = {"name": name, "namespace": "default", "uid": name, "labels": {"app": app}}
    return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": spec, "status": status})


def budget(name: str, app: str, allowed: int, disrupted: tuple[str, ...] = ()) -> Object:
    return parse(
        {
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {
                "disruptionsAllowed": allowed,
                "disruptedPods": dict.fromkeys(disrupted, "2025-01-01T00:00:00Z"),
            },
        }
    )


def scheduler(cluster: SchedulerCache, *, remember: bool = True, preempts: bool = True, **args: Any) -> Scheduler:
    profile = CONFIG.profiles[0]
    if not preempts:
        profile = attrs.evolve(profile, plugins={**profile.plugins, "post_filter": ()})
    if args:
        kept = {**profile.plugin_args}
        kept["DefaultPreemption"] = attrs.evolve(profile.args("DefaultPreemption"), **args)
        profile = attrs.evolve(profile, plugin_args=kept)
    running = build_profile(CONFIG, profile, Registry(), Handle(cluster, CONFIG.feature_gates, rules=CONFIG.rules))
    return Scheduler(running, cluster, by_name, StartNode(), remember=remember)


def with_filters(cluster: SchedulerCache, *added: type[Any]) -> Scheduler:
    """Return a scheduler with these plugins at Filter, and at PreFilter if they implement it."""
    registry, profile = Registry(), CONFIG.profiles[0]
    plugins = dict(profile.plugins)
    for plugin in added:
        registry.add(plugin, "test")
        for point in ("pre_filter", "filter"):
            if hasattr(plugin, point):
                plugins[point] = (*plugins[point], attrs.evolve(plugins[point][0], name=plugin.name))
    running = build_profile(
        CONFIG, attrs.evolve(profile, plugins=plugins), registry, Handle(cluster, rules=V1_34.default_rules)
    )
    return Scheduler(running, cluster, by_name, StartNode())


Nominations = dict[str, list[Pod]]


def sorted_by_go(pods: Sequence[Pod]) -> list[Pod]:
    """Sort as Go sorts up to 12, by kube-scheduler 1.34's MoreImportantPod: an unstarted pod starts when compared."""

    def is_more_important(one: Pod, other: Pod) -> bool:
        if one.priority != other.priority:
            return one.priority > other.priority
        return not other.start_time or "" < one.start_time < other.start_time

    done: list[Pod] = []
    for pod in pods:
        place = len(done)
        while place and is_more_important(pod, done[place - 1]):
            place -= 1
        done.insert(place, pod)
    return done


@attrs.define
class Plain:
    """The plain rule, one node at a time, on a cluster that changes."""

    nodes: dict[str, Node]
    pods: dict[str, list[Pod]]  # by node, in order of arrival
    budgets: list[Object]
    nominated: Nominations
    # results of `statuses`, until the next change
    found: dict[Any, dict[str, Status | None]] = attrs.field(factory=dict)

    def statuses(self, preemptor: Pod, there: dict[str, list[Pod]]) -> dict[str, Status | None]:
        """Return the status of each node in a cluster with these pods."""
        who = preemptor.name, *sorted((on, *[other.name for other in pods]) for on, pods in there.items())
        if who not in self.found:
            self.found[who] = self._statuses(preemptor, there)
        return self.found[who]

    def _statuses(self, preemptor: Pod, there: dict[str, list[Pod]]) -> dict[str, Status | None]:
        cluster = SchedulerCache()
        cluster.load(self.nodes.values())
        for pods in there.values():
            cluster.load(pods)
        plain = scheduler(cluster, remember=False, preempts=False)
        result = drive(plain.attempt(attrs.evolve(preemptor, nominated_node_name=""), {}, every_node=True))
        assert isinstance(result, ScheduleResult | FitError)
        verdicts = result.verdicts if isinstance(result, ScheduleResult) else result.diagnosis.verdicts
        assert verdicts is not None
        return dict(verdicts.by_node())

    def on(self, preemptor: Pod, node_name: str, staying: list[Pod]) -> Status | None:
        """Return the status of a node with these pods, first with the nominated pods that count, then without them."""
        there = {**self.pods, node_name: staying}
        counting = [
            attrs.evolve(other, node_name=node_name)
            for other in self.nominated.get(node_name, ())
            if other.priority >= preemptor.priority and other.uid != preemptor.uid
        ]
        crowded = self.statuses(preemptor, {**there, node_name: staying + counting})[node_name] if counting else None
        return crowded or self.statuses(preemptor, there)[node_name]

    def try_node(self, preemptor: Pod, node_name: str) -> Candidate | Status:
        here = self.pods.get(node_name, [])
        lesser = [other for other in here if other.priority < preemptor.priority]
        staying = [other for other in here if other not in lesser]
        if not lesser:
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("No preemption victims found for incoming pod",))
        refused = self.on(preemptor, node_name, staying)
        if refused is not None:
            return refused
        lesser = sorted_by_go(lesser)
        left = {b.name: b.status["disruptionsAllowed"] for b in self.budgets}
        violating: list[Pod] = []
        for other in lesser:
            breaks = False
            for b in self.budgets:
                if b.spec["selector"]["matchLabels"]["app"] != other.labels["app"]:
                    continue
                if other.name not in b.status["disruptedPods"]:
                    left[b.name] -= 1
                    breaks = breaks or left[b.name] < 0
            if breaks:
                violating.append(other)
        victims = []
        for other in violating + [other for other in lesser if other not in violating]:
            if self.on(preemptor, node_name, [*staying, other]) is None:
                staying = [*staying, other]
            else:
                victims.append(other)
        # Of equally important pods, the order of the attempts decides.
        if 0 < len(violating) < len(lesser):
            victims = sorted_by_go(victims)
        return Candidate(node_name, tuple(victims), sum(victim in violating for victim in victims))

    def message(self, outcomes: list[Status]) -> str:
        reasons = Counter(reason for status in outcomes for reason in status.reasons)
        if len(outcomes) < len(self.nodes):
            reasons["Preemption is not helpful for scheduling"] += len(self.nodes) - len(outcomes)
        text = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
        return f"no new claims to deallocate, preemption: 0/{len(self.nodes)} nodes are available: {text}."


def rank(candidate: Candidate) -> tuple[int, int, int, int, int]:
    """Smaller is better."""
    victims = candidate.victims
    priorities = [victim.priority for victim in victims]
    total = sum(priority + 2**31 for priority in priorities)
    return candidate.pdb_violations, max(priorities), total, len(victims), -earliest_start(victims)


def compare(result: ScheduleResult | FitError, plain: Plain, preemptor: Pod) -> None:
    """Check that every node got the plain rule's verdict, and that the candidates are equal if no node fits."""
    verdicts = result.verdicts if isinstance(result, ScheduleResult) else result.diagnosis.verdicts
    assert verdicts is not None
    for name, status in verdicts.by_node():
        assert status == plain.on(preemptor, name, plain.pods.get(name, []))
    if isinstance(result, ScheduleResult):
        return
    tried = {
        name: plain.try_node(preemptor, name)
        for name, status in verdicts.by_node()
        if status is not None and status.code == Code.UNSCHEDULABLE
    }
    wanted = [outcome for outcome in tried.values() if isinstance(outcome, Candidate)]
    post = result.post_filter
    assert post is not None
    if not wanted:
        refused = [outcome for outcome in tried.values() if isinstance(outcome, Status)]
        assert post.status.message == plain.message(refused)
        assert post.nominated_node == ""
        return
    found = {c.node_name: ([v.name for v in c.victims], c.pdb_violations) for c in post.details.candidates}
    assert found == {c.node_name: ([v.name for v in c.victims], c.pdb_violations) for c in wanted}
    best = min(map(rank, wanted))
    assert list(post.details.ties) == sorted(c.node_name for c in wanted if rank(c) == best)
    assert post.nominated_node == post.details.ties[0]


NODES = ("n0", "n1", "n2")
PREEMPTORS = [
    pod("plain", 5, 3),
    pod("ports", 5, 1, port=80),
    pod("apart", 5, 1, shape="apart"),
    pod("spread", 5, 1, shape="spread"),
    pod("spread-twice", 5, 1, shape="spread twice"),
    pod("apart-twice", 5, 2, shape="apart twice"),
    pod("near", 5, 2, shape="near"),
    pod("near-itself", 5, 3, shape="near itself"),
    pod("disk", 5, 2, shape="disk"),
]

_pods = st.tuples(
    st.sampled_from(NODES),
    st.sampled_from((0, 0, 1, 2, 5)),  # priority
    st.sampled_from((1, 1, 2)),  # cpu
    st.sampled_from(("x", "x", "y")),
    st.sampled_from((None, 0, 1, 1, 2)),  # start
    st.sampled_from((0, 0, 80)),  # host port
    st.sampled_from(("plain", "plain", "apart", "disk")),
)
_nominations = st.tuples(
    st.sampled_from(NODES),
    st.lists(
        st.tuples(
            st.sampled_from((1, 5, 7)),  # priority
            st.sampled_from((1, 1, 3)),  # cpu
            st.sampled_from((0, 0, 80)),  # host port
            st.sampled_from(("plain", "plain", "apart", "disk")),
        ),
        max_size=2,
    ),
)
_changes = st.one_of(
    st.tuples(st.just("add"), _pods),
    st.tuples(st.just("add"), _pods),
    st.tuples(st.just("go"), st.integers(0, 9)),
    st.tuples(st.just("start"), st.tuples(st.integers(0, 9), st.integers(0, 3))),
    st.tuples(st.just("node"), st.tuples(st.sampled_from(NODES), st.sampled_from((3, 4, 5)), st.booleans())),
    st.tuples(st.just("budget"), st.tuples(st.sampled_from(("one", "two")), st.sampled_from("xy"), st.integers(0, 2))),
    st.tuples(st.just("no budget"), st.sampled_from(("one", "two"))),
    st.tuples(st.just("nominate"), _nominations),
    st.tuples(st.just("nominate"), _nominations),
)


class Twins:
    """A cluster with a caching scheduler, and plain lists of its objects."""

    def __init__(self, *plugins: type[Any]) -> None:
        """`plugins`: filters beside those of the default profile, which pass every node."""
        self.plain = Plain({}, {}, [], {})
        self.cluster = SchedulerCache()
        for name, zone in zip(NODES, "aab", strict=True):
            self._node(node(name, 4, zone))
        self.scheduler = scheduler(self.cluster) if not plugins else with_filters(self.cluster, *plugins)
        self.count = 0

    def _node(self, made: Node) -> None:
        self.plain.nodes[made.name] = made
        self.cluster.put(made)

    @property
    def _all(self) -> list[Pod]:
        return [other for pods in self.plain.pods.values() for other in pods]

    def change(self, what: str, how: Any) -> None:
        plain, cluster = self.plain, self.cluster
        plain.found.clear()
        if what == "add":
            on, priority, cpu, app, start, port, shape = how
            used = [other for other in plain.pods.get(on, ()) if port and other.pod_spec.host_ports]
            self.count += 1
            port = 0 if used else port
            made = pod(f"p{self.count}", priority, cpu, on=on, app=app, start=start, port=port, shape=shape)
            plain.pods.setdefault(on, []).append(made)
            cluster.put(made)
        elif what == "go" and self._all:
            gone = self._all[how % len(self._all)]
            cluster.remove(gone)
            self._as_in_table(gone.node_name)
        elif what == "start" and self._all:
            place, second = how
            old = self._all[place % len(self._all)]
            changed = attrs.evolve(old, start_time=f"2025-01-01T00:00:{second:02}Z")
            cluster.put(changed)
            self._as_in_table(old.node_name)
        elif what == "node":
            name, cpu, tainted = how
            self._node(node(name, cpu, "b" if name == "n2" else "a", tainted))
        elif what == "budget":
            name, app, allowed = how
            made_budget = budget(name, app, allowed, ("p1",))
            plain.budgets = [b for b in plain.budgets if b.name != name] + [made_budget]
            cluster.put(made_budget)
        elif what == "no budget":
            for gone_budget in [b for b in plain.budgets if b.name == how]:
                plain.budgets.remove(gone_budget)
                cluster.remove(gone_budget)
        elif what == "nominate":
            on, wishing = how
            plain.nominated.pop(on, None)
            for priority, cpu, port, shape in wishing:
                self.count += 1
                made = pod(f"w{self.count}", priority, cpu, nominated=on, port=port, shape=shape)
                plain.nominated.setdefault(on, []).append(made)

    def _as_in_table(self, node_name: str) -> None:
        """Sort as the table, whose order changes, since pods of equal importance keep its order."""
        self.plain.pods[node_name] = list(self.cluster.table.pods[self.cluster.table.row_of[node_name]])

    def check(self) -> None:
        for preemptor in PREEMPTORS:
            result = drive(self.scheduler.attempt(preemptor, self.plain.nominated))
            compare(result, self.plain, preemptor)


class Counting:
    """An out-of-tree plugin with a state that counts pods, so that every row needs a state of its own."""

    name = "Counting"

    def pre_filter(self, state: Any, pod: Pod, cluster: Any) -> None:
        state.data[self.name] = Changes({})

    def add_pod(self, state: Any, pod: Pod, other: Pod, node: Any) -> None:
        assert other in node.pods
        state.data[self.name].count(other, 1)

    def remove_pod(self, state: Any, pod: Pod, other: Pod, node: Any) -> None:
        assert other not in node.pods
        state.data[self.name].count(other, -1)

    def filter(self, state: Any, pod: Pod, node: Any) -> Status | None:
        changed = {name for name, amount in state.data[self.name].by_name.items() if amount < 0}
        assert changed.isdisjoint(other.name for other in node.pods)
        return None


@attrs.frozen
class Changes:
    by_name: dict[str, int]  # by pod: number of additions minus number of removals

    def count(self, other: Pod, amount: int) -> None:
        self.by_name[other.name] = self.by_name.get(other.name, 0) + amount

    def clone(self) -> "Changes":
        return Changes(dict(self.by_name))


@pytest.mark.parametrize("plugins", [pytest.param((), id="in-tree"), pytest.param((Counting,), id="out-of-tree")])
@settings(max_examples=examples(15), deadline=None)
@given(start=st.lists(_pods, min_size=4, max_size=12), changes=st.lists(_changes, max_size=6))
def test_dry_runs_find_what_the_plain_rule_finds(
    plugins: tuple[type[Any], ...], start: list[Any], changes: list[Any]
) -> None:
    twins = Twins(*plugins)
    for made in start:
        twins.change("add", made)
    twins.check()
    twins.check()
    for what, how in changes:
        twins.change(what, how)
        twins.check()


# -- single rules -------------------------------------------------------------------------------------------------


def attempt(
    nodes: list[Node],
    pods: list[Pod],
    preemptor: Pod,
    budgets: tuple[Object, ...] = (),
    nominated: Nominations | None = None,
    **args: Any,
) -> PostFilterResult:
    cluster = SchedulerCache()
    cluster.load([*nodes, *pods, *budgets])
    result = drive(scheduler(cluster, **args).attempt(preemptor, nominated or {}))
    assert isinstance(result, FitError)
    assert result.post_filter is not None
    return result.post_filter


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param([pod("a", 3)], [pod("b", 2)], id="lower-priority-of-the-highest-victim"),
        pytest.param([pod("a", 1, start=1)], [pod("b", 1, start=2)], id="later-start"),
        pytest.param([pod("a", 1, start=1)], [pod("b", 1)], id="not-started-counts-as-latest"),
        pytest.param(
            [pod("a", 2, 2), pod("aa", 1, 2)], [pod("b", 2, 2), pod("bb", 0, 2)], id="smaller-sum-of-priorities"
        ),
        pytest.param([pod("a", -5, 2), pod("aa", -5, 2)], [pod("b", -5, 4)], id="fewer-though-priorities-are-negative"),
    ],
)
def test_the_node_that_loses_less_is_chosen(left: list[Pod], right: list[Pod]) -> None:
    """Give the better node the later name."""
    on_left = [attrs.evolve(other, node_name="left") for other in left]
    on_right = [attrs.evolve(other, node_name="right") for other in right]
    post = attempt([node("left"), node("right")], [*on_left, *on_right], pod("p", 5, 4))
    assert post.nominated_node == "right"
    assert post.details.ties == ("right",)


def test_fewer_broken_budgets_come_before_everything_else() -> None:
    there = [pod("a", 0, 4, on="left", app="x"), pod("b", 4, 4, on="right", app="y")]
    post = attempt([node("left"), node("right")], there, pod("p", 5, 4), (budget("b", "x", 0),))
    assert post.nominated_node == "right"
    assert {c.node_name: c.pdb_violations for c in post.details.candidates} == {"left": 1, "right": 0}


def test_equally_good_nodes_are_all_named_and_the_first_by_name_is_taken() -> None:
    there = [pod(f"on-{name}", 0, 4, on=name, start=1) for name in ("c", "a", "b")]
    post = attempt([node("c"), node("a"), node("b")], there, pod("p", 5, 4))
    assert post.details.ties == ("a", "b", "c")
    assert post.nominated_node == "a"


def test_the_more_important_pods_are_let_back_first() -> None:
    there = [
        pod("low", 0, 1, on="n", start=0),
        pod("young", 1, 1, on="n", start=9),
        pod("old", 1, 1, on="n", start=1),
        pod("high", 3, 1, on="n", start=5),
    ]
    post = attempt([node("n")], there, pod("p", 5, 2))
    assert [victim.name for victim in post.victims] == ["young", "low"]


def test_pods_that_a_budget_protects_are_let_back_before_more_important_ones() -> None:
    there = [pod("protected", 0, 2, on="n", app="x"), pod("important", 3, 2, on="n", app="y")]
    post = attempt([node("n")], there, pod("p", 5, 2), (budget("b", "x", 0),))
    assert [victim.name for victim in post.victims] == ["important"]


def test_victims_of_both_sorts_come_in_order_of_importance() -> None:
    there = [pod("protected", 0, 2, on="n", app="x"), pod("important", 3, 2, on="n", app="y")]
    post = attempt([node("n")], there, pod("p", 5, 4), (budget("b", "x", 0),))
    assert [victim.name for victim in post.victims] == ["important", "protected"]
    assert post.details.candidates[0].pdb_violations == 1


def test_the_search_ends_with_enough_candidates() -> None:
    names = [f"n{number}" for number in range(10)]
    there = [pod(f"on-{name}", 0, 4, on=name) for name in names]
    few = {"min_candidate_nodes_percentage": 10, "min_candidate_nodes_absolute": 3}
    post = attempt([node(name) for name in names], there, pod("p", 5, 4), **few)
    assert len(post.details.candidates) == 3


def test_the_search_goes_on_until_a_candidate_breaks_no_budget() -> None:
    names = [f"n{number}" for number in range(10)]
    there = [pod(f"on-{name}", 0, 4, on=name, app="y" if name == "n7" else "x") for name in names]
    few = {"min_candidate_nodes_percentage": 10, "min_candidate_nodes_absolute": 2}
    post = attempt([node(name) for name in names], there, pod("p", 5, 4), (budget("b", "x", 0),), **few)
    assert post.nominated_node == "n7"
    assert len(post.details.candidates) <= 3, "one without and at most two with broken budgets"


def test_room_for_more_important_nominated_pods_is_theirs() -> None:
    post = attempt([node("n")], [pod("a", 0, 1, on="n")], pod("p", 5, 1), nominated={"n": [pod("w", 9, 4)]})
    assert post.status.message.endswith("0/1 nodes are available: 1 Insufficient cpu.")
    post = attempt([node("n")], [pod("a", 0, 4, on="n")], pod("p", 5, 1), nominated={"n": [pod("w", 4, 4)]})
    assert post.nominated_node == "n"


class Broken:
    """A plugin that rejects nodes, and fails in dry runs of preemption."""

    name = "Broken"

    def filter(self, state: Any, pod: Pod, node: Any) -> Status | None:
        if node.table.capacity > 1:  # the whole cluster, not a copy of one row
            return Status(Code.UNSCHEDULABLE, ("not now",))
        raise RuntimeError("broken")


class Moody:
    """A plugin that rejects nodes, but not in dry runs of preemption."""

    name = "Moody"

    def filter(self, state: Any, pod: Pod, node: Any) -> Status | None:
        return None if node.table.capacity == 1 else Status(Code.UNSCHEDULABLE, ("not in the mood",))


@pytest.mark.parametrize(
    ("plugin", "fault"),
    [
        pytest.param(Broken, "RuntimeError: broken", id="a-filter-that-fails-everywhere"),
        pytest.param(Moody, 'expected at least one victim pod on node "n"', id="a-node-where-all-victims-may-stay"),
    ],
)
def test_without_a_candidate_a_fault_is_an_error(plugin: type[Any], fault: str) -> None:
    cluster = SchedulerCache()
    cluster.load([node("n"), pod("a", 0, 1, on="n")])
    result = drive(with_filters(cluster, plugin).attempt(pod("p", 5, 1), {}))
    assert isinstance(result, FitError)
    assert result.post_filter is not None
    assert result.post_filter.status.code == Code.ERROR
    assert fault in result.post_filter.status.message
    assert result.nominated_node is None


@pytest.mark.parametrize(
    ("text", "later"),
    [
        pytest.param("2025-01-01T00:00:00Z", "2025-01-01T00:00:01Z", id="seconds"),
        pytest.param("2025-01-01T01:00:00+02:00", "2025-01-01T00:00:00Z", id="offset"),
        pytest.param("2025-01-01T00:00:00Z", "2025-01-01T00:00:00.5Z", id="fraction"),
        pytest.param("2999-01-01T00:00:00Z", "", id="not-started"),
        pytest.param("2999-01-01T00:00:00Z", "yesterday", id="unreadable-is-not-started"),
    ],
)
def test_earlier_started_pods_are_more_important(text: str, later: str) -> None:
    older, younger = (attrs.evolve(pod("p"), start_time=when) for when in (text, later))
    assert started(older) < started(younger) <= NOT_STARTED
    assert importance(older) < importance(younger) < importance(pod("q", -1, start=0))


def test_the_earliest_start_is_that_of_the_most_important_victims() -> None:
    whens = [(5, "2025-01-01T00:00:02Z"), (5, "2025-01-01T00:00:01Z"), (5, ""), (1, "2024-01-01T00:00:00Z")]
    victims = [attrs.evolve(pod("p", priority), start_time=when) for priority, when in whens]
    assert earliest_start(victims) == started(victims[1])
    assert earliest_start(victims[3:]) == started(victims[3])


@pytest.mark.parametrize(
    ("found", "violating"),
    [
        pytest.param((), [], id="no-budget"),
        pytest.param((budget("b", "x", 1),), ["p2", "p3"], id="what-goes-beyond-the-allowed"),
        pytest.param((budget("b", "x", 1, ("p1",)),), ["p3"], id="pods-already-counted-are-free"),
        pytest.param((budget("b", "x", 3), budget("c", "x", 2)), ["p3"], id="every-budget-counts"),
        pytest.param((budget("b", "y", 0),), [], id="other-pods"),
        pytest.param(
            (parse({"kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "default"}, "spec": {}}),),
            [],
            id="no-selector-covers-nobody",
        ),
        pytest.param(
            (
                parse(
                    {
                        "kind": "PodDisruptionBudget",
                        "metadata": {"name": "b", "namespace": "default"},
                        "spec": {"selector": {}},
                    }
                ),
            ),
            [],
            id="an-empty-selector-covers-nobody",
        ),
    ],
)
def test_budgets_are_spent_in_order(found: tuple[Object, ...], violating: list[str]) -> None:
    cluster = SchedulerCache()
    cluster.load(found)
    budgets = Budgets(cluster)
    budgets.refresh()
    split = budgets.split([pod("p1"), pod("p2"), pod("p3")])
    assert [broken.name for broken in split.violating] == violating
    assert len(split.others) == 3 - len(violating)


def test_a_budget_elsewhere_or_unreadable_covers_nobody() -> None:
    elsewhere = parse(
        {
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b", "namespace": "other"},
            "spec": {"selector": {"matchLabels": {"app": "x"}}},
        }
    )
    cluster = SchedulerCache()
    cluster.load([elsewhere])
    budgets = Budgets(cluster)
    budgets.refresh()
    assert not budgets.split([pod("p1")]).violating
    wrong = parse(
        {
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "Like", "values": ["x"]}]}},
        }
    )
    assert not Budget.of(wrong).covers(pod("p1"))


def test_a_node_is_judged_again_when_its_pods_its_nominations_or_itself_change() -> None:
    cluster = SchedulerCache()
    cluster.put(node("n", 4))
    asking = scheduler(cluster)
    small, big = pod("small", 5, 1, nominated="n"), pod("big", 5, 4, nominated="n")

    def fits(*waiting: Pod) -> bool:
        return isinstance(drive(asking.attempt(pod("p", 5, 1), {"n": list(waiting)})), ScheduleResult)

    for _ in range(3):  # cached from the second attempt on
        assert fits(small)
    assert not fits(big)
    assert not fits(small, pod("more", 5, 3, nominated="n"))
    assert fits(small)
    cluster.put(pod("there", 5, 3, on="n"))
    assert not fits(small)
    cluster.put(node("n", 7))
    assert fits(small)
    assert not fits(big)
    assert fits()
