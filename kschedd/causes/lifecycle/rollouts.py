"""Causes of stuck rollouts: old pods use the resources that new pods need, or a controller waits forever."""

from collections.abc import Sequence
from typing import Any, Final

from kschedd.api.pods import Pod
from kschedd.causes.case import Case, case_of
from kschedd.causes.findings import REPLACE_POD, FoundCause, RemedyOption, named
from kschedd.causes.lifecycle.creating import template_pod
from kschedd.causes.steps import deleted
from kschedd.causes.strategies import in_place
from kschedd.causes.words import counted, every, joined
from kschedd.causes.workload import Edit, ExaminedWorkload
from kschedd.controllers.nodes.node_health import ready_status
from kschedd.controllers.workloads.pod_state import ready
from kschedd.controllers.workloads.rollout import fenceposts
from kschedd.explain.explain import begin
from kschedd.explain.fork import scheduler_on
from kschedd.scheduling.attempt.outcome import FitError
from kschedd.scheduling.debug.work import drive
from kschedd.simulation.engine import Engine

Spec = dict[str, Any]
_REVISION: Final = "controller-revision-hash"
_MOST_TRIED: Final = 3  # old pods


def needs_room(case: Case, findings: Sequence[FoundCause]) -> FoundCause | None:
    """Return the cause: a rollout keeps old pods that use the resources for a new pod."""
    workload = case.workload
    owner = case.pod.owner
    if workload.kind == "DaemonSet" and findings:
        return _surging(case, findings[0])
    if workload.kind != "Deployment" or owner is None or not findings:
        return None
    strategy = workload.spec.get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return None
    old = [pod for pod in workload.scheduled if pod.owner is not None and pod.owner.uid != owner.uid]
    if not any(_fits_without(case, pod) for pod in old[:_MOST_TRIED]):
        return None
    rolling = strategy.get("rollingUpdate") or {}
    stated = rolling.get("maxSurge", "25%"), rolling.get("maxUnavailable", "25%")
    surge, unavailable = fenceposts(*stated, workload.wanted)
    olds, held = ("the old pod", "it") if len(old) == 1 else (every(len(old), "old pod"), "one")
    message = (
        f"the rollout keeps {olds} until a new one is ready, and the new pod needs what {held} holds "
        f"(maxSurge {_with_share(stated[0], surge)}, maxUnavailable {_with_share(stated[1], unavailable)})"
    )
    first = findings[0]
    return FoundCause(
        "RolloutNeedsRoom",
        message,
        [named(workload.obj), *first.objects],
        ["spec.strategy", *first.fields],
        [
            first.message,
            *first.evidence,
            "strategy Recreate, or maxSurge 0, removes an old pod before a new one is made",
        ],
        in_place(workload),
    )


def _surging(case: Case, first: FoundCause) -> FoundCause | None:
    """Return the cause: a DaemonSet starts a new pod beside the old pod on the same node."""
    rolling = (case.workload.spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
    revision = case.pod.labels.get(_REVISION)
    old = [pod for pod in case.workload.scheduled if pod.labels.get(_REVISION) != revision]
    there = [pod for pod in old if pod.node_name in case.selected]
    if not rolling.get("maxSurge") or len(there) != 1 or not _fits_without(case, there[0]):
        return None

    def after_the_old(manifest: dict[str, Any], spec: Spec) -> None:
        manifest["spec"]["updateStrategy"]["rollingUpdate"] = {"maxSurge": 0, "maxUnavailable": 1}

    return FoundCause(
        "RolloutNeedsRoom",
        f"the rollout starts each new pod beside the old one of its node, and the new pod needs what the old one holds "
        f"(maxSurge {rolling['maxSurge']}, maxUnavailable {rolling.get('maxUnavailable', 0)})",
        [named(case.workload.obj), *first.objects],
        ["spec.updateStrategy", *first.fields],
        [first.message, *first.evidence],
        [RemedyOption("end each old pod before the new one is created (maxSurge 0)", edit=after_the_old)],
    )


def _fits_without(case: Case, old: Pod) -> bool:
    fork = begin(case.engine.machine, case.pod, case.engine.driver.nominator.by_node())
    scheduler = scheduler_on(fork)
    fork.cluster.remove(old)
    outcome = drive(scheduler.attempt(fork.judged, fork.nominated))
    return not isinstance(outcome, FitError) or bool(outcome.post_filter and outcome.post_filter.nominated_node)


def _with_share(stated: object, number: int) -> str:
    return f"{stated}, which is {number}" if isinstance(stated, str) else str(number)


def outdated(case: Case) -> FoundCause | None:
    """Return the cause: an outdated pod of a StatefulSet fits on no node, although an updated pod would."""
    workload, pod = case.workload, case.pod
    status = workload.obj.raw.get("status") or {}
    update = status.get("updateRevision")
    own = pod.labels.get(_REVISION)
    if workload.kind != "StatefulSet" or not update or own in (None, update):
        return None
    made = template_pod(case.engine.store, workload)
    if not isinstance(made, Pod):
        return None
    raw = {**pod.raw, "spec": {**made.raw["spec"], "volumes": pod.raw["spec"].get("volumes") or []}}
    if not case_of(case.engine, workload, Pod.from_raw(raw)).judgment.fits:
        return None
    requested = joined([f"{_amount(container)} for {container['name']}" for container in pod.raw["spec"]["containers"]])
    return FoundCause(
        "StatefulSetPodOutdated",
        f"{pod.name} is of an earlier template ({own}) and fits on no node; the StatefulSet waits for it to be ready "
        f"before it makes one of the present template ({update}), which would fit",
        [named(pod)],
        ["spec.updateStrategy"],
        [f"{pod.name} requests {requested}"],
        [
            RemedyOption(
                f"delete {pod.name}: its StatefulSet makes one of the present template",
                REPLACE_POD,
                steps=[deleted("Pod", pod.namespace, [pod.name])],
                target=f"pod/{pod.name}",
            )
        ],
    )


def _amount(container: dict[str, Any]) -> str:
    requests = (container.get("resources") or {}).get("requests") or {}
    return joined([f"{quantity} {name}" for name, quantity in sorted(requests.items())]) if requests else "nothing"


def stuck(engine: Engine, workload: ExaminedWorkload) -> FoundCause | None:
    """Return the cause: a pod on a failed node uses up maxUnavailable of a DaemonSet's rollout."""
    status = workload.obj.raw.get("status") or {}
    if workload.kind != "DaemonSet":
        return None
    wanted, updated = int(status.get("desiredNumberScheduled") or 0), int(status.get("updatedNumberScheduled") or 0)
    if updated >= wanted or (workload.spec.get("updateStrategy") or {}).get("type") == "OnDelete":
        return None
    dead = [pod for pod in workload.pods if pod.node_name and not (ready(pod) and not pod.deleting)]
    broken = sorted({pod.node_name for pod in dead if not _answers(engine, pod.node_name)})
    if not broken:
        return None
    rolling = (workload.spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
    allowed = rolling.get("maxUnavailable", 1)

    def more(manifest: dict[str, Any], spec: Spec) -> None:
        strategy = manifest["spec"].setdefault("updateStrategy", {"type": "RollingUpdate"})
        strategy.setdefault("rollingUpdate", {})["maxUnavailable"] = len(broken) + 1

    edit: Edit = more
    is_one = len(broken) == 1
    return FoundCause(
        "RolloutWaitsForDeadNode",
        f"{counted(updated, 'pod')} of {wanted} {'has' if updated == 1 else 'have'} the present template: the pod"
        f"{'' if is_one else 's'} on {joined(broken)}, which {'does' if is_one else 'do'} not answer, "
        f"count{'s' if is_one else ''} as unavailable, and no more may be (maxUnavailable {allowed})",
        [named(workload.obj)],
        ["spec.updateStrategy.rollingUpdate.maxUnavailable"],
        options=[
            RemedyOption(f"let {len(broken) + 1} pods be unavailable (maxUnavailable {len(broken) + 1})", edit=edit)
        ],
    )


def _answers(engine: Engine, name: str) -> bool:
    node: Any = engine.store.find("Node", "", name)
    if node is None:
        return False
    return ready_status(node) in (None, "True")
