"""Tests of PreScore and Score without caches: failures, skipped plugins, stops, and scores from worker processes."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from kschedd.framework.cycle_state import CycleState
from kschedd.framework.faults import PluginError
from kschedd.framework.status import SKIP, Code, Status, error, unschedulable
from kschedd.scheduling.attempt.ranking import Ranking
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.filtering.node_local_plugins import PluginFault
from kschedd.scheduling.profiles.plugin_metrics import PluginInstruments
from kschedd.scheduling.profiles.profile import build_profile
from tests.scheduling.test_scheduler import machine, node, plugin, pod

ROWS = np.arange(2)
NONE = {"disabled": [{"name": "*"}]}


class Steps:
    """A stepper that records its stops and the scores."""

    def __init__(self) -> None:
        self.stops: list[tuple[str, str, list[int]]] = []
        self.scores: dict[str, tuple[int, list[int], list[int]]] = {}

    def before(self, point: str, plugin: str, rows: Any) -> Iterator[Any]:
        self.stops.append((point, plugin, rows.tolist()))
        return iter(())

    def scored(self, plugin: str, weight: int, raw: Any, normalized: Any) -> None:
        self.scores[plugin] = weight, raw.tolist(), normalized.tolist()


def ranking(*plugins: type[Any], instruments: PluginInstruments | None = None) -> Ranking:
    """Return the score plugins of a profile that has only these plugins, on two nodes."""
    pre = [{"name": each.name} for each in plugins if hasattr(each, "pre_score")]
    scoring = [{"name": each.name, "weight": 3} for each in plugins if hasattr(each, "score")]
    points = {"preScore": {**NONE, "enabled": pre}, "score": {**NONE, "enabled": scoring}}
    made = machine(*plugins, nodes=[node("a"), node("b")], **points)
    [profile] = made.config.profiles
    metrics = (instruments or PluginInstruments()).of("p")
    return Ranking(build_profile(made.config, profile, made.registry, made.handle, metrics=metrics), made.cluster, None)


def answering(answer: Status | None) -> Callable[..., Status | None]:
    return lambda state, pod, cluster, rows: answer


def raising(*args: Any) -> Any:
    raise ValueError("no idea")


def pre_scored(made: Ranking, mode: str, state: CycleState) -> Status | None:
    """Run PreScore of all plugins, of the given plugins, or with a stop before each."""
    if mode == "all":
        return made.pre_score(state, pod(), ROWS)
    calls = made.profile.plugin_metrics.calls
    only: Any = [(each, calls(name, "PreScore")) for name, each in made.profile.plugins.items() if name[:3] == "Own"]
    stepper: Any = Steps()
    return drive(made.pre_scoring(state, pod(), ROWS, *((None, only) if mode == "only" else (stepper,))))


MODES = pytest.mark.parametrize("mode", ["all", "only", "stepped"])


@MODES
def test_a_plugin_whose_pre_score_skips_is_not_scored(mode: str) -> None:
    made = ranking(
        plugin("OwnSkips", pre_score=answering(SKIP), score=raising),
        plugin("OwnScores", pre_score=answering(None), score=lambda state, pod, node: 40),
    )
    state = CycleState(skip_score={"Before"})
    assert pre_scored(made, mode, state) is None
    assert state.skip_score == ({"OwnSkips"} if mode == "all" else {"Before", "OwnSkips"})
    scores = drive(made.details(state, pod(), ROWS))
    assert (scores.raw.keys(), scores.total.tolist()) == ({"OwnScores"}, [120, 120])
    assert drive(made.raw_scores(state, pod(), ROWS)).keys() == {"OwnScores"}


@MODES
@pytest.mark.parametrize(
    ("method", "message"),
    [
        pytest.param(answering(unschedulable("no")), 'running PreScore plugin "OwnFails": no', id="a-rejection"),
        pytest.param(answering(error("broken")), 'running PreScore plugin "OwnFails": broken', id="an-error"),
        pytest.param(raising, 'running PreScore plugin "OwnFails": ValueError: no idea', id="an-exception"),
    ],
)
def test_the_first_failure_of_pre_score_is_an_error_and_ends_it(
    mode: str, method: Callable[..., Any], message: str
) -> None:
    called: list[str] = []

    def noting(state: Any, pod: Any, cluster: Any, rows: Any) -> None:
        called.append(pod.name)

    made = ranking(plugin("OwnFails", pre_score=method), plugin("OwnNext", pre_score=noting))
    failure = pre_scored(made, mode, CycleState())
    assert failure is not None
    assert (failure.code, failure.plugin) == (Code.ERROR, "OwnFails")
    assert failure.message.startswith(message)
    assert called == []


@pytest.mark.parametrize(
    ("method", "evaluations", "errors", "label"),
    [
        pytest.param(answering(None), 1, 0, "Success", id="success"),
        pytest.param(answering(SKIP), 0, 0, "Skip", id="skip"),
        pytest.param(answering(error("broken")), 1, 1, "Error", id="error"),
    ],
)
def test_calls_of_pre_score_are_counted_and_timed_if_the_attempt_is_sampled(
    method: Callable[..., Any], evaluations: int, errors: int, label: str
) -> None:
    instruments = PluginInstruments()
    made = ranking(plugin("Own", pre_score=method), instruments=instruments)
    for instruments.sampling.plugins in (False, True):
        made.pre_score(CycleState(), pod(), ROWS)
    calls = made.profile.plugin_metrics.calls("Own", "PreScore")
    assert (calls.evaluations, calls.errors) == (2 * evaluations, 2 * errors)
    timed = {labels: each.count for labels, each in instruments.durations.family().samples.items()}
    assert timed == {("Own", "PreScore", label): 1}


def test_a_stepped_attempt_stops_before_each_call_and_records_each_plugins_scores() -> None:
    steps: Any = Steps()
    made = ranking(
        plugin("OwnPlain", pre_score=answering(None), score=lambda state, pod, node: 10 if node.name == "a" else 20),
        plugin("OwnNormal", score=lambda state, pod, node: 500, normalize=lambda state, pod, raw: raw // 10),
    )
    state = CycleState()
    assert drive(made.pre_scoring(state, pod(), ROWS, steps)) is None
    scores = drive(made.details(state, pod(), ROWS, steps))
    assert steps.stops == [
        ("preScore", "OwnPlain", [0, 1]),
        ("score", "OwnPlain", [0, 1]),
        ("score", "OwnNormal", [0, 1]),
    ]
    assert steps.scores == {"OwnPlain": (3, [10, 20], [10, 20]), "OwnNormal": (3, [500, 500], [50, 50])}
    assert {name: values.tolist() for name, values in scores.raw.items()} == {
        "OwnPlain": [10, 20],
        "OwnNormal": [500, 500],
    }
    assert {name: values.tolist() for name, values in scores.weighted.items()} == {
        "OwnPlain": [30, 60],
        "OwnNormal": [150, 150],
    }
    assert scores.total.tolist() == [180, 210]
    assert scores.rows is ROWS


def test_totals_of_stored_scores_count_a_plugin_without_scores_as_0() -> None:
    made = ranking(
        plugin("OwnPlain", score=raising), plugin("OwnNormal", score=raising, normalize=lambda state, pod, raw: raw + 1)
    )
    assert made.totals_of(CycleState(), pod(), ROWS, {"OwnPlain": [10, 20]}).tolist() == [33, 63]
    skipping = CycleState(skip_score={"OwnNormal"})
    assert made.totals_of(skipping, pod(), ROWS, {"OwnPlain": [10, 20]}).tolist() == [30, 60]


def test_nodes_are_scored_in_shards_and_the_first_failure_counts() -> None:
    rows = np.zeros(130, dtype=np.int64)
    made = ranking(plugin("Own", score=lambda state, pod, node: 7))
    sizes: list[int] = []

    def answered(shard: Callable[[], Any]) -> Any:
        answers = shard()
        sizes.append(len(answers))
        return answers

    raw = drive(made.raw_scores(CycleState(), pod(), rows), answered)
    assert (raw["Own"].tolist(), sizes) == ([7] * 130, [64, 64, 2])
    calls = made.profile.plugin_metrics.calls("Own", "Score")
    assert (calls.evaluations, calls.errors) == (130, 0)


@pytest.mark.parametrize(
    ("method", "why"),
    [
        pytest.param(lambda state, pod, node: error("broken"), "broken", id="a-status"),
        pytest.param(raising, "ValueError: no idea", id="an-exception"),
    ],
)
def test_a_failure_of_a_score_names_the_plugin(method: Callable[..., Any], why: str) -> None:
    made = ranking(plugin("Own", score=method))
    with pytest.raises(PluginFault, match=f'running Score plugins: plugin "Own" failed with: {why}'):
        drive(made.raw_scores(CycleState(), pod(), ROWS))
    calls = made.profile.plugin_metrics.calls("Own", "Score")
    assert (calls.evaluations, calls.errors) == (2, 1)


def test_a_failure_of_normalize_names_the_plugin() -> None:
    made = ranking(plugin("Own", score=lambda state, pod, node: 7, normalize=raising))
    with pytest.raises(PluginFault, match='running Normalize on Score plugins: plugin "Own" failed with: ValueError'):
        drive(made.details(CycleState(), pod(), ROWS))
    assert made.profile.plugin_metrics.calls("Own", "ScoreExtensionNormalize").errors == 1


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param([5, 7], [5, 7], id="scores"),
        pytest.param([5, error("broken")], "broken", id="a-status"),
        pytest.param([PluginError("Own", "score", "killed"), 7], "killed", id="a-fault"),
    ],
)
def test_scores_from_worker_processes_are_those_of_the_plugin(answers: list[Any], expected: Any) -> None:
    made = ranking(plugin("Own", score=raising))
    own: Any = made.profile.plugins["Own"]
    called: list[Any] = []

    def call_elsewhere(method: str, state: Any, pod: Any, table: Any, rows: list[int]) -> list[Any]:
        called.append((method, pod.name, rows))
        return answers

    own.elsewhere, own.call_elsewhere = object(), call_elsewhere
    work = made.raw_scores(CycleState(), pod(), ROWS)
    if isinstance(expected, list):
        assert drive(work)["Own"].tolist() == expected
    else:
        with pytest.raises(PluginFault, match=f'running Score plugins: plugin "Own" failed with: .*{expected}'):
            drive(work)
    assert called == [("score", "p", [0, 1])]
