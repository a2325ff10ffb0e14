"""Tests of counted plugin calls whose exceptions become a Status."""

from collections.abc import Callable
from typing import Any

import pytest

from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Code, Status, unschedulable
from kschedd.framework.writes import Bind, Plan
from kschedd.metrics.instruments import Labels
from kschedd.scheduling.profiles.contained import contained
from kschedd.scheduling.profiles.plugin_metrics import CallCounter, PluginInstruments
from tests.scheduling.test_scheduler import machine, plugin, pod

PLAN = Plan((Bind("default", "p", "uid-p", "a"),))


class Calls:
    """The calls of Reserve of a plugin with this method."""

    def __init__(self, method: Callable[..., Any], *, timed: bool = False) -> None:
        self._plugin = plugin("Own", reserve=method)()
        self._instruments = PluginInstruments()
        self._instruments.sampling.plugins = timed
        self._framework = machine().schedulers["default-scheduler"].profile
        self._framework.plugin_metrics = self._instruments.of("p")

    @property
    def counter(self) -> CallCounter:
        return self._framework.plugin_metrics.calls("Own", "Reserve")

    def answer(self) -> Any:
        """Call the plugin once and return its answer."""
        return contained(self._framework, "Reserve", self._plugin, self._plugin.reserve, CycleState(), pod(), "a")

    def timed(self) -> dict[Labels, int]:
        """Return the number of timed calls by their labels."""
        return {labels: each.count for labels, each in self._instruments.durations.family().samples.items()}


def raises(state: Any, pod: Any, node_name: str) -> None:
    raise ValueError("no idea")


@pytest.mark.parametrize("answer", [None, PLAN, unschedulable("no"), (Status(Code.WAIT), 5.0)], ids=str)
def test_the_answer_of_the_plugin_is_returned(answer: Any) -> None:
    assert Calls(lambda state, pod, node_name: answer).answer() is answer


def test_the_plugin_is_called_with_the_pod_and_the_node() -> None:
    calls = Calls(lambda state, pod, node_name: unschedulable(f"{pod.name} on {node_name}"))
    assert calls.answer().message == "p on a"


def test_an_exception_is_an_error_of_the_plugin_and_counts_as_one() -> None:
    calls = Calls(raises)
    answer = calls.answer()
    assert (answer.code, answer.plugin) == (Code.ERROR, "Own")
    assert "ValueError: no idea" in answer.message
    assert calls.counter.errors == 1


@pytest.mark.parametrize(
    ("method", "label"),
    [
        pytest.param(lambda state, pod, node_name: None, "Success", id="none"),
        pytest.param(lambda state, pod, node_name: PLAN, "Success", id="a-plan"),
        pytest.param(lambda state, pod, node_name: unschedulable("no"), "Unschedulable", id="a-status"),
        pytest.param(lambda state, pod, node_name: (Status(Code.WAIT), 5.0), "Wait", id="a-status-with-a-time"),
        pytest.param(raises, "Error", id="an-exception"),
    ],
)
def test_calls_of_sampled_attempts_only_are_timed_by_the_code_of_their_status(
    method: Callable[..., Any], label: str
) -> None:
    calls = Calls(method, timed=True)
    calls.answer()
    assert calls.timed() == {("Own", "Reserve", label): 1}
    calls.counter.sampling.plugins = False
    calls.answer()
    assert calls.timed() == {("Own", "Reserve", label): 1}
    assert calls.counter.evaluations == 2
