"""The Deployment controller: maintains one ReplicaSet per pod template; a rollout moves replicas to the new ReplicaSet.

Source: Kubernetes v1.34, controller/deployment (deployment_controller.go, sync.go, rolling.go, recreate.go). `rollout`
computes the sizes of a rolling update; `deployment_status` computes the status.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.controllers.object_events import EventRecorder
from kschedd.controllers.running.controller import InSteps, Reconciling, View
from kschedd.controllers.running.derived import Derived
from kschedd.controllers.running.timers import Timers
from kschedd.controllers.templates import controller_in, controller_uid
from kschedd.controllers.workloads.deployment_sets import (
    DESIRED,
    REVISION,
    Rollout,
    annotated_int,
    compared_template,
    new_replica_set,
    new_set_annotations,
    replicas_of,
    rollout_of,
    size_annotations,
    size_of,
    status_int,
)
from kschedd.controllers.workloads.deployment_status import counts_of, deployment_status, is_complete
from kschedd.controllers.workloads.ownership import Key, Ownership
from kschedd.controllers.workloads.rollout import Replicas, proportioned, scale_down, scale_up
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import AlreadyExists, ApiError, NotFound
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.store.writes import Create, Delete, Patch, Write, patch_of, status_of, status_write


class Deployments(InSteps):
    name: Final = "deployments"
    kinds: Final = frozenset(("Deployment", "ReplicaSet", "Pod"))

    def __init__(self, *, detailed_events: bool = False) -> None:
        self._later: Timers[Key] = Timers()
        self._sets = Ownership(("Deployment",), "ReplicaSet")
        self._templates = Derived(compared_template)
        self._events = EventRecorder("deployment-controller", detailed=detailed_events)
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        return self._later.next

    def concerns(self, event: WatchEvent) -> bool:
        return event.new.kind != "Pod" or _has_ended(event)

    def reconciling(self, events: Sequence[WatchEvent], view: View, now: float) -> Reconciling:
        changed: dict[Key, None] = {}
        for event in events:
            new = event.new
            if new.kind != "Pod":
                if event.type == DELETED:
                    self._templates.forget(new)
                changed.update(dict.fromkeys(self._sets.observe(event)))
            elif _has_ended(event):
                # the Recreate strategy waits until all old pods have been removed
                self._after_pod(new, view, changed)
        changed.update(dict.fromkeys(self._later.due(now)))
        writes: list[Write] = []
        for _, namespace, name in changed:
            writes += self.faults.each("Deployment", [(namespace, name)], partial(self._look_at, view), now)
            yield
        return writes

    def _look_at(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        deployment = view.find("Deployment", namespace, name)
        if deployment is not None:
            return self._sync(deployment, view, now)
        self._later.clear(("Deployment", namespace, name))
        return []

    def _after_pod(self, pod: Object, view: View, changed: dict[Key, None]) -> None:
        owner = pod.owner
        replica_set = view.find("ReplicaSet", pod.namespace, owner.name) if owner is not None else None
        above = replica_set.owner if replica_set is not None else None
        if above is not None and above.kind == "Deployment":
            changed["Deployment", pod.namespace, above.name] = None

    def _sync(self, deployment: Object, view: View, now: float) -> list[Write]:
        claimed = self._sets.claim(deployment, view)
        rollout = rollout_of(deployment, claimed.dependents, self._templates.of)
        writes = claimed.writes
        rolls = False
        if not deployment.deleting:
            rolls = not deployment.spec.get("paused") and not self._was_scaled(rollout)
            steps = self._annotate(rollout)
            if not rolls:
                steps += self._scale(rollout)
            elif not steps:
                steps = self._recreate(rollout, view) if rollout.recreate else self._roll(rollout)
            writes += steps or self._clean_up(rollout, paused=bool(deployment.spec.get("paused")))
        created = next((write.raw["metadata"]["name"] for write in writes if isinstance(write, Create)), "")
        status, deadline = deployment_status(rollout, created, now, estimates=rolls)
        key = ("Deployment", deployment.namespace, deployment.name)
        if deadline is None or deployment.deleting:
            self._later.clear(key)
        else:
            self._later.set(key, deadline)
        return writes + status_write(deployment, status)

    # --- sizes ---------------------------------------------------------------------------------------------------

    def _was_scaled(self, rollout: Rollout) -> bool:
        """Return whether spec.replicas has changed since the Deployment last resized a nonempty ReplicaSet."""
        sized = (rs for rs in rollout.all if size_of(rs) > 0 and rs.annotations.get(DESIRED))
        return any(annotated_int(rs, DESIRED) != rollout.wanted for rs in sized)

    def _scale(self, rollout: Rollout) -> list[Write]:
        """Scale the ReplicaSets after spec.replicas changed. Source: sync.go, scale."""
        sized = [rs for rs in rollout.all if size_of(rs) > 0]
        latest = rollout.new or (rollout.old[-1] if rollout.old else None)
        if len(sized) <= 1:
            only = sized[0] if sized else latest
            return self._resize(rollout, only, rollout.wanted) if only is not None else []
        new = rollout.new
        if new is not None and size_of(new) == rollout.wanted == status_int(new, "availableReplicas"):
            return [write for rs in rollout.old for write in self._resize(rollout, rs, 0)]
        if rollout.recreate:
            return []
        sizes = proportioned([replicas_of(rs) for rs in sized], rollout.wanted, rollout.surge)
        return [write for rs in sized for write in self._resize(rollout, rs, sizes.get(rs.name, size_of(rs)))]

    def _roll(self, rollout: Rollout) -> list[Write]:
        new = rollout.new
        old = [replicas_of(rs) for rs in rollout.old]
        if new is None:
            nothing = Replicas("", 0, 0, "")
            return self._make(rollout, scale_up(nothing, sum(r.wanted for r in old), rollout.wanted, rollout.surge))
        mine = replicas_of(new)
        size = rollout.wanted
        if mine.wanted < rollout.wanted:
            size = scale_up(mine, mine.wanted + sum(r.wanted for r in old), rollout.wanted, rollout.surge)
        if size != mine.wanted:
            return self._resize(rollout, new, size)
        sizes = scale_down([r for r in old if r.wanted > 0], mine, rollout.wanted, rollout.unavailable)
        by_name = {rs.name: rs for rs in rollout.old}
        return [write for name, size in sizes.items() for write in self._resize(rollout, by_name[name], size)]

    def _recreate(self, rollout: Rollout, view: View) -> list[Write]:
        """Scale all old ReplicaSets to 0. When no old pod is left, create or scale up the new ReplicaSet."""
        writes = [write for rs in rollout.old if size_of(rs) > 0 for write in self._resize(rollout, rs, 0)]
        if writes or any(_lives(pod) for rs in rollout.old for pod in view.owned_by(rs.uid)):
            return writes
        if rollout.new is None:
            return self._make(rollout, rollout.wanted)
        return self._resize(rollout, rollout.new, rollout.wanted)

    def _resize(self, rollout: Rollout, replica_set: Object, size: int) -> list[Write]:
        noted = size_annotations(rollout)
        if size == size_of(replica_set) and noted.items() <= replica_set.annotations.items():
            return []
        return [patch_of(replica_set, {"metadata": {"annotations": noted}, "spec": {"replicas": size}})]

    def _make(self, rollout: Rollout, size: int) -> list[Write]:
        """Create the ReplicaSet for the Deployment's current template."""
        return [Create(new_replica_set(rollout, size)), *self._note_revision(rollout, rollout.revision)]

    # --- annotations and history ---------------------------------------------------------------------------------

    def _annotate(self, rollout: Rollout) -> list[Write]:
        """Update annotations, revision and minReadySeconds of the new ReplicaSet."""
        new = rollout.new
        if new is None:
            return []
        patch: dict[str, object] = {}
        noted = new_set_annotations(rollout)
        if noted:
            patch["metadata"] = {"annotations": noted}
        wait = rollout.deployment.spec.get("minReadySeconds") or 0
        if wait != (new.spec.get("minReadySeconds") or 0):
            patch["spec"] = {"minReadySeconds": wait}
        revision = int(noted.get(REVISION) or annotated_int(new, REVISION))
        return ([patch_of(new, patch)] if patch else []) + self._note_revision(rollout, revision)

    def _note_revision(self, rollout: Rollout, revision: int) -> list[Write]:
        if rollout.deployment.annotations.get(REVISION) == str(revision):
            return []
        return [patch_of(rollout.deployment, {"metadata": {"annotations": {REVISION: str(revision)}}})]

    def _clean_up(self, rollout: Rollout, *, paused: bool) -> list[Write]:
        """Delete old ReplicaSets beyond the history limit, oldest revision first, once the rollout is complete."""
        limit = rollout.deployment.spec.get("revisionHistoryLimit")
        if limit is None or not (paused or is_complete(rollout, counts_of(rollout))):
            return []
        alive = [rs for rs in rollout.old if not rs.deleting]
        alive.sort(key=lambda rs: annotated_int(rs, REVISION))
        surplus = alive[: max(0, len(alive) - limit)]
        idle = [rs for rs in surplus if not size_of(rs) and not status_int(rs, "replicas") and _is_observed(rs)]
        return [Delete("ReplicaSet", rs.namespace, rs.name, rs.uid) for rs in idle]

    def on_performed(self, write: Write, obj: Object, view: View, now: float) -> Sequence[Write]:
        """Record a new size of a ReplicaSet. Source: sync.go, getNewReplicaSet and scaleReplicaSet."""
        if not self._events.detailed or obj.kind != "ReplicaSet" or isinstance(write, Delete):
            return ()
        before = size_of(write.seen) if isinstance(write, Patch) and write.seen is not None else 0
        size = size_of(obj)
        deployment = controller_in(view, obj) if size != before else None
        if deployment is None:
            return ()
        message = f"Scaled {'up' if size > before else 'down'} replica set {obj.name} from {before} to {size}"
        return self._events.event(deployment, "ScalingReplicaSet", message, now)

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """If the name belongs to another owner's ReplicaSet, increment collisionCount, which changes the hash."""
        for key in self._sets.claimants(write, error, view):
            self._later.set(key, now)
        if not isinstance(write, Create):
            return []
        meta = write.raw["metadata"]
        owner = meta["ownerReferences"][0]
        deployment = view.find("Deployment", meta["namespace"], owner["name"])
        if not isinstance(error, AlreadyExists):
            if deployment is None or isinstance(error, NotFound):
                return []
            why = f'Failed to create new replica set "{meta["name"]}": {error}'
            return self._events.failure(deployment, error, now, "ReplicaSetCreateError", why)
        present = view.find("ReplicaSet", meta["namespace"], meta["name"])
        if deployment is None or present is None or controller_uid(present) == deployment.uid:
            return []
        return [status_of(deployment, {"collisionCount": status_int(deployment, "collisionCount") + 1})]


def _has_ended(event: WatchEvent) -> bool:
    """Return whether the pod of this event has ended or was deleted."""
    return event.type == "DELETED" or (
        event.old is not None and event.new.status.get("phase") in ("Succeeded", "Failed")
    )


def _is_observed(replica_set: Object) -> bool:
    return (replica_set.metadata.get("generation") or 0) <= status_int(replica_set, "observedGeneration")


def _lives(obj: Object) -> bool:
    return isinstance(obj, Pod) and not obj.finished
