"""The ReplicaSet controller: creates and deletes pods to reach spec.replicas; surplus pods are deleted in rank order.

Source: Kubernetes v1.34, controller/replicaset/replica_set.go and controller/controller_utils.go
(ActivePodsWithRanks). A ReplicaSet adopts pods without a controller that its selector matches, and releases pods it no
longer matches. Expectations are not needed, because a controller here always reads its own writes.
Owns the deadlines of later reconciles, the number of consecutive refused pods per ReplicaSet, and an index of pods
without a controller.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.selectors import LabelSelector, SelectorError, parse_label_selector
from kschedd.controllers.conditions import condition, is_true, with_condition
from kschedd.controllers.controller import View
from kschedd.controllers.templates import active, controller_reference, controller_uid, pod_from_template
from kschedd.controllers.timers import Timers
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError, NotFound
from kschedd.store.log import ADDED, DELETED, WatchEvent
from kschedd.store.times import seconds, stamp
from kschedd.store.writes import Create, Delete, Write, patch_of, status_of

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
BURST: Final = 500  # pods created or deleted per reconcile of a ReplicaSet
_FIRST_RETRY_S: Final = 1.0
_LONGEST_RETRY_S: Final = 300.0

Key = tuple[str, str]  # namespace, name


def ready(pod: Pod) -> bool:
    return is_true(pod.status, "Ready")


def available_at(pod: Pod, min_ready_s: int) -> float | None:
    """The past or future time (seconds) from which the pod counts as available; None if it is not ready."""
    found = condition(pod.status, "Ready")
    if found is None or found.get("status") != "True":
        return None
    since = found.get("lastTransitionTime")
    return (seconds(since) if since else 0.0) + min_ready_s


def _deletion_cost(pod: Pod) -> int:
    try:
        return int(pod.annotations.get(DELETION_COST) or 0)
    except ValueError:
        return 0


def _restarts(pod: Pod) -> int:
    return max((c.get("restartCount") or 0 for c in pod.status.get("containerStatuses") or ()), default=0)


def _age_rank(since: float | None, now: float) -> float:
    """A rank by age, youngest first, in powers of two seconds (LogarithmicScaleDown); no time counts as youngest."""
    if since is None:
        return -1.0
    return math.floor(math.log2(now - since)) if now - since >= 1 else 0.0


def deletion_order(pods: Sequence[Pod], beside: Mapping[str, int], now: float) -> list[Pod]:
    """The pods, the first to delete first. `beside`: number of related active pods per node."""

    def key(pod: Pod) -> tuple[Any, ...]:
        is_ready = ready(pod)
        created = pod.metadata.get("creationTimestamp")
        return (
            bool(pod.node_name),
            {"Pending": 0, "": 0, "Unknown": 1}.get(pod.phase, 2),
            is_ready,
            _deletion_cost(pod),
            -beside.get(pod.node_name, 0),
            _age_rank(available_at(pod, 0), now) if is_ready else 0.0,
            -_restarts(pod),
            _age_rank(seconds(created) if created else None, now),
            pod.uid,
        )

    return sorted(pods, key=key)


def selector_of(workload: Object) -> LabelSelector | None:
    """The workload's pod selector; None if it is empty or invalid."""
    try:
        selector = parse_label_selector(workload.spec.get("selector"))
    except SelectorError:
        return None
    return None if selector.empty or selector.nothing else selector


class ReplicaSets:
    name: Final = "replicasets"
    kinds: Final = frozenset(("ReplicaSet", "Pod"))

    def __init__(self) -> None:
        self._later: Timers[Key] = Timers()
        self._refusals: dict[Key, int] = {}
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)
        self._orphans: dict[str, dict[str, None]] = {}  # by namespace: pods without a controller

    @property
    def next_deadline(self) -> float | None:
        return self._later.next

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        changed: dict[Key, None] = {}
        orphans: dict[Key, None] = {}
        for event in events:
            new = event.new
            if new.kind == "ReplicaSet":
                changed[new.namespace, new.name] = None
                if event.type == ADDED:
                    orphans.update(self._orphans_for(new, view))
            elif isinstance(new, Pod):
                self._look_at_pod(event, new, changed, orphans)
        changed.update(dict.fromkeys(self._later.due(now)))
        writes = self.faults.each("Pod", orphans, partial(self._adopt, view, changed), now)
        return writes + self.faults.each("ReplicaSet", changed, partial(self._look_at, view), now)

    def _adopt(self, view: View, changed: dict[Key, None], namespace: str, name: str, now: float) -> list[Write]:
        """Let a ReplicaSet adopt a pod without a controller; that ReplicaSet is removed from `changed`."""
        parent = self._parent_for(namespace, name, view)
        if parent is None:
            return []
        # The ReplicaSet is reconciled later, when its pods include the adopted one.
        changed.pop((namespace, parent[0]), None)
        self._later.set((namespace, parent[0]), now)
        return [parent[1]]

    def _look_at(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        replica_set = view.find("ReplicaSet", namespace, name)
        if replica_set is not None:
            return self._sync(replica_set, view, now)
        self._later.clear((namespace, name))
        self._refusals.pop((namespace, name), None)
        return []

    def _look_at_pod(self, event: WatchEvent, pod: Pod, changed: dict[Key, None], orphans: dict[Key, None]) -> None:
        for version in (event.old, pod):
            owner = version.owner if version is not None and version.raw["metadata"].get("ownerReferences") else None
            if owner is not None and owner.kind == "ReplicaSet":
                changed[pod.namespace, owner.name] = None
        space = self._orphans.setdefault(pod.namespace, {})
        if event.type == DELETED or controller_uid(pod):
            space.pop(pod.name, None)
            return
        space[pod.name] = None
        if event.old is None or event.old.labels is not pod.labels or controller_uid(event.old):
            orphans[pod.namespace, pod.name] = None

    def _orphans_for(self, replica_set: Object, view: View) -> dict[Key, None]:
        selector = selector_of(replica_set)
        if selector is None:
            return {}
        namespace = replica_set.namespace
        pods = (view.find("Pod", namespace, name) for name in self._orphans.get(namespace, ()))
        return {(namespace, p.name): None for p in pods if p is not None and selector.matches(p.labels)}

    def _parent_for(self, namespace: str, name: str, view: View) -> tuple[str, Write] | None:
        """The first ReplicaSet whose selector matches a pod without a controller, and the write that adopts the pod."""
        pod = view.find("Pod", namespace, name)
        if not isinstance(pod, Pod) or pod.finished or pod.deleting or controller_uid(pod):
            return None
        for replica_set in view.list("ReplicaSet", namespace):
            selector = selector_of(replica_set)
            if selector is not None and selector.matches(pod.labels) and not replica_set.deleting:
                owners = [*(pod.metadata.get("ownerReferences") or ()), controller_reference(replica_set)]
                return replica_set.name, patch_of(pod, {"metadata": {"ownerReferences": owners}}, exactly=True)
        return None

    def _sync(self, replica_set: Object, view: View, now: float) -> list[Write]:
        writes: list[Write] = []
        selector = selector_of(replica_set)
        owned: list[Object] = []
        for pod in view.owned_by(replica_set.uid):
            if pod.kind != "Pod" or controller_uid(pod) != replica_set.uid:
                continue
            if selector is not None and not selector.matches(pod.labels) and not replica_set.deleting:
                references = pod.metadata.get("ownerReferences") or ()
                kept = [reference for reference in references if reference.get("uid") != replica_set.uid]
                writes.append(patch_of(pod, {"metadata": {"ownerReferences": kept or None}}, exactly=True))
            else:
                owned.append(pod)
        pods = active(owned)
        if not replica_set.deleting:
            writes += self._scale(replica_set, pods, view, now)
        status = self._status(replica_set, pods, now)
        if any(replica_set.status.get(name) != value for name, value in status.items()):
            writes.append(status_of(replica_set, status))
        return writes

    def _scale(self, replica_set: Object, pods: Sequence[Pod], view: View, now: float) -> list[Write]:
        """Pods to create or delete to reach spec.replicas."""
        key = (replica_set.namespace, replica_set.name)
        surplus = len(pods) - replica_set.spec.get("replicas", 1)
        if abs(surplus) > BURST:
            self._later.set(key, now)
        if surplus < 0:
            if self._waits(key, now):
                return []
            wanted = pod_from_template(replica_set, replica_set.spec.get("template") or {})
            return [Create(wanted)] * min(-surplus, BURST)
        if surplus > 0:
            order = deletion_order(pods, self._beside(replica_set, view), now)
            return [Delete("Pod", p.namespace, p.name, p.uid) for p in order[: min(surplus, BURST)]]
        self._refusals.pop(key, None)
        return []

    def _waits(self, key: Key, now: float) -> bool:
        """Whether a pod of the ReplicaSet was refused and its retry is not due yet."""
        at = self._later.at(key)
        return key in self._refusals and at is not None and at > now

    def _beside(self, replica_set: Object, view: View) -> dict[str, int]:
        """Active pods per node of this ReplicaSet and of those with the same controller."""
        owner = controller_uid(replica_set)
        related = [rs for rs in view.owned_by(owner) if rs.kind == "ReplicaSet"] if owner else [replica_set]
        count: dict[str, int] = {}
        for each in related:
            for pod in active(view.owned_by(each.uid)):
                count[pod.node_name] = count.get(pod.node_name, 0) + 1
        return count

    def _status(self, replica_set: Object, pods: Sequence[Pod], now: float) -> dict[str, Any]:
        labels = ((replica_set.spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
        min_ready_s = replica_set.spec.get("minReadySeconds") or 0
        times = [at for pod in pods if (at := available_at(pod, min_ready_s)) is not None]
        coming = [at for at in times if at > now]
        key = (replica_set.namespace, replica_set.name)
        if coming and key not in self._later:
            self._later.set(key, min(coming))
        status: dict[str, Any] = {
            "replicas": len(pods),
            "fullyLabeledReplicas": sum(labels.items() <= dict(pod.labels).items() for pod in pods),
            "readyReplicas": len(times),
            "availableReplicas": len(times) - len(coming),
            "observedGeneration": replica_set.metadata.get("generation") or 0,
        }
        conditions = replica_set.status.get("conditions") or []
        if conditions and key not in self._refusals:
            status["conditions"] = [c for c in conditions if c.get("type") != "ReplicaFailure"]
        return status

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """A pod was refused: set the ReplicaFailure condition and retry with exponential backoff."""
        if not isinstance(write, Create) or isinstance(error, NotFound):
            return []
        meta = write.raw["metadata"]
        key = (meta["namespace"], meta["ownerReferences"][0]["name"])
        if self._waits(key, now):
            return []  # a refusal in the same batch was handled already
        times = self._refusals.get(key, 0)
        self._refusals[key] = times + 1
        self._later.set(key, now + min(_FIRST_RETRY_S * 2**times, _LONGEST_RETRY_S))
        replica_set = view.find("ReplicaSet", *key)
        if replica_set is None:
            return []
        failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": str(error)}
        conditions = with_condition(replica_set.status.get("conditions"), failure, stamp(now))
        return [status_of(replica_set, {"conditions": conditions})]
