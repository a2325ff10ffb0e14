"""The extension points, each as a Protocol. A plugin takes part in an extension point by having its methods.

`POINTS` lists them. The catalogue of plugins, the guards of out-of-tree plugins, and the checks of their return values
are derived from these Protocols. Optional attributes, which only affect speed, are in `kschedd.framework.fast_path`.

A plugin uses one of two styles for each extension point: **one node at a time**, in plain Python
(`FilterPlugin`, `ScorePlugin`), or **all nodes at once**, as columns (`VectorFilterPlugin`, `VectorScorePlugin`).

`from_args(args, handle)`, a class method, constructs a plugin: `args` is an instance of the plugin's `args_type`
(`kschedd.config.args`), or the original mapping as `RawArgs` if it has none; `handle` is a
`kschedd.framework.handle.Handle`.

`pre_filter` and `pre_score` store their state in `state.data[name]`. The state may be any object; it needs a `clone`
method if add_pod or remove_pod changes it.

Source: Kubernetes v1.34, kube-scheduler/framework/interface.go. Units: times are seconds, scores int64. Shapes:
`rows` are row numbers of the table (int64); each result has one element for each of them.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Generic, Protocol, Self, TypeVar

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.config.plugin_info import PluginInfo
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import ClusterEventWithHint
from kschedd.framework.handle import Handle
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.placements import PlacedPods, Placement
from kschedd.framework.postfilter import PostFilterView
from kschedd.framework.status import Code, Status
from kschedd.framework.writes import Plan

MAX_NODE_SCORE = 100

P_co = TypeVar("P_co", bound="Plugin", covariant=True)


class Plugin(Protocol):
    """An object with a name; its other methods determine its extension points."""

    name: ClassVar[str]


class MadeFromArgs(Plugin, Protocol):
    """The constructor of in-tree plugins.

    An out-of-tree plugin without `from_args` is constructed without arguments.
    """

    @classmethod
    def from_args(cls, args: Any, handle: Handle, /) -> Self: ...


# -- results -------------------------------------------------------------------------------------------------------


@attrs.frozen
class PreFilterResult:
    """The nodes to which PreFilter restricts the search; these nodes need not exist.

    `already_filtered` means that the plugin's own filter passes all of these nodes. The filter of an in-tree plugin is
    then skipped.
    """

    node_names: frozenset[str]
    already_filtered: bool = False


@attrs.frozen
class PostFilterResult:
    """PostFilter's decision.

    `nominated_node`: `nominated_node` None leaves the pod's nomination unchanged; "" clears it.
    """

    status: Status
    nominated_node: str | None = None
    victims: tuple[Any, ...] = ()  # victims, most important first, including pods that are already terminating
    writes: tuple[Any, ...] = ()  # required writes in order
    rejected: tuple[Any, ...] = ()  # victims that wait at Permit; they are rejected ("preempted") instead of deleted
    cancelled: tuple[Any, ...] = ()  # victims in PreBind; their binding is cancelled instead of deleting them
    details: Any = None  # data about the preemption for `explain` and `verify`


Verdict = Status | None
"""None, or a Status of Success: no objection. Every other code is a rejection or an error."""

VerdictOrSkip = Annotated[Status | None, Code.SKIP]
"""A verdict or Skip: the plugin ignores this pod, and is not called at the point that this one prepares."""


# -- the queue -----------------------------------------------------------------------------------------------------


class QueuedEntry(Protocol):
    """A queued pod as passed to QueueSort plugins."""

    @property
    def pod(self) -> Pod: ...
    @property
    def timestamp(self) -> int:
        """The time in nanoseconds at which the pod was added, or its latest failed attempt ended."""

    @property
    def attempts(self) -> int: ...


class PreEnqueuePlugin(Plugin, Protocol):
    def pre_enqueue(self, pod: Pod, /) -> Verdict:
        """Return a verdict. A rejection keeps the pod out of the active queue."""


class QueueSortPlugin(Plugin, Protocol):
    def sort_key(self, entry: QueuedEntry, /) -> Any:
        """Return the sort key. The pod with the lowest key is popped first.

        All profiles must use the same QueueSort plugin.
        """


class EnqueueExtensions(Plugin, Protocol):
    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events that may make a pod schedulable after this plugin has rejected it.

        A plugin without this method is registered for every event.
        """


# -- finding nodes -------------------------------------------------------------------------------------------------


class PreFilterPlugin(Plugin, Protocol):
    def pre_filter(
        self, state: CycleState, pod: Pod, cluster: SchedulerCache, /
    ) -> Annotated[Status | PreFilterResult | None, Code.SKIP]:
        """Prepare an attempt; called once, before any filter. Skip means that the plugin's filter is not called."""


class PreFilterExtensions(Plugin, Protocol):
    """Updates of `pre_filter`'s state when a what-if evaluation adds a pod to a node or removes it."""

    def add_pod(self, state: CycleState, pod: Pod, other: Pod, node: NodeInfo, /) -> None: ...
    def remove_pod(self, state: CycleState, pod: Pod, other: Pod, node: NodeInfo, /) -> None: ...


class FilterPlugin(Plugin, Protocol):
    def filter(self, state: CycleState, pod: Pod, node: NodeInfo, /) -> Verdict:
        """Return None if the pod may run on this node, otherwise a Status, such as `unschedulable("too hot")`."""


class VectorFilterPlugin(Plugin, Protocol):
    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, /) -> Ints | None:
        """Return a code for each row: 0 passes; the plugin defines the meaning of positive codes.

        None: all pass.
        """

    def code_status(self, state: CycleState, pod: Pod, code: int, /) -> Status:
        """Return the status of a code. Called only if the status is needed."""


class PostFilterPlugin(Plugin, Protocol):
    def post_filter(
        self, state: CycleState, pod: Pod, cluster: SchedulerCache, view: PostFilterView, /
    ) -> PostFilterResult:
        """Make the pod schedulable, or explain why this is impossible. This method is called if no node is feasible."""


# -- choosing one --------------------------------------------------------------------------------------------------


class PreScorePlugin(Plugin, Protocol):
    def pre_score(self, state: CycleState, pod: Pod, cluster: SchedulerCache, rows: Rows, /) -> VerdictOrSkip:
        """Prepare scoring; called once per attempt, with the feasible rows.

        Skip means that the plugin's score is not called.
        """


class ScorePlugin(Plugin, Protocol):
    def score(self, state: CycleState, pod: Pod, node: NodeInfo, /) -> int | Status:
        """Return a score from 0 to 100; any int64 if the plugin has `normalize`. A Status is an error.

        The pod is scheduled to the node with the highest sum of weighted scores over all score plugins.
        """


class VectorScorePlugin(Plugin, Protocol):
    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, /) -> Ints:
        """Return a score for each row, in the range of `ScorePlugin.score`."""


class ScoreExtensions(Plugin, Protocol):
    def normalize(self, state: CycleState, pod: Pod, scores: Ints, /) -> Ints:
        """Return the scores of all feasible nodes, each from 0 to 100.

        `scores` are the results of `score`, as an int64 array.
        """


# -- reserving and binding -----------------------------------------------------------------------------------------


class ReservePlugin(Plugin, Protocol):
    def reserve(self, state: CycleState, pod: Pod, node_name: str, /) -> Verdict: ...


class UnreservePlugin(Plugin, Protocol):
    def unreserve(self, state: CycleState, pod: Pod, node_name: str, /) -> Plan | None:
        """Undo `reserve`, because the pod lost its node.

        This method must not fail; it may be called even if this plugin's `reserve` was not called.
        """


class PermitPlugin(Plugin, Protocol):
    def permit(
        self, state: CycleState, pod: Pod, node_name: str, /
    ) -> Annotated[tuple[Status | None, float] | Status | None, Code.WAIT]:
        """Return a status, or Wait with a timeout in seconds, during which the pod waits for `handle.allow`."""


class PreBindPreFlight(Plugin, Protocol):
    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str, /) -> VerdictOrSkip:
        """Return Skip if `pre_bind` has no work for this pod."""


class PreBindPlugin(Plugin, Protocol):
    def pre_bind(self, state: CycleState, pod: Pod, node_name: str, /) -> Annotated[Plan | Status | None, Code.SKIP]:
        """Return the writes to execute before the pod is bound, and the condition for which to wait afterwards."""


class BindPlugin(Plugin, Protocol):
    def bind(self, state: CycleState, pod: Pod, node_name: str, /) -> Annotated[Plan | Status | None, Code.SKIP]:
        """Bind the pod, usually by a plan. Skip means that the next Bind plugin is called."""


class PostBindPlugin(Plugin, Protocol):
    def post_bind(self, state: CycleState, pod: Pod, node_name: str, /) -> None:
        """Do work after the pod is bound."""


# -- PodGroups -----------------------------------------------------------------------------------------------------


class PlacementGeneratePlugin(Plugin, Protocol):
    def generate_placements(self, group: Object, table: NodeTable, /) -> Sequence[Placement] | Status:
        """Return the sets of nodes in which the group is tried, or an error. In-tree plugins only."""


class PlacementScorePlugin(Plugin, Protocol):
    def score_placements(
        self, group: Object, placements: Sequence[PlacedPods], table: NodeTable, /
    ) -> Sequence[int] | Status:
        """Return a score from 0 to 100 for each placement, or an error. In-tree plugins only.

        The group is scheduled in the placement with the highest sum of weighted scores.
        """


# -- the points ----------------------------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class ExtensionPoint(Generic[P_co]):
    """An extension point; its name is in snake_case.

    A plugin takes part if it has all methods of one Protocol in `any_of`.
    """

    name: str
    any_of: tuple[type[Plugin], ...]
    extensions: tuple[type[Plugin], ...] = ()  # Protocols of optional methods

    def has(self, plugin: object) -> bool:
        """Return whether the plugin (or plugin class) takes part in this extension point."""
        return any(all(callable(getattr(plugin, m, None)) for m in methods_of(one)) for one in self.any_of)


@cache
def methods_of(protocol: type[Plugin]) -> tuple[str, ...]:
    """Return the methods that a Protocol of this module requires, except the methods of `Plugin`."""
    return tuple(name for name, member in vars(protocol).items() if callable(member) and not name.startswith("_"))


PRE_ENQUEUE: Final = ExtensionPoint[PreEnqueuePlugin]("pre_enqueue", (PreEnqueuePlugin,))
QUEUE_SORT: Final = ExtensionPoint[QueueSortPlugin]("queue_sort", (QueueSortPlugin,))
PRE_FILTER: Final = ExtensionPoint[PreFilterPlugin]("pre_filter", (PreFilterPlugin,), (PreFilterExtensions,))
FILTER: Final = ExtensionPoint[FilterPlugin | VectorFilterPlugin]("filter", (FilterPlugin, VectorFilterPlugin))
POST_FILTER: Final = ExtensionPoint[PostFilterPlugin]("post_filter", (PostFilterPlugin,))
PRE_SCORE: Final = ExtensionPoint[PreScorePlugin]("pre_score", (PreScorePlugin,))
SCORE: Final = ExtensionPoint[ScorePlugin | VectorScorePlugin](
    "score", (ScorePlugin, VectorScorePlugin), (ScoreExtensions,)
)
RESERVE: Final = ExtensionPoint[ReservePlugin]("reserve", (ReservePlugin,), (UnreservePlugin,))
PERMIT: Final = ExtensionPoint[PermitPlugin]("permit", (PermitPlugin,))
PRE_BIND: Final = ExtensionPoint[PreBindPlugin]("pre_bind", (PreBindPlugin,), (PreBindPreFlight,))
BIND: Final = ExtensionPoint[BindPlugin]("bind", (BindPlugin,))
POST_BIND: Final = ExtensionPoint[PostBindPlugin]("post_bind", (PostBindPlugin,))
PLACEMENT_GENERATE: Final = ExtensionPoint[PlacementGeneratePlugin]("placement_generate", (PlacementGeneratePlugin,))
PLACEMENT_SCORE: Final = ExtensionPoint[PlacementScorePlugin]("placement_score", (PlacementScorePlugin,))

POINTS: Final[Mapping[str, ExtensionPoint[Plugin]]] = {
    point.name: point
    for point in (
        *(PRE_ENQUEUE, QUEUE_SORT, PRE_FILTER, FILTER, POST_FILTER, PRE_SCORE, SCORE),
        *(RESERVE, PERMIT, PRE_BIND, BIND, POST_BIND, PLACEMENT_GENERATE, PLACEMENT_SCORE),
    )
}


def missing_methods(plugin: object) -> str:
    """Return what an incomplete Protocol lacks, such as "filter_rows without code_status", or ""."""
    for point in POINTS.values():
        for protocol in (*point.any_of, *point.extensions):
            methods = methods_of(protocol)
            there = [method for method in methods if callable(getattr(plugin, method, None))]
            if there and len(there) < len(methods):
                return f"{', '.join(there)} without {', '.join(m for m in methods if m not in there)}"
    return ""


def extension_points(plugin: object) -> frozenset[str]:
    """Return every extension point in which the plugin (or plugin class) takes part."""
    return frozenset(name for name, point in POINTS.items() if point.has(plugin))


def plugin_info(cls: type[Any]) -> PluginInfo:
    """Return the data about a plugin class that the configuration needs."""
    args_type = getattr(cls, "args_type", None)
    typed = isinstance(args_type, type) and attrs.has(args_type)
    return PluginInfo(extension_points(cls), args_type if typed else None)
