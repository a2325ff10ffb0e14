"""Views for clients of a stopped attempt and of the debugger.

The functions read the driver and do not change it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated

import attrs

from kschedd.answers import extended
from kschedd.api.text.times import stamp
from kschedd.framework.cycle_state import CycleState
from kschedd.scheduling.debug.breakpoints import Breakpoint
from kschedd.scheduling.debug.stepper import Stepper
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.gangs.trial import TriedMember

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_LONGEST_VALUE = 200  # maximum number of characters of a value in the cycle state


NodeName = Annotated[str, "node"]
Text = Annotated[str, "text"]


@attrs.frozen
class StopAnswer:
    why: str
    since: str
    breakpoint: int | None
    pod: Annotated[str | None, "the pod of the attempt; between two attempts the next pod, if known"]
    point: Annotated[str | None, "the extension point; null between two attempts, and at the end of an attempt"]
    plugin: Annotated[str | None, "the plugin of the call; null between two attempts"]
    outcome: Annotated[str | None, "the attempt's result, at the end of an attempt"]
    node: Annotated[str | None, "the node of the call; null between two attempts"]


@attrs.frozen
class DebuggerState:
    stopped: Annotated[StopAnswer | None, "the stop; null while scheduling runs"]
    running_until: str | None
    holder: Annotated[str | None, "the client that controls the debugger; null if there is none"]
    keep: Annotated[bool, "true if the client's settings are kept after its connection ends"]
    breakpoints: Annotated[int, "number of breakpoints"]


@attrs.frozen
class MovedState(DebuggerState):
    moved: Annotated[str | None, "the reason why virtual time stopped without reaching a stop point: `nothing due`"]


@attrs.frozen
class BreakpointAnswer:
    id: int
    pod: str | None
    selector: str | None
    node: str | None
    plugin: str | None
    point: str | None
    outcome: str | None
    condition: str | None
    enabled: bool
    disabled_because: str
    hits: int
    ignore: int
    once: bool
    warnings: Annotated[
        Sequence[Text], "warnings of objects and plugins that the breakpoint names, but that do not exist now"
    ]


@attrs.frozen
class TriedMemberAnswer:
    pod: str
    node: str | None
    why: str | None


@attrs.frozen
class RejectedBy:
    plugin: str
    reasons: Sequence[Text]


@attrs.frozen
class NodesLeft:
    count: int
    nodes: Sequence[NodeName]


@attrs.frozen
class RejectedNode:
    node: str
    plugin: str | None
    reasons: Sequence[Text]


@attrs.frozen
class RejectedNodes:
    count: int
    nodes: Sequence[RejectedNode]


@attrs.frozen
class PluginScoreSoFar:
    raw: int
    score: int
    weight: int


@attrs.frozen
class NodeScoreSoFar:
    node: str
    total: int
    plugins: Mapping[Annotated[str, "name"], PluginScoreSoFar]


@attrs.frozen
class CycleStateAnswer:
    data: Mapping[Annotated[str, "key"], Text] = attrs.field(factory=dict)
    skip_filter: Sequence[Annotated[str, "plugin"]] = ()
    skip_score: Sequence[Annotated[str, "plugin"]] = ()


@attrs.frozen
class VictimAnswer:
    pod: str
    node: str
    priority: int


@attrs.frozen
class ReplacedScore:
    node: str
    plugin: str
    score: int


@attrs.frozen
class StoppedAttempt:
    number: int
    nodes: int
    narrowed_to: Sequence[NodeName] | None
    pre_filter: RejectedBy | None
    left: Annotated[NodesLeft | None, "nodes that no filter has rejected; null before the first filter"]
    rejected: Annotated[RejectedNodes | None, "nodes that a filter has rejected; null before the first filter"]
    scores: Annotated[Sequence[NodeScoreSoFar], "the scores so far, the best node first"]
    cycle_state: CycleStateAnswer
    victims: Sequence[VictimAnswer]
    nominated_node: str | None
    forced: str | None
    vetoed: Sequence[NodeName]
    replaced: Sequence[ReplacedScore]


@attrs.frozen
class WhereAnswer(DebuggerState):
    attempt: Annotated[StoppedAttempt | None, "the stopped attempt; null if no attempt is stopped"]
    group: Annotated[
        Sequence[TriedMemberAnswer] | None,
        "the pods already tried in the stopped cycle of a PodGroup; null if no such cycle is stopped",
    ]


def stopped_at(driver: SchedulingDriver) -> StopAnswer | None:
    """Return the pod, extension point and plugin of the stop, for a short status; None while scheduling runs."""
    stop = driver.debugger.stop
    if stop is None:
        return None
    point, head = stop.point, driver.popped.first_tried
    begin = stop.why, stamp(stop.since_s), stop.breakpoint
    if point is None:
        return StopAnswer(*begin, None if head is None else head.key, None, None, None, None)
    place = (point.point, point.plugin, point.outcome, point.node)
    return StopAnswer(*begin, point.pod.key, *(each or None for each in place))


def debugger_state(driver: SchedulingDriver) -> DebuggerState:
    """Return the client that controls the debugger, the run condition, and the place of the stop."""
    debugger = driver.debugger
    until = None if debugger.until is None else debugger.until.what
    return DebuggerState(stopped_at(driver), until, debugger.holder or None, debugger.keep, len(debugger.breakpoints))


def described_breakpoint(breakpoint: Breakpoint, known: "BreakpointTargets") -> BreakpointAnswer:
    spec = breakpoint.spec
    return BreakpointAnswer(
        id=breakpoint.number,
        pod=spec.pod or None,
        selector=spec.selector or None,
        node=spec.node or None,
        plugin=spec.plugin or None,
        point=spec.point or None,
        outcome=spec.outcome or None,
        condition=spec.condition or None,
        enabled=breakpoint.enabled,
        disabled_because=breakpoint.disabled_because,
        hits=breakpoint.hits,
        ignore=breakpoint.ignore,
        once=breakpoint.once,
        warnings=known.unknown_in(breakpoint),
    )


class BreakpointTargets:
    """The nodes, pods and plugins that a breakpoint may name."""

    def __init__(self, driver: SchedulingDriver) -> None:
        self._nodes = driver.machine.cluster.table.row_of
        self._pods = driver.pending.pods
        self._plugins = {name for profile in driver.machine.config.profiles for name in profile.names()}

    def unknown_in(self, breakpoint: Breakpoint) -> list[str]:
        """Return warnings about names in the breakpoint that do not exist now, although they may be created later."""
        spec, missing = breakpoint.spec, []
        if spec.node and spec.node not in self._nodes:
            missing.append(f'there is no node "{spec.node}" now')
        if spec.plugin and spec.plugin not in self._plugins:
            missing.append(f'no profile has a plugin "{spec.plugin}"')
        if spec.pod and not any(sign in spec.pod for sign in "*?[") and spec.pod not in self._pods:
            missing.append(f'no pod "{spec.pod}" is pending now')
        return missing


def where(driver: SchedulingDriver, most: int) -> WhereAnswer:
    """Return the state of the stopped attempt, with at most `most` nodes and pods in each list."""
    members = [_member(one) for one in driver.attempts.group_tried[:most]]
    stop, stepper = driver.debugger.stop, driver.attempts.stepper
    attempt = None
    if stop is not None and stop.point is not None and stepper is not None and stepper.cycle == stop.point.cycle:
        attempt = _attempt(driver, stepper, most)
    return extended(WhereAnswer, debugger_state(driver), attempt=attempt, group=members or None)


def _member(tried: TriedMember) -> TriedMemberAnswer:
    """Return the result of a pod in the stopped cycle of its group."""
    return TriedMemberAnswer(
        tried.entry.key, tried.node_name or None, None if tried.failed is None else tried.failed.message
    )


def _attempt(driver: SchedulingDriver, stepper: Stepper, most: int) -> StoppedAttempt:
    verdicts, left = stepper.verdicts_so_far(), stepper.nodes_left()
    names, by = stepper.table.names, stepper.rejected_by
    rejected: list[RejectedNode] = []
    if verdicts is not None:
        for name, status in verdicts.by_node():
            if status is not None and len(rejected) < most:
                rejected.append(RejectedNode(name, status.plugin or None, status.reasons))
    return StoppedAttempt(
        number=stepper.attempt,
        nodes=driver.machine.cluster.table.node_count,
        narrowed_to=None if stepper.narrowed_to is None else sorted(stepper.narrowed_to)[:most],
        pre_filter=None if by is None else RejectedBy(by.plugin, by.reasons),
        left=None if left is None else NodesLeft(len(left), [names[row] for row in left[:most].tolist()]),
        rejected=None if verdicts is None else RejectedNodes(len(verdicts), rejected),
        scores=_scores(stepper, most),
        cycle_state=CycleStateAnswer() if stepper.state is None else _cycle_state(stepper.state),
        victims=[VictimAnswer(pod.key, pod.node_name, pod.priority) for pod in list(stepper.victims)[:most]],
        nominated_node=stepper.nominated_node or None,
        forced=stepper.forced or None,
        vetoed=sorted(stepper.vetoed),
        replaced=[ReplacedScore(node, plugin, score) for (plugin, node), score in sorted(stepper.replaced.items())],
    )


def _scores(stepper: Stepper, most: int) -> list[NodeScoreSoFar]:
    """Return the scored nodes, best first, with each plugin's score and the total of the scores so far."""
    if stepper.scoring is None or not stepper.scores:
        return []
    totals = stepper.totals()
    best = sorted(range(len(totals)), key=lambda place: -int(totals[place]))[:most]
    normalized = {name: stepper.normalized(name) for name in stepper.scores}
    return [
        NodeScoreSoFar(
            stepper.table.names[int(stepper.scoring[place])],
            int(totals[place]),
            {
                name: PluginScoreSoFar(int(scores.raw[place]), int(normalized[name][place]), scores.weight)
                for name, scores in stepper.scores.items()
            },
        )
        for place in best
    ]


def _cycle_state(state: CycleState) -> CycleStateAnswer:
    data = {name: _text(value) for name, value in sorted(state.data.items())}
    return CycleStateAnswer(data, sorted(state.skip_filter), sorted(state.skip_score))


def _text(value: object) -> str:
    """Return a plugin's value as text without memory addresses, which differ in each run."""
    try:
        text = _ADDRESS.sub("", repr(dict(value)) if isinstance(value, Mapping) else repr(value))
    except Exception as fault:  # a fault in the plugin's object, which cannot be shown
        return f"(cannot be shown: {type(fault).__name__})"
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"
