"""Changes that a user may make to a stopped attempt: force a node, veto nodes, replace a score, drop the attempt.

The functions of this module change the stepper of the driver; the changes take effect when the attempt continues.
Errors: NotStopped if no attempt is stopped, or if its node is already selected; DoesNotFit; UnknownNode, CannotReplace.
"""

from collections.abc import Sequence

import attrs

from kschedd.errors import KscheddError
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.interface import MAX_NODE_SCORE
from kschedd.scheduling.debug.breakpoints import StopPoint
from kschedd.scheduling.debug.debugger import Intervention, NotStopped
from kschedd.scheduling.debug.stepper import Stepper
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.inputs import Intervene
from kschedd.scheduling.nominations.counted import NominatedPods

_CHOSEN = ("reserve", "permit", "preBind", "bind", "postBind")


@attrs.define(eq=False)
class DoesNotFit(KscheddError, rpc_code="conflict"):
    """The error if a pod does not fit on the node to be forced."""

    pod: str
    node: str
    reasons: Sequence[str]

    def __str__(self) -> str:
        return f"pod {self.pod} does not fit on {self.node}: {'; '.join(self.reasons)}"


@attrs.define(eq=False)
class UnknownNode(KscheddError, rpc_code="not_found"):
    """The error if a node does not exist."""

    node: str

    def __str__(self) -> str:
        return f'there is no node "{self.node}"'


@attrs.define(eq=False)
class CannotReplace(KscheddError, rpc_code="invalid"):
    """The error if the plugin has not scored the pod or this node."""

    why: str


def force(driver: SchedulingDriver, node: str, *, even_if_unfit: bool = False) -> Sequence[str]:
    """Make the attempt select this node. Return the plugins' reasons to reject this node. Raises DoesNotFit."""
    stepper = _undecided(driver)
    reasons = why_not(driver, stepper, _row(stepper, node))
    if reasons and not even_if_unfit:
        raise DoesNotFit(stepper.pod.key, node, reasons)
    driver.step(Intervene(Intervention("force", node)))
    return reasons


def veto(driver: SchedulingDriver, node: str) -> None:
    """Prevent the attempt from selecting this node."""
    stepper = _undecided(driver)
    _row(stepper, node)
    driver.step(Intervene(Intervention("veto", node)))


def score(driver: SchedulingDriver, node: str, plugin: str, value: int) -> None:
    """Replace the plugin's normalized score of the node."""
    stepper = _undecided(driver)
    row = _row(stepper, node)
    if not 0 <= value <= MAX_NODE_SCORE:
        raise CannotReplace(f"a score is from 0 to {MAX_NODE_SCORE}, not {value}")
    scores = driver.machine.schedulers[stepper.pod.scheduler_name].profile.scores
    if plugin not in [each.name for each in scores]:
        raise CannotReplace(f"{plugin} scores no nodes in this profile: {', '.join(each.name for each in scores)} do")
    if stepper.state is not None and plugin in stepper.state.skip_score:
        raise CannotReplace(f"{plugin} does not score this pod: its PreScore returned Skip")
    left = stepper.nodes_left()
    if left is not None and row not in left:
        raise CannotReplace(f"{node} is not one of the remaining nodes")
    driver.step(Intervene(Intervention("score", node, plugin, value)))


def drop(driver: SchedulingDriver) -> None:
    """Drop the attempt: the pod returns to the queue."""
    stepper, at = _stepper(driver)
    if at.point in ("preBind", "bind", "postBind"):
        raise NotStopped(f"pod {stepper.pod.key} is being bound: the attempt is over")
    driver.step(Intervene(Intervention("drop")))


def why_not(driver: SchedulingDriver, stepper: Stepper, row: int) -> list[str]:
    """Return the status of each plugin that rejects the node, computed without caches."""
    pod, state = stepper.pod, CycleState()
    scheduler = driver.machine.schedulers[pod.scheduler_name]
    answer = scheduler.pre_filters.at_once(state, pod)
    name = stepper.table.names[row]
    if answer.status is not None:
        return [f"{answer.status.plugin}: {answer.status.message}"]
    if answer.narrowed is not None and name not in answer.narrowed.node_names:
        return ["a PreFilter plugin leaves other nodes only"]
    counting = NominatedPods(stepper.table, pod, driver.nominator.nominated)
    known = scheduler.evaluations.apart(state)
    found = drive(scheduler.search.run(known, state, pod, known.place[[row]], 0, 1, counting.everywhere))
    rejected = found.verdicts.status(0)
    return [] if rejected is None else [f"{rejected.plugin}: {rejected.message}"]


def _row(stepper: Stepper, node: str) -> int:
    row = stepper.table.row_of.get(node)
    if row is None:
        raise UnknownNode(node)
    return row


def _stepper(driver: SchedulingDriver) -> tuple[Stepper, StopPoint]:
    """Return the stepper of the stopped attempt, and its stop point."""
    stop, stepper = driver.debugger.stop, driver.attempts.stepper
    if stop is None:
        raise NotStopped("scheduling is not paused: use `pause`, or `debug next` to stop within the next attempt")
    if stop.point is None or stepper is None or stepper.cycle != stop.point.cycle:
        raise NotStopped("no attempt is in progress at this stop: `debug next` begins one")
    return stepper, stop.point


def _undecided(driver: SchedulingDriver) -> Stepper:
    """Return the stepper of the stopped attempt. Raises NotStopped if a node has already been selected."""
    stepper, at = _stepper(driver)
    if at.point in _CHOSEN:
        raise NotStopped(f"{at.node} is chosen for {stepper.pod.key} already: `debug drop` ends the attempt")
    return stepper
