"""Cordons as the actual cause: the pod would fit on cordoned nodes."""

from collections.abc import Sequence
from typing import Final

import attrs

from kschedd.causes.answers import ObjectNamed
from kschedd.causes.case import Case
from kschedd.causes.demands.tainted import CORDON, uncordoning, untolerated
from kschedd.causes.findings import WORKAROUND, FoundCause
from kschedd.causes.words import every, some

#: causes about nodes or domains, some of which may be missing only because of a cordon
_OF_DOMAINS: Final = frozenset(
    ("HostPortTaken", "MoreReplicasThanDomains", "PodAffinityDomainFull", "SpreadCountsUnusableDomain", "SpreadSkewed")
)


def behind_cordons(case: Case, finding: FoundCause) -> FoundCause:
    """Return the cordon as the cause if all pending pods would fit on the cordoned nodes; otherwise return the finding.

    Uncordoning a node is preferred, because the finding's own options give the workload less than it requests.
    """
    idle = only_cordoned(case)
    if finding.code not in _OF_DOMAINS or not idle:
        return finding
    waiting = max(1, len(case.workload.pending) or case.workload.missing)
    if _most(case, idle, waiting) < waiting:
        evidence = [*finding.evidence, f"cordoned, and would take a pod otherwise: {some(idle)}"]
        return attrs.evolve(finding, evidence=evidence)
    whole = f"{every(len(idle))} that would take another pod are cordoned ({some(idle)})"
    if len(idle) == 1:
        whole = f"the only node that would take another pod, {idle[0]}, is cordoned"
    return FoundCause(
        "NodesCordoned",
        f"{whole}; also: {finding.message}",
        [*(ObjectNamed("Node", "", name) for name in idle[:3]), *finding.objects],
        ["spec.unschedulable of the node", *finding.fields],
        finding.evidence,
        [
            *uncordoning(idle, waiting),
            *(attrs.evolve(option, less=True) for option in finding.options if option.kind != WORKAROUND),
        ],
    )


def only_cordoned(case: Case) -> list[str]:
    """Return the nodes that reject the pod only because of their cordon."""
    found = case.rejected_by("NodeUnschedulable")
    return sorted(
        name
        for name in found
        if case.rejections[name].keys() <= {"NodeUnschedulable", "TaintToleration"}
        and all(taint.key == CORDON for taint in untolerated(case, name))
    )


def _most(case: Case, nodes: Sequence[str], waiting: int) -> int:
    """Return the maximum number of the workload's pods that these nodes can hold, given their anti-affinity."""
    pod = case.pod
    labels = case.namespaces.get(pod.namespace, {})
    counts = [
        len(case.zones(nodes, term.topology_key))
        for term in pod.signature.required_anti_affinity
        if term.matches(pod.namespace, pod.labels, labels)
    ]
    return min([waiting, *counts, *([len(nodes)] if pod.pod_spec.host_ports else [])])
