"""Tests of the metrics of attempts and bindings in the scheduling driver."""

from typing import Any

from kschedd.api.pods import Pod
from kschedd.framework.status import Code, Status, error
from kschedd.metrics.catalogue import PREEMPTION_EVALUATION
from kschedd.metrics.instruments import Distribution
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.inputs import BeginAttempt, CompleteAttempt, PlansExecuted, PluginCalled
from kschedd.scheduling.profiles.metrics import SchedulingMetrics
from kschedd.scheduling.profiles.plugin_metrics import Sampling
from tests.scheduling.driven import NOW, Driven, node, pod


def shown(driver: SchedulingDriver) -> dict[str, Any]:
    """Return the samples of each family; for histograms, the number of observations and their sum."""
    return {
        family.metric.name: {
            labels: (each.count, round(each.sum, 6)) if isinstance(each, Distribution) else each
            for labels, each in family.samples.items()
        }
        for family in driver.metrics()
    }


def test_a_pod_that_is_bound() -> None:
    run = Driven()
    run.see(node(), pod("p"))
    entry = run.entry("p")
    entry.initial_attempt = int((NOW - 5) * 1e9)
    attempt = run.driver.step(BeginAttempt(entry))
    assert attempt is not None
    run.driver.step(CompleteAttempt(entry, drive(attempt), 0.25), NOW)
    assert shown(run.driver)["scheduler_goroutines"] == {("binding",): 1}
    run.driver.step(PlansExecuted((("uid-p", None),)), NOW + 1)
    found = shown(run.driver)
    assert found["scheduler_schedule_attempts_total"] == {("scheduled", "default-scheduler"): 1}
    assert found["scheduler_scheduling_attempt_duration_seconds"] == {("scheduled", "default-scheduler"): (1, 1.25)}
    assert found["scheduler_scheduling_algorithm_duration_seconds"] == {(): (1, 0.25)}
    assert found["scheduler_pod_scheduling_sli_duration_seconds"] == {("1",): (1, 6.0)}
    assert found["scheduler_pod_scheduling_attempts"] == {(): (1, 1)}
    assert found["scheduler_cache_size"] == {("nodes",): 1, ("pods",): 1, ("assumed_pods",): 1}
    points = {labels[:2] for labels in found["scheduler_framework_extension_point_duration_seconds"]}
    assert points == {
        (point, "Success") for point in ("PreFilter", "Filter", "Reserve", "Permit", "PreBind", "Bind", "PostBind")
    }


def test_a_pod_that_finds_no_node() -> None:
    run = Driven()
    run.see(node("a"), node("b"), pod("p", cpu="2"))
    run.attempt("p")
    found = shown(run.driver)
    assert found["scheduler_schedule_attempts_total"] == {("unschedulable", "default-scheduler"): 1}
    assert found["scheduler_preemption_attempts_total"] == {(): 1}
    assert found["scheduler_preemption_victims"] == {(): (0, 0)}
    assert found["kschedd_filter_rejections_total"] == {("NodeResourcesFit", "Insufficient cpu"): 2}
    assert ("PostFilter", "Unschedulable", "default-scheduler") in found[
        "scheduler_framework_extension_point_duration_seconds"
    ]


def test_a_preemption_counts_its_victims() -> None:
    run = Driven()
    run.see(node(), pod("low", on="n"), pod("high", priority=10))
    run.attempt("high")
    found = shown(run.driver)
    assert found["scheduler_preemption_victims"] == {(): (1, 1)}
    searches = {labels: count for labels, (count, _) in found[PREEMPTION_EVALUATION.name].items()}
    assert searches == {("pod", "Success"): 1}, "of DefaultPreemption, and of no other PostFilter plugin"


class _Fails:
    name = "Fails"

    def reserve(self, state: object, pod: object, node_name: str) -> Status:
        return Status(Code.ERROR, ("no",))

    def unreserve(self, state: object, pod: object, node_name: str) -> None: ...


def test_an_attempt_that_ends_in_an_error() -> None:
    run = Driven(_Fails)
    run.see(node(), pod("p"))
    run.attempt("p")
    found = shown(run.driver)
    assert found["scheduler_schedule_attempts_total"] == {("error", "default-scheduler"): 1}
    times = found["scheduler_framework_extension_point_duration_seconds"]
    assert times["Reserve", "Error", "default-scheduler"] == (1, 0.001)


def test_every_plugins_score_of_the_chosen_node_and_the_margin_are_noted_where_the_attempt_is_drawn() -> None:
    run = Driven()
    run.see(node("a"), node("b"), pod("there", on="a", cpu="500m"))
    run.metrics.sampling.shares = (1.0, 1.0)
    for name in ("p", "q"):
        run.see(pod(name, cpu="100m"))
        run.attempt(name)
    found = shown(run.driver)
    profile = "default-scheduler"
    scores = {plugin: of for (plugin, _), of in found["kschedd_plugin_score"].items()}
    assert scores["NodeResourcesFit"][0] == 2
    assert scores["TaintToleration"] == (2, 600)  # neither node has taints: 100 times the weight of 3, twice
    [(count, _)] = found["kschedd_score_margin"].values()
    assert count == 2
    evaluated = found["scheduler_plugin_evaluation_total"]
    assert evaluated["NodeResourcesFit", "Filter", profile] >= 2
    durations = found["scheduler_plugin_execution_duration_seconds"]
    assert durations["NodeResourcesFit", "Filter", "Success"][0] >= 1
    assert durations["TaintToleration", "ScoreExtensionNormalize", "Success"][0] == 2
    assert durations["DefaultBinder", "Bind", "Success"][0] == 2


def test_the_decisions_are_the_same_whether_scores_are_noted_or_not() -> None:
    chosen: list[list[str]] = []
    for noted in (False, True):
        chosen.append([])
        run = Driven()
        run.metrics.sampling.shares = (1.0, 1.0) if noted else (0.0, 0.0)
        run.see(*(node(f"n{number}") for number in range(5)))
        for number in range(12):
            run.see(pod(f"p{number}", cpu="200m"))
            outcome = run.attempt(f"p{number}")
            assert isinstance(outcome, AssumedPod)
            chosen[-1].append(outcome.pod.node_name)
    assert chosen[0] == chosen[1]


def test_a_tenth_of_the_attempts_is_drawn_from_the_seed() -> None:
    def drawn(seed: int) -> list[bool]:
        sampling = Sampling(seed, lambda: 0.0)
        found = []
        for _ in range(1000):
            sampling.next()
            found.append(sampling.plugins)
        return found

    assert drawn(1) == drawn(1) != drawn(2)
    assert 70 < sum(drawn(1)) < 130


def test_what_the_evaluation_cache_knew_is_told_from_what_plugins_were_asked_for() -> None:
    run = Driven()
    run.see(node("a"), node("b"))
    for number in range(4):
        run.see(pod(f"p{number}", cpu="10m"))
        run.attempt(f"p{number}")
    nodes = shown(run.driver)["kschedd_evaluation_cache_nodes_total"]
    # The first attempt of a signature does not use the cache; later attempts re-evaluate the node that got a pod.
    assert nodes["default-scheduler", "hit"] > 0
    assert nodes["default-scheduler", "miss"] >= 2


def test_an_error_of_volume_binding_counts_by_its_stage() -> None:
    metrics = SchedulingMetrics(lambda: 0.0)
    metrics.plugins_of("one").calls("VolumeBinding", "Reserve").answered(None, Status(Code.ERROR, ("no",)))
    metrics.plugins_of("two").calls("VolumeBinding", "Reserve").answered(None, Status(Code.ERROR, ("no",)))
    found = {family.metric.name: family.samples for family in metrics.families({}, {})}
    assert found["scheduler_volume_scheduling_stage_error_total"] == {("assume",): 2}


class _AroundBind:
    name = "AroundBind"

    def pre_bind(self, state: object, pod: Pod, node_name: str) -> Status | None:
        return error("broken") if pod.name == "bad" else None

    def post_bind(self, state: object, pod: Pod, node_name: str) -> None: ...


def test_the_extension_points_around_bind_are_timed_with_their_results() -> None:
    run = Driven(_AroundBind)
    run.see(node(cpu="4"), pod("good"), pod("bad"))
    for name in ("good", "bad"):
        run.attempt(name)
        [wanted] = run.driver.take_effects().calls
        run.driver.step(PluginCalled(wanted.uid, wanted.run()), NOW)
    run.driver.step(PlansExecuted((("uid-good", None),)), NOW)
    run.called()
    times = shown(run.driver)["scheduler_framework_extension_point_duration_seconds"]
    found = {(point, result): number for (point, result, _), (number, _) in times.items()}
    assert found["PreBind", "Success"] == found["PreBind", "Error"] == 1
    assert found["Bind", "Success"] == found["PostBind", "Success"] == 1
