"""What would have to change where other pods decide: topology spread, and affinity between pods."""

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any

from kschedd.api.pods import Pod
from kschedd.api.terms import PodAffinityTerm
from kschedd.explain.looking import Change, Looking
from kschedd.framework.status import Status
from kschedd.plugins.interpodaffinity import as_asked

_NAMED = 3


def spreading(looking: Looking, row: int, status: Status) -> list[Change]:
    """For each hard constraint that the node breaks: the label it lacks, or the skew it would take."""
    filtering: Any = looking.state.data.get("PodTopologySpread")
    labels = looking.labels(row)
    changes = []
    for tally in () if filtering is None else filtering.tallies:
        constraint = tally.ready.constraint
        key = constraint.topology_key
        if key not in labels:
            changes.append(Change(f"{looking.name(row)} had a label {key}", 1))
            continue
        there = int(tally.counts[looking.number(row, key)])
        needed = there + tally.ready.selects_itself - tally.least
        if needed <= constraint.max_skew:
            continue
        where = f"{key}={labels[key]}"
        fewer = needed - constraint.max_skew
        what = f"{fewer} fewer {'pod' if fewer == 1 else 'pods'} it is spread with ran in {where}"
        counted = f"{there} there, {tally.least} where there are fewest"
        if tally.ready.domains < constraint.min_domains:
            counted = f"{there} there, and fewer than minDomains {constraint.min_domains} domains"
        changes.append(Change(f"{what} ({counted}) or its maxSkew were {needed}", 1 + fewer / 10))
    return changes or [_repeat(status, looking, row)]


def affinity(looking: Looking, row: int, status: Status) -> list[Change]:
    """The pods that are missing near the node, or in the way there."""
    filtering: Any = looking.state.data.get("InterPodAffinity")
    if filtering is None:
        return [_repeat(status, looking, row)]
    if "existing pods anti-affinity" in status.message:
        found = _minded(looking, row, filtering)
    elif "anti-affinity" in status.message:
        found = _too_near(looking, row, filtering)
    else:
        found = _not_near(looking, row, filtering)
    return found or [_repeat(status, looking, row)]


def _not_near(looking: Looking, row: int, filtering: Any) -> list[Change]:
    """All required terms look for the same pods; a key's domain has one or has none."""
    changes = []
    labels = looking.labels(row)
    for tally in filtering.near:
        if tally.key not in labels:
            changes.append(Change(f"{looking.name(row)} had a label {tally.key}", 1))
        elif tally.counts[looking.number(row, tally.key)] <= 0:
            wanted = dict.fromkeys(str(term.selector) for term in looking.pod.shape.required_affinity)
            changes.append(Change(f"a pod with {','.join(wanted)} ran in {tally.key}={labels[tally.key]}", 1))
    return changes


def _too_near(looking: Looking, row: int, filtering: Any) -> list[Change]:
    changes = []
    terms = map(as_asked, looking.pod.shape.required_anti_affinity)
    for term, tally in zip(terms, filtering.away, strict=True):
        if tally.counts[looking.number(row, tally.key)] > 0:
            names = _first_in_domain(looking, row, tally.key, partial(_speaks, looking, term))
            changes.append(Change(f"{names} did not run in {tally.key}={looking.labels(row)[tally.key]}", 1.2))
    return changes


def _minded(looking: Looking, row: int, filtering: Any) -> list[Change]:
    changes = []
    for key, tally in filtering.minded.items():
        if tally.counts[looking.number(row, key)] > 0:
            names = _first_in_domain(looking, row, key, partial(_minds, looking, key))
            where = f"{key}={looking.labels(row)[key]}"
            changes.append(Change(f"{names}, with anti-affinity to such pods, did not run in {where}", 1.2))
    return changes


def _first_in_domain(looking: Looking, row: int, key: str, matches: Callable[[Pod], bool]) -> str:
    """The names of the first pods in the node's domain that match, of which there is at least one."""
    pods = (other for near in looking.domain(row, key) for other in looking.table.pods[near] if matches(other))
    found = [pod.key for pod in islice(pods, _NAMED + 1)]
    if len(found) > _NAMED:
        return f"{', '.join(found[:_NAMED])} and others"
    return " and ".join(found) or "pods"


def _speaks(looking: Looking, term: PodAffinityTerm, other: Pod) -> bool:
    namespaces = looking.cluster.counts.namespaces
    return term.matches(other.namespace, other.labels, namespaces.get(other.namespace, {}))


def _minds(looking: Looking, key: str, other: Pod) -> bool:
    """Whether a pod that is there has required anti-affinity, over this key, to the pod that is explained."""
    return other.pod_spec.has_pod_affinity and any(
        term.topology_key == key and _speaks(looking, term, looking.pod) for term in other.shape.required_anti_affinity
    )


def _repeat(status: Status, looking: Looking, row: int) -> Change:
    return Change(f'{status.plugin} did not say "{status.message}" of {looking.name(row)}', 4)
