"""Expanders: filters that select the best of several possible scale-ups.

Each expander of a chain passes its best options on; Cluster Autoscaler chooses randomly among the options that remain.
An empty result means that no option can be used.

Source: sigs.k8s.io/cluster-autoscaler, pkg/expander. Units: CPU in millicores, memory in bytes; prices in any currency.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.quantity import milli_value, value
from kschedd.pools.autoscaler.eligibility import has_gpu
from kschedd.pools.autoscaler.groups import AutoscaledGroup

_GPU_UNFITNESS: Final = 1000.0  # makes GPU nodes unattractive for pods that need no GPU
_NEW_GROUP_FACTOR: Final = 2.0
_DAMPING_NODES: Final = 15.0


@attrs.frozen(eq=False)
class ExpansionOption:
    """A possible scale-up: the nodes that would be added to the group, and the pods that would run on them."""

    group: AutoscaledGroup
    node_count: int
    pods: Sequence[Pod]


Expander = Callable[[Sequence[ExpansionOption]], list[ExpansionOption]]


def _lowest(options: Iterable[ExpansionOption], score: Callable[[ExpansionOption], float]) -> list[ExpansionOption]:
    scored = [(score(option), option) for option in options]
    if not scored:
        return []
    lowest = min(number for number, _ in scored)
    return [option for number, option in scored if number == lowest]


def most_pods(options: Sequence[ExpansionOption]) -> list[ExpansionOption]:
    return _lowest(options, lambda option: -len(option.pods))


def least_nodes(options: Sequence[ExpansionOption]) -> list[ExpansionOption]:
    return _lowest((option for option in options if option.node_count), lambda option: option.node_count)


def least_waste(options: Sequence[ExpansionOption]) -> list[ExpansionOption]:
    """Return the options with the lowest sum of unused shares of cpu and memory."""
    return _lowest(options, _waste)


def _waste(option: ExpansionOption) -> float:
    cpu, memory = capacity(option.group.template)
    free = 0.0
    for resource, there in (("cpu", cpu * option.node_count), ("memory", memory * option.node_count)):
        used = sum(pod.requests.get(resource, 0) for pod in option.pods)
        free += (there - used) / there if there else math.nan
    return free


def capacity(node: Node) -> tuple[int, int]:
    """Return the node's capacity: cpu in millicores and memory in bytes."""
    stated = node.status.get("capacity") or {}
    return milli_value(stated.get("cpu", 0)), value(stated.get("memory", 0))


@attrs.frozen(eq=False)
class PriorityExpander:
    """Select the groups with the highest priority. `patterns` are regular expressions for the names of groups.

    Groups without a matching pattern are left out; if no group has one, all options remain.
    """

    patterns: Mapping[int, Sequence[re.Pattern[str]]]

    def __call__(self, options: Sequence[ExpansionOption]) -> list[ExpansionOption]:
        matched = [(self._priority(option.group.name), option) for option in options]
        known = [(priority, option) for priority, option in matched if priority is not None]
        # Upstream compares with -1 first: negative priorities never win.
        highest = max((priority for priority, _ in known), default=-1)
        best = [option for priority, option in known if priority == highest and priority >= -1]
        return best or list(options)

    def _priority(self, name: str) -> int | None:
        found = [
            priority for priority, patterns in self.patterns.items() if any(each.search(name) for each in patterns)
        ]
        return max(found, default=None)


@attrs.frozen(eq=False)
class PriceExpander:
    """Select the options that buy the most for the money, on nodes of a suitable size.

    `node_price` and `pod_price` return None if there is no price; the option is then left out. `constant` is the price
    of a pod with 0.5 cores and 500 MB, which keeps the ratio of prices stable. `preferred_milli` is the cpu of the
    preferred node.
    """

    node_price: Callable[[AutoscaledGroup], float | None]
    pod_price: Callable[[Pod], float | None]
    constant: float
    preferred_milli: int
    gpu_label: str = ""

    def __call__(self, options: Sequence[ExpansionOption]) -> list[ExpansionOption]:
        scores = {id(option): score for option in options if (score := self.score(option)) is not None}
        return _lowest((option for option in options if id(option) in scores), lambda option: scores[id(option)])

    def score(self, option: ExpansionOption) -> float | None:
        """Return the score of an option (lower is better), or None if it has no price."""
        node_price = self.node_price(option.group)
        pod_prices = [price for pod in option.pods if (price := self.pod_price(pod)) is not None]
        if node_price is None or len(pod_prices) < len(option.pods):
            return None
        pods = sum(pod_prices) + self.constant
        nodes = node_price * option.node_count + self.constant
        worth = nodes / pods if pods else math.inf if nodes else math.nan
        score = worth * self._unfitness(option.group.template, option.node_count)
        return score if option.group.exists else score * _NEW_GROUP_FACTOR

    def _unfitness(self, template: Node, node_count: int) -> float:
        if has_gpu(template, self.gpu_label):
            return _GPU_UNFITNESS
        milli, _ = capacity(template)
        ratio = max(self.preferred_milli / milli, milli / self.preferred_milli) if milli else math.inf
        return (ratio - 1.0) * (1.0 - math.tanh((node_count - 1) / _DAMPING_NODES)) + 1.0
