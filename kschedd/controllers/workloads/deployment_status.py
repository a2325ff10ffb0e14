"""The status of a Deployment: counts, and the conditions Available, Progressing and ReplicaFailure.

Source: Kubernetes v1.34, controller/deployment/progress.go, sync.go (calculateStatus, checkPausedConditions) and
util/deployment_util.go (DeploymentComplete, DeploymentProgressing, DeploymentTimedOut).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kschedd.api.conditions import condition, with_condition
from kschedd.api.objects import Object, Raw
from kschedd.api.text.times import seconds, stamp
from kschedd.controllers.workloads.deployment_sets import Rollout, size_of, status_int

_AVAILABLE, _PROGRESSING, _FAILURE = "Available", "Progressing", "ReplicaFailure"


def counts_of(rollout: Rollout) -> dict[str, int]:
    available = sum(status_int(rs, "availableReplicas") for rs in rollout.all)
    return {
        "replicas": sum(status_int(rs, "replicas") for rs in rollout.all),
        "updatedReplicas": status_int(rollout.new, "replicas") if rollout.new is not None else 0,
        "readyReplicas": sum(status_int(rs, "readyReplicas") for rs in rollout.all),
        "availableReplicas": available,
        "unavailableReplicas": max(0, sum(size_of(rs) for rs in rollout.all) - available),
    }


def is_complete(rollout: Rollout, counts: Mapping[str, int]) -> bool:
    """Return whether all replicas are updated and available, and no old replica is left."""
    observed = rollout.deployment.metadata.get("generation") or 0
    wanted = rollout.wanted
    return observed >= 0 and counts["updatedReplicas"] == counts["replicas"] == counts["availableReplicas"] == wanted


def deployment_status(
    rollout: Rollout, created: str, now: float, *, estimates: bool
) -> tuple[dict[str, Any], float | None]:
    """Return the status, and the time at which the progress deadline passes; None if no deadline applies.

    `created` is the name of the ReplicaSet that is being created, or "". `estimates` is true after a step of a rollout,
    and false after scaling or pausing.
    """
    deployment = rollout.deployment
    counts = counts_of(rollout)
    at = stamp(now)
    conditions: Sequence[Raw] = deployment.status.get("conditions") or ()
    enough = counts["availableReplicas"] >= rollout.wanted - min(rollout.unavailable, rollout.wanted)
    conditions = _set(
        conditions,
        {
            "type": _AVAILABLE,
            "status": "True" if enough else "False",
            "reason": "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
            "message": f"Deployment {'has' if enough else 'does not have'} minimum availability.",
        },
        at,
    )
    deadline = deployment.spec.get("progressDeadlineSeconds")
    if deadline is not None:
        conditions = _paused(deployment, conditions, at)
    if estimates:
        conditions = _progress(rollout, counts, conditions, created, deadline, now)
        conditions = _failures(rollout, conditions, at)
    status = {
        **counts,
        "observedGeneration": deployment.metadata.get("generation") or 0,
        "conditions": list(conditions),
    }
    progressing = _find(conditions, _PROGRESSING)
    runs = deadline is not None and progressing is not None
    if (
        not runs
        or progressing is None
        or progressing["reason"] in ("NewReplicaSetAvailable", "ProgressDeadlineExceeded")
    ):
        return status, None
    if deployment.spec.get("paused"):
        return status, None
    return status, seconds(progressing.get("lastUpdateTime") or at) + (deadline or 0)


def _find(conditions: Sequence[Raw], type_: str) -> Raw | None:
    return condition({"conditions": conditions}, type_)


def _without(conditions: Sequence[Raw], type_: str) -> Sequence[Raw]:
    return [entry for entry in conditions if entry.get("type") != type_]


def _set(conditions: Sequence[Raw], wanted: Mapping[str, str], at: str, *, again: bool = False) -> Sequence[Raw]:
    """Return the conditions with `wanted` set.

    If its status and reason are unchanged, the condition is set only with `again`.
    """
    present = _find(conditions, wanted["type"])
    same = present is not None and all(present.get(name) == wanted[name] for name in ("status", "reason"))
    return conditions if same and not again else with_condition(conditions, {**wanted, "lastUpdateTime": at}, at)


def _paused(deployment: Object, conditions: Sequence[Raw], at: str) -> Sequence[Raw]:
    """Return the conditions of a paused Deployment: Progressing gets the reason DeploymentPaused.

    The progress deadline therefore starts again when the Deployment is resumed.
    """
    present = _find(conditions, _PROGRESSING)
    if present is not None and present.get("reason") == "ProgressDeadlineExceeded":
        return conditions
    is_noted = present is not None and present.get("reason") == "DeploymentPaused"
    paused = bool(deployment.spec.get("paused"))
    if paused == is_noted:
        return conditions
    entry = {"type": _PROGRESSING, "status": "Unknown"}
    if paused:
        return _set(conditions, {**entry, "reason": "DeploymentPaused", "message": "Deployment is paused"}, at)
    return _set(conditions, {**entry, "reason": "DeploymentResumed", "message": "Deployment is resumed"}, at)


def _progress(
    rollout: Rollout,
    counts: Mapping[str, int],
    conditions: Sequence[Raw],
    created: str,
    deadline: int | None,
    now: float,
) -> Sequence[Raw]:
    if deadline is None:
        return _without(conditions, _PROGRESSING)
    at = stamp(now)
    entry = {"type": _PROGRESSING, "status": "True"}
    if created:
        made = {**entry, "reason": "NewReplicaSetCreated", "message": f'Created new replica set "{created}"'}
        return _set(conditions, made, at, again=True)
    deployment = rollout.deployment
    subject = f'Deployment "{deployment.name}"'
    if rollout.new is not None:
        subject = f'ReplicaSet "{rollout.new.name}"'
        if _find(conditions, _PROGRESSING) is None:
            found = f'Found new replica set "{rollout.new.name}"'
            conditions = _set(conditions, {**entry, "reason": "FoundNewReplicaSet", "message": found}, at)
    present = _find(conditions, _PROGRESSING)
    was_complete = present is not None and present.get("reason") == "NewReplicaSetAvailable"
    if was_complete and counts["replicas"] == counts["updatedReplicas"]:
        return conditions
    if is_complete(rollout, counts):
        done = {**entry, "reason": "NewReplicaSetAvailable", "message": f"{subject} has successfully progressed."}
        return _set(conditions, done, at)
    if _has_progressed(deployment, counts):
        moving = {**entry, "reason": "ReplicaSetUpdated", "message": f"{subject} is progressing."}
        return _set(conditions, moving, at, again=True)
    if present is not None and _timed_out(present, deadline, now):
        late = {"type": _PROGRESSING, "status": "False", "reason": "ProgressDeadlineExceeded"}
        return _set(conditions, {**late, "message": f"{subject} has timed out progressing."}, at)
    return conditions


def _has_progressed(deployment: Object, counts: Mapping[str, int]) -> bool:
    """Return whether more pods are updated, ready or available than in the status, or fewer pods are old."""
    old_left = status_int(deployment, "replicas") - status_int(deployment, "updatedReplicas")
    return counts["replicas"] - counts["updatedReplicas"] < old_left or any(
        counts[name] > status_int(deployment, name)
        for name in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )


def _timed_out(present: Raw, deadline: int, now: float) -> bool:
    if present.get("reason") == "NewReplicaSetAvailable":
        return False
    since = seconds(present.get("lastUpdateTime") or stamp(now))
    return present.get("reason") == "ProgressDeadlineExceeded" or since + deadline <= now


def _failures(rollout: Rollout, conditions: Sequence[Raw], at: str) -> Sequence[Raw]:
    """Return the conditions with the ReplicaFailure condition of the new ReplicaSet, or else of an old one."""
    sets = [*([rollout.new] if rollout.new is not None else []), *rollout.old]
    for replica_set in sets:
        failure = condition(replica_set.status, _FAILURE)
        if failure is not None and failure.get("status") == "True":
            wanted = {name: failure.get(name, "") for name in ("type", "status", "reason", "message")}
            return _set(conditions, wanted, at)
    return _without(conditions, _FAILURE)
