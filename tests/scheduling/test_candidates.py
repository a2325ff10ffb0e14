"""Tests that dry runs of preemption, cached by signature and row, equal dry runs made from scratch.

Each call of `select_victims` marks a row that is tried again.
"""

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.cache.pod_groups import PodGroups
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.loading.load import default_config
from kschedd.config.model import PluginRef
from kschedd.framework.handle import Handle
from kschedd.framework.postfilter import DryRun
from kschedd.framework.registry import Registry
from kschedd.scheduling.attempt.node_search import StartNode
from kschedd.scheduling.attempt.scheduler import Scheduler
from kschedd.scheduling.attempt.ties import by_name
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.nominations.counted import NominatedPods
from kschedd.scheduling.nominations.nominator import Nominator
from kschedd.scheduling.preemption import candidates as candidates_module
from kschedd.scheduling.preemption.candidates import Candidates
from kschedd.scheduling.preemption.dry_run import select_victims
from kschedd.scheduling.profiles.profile import build_profile
from tests.full_run import examples
from tests.scheduling.test_evaluation import Fussy

NODES = ("n0", "n1", "n2")
Nominated = dict[str, tuple[Pod, ...]]


def node(name: str, cpu: int = 4) -> Node:
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    allocatable = {"cpu": str(cpu), "memory": "8Gi", "pods": "9"}
    return Node.from_raw({"kind": "Node", "metadata": meta, "status": {"allocatable": allocatable}})


def pod(name: str, on: str = "", priority: int = 0, cpu: int = 4, app: str = "x", start: int = 0, **spec: Any) -> Pod:
    containers = [{"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}]
    raw = {"containers": containers, "priority": priority, "nodeName": on, **spec}
    meta = {"name": name, "namespace": "default", "uid": name, "labels": {"app": app}}
    status = {"startTime": f"2025-01-01T00:00:{start:02}Z"}
    return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": raw, "status": status})


def budget(name: str, app: str, allowed: int = 0) -> Object:
    return parse(
        {
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": allowed},
        }
    )


PREEMPTOR = pod("preemptor", priority=5)
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "y"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}


class Cluster:
    """A cluster, its scheduler without PostFilter, and dry runs on every row."""

    def __init__(self, *objects: Any, added: Sequence[type[Any]] = ()) -> None:
        self.cache = SchedulerCache()
        self.cache.load(objects)
        config = default_config()
        profile = config.profiles[0]
        filters = (*profile.plugins["filter"], *(PluginRef(each.name) for each in added))
        profile = attrs.evolve(profile, plugins={**profile.plugins, "filter": filters, "post_filter": ()})
        registry = Registry({each.name: each for each in added})
        framework = build_profile(config, profile, registry, Handle(self.cache, config.feature_gates))
        self.scheduler = Scheduler(framework, self.cache, by_name, StartNode())
        self.nominator = Nominator()
        drive(self.scheduler.attempt(PREEMPTOR, {}))  # a signature's first attempt is not cached

    def dry_run(
        self,
        preemptor: Pod = PREEMPTOR,
        nominated: Nominated | None = None,
        *,
        fresh: bool = False,
        wanted: int = 100,
        offset: int = 0,
    ) -> DryRun:
        state = drive(self.scheduler.attempt(preemptor, {})).state
        table = self.cache.table
        self._nominate(nominated or {})
        rows = np.array([table.row_of[name] for name in sorted(table.row_of)], dtype=np.int64)
        if fresh:
            counted = NominatedPods(table, preemptor, self.nominator.by_node()).everywhere
            return Candidates(self.scheduler.filters).dry_run(state, preemptor, rows, offset, wanted, counted, None)
        known = self.scheduler.evaluations.of(preemptor, state)
        cached = None if known.shared else known
        counted = NominatedPods(table, preemptor, self.nominator.nominated).everywhere
        return self.scheduler.candidates.dry_run(state, preemptor, rows, offset, wanted, counted, cached)

    def _nominate(self, nominated: Nominated) -> None:
        """Set these nominations, and change only those that differ."""
        for name, pods in self.nominator.by_node().items():
            if nominated.get(name) != pods:
                for other in pods:
                    self.nominator.remove(other)
        for name, pods in nominated.items():
            if self.nominator.on_node(name) != pods:
                for other in pods:
                    self.nominator.add(other, name)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the nodes on which victims are selected; the test clears the list."""
    names: list[str] = []

    def spy(filters: Any, state: Any, preemptor: Pod, rows: list[int], *rest: Any) -> Any:
        names.extend(filters.cluster.table.names[row] for row in rows)
        return select_victims(filters, state, preemptor, rows, *rest)

    monkeypatch.setattr(candidates_module, "select_victims", spy)
    return names


def full(*names: str, **fields: Any) -> list[Any]:
    """Return nodes whose only pod uses the whole node."""
    return [*map(node, names), *(pod(f"on-{name}", name, **fields) for name in names)]


def summary(result: DryRun) -> Any:
    found = {c.node_name: ([v.name for v in c.victims], c.pdb_violations) for c in result.candidates}
    return found, result.best and result.best.node_name, result.ties, result.message, result.fault


# -- which rows are tried again -----------------------------------------------------------------------------------


def test_nothing_is_tried_again_while_nothing_changes(tried: list[str]) -> None:
    cluster = Cluster(*full(*NODES))
    first = cluster.dry_run()
    assert sorted(tried) == list(NODES)
    tried.clear()
    assert summary(cluster.dry_run()) == summary(first)
    assert tried == []


def test_later_pods_of_a_signature_try_more_nodes_than_they_need_where_most_are_untried(tried: list[str]) -> None:
    cluster = Cluster(*full(*(f"n{number}" for number in range(10, 22))))
    rows_tried = []
    for offset in (0, 2, 4, 9):
        tried.clear()
        found = cluster.dry_run(wanted=1, offset=offset)
        rows_tried.append(list(tried))
        assert summary(found) == summary(cluster.dry_run(wanted=1, offset=offset, fresh=True))
    others = [f"n{number}" for number in range(12, 22)]
    assert rows_tried == [["n10", "n11"], others, [], []]


def test_another_pod_of_the_signature_uses_the_results_and_another_signature_does_not(tried: list[str]) -> None:
    cluster = Cluster(*full(*NODES))
    cluster.dry_run()
    tried.clear()
    cluster.dry_run(attrs.evolve(PREEMPTOR, name="twin", uid="twin"))
    assert tried == []
    cluster.dry_run(pod("other", priority=6))
    assert sorted(tried) == list(NODES)


@pytest.mark.parametrize(
    ("change", "again"),
    [
        pytest.param(node("n1", 5), ["n1"], id="its-node"),
        pytest.param(pod("more", "n2", cpu=0), ["n2"], id="a-pod-comes"),
        pytest.param(pod("on-n0", "n0", start=9), ["n0"], id="a-pod-changes"),
        pytest.param(budget("none", "z"), list(NODES), id="a-new-budget-may-cover-any-pod"),
        pytest.param(budget("b", "y", 1), ["n1"], id="a-budget-that-covers-a-victim-there"),
        pytest.param(parse({"kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}}), [], id="another"),
    ],
)
def test_only_rows_whose_inputs_changed_are_tried_again(tried: list[str], change: Object, again: list[str]) -> None:
    cluster = Cluster(*full("n0", "n2"), *full("n1", app="y"), budget("b", "y"))
    cluster.dry_run()
    tried.clear()
    cluster.cache.put(change)
    after = cluster.dry_run()
    assert sorted(tried) == again
    assert summary(after) == summary(cluster.dry_run(fresh=True))


def test_a_pod_that_goes_and_a_budget_that_goes(tried: list[str]) -> None:
    extra, protected = pod("extra", "n0", cpu=0), budget("b", "x")
    cluster = Cluster(*full(*NODES), extra, protected)
    assert {c.pdb_violations for c in cluster.dry_run().candidates} == {1}
    tried.clear()
    cluster.cache.remove(extra)
    cluster.dry_run()
    assert tried == ["n0"]
    tried.clear()
    cluster.cache.remove(protected)
    assert {c.pdb_violations for c in cluster.dry_run().candidates} == {0}
    assert sorted(tried) == list(NODES)


def test_nominations_that_come_change_and_go(tried: list[str]) -> None:
    cluster = Cluster(*full(*NODES))
    heavy, light = pod("w", priority=9), pod("w", priority=9, cpu=0)
    cluster.dry_run()
    steps: list[tuple[Nominated, list[str], set[str]]] = [
        ({"n1": (heavy,)}, ["n1"], {"n0", "n2"}),
        ({"n1": (heavy,)}, [], {"n0", "n2"}),
        ({"n1": (light,)}, ["n1"], set(NODES)),
        ({}, ["n1"], set(NODES)),
        ({"n1": (pod("lesser", priority=1),)}, [], set(NODES)),
    ]
    for nominated, again, nodes in steps:
        tried.clear()
        assert {c.node_name for c in cluster.dry_run(nominated=nominated).candidates} == nodes
        assert tried == again


def test_with_a_filter_that_reads_other_rows_every_row_is_tried_each_time(tried: list[str]) -> None:
    cluster = Cluster(*full(*NODES))
    apart = pod("apart", priority=5, affinity=APART)
    for _ in range(3):
        tried.clear()
        cluster.dry_run(apart)
        assert sorted(tried) == list(NODES)


def test_rows_are_tried_again_when_the_cache_key_of_a_filter_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(node("n0", 8), pod("a", "n0", cpu=1), pod("b", "n0", cpu=1), added=[Fussy])
    victims = []
    for most in (2, 2, 1):  # pods of one app on a node
        monkeypatch.setattr(Fussy, "most", most)
        [found] = cluster.dry_run().candidates
        victims.append(len(found.victims))
    assert victims == [1, 1, 2]


@pytest.mark.parametrize("grouped", [False, True])
def test_the_search_goes_on_behind_nodes_without_a_pod_to_evict(grouped: bool) -> None:
    cluster = Cluster(*full(*NODES, priority=9), *full("n3"))
    groups = PodGroups(cluster.cache)
    if grouped:
        groups.put(pod("member", schedulingGroup={"podGroupName": "gang"}))
    cluster.scheduler.candidates = Candidates(cluster.scheduler.filters, groups, cluster.scheduler.one_node.why_not)
    assert [found.node_name for found in cluster.dry_run(wanted=1).candidates] == ["n3"]


@pytest.mark.parametrize(("at_once", "most"), [(0, 9), (15, 15)])
def test_few_more_rows_are_tried_than_candidates_need(
    tried: list[str], at_once: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates_module, "_MOST_AT_ONCE", at_once)
    names = [f"n{number:02}" for number in range(40)]
    cluster = Cluster(*full(*names))
    assert len(cluster.dry_run(wanted=4).candidates) == 4
    assert len(tried) <= most
    tried.clear()
    fewest = cluster.dry_run(fresh=True, wanted=4)
    assert (len(fewest.candidates), len(tried)) == (4, 5)  # of which nothing is kept


def test_rows_that_changed_are_tried_together_with_the_first_of_them_that_is_needed(tried: list[str]) -> None:
    names = [f"n{number:02}" for number in range(40)]
    cluster = Cluster(*full(*names))
    for offset in range(0, 40, 5):
        cluster.dry_run(wanted=4, offset=offset)
    assert sorted(tried) == names
    for name in ("n02", "n21", "n38"):
        cluster.cache.put(pod(f"on-{name}", name, start=3))
    again = []
    for offset in (10, 20, 35, 0):
        tried.clear()
        cluster.dry_run(wanted=4, offset=offset)
        again.append(sorted(tried))
    assert again == [[], ["n02", "n21", "n38"], [], []]


@settings(max_examples=examples(60), deadline=None)
@given(st.text("-cv", min_size=1, max_size=40), st.integers(0, 7), st.data())
def test_candidates_are_those_of_a_visit_node_by_node(kinds: str, wanted: int, data: st.DataObject) -> None:
    """Visit nodes that need no eviction, evict without violating a budget (c for calm), or violate one."""
    names = {f"n{number:02}": kind for number, kind in enumerate(kinds)}
    there = [full(name, priority=9 * (kind == "-"), app="y" if kind == "v" else "x") for name, kind in names.items()]
    offset = data.draw(st.integers(0, len(kinds) - 1))
    found: dict[str, list[str]] = {"c": [], "v": [], "-": []}
    for name in [*names][offset:] + [*names][:offset]:
        if found["c"] and wanted and len(found["c"]) + len(found["v"]) >= wanted:
            break
        found[names[name]].append(name)
    cluster = Cluster(*(each for objects in there for each in objects), budget("b", "y"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(candidates_module, "_MOST_AT_ONCE", 2)
        for _ in range(2):
            result = cluster.dry_run(wanted=wanted, offset=offset)
            assert [c.node_name for c in result.candidates] == found["c"][:wanted] + found["v"][:wanted]


# -- ranking ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        pytest.param([pod("a", priority=4, app="y")], [pod("b", priority=0)], id="fewer-violated-budgets"),
        pytest.param([pod("a", priority=1, cpu=2), pod("aa", cpu=2)], [pod("b", priority=2)], id="lower-highest"),
        pytest.param(
            [pod("a", priority=2, cpu=2), pod("aa", cpu=2)],
            [pod("b", priority=2, cpu=2), pod("bb", priority=1, cpu=2)],
            id="smaller-sum",
        ),
        pytest.param(
            [pod("a", priority=-5)], [pod("b", priority=-5, cpu=2), pod("bb", priority=-5, cpu=2)], id="fewer"
        ),
        pytest.param([pod("a", start=2)], [pod("b", start=1)], id="later-start"),
    ],
)
@pytest.mark.parametrize("names", [("n0", "n1"), ("n1", "n0")], ids=["first", "second"])
def test_the_best_candidate_by_each_criterion(
    better: Sequence[Pod], worse: Sequence[Pod], names: Sequence[str]
) -> None:
    budgets = [budget("b", "x")] if better[0].labels["app"] == "y" else []
    there = [p.on_node(name) for name, pods in zip(names, (better, worse), strict=True) for p in pods]
    result = Cluster(node("n0"), node("n1"), *there, *budgets).dry_run()
    assert len(result.candidates) == 2
    assert result.best is not None
    assert (result.best.node_name, result.ties) == (names[0], (names[0],))


def test_of_equally_good_candidates_the_first_by_name_is_best() -> None:
    result = Cluster(*full("n2", "n0", "n1")).dry_run()
    assert result.best is not None
    assert (result.best.node_name, result.ties) == ("n0", NODES)


def test_candidates_without_violations_come_first() -> None:
    result = Cluster(*full("n0", "n1"), *full("n2", app="y"), budget("b", "x")).dry_run()
    assert [c.pdb_violations for c in result.candidates] == [0, 1, 1]
    assert result.candidates[0].node_name == "n2"


def test_without_a_candidate_the_reasons_of_every_node_are_counted() -> None:
    result = Cluster(*full("n0", "n1", priority=9), *full("n2", cpu=2)).dry_run(pod("p", priority=5, cpu=8))
    assert (result.candidates, result.best, result.ties) == ((), None, ())
    assert result.message == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 No preemption victims found for incoming pod."
    )


@pytest.mark.parametrize(("faults", "message"), [([], ""), (["a"], "a"), (["a", "b"], "[a, b]")])
def test_the_errors_of_several_nodes_are_joined_as_upstream_joins_them(faults: list[str], message: str) -> None:
    assert candidates_module._aggregate(faults) == message


# -- a cached result equals a fresh one ---------------------------------------------------------------------------

_names = st.sampled_from(NODES)
_changes = st.one_of(
    st.builds(node, _names, st.sampled_from((3, 4, 5))),
    st.builds(
        pod,
        st.sampled_from("abcd"),
        _names,
        st.sampled_from((0, 1, 7)),
        st.sampled_from((0, 2)),
        st.sampled_from("xy"),
        st.sampled_from((1, 2)),
    ),
    st.builds(budget, st.sampled_from("bc"), st.sampled_from("xy"), st.sampled_from((0, 1))),
    st.tuples(
        _names,
        st.builds(
            pod,
            st.sampled_from(("w0", "w1", "preemptor")),
            st.just(""),
            st.sampled_from((1, 9)),
            st.sampled_from((0, 2)),
        ),
    ),
    st.tuples(_names, st.none()),
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(_changes, max_size=8))
def test_a_cached_result_equals_a_fresh_one(changes: list[Any]) -> None:
    cluster = Cluster(*full(*NODES))
    nominated: Nominated = {}
    for number, change in enumerate(changes):
        if isinstance(change, tuple):
            name, waiting = change
            uid = waiting and waiting.uid
            nominated = {
                other: pods for other, pods in nominated.items() if other != name and all(p.uid != uid for p in pods)
            }
            if waiting is not None:
                nominated[name] = (waiting,)
        else:
            cluster.cache.put(change)
        for wanted, offset in ((1, number % len(NODES)), (100, 0)):  # on the first node, several rows are tried at once
            cached = cluster.dry_run(nominated=nominated, wanted=wanted, offset=offset)
            fresh = cluster.dry_run(nominated=nominated, wanted=wanted, offset=offset, fresh=True)
            assert summary(cached) == summary(fresh)


def test_a_small_cluster_keeps_no_more_kinds_of_pods_than_its_bounds_allow() -> None:
    cluster = Cluster(*full("a"))
    cluster.cache.table.most_evaluation_bytes = cluster.cache.table.most_preemption_bytes = 1 << 18
    evaluations, candidates = cluster.scheduler.evaluations, cluster.scheduler.candidates
    held = []
    preemptors = [pod("preemptor", priority=5, app=f"a{number}") for number in range(60)]
    for preemptor in preemptors:
        for _ in range(2):
            assert cluster.dry_run(preemptor).candidates
        held.append((evaluations.bytes_held, candidates.bytes_held))
    assert held[0] < held[5] < held[-1] == held[-2]
    assert all(1 << 17 < each <= 1 << 18 for each in held[-1])
