"""Where scheduling is stopped, in plain values: the attempt as far as it has come.

For reading by people and programs; a function of the driver, which is not changed.
"""

import re
from collections.abc import Mapping
from typing import Any

from kschedd.api.pods import Pod
from kschedd.framework.cycle_state import CycleState
from kschedd.scheduling.debug.breakpoints import Breakpoint, StopPoint
from kschedd.scheduling.debug.stepper import Stepper
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.gangs.trial import TriedMember
from kschedd.store.times import stamp

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_LONGEST_VALUE = 200  # characters of one value of the cycle state


def stopped_at(driver: SchedulingDriver) -> dict[str, Any] | None:
    """In short, for a status: at which pod, extension point and plugin; None while scheduling runs."""
    stop = driver.debugger.stop
    if stop is None:
        return None
    point, head = stop.point, driver.first_tried
    where = {
        "why": stop.why,
        "since": stamp(stop.since_s),
        "breakpoint": stop.breakpoint,
        "pod": None if head is None else head.key,
        "point": None,
        "plugin": None,
        "outcome": None,
        "node": None,
    }
    return where if point is None else {**where, "pod": point.pod.key, **_place(point)}


def _place(point: StopPoint) -> dict[str, Any]:
    return {
        "point": point.point or None,
        "plugin": point.plugin or None,
        "outcome": point.outcome or None,
        "node": point.node or None,
    }


def debugger_state(driver: SchedulingDriver) -> dict[str, Any]:
    """Who holds the debugger, what it waits for, and where it is stopped."""
    debugger = driver.debugger
    return {
        "stopped": stopped_at(driver),
        "running_until": None if debugger.until is None else debugger.until.what,
        "holder": debugger.holder or None,
        "keep": debugger.keep,
        "breakpoints": len(debugger.breakpoints),
    }


def described_breakpoint(breakpoint: Breakpoint, known: "BreakpointTargets") -> dict[str, Any]:
    spec = breakpoint.spec
    return {
        "id": breakpoint.number,
        "pod": spec.pod or None,
        "selector": spec.selector or None,
        "node": spec.node or None,
        "plugin": spec.plugin or None,
        "point": spec.point or None,
        "outcome": spec.outcome or None,
        "condition": spec.condition or None,
        "enabled": breakpoint.enabled,
        "disabled_because": breakpoint.disabled_because,
        "hits": breakpoint.hits,
        "ignore": breakpoint.ignore,
        "once": breakpoint.once,
        "warnings": known.unknown_in(breakpoint),
    }


class BreakpointTargets:
    """What there is that a breakpoint may name."""

    def __init__(self, driver: SchedulingDriver) -> None:
        self._nodes = driver.machine.cluster.table.row_of
        self._pods = driver.pending.pods
        self._plugins = {name for profile in driver.machine.config.profiles for name in profile.names()}

    def unknown_in(self, breakpoint: Breakpoint) -> list[str]:
        """What the breakpoint names that is not there now; it may come."""
        spec, missing = breakpoint.spec, []
        if spec.node and spec.node not in self._nodes:
            missing.append(f'there is no node "{spec.node}" now')
        if spec.plugin and spec.plugin not in self._plugins:
            missing.append(f'no profile has a plugin "{spec.plugin}"')
        if spec.pod and not any(sign in spec.pod for sign in "*?[") and spec.pod not in self._pods:
            missing.append(f'no pod "{spec.pod}" is pending now')
        return missing


def where(driver: SchedulingDriver, most: int) -> dict[str, Any]:
    """All that is known at the stop; at most so many nodes and pods of each list."""
    debugger = driver.debugger
    members = [_member(one) for one in driver.group_tried[:most]]
    shown: dict[str, Any] = {**debugger_state(driver), "attempt": None, "group": members or None}
    stop, stepper = debugger.stop, driver.stepper
    if stop is None or stop.point is None or stepper is None or stepper.cycle != stop.point.cycle:
        return shown
    shown["attempt"] = _attempt(driver, stepper, most)
    return shown


def _member(tried: TriedMember) -> dict[str, Any]:
    """What came of a pod of the group whose cycle is stopped."""
    node, failed = tried.node_name, tried.failed
    return {"pod": tried.entry.key, "node": node or None, "why": None if failed is None else failed.message}


def _attempt(driver: SchedulingDriver, stepper: Stepper, most: int) -> dict[str, Any]:
    verdicts, left = stepper.verdicts_so_far(), stepper.nodes_left()
    names = stepper.table.names
    rejected: list[dict[str, Any]] = []
    if verdicts is not None:
        for name, status in verdicts.by_node():
            if status is not None and len(rejected) < most:
                rejected.append({"node": name, "plugin": status.plugin or None, "reasons": list(status.reasons)})
    return {
        "number": stepper.attempt,
        "nodes": driver.machine.cluster.table.node_count,
        "narrowed_to": None if stepper.narrowed_to is None else sorted(stepper.narrowed_to)[:most],
        "pre_filter": None
        if stepper.rejected_by is None
        else {"plugin": stepper.rejected_by.plugin, "reasons": list(stepper.rejected_by.reasons)},
        "left": None if left is None else {"count": len(left), "nodes": [names[row] for row in left[:most].tolist()]},
        "rejected": None if verdicts is None else {"count": len(verdicts), "nodes": rejected},
        "scores": _scores(stepper, most),
        "cycle_state": {} if stepper.state is None else _cycle_state(stepper.state),
        "victims": [_victim(pod) for pod in list(stepper.victims)[:most]],
        "nominated_node": stepper.nominated_node or None,
        "forced": stepper.forced or None,
        "vetoed": sorted(stepper.vetoed),
        "replaced": [
            {"node": node, "plugin": plugin, "score": score}
            for (plugin, node), score in sorted(stepper.replaced.items())
        ],
    }


def _scores(stepper: Stepper, most: int) -> list[dict[str, Any]]:
    """Of each node that is scored, the best first: each plugin's score so far, and the total so far."""
    if stepper.scoring is None or not stepper.scores:
        return []
    totals = stepper.totals()
    best = sorted(range(len(totals)), key=lambda place: -int(totals[place]))[:most]
    normalized = {name: stepper.normalized(name) for name in stepper.scores}
    return [
        {
            "node": stepper.table.names[int(stepper.scoring[place])],
            "total": int(totals[place]),
            "plugins": {
                name: {
                    "raw": int(scores.raw[place]),
                    "score": int(normalized[name][place]),
                    "weight": scores.weight,
                }
                for name, scores in stepper.scores.items()
            },
        }
        for place in best
    ]


def _cycle_state(state: CycleState) -> dict[str, Any]:
    return {
        "data": {name: _text(value) for name, value in sorted(state.data.items())},
        "skip_filter": sorted(state.skip_filter),
        "skip_score": sorted(state.skip_score),
    }


def _text(value: object) -> str:
    """What a plugin keeps, as text, without addresses, which are others in each run: it may be anything."""
    try:
        text = _ADDRESS.sub("", repr(dict(value)) if isinstance(value, Mapping) else repr(value))
    except Exception as fault:  # a plugin's: its object cannot be shown
        return f"(cannot be shown: {type(fault).__name__})"
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def _victim(pod: Pod) -> dict[str, Any]:
    return {"pod": pod.key, "node": pod.node_name, "priority": pod.priority}
