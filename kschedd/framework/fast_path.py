"""Optional plugin attributes with which the scheduler can skip calls of the plugin; each attribute has a rule.

No attribute may change a decision: `kschedd.testing.rules` checks that every attempt has the same result without these
attributes. A plugin that breaks a rule causes wrong verdicts instead of an error, so omit an attribute when in doubt.
In-tree and out-of-tree plugins may have the same attributes. The following attributes are read only from in-tree
plugins: `constant_score`, `verdict_key`, `repeats_while_unchanged` and the attributes of `MissingCycleStateMessages`
and `IdlePoints`.

A pod's signature is its spec (without the assigned node), namespace and labels.
"""

from collections.abc import Callable, Collection, Hashable
from typing import ClassVar, Final, Literal, Protocol, get_args

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import NodeTable
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.interface import Plugin

PRE_POINTS: Final = ("pre_filter", "pre_score")
IDLE_POINTS: Final = ("pre_filter", "filter", "binding")
Dependency = Literal["node", "requested", "pods"]
DEPENDENCIES: Final[frozenset[str]] = frozenset(get_args(Dependency))


class CacheableEvaluation(Plugin, Protocol):
    """A vector plugin that declares all inputs of its result except the pod's signature.

    * "node": the Node object of the row;
    * "requested": the node's resources, ports and pod slots used by its pods;
    * "pods": any data of the node's pods.

    Rule: while these inputs are unchanged, the result for a row (code or raw score) is also unchanged, for every pod of
    the signature. While the inputs are unchanged, the plugin may be called without the state of `pre_filter` or
    `pre_score`; it must then compute the same values again. With None, or without the attribute, the plugin is called
    in each attempt.
    """

    depends_on: ClassVar[frozenset[Dependency] | None]


class CacheKey(Plugin, Protocol):
    def cache_key(self, cluster: SchedulerCache, /) -> Hashable:
        """Return a key for the plugin's other inputs.

        Rule: the key covers all inputs of the plugin that `depends_on` does not cover. The key consists
        of numbers, strings, None, and tuples of these.
        """


class VerdictKey(Plugin, Protocol):
    """A filter that reads only the Node object, or that counts pods on the nodes."""

    def verdict_key(self, pod: Pod, state: CycleState, /) -> Hashable:
        """Return a key for the inputs of the codes other than the nodes; None if no short key exists.

        Rule: equal keys mean equal codes on every node:
        * if `depends_on` is only "node", for all pods until a Node object changes; `state` is then empty;
        * otherwise, for pods of one signature, until one of the parts of the cluster that `Versions.at` covers changes.
          This method is called after `pre_filter`, unless `pre_filter` returned Skip.

        In-tree plugins only.
        """


class IdleFor(Plugin, Protocol):
    def idle_for(self, pod: Pod, /) -> Collection[str]:
        """Return the points in `IDLE_POINTS` at which the plugin has no work for this pod.

        Rule: for every unassigned pod of the signature, in any cluster with the same DeviceClasses,
        * "pre_filter": `pre_filter` returns Skip and stores nothing in `state`, whatever the DeviceClasses are;
        * "filter": the filter passes every node;
        * "binding": `reserve`, `unreserve`, `permit`, `pre_bind` and `post_bind` do nothing and return None, and
          `pre_bind_pre_flight` returns Skip. The result must also be valid for pods that are pinned to different nodes.
          This attribute is read only from in-tree plugins.
        """


class RepeatsWhileUnchanged(Plugin, Protocol):
    def repeats_while_unchanged(self, pod: Pod, cluster: SchedulerCache, /) -> Collection[str]:
        """Return the methods in `PRE_POINTS` that need not be called again for pods of this signature.

        Rule, until one of the parts of the cluster that `Versions.at` covers changes: `pre_filter` returns the same
        result for every pod of this signature and controller, and stores the same values in `state`, which are never
        modified. `pre_score` returns the same result for any rows, and stores nothing in `state` that its score needs.
        Pods that are equal except for the node to which they are pinned have the same signature here; the node to which
        `pre_filter` narrows the search may differ. This method is called after an attempt that has found a node
        for a pod of the signature. In-tree plugins only.
        """


class ConstantScore(Plugin, Protocol):
    def constant_score(self, pod: Pod, table: NodeTable, /) -> int | None:
        """Return the final score that all nodes have; None if scores must be computed.

        Rule: the number is the pod's final score (normalized, if the plugin normalizes) on every node of the table,
        whichever nodes are feasible. In-tree plugins only.
        """


class MissingCycleStateMessages(Plugin, Protocol):
    """Kube-scheduler's error messages if the extension point that writes the plugin's CycleState is disabled.

    Without this attribute, the plugin must compute its state again in such a profile. In-tree plugins only.
    """

    without_pre_filter: ClassVar[str]
    without_pre_score: ClassVar[str]


class IdlePoints(Plugin, Protocol):
    """The extension points that the plugin implements in kube-scheduler, but not in kschedd.

    In-tree plugins only.
    """

    idle_points: ClassVar[frozenset[str]]


METHODS: Final[tuple[type[Plugin], ...]] = (CacheKey, IdleFor)
"""The Protocols of this module whose methods are also called on out-of-tree plugins."""


def idle_for(plugin: Plugin) -> Callable[[Pod], Collection[str]]:
    """Return the plugin's `idle_for`, or a function that returns no points."""
    found: Callable[[Pod], Collection[str]] = getattr(plugin, "idle_for", never_idle)
    return found


def never_idle(pod: Pod) -> tuple[str, ...]:
    """Return no idle points."""
    return ()
