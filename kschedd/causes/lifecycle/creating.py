"""Causes of missing pods: a controller cannot create them, or does not create them yet.

The reason for a rejection is found by creating a pod from the template in a dry run.
"""

import copy
from typing import Any, Final

import attrs

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.api.schemas.kinds import POD_TEMPLATES
from kschedd.causes.findings import (
    FoundCause,
    RemedyOption,
    named,
)
from kschedd.causes.lifecycle.refused import refused, refused_in_dump
from kschedd.causes.words import counted
from kschedd.causes.workload import ExaminedWorkload
from kschedd.controllers.workloads.pod_state import ready
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.errors import ApiError

Spec = dict[str, Any]
_MOST_REFUSALS: Final = 4


def template_pod(store: ClusterWriter, workload: ExaminedWorkload) -> Pod | ApiError | None:
    """Return a pod of the template as the API server would store it, or its rejection; None without a template."""
    if workload.kind not in POD_TEMPLATES:
        return None
    template: Any = workload.obj.raw
    for field in POD_TEMPLATES[workload.kind]:
        template = template.get(field) or {}
    meta = {
        "generateName": f"{workload.obj.name}-",
        "namespace": workload.obj.namespace,
        "labels": dict((template.get("metadata") or {}).get("labels") or {}),
        "annotations": dict((template.get("metadata") or {}).get("annotations") or {}),
    }
    raw: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": copy.deepcopy(dict(template.get("spec") or {})),
    }
    for claim in workload.spec.get("volumeClaimTemplates") or ():  # each template becomes a volume of the pod
        name = claim["metadata"]["name"]
        volume = {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{workload.obj.name}-0"}}
        raw["spec"]["volumes"] = [*(raw["spec"].get("volumes") or ()), volume]
    try:
        made = store.create(raw, dry_run=True)
    except ApiError as refusal:
        return refusal
    assert isinstance(made, Pod)
    return made


def not_created(store: ClusterWriter, workload: ExaminedWorkload) -> tuple[list[FoundCause], Pod | None]:
    """Return the causes of missing pods, each found after removing the previous one, and the pod that is then created.

    There is no cause if no pod is missing, or if nothing prevents its creation."""
    found, made = _not_created(store, workload)
    if not found and (dumped := refused_in_dump(store, workload)) is not None:
        return [dumped], None
    return found, made


def _not_created(store: ClusterWriter, workload: ExaminedWorkload) -> tuple[list[FoundCause], Pod | None]:
    found: list[FoundCause] = []
    missing = workload.missing or workload.outdated
    if not missing:
        return [], None
    if workload.kind == "StatefulSet" and workload.pods and workload.spec.get("podManagementPolicy") != "Parallel":
        waiting = _in_order(workload, missing)
        if waiting is not None:
            return [waiting], None
    mended = workload
    while len(found) < _MOST_REFUSALS:
        made = template_pod(store, mended)
        if not isinstance(made, ApiError):
            return found, made if found else None
        cause = refused(store, mended, missing, str(made))
        if any(cause.code == other.code for other in found):
            break  # stop, because the option did not remove the cause
        found.append(cause)
        first = next(iter(cause.options), None)
        if first is None or first.edit is None or first.steps:
            break
        mended = attrs.evolve(mended, obj=parse(mended.edited(first.edit)))
    return found, None


def not_created_yet(workload: ExaminedWorkload) -> FoundCause | None:
    """Return the cause: pods are missing although nothing prevents their creation."""
    missing = workload.missing
    if not missing:
        return None
    return FoundCause(
        "OnlyTimeHelps",
        f"{missing} of {counted(workload.wanted, 'replica')} {'is' if missing == 1 else 'are'} not created, though "
        "nothing refuses them: the controller has not acted yet",
        [named(workload.obj)],
        passing=True,
    )


def _in_order(workload: ExaminedWorkload, missing: int) -> FoundCause | None:
    """Return the cause: a StatefulSet creates its next pod only after all earlier pods are ready."""
    unready = [pod for pod in workload.pods if not ready(pod)]
    if not unready:
        return None
    return FoundCause(
        "StatefulSetWaitsForOrdinal",
        f"{counted(missing, 'pod')} {'is' if missing == 1 else 'are'} not created before {unready[0].name} is ready "
        "(podManagementPolicy OrderedReady)",
        [named(unready[0])],
        ["spec.podManagementPolicy"],
        passing=True,
    )


# -- controllers that wait --------------------------------------------------------------------------------------------


def held(workload: ExaminedWorkload) -> FoundCause | None:
    """Return the cause: a workload is suspended, paused or scaled to zero."""
    spec = workload.spec
    if (
        workload.kind in ("Job", "CronJob")
        and spec.get("suspend")
        and not (workload.kind == "CronJob" and workload.pods)
    ):

        def resumed(manifest: dict[str, Any], pod_spec: Spec) -> None:
            manifest["spec"]["suspend"] = False

        return FoundCause(
            "JobSuspended" if workload.kind == "Job" else "CronJobSuspended",
            f"{workload.label} is suspended (spec.suspend is true), so it has no pods"
            if workload.kind == "Job"
            else f"{workload.label} is suspended (spec.suspend is true), so it creates no Jobs",
            [named(workload.obj)],
            ["spec.suspend"],
            options=[RemedyOption("resume it", edit=resumed)] if workload.kind == "Job" else [],
            passing=workload.kind == "CronJob",
        )
    updated = int((workload.obj.raw.get("status") or {}).get("updatedReplicas") or 0)
    if workload.kind == "Deployment" and spec.get("paused") and updated < workload.wanted:

        def unpaused(manifest: dict[str, Any], pod_spec: Spec) -> None:
            manifest["spec"].pop("paused")

        return FoundCause(
            "RolloutPaused",
            f"{workload.label} is paused (spec.paused is true): {updated} of {counted(workload.wanted, 'pod')} "
            f"{'has' if updated == 1 else 'have'} its present template",
            [named(workload.obj)],
            ["spec.paused"],
            options=[RemedyOption("resume the rollout", edit=unpaused)],
        )
    return None


def selected_nothing(workload: ExaminedWorkload) -> FoundCause | None:
    """Return the cause: a workload needs no pods although it is not suspended."""
    field = "parallelism" if workload.kind == "Job" else "replicas"
    if workload.kind in ("Pod", "DaemonSet", "CronJob") or workload.spec.get(field) != 0:
        return None
    return FoundCause(
        "ScaledToZero",
        f"{workload.label} has no pods: spec.{field} is 0",
        [named(workload.obj)],
        [f"spec.{field}"],
        passing=True,
    )
