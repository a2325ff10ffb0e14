"""Causes of pending pods: the pod has no profile, is gated, or only needs to wait."""

from typing import Any, Final

from kschedd.api.conditions import condition
from kschedd.api.pods import Pod
from kschedd.api.selecting.terms import NO_EXECUTE, Taint, parse_toleration
from kschedd.api.text.times import seconds
from kschedd.causes.answers import ObjectNamed
from kschedd.causes.case import Case
from kschedd.causes.demands.selecting import node_named
from kschedd.causes.findings import CHANGE_OBJECT, FoundCause, RemedyOption, named, spec_edit
from kschedd.causes.lifecycle.daemon_nodes import left_out
from kschedd.causes.near import nearest
from kschedd.causes.steps import resumed
from kschedd.causes.words import counted, joined, some
from kschedd.causes.workload import ExaminedWorkload
from kschedd.controllers.workloads.pod_state import ready
from kschedd.printing.columns.ages import span
from kschedd.queue.entry import SECOND, QueuedPod, SubQueue
from kschedd.scheduling.attempt.outcome import FitError
from kschedd.simulation.engine import Engine

Spec = dict[str, Any]
_GATES: Final = "SchedulingGates"


def unknown_scheduler(engine: Engine, workload: ExaminedWorkload, pod: Pod) -> FoundCause | None:
    """Return the cause: no profile has the pod's schedulerName."""
    profiles = sorted(engine.machine.schedulers)
    wanted = pod.scheduler_name
    if wanted in profiles:
        return None
    likely = nearest(wanted, profiles)

    def renamed(spec: Spec) -> None:
        if (likely or profiles[0]) == "default-scheduler":
            spec.pop("schedulerName", None)
        else:
            spec["schedulerName"] = likely or profiles[0]

    hint = f" ({likely}?)" if likely else f"; the schedulers here are {some(profiles)}"
    return FoundCause(
        "SchedulerNameUnknown",
        f"no scheduler has the name {wanted} in schedulerName{hint}",
        [named(workload.obj)],
        [f"{'.'.join(workload.path)}.schedulerName"],
        options=[RemedyOption(f"schedulerName {likely or profiles[0]}", edit=spec_edit(renamed))],
        certain=likely is not None,
    )


def gated(case: Case) -> FoundCause | None:
    """Return the cause: a PreEnqueue plugin gates the pod, usually because of its scheduling gates."""
    by = case.judgment.gated
    if by is None:
        return None
    gates = case.pod.pod_spec.scheduling_gates
    if by.plugin != _GATES or not gates:
        return FoundCause(
            "HeldBack",
            f"{by.plugin} keeps the pod out of the queue: {', '.join(by.reasons)}",
            [named(case.pod)],
            certain=False,
        )
    several, them = len(gates) > 1, "them" if len(gates) > 1 else "it"
    names = joined([f"`{gate}`" for gate in gates])
    return FoundCause(
        "SchedulingGated",
        f"the scheduling gate{'s' * several} {names} {'have' if several else 'has'} not been removed: "
        f"the controller that set {them} has to remove {them}",
        [named(case.pod)],
        [f"{'.'.join(case.workload.path)}.schedulingGates"],
        passing=True,
    )


def nominated(case: Case) -> FoundCause | None:
    """Return the cause: the pod was nominated and waits until its victims are gone."""
    node = case.pod.nominated_node_name
    if node and node in case.nodes:
        going = [pod for pod in case.store.pods_on(node) if pod.deleting and not pod.finished]
        if going:
            return _for_victims(case, node, going)
    preemption = case.judgment.preemption
    if preemption is not None and preemption.victims:
        return FoundCause(
            "WaitsForVictims",
            f"the next attempt preempts {some(preemption.victims)} on {preemption.node}",
            [ObjectNamed("Node", "", preemption.node)],
            passing=True,
        )
    return None


def _for_victims(case: Case, node: str, going: list[Pod]) -> FoundCause:
    now = case.engine.now
    left = max((seconds(pod.deletion_timestamp) or now) for pod in going) - now
    until = f" ({span(max(0.0, left))} left)" if left > 0 else ""
    return FoundCause(
        "WaitsForVictims",
        f"nominated to {node}, waiting for {some([pod.key for pod in going])} to terminate{until}",
        [ObjectNamed("Node", "", node), *(named(pod) for pod in going[:3])],
        passing=True,
    )


def fits_now(case: Case) -> FoundCause | None:
    """Return the cause: the pod fits now, but waits for its attempt or for an event."""
    placed = case.judgment.outcome
    if isinstance(placed, FitError):
        return None
    engine, where = case.engine, placed.node_name
    stop = engine.driver.debugger.stop
    if stop is not None:
        return FoundCause(
            "SchedulingStopped",
            f"the pod fits (on {where}), but scheduling is stopped: {stop.why}",
            [named(case.pod)],
            options=[RemedyOption("resume scheduling", CHANGE_OBJECT, steps=[resumed()], target="scheduling")],
        )
    entry = engine.queue.entry(case.pod.key)
    if entry is None or entry.place in (SubQueue.ACTIVE, SubQueue.IN_FLIGHT):
        return FoundCause(
            "OnlyTimeHelps", f"the pod fits (on {where}) and is tried next", [named(case.pod)], passing=True
        )
    return _asleep(case, entry, where)


def _asleep(case: Case, entry: QueuedPod, where: str) -> FoundCause:
    engine = case.engine
    if entry.place in (SubQueue.BACKOFF, SubQueue.ERROR_BACKOFF):
        left = max(0.0, (engine.queue.backoff_until(entry) - engine.now_ns) / SECOND)
        return FoundCause(
            "OnlyTimeHelps",
            f"the pod fits now (on {where}) and is tried again in {span(left)}, when its back-off ends",
            [named(case.pod)],
            passing=True,
        )
    longest_s = engine.queue.settings.max_in_unschedulable / SECOND
    left = max(0.0, (entry.timestamp - engine.now_ns) / SECOND + longest_s)
    plugins = sorted(entry.unschedulable_plugins)
    return FoundCause(
        "OnlyTimeHelps",
        f"the pod fits now (on {where}), but is asleep among the unschedulable pods: no event since its last attempt "
        f"woke it (kubernetes#141354); the next attempt is {span(longest_s)} after the last, in {span(left)}",
        [named(case.pod)],
        evidence=[f"events that {some(plugins)} registered for wake the pod"] if plugins else [],
        passing=True,
    )


# -- pods that have a node --------------------------------------------------------------------------------------------


def evicted_soon(engine: Engine, workload: ExaminedWorkload) -> FoundCause | None:
    """Return the cause: pods will soon be evicted because of a NoExecute taint of their nodes."""
    for pod in workload.scheduled:
        row = engine.machine.cluster.table.row_of.get(pod.node_name)
        node = None if row is None else engine.machine.cluster.table.nodes[row]
        if node is None:
            return _missing_node(engine, workload, pod)
        for taint in node.taints:
            if taint.effect != NO_EXECUTE:
                continue
            limited = [t for t in pod.pod_spec.tolerations if t.tolerates(taint)]
            if limited and all(t.seconds is not None for t in limited):
                return _evicted_soon(engine, workload, pod, taint, min(t.seconds or 0 for t in limited))
    return None


def _evicted_soon(engine: Engine, workload: ExaminedWorkload, pod: Pod, taint: Taint, limit_s: int) -> FoundCause:
    began = _placed_at(pod)
    left = limit_s if began is None else max(0.0, began + limit_s - engine.now)
    own = [t for t in workload.pod_spec.get("tolerations") or () if parse_toleration(t).tolerates(taint)]

    def for_good(spec: Spec) -> None:
        for each in spec.get("tolerations") or ():
            if parse_toleration(each).tolerates(taint):
                each.pop("tolerationSeconds", None)

    again = ""
    if own:
        again = ", and may return here, since it tolerates the taint: a loop"
    return FoundCause(
        "EvictedInALoop" if own else "EvictedSoon",
        f"{pod.key} is evicted from {pod.node_name} in {span(left)} (taint {taint.shown}, "
        f"tolerationSeconds {limit_s}){again}",
        [named(pod), ObjectNamed("Node", "", pod.node_name)],
        [f"{'.'.join(workload.path)}.tolerations"],
        options=[RemedyOption("tolerate the taint without a limit", edit=spec_edit(for_good))] if own else [],
        passing=not own,
    )


def _placed_at(pod: Pod) -> float | None:
    found = condition(pod.status, "PodScheduled")
    since = None if found is None or found.get("status") != "True" else found.get("lastTransitionTime")
    return seconds(since) if since else None


def _missing_node(engine: Engine, workload: ExaminedWorkload, pod: Pod) -> FoundCause:
    stated = "nodeName" in workload.pod_spec
    likely = nearest(pod.node_name, engine.machine.cluster.table.row_of) if stated else None
    hint = f" ({likely} is one)" if likely else ""
    return FoundCause(
        "NodeMissing",
        f"{pod.key} is on {pod.node_name}, and there is no such node{hint}: nothing runs it",
        [named(pod), ObjectNamed("Node", "", pod.node_name)],
        ["spec.nodeName"],
        options=node_named(likely) if stated else [],
    )


def nothing_wrong(engine: Engine, workload: ExaminedWorkload) -> FoundCause:
    """Return the cause for a workload without problems: every pod has a node."""
    if not workload.pods:
        return FoundCause(
            "NoPods", f"{workload.label} has no pods, and requires none now", [named(workload.obj)], passing=True
        )
    here = [pod for pod in workload.pods if not pod.deleting] or workload.pods
    count = sum(map(ready, here))
    text = f"the pod has a node ({here[0].node_name})" if len(here) == 1 else f"all {len(here):,} pods have a node"
    waiting = len(here) - count
    return FoundCause(
        "NothingIsWrong",
        f"nothing is wrong with the scheduling: {text}",
        [named(workload.obj)],
        evidence=[
            *([f"{counted(waiting, 'pod')} not ready yet"] if waiting and count else []),
            *_kept_back(workload),
            *(left_out(engine, workload) if workload.kind == "DaemonSet" else []),
        ],
        passing=True,
    )


def _kept_back(workload: ExaminedWorkload) -> list[str]:
    """Return the evidence that the update strategy does not replace outdated pods."""
    status = workload.obj.raw.get("status") or {}
    strategy = workload.spec.get("updateStrategy") or {}
    if workload.kind == "DaemonSet":
        old = int(status.get("desiredNumberScheduled") or 0) - int(status.get("updatedNumberScheduled") or 0)
    elif workload.kind == "StatefulSet" and status.get("updateRevision") != status.get("currentRevision"):
        old = workload.wanted - int(status.get("updatedReplicas") or 0)
    else:
        return []
    if old <= 0:
        return []
    keep = f"{counted(old, 'pod')} {'keeps' if old == 1 else 'keep'} an earlier template"
    if strategy.get("type") == "OnDelete":
        return [f"{keep} until deleted (updateStrategy OnDelete)"]
    partition = (strategy.get("rollingUpdate") or {}).get("partition")
    return [f"{keep} (updateStrategy.rollingUpdate.partition {partition})"] if partition else []
