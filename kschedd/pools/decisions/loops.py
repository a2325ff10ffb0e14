"""The loop that removes nodes: the state between two looks for nodes to remove.

Karpenter's loop stores the command that waits for its validation, and the time of the last change of each node's pods.
Cluster Autoscaler's loop stores since when each node has been unneeded.
"""

from collections.abc import Generator
from typing import Final

import attrs

from kschedd.pools.autoscaler.scale_down import UnneededNode
from kschedd.pools.cluster import PooledCluster, Removal
from kschedd.pools.decisions import autoscaler, karpenter
from kschedd.pools.decisions.karpenter import beginning_round
from kschedd.pools.karpenter.budgets import DisruptionReason
from kschedd.pools.karpenter.disruption import DisruptionCommand, DisruptionRound, DisruptionUnsupported
from kschedd.pools.karpenter.removals import removal_of
from kschedd.pools.reading import Pools
from kschedd.pools.settings import KARPENTER
from kschedd.pools.trials import PlacementTrials

_UNREMOVABLE_S: Final = 300.0  # time until a node whose drain failed is considered again


@attrs.frozen(eq=False)
class LoopResult:
    """The result of a loop. `next_s` is the time of the next loop, even if nothing changes; None: after a change.

    `blocked`: a disruption budget prevents removals, so a later loop may find some.
    """

    removal: Removal | None = None
    next_s: float | None = None
    blocked: bool = False


@attrs.frozen(eq=False)
class WaitingCommand:
    """A command of Karpenter that is validated at `at_s`: its nodes, and the types that may replace them."""

    nodes: tuple[str, ...]
    at_s: float
    reason: DisruptionReason
    types: frozenset[str] | None  # None: no node replaces them


class RemovalLoop:
    """The state of the loop for these pools."""

    def __init__(self, pools: Pools) -> None:
        self._pools = pools
        self._changed_s: dict[str, float] = {}
        self._waiting: WaitingCommand | None = None
        self._unneeded: dict[str, UnneededNode] = {}
        self._unremovable: dict[str, float] = {}  # until when
        self._added_s: float | None = None  # time of the last scale-up

    def changed(self, name: str, now: float) -> None:
        """Record that a pod came or left."""
        self._changed_s[name] = now

    def forget(self, name: str) -> None:
        self._changed_s.pop(name, None)
        self._unneeded.pop(name, None)

    def added(self, now: float) -> None:
        """Record a scale-up."""
        self._added_s = now

    def failed(self, name: str, now: float) -> None:
        """Record that a node could not be drained."""
        self._unremovable[name] = now + _UNREMOVABLE_S

    def step(
        self, cluster: PooledCluster, trials: PlacementTrials | None, leaving: frozenset[str]
    ) -> Generator[None, None, LoopResult]:
        """Return the next removal, with pauses. `leaving` are the nodes that are being removed."""
        if self._pools.autoscaler == KARPENTER:
            return (yield from self._karpenter(cluster, leaving))
        assert trials is not None, "Cluster Autoscaler simulates with the scheduler's filters"
        return (yield from self._autoscaler(cluster, trials, leaving))

    # -- Karpenter ----------------------------------------------------------------------------------------------

    def _karpenter(self, cluster: PooledCluster, leaving: frozenset[str]) -> Generator[None, None, LoopResult]:
        now, settings = cluster.now_s, self._pools.settings
        round_ = yield from beginning_round(cluster, self._pools, self._changed_s, leaving)
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            if now < waiting.at_s:
                self._waiting = waiting
                return LoopResult(next_s=waiting.at_s)
            valid = yield from _validated(waiting, round_)
            soon = now + settings.disruption_poll_s
            return LoopResult(None if valid is None else karpenter.removal(valid, cluster, self._pools), soon)
        try:
            command = yield from round_.command()
        except DisruptionUnsupported:
            command = None
        if command is not None:
            types = None if command.launch is None else frozenset(each.name for each in command.launch.types)
            names = tuple(each.name for each in command.nodes)
            self._waiting = WaitingCommand(names, now + settings.validation_s, command.reason, types)
            return LoopResult(next_s=self._waiting.at_s)
        return LoopResult(None, self._next_consolidatable(round_, now), _is_blocked(round_))

    def _next_consolidatable(self, round_: DisruptionRound, now: float) -> float | None:
        """Return when consolidateAfter of the next node elapses."""
        times = [
            self._changed_s[each.name] + after
            for each in round_.nodes
            if each.name in self._changed_s and (after := round_.pool_of(each).consolidate_after_s)
        ]
        return min((at for at in times if at > now), default=None)

    # -- Cluster Autoscaler -------------------------------------------------------------------------------------

    def _autoscaler(
        self, cluster: PooledCluster, trials: PlacementTrials, leaving: frozenset[str]
    ) -> Generator[None, None, LoopResult]:
        now, settings = cluster.now_s, self._pools.settings
        if self._added_s is not None and now < self._added_s + settings.delay_after_add_s:
            self._unneeded = {}
            return LoopResult(next_s=self._added_s + settings.delay_after_add_s)
        skipped = leaving | {name for name, until in self._unremovable.items() if until > now}
        found = yield from autoscaler.unneeded_nodes(cluster, self._pools, trials, self._unneeded, skipped)
        self._unneeded = found.unneeded
        if found.removal is not None:
            return LoopResult(found.removal, now + settings.scan_s)
        times = [each.since_s + each.threshold_s for each in found.unneeded.values()]
        later = min((at for at in times if at >= now), default=None)
        return LoopResult(None, None if later is None else later + settings.scan_s)


def _is_blocked(round_: DisruptionRound) -> bool:
    """Return whether a disruption budget prevents removals now."""
    return any(
        0 in round_.remaining(reason).values() for reason in (DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED)
    )


def _validated(waiting: WaitingCommand, round_: DisruptionRound) -> Generator[None, None, DisruptionCommand | None]:
    """Return the command if it is still possible: the same candidates, budgets, and a subset of the types."""
    by_name = {each.name: each for each in round_.candidates()}
    if not by_name.keys() >= {*waiting.nodes}:
        return None
    nodes = [by_name[name] for name in waiting.nodes]
    remaining = round_.remaining(waiting.reason)
    for pool, number in remaining.items():
        if number is not None and sum(each.pool == pool for each in nodes) > number:
            return None
    if waiting.reason is DisruptionReason.EMPTY:
        return DisruptionCommand(waiting.reason, nodes) if all(each.empty for each in nodes) else None
    found = yield from removal_of(nodes, round_.cluster)
    if found is None or not round_.approves(found):
        return None
    launch = found.launch
    if launch is not None:
        if waiting.types is None:
            return None
        launch = launch.with_types(each for each in launch.types if each.name in waiting.types)
        if launch is None:
            return None
    return DisruptionCommand(waiting.reason, nodes, launch)
