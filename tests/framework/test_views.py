"""Tests that the read-only views for out-of-tree plugins have the values of their originals, and change nothing."""

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.api.read_only import ReadOnlyPod, read_only
from kschedd.api.selecting.selectors import parse_label_selector
from kschedd.cache.counts import spread_matcher
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import NodeTable
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.exclusion import SchedulerLock
from kschedd.framework.faults import PluginError
from kschedd.framework.guard import PluginGuard, without_limits
from kschedd.framework.guarding.views import (
    ClusterView,
    HandleView,
    ImageView,
    PostFilterViewView,
    StateView,
    TableView,
    VersionsView,
    data_of,
    node_info,
)
from kschedd.framework.handle import Handle
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.postfilter import Candidate, DryRun
from kschedd.framework.status import Code
from tests.actors.clusters import node, pod

WEB = spread_matcher("default", parse_label_selector({"matchLabels": {"app": "web"}}))


def made_pod(name: str, **spec: Any) -> Pod:
    raw = pod(name, **spec)
    raw["metadata"] |= {"uid": f"uid-of-{name}", "labels": {"app": "web"}}
    made = parse(raw)
    assert isinstance(made, Pod)
    return made


RUNNING = made_pod(
    "running",
    nodeName="n1",
    volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    containers=[{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 8080}]}],
)
PENDING = made_pod("pending")


@pytest.fixture
def cluster() -> SchedulerCache:
    """Return a cluster of two nodes: a pod runs on the first, and a pod is assumed on the second."""
    cache = SchedulerCache()
    for name, zone in (("n1", "east"), ("n2", "west")):
        raw = node(name, labels={"zone": zone}, taints=[{"key": "gpu", "effect": "NoSchedule"}])
        raw["status"]["images"] = [{"names": [f"image-of-{name}", "shared"], "sizeBytes": 5}]
        cache.put(parse(raw))
    cache.put(RUNNING)
    cache.put(parse({"kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "a"}}}))
    cache.assume(made_pod("assumed"), "n2")
    return cache


def same_array(view: Any, original: Any) -> bool:
    """Return whether the values are equal, and the view cannot be made writeable."""
    with pytest.raises(ValueError, match="WRITEABLE"):
        view.flags.writeable = True
    return bool(np.array_equal(view, original))


# -- the table -------------------------------------------------------------------------------------------------------


def test_views_of_one_table_are_equal_and_a_copy_of_its_rows_is_another() -> None:
    table = NodeTable()
    assert TableView(table) == TableView(table)
    assert hash(TableView(table)) == hash(TableView(table))
    assert TableView(table) != TableView(NodeTable())
    assert TableView(table) != TableView(table.copy_rows(np.zeros(0, dtype=np.int64)))
    assert TableView(table) != table


def test_the_view_of_a_table_has_its_columns(cluster: SchedulerCache) -> None:
    table, view = cluster.table, ClusterView(cluster).table
    assert view == TableView(table)
    for name in (
        "alive",
        "allocatable",
        "requested",
        "nonzero",
        "allowed_pods",
        "pod_count",
        "unschedulable",
        "taints",
    ):
        assert same_array(getattr(view, name), getattr(table, name)), name
    assert same_array(view.order, table.order)
    assert (view.capacity, view.node_count) == (table.capacity, 2)
    assert (dict(view.row_of), dict(view.resources)) == (table.row_of, table.resources)
    assert (list(view), list(view.names)) == (list(table), table.names)
    assert (view.names[0], view.names[:2], len(view.names)) == ("n1", ("n1", "n2"), len(table.names))
    assert list(view.taint_sets) == table.taint_sets
    assert dict(view.ports) == {0: frozenset({("0.0.0.0", "TCP", 8080)})}
    assert {key: dict(rows) for key, rows in view.claims.items()} == table.claims
    assert list(view.claims) == ["default/data"]
    assert view.images["shared"] == ImageView(5, frozenset({0, 1}))
    assert set(view.images) == {"image-of-n1", "image-of-n2", "shared"}


def test_objects_of_a_table_are_read_only(cluster: SchedulerCache) -> None:
    table, view = cluster.table, TableView(cluster.table)
    assert view.nodes[0] is read_only(table.nodes[0])
    assert view.nodes[2] is None
    assert [None if each is None else each.name for each in view.nodes[1:3]] == ["n2", None]
    assert [one is other for one, other in zip(view.nodes, view.nodes, strict=True)] == [True] * len(table.nodes)
    assert view.pods[0] == (read_only(RUNNING),)
    assert [[each.name for each in pods] for pods in view.pods][:2] == [["running"], ["assumed"]]
    info = node_info(NodeInfo(table, 1))
    assert (info.name, info.node, info.pods) == ("n2", view.nodes[1], view.pods[1])
    assert info.requested == NodeInfo(table, 1).requested
    assert info.used_ports == frozenset()


def test_a_label_column_and_a_resource_are_added_during_a_call_only(cluster: SchedulerCache) -> None:
    view = TableView(cluster.table)
    assert view.resource("memory") == cluster.table.resources["memory"], "known resources are always available"
    for add in (lambda: view.label("zone"), lambda: view.resource("example.com/gpu")):
        with pytest.raises(RuntimeError, match="allowed only within a call by the scheduler"):
            add()
    assert "example.com/gpu" not in cluster.table.resources
    with without_limits():
        column, number = view.label("zone"), view.resource("example.com/gpu")
    assert number == cluster.table.resources["example.com/gpu"]
    original = cluster.table.label("zone")
    assert (column.key, dict(column.numbers), list(column.values)) == ("zone", original.numbers, original.values)
    assert same_array(column.ids, original.ids)
    for method in (view.label, view.resource):
        with pytest.raises(TypeError, match=r"(label|resource): 7: a text is expected"):
            method(7)


def test_a_view_has_no_methods_that_change_its_original(cluster: SchedulerCache) -> None:
    with pytest.raises(AttributeError, match="Table has no put_node for plugins, which have read-only access"):
        TableView(cluster.table).put_node  # noqa: B018 - the access itself fails


# -- versions, counts and objects ------------------------------------------------------------------------------------


def test_the_view_of_versions_has_the_changes(cluster: SchedulerCache) -> None:
    versions, view = cluster.versions, ClusterView(cluster).versions
    assert isinstance(view, VersionsView)
    assert (view.now, view.objects_at) == (versions.now, versions.objects_at)
    assert same_array(view.row_pods_at, versions.row_pods_at)
    stamp = versions.now
    cluster.table.replace_pod(0, RUNNING, RUNNING)
    assert (view.pod_updates.at, view.pod_updates.since(stamp)) == (versions.now, [0])
    cluster.put(parse(node("n3")))
    assert (view.nodes.at, view.nodes.since(versions.now - 1)) == (versions.now, [2])
    cluster.assume(PENDING, "n3")
    assert (view.pods.at, view.pods.since(versions.now - 1)) == (versions.now, [2])
    assert view.latest("labels") == versions.latest("labels") > stamp
    assert view.changed(stamp, "labels")
    assert not view.changed(versions.now, "labels")
    assert TableView(cluster.table).versions.now == versions.now


def test_the_view_of_pod_counts_has_the_counts_by_node_and_by_domain(cluster: SchedulerCache) -> None:
    counts = ClusterView(cluster).counts
    assert {name: dict(labels) for name, labels in counts.namespaces.items()} == {"default": {"team": "a"}}
    with pytest.raises(RuntimeError, match="allowed only within a call"):
        counts.matching(WEB)
    with pytest.raises(TypeError, match=r"matching\(7\): a PodMatcher from `pod_matcher`"):
        counts.matching(7)
    with without_limits():
        counter = counts.matching(WEB)
        domains = counter.by_domain("zone")
        by_row, least = counter.rows(), domains.least(np.array([0, 1]))
        with pytest.raises(TypeError, match="by_domain: 7: a text is expected"):
            counter.by_domain(7)
    assert dict(counter.by_row) == {0: 1, 1: 1}
    assert same_array(by_row, cluster.counts.matching(WEB).rows())
    assert same_array(domains.counts, cluster.counts.matching(WEB).by_domain("zone").counts)
    assert (domains.total, least, domains.column.key) == (2, 1, "zone")


def test_the_view_of_a_cluster_has_its_pods_and_objects(cluster: SchedulerCache) -> None:
    view = ClusterView(cluster)
    namespace = cluster.get("Namespace", "default")
    assert namespace is not None
    assert view.get("Namespace", "default") is read_only(namespace)
    assert view.get("Namespace", "other") is None
    assert dict(view.of_kind("Namespace")) == {"default": read_only(namespace)}
    assert (view.pod_count, view.pod(RUNNING.uid), view.pod("unknown")) == (2, read_only(RUNNING), None)
    [assumed] = view.assumed_pods()
    assert isinstance(assumed, ReadOnlyPod)
    assert (view.is_assumed(assumed), view.is_assumed(RUNNING)) == (True, False)
    cluster.mark_deleted(assumed)
    assert (view.is_marked_deleted(assumed.uid), view.is_marked_deleted(RUNNING.uid)) == (True, False)


# -- the state of an attempt -----------------------------------------------------------------------------------------


class Sum:
    def __init__(self, of: list[int]) -> None:
        self.of = of

    def clone(self) -> "Sum":
        return Sum(list(self.of))


def test_plugins_share_their_data_in_a_state_of_their_own() -> None:
    state, mine, other = CycleState({"InTree": 1}, {"A"}, "", {"B"}), PluginGuard("Mine"), PluginGuard("Other")
    assert data_of(state, mine) == {}
    view = StateView(state, mine)
    assert (view.skip_filter, view.skip_score, dict(view.data)) == ({"A"}, {"B"}, {})
    view.data["Mine"] = 1
    StateView(state, other).data["Other"] = 2
    assert (dict(view.data), len(view.data)) == ({"Mine": 1, "Other": 2}, 2)
    assert (data_of(state, mine), data_of(state, other)) == ({"Mine": 1}, {"Other": 2})
    with pytest.raises(TypeError, match=r"state\.data\[7\]: a key must be a string"):
        view.data[7] = 1
    with pytest.raises(KeyError):
        view.data["InTree"]
    del view.data["Other"]
    assert (dict(view.data), state.data["InTree"]) == ({"Mine": 1}, 1)


def test_a_clone_of_a_state_has_clones_of_the_values_that_have_the_method() -> None:
    view = StateView(CycleState(), PluginGuard("Mine"))
    view.data["sum"], view.data["list"] = Sum([1]), [1]
    clone = view.clone()
    clone.data["more"] = 1
    clone.data["sum"].of.append(2)
    clone.data["list"].append(2)
    assert (view.data["sum"].of, clone.data["sum"].of) == ([1], [1, 2])
    assert (view.data["list"], "more" in view.data) == ([1, 2], False)


def test_a_fault_of_a_clone_names_the_plugin_that_stored_the_value() -> None:
    class Bad(Sum):
        def clone(self) -> Sum:
            raise ValueError("boom")

    state = CycleState()
    StateView(state, PluginGuard("Bad")).data["sum"] = Bad([])
    with pytest.raises(PluginError, match="plugin Bad: ValueError: boom"):
        StateView(state, PluginGuard("Mine")).clone()


# -- the handle ------------------------------------------------------------------------------------------------------


def test_a_handles_view_passes_texts_and_read_only_pods(cluster: SchedulerCache) -> None:
    calls: list[tuple[Any, ...]] = []

    def called(*args: Any) -> bool:
        calls.append(args)
        return True

    handle = Handle(
        cluster,
        {"Gate": True},
        7,
        nominated_pods=lambda name: (RUNNING,) if name == "n1" else (),
        allow=called,
        reject=called,
        waiting_pods=lambda: [(RUNNING, "n1")],
        evicting=lambda uid: uid == "a",
        current_pod={RUNNING.key: RUNNING}.get,
        activate=lambda pods: calls.append(("activate", *pods)),
        changed=lambda: calls.append(("changed",)),
    )
    view = HandleView(handle)
    assert (dict(view.feature_gates), view.seed, view.cluster.table) == ({"Gate": True}, 7, TableView(cluster.table))
    twin = read_only(RUNNING)
    assert (view.nominated_pods("n1"), view.nominated_pods("n2")) == ((twin,), ())
    assert view.waiting_pods() == [(twin, "n1")]
    assert (view.evicting("a"), view.evicting("b")) == (True, False)
    current = view.current_pod
    assert current is not None
    assert (current(RUNNING.key), current("default/other")) == (twin, None)
    assert HandleView(Handle(cluster)).current_pod is None
    assert calls == []
    assert view.allow("uid", "Mine")
    assert view.reject("uid", "Mine", "full")
    view.activate(iter([twin]))
    changed = ("changed",)
    assert calls == [("uid", "Mine"), changed, ("uid", "Mine", "full"), changed, ("activate", twin), changed]


def test_a_handles_view_rejects_other_arguments_before_anything_changes(cluster: SchedulerCache) -> None:
    changes: list[str] = []
    view: Any = HandleView(Handle(cluster, changed=lambda: changes.append("changed"), current_pod={}.get))
    for call in (
        lambda: view.nominated_pods(7),
        lambda: view.allow(7, "Mine"),
        lambda: view.allow("uid", 7),
        lambda: view.reject(7, "Mine", "full"),
        lambda: view.reject("uid", 7, "full"),
        lambda: view.reject("uid", "Mine", 7),
        lambda: view.evicting(7),
        lambda: view.current_pod(7),
    ):
        with pytest.raises(TypeError, match=": 7: a text is expected"):
            call()
    with pytest.raises(TypeError, match=r"activate: .* is not a pod that was passed to the plugin"):
        view.activate([RUNNING])
    assert changes == []


class CountingLock(SchedulerLock):
    """A lock that counts how often it was taken for a change."""

    count = 0

    def taken(self) -> AbstractContextManager[None]:
        self.count += 1
        return super().taken()


def test_a_thread_of_a_plugin_takes_the_lock_of_the_scheduler(cluster: SchedulerCache) -> None:
    lock = CountingLock()
    view = HandleView(Handle(cluster, lock=lock))
    view.nominated_pods("n1")
    view.waiting_pods()
    view.allow("uid", "Mine")
    view.reject("uid", "Mine", "full")
    view.activate([])
    assert lock.count == 5


# -- PostFilter ------------------------------------------------------------------------------------------------------


class FailedAttempt:
    """An attempt that failed on rows 0 and 2, with its dry runs."""

    def __init__(self, found: DryRun) -> None:
        self._found = found
        self.dry_runs: list[tuple[Any, ...]] = []

    def code_on(self, node_name: str) -> Code:
        return Code.UNSCHEDULABLE if node_name == "n1" else Code.SUCCESS

    def rows_with(self, code: Code) -> Any:
        return np.array([0, 2] if code is Code.UNSCHEDULABLE else [1])

    def nominated_on(self, node_name: str) -> Any:
        return [RUNNING] if node_name == "n1" else []

    def dry_run(self, state: CycleState, pod: Pod, rows: Any, offset: int, wanted: int) -> DryRun:
        self.dry_runs.append((state, pod, rows.tolist(), offset, wanted))
        return self._found


CANDIDATE = Candidate("n1", (RUNNING,), 1)
STATE = CycleState()
OF_STATE = StateView(STATE, PluginGuard("Mine"))


def test_the_view_of_a_failed_attempt_has_its_verdicts_and_dry_runs() -> None:
    attempt = FailedAttempt(DryRun((CANDIDATE,), CANDIDATE, ("n1",)))
    view = PostFilterViewView(attempt, PENDING)
    assert (view.code_on("n1"), view.code_on("n2")) == (Code.UNSCHEDULABLE, Code.SUCCESS)
    assert same_array(view.rows_with(Code.UNSCHEDULABLE), [0, 2])
    assert view.rows_with(2).tolist() == [0, 2]
    assert (view.nominated_on("n1"), view.nominated_on("n2")) == ((read_only(RUNNING),), ())
    with without_limits():
        found = view.dry_run(OF_STATE, read_only(PENDING), [2, 0], 5, 3)
        view.dry_run(OF_STATE, read_only(RUNNING), view.rows_with(Code.UNSCHEDULABLE)[:0], 5, 3)
    for candidate in (*found.candidates, found.best):
        assert candidate is not None
        assert (candidate.node_name, candidate.pdb_violations) == ("n1", 1)
        assert candidate.victims[0] is read_only(RUNNING)
    assert found.ties == ("n1",)
    first, second = attempt.dry_runs
    assert first == (STATE, PENDING, [2, 0], 1, 3)
    assert first[1] is PENDING, "the pod of the attempt itself"
    assert second[1:] == (read_only(RUNNING), [], 0, 3)


def test_a_dry_run_without_candidates_has_none() -> None:
    view = PostFilterViewView(FailedAttempt(DryRun((), None, (), "no")), PENDING)
    with without_limits():
        found = view.dry_run(OF_STATE, read_only(PENDING), np.array([0]), 0, 1)
    assert (found.candidates, found.best, found.message) == ((), None, "no")


def test_a_dry_run_is_for_rejected_rows_and_during_a_call_only() -> None:
    attempt = FailedAttempt(DryRun((), None, ()))
    view: Any = PostFilterViewView(attempt, PENDING)
    twin = read_only(PENDING)
    for arguments in ((STATE, twin), (OF_STATE, PENDING)):
        with pytest.raises(TypeError, match="dry_run: a state and a pod that were passed to the plugin are expected"):
            view.dry_run(*arguments, [0], 0, 1)
    for rows in ([0, 1], [[0]], 0):
        with pytest.raises(ValueError, match="dry_run: rows that were rejected as Unschedulable are expected"):
            view.dry_run(OF_STATE, twin, rows, 0, 1)
    with pytest.raises(RuntimeError, match="allowed only within a call by the scheduler"):
        view.dry_run(OF_STATE, twin, [0], 0, 1)
    for method in (view.code_on, view.nominated_on):
        with pytest.raises(TypeError, match=": 7: a text is expected"):
            method(7)
    with pytest.raises(ValueError, match="99 is not a valid Code"):
        view.rows_with(99)
    assert attempt.dry_runs == []
