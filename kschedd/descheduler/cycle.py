"""A descheduling cycle: the `deschedule` strategies of all profiles, followed by the `balance` strategies.

Source: sigs.k8s.io/descheduler, pkg/descheduler/descheduler.go (runProfiles).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.nodes import Node
from kschedd.descheduler.cluster import DeschedulingCluster, Work, is_ready
from kschedd.descheduler.evictor import Evictor
from kschedd.descheduler.policy import (
    AffinityStrategyArgs,
    AntiAffinityArgs,
    DeschedulerPolicy,
    DeschedulerProfile,
    DuplicatesArgs,
    FailedPodsArgs,
    HighUtilizationArgs,
    LifeTimeArgs,
    LowUtilizationArgs,
    RestartsArgs,
    SpreadArgs,
    StrategyArgs,
    TaintsArgs,
)
from kschedd.descheduler.strategies.duplicates import duplicates
from kschedd.descheduler.strategies.spread import spread
from kschedd.descheduler.strategies.states import by_life_time, failed, restarting
from kschedd.descheduler.strategies.utilization import high_utilization, low_utilization
from kschedd.descheduler.strategies.violations import of_anti_affinity, of_node_affinity, of_taints
from kschedd.errors import KscheddError

_STRATEGIES: Final[Mapping[type[StrategyArgs], Callable[[str, Any, Evictor, Sequence[Node]], Work[None]]]] = {
    LifeTimeArgs: by_life_time,
    FailedPodsArgs: failed,
    RestartsArgs: restarting,
    TaintsArgs: of_taints,
    AffinityStrategyArgs: of_node_affinity,
    AntiAffinityArgs: of_anti_affinity,
    DuplicatesArgs: duplicates,
    SpreadArgs: spread,
    LowUtilizationArgs: low_utilization,
    HighUtilizationArgs: high_utilization,
}


@attrs.define(eq=False)
class UnknownThresholdError(KscheddError, rpc_code="invalid"):
    """The error for a priority threshold that names a PriorityClass which does not exist."""

    profile: str
    name: str

    def __str__(self) -> str:
        return f'profile {self.profile}: priorityThreshold: there is no PriorityClass "{self.name}"'


def run_cycle(policy: DeschedulerPolicy, cluster: DeschedulingCluster) -> Work[int]:
    """Run one cycle, and return the number of considered nodes: the ready nodes that the policy selects.

    The evictions are stored in `cluster`. With fewer than two considered nodes, no pod is evicted. Raises
    UnknownThresholdError.
    """
    for profile in policy.profiles:
        threshold = profile.evictor.threshold
        if isinstance(threshold, str) and threshold not in cluster.priorities:
            raise UnknownThresholdError(profile.name, threshold)
    nodes = [node for node in cluster.nodes if is_ready(node) and policy.node_selector.matches(node.labels)]
    if len(nodes) < 2:
        return len(nodes)
    evictors = [evictor_of(profile, cluster) for profile in policy.profiles]
    for profile, evictor in zip(policy.profiles, evictors, strict=True):
        for name, args in profile.deschedule:
            yield from _STRATEGIES[type(args)](name, args, evictor, nodes)
    for profile, evictor in zip(policy.profiles, evictors, strict=True):
        for name, args in profile.balance:
            yield from _STRATEGIES[type(args)](name, args, evictor, nodes)
    return len(nodes)


def evictor_of(profile: DeschedulerProfile, cluster: DeschedulingCluster) -> Evictor:
    return Evictor(cluster, profile.name, profile.evictor)
