"""Output of `rollout`: progress, the table of revisions, and a pod template, with the texts of kubectl.

Source: kubectl v1.34, pkg/polymorphichelpers/rollout_status.go and history.go. Performs no requests.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kschedd.errors import KscheddError
from kschedd.printing.columns.by_kind import Raw, meta, spec, status
from kschedd.printing.describing.describe import pairs, several
from kschedd.printing.describing.pod import container_text
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.printing.terminal.tables import NONE, Table, render

REVISION: Final = "deployment.kubernetes.io/revision"
CHANGE_CAUSE: Final = "kubernetes.io/change-cause"


@attrs.define(eq=False)
class RolloutError(KscheddError):
    """A rollout has no status or failed."""

    why: str


@attrs.frozen
class RolloutProgress:
    text: str
    done: bool


def rollout_progress(raw: Raw, revision: int = 0) -> RolloutProgress:
    """Return the progress of a rollout of a Deployment, DaemonSet or StatefulSet. Raises RolloutError.

    `revision` is the revision that should be rolled out (only for Deployments); 0 for the newest.
    """
    kind = str(raw.get("kind"))
    viewers = {"Deployment": _deployment, "DaemonSet": _daemon_set, "StatefulSet": _stateful_set}
    if kind not in viewers:
        group = str(raw.get("apiVersion", "")).rpartition("/")[0]
        raise RolloutError(f"no status viewer has been implemented for {kind}{'.' + group if group else ''}")
    if revision and kind == "Deployment":
        running = int((meta(raw).get("annotations") or {}).get(REVISION) or 0)
        if running != revision:
            raise RolloutError(f"desired revision ({revision}) is different from the running revision ({running})")
    return viewers[kind](raw)


def _count(raw: Raw, name: str) -> int:
    return int(status(raw).get(name) or 0)


def _observed(raw: Raw) -> bool:
    return int(meta(raw).get("generation") or 0) <= _count(raw, "observedGeneration")


def _deployment(raw: Raw) -> RolloutProgress:
    name = meta(raw)["name"]
    if not _observed(raw):
        return RolloutProgress("Waiting for deployment spec update to be observed...", False)
    for condition in status(raw).get("conditions") or ():
        if condition.get("type") == "Progressing" and condition.get("reason") == "ProgressDeadlineExceeded":
            raise RolloutError(f'deployment "{name}" exceeded its progress deadline')
    waiting = f'Waiting for deployment "{name}" rollout to finish'
    wanted, updated, total = spec(raw).get("replicas", 1), _count(raw, "updatedReplicas"), _count(raw, "replicas")
    if updated < wanted:
        return RolloutProgress(f"{waiting}: {updated} out of {wanted} new replicas have been updated...", False)
    if total > updated:
        return RolloutProgress(f"{waiting}: {total - updated} old replicas are pending termination...", False)
    available = _count(raw, "availableReplicas")
    if available < updated:
        return RolloutProgress(f"{waiting}: {available} of {updated} updated replicas are available...", False)
    return RolloutProgress(f'deployment "{name}" successfully rolled out', True)


def _needs_rolling_update(raw: Raw) -> None:
    if (spec(raw).get("updateStrategy") or {}).get("type") != "RollingUpdate":
        raise RolloutError("rollout status is only available for RollingUpdate strategy type")


def _daemon_set(raw: Raw) -> RolloutProgress:
    _needs_rolling_update(raw)
    if not _observed(raw):
        return RolloutProgress("Waiting for daemon set spec update to be observed...", False)
    name = meta(raw)["name"]
    waiting = f'Waiting for daemon set "{name}" rollout to finish'
    wanted, updated = _count(raw, "desiredNumberScheduled"), _count(raw, "updatedNumberScheduled")
    if updated < wanted:
        return RolloutProgress(f"{waiting}: {updated} out of {wanted} new pods have been updated...", False)
    available = _count(raw, "numberAvailable")
    if available < wanted:
        return RolloutProgress(f"{waiting}: {available} of {wanted} updated pods are available...", False)
    return RolloutProgress(f'daemon set "{name}" successfully rolled out', True)


def _stateful_set(raw: Raw) -> RolloutProgress:
    _needs_rolling_update(raw)
    if not _count(raw, "observedGeneration") or not _observed(raw):
        return RolloutProgress("Waiting for statefulset spec update to be observed...", False)
    wanted, ready, updated = spec(raw).get("replicas", 1), _count(raw, "readyReplicas"), _count(raw, "updatedReplicas")
    if ready < wanted:
        return RolloutProgress(f"Waiting for {wanted - ready} pods to be ready...", False)
    rolling = spec(raw)["updateStrategy"].get("rollingUpdate")
    if rolling is not None:
        due = wanted - int(rolling.get("partition") or 0)
        if updated < due:
            text = f"Waiting for partitioned roll out to finish: {updated} out of {due} new pods have been updated..."
            return RolloutProgress(text, False)
        return RolloutProgress(f"partitioned roll out complete: {updated} new pods have been updated...", True)
    newest = str(status(raw).get("updateRevision") or "")
    if newest != status(raw).get("currentRevision"):
        text = f"waiting for statefulset rolling update to complete {updated} pods at revision {newest}..."
        return RolloutProgress(text, False)
    return RolloutProgress(f"statefulset rolling update complete {updated} pods at revision {newest}...", True)


def revisions_table(revisions: Mapping[int, Raw], style: TerminalStyle) -> str:
    """Return a table of the revisions with their causes, lowest revision first.

    `revisions` contains the object of each revision.
    """
    rows = [
        (str(number), str((meta(raw).get("annotations") or {}).get(CHANGE_CAUSE) or NONE))
        for number, raw in sorted(revisions.items())
    ]
    return render(Table(("REVISION", "CHANGE-CAUSE"), tuple(rows)), style)


def template_text(template: Raw, cause: str = "") -> str:
    """Return a pod template in the format of `rollout history --revision`."""
    annotations: dict[str, Any] = dict((template.get("metadata") or {}).get("annotations") or {})
    if cause:
        annotations[CHANGE_CAUSE] = cause
    text = "Pod Template:\n" + several("Labels", pairs((template.get("metadata") or {}).get("labels"), "="), "  ", 16)
    if annotations:
        text += several("Annotations", pairs(annotations, ": "), "  ", 16)
    pod = template.get("spec") or {}
    for title, field in (("Init Containers", "initContainers"), ("Containers", "containers")):
        if pod.get(field):
            text += f"  {title}:\n" + "".join(" " + container_text(container) for container in pod[field])
    text += several("Node-Selectors", pairs(pod.get("nodeSelector"), "="), "  ", 16)
    if pod.get("priorityClassName"):
        text += several("Priority Class", [str(pod["priorityClassName"])], "  ", 16)
    return text
