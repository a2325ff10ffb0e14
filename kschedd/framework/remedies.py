"""Remedies: changes that would make a rejected pod fit, as reported by plugins, and the context passed to them.

A plugin may have a method `remedies`. It returns the smallest changes with which the plugin would pass, each completing
the sentence "it would fit if ...". If a plugin returns none, or has no such method, its own reason is repeated.

Costs only order the remedies: 1 for a change, more for changes with wider effects, a fraction more for larger amounts.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import NodeTable
from kschedd.framework.changes import Change
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.interface import Plugin
from kschedd.framework.status import Status


@attrs.frozen
class Remedy:
    """A remedy that completes the sentence "it would fit if ...".

    `cost` is for ordering only. `changes` make the change that the text describes.
    """

    text: str
    cost: float
    changes: tuple[Change, ...] = attrs.field(default=(), eq=False)


@attrs.frozen(eq=False)
class RemedyContext:
    """The current cluster, and the state of the attempt in which the pod was rejected."""

    cluster: SchedulerCache
    state: CycleState
    pod: Pod
    #: what a plugin found for a whole domain, by its own key: other nodes of the domain need not look again
    memo: dict[Any, Any] = attrs.field(factory=dict, init=False, repr=False)

    @property
    def table(self) -> NodeTable:
        return self.cluster.table

    def name(self, row: int) -> str:
        return self.table.names[row]

    def labels(self, row: int) -> Mapping[str, str]:
        node = self.table.nodes[row]
        return {} if node is None else node.labels

    def label_number(self, row: int, key: str) -> int:
        """Return the id of the row's value of a label, the index of counts by domain; -1 if it has none."""
        return int(self.table.label(key).ids[row])

    def domain(self, row: int, key: str) -> list[int]:
        """Return the rows in the same topology domain, including the row itself; none if it has no such label."""
        ids = self.table.label(key).ids
        if ids[row] < 0:
            return []
        memo = ("domain", key, int(ids[row]))
        if memo not in self.memo:
            same = self.table.order
            self.memo[memo] = same[ids[same] == ids[row]].tolist()
        found: list[int] = self.memo[memo]
        return found


class RemedyPlugin(Plugin, Protocol):
    def remedies(self, context: RemedyContext, row: int | None, status: Status, /) -> Sequence[Remedy]:
        """Return the changes needed on this row, which the plugin rejected with `status`.

        `row` None: it rejected the pod before any node was examined. An empty result repeats the plugin's reason.
        In-tree plugins only.
        """


def by_pattern(status: Status, patterns: Sequence[tuple[str, str]]) -> list[Remedy]:
    """Return the text of the first pattern found in the message, formatted with the pattern's groups."""
    for pattern, text in patterns:
        match = re.search(pattern, status.message)
        if match is not None:
            return [Remedy(text.format(*match.groups()), 1)]
    return []


def by_reason(status: Status, texts: Mapping[str, str]) -> list[Remedy]:
    """Return the text for each reason; an empty list if any reason has none."""
    if not all(reason in texts for reason in status.reasons):
        return []
    return [Remedy(texts[reason], 2) for reason in status.reasons]


def joined(words: Sequence[str], last: str = "and") -> str:
    """Join words: `a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"
