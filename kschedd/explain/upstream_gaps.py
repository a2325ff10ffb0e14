"""Known gaps in kube-scheduler's wake-ups, which are not bugs of kschedd.

kschedd reacts to events exactly as kube-scheduler does, so the auditor also finds kube-scheduler's gaps. Each gap is an
event that may make a pod schedulable although the hint of the plugin that rejected it returns QueueSkip. The pod then
waits for another event or for the timeout. Any other missed wake-up is a bug of kschedd. Newer releases of Kubernetes
have closed some gaps.

Rules: affinity_wakes_more, any_anti_affinity_wakes, namespace_selector_kept.
Sources: the named issues; the hints of the plugins as of Kubernetes v1.34 to v1.37 (isSchedulableAfter…).
"""

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.selecting.selectors import SelectorError
from kschedd.api.selecting.terms import PodAffinityTerm
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.versions.rules import Rules
from kschedd.framework.events import ActionType, ClusterEvent, EventResource
from kschedd.plugins.topology.interpodaffinity import evaluated_by
from kschedd.queue.entry import QueuedPod


@attrs.frozen(eq=False)
class MissedEvent:
    """An event that did not wake a pod."""

    pod: Pod
    event: ClusterEvent
    old: Any
    new: Any
    cluster: SchedulerCache
    rules: Rules

    def namespace_labels(self, namespace: str) -> Any:
        found = self.cluster.get("Namespace", namespace)
        return {} if found is None else found.labels

    def all_match(self, terms: Iterable[PodAffinityTerm], pod: Pod) -> bool:
        """Return whether all of these terms of the pod select the other pod."""
        wanted = list(map(evaluated_by(self.rules), terms))
        labels = self.namespace_labels(pod.namespace)
        return bool(wanted) and all(term.matches(pod.namespace, pod.labels, labels) for term in wanted)

    def kept_away_by(self, other: Pod) -> bool:
        """Return whether the other pod's anti-affinity selects this pod."""
        return any(self._kept_away_by_terms(other))

    def kept_away_by_all(self, other: Pod) -> bool:
        """Return whether each term of the other pod's anti-affinity selects this pod."""
        return all(self._kept_away_by_terms(other))

    def _kept_away_by_terms(self, other: Pod) -> list[bool]:
        labels, pod = self.namespace_labels(self.pod.namespace), self.pod
        return [term.matches(pod.namespace, pod.labels, labels) for term in other.signature.required_anti_affinity]

    @property
    def suits_itself(self) -> bool:
        """Return whether the pod matches its own affinity terms, and may therefore be the first such pod."""
        return self.all_match(self.pod.signature.required_affinity, self.pod)

    def pods_on(self, node: Node) -> list[Pod]:
        row = self.cluster.table.row_of.get(node.name)
        return [] if row is None else self.cluster.table.pods[row]


def _hostile_pod_went(change: MissedEvent) -> bool:
    if not _is(change, EventResource.ASSIGNED_POD, ActionType.DELETE) or change.rules.any_anti_affinity_wakes:
        return False
    heard = change.rules.affinity_wakes_more and change.kept_away_by_all(change.old)
    return change.kept_away_by(change.old) and not heard


def _avoided_by_one_term(change: MissedEvent) -> bool:
    """Return whether a pod that matched an anti-affinity term was deleted or changed; the hint requires all terms."""
    if change.event.resource is not EventResource.ASSIGNED_POD or change.rules.any_anti_affinity_wakes:
        return False
    if change.old is None:
        return False
    terms = change.pod.signature.required_anti_affinity
    before = [change.all_match([term], change.old) for term in terms]
    return any(before) and not all(before)


def _friend_went(change: MissedEvent) -> bool:
    """Return whether the last pod that the required affinity matched is gone, so that this pod may be the first one."""
    if change.event.resource is not EventResource.ASSIGNED_POD or change.old is None:
        return False
    near = change.pod.signature.required_affinity
    left = change.new is None or not change.all_match(near, change.new)
    return change.suits_itself and change.all_match(near, change.old) and left


def _selected_by_namespace(change: MissedEvent) -> bool:
    """Return whether a pod was added to or deleted from a namespace that only a namespaceSelector selects."""
    if change.event.resource is not EventResource.ASSIGNED_POD:
        return False
    signature = change.pod.signature
    terms = [
        term for term in (*signature.required_affinity, *signature.required_anti_affinity) if term.namespace_selector
    ]
    pods = [pod for pod in (change.old, change.new) if pod is not None]
    return any(change.all_match([term], pod) for term in terms for pod in pods)


def _own_labels_changed(change: MissedEvent) -> bool:
    """Return whether others' anti-affinity no longer matches the pod's labels, or its own affinity now does."""
    own = isinstance(change.new, Pod) and change.new.uid == change.pod.uid and not change.rules.affinity_wakes_more
    return own and change.old is not None and change.old.labels != change.new.labels


def _node_left_a_domain(change: MissedEvent) -> bool:
    """Return whether a node with pods that match this pod's terms was deleted or lost its topology label."""
    if not isinstance(change.old, Node):
        return False
    if change.new is None:
        return True  # the pods of that topology domain are no longer known
    keys = {term.topology_key for term in change.pod.signature.required_affinity if change.suits_itself}
    for other in change.pods_on(change.old):
        if change.kept_away_by(other):
            keys |= {term.topology_key for term in other.signature.required_anti_affinity}
    return any(change.old.labels.get(key) != change.new.labels.get(key) for key in keys)


def _node_came(change: MissedEvent) -> bool:
    """Return whether a new node is outside all domains that reject the pod; the hint checks only own terms."""
    if not _is(change, EventResource.NODE, ActionType.ADD):
        return False
    signature = change.pod.signature
    near = any(term.topology_key in change.new.labels for term in signature.required_affinity)
    return not signature.required_anti_affinity and not near


def _pod_began_to_terminate(change: MissedEvent) -> bool:
    """Return whether a pod began to terminate, so that spreading no longer counts it; only its deletion is an event."""
    if not isinstance(change.new, Pod) or change.old is None or change.new.namespace != change.pod.namespace:
        return False
    return bool(change.new.deletion_timestamp) and not change.old.deletion_timestamp


def _node_left_the_count(change: MissedEvent) -> bool:
    """Return whether a changed node began or ceased to be counted for spreading, because the pod selects its labels."""
    if not isinstance(change.old, Node) or not isinstance(change.new, Node):
        return False
    spec = change.pod.pod_spec
    selects = bool(spec.node_selector) or spec.required_node_affinity is not None
    return selects and change.old.labels != change.new.labels


def _is(change: MissedEvent, resource: EventResource, action: ActionType) -> bool:
    return change.event.resource is resource and change.event.action is action


_AFFINITY, _SPREADING = "InterPodAffinity", "PodTopologySpread"

GAPS: tuple[tuple[str, Callable[[MissedEvent], bool], str], ...] = (
    (_AFFINITY, _hostile_pod_went, "a pod was deleted whose anti-affinity kept this one away (kubernetes#134393)"),
    (
        _AFFINITY,
        _avoided_by_one_term,
        "InterPodAffinity checks whether all of the pod's anti-affinity terms select a pod",
    ),
    (_AFFINITY, _friend_went, "the last pod it must be with went, and it suits itself (kubernetes#141354)"),
    (_AFFINITY, _selected_by_namespace, "InterPodAffinity's hint does not know the labels of namespaces"),
    (_AFFINITY, _own_labels_changed, "InterPodAffinity does not look at changes of the pod's own labels"),
    (
        _AFFINITY,
        _node_came,
        "InterPodAffinity does not see that a new node is outside the topology of the pods that keep this one away",
    ),
    (_AFFINITY, _node_left_a_domain, "InterPodAffinity does not look at who was on a node that left a domain"),
    (_SPREADING, _pod_began_to_terminate, "PodTopologySpread gets no event when a pod begins to terminate"),
    (_SPREADING, _node_left_the_count, "PodTopologySpread looks at topology keys only, not at labels pods select by"),
)


def gap_for(entry: QueuedPod, event: ClusterEvent, old: Any, new: Any, cluster: SchedulerCache, rules: Rules) -> str:
    """Return the upstream gap that explains why this event did not wake the pod, or ""."""
    rejecting = entry.unschedulable_plugins | entry.pending_plugins
    change = MissedEvent(entry.pod, event, old, new, cluster, rules)
    for plugin, fits, words in GAPS:
        if plugin in rejecting:
            try:
                if fits(change):
                    return words
            except SelectorError:
                continue
    return ""
