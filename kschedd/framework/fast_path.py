"""Optional plugin attributes that let the scheduler skip calls to the plugin, each with its rule.

None of them changes a decision: with the attribute and without it every attempt has the same result, and
`kschedd.testing.rules` checks that. A broken rule causes no error but wrong verdicts, so
omit the attribute when in doubt. In-tree and out-of-tree plugins may have the same attributes, except `constant_score`,
`verdict_key`, `repeats_while_unchanged` and those of
`MissingCycleStateMessages` and `IdlePoints`, which are read from in-tree plugins only.

A pod's signature is its spec (without the assigned node), namespace and labels.
"""

from collections.abc import Callable, Collection, Hashable
from typing import ClassVar, Final, Literal, Protocol

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import NodeTable
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.interface import Plugin

PRE_POINTS: Final = ("pre_filter", "pre_score")
IDLE_POINTS: Final = ("pre_filter", "filter", "binding")
Dependency = Literal["node", "requested", "pods"]
DEPENDENCIES: Final[frozenset[str]] = frozenset(("node", "requested", "pods"))


class CacheableEvaluation(Plugin, Protocol):
    """Of a `VectorFilterPlugin` or `VectorScorePlugin`: what its answer on a row depends on, beside the signature.

    * "node": that row's Node object;
    * "requested": what the pods on that very node use of it (resources, ports, the number of pods);
    * "pods": anything of the pods on that very node.

    Rule: while these are unchanged, so is the answer, for every pod of the signature; codes and raw
    scores alike. The state of `pre_filter` or `pre_score` may be missing then, and what the plugin recomputes
    must be the same. None (or no attribute): the plugin is called in each attempt.
    """

    depends_on: ClassVar[frozenset[Dependency] | None]


class CacheKey(Plugin, Protocol):
    def cache_key(self, cluster: SchedulerCache, /) -> Hashable:
        """Rule: covers everything else that the answers of a plugin with `depends_on` depend on.

        Consists of numbers, strings, None and tuples of them.
        """


class VerdictKey(Plugin, Protocol):
    """Of a filter that reads the Node object alone, or that counts the pods on the nodes."""

    def verdict_key(self, pod: Pod, state: CycleState, /) -> Hashable:
        """Return what the codes depend on beside the nodes; None if that is not short.

        Rule: equal keys mean equal codes on every node

        * where `depends_on` is "node" alone: for all pods, as long as the Node objects are unchanged. `state` is empty;
        * otherwise: for pods of one signature, until some part changes that `Versions.at` dates. Called after
          `pre_filter`, if it did not return Skip.

        In-tree plugins only.
        """


class IdleFor(Plugin, Protocol):
    def idle_for(self, pod: Pod, /) -> Collection[str]:
        """Return what the plugin has nothing to do at for this pod, of `IDLE_POINTS`.

        Rule: in any cluster, for every pod of the signature that has no node,

        * "pre_filter": `pre_filter` returns Skip and leaves nothing in `state`;
        * "filter": the filter passes every node;
        * "binding": `reserve`, `unreserve`, `permit`, `pre_bind` and `post_bind` do nothing and return None, and
          `pre_bind_pre_flight` returns Skip, likewise for pods that are pinned to different nodes. Read from in-tree
          plugins only.
        """


class RepeatsWhileUnchanged(Plugin, Protocol):
    def repeats_while_unchanged(self, pod: Pod, cluster: SchedulerCache, /) -> Collection[str]:
        """Return the methods, of `PRE_POINTS`, that need not be called again.

        Rule: until some part changes that `Versions.at` dates, `pre_filter` returns the same for every pod of this
        signature and controller and leaves the same values in `state`, which nothing changes; `pre_score` returns the
        same, whatever rows it is given, and leaves nothing in `state` that its score needs. Pods that are pinned to
        different nodes count as of one signature, but for the node to which `pre_filter` narrows. Called after an
        attempt for such a pod that has found a node. In-tree plugins only.
        """


class ConstantScore(Plugin, Protocol):
    def constant_score(self, pod: Pod, table: NodeTable, /) -> int | None:
        """Rule: a number is the final score (normalized, if the plugin normalizes) of every node of the table for the
        pod, whichever of them are feasible. None: scores must be computed. In-tree plugins only."""


class MissingCycleStateMessages(Plugin, Protocol):
    """kube-scheduler's error message where a profile omits the point at which the plugin writes its CycleState.

    A plugin without the attribute recomputes its state then. In-tree plugins only.
    """

    without_pre_filter: ClassVar[str]
    without_pre_score: ClassVar[str]


class IdlePoints(Plugin, Protocol):
    """Extension points that kube-scheduler's plugin implements and ours does not need: a profile may name it there.

    In-tree plugins only.
    """

    idle_points: ClassVar[frozenset[str]]


METHODS: Final[tuple[type[Plugin], ...]] = (CacheKey, IdleFor)
"""The Protocols of this module with methods that are called on out-of-tree plugins, too."""


def idle_for(plugin: Plugin) -> Callable[[Pod], Collection[str]]:
    """Return the plugin's `idle_for`, or a function that returns nothing."""
    found: Callable[[Pod], Collection[str]] = getattr(plugin, "idle_for", never_idle)
    return found


def never_idle(pod: Pod) -> tuple[str, ...]:
    """Return that a plugin has something to do everywhere."""
    return ()
