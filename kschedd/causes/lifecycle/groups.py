"""Causes of pending pods of a PodGroup: it is missing, has too few pods, or its minimum does not fit."""

from collections.abc import Mapping
from typing import Any

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.cache.pod_groups import KIND, min_count, topology_key
from kschedd.causes.answers import ObjectNamed
from kschedd.causes.case import Case, case_of
from kschedd.causes.demands.cordons import only_cordoned
from kschedd.causes.demands.new_nodes import more_nodes, rooms
from kschedd.causes.demands.tainted import uncordoning
from kschedd.causes.findings import CHANGE_OBJECT, FoundCause, RemedyOption, named
from kschedd.causes.near import nearest
from kschedd.causes.steps import as_new, patched, replaced, steps_to
from kschedd.causes.words import counted, some
from kschedd.causes.workload import ExaminedWorkload
from kschedd.explain.answers import GroupExplanation, MemberAnswer
from kschedd.explain.dumped import of_nodes
from kschedd.explain.pod_group import begin_group, explain_group
from kschedd.simulation.engine import Engine

_BY = "GangScheduling"


def member_to_examine(engine: Engine, group: Object) -> Pod | None:
    """Return a pod of the group to examine: a pod that fits on no node by itself, else a pending pod."""
    key = f"{group.namespace}/{group.name}"
    pending = [pod for pod in engine.machine.groups.waiting_for_node(key) if not pod.deleting]
    found = _cycle(engine, key)
    failed = {each.pod for each in found.members if each.state == "unschedulable"} if found is not None else set()
    return next((pod for pod in pending if pod.key in failed), next(iter(pending), None))


def group_waits(case: Case) -> FoundCause | None:
    """Return the cause: a PodGroup keeps its pod out of the queue, or off a node where the pod alone would fit."""
    judgment = case.judgment
    key, engine = judgment.pod_group, case.engine
    gate = judgment.gated
    if not key or (not judgment.fits if gate is None else gate.plugin != _BY):
        return None
    namespace, _, name = key.partition("/")
    group = engine.machine.groups.object(key)
    if group is None:
        return _missing(case, namespace, name)
    there, needed = len(engine.machine.groups.pods(key)), min_count(group)
    if gate is not None and there < needed:
        return FoundCause(
            "PodGroupLacksPods",
            f"PodGroup {name} needs {counted(needed, 'pod')} at once, and there {_are(there)} of it",
            [named(group)],
            ["spec.schedulingPolicy.gang.minCount"],
            options=[_smaller(case, group, there)],
        )
    found = _cycle(engine, key)
    if found is None or found.fits:
        return None
    return _without_room(case, group, found)


def _missing(case: Case, namespace: str, name: str) -> FoundCause:
    likely = nearest(name, [each.name for each in case.store.list(KIND, namespace)])

    def renamed(manifest: dict[str, Any], spec: dict[str, Any]) -> None:
        spec["schedulingGroup"] = {**(spec.get("schedulingGroup") or {}), "podGroupName": likely}

    return FoundCause(
        "PodGroupMissing",
        f"PodGroup {name} does not exist in namespace {namespace}" + (f" ({likely} does)" if likely else ""),
        [ObjectNamed("PodGroup", namespace, name)],
        [f"{'.'.join(case.workload.path)}.schedulingGroup.podGroupName"],
        options=[RemedyOption(f"use PodGroup {likely}", edit=renamed)] if likely else [],
    )


def _without_room(case: Case, group: Object, found: GroupExplanation) -> FoundCause:
    failed = [each for each in found.members if each.state not in ("scheduled", "fits", "gated")]
    fits = sum(each.state in ("scheduled", "fits") for each in found.members)
    for each in failed:
        if not _fits_alone(case, each):
            return FoundCause(
                "PodGroupLacksRoom",
                f"PodGroup {group.name} is placed as a whole, and its pod {each.pod} fits nowhere by itself: "
                f"{of_nodes(each.message)}",
                [named(group), _object(each)],
                evidence=[f"`explain pod/{_object(each).name}` says why"],
            )
    why = of_nodes(next((each.message for each in failed if each.message), found.message))
    at_once = f"{counted(found.min_count, 'pod')} at once" if found.min_count else f"all of its {found.pods} pods"
    options = [*more_nodes(case, case.large_enough or set(case.nodes), len(failed) or 1)]
    if found.scheduled < fits < found.min_count:
        options.append(_smaller(case, group, fits))
    key = topology_key(group) if case.engine.machine.handle.rules.groups_in_domains else ""
    within, there = (f" within one {key}", "in the first one only") if key else ("", "only")
    fitting = f"{there} {fits} of its {counted(found.pods, 'pod')} fit: {why}"
    text = f"PodGroup {group.name} needs {at_once}{within}, and {fitting}"
    fields = ["spec.schedulingPolicy.gang.minCount", *(["spec.schedulingConstraints.topology"] if key else [])]
    idle = only_cordoned(case)
    if idle and int(rooms(case, idle, free=True).sum()) >= len(failed):
        objects = [named(group), *(ObjectNamed("Node", "", name) for name in idle[:3])]
        are = "is" if len(idle) == 1 else "are"
        ways = [*uncordoning(idle), *(attrs.evolve(option, less=True) for option in options)]
        message = f"{some(idle)} {are} cordoned and would take further pods; {text}"
        return FoundCause("NodesCordoned", message, objects, fields, options=ways)
    return FoundCause("PodGroupLacksRoom", text, [named(group), *map(_object, failed[:2])], fields, options=options)


def with_siblings(case: Case, finding: FoundCause) -> FoundCause:
    """Return the finding with options that also change the group's pods with the same requirement.

    Pods without an owner are separate workloads, but a group is scheduled as a whole.
    """
    key = case.judgment.pod_group
    if not key or case.workload.kind != "Pod":
        return finding
    alike = [
        ExaminedWorkload(pod, [pod])
        for pod in case.engine.machine.groups.waiting_for_node(key)
        if pod.uid != case.pod.uid and pod.owner is None and pod.signature == case.pod.signature
    ]
    options = [
        option
        if option.edit is None
        else attrs.evolve(
            option,
            after=[*option.after, *(step for each in alike for step in steps_to(each, each.edited(option.edit)))],
        )
        for option in finding.options
    ]
    return attrs.evolve(finding, options=options)


def _fits_alone(case: Case, member: MemberAnswer) -> bool:
    pod = case.store.find("Pod", *member.pod.split("/", 1))
    return not isinstance(pod, Pod) or case_of(case.engine, case.workload, pod).judgment.fits


def _object(member: MemberAnswer) -> ObjectNamed:
    return ObjectNamed("Pod", *member.pod.split("/", 1))


def _are(number: int) -> str:
    return "is 1" if number == 1 else f"are {number}"


def _smaller(case: Case, group: Object, number: int) -> RemedyOption:
    """Return the steps that reduce the group's minimum to this number.

    A PodGroup that cannot be changed is deleted and created again.
    """
    gang = "/spec/schedulingPolicy/gang/minCount"
    if case.engine.machine.handle.rules.groups_of_v1beta1:
        step = patched(group.raw, [{"op": "replace", "path": gang, "value": number}])
    else:
        made = as_new(group.raw)
        policy: Mapping[str, Any] = {**made["spec"]["schedulingPolicy"], "gang": {"minCount": number}}
        step = replaced({**made, "spec": {**made["spec"], "schedulingPolicy": policy}})
    return RemedyOption(f"minCount {number}", CHANGE_OBJECT, steps=[step], target=f"podgroup/{group.name}", less=True)


def _cycle(engine: Engine, key: str) -> GroupExplanation | None:
    """Return the result of the group's next scheduling cycle; None if its pods are tried individually."""
    if not engine.machine.handle.rules.pod_groups:
        return None
    fork = begin_group(engine.machine, engine.driver.nominator, key)
    return None if fork is None else explain_group(fork)
