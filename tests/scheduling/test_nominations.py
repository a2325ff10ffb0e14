"""Tests that nominated pods counted incrementally equal those counted over all nominated pods.

Nodes and nominations are added, changed and removed; the table starts with two rows and the logs hold few changes, so
the table grows and the logs overflow.
"""

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.cache.table import NodeTable, Rows
from kschedd.config.loading.load import default_config
from kschedd.scheduling.attempt.outcome import FitError
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.filtering.filters import Filters
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.nominations import counted as nominations
from kschedd.scheduling.nominations.counted import NominatedByPriority, NominatedByRow, NominatedPods, Nominations
from kschedd.scheduling.nominations.nominator import Nominator
from tests.full_run import examples

NODES = 5


def node(name: str, note: str = "", cpu: int = 4) -> Node:
    status = {"allocatable": {"cpu": str(cpu), "memory": "8Gi", "pods": "9"}}
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name}, "annotations": {"note": note}}
    return Node.from_raw({"kind": "Node", "metadata": meta, "status": status})


def pod(name: str, priority: int, on: str = "", cpu: int = 1) -> Pod:
    containers = [{"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}]
    spec = {"containers": containers, "priority": priority, "nodeName": on}
    return Pod.from_raw({"kind": "Pod", "metadata": {"name": name, "namespace": "d", "uid": name}, "spec": spec})


_names = st.integers(0, NODES - 1).map("n{}".format)
_uids = st.integers(0, 5).map("p{}".format)
_changes = st.one_of(
    st.tuples(st.just("nominate"), _uids, st.sampled_from((0, 5, 9)), st.one_of(_names, st.just("elsewhere"))),
    st.tuples(st.just("withdraw"), _uids),
    st.tuples(st.just("left queue"), _uids),
    st.tuples(st.just("node"), _names, st.sampled_from("ab")),
    st.tuples(st.just("no node"), _names),
    st.tuples(st.just("restore"), st.booleans()),
)


class Cluster:
    def __init__(self) -> None:
        self.table = NodeTable(capacity=2)
        self.table.versions.nodes.limit = 4
        self.nominator = Nominator()

    def change(self, change: Any) -> None:
        nominator = self.nominator
        match change:
            case ("nominate", uid, priority, name):
                nominator.add(pod(uid, priority), name)
            case ("withdraw", uid):
                nominator.remove(pod(uid, 0))
            case ("left queue", uid):
                nominator.left_queue(uid)
            case ("node", name, note):
                self.table.put_node(node(name, note))
            case ("no node", name):
                self.table.remove_node(name)
            case ("restore", emptied):
                held = Nominator()
                if not emptied:
                    held.copy_of(nominator)
                nominator.copy_of(held)

    def counted(self, incoming: Pod) -> NominatedByRow:
        return NominatedPods(self.table, incoming, self.nominator.nominated).everywhere

    def walked(self, incoming: Pod) -> dict[int, tuple[Pod, ...]]:
        """Apply the rule node by node and return the nominated pods that count on each row."""
        found = {}
        for name, pods in self.nominator.nodes.items():
            counting = tuple(p for p in pods.values() if p.priority >= incoming.priority and p.uid != incoming.uid)
            if name in self.table.row_of and counting:
                found[self.table.row_of[name]] = counting
        return found


def on_a_copy(table: NodeTable, counted: NominatedByRow, rows: Rows) -> Any:
    copy = table.copy_rows(rows.tolist())
    if counted:
        counted.count(copy, counted.places(rows), 1)
    return copy.requested.tolist(), copy.pod_count.tolist()


def one_by_one(table: NodeTable, expected: dict[int, tuple[Pod, ...]], rows: Rows) -> Any:
    copy = table.copy_rows(rows.tolist())
    for number, row in enumerate(rows.tolist()):
        for other in expected.get(row, ()):
            copy.add_pod(number, other)
    return copy.requested.tolist(), copy.pod_count.tolist()


@pytest.fixture(autouse=True)
def _short_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nominations, "_LOG_LIMIT", 4)
    monkeypatch.setattr(nominations, "_MEMORY", 0)
    monkeypatch.setattr(nominations, "_FEWEST", 3)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(_changes, min_size=4, max_size=25), st.lists(st.integers(0, 3), min_size=25, max_size=25))
def test_what_is_counted_by_changes_is_what_a_walk_over_all_counts(script: list[Any], requests: list[int]) -> None:
    _compare(script, requests)


@pytest.mark.parametrize("seed", range(6))
def test_long_scripts_are_counted_alike(seed: int) -> None:
    random = Random(seed)
    names, uids = [f"n{number}" for number in range(NODES)], [f"p{number}" for number in range(6)]

    def change() -> Any:
        uid, name = random.choice(uids), random.choice(names)
        changes = [
            *[("nominate", uid, random.choice((0, 5, 9)), random.choice((*names, "elsewhere")))] * 8,
            *[("node", name, random.choice("ab"))] * 3,
            ("withdraw", uid),
            ("left queue", uid),
            ("no node", name),
            ("restore", random.random() < 0.3),
        ]
        return random.choice(changes)

    _compare([change() for _ in range(200)], [random.randrange(4) for _ in range(200)])


def _compare(script: list[Any], requests: list[int]) -> None:
    """Ask for some pods only, so that others ask after several changes; three of four priorities are cached."""
    cluster = Cluster()
    before: dict[str, tuple[NominatedByRow, dict[int, tuple[Pod, ...]]]] = {}
    for change, one in zip(script, requests, strict=False):
        cluster.change(change)
        incoming = (pod("p0", 0), pod("p1", 5), pod("p2", 9), pod("other", 7))[one]
        for twin in (incoming, pod("other", incoming.priority)):
            counted, expected = cluster.counted(twin), cluster.walked(twin)
            assert dict(counted) == expected
            assert (bool(counted), len(counted)) == (bool(expected), len(expected))
            rows = np.array(sorted(cluster.table.row_of.values()), dtype=np.int64)
            for some in (rows, rows[::-1], rows[:1]):
                assert some[counted.places(some)].tolist() == [row for row in some.tolist() if row in expected]
            assert on_a_copy(cluster.table, counted, rows) == one_by_one(cluster.table, expected, rows)
            by_itself = NominatedPods(cluster.table, twin, cluster.nominator.by_node())
            assert dict(by_itself.everywhere) == expected
            for name, row in cluster.table.row_of.items():
                for pods in (by_itself, NominatedPods(cluster.table, twin, cluster.nominator.nominated)):
                    assert pods.at(name).get(row) == expected.get(row)
            key = str(twin.priority)
            if key in before:
                view, was = before[key]
                differing = counted.differing(view)
                others = set(was) | set(expected)
                others -= others if differing is None else set(differing.tolist())
                assert [was.get(row) for row in others] == [expected.get(row) for row in others]
            before[key] = counted, expected


def test_of_an_attempt_that_may_be_stopped_the_nominations_stay_as_they_were() -> None:
    cluster = Cluster()
    cluster.table.put_node(node("n0"))
    cluster.nominator.add(pod("p0", 5), "n0")
    incoming = pod("other", 5)
    stopped = NominatedPods(cluster.table, incoming, cluster.nominator.nominated, apart=True)
    expected = dict(stopped.everywhere)
    cluster.nominator.add(pod("p1", 5), "n0")
    assert dict(cluster.counted(incoming)) != expected
    assert dict(stopped.everywhere) == expected


def test_a_copy_has_the_nominations_of_another_and_goes_its_own_way() -> None:
    first, second = Nominator(), Nominator()
    second.add(pod("gone", 9), "n1")
    pods = pod("p0", 5), pod("p1", 0)
    for each in pods:
        first.add(each, "n0")
    second.copy_of(first)
    assert second.by_node() == first.by_node() == {"n0": pods}
    assert second.node_by_uid() == {"p0": "n0", "p1": "n0"}
    first.remove(pods[0])
    assert [other.uid for other in second.on_node("n0")] == ["p0", "p1"]


def test_the_log_of_changes_names_each_node_until_it_is_cut_off() -> None:
    """Keep at most four changes in the log, and three after it is cut off."""
    log = Nominations()
    for number in range(12):
        before = log.changes
        log.change(f"n{number}", (pod("p", 0),))
        assert log.changes == before + 1
        assert log.changed_since(before) == [f"n{number}"]
    assert log.changed_since(log.changes) == []
    assert log.changed_since(log.changes - 3) == ["n9", "n10", "n11"]
    assert log.changed_since(0) is None
    log.copy_of(Nominations())
    assert log.changed_since(12) is None, "what it has now is none of the changes"


@pytest.mark.parametrize(("priority", "counts"), [(4, True), (5, True), (6, False)])
def test_pods_of_equal_or_higher_priority_count(priority: int, counts: bool) -> None:
    cluster = Cluster()
    cluster.table.put_node(node("n0"))
    cluster.nominator.add(pod("p0", 5), "n0")
    incoming, row = pod("other", priority), cluster.table.row_of["n0"]
    for nominated in (cluster.nominator.nominated, cluster.nominator.by_node()):
        found = NominatedPods(cluster.table, incoming, nominated)
        assert (row in found.everywhere) is counts
        assert (row in found.if_any) is counts
        assert (row in found.at("n0")) is counts
    again = NominatedPods(cluster.table, pod("p0", priority), cluster.nominator.nominated)
    assert row not in again.everywhere, "a pod does not count for itself"
    with pytest.raises(KeyError):
        again.everywhere[row]
    assert row not in again.at("n0")


# -- what an attempt pays for -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("many", [20, 200])
def test_an_attempt_looks_at_the_nominations_that_changed(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nominations, "_LOG_LIMIT", 1000)
    machine = SchedulingMachine(default_config(), seed=1)
    nodes = [f"n{number}" for number in range(many)]
    machine.cluster.load([*map(node, nodes), *(pod(f"on-{name}", 0, name, 4) for name in nodes)])
    nominator = Nominator()
    for name in nodes:
        nominator.add(pod(f"for-{name}", 10, cpu=4), name)

    looked_at: list[int] = []
    judged: list[list[str]] = []
    count, judge = NominatedByPriority.count, Filters.judge_rows

    def counting(self: NominatedByPriority, row: int, pods: tuple[Pod, ...]) -> None:
        looked_at.append(row)
        count(self, row, pods)

    def judging(self: Filters, plugins: Any, state: Any, incoming: Pod, table: Any, *rest: Any) -> Any:
        judged.append(list(table.names))
        return judge(self, plugins, state, incoming, table, *rest)

    monkeypatch.setattr(NominatedByPriority, "count", counting)
    monkeypatch.setattr(Filters, "judge_rows", judging)
    costs = []
    for number in range(6):
        looked_at.clear()
        judged.clear()
        result = drive(machine.begin(pod(f"i{number}", 10, cpu=4), nominator.nominated))
        assert isinstance(result, FitError)
        costs.append((len(looked_at), sorted({name for names in judged for name in names})))
        if number >= 2:
            nominator.remove(pod(f"for-n{number}", 10))
            nominator.add(pod(f"again-n{number}", 10, cpu=4), f"n{number}")
    # All nodes at first, none while nothing changes, then the one node whose nominations changed.
    assert [looked for looked, _ in costs] == [many, 0, 0, 1, 1, 1]
    assert [names for _, names in costs[2:]] == [[], ["n2"], ["n3"], ["n4"]]
