"""Tests of PreFilter: the stops of a stepped attempt, plugins without work for a pod, and the counted calls."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kschedd.framework.cycle_state import CycleState
from kschedd.framework.interface import PreFilterResult
from kschedd.framework.status import SKIP, Status, error, unresolvable, unschedulable
from kschedd.scheduling.attempt.pre_filtering import PreFiltering
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.profiles.plugin_metrics import PluginInstruments
from kschedd.scheduling.profiles.profile import build_profile
from tests.scheduling.test_scheduler import machine, narrowing, plugin, pod, saying


class Steps:
    """A stepper that records its stops."""

    def __init__(self) -> None:
        self.stops: list[tuple[str, str, str]] = []
        self.narrowed_to: frozenset[str] | None = None
        self.rejected_by: Status | None = None

    def before(self, point: str, plugin: str) -> Iterator[Any]:
        self.stops.append(("before", point, plugin))
        return iter(())

    def rejected(self, point: str, plugin: str) -> Iterator[Any]:
        self.stops.append(("rejected", point, plugin))
        return iter(())


def pre_filtering(*plugins: type[Any], instruments: PluginInstruments | None = None) -> PreFiltering:
    """Return the PreFilter plugins of a profile that has only these plugins there."""
    only = {"disabled": [{"name": "*"}], "enabled": [{"name": each.name} for each in plugins]}
    made = machine(*plugins, preFilter=only)
    [profile] = made.config.profiles
    metrics = (instruments or PluginInstruments()).of("p")
    return PreFiltering(build_profile(made.config, profile, made.registry, made.handle, metrics=metrics), made.cluster)


@pytest.mark.parametrize(
    ("method", "evaluations", "errors", "label"),
    [
        pytest.param(saying(None), 1, 0, "Success", id="success"),
        pytest.param(saying(SKIP), 0, 0, "Skip", id="skip"),
        pytest.param(saying(unschedulable("no")), 1, 0, "Unschedulable", id="a-rejection"),
        pytest.param(saying(error("broken")), 1, 1, "Error", id="an-error"),
        pytest.param(narrowing("a"), 1, 0, "Success", id="a-result"),
    ],
)
def test_calls_are_counted_and_timed_if_the_attempt_is_sampled(
    method: Callable[..., Any], evaluations: int, errors: int, label: str
) -> None:
    instruments = PluginInstruments()
    made = pre_filtering(plugin("Own", pre_filter=method), instruments=instruments)
    for instruments.sampling.plugins in (False, True):
        made.at_once(CycleState(), pod())
    calls = instruments.of("p").calls("Own", "PreFilter")
    assert (calls.evaluations, calls.errors) == (2 * evaluations, 2 * errors)
    timed = {labels: each.count for labels, each in instruments.durations.family().samples.items()}
    assert timed == {("Own", "PreFilter", label): 1}


def test_a_stepped_attempt_stops_before_each_plugin_and_after_each_rejection() -> None:
    steps: Any = Steps()
    made = pre_filtering(
        plugin("Narrows", pre_filter=narrowing("a", "b")),
        plugin("Rejects", pre_filter=saying(unschedulable("no"))),
        plugin("Further", pre_filter=narrowing("b", "c")),
        plugin("Never", pre_filter=saying(unresolvable("never"))),
        plugin("Last", pre_filter=saying(None)),
    )
    found = drive(made.run(CycleState(), pod(), steps))
    assert steps.stops == [
        ("before", "preFilter", "Narrows"),
        ("before", "preFilter", "Rejects"),
        ("rejected", "preFilter", "Rejects"),
        ("before", "preFilter", "Further"),
        ("before", "preFilter", "Never"),
        ("rejected", "preFilter", "Never"),
    ]
    assert steps.narrowed_to == {"b"}
    assert (found.status, steps.rejected_by) == (unresolvable("never").by("Never"),) * 2


def test_a_plugin_without_work_for_a_pod_is_skipped_without_a_call() -> None:
    called: list[str] = []

    def noting(state: Any, pod: Any, cluster: Any) -> None:
        called.append(pod.name)

    def idle_for(pod: Any) -> tuple[str, ...]:
        return {"idle": ("pre_filter",), "filters": ("filter",)}.get(pod.name, ())

    made = pre_filtering(plugin("Own", pre_filter=noting, idle_for=idle_for))
    skipped: dict[str, set[str]] = {}
    for name in ("idle", "filters", "busy"):
        state = CycleState()
        made.at_once(state, pod(name, priority=len(name)))
        skipped[name] = state.skip_filter
    assert skipped == {"idle": {"Own"}, "filters": set(), "busy": set()}
    assert called == ["filters", "busy"]


def test_all_but_some_plugins_run() -> None:
    made = pre_filtering(
        plugin("One", pre_filter=saying(unschedulable("no"))), plugin("Two", pre_filter=narrowing("a"))
    )
    left = made.all_but({"One"})
    assert [each.name for each, _ in left] == ["Two"]
    found = drive(made.run(CycleState(), pod(), None, left))
    assert (found.status, found.narrowed_by) == (None, {"Two"})
    assert found.narrowed is not None
    assert found.narrowed.node_names == {"a"}


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        pytest.param({}, "NodeAffinity", id="of-an-in-tree-plugin"),
        pytest.param({"nodeSelector": {"disk": "ssd"}}, "", id="one-that-needs-it"),
    ],
)
def test_a_result_that_needs_no_filter_names_the_in_tree_plugin(spec: dict[str, Any], names: str) -> None:
    exact = PreFilterResult(frozenset(("a", "b")), True)
    made = machine(plugin("Own", pre_filter=lambda state, pod, cluster: exact))
    named = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": named}}
    state = CycleState()
    found = made.schedulers["default-scheduler"].pre_filters.at_once(state, pod(affinity=affinity, **spec))
    assert found.narrowed_by == {"NodeAffinity", "Own"}
    assert state.already_filtered_by == names


def test_a_pod_rejected_by_pre_filter_has_this_status_on_all_nodes() -> None:
    status = unschedulable("no").by("Own")
    verdicts = pre_filtering(plugin("Own", pre_filter=saying(None))).no_verdicts(CycleState(), pod(), status)
    assert verdicts.rows_with(status.code).tolist() == [0, 1]
    assert (len(verdicts.rows), verdicts.default_status) == (0, status)
