"""Tests of the metrics of profiles and of their plugins, without attempts."""

from typing import Any

import numpy as np
import pytest

from kschedd.framework.status import SKIP, Code, Status, unschedulable
from kschedd.metrics import catalogue
from kschedd.metrics.instruments import MOST_UNSORTED, Distribution, MetricFamily
from kschedd.scheduling.profiles.metrics import NO_TIMES, AttemptEnded, SchedulingMetrics
from kschedd.scheduling.profiles.plugin_metrics import FILTER, PluginInstruments, PluginMetrics, Sampling

POINTS = "scheduler_framework_extension_point_duration_seconds"
DURATIONS = "scheduler_plugin_execution_duration_seconds"


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def shown(families: list[MetricFamily]) -> dict[str, dict[Any, Any]]:
    """Return the samples of each family; for histograms, the number of observations and their sum."""
    return {
        family.metric.name: {
            labels: (each.count, round(each.sum, 6)) if isinstance(each, Distribution) else each
            for labels, each in family.samples.items()
        }
        for family in families
    }


def of(metrics: SchedulingMetrics) -> dict[str, dict[Any, Any]]:
    return shown(metrics.families({}, {}))


def points(metrics: SchedulingMetrics) -> dict[str, tuple[int, float]]:
    """Return the successful calls of each extension point in the profile `p`, and their total time."""
    return {point: found for (point, status, _), found in of(metrics)[POINTS].items() if status == "Success"}


def test_each_extension_point_takes_the_time_since_the_one_before() -> None:
    clock = Clock()
    times = SchedulingMetrics(clock).times("p")
    began = times.start()
    for point, took_s in (("PreFilter", 1.0), ("Filter", 2.0)):
        clock.now_s += took_s
        began = times.ended(point, began)
    assert began == 3.0
    assert times.steps == {"PreFilter": 1.0, "Filter": 2.0}
    clock.now_s += 4
    times.ended("PreFilter", began)
    assert times.steps == {"PreFilter": 4.0}, "of the latest attempt only"


def test_the_end_of_several_calls_is_recorded_for_each_start() -> None:
    clock = Clock()
    metrics = SchedulingMetrics(clock)
    clock.now_s = 10.0
    metrics.times("p").ended_each("Bind", [9.0, 7.5])
    assert points(metrics) == {"Bind": (2, 3.5)}


def test_skipped_extension_points_count_without_time() -> None:
    metrics = SchedulingMetrics(Clock())
    times = metrics.times("p")
    times.skipped(("Reserve", "Permit"))
    times.skipped(("Reserve", "Permit"), 2)
    times.skipped(("Permit",))
    assert points(metrics) == {"Reserve": (3, 0.0), "Permit": (4, 0.0)}
    assert points(metrics) == {"Reserve": (3, 0.0), "Permit": (4, 0.0)}, "counted once"


def test_an_attempt_with_cached_results_has_every_extension_point_up_to_its_last_one() -> None:
    metrics = SchedulingMetrics(Clock())
    times = metrics.times("p")
    times.repeated(0.25)
    assert times.steps == {"Filter": 0.25}
    assert points(metrics) == {"PreFilter": (1, 0.0), "Filter": (1, 0.25)}
    times.repeated(0.25, 0.5)
    assert times.steps == {"Filter": 0.25, "Score": 0.5}
    assert points(metrics) == {"PreFilter": (2, 0.0), "Filter": (2, 0.5), "PreScore": (1, 0.0), "Score": (1, 0.5)}


@pytest.mark.parametrize("score_s", [None, 0.5])
def test_several_equal_attempts_count_as_one_after_the_other(score_s: float | None) -> None:
    together, single = SchedulingMetrics(Clock()), SchedulingMetrics(Clock())
    together.times("p").repeated_several(3, 0.25, score_s)
    for _ in range(3):
        single.times("p").repeated(0.25, score_s)
    assert points(together) == points(single)
    assert points(together)["Filter"] == (3, 0.75)


def test_the_times_of_attempts_are_added_to_the_histograms_in_batches() -> None:
    metrics = SchedulingMetrics(Clock())
    times = metrics.times("p")
    for number in range(MOST_UNSORTED - 1):
        times.repeated(0.25, 0.5 if number % 2 else None)
    assert metrics.point_s.family().samples == {}
    times.repeated(0.25)
    assert metrics.point_s.family().samples.keys() == {
        (point, "Success", "p") for point in ("PreFilter", "Filter", "PreScore", "Score")
    }
    for _ in range(MOST_UNSORTED - 1):
        metrics.bound("p", 1.0, 1, 2.0)
    assert metrics.attempts.family().samples == {}
    metrics.bound("p", 1.0, 1, 2.0)
    assert metrics.attempts.family().samples == {("scheduled", "p"): MOST_UNSORTED}


def test_bound_pods_count_by_their_number_of_attempts() -> None:
    metrics = SchedulingMetrics(Clock())
    for attempts in (1, 1, 2, 14, 15, 16):
        metrics.bound("p", 1.0, attempts, 10.0 * attempts)
    metrics.bound("q", 2.0, 1, 5.0)
    found = of(metrics)
    assert found["scheduler_schedule_attempts_total"] == {("scheduled", "p"): 6, ("scheduled", "q"): 1}
    assert found["scheduler_scheduling_attempt_duration_seconds"]["scheduled", "p"] == (6, 6.0)
    assert found["scheduler_pod_scheduling_attempts"] == {(): (7, 1 + 1 + 2 + 14 + 15 + 16 + 1)}
    assert found["scheduler_pod_scheduling_sli_duration_seconds"] == {
        ("1",): (3, 25.0),
        ("2",): (1, 20.0),
        ("14",): (1, 140.0),
        ("15+",): (2, 310.0),
    }
    assert of(metrics) == found, "counted once"


def test_pods_with_many_different_numbers_of_attempts_are_all_counted() -> None:
    metrics = SchedulingMetrics(Clock())
    for attempts in range(1, 41):
        metrics.bound("p", 1.0, attempts, 1.0)
    assert metrics.attempts.family().samples == {("scheduled", "p"): 30}, "15 numbers are kept at a time"
    assert of(metrics)["scheduler_schedule_attempts_total"] == {("scheduled", "p"): 40}


def ended(**fields: Any) -> dict[str, dict[Any, Any]]:
    metrics = SchedulingMetrics(Clock())
    facts = {"of_binding": False, "preempted": False, "victims": 0, "violations": 0, "rejections": ()}
    metrics.found_no_node(AttemptEnded(**{"profile": "p", "result": "unschedulable", "took_s": 0.5, **facts, **fields}))
    return of(metrics)


def test_an_attempt_without_a_node_counts_with_its_time_its_preemption_and_its_reasons() -> None:
    found = ended(preempted=True, victims=3, violations=2, rejections=[("F", "full", 5), ("G", "taint", 1)])
    assert found["scheduler_schedule_attempts_total"] == {("unschedulable", "p"): 1}
    assert found["scheduler_scheduling_attempt_duration_seconds"] == {("unschedulable", "p"): (1, 0.5)}
    assert found["scheduler_scheduling_algorithm_duration_seconds"] == {(): (1, 0.5)}
    assert found["scheduler_preemption_attempts_total"] == {(): 1}
    assert found["scheduler_preemption_victims"] == {(): (1, 3)}
    assert found["kschedd_filter_rejections_total"] == {("F", "full"): 5, ("G", "taint"): 1}
    assert found[catalogue.BUDGET_VIOLATIONS.name] == {("pod",): 2}


def test_an_attempt_without_preemption_and_a_failed_binding_count_less() -> None:
    found = ended()
    assert found["scheduler_preemption_attempts_total"].get((), 0) == 0
    assert found["scheduler_preemption_victims"] == {(): (0, 0)}
    found = ended(of_binding=True, result="error")
    assert found["scheduler_schedule_attempts_total"] == {("error", "p"): 1}
    assert found["scheduler_scheduling_algorithm_duration_seconds"] == {(): (0, 0)}, "of its attempt, counted before"


def test_the_cycles_trials_and_evictions_of_pod_groups() -> None:
    metrics = SchedulingMetrics(Clock())
    metrics.group_ended("scheduled", "p", 1.5)
    metrics.tried_in_placement(True, "p", 0.25)
    metrics.tried_in_placement(False, "p", 0.5)
    metrics.placements.add("p", amount=2)
    metrics.group_preempted(3, 2, 1)
    metrics.group_preempted(1, 0, 0)
    metrics.found_nodes(0.5, 3)
    found = of(metrics)
    assert found[catalogue.POD_GROUP_ATTEMPTS.name] == {("scheduled", "p"): 1}
    assert found[catalogue.POD_GROUP_ATTEMPT_DURATION.name] == {("scheduled", "p"): (1, 1.5)}
    assert found[catalogue.GENERATED_PLACEMENTS.name] == {("p",): 2}
    assert found[catalogue.PLACEMENT_EVALUATIONS.name] == {("feasible", "p"): 1, ("infeasible", "p"): 1}
    assert found[catalogue.PLACEMENT_EVALUATION_DURATION.name] == {
        ("feasible", "p"): (1, 0.25),
        ("infeasible", "p"): (1, 0.5),
    }
    assert found[catalogue.WORKLOAD_VICTIMS.name] == {(): (2, 4)}
    assert found[catalogue.WORKLOAD_DISRUPTIONS.name] == {("podgroup",): (1, 2)}
    assert found[catalogue.BUDGET_VIOLATIONS.name] == {("podgroup",): 1}
    assert found[catalogue.ALGORITHM_DURATION.name] == {(): (3, 1.5)}


def test_without_metrics_no_time_is_measured() -> None:
    assert NO_TIMES.start() == NO_TIMES.ended("Filter", 5.0) == 0.0
    assert NO_TIMES.steps == {}


def test_metrics_of_a_profile_alone_have_their_own_instruments() -> None:
    one, other = PluginMetrics(), PluginMetrics()
    assert one.sampling is not other.sampling
    calls = one.calls("P", FILTER)
    calls.ended(calls.start())
    assert (calls.evaluations, other.calls("P", FILTER).evaluations) == (1, 0)


def test_the_sampled_attempts_depend_on_the_seed_which_is_0_by_default() -> None:
    def drawn(sampling: Sampling) -> list[tuple[bool, bool]]:
        sampling.shares = (0.5, 0.25)
        found = []
        for _ in range(100):
            sampling.next()
            found.append((sampling.plugins, sampling.scores))
        return found

    assert drawn(SchedulingMetrics(Clock()).sampling) == drawn(Sampling()) == drawn(Sampling(0)) != drawn(Sampling(1))


@pytest.mark.parametrize(("shares", "drawn"), [((1.0, 1.0), True), ((0.0, 0.0), False)])
def test_all_or_no_attempts_can_be_sampled(shares: tuple[float, float], drawn: bool) -> None:
    sampling = Sampling()
    sampling.shares = shares
    for _ in range(50):
        sampling.next()
        assert (sampling.plugins, sampling.scores) == (drawn, drawn)


def test_scores_due_within_a_run_are_sampled_at_the_next_single_attempt() -> None:
    sampling = Sampling()
    sampling.shares = (1.0, 0.25)
    sampling.next_several(4)
    assert (sampling.plugins, sampling.scores, sampling.due) == (True, False, True)
    sampling.shares = (0.0, 0.0)
    sampling.next_several(4)
    assert (sampling.plugins, sampling.due) == (False, True), "until a single attempt begins"
    sampling.next()
    assert (sampling.scores, sampling.due) == (True, False)
    sampling.next()
    assert not sampling.scores


def test_a_run_is_sampled_as_often_as_its_single_attempts() -> None:
    sampling = Sampling()
    sampling.shares = (0.0, 0.01)
    due = 0
    for _ in range(1000):
        sampling.next_several(20)
        due += sampling.due
        sampling.next()
    assert 150 < due < 250


def instruments(sampled: bool = True) -> tuple[PluginInstruments, Clock]:
    clock = Clock()
    sampling = Sampling(timer=clock)
    sampling.plugins = sampled
    return PluginInstruments(sampling), clock


@pytest.mark.parametrize(
    ("answer", "status", "counts", "errors"),
    [
        pytest.param(None, "Success", 1, 0, id="none"),
        pytest.param(50, "Success", 1, 0, id="a-score"),
        pytest.param(SKIP, "Skip", 0, 0, id="skip"),
        pytest.param(unschedulable("full"), "Unschedulable", 1, 0, id="rejected"),
        pytest.param(Status(Code.ERROR, ("no",)), "Error", 1, 1, id="error"),
    ],
)
@pytest.mark.parametrize("sampled", [False, True])
def test_a_call_counts_by_its_answer_and_is_timed_in_sampled_attempts(
    answer: Any, status: str, counts: int, errors: int, sampled: bool
) -> None:
    of_all, clock = instruments(sampled)
    calls = of_all.of("p").calls("F", "Filter")
    began = calls.start()
    clock.now_s = 2.0
    calls.answered(began, answer)
    assert (calls.evaluations, calls.errors) == (counts, errors)
    assert shown(of_all.families())[DURATIONS] == ({("F", "Filter", status): (1, 2.0)} if sampled else {})


def test_a_call_counts_the_nodes_that_it_evaluated() -> None:
    of_all, _ = instruments()
    calls = of_all.of("p").calls("F", "Filter")
    calls.ended(calls.start())
    calls.ended(calls.start(), evaluations=4)
    assert calls.evaluations == 5


def test_evaluations_are_shown_for_the_extension_points_that_evaluate_nodes_or_pods() -> None:
    of_all, _ = instruments()
    for point in ("PreFilter", "Filter", "PreScore", "Score", "Reserve", "PreBind", "Bind"):
        of_all.of("p").calls("F", point).ended(None)
    of_all.of("p").calls("G", "Filter")
    found = shown(of_all.families())["scheduler_plugin_evaluation_total"]
    assert found == {("F", point, "p"): 1 for point in ("PreFilter", "Filter", "PreScore", "Score")}


def test_errors_of_volume_binding_are_shown_by_stage() -> None:
    of_all, _ = instruments()
    for profile in "pq":
        for point, errors in (("Filter", 1), ("Reserve", 2), ("PreBind", 3), ("Bind", 4), ("PreFilter", 5)):
            for _ in range(errors):
                of_all.of(profile).calls("VolumeBinding", point).ended(None, "Error")
    of_all.of("p").calls("Other", "Reserve").ended(None, "Error")
    found = shown(of_all.families())["scheduler_volume_scheduling_stage_error_total"]
    assert found == {("predicate",): 2, ("assume",): 4, ("bind",): 6}


def test_the_margin_of_a_selected_node_is_its_lead_over_the_best_other_total() -> None:
    of_all, _ = instruments()
    of_all.of("p").chosen(np.array([7, 20, 15]), 20, 1)
    of_all.of("q").chosen(np.array([20, 20, 15]), 20, 2)
    of_all.of("only").chosen(np.array([20]), 20, 1)
    assert shown(of_all.families())["kschedd_score_margin"] == {("p",): (1, 5), ("q",): (1, 0), ("only",): (1, 20)}


def test_the_counters_of_a_plugin_and_of_a_profile_are_the_same_objects_each_time() -> None:
    of_all, _ = instruments()
    profile = of_all.of("p")
    assert of_all.of("p") is profile
    assert profile.calls("F", "Filter") is profile.calls("F", "Filter") is not profile.calls("F", "Score")
    metrics = SchedulingMetrics(Clock())
    assert metrics.times("p") is metrics.times("p")
    assert metrics.plugins_of("p") is metrics.plugins_of("p")


def test_scores_cached_verdicts_and_victim_searches_are_shown() -> None:
    of_all, _ = instruments()
    profile = of_all.of("p")
    profile.cache.hits, profile.cache.misses = 5, 3
    profile.scored("S", 70)
    profile.searched_victims("pod", "Success", 0.5)
    found = shown(of_all.families())
    assert found["kschedd_evaluation_cache_nodes_total"] == {("p", "hit"): 5, ("p", "miss"): 3}
    assert found["kschedd_plugin_score"] == {("S", "p"): (1, 70)}
    assert found[catalogue.PREEMPTION_EVALUATION.name] == {("pod", "Success"): (1, 0.5)}
