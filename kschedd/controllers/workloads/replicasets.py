"""The ReplicaSet controller: creates and deletes pods to reach spec.replicas; surplus pods are deleted in rank order.

The controller handles ReplicationControllers like ReplicaSets, but with another type of selector. Upstream's
expectations are not needed, because a controller in kschedd always reads its own writes. Source: Kubernetes v1.34,
controller/replicaset/replica_set.go, controller/replication.

"""

from collections.abc import Generator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from kschedd.api.conditions import condition, with_condition
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.selecting.selectors import LabelSelector
from kschedd.api.text.times import stamp
from kschedd.controllers.object_events import EventRecorder
from kschedd.controllers.running.controller import InSteps, Reconciling, View
from kschedd.controllers.running.timers import Timers
from kschedd.controllers.templates import controller_uid, pod_from_template
from kschedd.controllers.workloads.backoff import CreateBackoff, FailureBackoff, failed_soon, has_failed, was_evicted
from kschedd.controllers.workloads.ownership import Key, Ownership
from kschedd.controllers.workloads.pod_state import available_at, deletion_rank, first_by_rank, is_active
from kschedd.controllers.workloads.tallies import PodsByState, Tallies, Terms
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError, NotFound
from kschedd.store.objects.log import WatchEvent
from kschedd.store.writes import Create, Delete, Patch, Write, status_of, status_write
from kschedd.values import fast_frozen, in_parts

BURST: Final = 500  # maximum number of pods created or deleted per reconcile of a ReplicaSet
_PART: Final = 500  # number of pods counted between two pauses; this takes less than 1 ms
_COMPONENTS: Final = {"ReplicaSet": "replicaset-controller", "ReplicationController": "replication-controller"}
_KINDS: Final = tuple(_COMPONENTS)


@attrs.frozen
class ReplicaTerms(Terms):
    labels: Mapping[str, str]  # of the template
    min_ready_s: int


def terms_of(replica_set: Object, selector: LabelSelector | None) -> ReplicaTerms:
    labels = ((replica_set.spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    return ReplicaTerms(selector, labels, replica_set.spec.get("minReadySeconds") or 0)


@fast_frozen
class _State:
    labeled: bool  # True if the pod has all labels of the template
    ready: bool
    available: bool


class ReplicaTally(PodsByState[_State]):
    """The active pods of a ReplicaSet."""

    def __init__(self, terms: ReplicaTerms) -> None:
        super().__init__()
        self.terms = terms

    def counts(self, dependent: Pod) -> bool:
        return is_active(dependent)

    def state_of(self, item: Pod, now: float) -> tuple[_State, float | None]:
        at = available_at(item, self.terms.min_ready_s)
        coming = at is not None and at > now
        labeled = self.terms.labels.items() <= item.labels.items()
        return _State(labeled, at is not None, at is not None and not coming), at if coming else None


class ReplicaSets(InSteps):
    name: Final = "replicasets"
    kinds: Final = frozenset((*_KINDS, "Pod"))

    def __init__(self, *, detailed_events: bool = False) -> None:
        self._later: Timers[Key] = Timers()
        self.creations = CreateBackoff(self._later)
        self._events = {kind: EventRecorder(name, detailed=detailed_events) for kind, name in _COMPONENTS.items()}
        self._detailed_events = detailed_events
        self._pods = Ownership(_KINDS, "Pod")
        self._tallies: Tallies[ReplicaTally] = Tallies(_KINDS)
        # ReplicaSets whose pods failed or were evicted soon after their creation, since pods were last created
        self._failing: set[Key] = set()
        self._failures: FailureBackoff[Key] = FailureBackoff()
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        return self._later.next

    @property
    def next_work(self) -> float | None:
        return self.creations.next_other

    def concerns(self, event: WatchEvent) -> bool:
        return self._pods.concerns(event)

    def reconciling(self, events: Sequence[WatchEvent], view: View, now: float) -> Reconciling:
        changed: dict[Key, None] = {}
        for event in events:
            keys = list(self._pods.observe(event))
            changed.update(dict.fromkeys(keys))
            if (has_failed(event) or was_evicted(event)) and failed_soon(event.new, now):
                self._failing.update(keys)
        changed.update(dict.fromkeys(self._later.due(now)))
        yield from self._tallies.catching_up(view, now)
        writes: list[Write] = []
        for kind, namespace, name in changed:
            look = partial(self._look_at, view, kind)
            writes += yield from self.faults.each_in_steps(kind, [(namespace, name)], look, now)
        return writes

    def _look_at(self, view: View, kind: str, namespace: str, name: str, now: float) -> Reconciling:
        replica_set = view.find(kind, namespace, name)
        if replica_set is not None:
            return (yield from self._sync(replica_set, view, now))
        self._later.clear((kind, namespace, name))
        self.creations.clear((kind, namespace, name))
        self._failures.forget((kind, namespace, name))
        self._failing.discard((kind, namespace, name))
        return []

    def _sync(self, replica_set: Object, view: View, now: float) -> Reconciling:
        begin = partial(ReplicaTally, terms_of(replica_set, self._pods.selector(replica_set)))
        tally, writes = yield from self._tallies.taking(replica_set, begin, self._pods, view, now)
        tally.pass_time(now)
        if not replica_set.deleting:
            writes += yield from self._scale(replica_set, tally, view, now)
        return writes + status_write(replica_set, self._status(replica_set, tally), ("replicas",))

    def _scale(self, replica_set: Object, tally: ReplicaTally, view: View, now: float) -> Reconciling:
        """Return the pods to create or delete to reach spec.replicas."""
        key = _key(replica_set)
        surplus = len(tally.items) - replica_set.spec.get("replicas", 1)
        if abs(surplus) > BURST:
            self._later.set(key, now)
        if surplus < 0:
            if self.creations.waits(key, now) or self._waits_after_failures(key, now):
                return []
            wanted = pod_from_template(replica_set, replica_set.spec.get("template") or {})
            return [Create(wanted)] * min(-surplus, BURST)
        if surplus > 0:
            beside = yield from self._beside(replica_set, view)
            rank = partial(deletion_rank, beside=beside, now=now)
            first = yield from first_by_rank(tally.items.values(), rank, min(surplus, BURST))
            return [Delete("Pod", pod.namespace, pod.name, pod.uid) for pod in first]
        self.creations.clear(key)
        return []

    def _waits_after_failures(self, key: Key, now: float) -> bool:
        if key not in self._failing:
            return False
        due = self._failures.due(key, now)
        if due is not None:
            self._later.set(key, due)
            return True
        self._failing.discard(key)
        self._failures.count(key, now)
        return False

    def _beside(self, replica_set: Object, view: View) -> Generator[None, None, dict[str, int]]:
        """Return the number of active pods on each node, counting all ReplicaSets with the same controller."""
        owner = controller_uid(replica_set)
        related = [rs for rs in view.owned_by(owner) if rs.kind == "ReplicaSet"] if owner else [replica_set]
        count: dict[str, int] = {}
        for each in related:
            for some in in_parts(view.owned_by(each.uid), _PART):
                for pod in some:
                    if isinstance(pod, Pod) and is_active(pod):
                        count[pod.node_name] = count.get(pod.node_name, 0) + 1
                yield
        return count

    def _status(self, replica_set: Object, tally: "ReplicaTally") -> dict[str, Any]:
        key = _key(replica_set)
        if tally.next_change is not None and key not in self._later:
            self._later.set(key, tally.next_change)
        status: dict[str, Any] = {
            "replicas": len(tally.items),
            "fullyLabeledReplicas": tally.count(lambda pod: pod.labeled),
            "readyReplicas": tally.count(lambda pod: pod.ready),
            "availableReplicas": tally.count(lambda pod: pod.available),
            "observedGeneration": replica_set.metadata.get("generation") or 0,
        }
        if key not in self.creations and condition(replica_set.status, "ReplicaFailure") is not None:
            conditions = replica_set.status.get("conditions") or []
            status["conditions"] = [c for c in conditions if c.get("type") != "ReplicaFailure"]
        return status

    def on_performed(self, write: Write, obj: Object, view: View, now: float) -> Sequence[Write]:
        """Record the creation or deletion of a pod."""
        owner = obj.owner if self._detailed_events and obj.kind == "Pod" else None
        return () if owner is None else self._events[owner.kind].of_pod(write, obj, view, now)

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Set the ReplicaFailure condition after a rejected pod, and retry with exponential backoff."""
        if isinstance(write, Patch) and write.kind == "Pod":
            for key in self._pods.claimants(write, error, view):
                self._later.set(key, now)
        if not isinstance(write, Create) or isinstance(error, NotFound):
            return []
        meta = write.raw["metadata"]
        owner = meta["ownerReferences"][0]
        key = (owner["kind"], meta["namespace"], owner["name"])
        if not self.creations.refused(key, now):
            return []  # another rejection of the same batch was already handled
        replica_set = view.find(*key)
        if replica_set is None:
            return []
        failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": str(error)}
        conditions = with_condition(replica_set.status.get("conditions"), failure, stamp(now))
        recorder = self._events[replica_set.kind]
        events = recorder.failure(replica_set, error, now, "FailedCreate", f"Error creating: {error}")
        return [*events, status_of(replica_set, {"conditions": conditions})]


def _key(workload: Object) -> Key:
    return workload.kind, workload.namespace, workload.name
