"""Tests that attempts in runs have the results of single attempts, and where runs end."""

from collections.abc import Iterator, Sequence
from itertools import count
from random import Random
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.status import Status, unschedulable
from kschedd.scheduling.attempt import node_search
from kschedd.scheduling.attempt.node_search import StartNode
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.attempt.runs import Runs
from kschedd.scheduling.attempt.scheduler import Scheduler
from kschedd.scheduling.attempt.ties import NodeTies
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.filtering import evaluation
from kschedd.scheduling.profiles.metrics import SchedulingMetrics
from kschedd.scheduling.profiles.plugin_metrics import PluginInstruments
from tests.scheduling.test_evaluation import SOFT_TAINT, TAINT, node, pod, scheduler
from tests.scheduling.test_prepared import like, owned_by
from tests.scheduling.test_scheduler import plugin

_TAINTS: list[list[Any]] = [[TAINT], [SOFT_TAINT], [], [], [], [], []]
LARGE = 300  # the best node of the second search that begins at 150
NODES = [node(number, 4 + (number == LARGE), "ab"[number % 2], _TAINTS[number % 7], False) for number in range(410)]


@attrs.define(eq=False)
class Side:
    """A scheduler on its own cluster of 410 nodes, of which a search needs 102."""

    scheduler: Scheduler
    made: int = 0

    @classmethod
    def of(cls, *plugins: type[Any], nodes: Sequence[Node] = NODES, percentage: int = 25) -> "Side":
        cluster = SchedulerCache()
        cluster.load(nodes)
        profile = scheduler(cluster, True, *plugins).profile
        profile.percentage = percentage
        return cls(Scheduler(profile, cluster, NodeTies(Random(1)), StartNode()))

    def measure(self) -> tuple[SchedulingMetrics, PluginInstruments]:
        """Return metrics that record the next attempts; each reading of their clock advances it by a second."""
        ticks = count(10)
        metrics, instruments = SchedulingMetrics(lambda: float(next(ticks))), PluginInstruments()
        profile = self.scheduler.profile
        profile.times, profile.plugin_metrics = metrics.times("p"), instruments.of("p")
        return metrics, instruments

    @property
    def runs(self) -> Runs:
        assert self.scheduler.runs is not None
        return self.scheduler.runs

    def pods(self, *templates: Pod) -> list[Pod]:
        """Return pods of these templates, with names of their own."""
        self.made += len(templates)
        names = [f"p{self.made - number}" for number in range(len(templates), 0, -1)]
        return [like(template, name=name, uid=name) for name, template in zip(names, templates, strict=True)]

    def singly(self, pods: Sequence[Pod]) -> list[ScheduleResult]:
        """Attempt the pods one by one, and assume each of them."""
        results = []
        for each in pods:
            result = drive(self.scheduler.attempt(each, {}))
            assert isinstance(result, ScheduleResult)
            self.scheduler.cluster.assume(each, result.node_name)
            results.append(result)
        return results

    def learn(self, *templates: Pod) -> None:
        """Attempt two pods of each template, so that the attempts for its further pods are prepared."""
        for template in templates:
            self.singly(self.pods(template, template))

    def in_turn(self, pods: Sequence[Pod], alone: bool) -> Iterator[ScheduleResult]:
        return self.runs.in_turn(pods, self.scheduler.attempt_within, alone)


def pair(*templates: Pod, start: int | None = None) -> tuple[Side, Side]:
    """Return two equal sides that have learned these templates; their next search begins at `start`."""
    sides = Side.of(), Side.of()
    for side in sides:
        side.learn(*templates)
        if start is not None:
            side.scheduler.start.index = start
    return sides


def outcomes(results: Sequence[ScheduleResult]) -> list[Any]:
    return [
        (
            result.pod.name,
            result.node_name,
            result.feasible.tolist(),
            None if result.totals is None else result.totals.tolist(),
            result.score,
            result.ties,
            result.visited,
        )
        for result in results
    ]


def daemon(number: int, shape: int = 2) -> Pod:
    return pod("d", shape, "", f"n{number}")


PLAIN, TOLERANT, SPREAD = pod("p", 0), pod("p", 2), pod("p", 4)


@pytest.mark.parametrize("start", [0, 60, 150, 400])
@pytest.mark.parametrize(
    ("templates", "many"),
    [
        pytest.param([PLAIN], 3, id="one-template"),
        pytest.param([TOLERANT], 4, id="one-template-that-passes-every-node"),
        pytest.param([PLAIN, TOLERANT], 3, id="two-templates"),
    ],
)
def test_attempts_made_together_have_the_results_of_single_attempts(
    templates: list[Pod], many: int, start: int
) -> None:
    together, apart = pair(*templates, start=start)
    pods = together.pods(*(templates[number % len(templates)] for number in range(9)))
    results = together.runs.together(pods)
    assert len(results) == many
    assert outcomes(results) == outcomes(apart.singly(pods[:many]))
    assert together.scheduler.start.index == apart.scheduler.start.index


@pytest.mark.parametrize("start", [0, 250])
def test_attempts_made_together_after_many_changes_evaluate_the_visited_nodes(
    monkeypatch: pytest.MonkeyPatch, start: int
) -> None:
    monkeypatch.setattr(node_search, "MOST_AT_ONCE", 20)
    together, apart = pair(PLAIN, TOLERANT, start=start)
    for side in (together, apart):
        for number in range(0, 410, 2):
            side.scheduler.cluster.put_pod(pod(f"change{number}", 0, on=f"n{number}"))
    pods = together.pods(PLAIN, TOLERANT, PLAIN)
    assert outcomes(together.runs.together(pods)) == outcomes(apart.singly(pods))


def test_two_attempts_can_be_made_together_but_not_one() -> None:
    side, _ = pair(PLAIN)
    assert side.runs.together(side.pods(PLAIN)) == []
    assert len(side.runs.together(side.pods(PLAIN, PLAIN))) == 2


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(pod("p", 1), id="a-pod-of-a-new-template"),
        pytest.param(like(PLAIN, ownerReferences=owned_by("other")), id="a-pod-of-another-controller"),
        pytest.param(daemon(300), id="a-pod-that-names-its-node"),
        pytest.param(SPREAD, id="a-pod-whose-plugins-count-pods"),
    ],
)
def test_attempts_made_together_end_before(other: Pod) -> None:
    together, apart = pair(PLAIN, daemon(1), SPREAD)
    pods = together.pods(PLAIN, PLAIN, other, PLAIN)
    assert outcomes(together.runs.together(pods)) == outcomes(apart.singly(pods[:2]))


def test_attempts_in_turn_have_the_results_of_single_attempts() -> None:
    together, apart = pair(SPREAD)
    pods = together.pods(*[SPREAD] * 6)
    results = []
    for result in together.in_turn(pods, alone=False):
        together.scheduler.cluster.assume(result.pod, result.node_name)
        results.append(result)
    assert outcomes(results) == outcomes(apart.singly(pods))
    assert together.scheduler.start.index == apart.scheduler.start.index


def test_attempts_in_turn_that_are_assumed_at_the_end_visit_no_node_twice() -> None:
    together, apart = pair(PLAIN)
    pods = together.pods(*[PLAIN] * 9)
    results = list(together.in_turn(pods, alone=True))
    assert outcomes(results) == outcomes(apart.singly(pods[:3]))
    assert together.scheduler.start.index == apart.scheduler.start.index


@pytest.mark.parametrize(
    ("other", "alone"),
    [
        pytest.param(pod("p", 1), False, id="a-pod-of-a-new-template"),
        pytest.param(daemon(300), False, id="a-pod-that-names-its-node"),
        pytest.param(SPREAD, True, id="a-pod-whose-plugins-count-pods-if-all-are-assumed-at-the-end"),
    ],
)
def test_attempts_in_turn_end_before(other: Pod, alone: bool) -> None:
    side, _ = pair(PLAIN, daemon(1), SPREAD)
    pods = side.pods(PLAIN, other, PLAIN)
    assert [result.pod for result in side.in_turn(pods, alone)] == pods[:1]


@pytest.mark.parametrize("fault", [None, ValueError("of a pod")], ids=["without-a-result", "with-a-fault"])
def test_an_attempt_that_ends_a_run_does_not_move_the_start(fault: Exception | None) -> None:
    side, _ = pair(PLAIN, start=7)
    start = side.scheduler.start

    def attempt(each: Pod, most: int) -> Iterator[Any]:
        start.index += 100
        if fault is not None:
            raise fault
        yield from ()

    def ended() -> list[ScheduleResult]:
        return list(side.runs.in_turn(side.pods(PLAIN), attempt, alone=False))

    if fault is None:
        assert ended() == []
    else:
        with pytest.raises(ValueError, match="of a pod"):
            ended()
    assert start.index == 7


@pytest.mark.parametrize(
    ("nodes", "learned", "template", "alone", "several"),
    [
        pytest.param(410, [], PLAIN, False, False, id="a-new-template"),
        pytest.param(410, [PLAIN], PLAIN, True, True, id="searches-of-different-nodes"),
        pytest.param(290, [PLAIN], PLAIN, True, False, id="two-searches-of-different-nodes"),
        pytest.param(140, [PLAIN], PLAIN, False, True, id="searches-of-the-same-nodes"),
        pytest.param(410, [SPREAD], SPREAD, False, True, id="plugins-that-count-pods"),
        pytest.param(410, [daemon(1)], daemon(2), True, True, id="pods-that-name-their-nodes"),
        pytest.param(140, [daemon(1)], daemon(2), True, True, id="likewise-in-a-small-cluster"),
    ],
)
def test_the_pods_that_can_be_in_a_run(
    nodes: int, learned: list[Pod], template: Pod, alone: bool, several: bool
) -> None:
    side = Side.of(nodes=NODES[:nodes])
    side.learn(*learned)
    [incoming] = side.pods(template)
    assert side.runs.alone(incoming) is alone
    assert (side.runs.longest(incoming) > 2) is several


def test_pods_that_name_their_nodes_are_not_attempted_together_if_a_filter_must_be_called() -> None:
    columns = plugin("Columns", filter_rows=lambda state, pod, table, rows: None, code_status=lambda *args: None)
    side = Side.of(columns)
    side.learn(daemon(1))
    [incoming] = side.pods(daemon(2))
    assert side.runs.longest(incoming) > 2
    assert not side.runs.alone(incoming)


def test_a_run_of_pods_that_name_their_nodes_is_longer_than_one_of_searches() -> None:
    side, _ = pair(PLAIN, daemon(1))
    [searching, naming] = side.pods(PLAIN, daemon(2))
    assert side.runs.longest(naming) > side.runs.longest(searching) == 3


def test_pods_that_get_the_first_node_found_are_not_in_runs() -> None:
    side = Side.of()
    side.scheduler.profile.scores = ()
    side.learn(PLAIN, PLAIN)
    assert side.runs.longest(*side.pods(PLAIN)) < 2


@pytest.mark.parametrize("template", [PLAIN, daemon(1)], ids=["any-node", "its-node"])
def test_nothing_is_attempted_together_without_an_evaluation_of_its_own(
    monkeypatch: pytest.MonkeyPatch, template: Pod
) -> None:
    for bound in ("_MOST", "_FEWEST", "_MOST_SEEN"):
        monkeypatch.setattr(evaluation, bound, 1)
    side = Side.of()
    side.learn(template, TOLERANT)
    assert side.runs.together(side.pods(template, template)) == []


@pytest.mark.parametrize("sampled", [False, True])
def test_attempts_made_together_are_measured_like_single_attempts(sampled: bool) -> None:
    side, apart = pair(PLAIN, start=150)
    (metrics, instruments), (_, of_single) = side.measure(), apart.measure()
    instruments.sampling.plugins = of_single.sampling.plugins = sampled
    pods = side.pods(PLAIN, PLAIN)
    assert [result.ties > 1 for result in side.runs.together(pods)] == [True, False]
    apart.singly(pods)
    side.scheduler.profile.times.count_skipped()
    samples = metrics.point_s.family().samples
    timed = {point: (each.count, each.sum) for (point, *_), each in samples.items()}
    assert timed == {"Filter": (2, 1.0), "Score": (2, 1.0), "PreFilter": (2, 0.0), "PreScore": (2, 0.0)}
    margins = [
        [(each.count, each.sum) for each in measured.margins.family().samples.values()]
        for measured in (instruments, of_single)
    ]
    assert margins[0] == margins[1]
    assert bool(margins[0]) is sampled


def test_attempts_of_pods_that_name_their_nodes_are_measured_like_single_attempts() -> None:
    side, _ = pair(daemon(1))
    (metrics, _), use = side.measure(), side.scheduler.evaluations.use
    before = use.hits
    assert len(side.runs.together(side.pods(daemon(10), daemon(11)))) == 2
    assert use.hits - before == 2
    side.scheduler.profile.times.count_skipped()
    timed = {point: (each.count, each.sum) for (point, *_), each in metrics.point_s.family().samples.items()}
    assert timed == {"Filter": (2, 1.0), "PreFilter": (2, 0.0)}


def test_no_run_begins_before_an_attempt_whose_scores_are_recorded() -> None:
    side, _ = pair(PLAIN)
    [incoming] = side.pods(PLAIN)
    sampling = side.scheduler.profile.plugin_metrics.sampling
    sampling.shares = (0.0, 1.0)
    sampling.next_several(2)
    assert side.runs.longest(incoming) < 2


@pytest.mark.parametrize(
    ("templates", "many"),
    [
        pytest.param([daemon(number) for number in range(10, 14)], 4, id="all-of-them"),
        pytest.param([daemon(10)], 1, id="one"),
        pytest.param([daemon(10), daemon(11), daemon(10)], 2, id="a-node-named-again"),
        pytest.param([daemon(10), daemon(1000), daemon(11)], 1, id="a-node-that-does-not-exist"),
        pytest.param([daemon(10), daemon(11), daemon(8), daemon(12)], 2, id="a-node-without-room"),
        pytest.param([daemon(8), daemon(10)], 0, id="first-a-node-without-room"),
        pytest.param([daemon(1000), daemon(10)], 0, id="first-a-node-that-does-not-exist"),
        pytest.param([daemon(10), daemon(11, shape=0)], 1, id="another-template"),
        pytest.param([daemon(10), like(daemon(11), ownerReferences=owned_by("x"))], 1, id="another-controller"),
        pytest.param([daemon(10), PLAIN], 1, id="a-pod-that-names-no-node"),
    ],
)
def test_pods_that_name_their_nodes_are_attempted_together_up_to(templates: list[Pod], many: int) -> None:
    together, apart = pair(daemon(1), daemon(1, shape=0), PLAIN)
    for side in (together, apart):
        for number in range(4):
            side.scheduler.cluster.put_pod(pod(f"full{number}", 0, on="n8"))
    pods = together.pods(*templates)
    results = together.runs.together(pods)
    assert len(results) == many
    assert outcomes(results) == outcomes(apart.singly(pods[:many]))
    assert together.scheduler.start.index == apart.scheduler.start.index


class Breaks:
    """A plugin with cached results that fails once it is `broken`."""

    name: ClassVar = "Breaks"
    depends_on: ClassVar = frozenset({"pods"})
    broken: ClassVar = ""

    def filter_rows(self, state: Any, incoming: Pod, table: Any, rows: Any) -> Any:
        if self.broken == "filter":
            raise ValueError("broken")
        return np.zeros(len(rows), dtype=np.int64)

    def code_status(self, state: Any, incoming: Pod, code: int) -> Status:
        return unschedulable("no")

    def score_rows(self, state: Any, incoming: Pod, table: Any, rows: Any) -> Any:
        return np.full(len(rows), 101 if self.broken == "score" else 1, dtype=np.int64)


@pytest.mark.parametrize(
    ("template", "method"),
    [
        pytest.param(PLAIN, "filter", id="a-filter"),
        pytest.param(PLAIN, "score", id="a-score"),
        pytest.param(daemon(1), "filter", id="a-filter-for-a-pod-that-names-its-node"),
    ],
)
def test_nothing_is_attempted_together_if_a_plugin_fails(
    monkeypatch: pytest.MonkeyPatch, template: Pod, method: str
) -> None:
    side = Side.of(Breaks)
    side.learn(template)
    start = side.scheduler.start.index
    for number in range(410):
        side.scheduler.cluster.put_pod(pod(f"change{number}", 0, on=f"n{number}"))
    monkeypatch.setattr(Breaks, "broken", method)
    assert side.runs.together(side.pods(template, template)) == []
    assert side.scheduler.start.index == start
    assert isinstance(drive(side.scheduler.attempt(*side.pods(template), {})), FitError)
