"""DefaultEvictor: decides which pods a profile may evict, and evicts them.

The methods `filter` and `pre_filter` are the extension points Filter and PreEvictionFilter of the real descheduler.

Source: sigs.k8s.io/descheduler, pkg/framework/plugins/defaultevictor.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.text.times import seconds
from kschedd.descheduler.cluster import DeschedulingCluster, RequestOutcome, Work, is_ready, owners
from kschedd.descheduler.node_fit import fits_any_other
from kschedd.descheduler.policy import SYSTEM_CRITICAL, ChosenPods, EvictorArgs

_EVICT: Final = "descheduler.alpha.kubernetes.io/evict"
_PREFER_NO_EVICTION: Final = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
_MIRROR: Final = "kubernetes.io/config.mirror"
_SOURCE: Final = "kubernetes.io/config.source"


@attrs.define(eq=False)
class Evictor:
    """The evictor of one profile in one descheduling cycle."""

    cluster: DeschedulingCluster
    profile: str
    args: EvictorArgs
    _destinations: list[Node] | None = attrs.field(default=None, init=False)  # nodes for node_fit, on first use

    def filter(self, pod: Pod) -> bool:
        """Return whether the policy allows the eviction of this pod at all."""
        return self.why_protected(pod) is None

    def why_protected(self, pod: Pod) -> str | None:
        """Return the reason why the pod must not be evicted; None if eviction is allowed."""
        annotations = pod.metadata.get("annotations") or {}
        if _EVICT in annotations:
            return None
        if self.args.mandatory_no_eviction and _PREFER_NO_EVICTION in annotations:
            return f"annotation {_PREFER_NO_EVICTION}"
        return next(self._protections(pod), None)

    def _protections(self, pod: Pod) -> Iterator[str]:
        args, annotations = self.args, pod.metadata.get("annotations") or {}
        if _MIRROR in annotations or annotations.get(_SOURCE, "api") != "api":
            yield "static pod"
        if pod.deleting:
            yield "terminating"
        yield from self._by_policy(pod)
        if not args.selector.matches(pod.labels):
            yield "labelSelector does not match"
        owned = owners(pod)
        if args.min_replicas > 1 and len(owned) == 1:
            replicas = self.cluster.replicas(owned[0].get("uid", ""))
            if replicas < args.min_replicas:
                yield f"its owner has {replicas} pods, minReplicas is {args.min_replicas}"
        if args.min_pod_age_s is not None:
            started = pod.start_time
            if not started or self.cluster.now_s - seconds(started) < args.min_pod_age_s:
                yield "younger than minPodAge"

    def _by_policy(self, pod: Pod) -> Iterator[str]:
        """Yield the reasons of the policy's protections that apply to the pod."""
        protections, owned, spec = self.args.protections, owners(pod), pod.pod_spec.raw
        priority = spec.get("priority")
        if "SystemCriticalPods" in protections and priority is not None:
            if priority >= SYSTEM_CRITICAL:
                yield "system-critical priority"
            elif priority >= self._threshold():
                yield "priority not below the threshold"
        if not owned and ("FailedBarePods" in protections or pod.phase != "Failed"):
            yield "no owner"
        volumes = spec.get("volumes") or ()
        if "PodsWithLocalStorage" in protections and any(
            volume.get("hostPath") is not None or volume.get("emptyDir") is not None for volume in volumes
        ):
            yield "local storage"
        if "DaemonSetPods" in protections and any(owner.get("kind") == "DaemonSet" for owner in owned):
            yield "pod of a DaemonSet"
        if "PodsWithPVC" in protections and self._has_protected_claim(pod):
            yield "PersistentVolumeClaim"
        if "PodsWithoutPDB" in protections:
            # The real descheduler registers its informer of PodDisruptionBudgets in this plugin, after the informers
            # were started (newDescheduler in pkg/descheduler/descheduler.go). The list of budgets therefore stays
            # empty, and each pod is protected. Only the dry run of the real descheduler registers the informer earlier.
            yield "PodsWithoutPDB, which protects every pod"
        if "PodsWithResourceClaims" in protections and spec.get("resourceClaims"):
            yield "resource claims"

    def _threshold(self) -> int:
        threshold = self.args.threshold
        return self.cluster.priorities[threshold] if isinstance(threshold, str) else threshold

    def _has_protected_claim(self, pod: Pod) -> bool:
        """Return whether the pod mounts a protected claim; a claim without a known StorageClass is protected."""
        mounted = [volume.get("persistentVolumeClaim") for volume in pod.pod_spec.raw.get("volumes") or ()]
        names = [each.get("claimName") for each in mounted if each is not None]
        if not self.args.protected_classes:
            return bool(names)
        for name in names:
            claim = self.cluster.claims.get((pod.namespace, name))
            storage_class = None if claim is None else (claim.get("spec") or {}).get("storageClassName")
            if not storage_class or storage_class in self.args.protected_classes:
                return True
        return False

    def pre_filter(self, pod: Pod) -> Work[bool]:
        """Return whether the pod may be evicted now: the pod fits on another node, and its namespace is selected."""
        selector = self.args.namespace_selector
        if self.args.node_fit and not (yield from fits_any_other(self.cluster, pod, self._ready_nodes())):
            return False
        if selector.empty:
            return True
        labels = self.cluster.namespaces.get(pod.namespace)
        return labels is not None and selector.matches(labels)

    def _ready_nodes(self) -> list[Node]:
        if self._destinations is None:
            selector = self.args.node_selector
            self._destinations = [
                node for node in self.cluster.nodes if is_ready(node) and selector.matches(node.labels)
            ]
        return self._destinations

    def choose(self, pods: Iterable[Pod], chosen: ChosenPods) -> Work[list[Pod]]:
        """Return the pods that pass both filters, in the namespaces and with the labels that a strategy selects."""
        found = []
        for pod in pods:
            yield 2  # a pod costs more than a node
            selected = chosen.contains(pod.namespace, pod.labels) and self.filter(pod)
            if selected and (yield from self.pre_filter(pod)):
                found.append(pod)
        return found

    def evict(self, pod: Pod, strategy: str) -> RequestOutcome:
        return self.cluster.evict(pod, strategy, self.profile)


def prefers_to_stay(pod: Pod) -> bool:
    return _PREFER_NO_EVICTION in (pod.metadata.get("annotations") or {})
