"""Causes of pending pods: all nodes that the pod selects are cordoned or have an untolerated taint."""

import copy
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any, Final

import attrs

from kschedd.api.nodes import RENAMED_LABELS
from kschedd.api.selecting.terms import NO_EXECUTE, NO_SCHEDULE, Taint, Toleration
from kschedd.causes.answers import ObjectNamed
from kschedd.causes.case import Case
from kschedd.causes.demands.new_nodes import MOST_NODES, created_nodes, nodes_needed
from kschedd.causes.findings import (
    ADD_OBJECT,
    CHANGE_NODE,
    CHANGE_WORKLOAD,
    WORKAROUND,
    FoundCause,
    RemedyOption,
    spec_edit,
)
from kschedd.causes.near import nearest
from kschedd.causes.steps import uncordoned
from kschedd.causes.words import counted, every, joined, some

Spec = dict[str, Any]
CORDON: Final = "node.kubernetes.io/unschedulable"
_CONDITIONS: Final = "node.kubernetes.io/"
_OF_CLOUD: Final = "node.cloudprovider.kubernetes.io/"
#: taints that temporarily remove a node from use
_LEAVING: Final = re.compile(
    r"maintenance|drain|upgrad|repair|decommission|quarantine|out-of-service|ToBeDeleted|DeletionCandidate|disrupt",
    re.I,
)
#: taints that an agent or controller removes when the node is ready for pods
_STARTUP: Final = re.compile(r"(not-?ready|uninitiali[sz]ed|unregistered|startup)$", re.I)
#: names of devices in taints of nodes that are reserved for pods with such devices
_DEVICES: Final = re.compile(r"gpu|tpu|npu|fpga|accelerator|neuron|gaudi", re.I)
_USUAL: Final = frozenset(("cpu", "memory", "ephemeral-storage", "pods"))
_TOPOLOGY: Final = frozenset((*RENAMED_LABELS, *RENAMED_LABELS.values(), "kubernetes.io/os", "kubernetes.io/arch"))
_ROLE: Final = "node-role.kubernetes.io/"
_CONTROL_PLANE: Final = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")


@attrs.frozen
class _Pool:
    """Nodes with the same taints that the pod does not tolerate. `taints` may contain the taint of a cordon."""

    taints: tuple[Taint, ...]
    nodes: tuple[str, ...]

    @property
    def cordoned(self) -> bool:
        return any(taint.key == CORDON for taint in self.taints)

    @property
    def broken(self) -> bool:
        """Return whether the taints represent a failed node condition, which no workload should tolerate."""
        return any(_of_condition(taint) and taint.key != CORDON for taint in self.taints)

    @property
    def control_plane(self) -> bool:
        return any(taint.key in _CONTROL_PLANE for taint in self.taints)

    @property
    def leaving(self) -> bool:
        """Return whether the taints temporarily remove the nodes from use; no workload should tolerate such taints."""
        return any(_LEAVING.search(f"{taint.key}={taint.value}") for taint in self.taints)

    @property
    def dedicated(self) -> tuple[Taint, ...]:
        """The taints with which an administrator dedicated the nodes to a purpose."""
        return tuple(taint for taint in self.taints if not _of_condition(taint))


def _of_condition(taint: Taint) -> bool:
    """Return whether the taint represents the node's state rather than its purpose."""
    return taint.key.startswith((_CONDITIONS, _OF_CLOUD)) or bool(_STARTUP.search(taint.key))


def all_tainted(case: Case, among: Set[str] | None = None) -> FoundCause | None:
    """Return the cause, or None: the taints of all selected nodes are not tolerated.

    `among` restricts the search to nodes that meet the pod's other requirements.
    """
    chosen = case.reachable if among is None else case.selected & among
    if not chosen or chosen & case.open:
        return None
    pools = _pools(case, chosen)
    near = near_toleration(case, pools)
    if near is not None:
        return near
    narrowed = chosen < case.cluster.names
    usual = [pool for pool in pools if not pool.control_plane] or pools
    cordoned = [pool for pool in usual if pool.cordoned and not pool.dedicated and not pool.broken]
    broken = [pool for pool in usual if pool.broken and not pool.dedicated]
    dedicated = [pool for pool in usual if pool.dedicated and not pool.broken and not pool.cordoned]
    # Report ordinary nodes that are out of use first, unless the pod explicitly selects dedicated nodes.
    if cordoned and not (narrowed and dedicated and not broken):
        return _cordoned(case, cordoned, broken, narrowed)
    if broken:
        return _broken(case, broken)
    return _untolerated(case, dedicated or pools, narrowed)


def _pools(case: Case, names: Iterable[str]) -> list[_Pool]:
    by_state: dict[tuple[tuple[Taint, ...], bool], list[str]] = {}
    for name in names:
        node = case.nodes[name]
        by_state.setdefault((node.taints, node.unschedulable), []).append(name)
    by_taints: dict[tuple[Taint, ...], list[str]] = {}
    for nodes in by_state.values():
        by_taints.setdefault(tuple(untolerated(case, nodes[0])), []).extend(nodes)
    pools = [_Pool(taints, tuple(sorted(nodes))) for taints, nodes in by_taints.items()]
    return sorted(pools, key=lambda pool: (-len(pool.nodes), pool.nodes))


def untolerated(case: Case, name: str) -> Iterator[Taint]:
    """Return the taints of a node that the pod does not tolerate. A cordon is treated as a taint."""
    node, tolerations = case.nodes[name], case.pod.pod_spec.tolerations
    keys = set()
    for taint in node.taints:
        if taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not any(each.tolerates(taint) for each in tolerations):
            keys.add(taint.key)
            yield taint
    cordon = Taint(CORDON, "", NO_SCHEDULE)
    if node.unschedulable and CORDON not in keys and not any(each.tolerates(cordon) for each in tolerations):
        yield cordon


def tolerating(taints: Sequence[Taint]) -> RemedyOption:
    def edit(spec: Spec) -> None:
        spec["tolerations"] = [*(spec.get("tolerations") or ()), *map(_toleration, taints)]

    return RemedyOption(f"tolerate {joined([taint.shown for taint in taints])}", edit=spec_edit(edit))


def _toleration(taint: Taint) -> dict[str, Any]:
    if not taint.value:
        return {"key": taint.key, "operator": "Exists", "effect": taint.effect}
    return {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}


# -- a toleration that was meant for a taint ------------------------------------------------------------------------


def meant_for(case: Case, names: Iterable[str]) -> FoundCause | None:
    """Return the pod's toleration that was probably intended for these nodes' taints, but does not match them."""
    return near_toleration(case, _pools(case, names))


def near_toleration(case: Case, pools: Sequence[_Pool]) -> FoundCause | None:
    """Return the toleration that does not match a taint only because of its spelling, value or effect."""
    own = [each for each in case.pod.pod_spec.tolerations if each.key and not each.key.startswith(_CONDITIONS)]
    sets = {node.taints for node in case.nodes.values()} if own else ()
    there = {taint for taints in sets for taint in taints}
    used = [each for each in own if any(each.tolerates(taint) for taint in there)]
    for pool in pools:
        pairs = [(taint, _meant(taint, [each for each in own if each not in used])) for taint in pool.taints]
        if not pairs or any(toleration is None for _, toleration in pairs):
            continue
        replaced = [(toleration, taint) for taint, toleration in pairs if toleration is not None]
        toleration, taint = replaced[0]
        return FoundCause(
            "TolerationMismatch",
            f"the pod tolerates `{_toleration_text(toleration)}`, but the taint on "
            f"{counted(len(pool.nodes), 'node')} is `{taint.shown}`",
            [ObjectNamed("Node", "", name) for name in pool.nodes[:3]],
            ["spec.tolerations"],
            [f"nodes with the taint: {some(pool.nodes)}"],
            [RemedyOption(f"tolerate {taint.shown} instead", edit=spec_edit(_replacing(replaced)))],
        )
    return None


def _meant(taint: Taint, tolerations: Sequence[Toleration]) -> Toleration | None:
    """Return the toleration that was probably intended for the taint."""
    for each in tolerations:
        same_key = each.key == taint.key
        near_key = same_key or nearest(each.key, [taint.key]) is not None
        wrong_value = each.operator != "Exists" and each.value != taint.value
        near_value = not wrong_value or same_key or nearest(each.value, [taint.value]) is not None
        if near_key and near_value:
            return each
    return None


def _toleration_text(toleration: Toleration) -> str:
    value = f"={toleration.value}" if toleration.value else ""
    return f"{toleration.key}{value}{f':{toleration.effect}' if toleration.effect else ''}"


def _replacing(pairs: Sequence[tuple[Toleration, Taint]]) -> Any:
    def edit(spec: Spec) -> None:
        for toleration, taint in pairs:
            for place, raw in enumerate(spec["tolerations"]):
                if raw.get("key") == toleration.key and (raw.get("effect") or "") == toleration.effect:
                    spec["tolerations"][place] = _toleration(taint)
                    break

    return edit


# -- which taints, and what to do about them ------------------------------------------------------------------------


def _of_other_purpose(case: Case, pool: _Pool) -> bool:
    """Return whether the nodes are reserved for pods with devices, and the pod neither requests nor selects devices.

    A pod selects such nodes if any of their labels is in its selector or node affinity, except topology and platform
    labels.
    """
    offered = case.cluster.resources
    if not any(taint.key in offered or _DEVICES.search(taint.key) for taint in pool.dedicated):
        return False
    if case.pod.pod_spec.resource_claims or case.requested.keys() - _USUAL:
        return False
    spec = case.workload.pod_spec
    terms = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    keys = {*(spec.get("nodeSelector") or {})}
    keys |= {
        each["key"] for term in terms.get("nodeSelectorTerms") or () for each in term.get("matchExpressions") or ()
    }
    return keys <= _TOPOLOGY


def _untolerated(case: Case, pools: Sequence[_Pool], narrowed: bool) -> FoundCause:
    first = pools[0]
    others = [] if narrowed or len(first.nodes) == len(case.nodes) else [" that are no control planes"]
    taints = f"`{'`, `'.join([taint.shown for taint in first.taints])}`"
    if narrowed or len(pools) == 1:
        nodes = counted(len(first.nodes), "node")
        whole = (
            f"{every(len(first.nodes))} that the pod selects have"
            if narrowed
            else f"{every(len(first.nodes))}{''.join(others)} have"
        )
        if len(first.nodes) == 1:
            which = " that the pod selects" if narrowed else "".join(others)
            whole = f"the only node{which}, {first.nodes[0]}, has" if which else "the only node has"
        if len(pools) > 1:
            whole = f"all nodes that the pod selects are tainted: {nodes} have"
        message = f"{whole} the taint {taints}, which the pod does not tolerate"
    else:
        parts = [
            f"`{'`, `'.join([taint.shown for taint in pool.taints])}` ({counted(len(pool.nodes), 'node')})"
            for pool in pools[:4]
        ]
        message = f"{every(len(case.nodes))} are tainted, and the pod tolerates none of {joined(parts)}"
    usable = [pool for pool in pools[:3] if pool.dedicated and not (pool.cordoned or pool.leaving)]
    workers = [] if narrowed or not all(pool.control_plane for pool in pools) else _workers(case, first.nodes)
    apart = [pool for pool in usable if _of_other_purpose(case, pool)]
    return FoundCause(
        "TolerationMissing",
        message,
        [ObjectNamed("Node", "", name) for name in first.nodes[:3]],
        ["spec.tolerations"],
        [
            *(f"{', '.join([taint.shown for taint in pool.taints])}: {some(pool.nodes)}" for pool in pools[:4]),
            *(f"{some(pool.nodes)} are for pods that use their devices, and the pod uses none" for pool in apart),
            *(["next: add a node for pods without such a toleration"] if apart and apart == usable else []),
            *(
                f"such a taint takes {some(pool.nodes)} out of use, so no pod should tolerate it"
                for pool in pools[:4]
                if pool.leaving
            ),
        ],
        [
            *workers,
            *(
                attrs.evolve(tolerating(pool.dedicated), kind=WORKAROUND if workers else CHANGE_WORKLOAD)
                for pool in usable
                if pool not in apart
            ),
        ],
        certain=narrowed or len(pools) == 1,
    )


def _workers(case: Case, control_plane: Sequence[str]) -> list[RemedyOption]:
    """Return the option to add nodes like these, without the taint and the labels of a control plane."""
    like, number = nodes_needed(case, control_plane)
    if number > MOST_NODES:
        return []
    raw = copy.deepcopy(dict(like.raw))
    raw["spec"].pop("taints", None)
    labels = raw["metadata"].get("labels") or {}
    raw["metadata"]["labels"] = {key: value for key, value in labels.items() if not key.startswith(_ROLE)}
    steps = [step for place in range(number) for step in created_nodes(case, raw, place)]
    summary = f"add {counted(number, 'worker node')}, sized like {like.name}"
    return [RemedyOption(summary, ADD_OBJECT, steps=steps, target=f"node/{like.name}")]


def _cordoned(case: Case, pools: Sequence[_Pool], broken: Sequence[_Pool], narrowed: bool) -> FoundCause:
    names = sorted(name for pool in pools for name in pool.nodes)
    which = " that the pod may use" if narrowed or len(names) < len(case.nodes) else ""
    whole = f"{every(len(names))}{which} are cordoned" if len(names) > 1 else ""
    message = whole or f"the only node{which}, {names[0]}, is cordoned"
    if broken:
        count = sum(len(pool.nodes) for pool in broken)
        message = f"{message}; {counted(count, 'other')} are not ready"
    return FoundCause(
        "NodesCordoned",
        message,
        [ObjectNamed("Node", "", name) for name in names[:3]],
        [],
        [f"cordoned: {some(names, 5)}"],
        uncordoning(names),
    )


def uncordoning(names: Sequence[str], waiting: int = 1) -> list[RemedyOption]:
    """Return the options that uncordon one node, as many nodes as there are pending pods, or all nodes."""
    found = []
    for number in sorted({1, min(waiting, len(names)), len(names)}):
        chosen = names[:number]
        steps = [uncordoned(name) for name in chosen]
        what = some(chosen) if number <= 3 else counted(number, "node")
        found.append(RemedyOption(f"uncordon {what}", CHANGE_NODE, steps=steps, target=f"node/{names[0]}"))
    return found


def _broken(case: Case, pools: Sequence[_Pool]) -> FoundCause:
    names = sorted(name for pool in pools for name in pool.nodes)
    taints = sorted({taint.shown for pool in pools for taint in pool.taints})
    rest = "" if len(names) == len(case.nodes) else " that the pod may use"
    return FoundCause(
        "NodesNotReady",
        f"{every(len(names))}{rest} are out of order: {joined([f'`{text}`' for text in taints])}"
        if len(names) > 1
        else f"the only node{rest}, {names[0]}, is out of order: {joined([f'`{text}`' for text in taints])}",
        [ObjectNamed("Node", "", name) for name in names[:3]],
        [],
        [
            some(names, 5),
            *_next(names[0], pools),
        ],
        certain=True,
    )


def _next(name: str, pools: Sequence[_Pool]) -> Iterator[str]:
    """Yield the action that removes each kind of taint, if no change of the workload helps."""
    taints = {taint for pool in pools for taint in pool.taints if taint.key != CORDON}
    agents = sorted(taint.shown for taint in taints if not taint.key.startswith(_CONDITIONS))
    yield from (f"{text}: an agent or controller removes the taint once the node is ready for pods" for text in agents)
    if agents:
        yield f"next: check the pods of that agent or controller (on {name}); no change of the workload helps"
    conditions = sorted(taint.shown for taint in taints if taint.key.startswith(_CONDITIONS))
    yield from (f"{text}: the taint goes when the node's condition does" for text in conditions)
    if conditions:
        yield (
            f"next: check the kubelet of {name} and its network to the API server (`describe node {name}`); no change "
            "of the workload helps"
        )
