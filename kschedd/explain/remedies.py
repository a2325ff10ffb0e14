"""What would have to change for a pod to fit: plain sentences, each naming everything that one node lacks.

For every node that was rejected each rejecting plugin is asked for the smallest change that would content it; the
sentence joins them with "and". The nodes that need least come first; nodes that need the same are named together.
What a plugin from elsewhere would want nobody here knows: then its own reason is repeated.

Costs only order the sentences: 1 for a change, more for changes that reach further, a fraction more for larger amounts.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final

from kschedd.api.selectors import DOES_NOT_EXIST, EXISTS, GT, IN, LT, NodeSelectorTerm, Requirement, SelectorError
from kschedd.api.terms import Taint
from kschedd.explain.amounts import amount
from kschedd.explain.judging import NodeVerdict
from kschedd.explain.looking import Change, Looking
from kschedd.explain.neighbours import affinity, spreading
from kschedd.framework.status import Code, Status
from kschedd.plugins.nodeports import conflict
from kschedd.plugins.noderesourcesfit import looked_at

_MOST: Final = 8  # sentences
_MOST_NODES: Final = 256  # looked at closely
_NAMED_NODES: Final = 4

Remedy = Callable[[Looking, int, Status], list[Change]]


def would_fit_if(
    looking: Looking, gated: Status | None, status: Status | None, verdicts: list[NodeVerdict], *, fits: bool
) -> list[str]:
    """The sentences, least change first; none if the pod fits as things are."""
    always = [_gate(gated)] if gated is not None else []
    if status is not None:
        return [_sentence([*always, *_pre_filter(looking, status)])]
    if fits:
        return [_sentence(always)] if always else []
    if not verdicts:
        return [_sentence([*always, Change("the cluster had a node for it", 1)])]
    found: dict[str, tuple[float, list[str]]] = {}
    for verdict in sorted(verdicts, key=lambda verdict: len(verdict.rejections))[:_MOST_NODES]:
        changes = list(always)
        for rejection in verdict.rejections:
            changes += _REMEDIES.get(rejection.plugin, _any)(looking, verdict.row, rejection)
        if verdict.crowd:
            waiting = ", ".join(other.key for other in verdict.crowd)
            changes.append(Change(f"{waiting} did not wait for {looking.name(verdict.row)}", 1))
        cost = sum({change.text: change.cost for change in changes}.values())
        _, nodes = found.setdefault(_sentence(changes), (cost, []))
        nodes.append(looking.name(verdict.row))
    ordered = sorted(found.items(), key=lambda item: item[1][0])
    return [_with_nodes(text, nodes) for text, (_, nodes) in ordered[:_MOST]]


def _sentence(changes: Iterable[Change]) -> str:
    return ", and ".join(dict.fromkeys(change.text for change in changes))


def _with_nodes(text: str, nodes: list[str]) -> str:
    if len(nodes) == 1 and re.search(rf"(?<![\w.=-]){re.escape(nodes[0])}(?![\w-])", text):
        return text  # the sentence names it itself
    named = ", ".join(nodes[:_NAMED_NODES])
    more = f" and {len(nodes) - _NAMED_NODES} more" if len(nodes) > _NAMED_NODES else ""
    return f"{text} ({named}{more})"


# -- before any node is looked at -------------------------------------------------------------------------------


def _gate(status: Status) -> Change:
    gates = re.fullmatch(r"waiting for scheduling gates: \[(.*)\]", status.message)
    if gates is not None:
        return Change(f"the scheduling gates {', '.join(gates[1].split())} were taken away", 1)
    return Change(f'{status.plugin} did not hold it back with "{status.message}"', 1)


_MISSING: Final = (
    (r'persistentvolumeclaim "(.+)" not found', "the PersistentVolumeClaim {} existed"),
    (r'waiting for ephemeral volume controller to create the persistentvolumeclaim "(.+)"', "the claim {} were made"),
    (r'persistentvolumeclaim "(.+)" is being deleted', "the PersistentVolumeClaim {} were not being deleted"),
    (r"pod has unbound immediate PersistentVolumeClaims", "its immediate PersistentVolumeClaims were bound"),
    (r'persistentvolume "(.+)" not found', "the PersistentVolume {} existed"),
    (r'storageclass(?:\.storage\.k8s\.io)? "(.+)" not found', "the StorageClass {} existed"),
    (r"request .+: device class (.+) does not exist", "the DeviceClass {} existed"),
    (r'resourceclaim(?:\.resource\.k8s\.io)? "(.+)" not found', "the ResourceClaim {} existed"),
    (r"pod affinity terms conflict", "the node names its affinity asks for did not exclude each other"),
)


def _pre_filter(looking: Looking, status: Status) -> list[Change]:
    for pattern, text in _MISSING:
        match = re.search(pattern, status.message)
        if match is not None:
            return [Change(text.format(*match.groups()), 1)]
    narrowed = re.fullmatch(
        r"node\(s\) didn't satisfy plugin\(?s?\)? \[?([^]]*)\]?(?: simultaneously)?", status.message
    )
    if narrowed is not None:
        return [Change(f"{narrowed[1]} left it a node that exists", 1)]
    return [Change(f'{status.plugin} did not say "{status.message}"', 2)]


# -- one node ---------------------------------------------------------------------------------------------------


def _any(looking: Looking, row: int, status: Status) -> list[Change]:
    said = status.message or status.code.label
    return [Change(f'{status.plugin} did not say "{said}" of {looking.name(row)}', 4)]


def _cordoned(looking: Looking, row: int, status: Status) -> list[Change]:
    return [Change(f"{looking.name(row)} were not cordoned", 1)]


def _other_node(looking: Looking, row: int, status: Status) -> list[Change]:
    return [Change("the pod's spec.nodeName named another node", 8)]


def _taints(looking: Looking, row: int, status: Status) -> list[Change]:
    tolerations = looking.pod.pod_spec.tolerations
    taints = [
        taint
        for taint in looking.table.taint_sets[int(looking.table.taints[row])]
        if taint.effect in ("NoSchedule", "NoExecute") and not any(t.tolerates(taint) for t in tolerations)
    ]
    return [_without_taint(looking, row, taint) for taint in taints]


_CONDITIONS: Final = {
    "node.kubernetes.io/not-ready": "{} were ready",
    "node.kubernetes.io/unreachable": "{} could be reached",
    "node.kubernetes.io/memory-pressure": "{} had no memory pressure",
    "node.kubernetes.io/disk-pressure": "{} had no disk pressure",
    "node.kubernetes.io/pid-pressure": "{} had no shortage of process ids",
    "node.kubernetes.io/network-unavailable": "{} had a network",
}


def _without_taint(looking: Looking, row: int, taint: Taint) -> Change:
    """A taint that stands for a condition goes with it; any other one has to be tolerated."""
    if taint.key == "node.kubernetes.io/unschedulable" and looking.table.unschedulable[row]:
        return _cordoned(looking, row, Status(Code.SUCCESS))[0]
    condition = _CONDITIONS.get(taint.key)
    if condition is not None:
        return Change(condition.format(looking.name(row)), 1)
    return Change(f"the pod tolerated {_taint(taint)}", 1)


def _taint(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _resources(looking: Looking, row: int, status: Status) -> list[Change]:
    table, node = looking.table, looking.name(row)
    changes = []
    if "Too many pods" in status.reasons:
        allowed = int(table.allowed_pods[row])
        changes.append(Change(f"{node} took more than its {allowed} pods", 1.5))
    lacking = []
    cost = 1.0
    for name, wanted in looked_at(looking.pod.pod_spec.requests):
        number = table.resource(name)
        has = int(table.allocatable[number, row])
        missing = wanted - (has - int(table.requested[number, row]))
        if missing > 0 and f"Insufficient {name}" in status.reasons:
            lacking.append(f"{amount(name, missing)} more free {name}")
            cost += min(missing / wanted, 1) + (wanted > has)
    if lacking:
        changes.append(Change(f"{node} had {_and(lacking)}", cost))
    return changes


def _node_affinity(looking: Looking, row: int, status: Status) -> list[Change]:
    if "node(s) didn't match scheduler-enforced node affinity" in status.reasons:
        return [Change(f"{looking.name(row)} met the node affinity that the configuration adds", 4)]
    labels, node = looking.labels(row), looking.name(row)
    spec = looking.pod.pod_spec
    changes = [
        Change(f"{node} had the label {key}={value}", 1)
        for key, value in spec.node_selector.items()
        if labels.get(key) != value
    ]
    required = spec.required_node_affinity
    try:
        if required is None or required.matches(labels, node):
            return changes
    except SelectorError as unreadable:
        return [*changes, Change(f"its node affinity could be read ({unreadable})", 4)]
    terms = [_term(term, looking, row) for term in required.terms]
    if not terms:
        return [*changes, Change("its node affinity had a term that some node can meet", 4)]
    return changes + min(terms, key=lambda term: sum(change.cost for change in term))


def _term(term: NodeSelectorTerm, looking: Looking, row: int) -> list[Change]:
    labels, node = looking.labels(row), looking.name(row)
    if term.problems:
        return [Change(f"its node affinity could be read ({term.problems[0]})", 4)]
    changes = [
        Change(f"{node} {_requirement(requirement)}", 1)
        for requirement in term.match_expressions
        if not requirement.matches(labels)
    ]
    if not all(field.matches(node) for field in term.match_fields):
        changes.append(Change(f"its node affinity allowed the name {node}", 8))
    return changes


def _requirement(requirement: Requirement) -> str:
    key, values = requirement.key, requirement.values
    match requirement.operator:
        case operator if operator == IN:
            wanted = " or ".join(f"{key}={value}" for value in values[:4])
            return f"had the label {wanted}" + (" or another of its values" if len(values) > 4 else "")
        case operator if operator == EXISTS:
            return f"had a label {key}"
        case operator if operator == DOES_NOT_EXIST:
            return f"had no label {key}"
        case operator if operator in (GT, LT):
            return f"had a label {key} {'above' if operator == GT else 'below'} {values[0]}"
        case _:
            return f"had another label than {' and '.join(f'{key}={value}' for value in values)}"


def _ports(looking: Looking, row: int, status: Status) -> list[Change]:
    changes = []
    for wanted in looking.pod.pod_spec.host_ports:
        holders = [
            other.key for other in looking.table.pods[row] if conflict((wanted,), set(other.pod_spec.host_ports))
        ]
        if holders:
            port = f"port {wanted[2]}/{wanted[1]}"
            changes.append(Change(f"{port} of {looking.name(row)} were not taken by {_and(holders)}", 1))
    return changes or _any(looking, row, status)


_VANISHED: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
_ALONE: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
_OF_VOLUMES: Final = {
    "node(s) didn't find available persistent volumes to bind": "a free volume for its claims could be had on the node",
    "node(s) didn't match PersistentVolume's node affinity": "the volumes of its claims could be reached from the node",
    "node(s) did not have enough free storage": "the node had the storage its claims ask for",
    _VANISHED: "the volumes its claims are bound to existed",
    "node(s) had no available volume zone": "its volumes were in the zone of the node",
    "node(s) had no available disk": "no other pod used its disks on the node",
    "node(s) exceed max volume count": "the node could attach more volumes",
    _ALONE: "no other pod used its ReadWriteOncePod claim",
    "cannot allocate all claims": "devices that suit its resource claims were free on the node",
    "resourceclaim not available on the node": "the devices of its resource claims could be reached from the node",
}


def _volumes(looking: Looking, row: int, status: Status) -> list[Change]:
    texts = [_OF_VOLUMES[reason] for reason in status.reasons if reason in _OF_VOLUMES]
    if len(texts) != len(status.reasons) or not texts:
        return _any(looking, row, status)
    return [Change(text, 2) for text in texts]


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


_REMEDIES: Final[dict[str, Remedy]] = {
    "NodeUnschedulable": _cordoned,
    "NodeName": _other_node,
    "TaintToleration": _taints,
    "NodeResourcesFit": _resources,
    "NodeAffinity": _node_affinity,
    "NodePorts": _ports,
    "PodTopologySpread": spreading,
    "InterPodAffinity": affinity,
    "VolumeBinding": _volumes,
    "VolumeZone": _volumes,
    "VolumeRestrictions": _volumes,
    "NodeVolumeLimits": _volumes,
    "DynamicResources": _volumes,
}
