"""Optional plugin attributes that let the scheduler skip calls to the plugin, each with its rule.

None of them changes a decision: every attempt has the same result with and without the attribute, which
`kschedd.testing.rules` checks. A broken rule causes no error but wrong verdicts, so omit the attribute when in doubt.
In-tree and out-of-tree plugins may have the same attributes. Exceptions, which are read from in-tree plugins only, are
`constant_score`, `verdict_key`, `repeats_while_unchanged` and those of `MissingCycleStateMessages` and `IdlePoints`.

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
    """A `VectorFilterPlugin` or `VectorScorePlugin` that declares the inputs of its answer besides the signature.

    * "node": that row's Node object;
    * "requested": what the pods on that same node use of it (resources, ports, the number of pods);
    * "pods": any data of the pods on that same node.

    Rule: while these are unchanged, so is the answer on a row, for every pod of the signature; codes and raw scores
    alike. The state of `pre_filter` or `pre_score` may be missing then, and what the plugin recomputes must be the
    same. None (or no attribute): the plugin is called in each attempt.
    """

    depends_on: ClassVar[frozenset[Dependency] | None]


class CacheKey(Plugin, Protocol):
    def cache_key(self, cluster: SchedulerCache, /) -> Hashable:
        """Return a key for the plugin's other inputs.

        Rule: the key covers everything else that the answers of a plugin with `depends_on` depend on. It consists of
        numbers, strings, None and tuples of them.
        """


class VerdictKey(Plugin, Protocol):
    """A filter that reads only the Node object, or that counts the pods on the nodes."""

    def verdict_key(self, pod: Pod, state: CycleState, /) -> Hashable:
        """Return what the codes depend on besides the nodes; None if that is not short.

        Rule: equal keys mean equal codes on every node
        * if `depends_on` is "node" alone: for all pods, as long as the Node objects are unchanged. `state` is empty;
        * otherwise: for pods of one signature, until a part changes that `Versions.at` covers. Called after
          `pre_filter`, if it did not return Skip.

        In-tree plugins only.
        """


class IdleFor(Plugin, Protocol):
    def idle_for(self, pod: Pod, /) -> Collection[str]:
        """Return those of `IDLE_POINTS` at which the plugin has no work for this pod.

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

        Rule: until a part changes that `Versions.at` covers, `pre_filter` returns the same for every pod of this
        signature and controller and leaves the same values in `state`, which nothing changes; `pre_score` returns the
        same, whatever rows it is given, and leaves nothing in `state` that its score needs. Pods pinned to different
        nodes count as one signature, apart from the node to which `pre_filter` narrows the search. Called after an
        attempt for such a pod that has found a node. In-tree plugins only.
        """


class ConstantScore(Plugin, Protocol):
    def constant_score(self, pod: Pod, table: NodeTable, /) -> int | None:
        """Return the plugin's constant score; None if scores must be computed.

        Rule: a number is the final score (normalized, if the plugin normalizes) of every node of the table for the pod,
        whichever of them are feasible. In-tree plugins only.
        """


class MissingCycleStateMessages(Plugin, Protocol):
    """The messages of kube-scheduler for a profile that omits the point at which the plugin writes its CycleState.

    A plugin without the attribute recomputes its state then. In-tree plugins only.
    """

    without_pre_filter: ClassVar[str]
    without_pre_score: ClassVar[str]


class IdlePoints(Plugin, Protocol):
    """The extension points that kube-scheduler's plugin implements and ours does not need: a profile may name it there.

    In-tree plugins only.
    """

    idle_points: ClassVar[frozenset[str]]


METHODS: Final[tuple[type[Plugin], ...]] = (CacheKey, IdleFor)
"""The Protocols of this module whose methods are also called on out-of-tree plugins."""


def idle_for(plugin: Plugin) -> Callable[[Pod], Collection[str]]:
    """Return the plugin's `idle_for`, or a function that returns nothing."""
    found: Callable[[Pod], Collection[str]] = getattr(plugin, "idle_for", never_idle)
    return found


def never_idle(pod: Pod) -> tuple[str, ...]:
    """Return no idle points."""
    return ()
