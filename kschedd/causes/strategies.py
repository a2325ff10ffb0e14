"""Rollouts: strategies that need no additional resources or quota, and restarts."""

from typing import Any, Final

from kschedd.api.text.times import stamp
from kschedd.causes.findings import RemedyOption
from kschedd.causes.steps import RemedyStep, patched
from kschedd.causes.workload import Edit, ExaminedWorkload

Spec = dict[str, Any]
_ROLLOUT_S: Final = 120.0  # virtual seconds until a rollout has ended
_RESTARTED: Final = "kubectl.kubernetes.io/restartedAt"


def in_place(workload: ExaminedWorkload) -> list[RemedyOption]:
    """Return the options that delete old pods before creating new pods; options with one pod at a time are first."""
    recreate = RemedyOption("remove the old pod first (strategy Recreate)", edit=_recreating)
    one_by_one = RemedyOption("replace pods one by one (maxSurge 0, maxUnavailable 1)", edit=_one_by_one)
    return [recreate, one_by_one] if workload.wanted == 1 else [one_by_one, recreate]


def beside_missing(workload: ExaminedWorkload, option: RemedyOption) -> list[RemedyOption]:
    """Return the option combined with a rollout that proceeds although replicas are already missing.

    Old pods are deleted first, because they may occupy the nodes of the new pods. After the rollout, the previous
    strategy is restored, so that later rollouts delete fewer pods at a time.
    """
    missing = workload.wanted - len(workload.scheduled)
    if workload.kind != "Deployment" or missing < 1 or not workload.scheduled:
        return []
    before = workload.spec.get("strategy")
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": missing + 1}}
    raw, place = workload.obj.raw, ("-n", workload.obj.namespace)
    operation = {"op": "add", "path": "/spec/strategy"}
    wait = RemedyStep(("rollout", "status", workload.label, *place, "--timeout=5m"), [], then_s=_ROLLOUT_S)
    how = f"replace pods one by one until it is done (maxSurge 0, maxUnavailable {missing + 1})"
    return [
        RemedyOption(
            f"{option.summary}, and {how}",
            edit=option.edit,
            steps=[patched(raw, [{**operation, "value": rolling}])],
            after=[wait, patched(raw, [{**operation, "value": before} if before else {**operation, "op": "remove"}])],
        )
    ]


def _one_by_one(manifest: dict[str, Any], spec: Spec) -> None:
    manifest["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


def _recreating(manifest: dict[str, Any], spec: Spec) -> None:
    manifest["spec"]["strategy"] = {"type": "Recreate"}


def restarting(workload: ExaminedWorkload, now_s: float) -> Edit:
    """Return the edit that makes the controller replace all pods, as `rollout restart` does."""

    def edit(manifest: dict[str, Any], spec: Spec) -> None:
        template = manifest
        for field in workload.path[:-1]:
            template = template[field]
        meta = template.setdefault("metadata", {})
        meta.setdefault("annotations", {})[_RESTARTED] = stamp(now_s)

    return edit
