"""The diagnosis of a workload: the order of the search for causes, and the answer.

The search begins with causes that keep pods from being created, and then causes that keep the scheduler from trying a
pod. The pod's requirements follow, in this order: labels, resources that only some nodes have, taints, sizes, volumes.
The pods on the nodes (free capacity, ports, topology) are examined only if some nodes meet these requirements. If
several causes are each sufficient, all are reported.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import islice
from typing import Any, Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.cache.pod_groups import KIND as POD_GROUP
from kschedd.causes.answers import BlockingNodes, DiagnosisAnswer
from kschedd.causes.case import Case, case_of
from kschedd.causes.claimed.claims_refused import claims_refused
from kschedd.causes.claimed.devices import (
    by_claims,
    device_claims_at_fault,
    device_elsewhere,
    devices_reach,
    devices_taken,
    devices_told,
    no_such_device_resource,
    own_claims,
    unscheduled_devices,
)
from kschedd.causes.claimed.places import places_told, volume_elsewhere
from kschedd.causes.claimed.storage import claims_at_fault, provisioning, unscheduled_claims
from kschedd.causes.claimed.volumes import claim_in_use, disk_in_use, on_two_nodes, placed_without_driver, volume_limit
from kschedd.causes.demands.amounts import larger_than_every_node, no_such_resource
from kschedd.causes.demands.cordons import behind_cordons
from kschedd.causes.demands.neighbors import apart_or_together
from kschedd.causes.demands.ports import port_taken
from kschedd.causes.demands.room import no_room
from kschedd.causes.demands.selecting import no_node_selected
from kschedd.causes.demands.spreading import missing_key, not_spread
from kschedd.causes.demands.tainted import all_tainted
from kschedd.causes.findings import CHANGE_OTHER, FoundCause, RemedyOption, named
from kschedd.causes.lifecycle.creating import held, not_created, not_created_yet, selected_nothing, template_pod
from kschedd.causes.lifecycle.endings import awaited_end
from kschedd.causes.lifecycle.groups import group_waits, member_to_examine, with_siblings
from kschedd.causes.lifecycle.rejected import rejected_by_kubelet
from kschedd.causes.lifecycle.rollouts import needs_room, outdated, stuck
from kschedd.causes.lifecycle.waiting import evicted_soon, fits_now, gated, nominated, nothing_wrong, unknown_scheduler
from kschedd.causes.node import node_causes, pods_to_move
from kschedd.causes.remedies import MOST_FOUND, carried_out, keeps_all, preempting, remedies
from kschedd.causes.trial import Trials
from kschedd.causes.words import some
from kschedd.causes.workload import ExaminedWorkload, workload_of
from kschedd.clusters.virtual import MethodsOf
from kschedd.scheduling.records import PodPreempted
from kschedd.simulation.engine import Engine

_SHOWN_NODES: Final = 5
_MOST_CAUSES: Final = 3
_MOST_NAMED: Final = 16  # causes in an answer
MOST_TRIED: Final = 2_000  # maximum number of pods of a workload for which remedies are tried

#: checks of requirements on nodes, in order; the first requirement that leaves no node is a cause
_DEMANDS: Final[Sequence[Callable[[Case], FoundCause | None]]] = (
    no_node_selected,
    no_such_device_resource,
    no_such_resource,
    volume_elsewhere,
    device_elsewhere,
    all_tainted,
    larger_than_every_node,
    missing_key,
)


#: by rejecting plugin: functions that find a cause in the pods on the nodes
_OCCUPIED: Final[Mapping[str, Sequence[Callable[[Case, Sequence[str]], FoundCause | None]]]] = {
    "NodeResourcesFit": (no_room,),
    "VolumeRestrictions": (claim_in_use, disk_in_use),
    "NodeVolumeLimits": (volume_limit,),
    "DynamicResources": (devices_taken,),
    "NodePorts": (port_taken,),
    "PodTopologySpread": (not_spread,),
    "InterPodAffinity": (apart_or_together,),
}


def diagnosis(
    engine: Engine,
    obj: Object,
    methods: MethodsOf,
    *,
    preempted: Sequence[PodPreempted] = (),
    program: str = "kschedd",
    trying: bool = True,
    most: int = MOST_FOUND,
    check: Callable[[], None] = lambda: None,
) -> DiagnosisAnswer:
    """Diagnose this object if it is a workload, otherwise the workload that owns it.

    The cluster does not change. `preempted` contains the known preempted pods of the namespace. `program` is the name
    of the program in the commands of the answer. Remedies are searched for only if `trying` is given; the search ends
    after `most` remedies.
    """
    workload = workload_of(engine.store, obj)
    examined = _examined(engine, workload, obj)
    case = None
    if examined is not None and examined.scheduler_name in engine.machine.schedulers:
        case = case_of(engine, workload, examined, preempted)
        if workload.kind == POD_GROUP and not case.judgment.fits:  # the pod fits on no node, even without its group
            workload = workload_of(engine.store, examined)
            case = attrs.evolve(case, workload=workload)
    findings = [_with_others(engine, workload, each) for each in causes(engine, workload, examined, case)]
    if case is not None:
        findings = [with_siblings(case, each) for each in findings]
    # with very many pods, each trial would take long, and so would the rollout of a remedy
    small = workload.wanted <= MOST_TRIED
    trials = Trials(engine, workload, methods, check) if trying and small else None
    answer = causes_and_remedies(workload, findings, trials, program, most)
    if trying and not small:
        answer["tried"] = [f"nothing: a remedy is tried for at most {MOST_TRIED:,} pods"]
    return DiagnosisAnswer(
        workload=named(workload.obj),
        wanted=workload.wanted,
        scheduled=len(workload.scheduled),
        pending=len(workload.pending),
        missing=workload.missing,
        examined="" if examined is None else examined.key,
        blocking_nodes=[] if case is None else blocking(case),
        **answer,
    )


def node_diagnosis(
    engine: Engine,
    node: Node,
    methods: MethodsOf,
    *,
    program: str = "kschedd",
    trying: bool = True,
    check: Callable[[], None] = lambda: None,
) -> DiagnosisAnswer:
    """Diagnose a node. The numbers in the answer count the node's pods, except those of DaemonSets."""
    findings = list(node_causes(engine, node))
    moving = pods_to_move(engine, node.name)
    workload = workload_of(engine.store, moving[0]) if moving else ExaminedWorkload(node, ())
    leaving = node.name if any(finding.code == "BudgetBlocksDrain" for finding in findings) else ""
    trials = Trials(engine, workload, methods, check, [pod.uid for pod in moving], leaving)
    return DiagnosisAnswer(
        workload=named(node),
        wanted=len(moving),
        scheduled=len(moving),
        pending=0,
        missing=0,
        examined="",
        blocking_nodes=[],
        **causes_and_remedies(workload, findings, trials if trying else None, program),
    )


def causes_and_remedies(
    workload: ExaminedWorkload,
    findings: Sequence[FoundCause],
    trials: Trials | None,
    program: str,
    most: int = MOST_FOUND,
) -> dict[str, Any]:
    """Return the causes and remedies of the answer. If `trials` is None, no remedy is tried."""
    found, failed = ([], []) if trials is None else remedies(workload, findings, trials, program, most)
    if trials is not None and not any(keeps_all(remedy, workload) for remedy in found):
        later = _hidden(workload, findings, trials)
        if later:
            findings = [*findings, *later]
            together, further = remedies(workload, findings, trials, program, most)
            found = together or found
            failed += further
    if trials is not None and len(found) < most:
        found = [*found, *preempting(workload, findings, trials, program, found)]
    first, *also = [finding.answer() for finding in findings[:_MOST_NAMED]]
    if len(findings) > _MOST_NAMED:
        first = attrs.evolve(first, evidence=[*first.evidence, f"{len(findings) - _MOST_NAMED} further causes"])
    return {
        "cause": first,
        "also": also,
        "confidence": "certain" if all(finding.certain for finding in findings) else "likely",
        "remedies": found,
        "tried": failed,
    }


def _with_others(engine: Engine, workload: ExaminedWorkload, finding: FoundCause) -> FoundCause:
    """Return the finding, preceded by the causes of the workloads for which this workload waits.

    If the workloads wait for each other in a circle, only remedies for this workload are returned.
    """
    evidence, seen, waits_for, mended = [], {workload.obj.uid}, finding.waits_for, list[RemedyOption]()
    while waits_for is not None:
        other = workload_of(engine.store, waits_for)
        if other.obj.uid in seen:
            break
        seen.add(other.obj.uid)
        first, *_ = causes_of(engine, waits_for)
        evidence.append(f"{other.label}: {first.message}")
        waits_for = first.waits_for
        if waits_for is None:
            mended = [
                RemedyOption(f"{other.label}: {option.summary}", CHANGE_OTHER, steps=steps, target=other.label)
                for option in first.options
                if (steps := carried_out(other, [option])[0])
            ]
    return attrs.evolve(finding, evidence=[*evidence, *finding.evidence], options=mended or finding.options)


def _hidden(workload: ExaminedWorkload, findings: Sequence[FoundCause], trials: Trials) -> list[FoundCause]:
    """Return the causes that appear only after the first option of each of these causes is carried out."""
    options = [finding.options[0] for finding in findings if finding.options]
    steps, _ = carried_out(workload, options)
    if not steps:
        return []
    known = {(finding.code, *finding.objects[:1]) for finding in findings}
    left = trials.left_after(steps, causes_of)
    return [
        attrs.evolve(each, message=f"after that change: {each.message}")
        for each in left
        if each.options and (each.code, *each.objects[:1]) not in known
    ]


def causes_of(engine: Engine, obj: Object) -> list[FoundCause]:
    """Return the causes for the workload that this object is or belongs to; at least one."""
    workload = workload_of(engine.store, obj)
    examined = _examined(engine, workload, obj)
    known = examined is not None and examined.scheduler_name in engine.machine.schedulers
    case = case_of(engine, workload, examined) if examined is not None and known else None
    return list(causes(engine, workload, examined, case))


def _examined(engine: Engine, workload: ExaminedWorkload, obj: Object) -> Pod | None:
    """Return the pod to examine: the requested pod, else a pending pod, else a pod that is not created yet."""
    if isinstance(obj, Pod) and not obj.node_name and not obj.finished:
        return obj
    if workload.kind == POD_GROUP:
        return member_to_examine(engine, workload.obj)
    if workload.pending:
        return workload.pending[0]
    if workload.kind == "DaemonSet" and not workload.pods:  # the DaemonSet controller skips unsuitable nodes
        made = template_pod(engine.store, workload)
        return made if isinstance(made, Pod) else None
    return None


def causes(engine: Engine, workload: ExaminedWorkload, pod: Pod | None, case: Case | None) -> Iterator[FoundCause]:
    """Return the causes of the workload's problem; at least one.

    `case` is the case of the pod, if a profile for it exists.
    """
    found = False
    for finding in _found(engine, workload, pod, case):
        found = True
        yield finding
    if found:
        return
    if case is not None and case.judgment.message:
        yield FoundCause("Rejected", case.judgment.message, [named(workload.obj)], certain=False)
        return
    yield (
        stuck(engine, workload)
        or awaited_end(engine, workload)
        or evicted_soon(engine, workload)
        or on_two_nodes(engine.store, workload)
        or placed_without_driver(engine.store, workload)
        or rejected_by_kubelet(engine.store, workload)
        or not_created_yet(workload)
        or unscheduled_claims(engine.store, workload)
        or unscheduled_devices(engine.store, workload)
        or nothing_wrong(engine, workload)
    )


def _found(engine: Engine, workload: ExaminedWorkload, pod: Pod | None, case: Case | None) -> Iterator[FoundCause]:
    store = engine.store
    halted = held(workload) or selected_nothing(workload)
    if halted is not None:
        yield halted
        return
    unmade = list(claims_refused(store, workload))
    yield from unmade
    if pod is not None:
        yield from _pending(engine, workload, pod, case, claimless=bool(unmade))
    refused, made = not_created(store, workload)
    yield from refused
    if pod is None and made is not None and made.scheduler_name in engine.machine.schedulers:
        later = case_of(engine, workload, made)  # causes that the pod will have after its creation
        if not later.judgment.fits:
            yield from _pending(engine, workload, made, later, claimless=bool(unmade))


def _pending(
    engine: Engine, workload: ExaminedWorkload, pod: Pod, case: Case | None, *, claimless: bool
) -> Iterator[FoundCause]:
    """Why the pod has no node. `claimless` is true if claims of the pod are known to be missing."""
    unknown = unknown_scheduler(engine, workload, pod)
    if unknown is not None:
        yield unknown
        case = _renamed(engine, workload, pod, unknown)
    if case is None:
        return
    if not case.nodes:
        yield _no_nodes()
        return
    case = by_claims(case)
    claims = [*claims_at_fault(case), *device_claims_at_fault(case)]
    yield from claims
    if claims or claimless:
        # further causes can only be found without the claims
        case = case.with_pod(_without_claims(case.pod))
    gate = group_waits(case) or gated(case)
    if gate is not None:
        yield gate
    if (claims or claimless or unknown is not None) and case.judgment.fits:
        return
    waits = provisioning(case) or nominated(case) or fits_now(case) or outdated(case)
    if waits is not None:
        if gate is None:
            yield waits
        return
    reported: set[tuple[str, ...]] = set()
    for _ in range(_MOST_CAUSES):
        case = by_claims(case)
        deviceless = case.cluster.names - devices_reach(case)
        case = attrs.evolve(case, deviceless=deviceless) if deviceless else case
        finding = _unmet_demand(case)
        if finding is None:
            yield from _busy(case)
            return
        where = (finding.code, *finding.fields)
        if where in reported:  # the option did not remove the cause
            return
        reported.add(where)
        yield finding
        first = next(iter(finding.options), None)
        if first is None or first.edit is None or first.steps:
            return
        # look for another cause, assuming that the first option is carried out
        case = case.after(first.edit)
        if case.judgment.fits:
            return


def _renamed(engine: Engine, workload: ExaminedWorkload, pod: Pod, unknown: FoundCause) -> Case | None:
    """Return the case of the pod with the probably intended scheduler, to find further causes."""
    raw = copy.deepcopy(dict(pod.raw))
    for edit in (option.edit for option in unknown.options[:1] if option.edit is not None):
        edit({}, raw["spec"])
    renamed = Pod.from_raw(raw)
    return case_of(engine, workload, renamed) if renamed.scheduler_name in engine.machine.schedulers else None


def _no_nodes() -> FoundCause:
    return FoundCause(
        "NoNodes",
        "the cluster has no nodes",
        evidence=["next: add a node; of a dump, include the nodes (`kubectl get nodes,pods,... -A -o yaml`)"],
    )


def _unmet_demand(case: Case) -> FoundCause | None:
    """Return the cause in the first requirement that no remaining node meets."""
    for demand in _DEMANDS:
        finding = demand(case)
        if finding is not None:
            return _kept(case, finding)
    return None


def _kept(case: Case, finding: FoundCause) -> FoundCause:
    """Return the finding, with a note about claims that restrict the pod to some nodes."""
    if not case.reachable < case.selected:
        return finding
    sentence = (
        places_told(case) or devices_told(case) or f"the devices that it claims are on {some(case.reachable)} only"
    )
    options = [*own_claims(case), *finding.options]
    return attrs.evolve(finding, evidence=[*finding.evidence, sentence], options=options)


def _without_claims(pod: Pod) -> Pod:
    """Return the pod without its claims of volumes and devices."""
    raw = copy.deepcopy(dict(pod.raw))
    spec = raw["spec"]
    spec.pop("resourceClaims", None)
    spec["volumes"] = [
        v for v in spec.get("volumes") or () if "persistentVolumeClaim" not in v and "ephemeral" not in v
    ]
    return Pod.from_raw(raw)


def _busy(case: Case) -> Iterator[FoundCause]:
    """Return the cause: other pods occupy the suitable nodes."""
    left = case.large_enough
    ordered = [name for name in case.open_names if name in left]
    found = []
    for plugin, looks in _OCCUPIED.items():
        nodes = left & case.rejected_by(plugin)
        finding = next((each for look in looks if (each := look(case, ordered)) is not None), None) if nodes else None
        if finding is not None:
            found.append((finding, nodes))
    rollout = needs_room(case, [finding for finding, _ in found])
    if rollout is not None:
        yield rollout
        return
    # Order the causes by the number of nodes that they exclude. If two causes each exclude all nodes, each
    # of them explains the failure by itself.
    found.sort(key=lambda pair: -len(pair[1]))
    covered: set[str] = set()
    for finding, nodes in found:
        if nodes == left or not nodes <= covered:
            finding = behind_cordons(case, finding)
            yield _kept(case, attrs.evolve(finding, partial=nodes != left))
            covered |= nodes


def blocking(case: Case) -> list[BlockingNodes]:
    """Return the nodes that reject the pod, by plugin and reason, largest group first."""
    groups: dict[tuple[str, str], list[str]] = {}
    for plugins, nodes in case.judgment.alike:
        for plugin, reasons in islice(plugins.items(), 1):
            groups.setdefault((plugin, ", ".join(reasons)), []).extend(nodes)
    ordered = sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    return [
        BlockingNodes(len(nodes), plugin, reason, nsmallest(_SHOWN_NODES, nodes)) for (plugin, reason), nodes in ordered
    ]
