"""The arithmetic of a rolling update: the next size of each ReplicaSet of a Deployment.

Source: Kubernetes v1.34, controller/deployment/util/deployment_util.go and controller/deployment/{rolling,sync}.go.
The functions only compute numbers; `deployments` reads the inputs from objects and writes the results.
"""

from collections.abc import Sequence
from typing import Final

import attrs

from kschedd.api.text.numbers import whole_number

_ANY_PERCENTAGE: Final = 10**100  # value for a percentage with too many digits


@attrs.frozen
class Replicas:
    """The spec.replicas of one ReplicaSet, and its number of available pods."""

    name: str
    wanted: int
    available: int
    created: str  # creationTimestamp; ReplicaSets are sorted by it and by name
    max_replicas: int = 0  # the Deployment's replicas + maxSurge when this ReplicaSet was last scaled; 0 if unknown


def resolved(amount: int | str | None, total: int, *, up: bool) -> int:
    """Return an absolute number, or a percentage of `total`, rounded up or down."""
    if amount is None:
        return 0
    if isinstance(amount, int):
        return amount
    text = amount.strip()
    if text.endswith("%"):
        percentage = whole_number(text[:-1])
        # None means a percentage with too many digits.
        parts = (_ANY_PERCENTAGE if percentage is None else percentage) * total
        return -(-parts // 100) if up else parts // 100
    return int(text)


def fenceposts(surge: int | str | None, unavailable: int | str | None, wanted: int) -> tuple[int, int]:
    """Return (maxSurge, maxUnavailable) in pods.

    If both are 0, maxUnavailable becomes 1, so that the rollout can progress.
    """
    more = resolved(surge, wanted, up=True)
    fewer = resolved(unavailable, wanted, up=False)
    return (0, 1) if more == 0 and fewer == 0 else (more, min(fewer, wanted))


def scale_up(new: Replicas, all_wanted: int, wanted: int, surge: int) -> int:
    """Return the new ReplicaSet's next size: at most `wanted`, and at most `wanted` + `surge` in all ReplicaSets."""
    room = wanted + surge - all_wanted
    if room <= 0:
        return new.wanted
    return new.wanted + max(0, min(room, wanted - new.wanted))


def scale_down(old: Sequence[Replicas], new: Replicas, wanted: int, unavailable: int) -> dict[str, int]:
    """Return the old ReplicaSets' next sizes.

    Unavailable pods are removed first, then available pods above the minimum. A ReplicaSet that reports more available
    pods than it wants was scaled down before, and its status does not show it yet; available pods are then not removed,
    because their number is unknown.
    """
    least = wanted - unavailable
    total = sum(r.wanted for r in old) + new.wanted
    spare = total - least - max(0, new.wanted - new.available)
    if spare <= 0:
        return {}
    sizes = {r.name: r.wanted for r in old}
    ordered = sorted(old, key=lambda r: (r.created, r.name))
    cleaned = 0
    excess = sum(r.available for r in old) + new.available - least
    for r in ordered:
        if cleaned >= spare:
            break
        if r.available > r.wanted:
            excess = 0
            break
        unhealthy = min(spare - cleaned, r.wanted - r.available)
        sizes[r.name] -= unhealthy
        cleaned += unhealthy
    for r in ordered:
        less = min(sizes[r.name], max(0, excess))
        sizes[r.name] -= less
        excess -= less
    return {r.name: sizes[r.name] for r in old if sizes[r.name] != r.wanted}


def proportioned(sets: Sequence[Replicas], wanted: int, surge: int) -> dict[str, int]:
    """Return the sizes of the ReplicaSets after a Deployment was scaled during a rollout (proportional scaling)."""
    total = sum(r.wanted for r in sets)
    allowed = wanted + surge if wanted > 0 else 0
    change = allowed - total
    if change == 0:
        return {}
    # Scaling up starts with the newest, and scaling down with the oldest, of the largest ReplicaSets.
    ordered = sorted(sets, key=lambda r: (r.created, r.name), reverse=change > 0)
    ordered.sort(key=lambda r: -r.wanted)
    sizes: dict[str, int] = {}
    given = 0
    for r in ordered:
        share = 0
        if r.wanted > 0 and change - given != 0:
            share = _share(r, total, wanted, surge)
            left = change - given
            share = min(share, left) if change > 0 else max(share, left)
        sizes[r.name] = r.wanted + share
        given += share
    if ordered and change - given:
        first = ordered[0].name
        sizes[first] = max(0, sizes[first] + change - given)
    return {r.name: sizes[r.name] for r in sets if sizes[r.name] != r.wanted}


def _share(r: Replicas, total: int, wanted: int, surge: int) -> int:
    """Return the change of the ReplicaSet's size, so that it keeps its share of the total (getReplicaSetFraction)."""
    if wanted == 0:
        return -r.wanted
    before = r.max_replicas or total
    numerator = 2 * r.wanted * (wanted + surge) + before
    return numerator // (2 * before) - r.wanted
