"""Public imports for plugin authors: the extension points, their arguments and their return types.

    from kschedd.plugin import CycleState, NodeInfo, Pod, Status, unschedulable

The names in `__all__` are stable: a name is removed only after a release that deprecates it. `amounts` reads a map of
quantities and raises `QuantityError`; `spread_matcher(namespace, parse_label_selector(...))` checks
`cluster.counts.matching` for counts of pods, which it stores.

A plugin is a class that has a `name` and the methods of one of the Protocols here; it needs no base class. The
optional attributes that save calls are in `kschedd.framework.fast_path`; `kschedd.testing.rules` checks a plugin
against their rules.
"""

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.quantity import QuantityError
from kschedd.api.resources import amounts
from kschedd.api.selecting.selectors import parse_label_selector
from kschedd.cache.counts import PodMatcher, spread_matcher
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.config.args import RawArgs, arg
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import (
    QUEUE,
    QUEUE_SKIP,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    CustomResource,
    EventResource,
    QueueingHint,
    on,
)
from kschedd.framework.handle import Handle
from kschedd.framework.interface import (
    MAX_NODE_SCORE,
    BindPlugin,
    EnqueueExtensions,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreBindPreFlight,
    PreEnqueuePlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScoreExtensions,
    ScorePlugin,
    UnreservePlugin,
    VectorFilterPlugin,
    VectorScorePlugin,
)
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.normalize import default_normalize
from kschedd.framework.postfilter import PostFilterView
from kschedd.framework.status import SKIP, Code, Status, error, unresolvable, unschedulable
from kschedd.framework.writes import Bind, Create, Delete, MergePatch, Plan, Update

__all__ = [
    "MAX_NODE_SCORE",
    "QUEUE",
    "QUEUE_SKIP",
    "SKIP",
    "ActionType",
    "Bind",
    "BindPlugin",
    "ClusterEvent",
    "ClusterEventWithHint",
    "Code",
    "Create",
    "CustomResource",
    "CycleState",
    "Delete",
    "EnqueueExtensions",
    "EventResource",
    "FilterPlugin",
    "Handle",
    "Ints",
    "MergePatch",
    "Node",
    "NodeInfo",
    "NodeTable",
    "PermitPlugin",
    "Plan",
    "Plugin",
    "Pod",
    "PodMatcher",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PostFilterView",
    "PreBindPlugin",
    "PreBindPreFlight",
    "PreEnqueuePlugin",
    "PreFilterExtensions",
    "PreFilterPlugin",
    "PreFilterResult",
    "PreScorePlugin",
    "QuantityError",
    "QueueSortPlugin",
    "QueueingHint",
    "RawArgs",
    "ReservePlugin",
    "Rows",
    "SchedulerCache",
    "ScoreExtensions",
    "ScorePlugin",
    "Status",
    "UnreservePlugin",
    "Update",
    "VectorFilterPlugin",
    "VectorScorePlugin",
    "amounts",
    "arg",
    "default_normalize",
    "error",
    "on",
    "parse_label_selector",
    "spread_matcher",
    "unresolvable",
    "unschedulable",
]
