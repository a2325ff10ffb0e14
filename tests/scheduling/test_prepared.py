"""Tests that prepared attempts have the result of whole attempts, and that each change which ends preparation does so.

`test_evaluation` compares outcomes in random clusters; here each such change is made alone.
"""

from typing import Any, ClassVar

import attrs
import numpy as np
import pytest

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.framework.fast_path import PRE_POINTS
from kschedd.framework.interface import PreFilterResult
from kschedd.framework.status import SKIP, Status, unschedulable
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.attempt.prepared import PreparedAttempt
from tests.scheduling.test_evaluation import SOFT_TAINT, KeepsOff, Trial, node, pod


def like(incoming: Pod, **fields: Any) -> Pod:
    """Return the pod with these fields of its metadata replaced."""
    meta = {**incoming.raw["metadata"], **fields}
    return Pod.from_raw({**incoming.raw, "metadata": meta})


def owned_by(name: str) -> list[dict[str, Any]]:
    return [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": True}]


def of_kind(kind: str, name: str, selector: Any) -> Object:
    meta = {"name": name, "namespace": "default", "uid": name}
    return Object.from_raw({"kind": kind, "metadata": meta, "spec": {"selector": selector}})


@attrs.define(eq=False)
class Repeats:
    """A cluster of ten nodes, and the number of prepared attempts, which have no plugin left to call."""

    trial: Trial = attrs.field(factory=Trial)
    count: int = 0

    def __attrs_post_init__(self) -> None:
        for number in range(10):
            self.trial.cluster.put_node(node(number, 4, "ab"[number % 2], [], False))
        preparations = self.trial.with_cache.preparations
        assert preparations is not None
        of = preparations.of

        def counted(incoming: Pod) -> PreparedAttempt | None:
            found = of(incoming)
            self.count += found is not None and found.alone
            return found

        object.__setattr__(self.trial.with_cache, "preparations", _Counted(counted, preparations.learn))

    def attempts(self, incoming: Pod, times: int = 4) -> int:
        """Attempt this many pods, compare the results, and return the number of prepared attempts."""
        before = self.count
        for _ in range(times):
            name = f"{incoming.name}-{len(self.trial.tried)}"
            one = like(incoming, name=name, uid=name)
            result = self.trial.attempt(one)
            assert isinstance(result, ScheduleResult)
            self.trial.cluster.assume(one, result.node_name)
        return self.count - before


@attrs.frozen(eq=False)
class _Counted:
    of: Any
    learn: Any


class OfNoted:
    """A plugin for pods with annotations, which are no part of the signature: they go to odd nodes, best to n7."""

    name: ClassVar = "OfNoted"

    def repeats_while_unchanged(self, pod: Pod, cluster: Any) -> tuple[str, ...]:
        """Promise what only in-tree plugins can promise."""
        return PRE_POINTS

    def pre_filter(self, state: Any, pod: Pod, cluster: Any) -> Status | None:
        return None if pod.annotations else SKIP

    def filter_rows(self, state: Any, pod: Pod, table: Any, rows: Any) -> Any:
        return np.array([1 - int(table.names[row][1:]) % 2 for row in rows], dtype=np.int64)

    def code_status(self, state: Any, pod: Pod, code: int) -> Status:
        return unschedulable("node(s) had an even number")

    def pre_score(self, state: Any, pod: Pod, cluster: Any, rows: Any) -> Status | None:
        return None if pod.annotations else SKIP

    def score_rows(self, state: Any, pod: Pod, table: Any, rows: Any) -> Any:
        return np.array([100 * (table.names[row] == "n7") for row in rows], dtype=np.int64)


class Narrows:
    """A plugin that leaves eight nodes, all of which pass its filter."""

    name: ClassVar = "Narrows"

    def pre_filter(self, state: Any, pod: Pod, cluster: Any) -> PreFilterResult:
        return PreFilterResult(frozenset(f"n{number}" for number in range(8)), already_filtered=True)

    def filter(self, state: Any, pod: Pod, node: Any) -> Status | None:
        return None if int(node.name[1:]) < 8 else unschedulable("node(s) had a high number")


class PreFilters:
    name: ClassVar = "PreFilters"

    def pre_filter(self, state: Any, pod: Pod, cluster: Any) -> Status | None:
        return None


class PreScores:
    """A plugin with PreScore, but without a score that the scheduler must compute anew."""

    name: ClassVar = "PreScores"
    depends_on: ClassVar = frozenset({"node"})

    def pre_score(self, state: Any, pod: Pod, cluster: Any, rows: Any) -> Status | None:
        return None

    def score_rows(self, state: Any, pod: Pod, table: Any, rows: Any) -> Any:
        return np.zeros(len(rows), dtype=np.int64)


class ScoresOneByOne:
    name: ClassVar = "ScoresOneByOne"

    def score(self, state: Any, pod: Pod, node: Any) -> int:
        return 0


class FiltersOneByOne:
    name: ClassVar = "FiltersOneByOne"

    def filter(self, state: Any, pod: Pod, node: Any) -> Status | None:
        return None


def test_attempts_for_pods_of_one_template_repeat_the_second() -> None:
    # Each pod is attempted twice with the cache; a signature has an entry from its second attempt on.
    assert Repeats().attempts(pod("p", 0)) == 6


@pytest.mark.parametrize("shape", [3, 4, 5, 6], ids=["spread", "soft-spread", "anti-affinity", "preferred"])
def test_in_a_cluster_without_room_ahead_pods_whose_plugins_count_pods_are_attempted_as_a_whole(shape: int) -> None:
    repeats = Repeats()
    assert repeats.attempts(pod("p", shape), 3) == 0


def test_attempts_with_a_plugin_out_of_the_tree_that_says_what_it_reads_are_prepared_as_well() -> None:
    assert Repeats(Trial(KeepsOff)).attempts(pod("p", 0)) == 6


def test_a_pod_that_anti_affinity_is_against_is_attempted_as_a_whole() -> None:
    repeats = Repeats()
    target = pod("p", 1)  # it has the label app=x, which the terms of shape 5 select
    assert repeats.attempts(target, 2) == 2
    repeats.trial.cluster.put_pod(pod("shy", 5, on="n0"))
    assert repeats.attempts(target, 1) == 0


def test_what_a_service_selects_is_spread_from_then_on() -> None:
    repeats = Repeats()
    assert repeats.attempts(pod("p", 0), 2) == 2
    repeats.trial.cluster.put(of_kind("Service", "s", {"app": "y"}))
    assert repeats.attempts(pod("p", 0), 2) == 0


def test_pods_of_another_controller_are_not_repetitions() -> None:
    repeats = Repeats()
    repeats.trial.cluster.put(of_kind("ReplicaSet", "there", {"matchLabels": {"app": "y"}}))
    assert repeats.attempts(pod("p", 0), 2) == 2
    assert repeats.attempts(like(pod("p", 0), ownerReferences=owned_by("there")), 2) == 0
    assert repeats.attempts(like(pod("p", 0), ownerReferences=owned_by("nowhere")), 2) == 3


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(node(3, 4, "b", [SOFT_TAINT], False), id="tainted"),
        pytest.param(node(3, 4, "b", [], True), id="cordoned"),
        pytest.param(node(11, 4, "b", [], False), id="added"),
    ],
)
def test_after_a_node_has_changed_the_pattern_is_learnt_anew(changed: Node) -> None:
    repeats = Repeats()
    assert repeats.attempts(pod("p", 0), 2) == 2
    repeats.trial.cluster.put_node(changed)
    assert repeats.attempts(pod("p", 0), 2) <= 3


def test_a_nominated_pod_is_attempted_as_a_whole() -> None:
    repeats = Repeats()
    assert repeats.attempts(pod("p", 0), 2) == 2
    nominated = Pod.from_raw({**pod("q", 0).raw, "status": {"nominatedNodeName": "n4"}})
    assert repeats.attempts(nominated, 1) == 0


def test_attempts_with_a_cached_score_that_is_normalized_are_prepared_as_well() -> None:
    repeats = Repeats()
    repeats.trial.cluster.put_node(node(3, 4, "b", [SOFT_TAINT], False))
    assert repeats.attempts(pod("p", 0)) == 6


def test_a_pod_that_has_a_node_is_attempted_as_a_whole() -> None:
    repeats = Repeats()
    assert repeats.attempts(pod("p", 0), 2) == 2
    assert repeats.attempts(pod("q", 0, on="n4"), 1) == 0


def test_no_attempt_is_prepared_where_amounts_may_overflow() -> None:
    repeats = Repeats()
    huge = node(11, 4, "b", [], False).raw
    huge = {**huge, "status": {"allocatable": {**huge["status"]["allocatable"], "memory": str(1 << 60)}}}
    repeats.trial.cluster.put_node(Node.from_raw(huge))
    assert repeats.attempts(pod("p", 0)) == 0


def test_pods_that_name_their_nodes_repeat_one_pattern() -> None:
    repeats = Repeats()
    for number in range(2):
        repeats.attempts(pod("d", 2, "", f"n{number}"), 1)
    assert [repeats.attempts(pod("d", 2, "", f"n{number}"), 1) for number in range(2, 10)] == [2] * 8


def test_a_pod_whose_node_is_full_or_not_there_is_told_so() -> None:
    repeats = Repeats()
    for number in range(3):
        repeats.attempts(pod("d", 2, "", f"n{number}"), 1)
    repeats.trial.cluster.put_node(node(5, 0, "a", [], False))
    for name in ("n5", "nowhere"):
        assert isinstance(repeats.trial.attempt(pod("d", 2, "", name)), FitError)


def test_a_pod_whose_node_is_full_by_now_is_told_so_by_a_prepared_attempt() -> None:
    repeats = Repeats()
    for _ in range(4):
        repeats.attempts(pod("d", 2, "", "n5"), 1)
    before = repeats.count
    assert isinstance(repeats.trial.attempt(pod("last", 2, "", "n5")), FitError)
    assert repeats.count == before + 2


def test_pods_that_name_their_nodes_and_select_others_are_attempted_as_a_whole() -> None:
    repeats = Repeats()
    assert [repeats.attempts(pod("d", 1, "", f"n{number}"), 1) for number in (1, 3, 5)] == [0, 0, 0]
    assert isinstance(repeats.trial.attempt(pod("e", 1, "", "n2")), FitError)


def test_pods_that_name_their_nodes_are_told_apart_if_a_plugin_leaves_some_of_them() -> None:
    repeats = Repeats(Trial(Narrows))
    results = [repeats.trial.attempt(pod("d", 2, "", f"n{number}")) for number in (1, 2, 3, 8, 9)]
    assert [isinstance(result, ScheduleResult) for result in results] == [True, True, True, False, False]
    assert repeats.count == 0


def test_where_no_node_is_left_a_prepared_attempt_says_why() -> None:
    repeats = Repeats()
    assert repeats.attempts(pod("p", 0), 40) > 60
    before = repeats.count
    assert isinstance(repeats.trial.attempt(pod("last", 0)), FitError)
    assert repeats.count == before + 2


def test_a_plugin_that_skips_some_pods_of_a_template_is_called_for_the_others() -> None:
    repeats = Repeats(Trial(OfNoted))
    plain, noted = pod("p", 0), like(pod("p", 0), annotations={"note": "x"})
    for incoming in (plain, plain, noted, plain, noted):
        repeats.attempts(incoming, 1)
        preparations = repeats.trial.with_cache.preparations
        assert preparations is not None
        assert preparations.of(incoming) is not None
    assert repeats.count == 0


@pytest.mark.parametrize(
    ("plugin", "alone", "immediate"),
    [
        pytest.param(KeepsOff, True, True, id="reads-one-row"),
        pytest.param(OfNoted, False, True, id="columns-in-each-attempt"),
        pytest.param(PreFilters, False, True, id="pre-filter"),
        pytest.param(PreScores, False, True, id="pre-score"),
        pytest.param(ScoresOneByOne, False, False, id="scores-nodes-one-by-one"),
        pytest.param(FiltersOneByOne, False, False, id="filters-nodes-one-by-one"),
    ],
)
def test_the_plugins_that_are_left_determine_whether_attempts_can_be_in_a_run(
    plugin: type[Any], alone: bool, immediate: bool
) -> None:
    repeats = Repeats(Trial(plugin))
    repeats.attempts(pod("p", 0), 1)
    preparations = repeats.trial.with_cache.preparations
    assert preparations is not None
    prepared = preparations.of(pod("p", 0))
    assert prepared is not None
    assert (prepared.alone, prepared.immediate) == (alone, immediate)
