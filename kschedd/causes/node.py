"""Diagnosis of a node: why a drain of the node does not end, or why no pods are scheduled to it."""

from collections.abc import Iterator, Sequence

from kschedd.api.conditions import condition
from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.selecting.terms import NO_EXECUTE, NO_SCHEDULE
from kschedd.causes.answers import ObjectNamed
from kschedd.causes.case import case_of
from kschedd.causes.findings import CHANGE_NODE, FoundCause, RemedyOption, named
from kschedd.causes.lifecycle.endings import held_by_finalizers, why_not_ended
from kschedd.causes.steps import RemedyStep, patched, uncordoned
from kschedd.causes.words import counted, joined, some
from kschedd.causes.workload import ExaminedWorkload, workload_of
from kschedd.controllers.workloads.pod_state import DELETION_COST
from kschedd.simulation.engine import Engine
from kschedd.store.errors import ApiError, MultipleBudgets
from kschedd.store.eviction import BUDGET, guarding, spent

_REPLACED_S = 60.0  # waiting time in seconds until the additional replica is ready
_DAEMON_SET = "DaemonSet"
_MOST_WORKLOADS = 8


def pods_to_move(engine: Engine, node: str) -> list[Pod]:
    """Return the pods that a drain evicts: all except mirror pods and pods of DaemonSets."""
    return [
        pod
        for pod in engine.store.pods_on(node)
        if not pod.finished and not (pod.owner is not None and pod.owner.kind in (_DAEMON_SET, "Node"))
    ]


def node_causes(engine: Engine, node: Node) -> Iterator[FoundCause]:
    """At least one."""
    moving = pods_to_move(engine, node.name)
    blocked = (_blocked(engine, node, moving) or _ending(engine, node, moving)) if node.unschedulable else None
    if blocked is not None:
        yield blocked
        return
    ready = condition(node.status, "Ready")
    if ready is not None and ready.get("status") != "True":
        why = str(ready.get("message") or ready.get("reason") or "its kubelet does not answer")
        yield FoundCause("NodesNotReady", f"{node.name} is not ready: {why}", [named(node)], ["status.conditions"])
        return
    if node.unschedulable:
        left = f"; {counted(len(moving), 'pod')} of it can be drained" if moving else ""
        yield FoundCause(
            "NodesCordoned",
            f"{node.name} is cordoned, so no new pods come to it{left}",
            [named(node)],
            ["spec.unschedulable"],
            list(_refused_by_drain(moving)),
            options=[
                RemedyOption(
                    f"uncordon {node.name}", CHANGE_NODE, steps=[uncordoned(node.name)], target=f"node/{node.name}"
                )
            ],
        )
        return
    taints = [taint for taint in node.taints if taint.effect in (NO_SCHEDULE, NO_EXECUTE)]
    if taints:
        yield FoundCause(
            "NodeTainted",
            f"{node.name} takes only pods that tolerate {joined([taint.shown for taint in taints])}: "
            f"{counted(len(moving), 'pod')} {'does' if len(moving) == 1 else 'do'} now",
            [named(node)],
            ["spec.taints"],
            _pending_there(engine, node),
            passing=True,
        )
        return
    yield FoundCause(
        "NothingIsWrong",
        f"nothing is wrong with {node.name}: it takes pods, and has {counted(len(moving), 'pod')} besides DaemonSets'",
        [named(node)],
        evidence=_pending_there(engine, node),
        passing=True,
    )


def _refused_by_drain(moving: Sequence[Pod]) -> Iterator[str]:
    """Yield the pods that `drain` evicts only with another flag."""
    unmanaged = [pod.key for pod in moving if pod.owner is None]
    local = [pod.key for pod in moving if any(volume.get("emptyDir") is not None for volume in pod.pod_spec.volumes)]
    if unmanaged:
        yield f"a drain needs --force for pods without a controller, which nothing creates again: {some(unmanaged)}"
    if local:
        yield f"a drain needs --delete-emptydir-data for pods with emptyDir volumes, which are lost: {some(local)}"


def _pending_there(engine: Engine, node: Node) -> list[str]:
    """Return why pending pods do not fit on this node, for the first few workloads."""
    waiting = [
        pod
        for pod in engine.store.list("Pod")
        if isinstance(pod, Pod) and not pod.node_name and not pod.deleting and not pod.finished
    ]
    if not waiting:
        return ["no pod is pending in the cluster"]
    found: dict[str, str] = {}
    for pod in waiting:
        workload = workload_of(engine.store, pod)
        where = f"{workload.obj.namespace}/{workload.label}"
        if where in found or pod.scheduler_name not in engine.machine.schedulers:
            continue
        case = case_of(engine, workload, pod)
        reasons = [f"{plugin}: {', '.join(given)}" for plugin, given in case.rejections.get(node.name, {}).items()]
        why = "; ".join(reasons) or "nothing on this node keeps it off"
        found[where] = f"{where} ({len(workload.pending)} pending): {why}"
        if len(found) == _MOST_WORKLOADS:
            break
    return [*found.values()]


def _ending(engine: Engine, node: Node, moving: Sequence[Pod]) -> FoundCause | None:
    """Return the cause: pods were evicted from a cordoned node but have not ended."""
    ending = [pod for pod in moving if pod.deleting]
    if not ending:
        return None
    held = held_by_finalizers(ending)
    return FoundCause(
        "DrainWaitsForPods",
        f"a drain of {node.name} does not end yet: {why_not_ended(engine, ending)}",
        [named(node), *(named(pod) for pod in (held or ending)[:3])],
        ["metadata.finalizers"] if held else [],
        [f"on the node: {some([each.key for each in moving])}"],
        passing=True,
    )


def _blocked(engine: Engine, node: Node, moving: Sequence[Pod]) -> FoundCause | None:
    """Return the cause: a PodDisruptionBudget allows no eviction of a pod on a cordoned node."""
    for pod in moving:
        budgets = engine.store.list(BUDGET, pod.namespace)
        try:
            budget = guarding(pod, budgets)
            if budget is None:
                continue
            spent(budget, pod, "")
        except MultipleBudgets as refusal:
            return _by_several(engine, node, moving, pod, refusal)
        except ApiError as refusal:
            first = next((each for each in budgets if each.name in str(refusal)), budgets[0])
            return _by_budget(engine, node, moving, pod, first, str(refusal))
    return None


def _by_several(engine: Engine, node: Node, moving: Sequence[Pod], pod: Pod, refusal: MultipleBudgets) -> FoundCause:
    workload = workload_of(engine.store, pod)
    return FoundCause(
        "BudgetBlocksDrain",
        f"PodDisruptionBudgets {joined(refusal.budgets)} cover {pod.key} ({workload.label}), and a pod with more than "
        f"one is never evicted, so a drain of {node.name} does not end",
        [
            *(ObjectNamed("PodDisruptionBudget", pod.namespace, name) for name in refusal.budgets),
            named(pod),
            named(node),
        ],
        ["spec.selector"],
        [str(refusal), f"on the node: {some([each.key for each in moving])}"],
        _replaced_elsewhere(node, workload, moving),
    )


def _by_budget(engine: Engine, node: Node, moving: Sequence[Pod], pod: Pod, budget: Object, refusal: str) -> FoundCause:
    stated = {key: budget.spec[key] for key in ("minAvailable", "maxUnavailable") if key in budget.spec}
    rule = ", ".join(f"{key} {value}" for key, value in stated.items())
    workload = workload_of(engine.store, pod)
    waiting = [each for each in workload.pods if not each.node_name]
    evidence = [refusal, f"on the node: {some([each.key for each in moving])}"]
    if waiting:
        evidence.append(f"pods of {workload.label} that are pending: {some([each.name for each in waiting])}")
    return FoundCause(
        "BudgetBlocksDrain",
        f"PodDisruptionBudget {budget.name} ({rule}) allows no eviction of {pod.key} ({workload.label}), so a drain of "
        f"{node.name} does not end",
        [named(budget), named(pod), named(node)],
        [f"spec.{key}" for key in stated],
        evidence,
        [*_one_more(node, workload, moving), *_replaced_elsewhere(node, workload, moving)],
    )


def _one_more(node: Node, workload: ExaminedWorkload, moving: Sequence[Pod]) -> list[RemedyOption]:
    """Return the option to run one more replica until the drain ends."""
    if "replicas" not in workload.spec or workload.kind not in ("Deployment", "ReplicaSet", "StatefulSet"):
        return []
    wanted = workload.wanted
    place = ("-n", workload.obj.namespace)
    wait = RemedyStep(("rollout", "status", workload.label, *place, "--timeout=5m"), [], then_s=_REPLACED_S)
    steps = [_scaled(workload, wanted + 1), wait, _drained(node, moving), _scaled(workload, wanted)]
    summary = f"run {counted(wanted + 1, 'replica')} of {workload.label} while {node.name} is drained"
    return [RemedyOption(summary, steps=steps, target=workload.label)]


def _replaced_elsewhere(node: Node, workload: ExaminedWorkload, moving: Sequence[Pod]) -> list[RemedyOption]:
    """Return the option to create replicas on other nodes.

    When the replicas exist, the controller deletes the node's pods without evictions.
    """
    if workload.kind not in ("Deployment", "ReplicaSet"):
        return []
    uids = {pod.uid for pod in workload.pods}
    mine = [pod for pod in moving if pod.uid in uids]
    wanted, place = workload.wanted, ("-n", workload.obj.namespace)
    wait = RemedyStep(("rollout", "status", workload.label, *place, "--timeout=5m"), [], then_s=_REPLACED_S)
    steps = [_scaled(workload, wanted + len(mine)), wait, *map(_removed_first, mine)]
    steps += [_scaled(workload, wanted), _drained(node, [pod for pod in moving if pod.uid not in uids])]
    summary = (
        f"run {counted(wanted + len(mine), 'replica')} of {workload.label}, have those on {node.name} removed first "
        f"(pod-deletion-cost), and drain it"
    )
    return [RemedyOption(summary, steps=steps, target=workload.label)]


def _removed_first(pod: Pod) -> RemedyStep:
    place = ("-n", pod.namespace)
    named = {"kind": "Pod", "name": pod.name, "namespace": pod.namespace}
    patch = {"metadata": {"annotations": {DELETION_COST: "-1"}}}
    words = ("annotate", "pod", pod.name, f"{DELETION_COST}=-1", *place)
    return RemedyStep(words, [("objects.patch", {**named, "patch": patch, "type": "merge"})])


def _drained(node: Node, moving: Sequence[Pod]) -> RemedyStep:
    evictions = [("pods.evict", {"name": pod.name, "namespace": pod.namespace}) for pod in moving]
    cordon = ("nodes.cordon", {"name": node.name})
    words = ("drain", node.name, "--ignore-daemonsets", "--delete-emptydir-data")
    return RemedyStep(words, [cordon, *evictions], then_s=_REPLACED_S)


def _scaled(workload: ExaminedWorkload, replicas: int) -> RemedyStep:
    return patched(workload.obj.raw, [{"op": "replace", "path": "/spec/replicas", "value": replicas}])
