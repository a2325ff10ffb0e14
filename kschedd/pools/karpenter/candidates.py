"""Candidates: which of Karpenter's nodes may be disrupted, which are empty, and which have expired.

Source: sigs.k8s.io/karpenter, pkg/controllers/state/statenode.go, pkg/controllers/disruption (types.go, emptiness.go,
helpers.go), pkg/controllers/nodeclaim/expiration, pkg/utils/pod/scheduling.go and pkg/utils/pdb/pdb.go. Times are
seconds since the epoch.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.selecting.terms import Taint
from kschedd.api.text.durations import DurationError, parse_duration
from kschedd.api.text.times import seconds
from kschedd.pools.karpenter.budgets import DisruptionReason, allowed_disruptions
from kschedd.pools.karpenter.costs import NODE_COST, disruption_cost
from kschedd.pools.karpenter.node_pools import NodePool
from kschedd.pools.karpenter.requirements import NODE_POOL
from kschedd.store.eviction import covers

DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
_INITIALIZED: Final = "karpenter.sh/initialized"
_REGISTERED: Final = "karpenter.sh/registered"
_DISRUPTED: Final = Taint("karpenter.sh/disrupted", "", "NoSchedule")
_DAEMON_SET: Final = ("apps/v1", "DaemonSet")
_STATEFUL_SET: Final = ("apps/v1", "StatefulSet")
_NODE: Final = ("v1", "Node")


# -- pods -----------------------------------------------------------------------------------------------------------


def _owned_by(pod: Pod, owner: tuple[str, str]) -> bool:
    references = pod.metadata.get("ownerReferences") or ()
    return any((each.get("apiVersion"), each.get("kind")) == owner for each in references)


def is_active(pod: Pod) -> bool:
    return not (pod.finished or pod.deleting)


def is_reschedulable(pod: Pod) -> bool:
    """Return whether the pod needs another node when its node goes.

    A terminating pod of a StatefulSet does: its replacement is only created afterwards.
    """
    needed = is_active(pod) or (pod.deleting and _owned_by(pod, _STATEFUL_SET))
    return needed and not _owned_by(pod, _DAEMON_SET) and not _owned_by(pod, _NODE)


def is_protected(pod: Pod, now_s: float) -> bool:
    """Return whether the annotation do-not-disrupt holds: always, or for a duration since the pod's start."""
    stated = pod.annotations.get(DO_NOT_DISRUPT)
    if stated is None or stated == "true":
        return stated == "true"
    try:
        duration_s = parse_duration(stated)
    except DurationError:
        return False
    return duration_s > 0 and (not pod.start_time or now_s - seconds(pod.start_time) < duration_s)


def why_not_evicted(pod: Pod, budgets: Iterable[Object], now_s: float) -> str:
    """Return why disruption budgets prevent the eviction, or ""."""
    tolerates = any(toleration.tolerates(_DISRUPTED) for toleration in pod.pod_spec.tolerations)
    if not is_active(pod) or tolerates or _owned_by(pod, _NODE) or is_protected(pod, now_s):
        return ""  # such a pod is not evicted
    covering = [budget for budget in budgets if budget.namespace == pod.namespace and covers(budget, pod)]
    if len(covering) > 1:
        return f"pod {pod.key} has several PodDisruptionBudgets"
    for budget in covering:
        if budget.spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow" and _is_unready(pod):
            return ""
        if not budget.status.get("disruptionsAllowed"):
            return f"PodDisruptionBudget {budget.key} allows no eviction of pod {pod.key}"
    return ""


def _is_unready(pod: Pod) -> bool:
    conditions = pod.status.get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "False" for each in conditions)


# -- nodes ----------------------------------------------------------------------------------------------------------


@attrs.frozen(eq=False, slots=False)
class ManagedNode:
    """A NodeClaim with its node and pods.

    `marked`: the node was marked for deletion. `queued`: a command disrupts the node. `nominated`: pods of the last
    round were planned onto the node. `buffered`: the node hosts pods of a capacity buffer.
    """

    claim: Object
    node: Node | None
    pods: Sequence[Pod] = ()
    marked: bool = False
    queued: bool = False
    nominated: bool = False
    buffered: bool = False

    @property
    def name(self) -> str:
        return self.claim.name

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """The node's labels; those of the claim until the node is registered."""
        if self.node is None or self.node.labels.get(_REGISTERED) != "true":
            return self.claim.labels
        return self.node.labels

    @property
    def pool(self) -> str | None:
        return self.labels.get(NODE_POOL)

    @property
    def initialized(self) -> bool:
        return self.node is not None and self.node.labels.get(_INITIALIZED) == "true"

    @property
    def deleting(self) -> bool:
        return self.marked or self.claim.deleting

    def is_true(self, condition: str) -> bool:
        """Return whether this condition of the NodeClaim is true."""
        return any(
            each.get("type") == condition and each.get("status") == "True"
            for each in self.claim.status.get("conditions") or ()
        )

    @cached_property
    def reschedulable(self) -> list[Pod]:
        return [pod for pod in self.pods if is_reschedulable(pod)]

    @cached_property
    def disruption_cost(self) -> float:
        return disruption_cost(self.reschedulable)

    @property
    def empty(self) -> bool:
        """True if the node costs no more than a node without pods; a pod with a negative cost does not count."""
        return self.disruption_cost <= NODE_COST


def why_no_candidate(
    each: ManagedNode, pools: Mapping[str, NodePool], budgets: Sequence[Object], now_s: float, *, eventual: bool = False
) -> str:
    """Return why the node may not be disrupted, or "".

    With `eventual`, pods do not block a node whose NodeClaim has a terminationGracePeriod: they get this time.
    """
    if why := _why_no_node(each):
        return why
    if each.pool not in pools:
        return f"NodePool {each.pool!r} does not exist"
    if eventual and each.claim.spec.get("terminationGracePeriod"):
        return ""
    for pod in each.pods:
        if is_active(pod) and is_protected(pod, now_s):
            return f"pod {pod.key} has the annotation {DO_NOT_DISRUPT}"
    return next((why for pod in each.pods if (why := why_not_evicted(pod, budgets, now_s))), "")


def _why_no_node(each: ManagedNode) -> str:
    if each.queued:
        return "the node is already being disrupted"
    if each.node is None:
        return "the NodeClaim has no node"
    if not each.initialized:
        return "the node is not initialized"
    if each.deleting:
        return "the node is being deleted"
    if each.nominated:
        return "the node is nominated for a pending pod"
    annotations = {**each.claim.annotations, **each.node.annotations}
    if annotations.get(DO_NOT_DISRUPT) == "true":
        return f"the node has the annotation {DO_NOT_DISRUPT}"
    return "" if NODE_POOL in each.labels else f"the node has no label {NODE_POOL}"


def remaining_disruptions(
    nodes: Iterable[ManagedNode], pools: Iterable[NodePool], reason: DisruptionReason, now_s: float
) -> dict[str, int | None]:
    """Return how many more nodes of each pool may be disrupted; None: any number.

    Nodes that are not initialized do not count. Nodes that are not ready, or are being deleted, count as disrupted.
    """
    counted = [node for node in nodes if node.initialized and not node.is_true("InstanceTerminating")]
    found: dict[str, int | None] = {}
    for pool in pools:
        own = [node for node in counted if node.pool == pool.name]
        disrupted = sum(node.deleting or not _is_ready(node) for node in own)
        allowed = allowed_disruptions(pool.budgets, len(own), reason, now_s)
        found[pool.name] = None if allowed is None else max(0, allowed - disrupted)
    return found


def _is_ready(each: ManagedNode) -> bool:
    conditions = () if each.node is None else each.node.status.get("conditions") or ()
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def may_be_emptied(each: ManagedNode, pool: NodePool) -> bool:
    """Return whether Emptiness may delete the candidate."""
    if pool.static or pool.consolidate_after_s is None or each.buffered:
        return False
    return each.empty and each.is_true("Consolidatable")


def may_be_consolidated(each: ManagedNode, pool: NodePool) -> bool:
    """Return whether consolidation may delete or replace the candidate."""
    if pool.static or pool.consolidate_after_s is None or pool.policy == "WhenEmpty":
        return False
    return not each.empty and each.is_true("Consolidatable")


def is_recent(each: ManagedNode, pool: NodePool, now_s: float) -> bool:
    """Return whether pods came or left within consolidateAfter, so that no removal may rely on the node."""
    if not pool.consolidate_after_s or not each.is_true("Initialized"):
        return False
    conditions = each.claim.status.get("conditions") or ()
    initialized = next(one.get("lastTransitionTime") for one in conditions if one.get("type") == "Initialized")
    since = each.claim.status.get("lastPodEventTime") or initialized
    return bool(since) and now_s - seconds(since) < pool.consolidate_after_s


def may_drift(each: ManagedNode) -> bool:
    return each.is_true("Drifted")


def within_budgets(candidates: Iterable[ManagedNode], remaining: Mapping[str, int | None]) -> list[ManagedNode]:
    """Return the candidates that the remaining disruptions of their pools allow together, in this order."""
    left = dict(remaining)
    chosen = []
    for each in candidates:
        number = left.get(each.pool or "", 0)
        if number is None or number > 0:
            chosen.append(each)
            left[each.pool or ""] = None if number is None else number - 1
    return chosen


def expires_in(each: ManagedNode, now_s: float) -> float | None:
    """Return the seconds until the NodeClaim expires (0: it has expired), or None if it does not expire."""
    stated, created = each.claim.spec.get("expireAfter"), each.claim.metadata.get("creationTimestamp")
    if stated is None or stated == "Never" or not created:
        return None
    return max(0.0, seconds(created) + parse_duration(stated) - now_s)
