"""The data of the dashboard: numbers about the cluster with their history, and the state of the view. Values only."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import attrs

Raw = Mapping[str, Any]
MOST_SAMPLES = 240  # maximum number of samples of a sparkline: more than the widest screen shows

_FIRST = ("cpu", "memory", "pods")
#: the sub-queues whose sizes are shown in separate lines
PLACES = ("active", "backoff", "unschedulable", "gated")


@attrs.frozen
class NodeColumns:
    """The result of nodes.usage; every column has the same node at the same index."""

    names: Sequence[str] = ()
    zones: Sequence[str] = ()
    cordoned: Sequence[bool] = ()
    # requested amounts of each resource, `pods` included
    requested: Mapping[str, Sequence[int]] = attrs.field(factory=dict)
    allocatable: Mapping[str, Sequence[int]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, answer: Raw) -> Self:
        return cls(
            answer["nodes"],
            answer["zones"],
            answer["cordoned"],
            {**answer["requested"], "pods": answer["pods"]},
            {**answer["allocatable"], "pods": answer["allowed_pods"]},
        )

    @property
    def resources(self) -> list[str]:
        """The resources by which nodes can be shown: those that every node has, and those that a pod requests."""
        others = (name for name in self.requested if name not in (*_FIRST, "ephemeral-storage"))
        return [*_FIRST, *sorted(others)]

    def shares(self, resource: str) -> list[float]:
        """Return the requested share of each node's resources; 1 if the node has none of a requested resource."""
        requested, there = self.requested.get(resource, ()), self.allocatable.get(resource, ())
        return [a / b if b else float(a > 0) for a, b in zip(requested, there, strict=True)]

    def total(self, resource: str) -> float:
        """Return the requested share of the resources of all nodes."""
        there = sum(self.allocatable.get(resource, ()))
        return sum(self.requested.get(resource, ())) / there if there else 0.0

    def amounts(self, resource: str, place: int) -> str:
        """Return the requested and allocatable amount of one node, such as `1.5/4`."""
        requested, there = self.requested.get(resource, ()), self.allocatable.get(resource, ())
        return f"{amount(resource, requested[place])}/{amount(resource, there[place])}" if requested else "-"


def amount(resource: str, value: int) -> str:
    if resource == "cpu":
        return f"{value / 1000:.4g}"
    if resource in ("memory", "ephemeral-storage"):
        for unit, size in (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
            if value >= size:
                return f"{value / size:.3g}{unit}"
    return str(value)


@attrs.frozen
class DashboardData:
    """The data. `samples`: the latest values of each number, by its name, oldest first."""

    info: Raw = attrs.field(factory=dict)
    status: Raw = attrs.field(factory=dict)
    nodes: NodeColumns = attrs.field(factory=NodeColumns)
    decisions: Sequence[Raw] = ()  # the latest decisions, the newest last
    samples: Mapping[str, tuple[float, ...]] = attrs.field(factory=dict)
    connected: bool = True
    clock: Callable[[], float] = time.time  # seconds since the epoch

    def sampled(self, status: Raw) -> Self:
        """Return the data with one more sample of each number."""
        samples = {
            name: (*self.samples.get(name, ()), float(status.get(name) or 0))[-MOST_SAMPLES:]
            for name in (*PLACES, "decisions_per_s")
        }
        return attrs.evolve(self, status=status, samples=samples)


@attrs.frozen
class DashboardPane:
    """A pane on top of the overview: lines to select from, or a text to read.

    `keys`: the key of each line; empty for a text. `source` determines the content: ("node", NAME), ("pending", ""),
    ("pod", KEY), ("explain", KEY), ("help", "").
    """

    source: tuple[str, str]
    title: str
    lines: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    selected: int = 0
    top: int = 0  # the first visible line
    left: int = 0  # number of columns that are scrolled out at the left
    loading: bool = False

    def moved(self, by: int, room: int) -> Self:
        """Return the pane after moving up or down by so many lines, on a screen with `room` for lines."""
        if self.keys:
            selected = min(max(self.selected + by, 0), len(self.keys) - 1)
            top = min(max(self.top, selected - room + 1), selected)
            return attrs.evolve(self, selected=selected, top=top)
        return attrs.evolve(self, top=min(max(self.top + by, 0), max(len(self.lines) - room, 0)))

    def shifted(self, by: int, width: int) -> Self:
        """Return the pane after moving left or right, on a screen of this width."""
        widest = max((len(line) for line in self.lines), default=0)
        return attrs.evolve(self, left=min(max(self.left + by, 0), max(widest + 2 - width, 0)))


@attrs.frozen
class DashboardView:
    """The view: the selected node, the resource by which nodes are shown, and the open panes, the latest one last."""

    resource: str = "cpu"
    node: str = ""
    panes: tuple[DashboardPane, ...] = ()
    message: str = ""

    def chosen(self, nodes: NodeColumns) -> int:
        """Return the index of the selected node; 0 if it no longer exists; -1 if there are no nodes."""
        if not nodes.names:
            return -1
        try:
            return nodes.names.index(self.node)
        except ValueError:
            return 0

    def with_pane(self, pane: DashboardPane) -> Self:
        return attrs.evolve(self, panes=(*self.panes, pane), message="")

    def with_content(self, source: tuple[str, str], lines: Sequence[str], keys: Sequence[str]) -> Self:
        """Return the view with the loaded content in the pane that was opened for it, if it is still open."""
        panes = tuple(
            attrs.evolve(
                pane,
                lines=tuple(lines),
                keys=tuple(keys),
                selected=min(pane.selected, max(len(keys) - 1, 0)),
                loading=False,
            )
            if pane.source == source
            else pane
            for pane in self.panes
        )
        return attrs.evolve(self, panes=panes)
