"""Counted calls of one plugin for one pod and node; an exception becomes a Status."""

from collections.abc import Callable
from typing import TypeVar

from kschedd.api.pods import Pod
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.interface import Plugin
from kschedd.framework.status import Status, error, fault_text
from kschedd.scheduling.profiles.profile import Framework

T = TypeVar("T")


def contained(
    framework: Framework,
    point: str,
    plugin: Plugin,
    method: Callable[[CycleState, Pod, str], T],
    state: CycleState,
    pod: Pod,
    node_name: str,
) -> T | Status:
    """Call a plugin at this extension point. Convert an exception to an Error status that names the plugin."""
    calls = framework.plugin_metrics.calls(plugin.name, point)
    began = calls.start()
    answer: T | Status
    try:
        answer = method(state, pod, node_name)
    except Exception as fault:  # a plugin's exception fails the attempt, not the daemon
        answer = error(fault_text(fault)).by(plugin.name)
    calls.answered(began, answer[0] if isinstance(answer, tuple) else answer)
    return answer
