"""What a plugin may say of itself so that the scheduler need not ask it: optional attributes, each with its rule.

None of them changes a decision: with the attribute and without it every attempt comes to the same, and
`kschedd.testing.rules` holds a plugin to that. A broken rule is not an error that shows; pods get wrong verdicts. So
say nothing where in doubt. In-tree plugins and out-of-tree ones may say the same, but for `constant_score` and what
is missing without a point (`MissingCycleState`), which are heard from in-tree plugins only.

"Signature" is what pods of one kind have in common: spec (leaving out where each runs), namespace and labels.
"""

from collections.abc import Hashable
from typing import ClassVar, Final, Literal, Protocol

from kschedd.api.pods import Pod, PodShape
from kschedd.cache.cluster import Cluster
from kschedd.cache.table import NodeTable
from kschedd.framework.interface import Plugin

Dependency = Literal["node", "requested", "pods"]
DEPENDENCIES: Final[frozenset[str]] = frozenset(("node", "requested", "pods"))


class CachedEvaluation(Plugin, Protocol):
    """Of a `VectorFilterPlugin` or `VectorScorePlugin`: what its answer on a row depends on, besides the signature.

    * "node": that row's Node object;
    * "requested": what the pods on that very node take of it (resources, ports, their number);
    * "pods": anything of the pods on that very node.

    Rule: as long as these stay the same, so does the answer, for every pod of the signature; codes and unnormalised
    scores alike. What `pre_filter` or `pre_score` left in `state` may be missing then, and what the plugin works out in
    its place must come to the same. None (or no attribute): the plugin is asked anew in each attempt.
    """

    depends_on: ClassVar[frozenset[Dependency] | None]


class CacheKey(Plugin, Protocol):
    def cache_key(self, cluster: Cluster, /) -> Hashable:
        """Rule: names everything else that the answers of a plugin with `depends_on` depend on.

        Made of numbers, texts, None and tuples of them.
        """


class SkipsPreFilter(Plugin, Protocol):
    def skips_pre_filter(self, signature: PodShape, /) -> bool:
        """Rule: where this is true `pre_filter` says Skip to every pod of the signature, whatever the cluster, and
        leaves nothing in `state`."""


class NeverRejects(Plugin, Protocol):
    def never_rejects(self, pod: Pod, /) -> bool:
        """Rule: where this is true the filter lets the pod pass on every node, whatever the cluster."""


class PreScoreBySignature(Plugin, Protocol):
    """Rule: where true, `pre_score` says the same to every pod of a signature, whatever the cluster and the rows, and
    leaves nothing in `state` that its score needs."""

    pre_score_by_signature: ClassVar[bool]


class ConstantScore(Plugin, Protocol):
    def constant_score(self, pod: Pod, table: NodeTable, /) -> int | None:
        """Rule: a number is the final score (normalised, if the plugin normalises) of every node of the table for the
        pod, whichever of them are feasible. None: scores have to be worked out. In-tree plugins only."""


class MissingCycleState(Plugin, Protocol):
    """What the plugin fails with where a profile leaves out the point at which it prepares: kube-scheduler's words.

    A plugin without the attribute works out there what it needs. In-tree plugins only.
    """

    without_pre_filter: ClassVar[str]
    without_pre_score: ClassVar[str]


class IdlePoints(Plugin, Protocol):
    """Points at which kube-scheduler's plugin takes part and ours has nothing to do: a profile may name it there.

    In-tree plugins only.
    """

    idle_points: ClassVar[frozenset[str]]


METHODS: Final[tuple[type[Plugin], ...]] = (CacheKey, SkipsPreFilter, NeverRejects)
"""The Protocols of this module with methods that are called on out-of-tree plugins, too."""
