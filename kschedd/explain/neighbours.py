"""What would have to change where other pods decide: topology spread, and affinity between pods."""

from itertools import islice
from typing import Any

from kschedd.api.pods import Pod
from kschedd.api.terms import PodAffinityTerm
from kschedd.explain.looking import Change, Looking
from kschedd.framework.status import Status

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
        there = int(tally.counts[looking.table.label(key).ids[row]])
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
    reason = status.message
    if "existing pods anti-affinity" in reason:
        return _minded(looking, row) or [_repeat(status, looking, row)]
    if "anti-affinity" in reason:
        return _too_near(looking, row) or [_repeat(status, looking, row)]
    return _not_near(looking, row) or [_repeat(status, looking, row)]


def _not_near(looking: Looking, row: int) -> list[Change]:
    changes = []
    terms = looking.pod.shape.required_affinity
    labels = looking.labels(row)
    for term in terms:
        key = term.topology_key
        if key not in labels:
            changes.append(Change(f"{looking.name(row)} had a label {key}", 1))
        elif not any(_speak_of(looking, terms, other) for other in _pods_near(looking, row, key)):
            changes.append(Change(f"a pod with {term.selector} ran in {key}={labels[key]}", 1))
    return changes


def _too_near(looking: Looking, row: int) -> list[Change]:
    changes = []
    for term in looking.pod.shape.required_anti_affinity:
        key = term.topology_key
        matching = (other for other in _pods_near(looking, row, key) if _speak_of(looking, (term,), other))
        if names := _named(matching):
            changes.append(Change(f"{names} did not run in {key}={looking.labels(row).get(key)}", 1.2))
    return changes


def _minded(looking: Looking, row: int) -> list[Change]:
    pod = looking.pod
    changes = []
    keys: dict[str, list[Pod]] = {}
    for other_row in looking.table.order.tolist():
        for other in looking.table.pods[other_row]:
            if not other.pod_spec.has_pod_affinity:
                continue
            for term in other.shape.required_anti_affinity:
                ids = looking.table.label(term.topology_key).ids
                if 0 <= ids[row] == ids[other_row] and _speaks(looking, term, pod):
                    keys.setdefault(term.topology_key, []).append(other)
    for key, others in keys.items():
        names = _named(iter(others))
        where = f"{key}={looking.labels(row).get(key)}"
        changes.append(Change(f"{names}, with anti-affinity to such pods, did not run in {where}", 1.2))
    return changes


def _pods_near(looking: Looking, row: int, key: str) -> list[Pod]:
    return [other for near in looking.domain(row, key) for other in looking.table.pods[near]]


def _speaks(looking: Looking, term: PodAffinityTerm, other: Pod) -> bool:
    namespaces = looking.cluster.counts.namespaces
    return term.matches(other.namespace, other.labels, namespaces.get(other.namespace, {}))


def _speak_of(looking: Looking, terms: tuple[PodAffinityTerm, ...], other: Pod) -> bool:
    return all(_speaks(looking, term, other) for term in terms)


def _named(pods: Any) -> str:
    found = [pod.key for pod in islice(pods, _NAMED + 1)]
    if len(found) > _NAMED:
        return f"{', '.join(found[:_NAMED])} and others"
    return " and ".join(found)


def _repeat(status: Status, looking: Looking, row: int) -> Change:
    return Change(f'{status.plugin} did not say "{status.message}" of {looking.name(row)}', 4)
