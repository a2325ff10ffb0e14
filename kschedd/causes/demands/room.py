"""Causes of pending pods: all nodes with enough capacity for the pod are full."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np

from kschedd.causes.answers import ObjectNamed
from kschedd.causes.case import Case
from kschedd.causes.demands.amounts import amount, asking, by_default, read_amount, shown, smaller
from kschedd.causes.demands.new_nodes import MOST_NODES, more_nodes, nodes_needed
from kschedd.causes.findings import FoundCause
from kschedd.causes.words import counted, every, joined, some
from kschedd.causes.workload import label_of, root_of, roots_of

# maximum number of nodes that are searched for a resize; nodes with the largest free amounts are first
_MOST_SEARCHED: Final = 256
# smallest share of the request that may be proposed for full nodes; below it, adding a node is better
_NEARLY_ALL: Final = 0.75
#: reason for omitting nodes that are not full -> plugin that rejects these nodes, and all plugins that may
_KEPT_OUT: Final = {
    "cordoned": ("NodeUnschedulable", {"NodeUnschedulable", "TaintToleration"}),
    "not selected by the pod": ("NodeAffinity", {"NodeAffinity"}),
}


@attrs.frozen
class _Lack:
    resource: str
    nodes: int
    most_free: int
    where: str


def no_room(case: Case, among: Sequence[str]) -> FoundCause | None:
    """Return the cause: all nodes with enough capacity for the pod are full."""
    rejected = case.rejected_by("NodeResourcesFit")
    full = [name for name in among if name in rejected]
    if not full:
        return None
    too_many = case.rejected_for("NodeResourcesFit", "Too many pods").intersection(full)
    if len(too_many) == len(full):
        return _too_many_pods(case, full)
    lacks = []
    for resource, requested in case.requested.items():
        short = int(np.count_nonzero(case.frees(full, resource) < requested))
        if short:
            lacks.append(_Lack(resource, short, *case.most(full, resource, free=True)))
    lacks.sort(key=lambda lack: -lack.nodes)
    if not lacks:
        return None
    first = lacks[0]
    requested = case.pod.requests[first.resource]
    resized = _deferred_resize(case, full, first.resource)
    message = (
        f"{shown(first.resource, requested)} {first.resource} requested, the most that is free on "
        f"{'the only node' if len(full) == 1 else f'one of {len(full)} nodes'} that the pod may use is "
        f"{shown(first.resource, max(first.most_free, 0))} (on {first.where})"
    )
    if first.most_free >= requested:
        message = f"no node that the pod may use has {joined([_part(case, lack) for lack in lacks])} free together"
    like, more = nodes_needed(case, full)
    if more > MOST_NODES:
        message = f"{message}; it takes {counted(more, 'more node')} like {like.name}"
    code = "ClusterFull"
    preempted = _preempted(case)
    if resized:
        code, message = "DeferredResize", f"{message}: {resized}"
    elif preempted:
        code, message = "Preempted", f"{preempted}; {message}"
    elif never := _preempts_never(case, full):
        code, message = "PreemptionPolicyNever", f"{message}; {never}"
    return FoundCause(
        code,
        message,
        [ObjectNamed("Node", "", first.where)],
        [field for lack in lacks for _, field in asking(case.workload.pod_spec, lack.resource)],
        [
            *by_default(case, first.resource),
            *_holders(case, first),
            *_beyond(case, first.resource, full),
            *_as_high(case, full),
            *_more(case, full),
        ],
        [
            *smaller(case, [lack.resource for lack in lacks], _NEARLY_ALL),
            *(more_nodes(case, full) if case.workload.kind != "DaemonSet" else []),
        ],
    )


def _deferred_resize(case: Case, full: Sequence[str], resource: str) -> str:
    """Return the pod whose deferred resize occupies the missing resources, or ""."""
    table = case.engine.machine.cluster.table
    free = case.frees(full, resource)
    for place in np.argsort(-free, kind="stable")[:_MOST_SEARCHED].tolist():
        name = full[place]
        for pod in table.pods[table.row_of[name]]:
            if not pod.resize_deferred:
                continue
            wished = pod.requests.get(resource, 0)
            has = sum(_allocated(each, resource) for each in pod.status.get("containerStatuses") or ())
            if has and case.free(name, resource) + wished - has >= case.pod.requests[resource]:
                more = amount(resource, wished - has)
                text = f"pod {pod.key}'s deferred resize holds {more} {resource} on {name}"
                return f"{text}: it requests {amount(resource, wished)} and has {amount(resource, has)}"
    return ""


def _allocated(status: Mapping[str, Any], resource: str) -> int:
    held = status.get("allocatedResources") or ((status.get("resources") or {}).get("requests")) or {}
    return read_amount(resource, str(held[resource])) if resource in held else 0


def _preempted(case: Case) -> str:
    """Return the pods for which pods of the workload were preempted, or ""."""
    begin = f"{case.workload.obj.namespace}/{case.workload.obj.name}"
    by = {
        f"{label_of(root_of(case.store, each.preemptor))} (priority {each.preemptor.priority})"
        for each in case.preempted
        if each.pod == begin or each.pod.startswith(f"{begin}-")
    }
    if not by:
        return ""
    return f"pods of the workload (priority {case.pod.priority}) were preempted by {joined(sorted(by))}"


def _preempts_never(case: Case, full: Sequence[str]) -> str:
    """Return the pods that would be preempted if the pod's preemption policy allowed it, or ""."""
    if case.pod.pod_spec.preemption_policy != "Never":
        return ""
    table = case.engine.machine.cluster.table
    for name in full:
        lower = [pod for pod in table.pods[table.row_of[name]] if pod.priority < case.pod.priority]
        if lower and all(
            case.free(name, resource) + sum(pod.requests.get(resource, 0) for pod in lower) >= number
            for resource, number in case.pod.requests.items()
            if number
        ):
            of = case.pod.pod_spec.raw.get("priorityClassName")
            whose = f"PriorityClass {of}" if of else "the pod"
            gives = some({label_of(root) for root in roots_of(case.store, lower)})
            return (
                f"its priority ({case.pod.priority}) is above that of {gives} on {name}, but {whose} has "
                "preemptionPolicy Never, so it preempts nothing"
            )
    return ""


def _as_high(case: Case, full: Sequence[str]) -> list[str]:
    """Return as evidence that the pod has a priority, but no pod on these nodes has a lower one."""
    if case.pod.priority <= 0:
        return []
    table = case.engine.machine.cluster.table
    own = case.pod.priority
    if any(pod.priority < own for name in full for pod in table.pods[table.row_of[name]]):
        return []
    return [f"no pod there has a priority below {case.pod.priority}, that of the pod, so it preempts none"]


def _part(case: Case, lack: _Lack) -> str:
    return f"{shown(lack.resource, case.pod.requests[lack.resource])} {lack.resource}"


def _too_many_pods(case: Case, full: Sequence[str]) -> FoundCause:
    node = case.nodes[full[0]]
    return FoundCause(
        "ClusterFull",
        f"{every(len(full))} that the pod may use {'has' if len(full) == 1 else 'have'} as many pods as allowed "
        f"({node.name}: {node.allocatable.get('pods', 0)})",
        [ObjectNamed("Node", "", name) for name in sorted(full)[:3]],
        evidence=[f"full: {some(full)}"],
        options=more_nodes(case, full),
    )


def _holders(case: Case, lack: _Lack) -> list[str]:
    """Return the workload that uses most of the resource on the node with the largest free amount."""
    by_owner: dict[str, int] = {}
    for pod in case.engine.machine.cluster.table.pods[case.engine.machine.cluster.table.row_of[lack.where]]:
        owner = pod.owner
        name = f"{owner.kind} {pod.namespace}/{owner.name}" if owner is not None else f"pod {pod.key}"
        by_owner[name] = by_owner.get(name, 0) + pod.requests.get(lack.resource, 0)
    ordered = sorted(by_owner.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
    held = [f"{name} {shown(lack.resource, number)}" for name, number in ordered if number]
    return [f"{lack.resource} on {lack.where} is held by {joined(held)}"] if held else []


def _beyond(case: Case, resource: str, full: Sequence[str]) -> list[str]:
    """Return the nodes whose pods request more than the node offers, for example because the node was made smaller."""
    found = [full[place] for place in np.flatnonzero(case.frees(full, resource) < 0).tolist()]
    if not found:
        return []
    name, there = found[0], case.nodes[found[0]].allocatable.get(resource, 0)
    requested = shown(resource, there - case.free(name, resource))
    text = f"{name} has {shown(resource, there)} {resource}, and its pods request {requested}"
    return [f"more is requested than there is on {some(found)}: {text}"]


def _more(case: Case, full: Sequence[str]) -> list[str]:
    waiting = max(len(case.workload.pending), case.workload.wanted - len(case.workload.scheduled))
    found: list[str] = []
    if case.workload.kind == "DaemonSet":  # each pod is for one node
        return found
    if waiting > 1:
        like, number = nodes_needed(case, full)
        found.append(
            f"{counted(waiting, 'pod')} of the workload wait; {counted(number, 'empty node')} like {like.name} would "
            f"hold {'them' if number > 1 else 'them all'}"
        )
    for what, (by, plugins) in _KEPT_OUT.items():
        roomy = case.rejected_by(by) & case.rejected_only_by(*plugins)
        if roomy:
            found.append(f"{what}, with room: {some(roomy)}")
    return found
