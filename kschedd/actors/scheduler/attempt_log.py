"""Log lines and traces of attempts: the steps of slow attempts and, with `-v 10`, each plugin's score of each node.

Source: Kubernetes v1.34, scheduler/schedule_one.go (schedulePod, prioritizeNodes).
"""

from collections.abc import Mapping
from typing import Final

import structlog

from kschedd.framework.status import Code
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.filtering.node_local_plugins import PluginFault
from kschedd.scheduling.profiles.metrics import ERROR, SCHEDULED, UNSCHEDULABLE
from kschedd.telemetry.exporter import AttemptTrace, now_ns

log = structlog.get_logger("kschedd.scheduling")

# these run concurrently with attempts, so their times belong to other pods
_BESIDE: Final = ("PreBind", "Bind", "PostBind")


def log_slow(entry: QueuedPod, steps: Mapping[str, float], took_s: float) -> None:
    """Log a slow attempt with the time of each extension point."""
    of_steps = {point: f"{seconds * 1000:.1f}ms" for point, seconds in steps.items() if point not in _BESIDE}
    log.warning("slow_attempt", pod=entry.key, took=f"{took_s * 1000:.1f}ms", **of_steps)


def attempt_trace(
    driver: SchedulingDriver, entry: QueuedPod, result: ScheduleResult | FitError, took_s: float
) -> AttemptTrace:
    """Return the trace of the attempt that has just ended."""
    profile, node = entry.pod.scheduler_name, ""
    if isinstance(result, ScheduleResult):
        outcome, node = SCHEDULED, result.node_name
    else:
        outcome = ERROR if result.status.code is Code.ERROR else UNSCHEDULABLE
    steps = [step for step in driver.steps_of(profile).items() if step[0] not in _BESIDE]
    return AttemptTrace(entry.key, profile, entry.attempts, outcome, node, now_ns(), took_s, steps)


def log_scores(driver: SchedulingDriver, result: ScheduleResult | FitError) -> None:
    """Log each plugin's weighted score of each feasible node, and the totals, after the attempt."""
    if isinstance(result, FitError) or result.totals is None:
        return
    pod, names = result.pod, driver.machine.cluster.table.names
    try:
        scores = drive(
            driver.machine.schedulers[pod.scheduler_name].ranking.details(result.state, pod, result.feasible)
        )
    except PluginFault as fault:  # a plugin may return another result in the second call
        log.warning("scores_not_logged", pod=pod.key, why=fault.message)
        return
    nodes = [names[row] for row in result.feasible.tolist()]
    for plugin, weighted in scores.weighted.items():
        for node, score in zip(nodes, weighted.tolist(), strict=True):
            log.debug("Plugin scored node for pod", pod=pod.key, plugin=plugin, node=node, score=score)
    for node, total in zip(nodes, result.totals.tolist(), strict=True):
        log.debug("Calculated node's final score for pod", pod=pod.key, node=node, score=total)
