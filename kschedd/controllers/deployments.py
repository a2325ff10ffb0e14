"""The Deployment controller: one ReplicaSet per pod template; a rollout moves replicas from the old ones to the new.

Source: Kubernetes v1.34, controller/deployment (sync.go, rolling.go, recreate.go, progress.go) and its util.
`rollout` computes the sizes of a rolling update. Owns the progress deadlines.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.controllers.conditions import condition, with_condition
from kschedd.controllers.controller import View
from kschedd.controllers.rollout import Replicas, fenceposts, proportioned, scale_down, scale_up
from kschedd.controllers.templates import (
    TEMPLATE_HASH,
    active,
    controller_reference,
    controller_uid,
    template_hash,
    without_hash,
)
from kschedd.controllers.timers import Timers
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import AlreadyExists, ApiError
from kschedd.store.log import WatchEvent
from kschedd.store.times import seconds, stamp
from kschedd.store.writes import Create, Delete, Write, patch_of, status_of

REVISION: Final = "deployment.kubernetes.io/revision"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS: Final = "deployment.kubernetes.io/max-replicas"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_NOTHING: Mapping[str, Any] = {}

Key = tuple[str, str]


@attrs.frozen(eq=False)
class _Rollout:
    """A Deployment, its ReplicaSets, and its sizes in pods."""

    deployment: Object
    new: Object | None
    old: Sequence[Object]
    wanted: int
    surge: int
    unavailable: int
    recreate: bool

    @property
    def all(self) -> list[Object]:
        return [*self.old, *([self.new] if self.new is not None else [])]


def _int(annotations: Mapping[str, str], name: str) -> int:
    try:
        return int(annotations.get(name) or 0)
    except ValueError:
        return 0


def _size(replica_set: Object) -> int:
    return int(replica_set.spec.get("replicas", 1))


def _status_int(obj: Object, name: str) -> int:
    return int(obj.status.get(name) or 0)


def _replicas(replica_set: Object) -> Replicas:
    return Replicas(
        replica_set.name,
        _size(replica_set),
        _status_int(replica_set, "availableReplicas"),
        replica_set.metadata.get("creationTimestamp") or "",
        _int(replica_set.annotations, MAX_REPLICAS),
    )


def _rollout(deployment: Object, view: View) -> _Rollout:
    template = without_hash(deployment.spec.get("template") or {})
    owned = [
        obj
        for obj in view.owned_by(deployment.uid)
        if obj.kind == "ReplicaSet" and controller_uid(obj) == deployment.uid
    ]
    owned.sort(key=lambda rs: (rs.metadata.get("creationTimestamp") or "", rs.name))
    matching = [rs for rs in owned if without_hash(rs.spec.get("template") or {}) == template]
    new = matching[0] if matching else None
    strategy = deployment.spec.get("strategy") or {}
    rolling = strategy.get("rollingUpdate") or {}
    wanted = int(deployment.spec.get("replicas", 1))
    recreate = strategy.get("type") == "Recreate"
    surge, unavailable = fenceposts(rolling.get("maxSurge", "25%"), rolling.get("maxUnavailable", "25%"), wanted)
    if recreate:
        surge, unavailable = 0, 0
    old = [rs for rs in owned if rs is not new]
    return _Rollout(deployment, new, old, wanted, surge, unavailable, recreate)


class Deployments:
    name: Final = "deployments"
    kinds: Final = frozenset(("Deployment", "ReplicaSet", "Pod"))

    def __init__(self) -> None:
        self._later: Timers[Key] = Timers()
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        return self._later.next

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        changed: dict[Key, None] = {}
        for event in events:
            new = event.new
            if new.kind == "Deployment":
                changed[new.namespace, new.name] = None
            elif new.kind == "ReplicaSet":
                for version in (event.old, new):
                    owner = version.owner if version is not None else None
                    if owner is not None and owner.kind == "Deployment":
                        changed[new.namespace, owner.name] = None
            elif event.type == "DELETED" or (
                event.old is not None and new.status.get("phase") in ("Succeeded", "Failed")
            ):
                # The Recreate strategy waits until the last old pod is gone.
                self._after_pod(new, view, changed)
        changed.update(dict.fromkeys(self._later.due(now)))
        return self.faults.each("Deployment", changed, partial(self._look_at, view), now)

    def _look_at(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        deployment = view.find("Deployment", namespace, name)
        if deployment is not None:
            return self._sync(deployment, view, now)
        self._later.clear((namespace, name))
        return []

    def _after_pod(self, pod: Object, view: View, changed: dict[Key, None]) -> None:
        owner = pod.owner
        replica_set = view.find("ReplicaSet", pod.namespace, owner.name) if owner is not None else None
        above = replica_set.owner if replica_set is not None else None
        if above is not None and above.kind == "Deployment":
            changed[pod.namespace, above.name] = None

    def _sync(self, deployment: Object, view: View, now: float) -> list[Write]:
        rollout = _rollout(deployment, view)
        writes: list[Write] = []
        if not deployment.deleting:
            if deployment.spec.get("paused") or self._was_scaled(rollout):
                writes += self._scale(rollout)
            elif rollout.recreate:
                writes += self._recreate(rollout, view)
            else:
                writes += self._roll(rollout)
            writes += self._clean_up(rollout)
        status = self._status(rollout, now)
        if any(deployment.status.get(name) != value for name, value in status.items()):
            writes.append(status_of(deployment, status))
        return writes

    # --- sizes ---------------------------------------------------------------------------------------------------

    def _was_scaled(self, rollout: _Rollout) -> bool:
        """Whether spec.replicas changed since the Deployment last sized a ReplicaSet whose size is not 0."""
        sized = (rs for rs in rollout.all if _size(rs) > 0 and rs.annotations.get(DESIRED))
        return any(_int(rs.annotations, DESIRED) != rollout.wanted for rs in sized)

    def _scale(self, rollout: _Rollout) -> list[Write]:
        """Source: sync.go, scale."""
        sized = [rs for rs in rollout.all if _size(rs) > 0]
        latest = rollout.new or (rollout.old[-1] if rollout.old else None)
        if len(sized) <= 1:
            only = sized[0] if sized else latest
            return self._resize(rollout, only, rollout.wanted) if only is not None else []
        new = rollout.new
        if new is not None and _size(new) == rollout.wanted == _status_int(new, "availableReplicas"):
            return [write for rs in rollout.old for write in self._resize(rollout, rs, 0)]
        if rollout.recreate:
            return []
        sizes = proportioned([_replicas(rs) for rs in sized], rollout.wanted, rollout.surge)
        return [write for rs in sized for write in self._resize(rollout, rs, sizes.get(rs.name, _size(rs)))]

    def _roll(self, rollout: _Rollout) -> list[Write]:
        new = rollout.new
        old = [_replicas(rs) for rs in rollout.old]
        if new is None:
            nothing = Replicas("", 0, 0, "")
            return self._make(rollout, scale_up(nothing, sum(r.wanted for r in old), rollout.wanted, rollout.surge))
        mine = _replicas(new)
        size = rollout.wanted
        if mine.wanted < rollout.wanted:
            size = scale_up(mine, mine.wanted + sum(r.wanted for r in old), rollout.wanted, rollout.surge)
        if size != mine.wanted or self._stale(rollout, new):
            return self._resize(rollout, new, size)
        sizes = scale_down([r for r in old if r.wanted > 0], mine, rollout.wanted, rollout.unavailable)
        by_name = {rs.name: rs for rs in rollout.old}
        return [write for name, size in sizes.items() for write in self._resize(rollout, by_name[name], size)]

    def _recreate(self, rollout: _Rollout, view: View) -> list[Write]:
        """Scale all old ReplicaSets to 0; once no old pod is left, create or scale up the new ReplicaSet."""
        writes = [write for rs in rollout.old if _size(rs) > 0 for write in self._resize(rollout, rs, 0)]
        if writes or any(_lives(pod) for rs in rollout.old for pod in view.owned_by(rs.uid)):
            return writes
        if rollout.new is None:
            return self._make(rollout, rollout.wanted)
        return self._resize(rollout, rollout.new, rollout.wanted)

    def _annotations(self, rollout: _Rollout, revision: int | None = None) -> dict[str, str]:
        noted = {DESIRED: str(rollout.wanted), MAX_REPLICAS: str(rollout.wanted + rollout.surge)}
        if revision is not None:
            noted[REVISION] = str(revision)
        return noted

    def _revision(self, rollout: _Rollout) -> int:
        return max((_int(rs.annotations, REVISION) for rs in rollout.old), default=0) + 1

    def _stale(self, rollout: _Rollout, new: Object) -> bool:
        return _int(new.annotations, REVISION) < self._revision(rollout)

    def _resize(self, rollout: _Rollout, replica_set: Object, size: int) -> list[Write]:
        revision = None
        if replica_set is rollout.new and self._stale(rollout, replica_set):
            revision = self._revision(rollout)
        noted = self._annotations(rollout, revision)
        if size == _size(replica_set) and noted.items() <= dict(replica_set.annotations).items():
            return []
        patch = {"metadata": {"annotations": noted}, "spec": {"replicas": size}}
        writes: list[Write] = [patch_of(replica_set, patch)]
        return writes + (self._note_revision(rollout, revision) if revision is not None else [])

    def _note_revision(self, rollout: _Rollout, revision: int) -> list[Write]:
        return [patch_of(rollout.deployment, {"metadata": {"annotations": {REVISION: str(revision)}}})]

    def _make(self, rollout: _Rollout, size: int) -> list[Write]:
        """Create the ReplicaSet for the Deployment's present template."""
        deployment = rollout.deployment
        template: Raw = deployment.spec.get("template") or {}
        digest = template_hash(template, _status_int(deployment, "collisionCount"))
        meta = template.get("metadata") or {}
        labels = {**(meta.get("labels") or {}), TEMPLATE_HASH: digest}
        selector = deployment.spec.get("selector") or {}
        match = {**(selector.get("matchLabels") or {}), TEMPLATE_HASH: digest}
        revision = self._revision(rollout)
        own = {n: v for n, v in deployment.annotations.items() if n not in (_LAST_APPLIED, REVISION, DESIRED)}
        raw = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": f"{deployment.name}-{digest}",
                "namespace": deployment.namespace,
                "labels": labels,
                "annotations": {**own, **self._annotations(rollout, revision)},
                "ownerReferences": [controller_reference(deployment)],
            },
            "spec": {
                "replicas": size,
                "minReadySeconds": deployment.spec.get("minReadySeconds") or 0,
                "selector": {**selector, "matchLabels": match},
                "template": {**template, "metadata": {**meta, "labels": labels}},
            },
        }
        return [Create(raw), *self._note_revision(rollout, revision)]

    def _clean_up(self, rollout: _Rollout) -> list[Write]:
        """Delete old ReplicaSets beyond the history limit, oldest revision first, once the rollout is complete."""
        limit = rollout.deployment.spec.get("revisionHistoryLimit")
        if limit is None or rollout.new is None or not _complete(rollout, self._counts(rollout)):
            return []
        idle = [rs for rs in rollout.old if not _size(rs) and not _status_int(rs, "replicas") and not rs.deleting]
        idle.sort(key=lambda rs: _int(rs.annotations, REVISION))
        surplus = idle[: max(0, len(rollout.old) - limit)]
        return [Delete("ReplicaSet", rs.namespace, rs.name, rs.uid) for rs in surplus]

    # --- status --------------------------------------------------------------------------------------------------

    def _counts(self, rollout: _Rollout) -> dict[str, int]:
        total = sum(_status_int(rs, "replicas") for rs in rollout.all)
        available = sum(_status_int(rs, "availableReplicas") for rs in rollout.all)
        return {
            "replicas": total,
            "updatedReplicas": _status_int(rollout.new, "replicas") if rollout.new is not None else 0,
            "readyReplicas": sum(_status_int(rs, "readyReplicas") for rs in rollout.all),
            "availableReplicas": available,
            "unavailableReplicas": max(0, sum(_size(rs) for rs in rollout.all) - available),
        }

    def _status(self, rollout: _Rollout, now: float) -> dict[str, Any]:
        deployment = rollout.deployment
        counts = self._counts(rollout)
        status: dict[str, Any] = {**counts, "observedGeneration": deployment.metadata.get("generation") or 0}
        at = stamp(now)
        enough = counts["availableReplicas"] >= rollout.wanted - rollout.unavailable
        available = {
            "type": "Available",
            "status": "True" if enough else "False",
            "reason": "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
            "message": f"Deployment {'has' if enough else 'does not have'} minimum availability.",
        }
        conditions: Sequence[Raw] = deployment.status.get("conditions") or ()
        if not _same(condition(deployment.status, "Available"), available):
            conditions = with_condition(conditions, {**available, "lastUpdateTime": at}, at)
        progressing = self._progressing(rollout, counts, now)
        if progressing is not None and not _same(condition(deployment.status, "Progressing"), progressing):
            conditions = with_condition(conditions, {**progressing, "lastUpdateTime": at}, at)
        elif progressing is not None and progressing["reason"] == "ReplicaSetUpdated":
            if any(_status_int(deployment, name) != counts[name] for name in counts):
                conditions = with_condition(conditions, {**progressing, "lastUpdateTime": at}, at)
        status["conditions"] = list(conditions)
        return status

    def _progressing(self, rollout: _Rollout, counts: Mapping[str, int], now: float) -> dict[str, str] | None:
        """The desired Progressing condition; also sets the timer for the progress deadline."""
        deployment = rollout.deployment
        key = (deployment.namespace, deployment.name)
        deadline = deployment.spec.get("progressDeadlineSeconds")
        if deadline is None or rollout.new is None:
            return None
        name = rollout.new.name
        entry = {"type": "Progressing", "status": "True"}
        if _complete(rollout, counts):
            self._later.clear(key)
            done = f'ReplicaSet "{name}" has successfully progressed.'
            return {**entry, "reason": "NewReplicaSetAvailable", "message": done}
        present = condition(deployment.status, "Progressing")
        moved = any(_status_int(deployment, field) != counts[field] for field in counts)
        entry.update(reason="ReplicaSetUpdated", message=f'ReplicaSet "{name}" is progressing.')
        if present is not None and not moved and present.get("message", "").startswith(f'ReplicaSet "{name}"'):
            since = seconds(present.get("lastUpdateTime") or stamp(now))
            late = f'ReplicaSet "{name}" has timed out progressing.'
            too_late = {**entry, "status": "False", "reason": "ProgressDeadlineExceeded", "message": late}
            if present.get("reason") == "ProgressDeadlineExceeded" or since + deadline <= now:
                return too_late
            self._later.set(key, since + deadline)
        else:
            self._later.set(key, now + deadline)
        return entry

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """A ReplicaSet name taken by another owner's is a hash collision: increment collisionCount for a new hash."""
        if not isinstance(write, Create) or not isinstance(error, AlreadyExists):
            return []
        meta = write.raw["metadata"]
        owner = meta["ownerReferences"][0]
        deployment = view.find("Deployment", meta["namespace"], owner["name"])
        present = view.find("ReplicaSet", meta["namespace"], meta["name"])
        if deployment is None or present is None or controller_uid(present) == deployment.uid:
            return []
        return [status_of(deployment, {"collisionCount": _status_int(deployment, "collisionCount") + 1})]


def _complete(rollout: _Rollout, counts: Mapping[str, int]) -> bool:
    wanted = rollout.wanted
    return counts["updatedReplicas"] == counts["replicas"] == counts["availableReplicas"] == wanted


def _same(present: Raw | None, wanted: Mapping[str, str]) -> bool:
    return present is not None and all(present.get(name) == value for name, value in wanted.items())


def _lives(obj: Object) -> bool:
    return bool(active([obj])) or (obj.kind == "Pod" and obj.deleting)
