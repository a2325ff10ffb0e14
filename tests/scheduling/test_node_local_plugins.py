"""Tests of the plugins whose result for a node depends on that node only: their calls, metrics and exceptions."""

from typing import Any

import numpy as np
import pytest

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.selecting.selectors import SelectorError
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.faults import PluginError
from kschedd.scheduling.filtering.node_local_plugins import (
    NodeLocalPlugins,
    PluginFault,
    check_range,
    filter_columns,
    judge,
    score_columns,
)
from kschedd.scheduling.profiles.plugin_metrics import PluginInstruments, PluginMetrics, Sampling
from kschedd.scheduling.profiles.profile import EnabledFilter, EnabledScore, enabled_filter, enabled_score
from kschedd.scheduling.verdicts import PASSED
from tests.scheduling.driven import node, pod

POD = Pod.from_raw(pod("web"))
ROWS: Rows = np.arange(3)


class Plugin:
    """A vector plugin that returns an array, or raises an exception, and lists the rows of its calls."""

    def __init__(
        self, answer: Ints | Exception | None = None, reads: str = "node", constant: int | None = None
    ) -> None:
        self.depends_on = frozenset({reads})
        self.answer, self.constant = answer, constant
        self.called: list[list[int]] = []

    def _answer(self, rows: Rows) -> Ints | None:
        self.called.append(rows.tolist())
        if isinstance(self.answer, Exception):
            raise self.answer
        return None if self.answer is None else self.answer[rows]

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints | None:
        return self._answer(rows)

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints | None:
        return self._answer(rows)

    def constant_score(self, pod: Pod, table: NodeTable) -> int | None:
        return self.constant


class Normalizing(Plugin):
    def normalize(self, state: CycleState, pod: Pod, scores: Ints) -> None:
        raise AssertionError("the caller normalizes")


class Profile:
    def __init__(self, filters: list[EnabledFilter] | None = None, scores: list[EnabledScore] | None = None) -> None:
        self.filters, self.scores = filters or [], scores or []


@pytest.fixture
def table() -> NodeTable:
    cache = SchedulerCache()
    cache.load([Node.from_raw(node(name)) for name in ("a", "b", "c")])
    return cache.table


def metrics(sampled: bool = False) -> PluginMetrics:
    sampling = Sampling(timer=lambda: 0.0)
    sampling.plugins = sampled
    return PluginMetrics(into=PluginInstruments(sampling))


def a_filter(plugin: Plugin, place: int = 0, *, in_tree: bool = True, sampled: bool = False) -> EnabledFilter:
    made: Any = plugin
    return enabled_filter(place, f"F{place}", made, in_tree, metrics(sampled))


def a_score(plugin: Plugin, weight: int = 1, *, in_tree: bool = True, sampled: bool = False) -> EnabledScore:
    made: Any = plugin
    return enabled_score("S", weight, made, in_tree, metrics(sampled))


def durations(calls: Any) -> list[str]:
    """Return the statuses for which the duration of a call was recorded."""
    return list(calls._by_status)


def test_an_exception_of_an_in_tree_plugin_is_ours(table: NodeTable) -> None:
    fault = ValueError("a bug")
    with pytest.raises(ValueError, match="a bug"):
        filter_columns(a_filter(Plugin(fault)), CycleState(), POD, table, ROWS)
    with pytest.raises(ValueError, match="a bug"):
        score_columns(a_score(Plugin(fault)), CycleState(), POD, table, ROWS)


@pytest.mark.parametrize("sampled", [False, True])
def test_an_exception_of_an_out_of_tree_plugin_is_its_fault_and_is_counted(table: NodeTable, sampled: bool) -> None:
    filter_ = a_filter(Plugin(ValueError("no idea")), in_tree=False, sampled=sampled)
    with pytest.raises(PluginFault) as of_filter:
        filter_columns(filter_, CycleState(), POD, table, ROWS)
    assert of_filter.value.plugin == "F0"
    assert of_filter.value.message.startswith('running "F0" filter plugin: ValueError: no idea')
    score = a_score(Plugin(ValueError("no idea")), in_tree=False, sampled=sampled)
    with pytest.raises(PluginFault) as of_score:
        score_columns(score, CycleState(), POD, table, ROWS)
    assert of_score.value.message.startswith('running Score plugins: plugin "S" failed with: ValueError: no idea')
    for calls in (filter_.calls, score.calls):
        assert (calls.evaluations, calls.errors) == (3, 1)
        assert durations(calls) == (["Error"] if sampled else [])


@pytest.mark.parametrize(
    "reason", [PluginError("S", "score_rows", "a term cannot be parsed"), SelectorError(["a term cannot be parsed"])]
)
def test_a_plugin_that_cannot_score_a_pod_fails_its_attempt_with_the_reason(table: NodeTable, reason: Any) -> None:
    with pytest.raises(PluginFault) as fault:
        score_columns(a_score(Plugin(reason)), CycleState(), POD, table, ROWS)
    assert fault.value.message == 'running Score plugins: plugin "S" failed with: a term cannot be parsed'


def test_calls_are_counted_by_nodes_and_timed_in_sampled_attempts(table: NodeTable) -> None:
    some, none = np.array([0, 1, 0]), np.array([1, 1, 2])
    for answer, sampled, timed in (
        (some, False, []),
        (some, True, ["Success"]),
        (none, True, ["Unschedulable"]),
        (None, True, ["Success"]),
    ):
        filter_ = a_filter(Plugin(answer), sampled=sampled)
        filter_columns(filter_, CycleState(), POD, table, ROWS)
        assert (filter_.calls.evaluations, durations(filter_.calls)) == (3, timed)
    for sampled, timed in ((False, []), (True, ["Success"])):
        score = a_score(Plugin(some), sampled=sampled)
        score_columns(score, CycleState(), POD, table, ROWS)
        assert (score.calls.evaluations, durations(score.calls)) == (3, timed)


def test_a_filter_is_called_only_on_nodes_that_passed_the_filters_before_it(table: NodeTable) -> None:
    first, second, third = Plugin(np.array([1, 0, 0])), Plugin(np.array([0, 2, 3])), Plugin()
    filters = [a_filter(first, 0), a_filter(second, 1), a_filter(third, 2)]
    failed, codes = judge(filters, CycleState(), POD, table, ROWS)
    assert (failed.tolist(), codes.tolist()) == ([0, 1, 1], [1, 2, 3])
    assert (first.called, second.called) == ([[0, 1, 2]], [[1, 2]])
    assert third.called == [], "no node is left"


def test_a_filter_is_not_called_if_pre_filter_returned_skip_or_has_checked_the_nodes(table: NodeTable) -> None:
    plugins = [Plugin(np.array([1, 1, 1])) for _ in range(2)] + [Plugin(np.array([0, 1, 0]))]
    filters = NodeLocalPlugins(
        _profile(filters=[a_filter(plugin, place) for place, plugin in enumerate(plugins)]), None
    )
    state = CycleState()
    state.skip_filter.add("F0")
    failed, _ = filters.judge(state, POD, table, ROWS, already_filtered_by="F1")
    assert failed.tolist() == [PASSED, 2, PASSED]


def _profile(filters: list[EnabledFilter] | None = None, scores: list[EnabledScore] | None = None) -> Any:
    return Profile(filters, scores)


def test_plugins_that_read_only_the_node_object_can_run_apart_from_the_others(table: NodeTable) -> None:
    filters = [a_filter(Plugin(reads="node"), 0), a_filter(Plugin(reads="pods"), 1)]
    assert [each.place for each in NodeLocalPlugins(_profile(filters), True).filters] == [1]
    assert [each.place for each in NodeLocalPlugins(_profile(filters), False).filters] == [0]
    assert [each.place for each in NodeLocalPlugins(_profile(filters), None).filters] == [0, 1]


def test_plugins_that_do_not_declare_what_they_read_are_not_node_local() -> None:
    undeclared = Plugin()
    undeclared.depends_on = frozenset()
    assert NodeLocalPlugins(_profile([a_filter(undeclared)]), None).filters == ()


def test_scores_are_weighted_and_scores_to_normalize_are_returned_raw(table: NodeTable) -> None:
    scores = [
        a_score(Plugin(np.array([1, 2, 3])), 1),
        a_score(Plugin(np.array([10, 0, 10])), 2),
        a_score(Plugin(constant=5), 3),
        a_score(Normalizing(np.array([7, 8, 900])), 4),
    ]
    base, raw = NodeLocalPlugins(_profile(scores=scores), None).score(CycleState(), POD, table, ROWS)
    assert base.tolist() == [1 + 20 + 15, 2 + 15, 3 + 20 + 15]
    assert {name: values.tolist() for name, values in raw.items()} == {"S": [7, 8, 900]}


def test_a_constant_score_does_not_replace_values_to_normalize_or_an_unknown_constant(table: NodeTable) -> None:
    values = np.array([7, 8, 9])
    normalizing, unknown = a_score(Normalizing(values, constant=5)), a_score(Plugin(values))
    base, raw = NodeLocalPlugins(_profile(scores=[normalizing, unknown]), None).score(CycleState(), POD, table, ROWS)
    assert (base.tolist(), raw["S"].tolist()) == ([7, 8, 9], [7, 8, 9])


def test_a_score_is_not_called_if_pre_score_returned_skip(table: NodeTable) -> None:
    state = CycleState()
    state.skip_score.add("S")
    scores = NodeLocalPlugins(_profile(scores=[a_score(Plugin(np.array([1, 2, 3])))]), None)
    assert scores.score(state, POD, table, ROWS)[0].tolist() == [0, 0, 0]


def test_final_scores_of_out_of_tree_plugins_are_from_0_to_100(table: NodeTable) -> None:
    score = a_score(Plugin(), in_tree=False)
    check_range(score, np.array([0, 100]))
    for wrong in (-1, 101):
        with pytest.raises(PluginFault, match=f'plugin "S" returns an invalid score {wrong}, it should in the range'):
            check_range(score, np.array([50, wrong]))
    outside = np.array([1, 2, 101])
    with pytest.raises(PluginFault, match="invalid score 101"):
        NodeLocalPlugins(_profile(scores=[a_score(Plugin(outside), in_tree=False)]), None).score(
            CycleState(), POD, table, ROWS
        )
    trusted = NodeLocalPlugins(_profile(scores=[a_score(Plugin(outside))]), None)
    assert trusted.score(CycleState(), POD, table, ROWS)[0].tolist() == [1, 2, 101]
