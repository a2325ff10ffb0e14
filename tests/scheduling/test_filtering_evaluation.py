"""Tests of cached verdicts and scores: the rows that are evaluated again, and the results of changes in turn."""

from random import Random
from typing import Any, ClassVar

import numpy as np
import pytest

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import NodeTable
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Status, unschedulable
from kschedd.scheduling.attempt.outcome import ScheduleResult
from tests.scheduling.test_evaluation import (
    SHAPES,
    SOFT_TAINT,
    TAINT,
    ZONES,
    Fussy,
    KeepsOff,
    Trial,
    node,
    of_its_own_kind,
    pod,
    scheduler,
)


class NodesLast:
    """A plugin that reads only the node, after all other filters: it rejects every third node, and prefers others."""

    name: ClassVar = "NodesLast"
    depends_on: ClassVar = frozenset({"node"})

    def filter_rows(self, state: Any, incoming: Pod, table: Any, rows: Any) -> Any:
        return np.array([7 * (int(table.names[row][1:]) % 3 == 0) for row in rows], dtype=np.int64)

    def code_status(self, state: Any, incoming: Pod, code: int) -> Status:
        return unschedulable(f"code {code}")

    def score_rows(self, state: Any, incoming: Pod, table: Any, rows: Any) -> Any:
        return np.array([10 * (int(table.names[row][1:]) % 4) for row in rows], dtype=np.int64)


class Called:
    """A plugin that reads pods, and records the nodes for which its filter is called."""

    name: ClassVar = "Called"
    depends_on: ClassVar = frozenset({"pods"})
    nodes: ClassVar[list[str]] = []

    def filter_rows(self, state: Any, incoming: Pod, table: Any, rows: Any) -> Any:
        Called.nodes += [table.names[row] for row in rows]
        return np.zeros(len(rows), dtype=np.int64)

    def code_status(self, state: Any, incoming: Pod, code: int) -> Status:
        return unschedulable("never")


def a_change(random: Random) -> tuple[Any, ...]:
    """Return a change for a Trial."""
    place = random.randrange(6)
    taints = random.choice([[], [], [TAINT], [SOFT_TAINT]])
    shape = random.randrange(len(SHAPES))
    return random.choice(
        [
            ("node", place, random.choice([2, 4]), random.choice(ZONES), taints, random.random() < 0.2),
            ("no node", place),
            ("nodes", random.randrange(3, 8), random.random() < 0.3),
            ("pod", shape, place),
            ("pod", shape, place),
            ("no pod", random.randrange(30)),
            ("nominate", shape, f"n{place}"),
            ("most", random.randrange(1, 4)),
            ("service", random.random() < 0.5),
            ("touch", random.randrange(30), random.choice(["deleted", "noted", "relabelled"])),
        ]
    )


@pytest.mark.parametrize("added", [(Fussy,), (KeepsOff,), (NodesLast,)], ids=lambda added: added[0].name)
def test_cached_results_are_those_of_the_plugins_after_changes_in_turn(added: tuple[type[Any], ...]) -> None:
    random = Random(len(added))
    trial = Trial(*added)
    trial.change(0, ("node", 0, 4, "a", [], False))
    for number in range(1, 30):
        trial.change(number, a_change(random))
        for shape in (0, random.randrange(len(SHAPES))):
            trial.attempt(pod(f"a{number}-{shape}", shape))
        incoming = pod(f"i{number}", random.choice([0, 0, 1, 2]), "", random.choice(["", "", "n1", "n2"]))
        result = trial.attempt(incoming)
        if isinstance(result, ScheduleResult) and number % 3 == 0:
            trial.placed.append(trial.cluster.assume(incoming, result.node_name))


def test_cached_codes_of_filters_that_count_pods_follow_a_node_to_its_new_zone() -> None:
    trial, tried = Trial(), 0
    for number in range(6):
        trial.cluster.put_node(node(number, 4, ZONES[number % 2], [], False))
    trial.cluster.put_pod(pod("there", 3, on="n0"))
    for zone, feasible in (("b", [1, 3, 5]), ("a", [1, 5])):
        trial.cluster.put_node(node(3, 4, zone, [], False))
        for _ in range(3):
            tried += 1
            result = trial.attempt(pod(f"p{tried}", 3))
            assert isinstance(result, ScheduleResult)
            assert sorted(int(trial.cluster.table.names[row][1:]) for row in result.feasible) == feasible
    trial.cluster.put_pod(pod("full", 9, on="n1"))
    assert isinstance(trial.attempt(pod("p", 3)), ScheduleResult)


def test_a_changed_cache_key_of_a_plugin_ends_the_cached_results() -> None:
    trial = Trial(Fussy)
    for number in range(3):
        trial.cluster.put_node(node(number, 4, "a", [], False))
    trial.cluster.put_pod(pod("there", 0, on="n0"))
    for most, feasible in ((2, 3), (1, 2), (2, 3)):
        Fussy.most = most
        result = trial.attempt(pod("p", 0))
        assert isinstance(result, ScheduleResult)
        assert len(result.feasible) == feasible


@pytest.mark.parametrize("tainted", [False, True])
def test_a_filter_of_nodes_behind_filters_of_pods_counts_where_these_pass(tainted: bool) -> None:
    trial = Trial(NodesLast)
    for number in range(9):
        trial.cluster.put_node(node(number, 4, "a", [TAINT] if tainted and number % 2 else [], False))
    for number in range(4):
        trial.cluster.put_pod(pod(f"full{number}", 0, on="n0"))
        trial.cluster.put_pod(pod(f"also{number}", 0, on="n2"))
    for number in range(3):
        result = trial.attempt(pod(f"p{number}", 0))
        assert isinstance(result, ScheduleResult)
        verdicts = dict(result.verdicts.by_node())
        messages = {name: "" if status is None else status.message for name, status in verdicts.items()}
        assert (messages["n0"], messages["n2"]) == ("Insufficient cpu",) * 2
        assert messages["n6"] == "code 7"
        assert messages["n3"] == ("node(s) had untolerated taint(s)" if tainted else "code 7")


def test_filters_of_pods_are_not_called_on_nodes_that_an_earlier_filter_of_nodes_rejects() -> None:
    cluster = SchedulerCache()
    for number in range(6):
        cluster.put_node(node(number, 4, "a", [TAINT] if number % 2 else [], False))
    machine = scheduler(cluster, True, Called)
    incoming = pod("p", 0)
    for _ in range(2):
        found = machine.evaluations.of(incoming, CycleState())
    Called.nodes.clear()
    machine.evaluations.judge(found, CycleState(), incoming, slice(0, 6))
    assert sorted(Called.nodes) == ["n0", "n2", "n4"]


def test_classes_with_equal_keys_share_the_verdicts_of_filters_that_read_nodes_only() -> None:
    cluster = SchedulerCache()
    for number in range(3):
        cluster.put_node(node(number, 4, "a", [TAINT] if number == 1 else [], False))
    evaluations = scheduler(cluster, True).evaluations
    assert [one.name for one in evaluations.of_nodes.filters] == [
        "NodeUnschedulable",
        "TaintToleration",
        "NodeAffinity",
    ]
    plain, alike, tolerating = (
        evaluations.once(of_its_own_kind(pod(f"p{number}", shape)), CycleState()).of_nodes
        for number, shape in enumerate((0, 0, 2))
    )
    assert plain is alike
    assert plain is not tolerating


# -- stale rows ---------------------------------------------------------------------------------------------------


class _Judged:
    """A scheduler's evaluation of one class on 40 nodes, and the rows for which plugins were called."""

    def __init__(self) -> None:
        self.cluster = SchedulerCache()
        for number in range(40):
            self.cluster.put_node(node(number, 4, ZONES[number % 2], [], False))
        self.evaluations = scheduler(self.cluster, True).evaluations
        self.pod = pod("p", 0)
        self.evaluations.of(self.pod, CycleState())  # the first of its class

    def rows(self, at: slice) -> list[str]:
        """Update the verdicts at these positions; return the nodes for which filters that read pods were called."""
        found, judged = self.evaluations.of(self.pod, CycleState()), []
        plain = self.evaluations.of_pods.judge

        def noted(state: Any, pod: Pod, table: NodeTable, rows: Any, pinned_by: str = "") -> Any:
            judged.extend(table.names[row] for row in rows.tolist())
            return plain(state, pod, table, rows, pinned_by)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(self.evaluations.of_pods, "judge", noted)
            self.evaluations.judge(found, CycleState(), self.pod, at)
        return sorted(judged)

    def at(self, name: str) -> int:
        table = self.cluster.table
        return int(self.evaluations.of(self.pod, CycleState()).place[table.row_of[name]])


def test_rows_are_judged_once_and_again_when_they_have_changed() -> None:
    judged = _Judged()
    assert len(judged.rows(slice(0, 1))) == 40  # the rows needed next are evaluated at once
    assert judged.rows(slice(0, 40)) == []
    judged.cluster.put_pod(pod("a", 0, on="n7"))
    judged.cluster.put_node(node(9, 2, "b", [], False))
    first = min(judged.at("n7"), judged.at("n9"))
    assert judged.rows(slice(0, first)) == []  # neither row is in the window
    assert judged.rows(slice(0, first + 1)) == ["n7", "n9"]
    assert judged.rows(slice(0, 40)) == []


def test_a_new_visiting_order_keeps_the_verdicts() -> None:
    judged = _Judged()
    judged.rows(slice(0, 40))
    judged.cluster.remove_node("n3")
    judged.cluster.put_node(node(50, 4, "c", [], False))
    assert judged.rows(slice(0, 40)) == ["n50"]
    found = judged.evaluations.of(judged.pod, CycleState())
    names = [judged.cluster.table.names[row] for row in found.order.tolist()]
    assert names == [judged.cluster.table.names[row] for row in judged.cluster.table.order.tolist()]


def test_a_log_that_does_not_reach_back_makes_every_row_stale() -> None:
    judged = _Judged()
    judged.rows(slice(0, 40))
    judged.cluster.versions.pods.limit = 4
    for number in range(6):
        judged.cluster.put_pod(pod(f"a{number}", 0, on=f"n{number}"))
    assert len(judged.rows(slice(0, 40))) == 40
