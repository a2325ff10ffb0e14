"""Changes of a cluster that make up remedies: each can be tried on a fork, and made with a command.

A change has the command that makes it (`command`, with `input` as its standard input) and a function that returns the
resulting objects. The function computes them from the cluster at the time of application, so several changes of one
object add up. A change of the pod itself returns the new pod. Nothing here writes to a cluster: `ChangedObjects` lists
what to put and what to remove.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from kschedd.api.base import Object
from kschedd.api.nodes import Node
from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.api.schemas.kinds import lookup
from kschedd.api.selecting.selectors import DOES_NOT_EXIST, EXISTS, GT, IN, LT, NOT_IN, LabelSelector, Requirement
from kschedd.api.selecting.terms import Taint
from kschedd.cache.scheduler_cache import SchedulerCache

Raw = Mapping[str, Any]
_ANY_LABEL = "yes"  # the value of a label whose value does not matter
_PAUSE = "registry.k8s.io/pause:3.10"


@attrs.frozen(eq=False)
class ChangedObjects:
    """The objects to put and to remove.

    `put` replaces objects of the same kind and name; the pod that is to be scheduled may be among them.
    """

    put: Sequence[Object] = ()
    remove: Sequence[Object] = ()


@attrs.frozen(eq=False)
class Change:
    command: str  # without `kschedd`
    apply: Callable[[SchedulerCache, Pod], ChangedObjects]
    input: str = ""  # standard input of the command, for `-f -`
    displaced: tuple[str, ...] = ()  # keys of other pods that are gone afterwards
    of_pod: bool = False  # a change of the pod itself


# -- nodes ----------------------------------------------------------------------------------------------------------


def label_node(name: str, key: str, value: str | None) -> Change:
    """Set the node's label, or remove it (None)."""
    said = f"{key}-" if value is None else f"{key}={value}"
    return _node_change(
        f"label node {name} {said}{'' if value is None else ' --overwrite'}", name, _labelled(key, value)
    )


def untaint(name: str, taint: Taint) -> Change:
    def without(raw: Raw) -> Raw:
        spec = raw.get("spec") or {}
        left = [each for each in spec.get("taints") or () if not _same_taint(each, taint)]
        return {**raw, "spec": {**spec, "taints": left}}

    return _node_change(f"taint node {name} {taint.key}:{taint.effect}-", name, without)


def recover(name: str, command: str, taint: Taint) -> Change:
    """Remove a taint by another command; the taint disappears with the node's condition."""
    return attrs.evolve(untaint(name, taint), command=command)


def uncordon(name: str) -> Change:
    def without(raw: Raw) -> Raw:
        spec = raw.get("spec") or {}
        taints = [each for each in spec.get("taints") or () if each.get("key") != "node.kubernetes.io/unschedulable"]
        return {**raw, "spec": {**spec, "unschedulable": False, "taints": taints}}

    return _node_change(f"uncordon {name}", name, without)


def enlarge(name: str, amounts: Mapping[str, str]) -> Change:
    """Set the node's total amounts."""
    patch = {"status": {"allocatable": dict(amounts), "capacity": dict(amounts)}}

    def larger(raw: Raw) -> Raw:
        status = raw.get("status") or {}
        more = {field: {**(status.get(field) or {}), **amounts} for field in ("allocatable", "capacity")}
        return {**raw, "status": {**status, **more}}

    return _node_change(f"patch node {name} --subresource status -p {_quoted(json.dumps(patch))}", name, larger)


def _node_change(command: str, name: str, change: Callable[[Raw], Raw]) -> Change:
    def apply(cluster: SchedulerCache, pod: Pod) -> ChangedObjects:
        row = cluster.table.row_of.get(name)
        node = None if row is None else cluster.table.nodes[row]
        return ChangedObjects() if node is None else ChangedObjects((Node.from_raw(change(node.raw)),))

    return Change(command, apply)


def _labelled(key: str, value: str | None) -> Callable[[Raw], Raw]:
    def change(raw: Raw) -> Raw:
        meta = raw["metadata"]
        labels = {name: held for name, held in (meta.get("labels") or {}).items() if name != key}
        return {**raw, "metadata": {**meta, "labels": labels if value is None else {**labels, key: value}}}

    return change


def _same_taint(raw: Raw, taint: Taint) -> bool:
    return raw.get("key") == taint.key and raw.get("effect") == taint.effect


def add_node(name: str, like: Node | None) -> Change:
    """Create a node of that name with the resources of another one, or default ones."""
    amounts: Raw = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    if like is not None:
        amounts = (like.raw.get("status") or {}).get("allocatable") or amounts
    return create(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "status": {"capacity": dict(amounts), "allocatable": dict(amounts)},
        }
    )


# -- pods -----------------------------------------------------------------------------------------------------------


def delete_pods(pods: Sequence[Pod]) -> tuple[Change, ...]:
    """Delete pods that are in the way, with one change for each namespace."""
    by_namespace: dict[str, list[Pod]] = {}
    for pod in pods:
        by_namespace.setdefault(pod.namespace, []).append(pod)
    return tuple(_deletion(space, tuple(those)) for space, those in by_namespace.items())


def _deletion(namespace: str, pods: tuple[Pod, ...]) -> Change:
    command = f"delete pod {' '.join(pod.name for pod in pods)} -n {namespace}"
    return Change(command, lambda cluster, pod: ChangedObjects(remove=pods), displaced=tuple(pod.key for pod in pods))


def change_pod(pod: Pod, patch: Sequence[Raw], change: Callable[[Raw], Raw]) -> Change:
    """Change the pod itself in a way that the API server allows, by a JSON patch."""
    command = f"patch pod {pod.name} -n {pod.namespace} --type json -p {_quoted(json.dumps(list(patch)))}"
    return Change(command, lambda cluster, now: ChangedObjects((Pod.from_raw(change(now.raw)),)), of_pod=True)


def tolerate(pod: Pod, taint: Taint) -> Change:
    wanted = {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
    if not taint.value:
        wanted = {"key": taint.key, "operator": "Exists", "effect": taint.effect}
    there = "tolerations" in (pod.raw.get("spec") or {})
    patch = {"op": "add", "path": f"/spec/tolerations{'/-' if there else ''}", "value": wanted if there else [wanted]}

    def change(raw: Raw) -> Raw:
        spec = raw["spec"]
        return {**raw, "spec": {**spec, "tolerations": [*(spec.get("tolerations") or ()), wanted]}}

    return change_pod(pod, [patch], change)


def ungate(pod: Pod) -> Change:
    patch = {"op": "remove", "path": "/spec/schedulingGates"}
    return change_pod(pod, [patch], lambda raw: {**raw, "spec": {**raw["spec"], "schedulingGates": None}})


def add_pod(namespace: str, labels: Mapping[str, str], node_name: str) -> Change:
    """Create one more pod with these labels on that node."""
    name = "-".join(["companion", *sorted(labels.values())][:2]).lower()
    return create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
            "spec": {"nodeName": node_name, "containers": [{"name": "main", "image": _PAUSE}]},
        }
    )


# -- any objects ----------------------------------------------------------------------------------------------------


def create(*raws: Raw, then: Sequence[Raw] = ()) -> Change:
    """Create objects. `then`: their state after the controllers have processed them, if it differs."""
    made = tuple(parse(_identified(raw)) for raw in (then or raws))
    text = "---\n".join(json.dumps(raw) + "\n" for raw in raws)
    return Change("apply -f -", lambda cluster, pod: ChangedObjects(made), text)


def _identified(raw: Raw) -> Raw:
    meta = raw["metadata"]
    uid = f"{raw['kind']}/{meta.get('namespace', '')}/{meta['name']}"
    placed = {"namespace": meta.get("namespace", "default")} if lookup(str(raw["kind"])).namespaced else {}
    return {**raw, "metadata": {"uid": uid, **placed, **meta}}


def _quoted(text: str) -> str:
    return f"'{text}'"


# -- labels that a selector wants ------------------------------------------------------------------------------------


def wanted_value(requirement: Requirement, there: str | None) -> tuple[bool, str | None]:
    """Return whether some value meets the requirement, and that value; None means no label."""
    values = list(requirement.values)
    match requirement.operator:
        case operator if operator == IN:
            return bool(values), values[0] if values else None
        case operator if operator == EXISTS:
            return True, there or _ANY_LABEL
        case operator if operator in (DOES_NOT_EXIST, NOT_IN):
            return True, None
        case operator if operator in (GT, LT):
            return True, str(int(values[0]) + (1 if operator == GT else -1))
    return False, None


def labels_for(selector: LabelSelector) -> dict[str, str] | None:
    """Return labels that the selector matches; None if there are none."""
    if selector.nothing:
        return None
    labels: dict[str, str] = {}
    for requirement in selector.requirements:
        known, value = wanted_value(requirement, labels.get(requirement.key))
        if not known:
            return None
        if value is not None:
            labels[requirement.key] = value
    return labels if selector.matches(labels) else None
