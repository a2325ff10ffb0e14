"""Breakpoints: places at which an attempt, or the binding cycle after it, stops.

A `StopPoint` is a place at which an attempt may stop. A stop point is before a plugin call (`outcome` is ""), after a
plugin has rejected the pod or nodes, or at the attempt's outcome (`point` is ""). A breakpoint matches a stop point if
all its criteria match.

Breakpoints with fewer criteria match only once per attempt or extension point, so that one pod does not stop dozens of
times. A breakpoint without a plugin matches only the first plugin of each extension point. A breakpoint without an
extension point matches only the first matching stop point of an attempt. A breakpoint with an outcome matches wherever
that outcome occurs.

Conditions are CEL expressions on the variables of `VARIABLES`. A condition that fails disables its breakpoint.

Pure. Errors: `compile_condition` raises CelCompileError; matching never raises.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

import attrs

from kschedd.api.pods import Pod
from kschedd.api.selecting.selectors import LabelSelector
from kschedd.cache.table import NodeTable, Rows
from kschedd.cel.errors import CelFailure

if TYPE_CHECKING:
    from kschedd.cel.program import CelCondition

REJECTED, SCHEDULED, UNSCHEDULABLE = "rejected", "scheduled", "unschedulable"
PREEMPTING, WAITING, ERROR = "preempting", "waiting", "error"
OUTCOMES: Final[Mapping[str, str]] = {
    REJECTED: "a plugin has rejected the pod, or nodes for it",
    SCHEDULED: "a node has been chosen, and nothing is assumed yet",
    UNSCHEDULABLE: "no node fits, and nothing has been done about it yet",
    PREEMPTING: "no node fits, and victims have been chosen but not evicted yet",
    WAITING: "a Permit plugin keeps the pod waiting",
    ERROR: "the attempt has failed with an error",
}
POINTS: Final = (
    *("preFilter", "filter", "postFilter", "preScore", "score"),
    *("reserve", "permit", "preBind", "bind", "postBind"),
)
#: the variables of a breakpoint's condition, with their CEL types
VARIABLES: Final[Mapping[str, str]] = {
    "pod": "dyn",
    "attempt": "int",
    "point": "string",
    "plugin": "string",
    "outcome": "string",
    "node": "string",
    "nodes": "int",
    "time": "double",
}


@attrs.frozen(eq=False)
class StopPoint:
    """A place at which an attempt may stop.

    `rows` are the nodes that the plugin will evaluate next, or has rejected.
    """

    cycle: int  # number of the attempt among all attempts of the scheduler
    pod: Pod
    attempt: int  # number of the attempt among the attempts of this pod
    point: str
    plugin: str
    outcome: str = ""
    node: str = ""  # selected node, or ""
    rows: Rows | None = None
    table: NodeTable | None = None

    def concerns(self, node_name: str) -> bool:
        """Return whether the node is the selected node or among `rows`."""
        if self.node:
            return self.node == node_name
        if self.rows is None or self.table is None:
            return False
        row = self.table.row_of.get(node_name)
        return row is not None and bool((self.rows == row).any())

    def values(self, now_s: float) -> dict[str, Any]:
        """Return the values of the condition's variables."""
        return {
            "pod": self.pod.raw,
            "attempt": self.attempt,
            "point": self.point,
            "plugin": self.plugin,
            "outcome": self.outcome,
            "node": self.node,
            "nodes": 0 if self.rows is None else len(self.rows),
            "time": now_s,
        }


@attrs.frozen(kw_only=True)
class BreakpointSpec:
    """The criteria of a breakpoint; "" matches any value. `pod` is a pattern of `namespace/name`."""

    pod: str = ""
    selector: str = ""
    node: str = ""
    plugin: str = ""
    point: str = ""
    outcome: str = ""
    condition: str = ""

    def __bool__(self) -> bool:
        return any(attrs.astuple(self))


@attrs.define(eq=False)
class Breakpoint:
    """A breakpoint.

    `ignore` is the number of hits to ignore before the breakpoint stops an attempt. `once`: the breakpoint is deleted
    after it has stopped an attempt.
    """

    number: int
    spec: BreakpointSpec
    by: str = ""  # the client that set it
    ignore: int = 0
    once: bool = False
    enabled: bool = True
    hits: int = 0  # number of hits, including ignored ones
    disabled_because: str = ""
    _selector: LabelSelector | None = None
    _condition: "CelCondition | None" = None
    _last: tuple[object, ...] = ()  # stop point of the latest match

    def may_match(self, pod: Pod) -> bool:
        """Return whether the breakpoint can stop an attempt of this pod."""
        spec = self.spec
        if not self.enabled or (spec.pod and not fnmatchcase(pod.key, spec.pod)):
            return False
        return self._selector is None or self._selector.matches(pod.labels)

    def reached(self, at: StopPoint, now_s: float) -> bool:
        """Count the hit, and return whether to stop here."""
        if not self._matches(at):
            return False
        place = (at.cycle, self.spec.plugin and at.point, at.outcome)
        if not at.outcome and place == self._last:
            return False
        if self._condition is not None and not self._holds(self._condition, at, now_s):
            return False
        self._last = place
        self.hits += 1
        if self.ignore:
            self.ignore -= 1
            return False
        return True

    def _matches(self, at: StopPoint) -> bool:
        spec = self.spec
        if spec.outcome != at.outcome or (spec.point and spec.point != at.point):
            return False
        if (spec.plugin and spec.plugin != at.plugin) or not self.may_match(at.pod):
            return False
        return not spec.node or at.concerns(spec.node)

    def _holds(self, condition: "CelCondition", at: StopPoint, now_s: float) -> bool:
        try:
            return condition.holds(at.values(now_s))
        except CelFailure as failure:
            self.disable(f"its condition failed at {at.pod.key}: {failure}")
            return False

    def disable(self, why: str = "") -> None:
        self.enabled, self.disabled_because = False, why

    def enable(self) -> None:
        self.enabled, self.disabled_because = True, ""
