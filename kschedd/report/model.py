"""The contents of a report as values, independent of their collector and sufficient for drawing.

Shapes: a series has one value for each column of time, NaN if missing. Shares are 0 to 1, or more if pods that ran
before request more than the capacity.
"""

from collections.abc import Mapping, Sequence

import attrs

from kschedd.report.axis import Floats
from kschedd.report.decisions import Decision


@attrs.frozen
class Columns:
    """Columns of time: column n begins at n times `width_s`; `until_s` ends the last.

    `start_s` is in seconds since the epoch.
    """

    count: int
    width_s: int
    until_s: float
    start_s: float
    virtual: bool


@attrs.frozen(eq=False)
class ResourceUse:
    """Requests of all pods for one resource: the mean of each column; mean, maximum and final value of the run."""

    resource: str
    series: Floats
    mean: float
    most: float
    end: float
    capacity: str


@attrs.frozen
class NodeAtEnd:
    name: str
    pods: int
    use: Mapping[str, float]  # by resource
    gone: bool = False


@attrs.frozen
class NodeGroup:
    """Neighboring nodes of one zone, by name: one row of the heat maps."""

    label: str
    zone: str
    nodes: tuple[NodeAtEnd, ...]


@attrs.frozen(eq=False)
class HeatMap:
    """`cells`: values by group and column; in a map of scores by group and plugin."""

    name: str
    cells: Floats


@attrs.frozen(eq=False)
class ScoreMap:
    """Mean weighted score of each group for each plugin; `weights`: the maximum weighted score of each plugin."""

    plugins: tuple[str, ...]
    weights: tuple[int, ...]
    cells: Floats
    samples: int
    left_out: tuple[str, ...]


@attrs.frozen(eq=False)
class PendingBand:
    """Pods that wait for the same kind of reason. `pod_s`: number of pods multiplied by seconds."""

    reason: str
    series: Floats
    pod_s: float
    end: int
    failures: int
    pods: tuple[str, ...]
    example: int | None  # number of a decision


@attrs.frozen
class CauseGroup:
    """Pods that are pending at the end for the same cause."""

    code: str
    cause: str
    pods: int
    workloads: tuple[str, ...]


@attrs.frozen
class Explained:
    """The cause and the remedies of a pending workload, in the form of `explain`."""

    workload: str
    text: str


@attrs.frozen(eq=False)
class ZoneUse:
    name: str
    nodes: int
    pods: int
    use: Mapping[str, float]
    series: Floats  # pods


@attrs.frozen(eq=False)
class PoolUse:
    """The nodes of a pool during the run; `series` is their number, as the mean of each column of time."""

    name: str
    launched: int
    removed: int
    nodes: int  # at the end
    node_hours: float
    cost: float
    series: Floats


@attrs.frozen
class Spread:
    """Distribution of a workload's pods over the zones.

    `skew` is the largest number of pods in a zone minus the smallest.
    """

    workload: str
    pods: tuple[int, ...]  # number of pods in each zone, in the order of the zones
    skew: int


@attrs.frozen
class ColumnFacts:
    attempts: int
    placed: int
    failed: int
    preempted: int
    decisions: tuple[int, ...]  # the numbers of the first few decisions


@attrs.frozen(eq=False)
class Report:
    """The report. `facts` and `checked` are shown at the top; `notes` list what was omitted and why."""

    title: str
    facts: Sequence[tuple[str, str]]
    columns: Columns
    use: Sequence[ResourceUse]
    groups: Sequence[NodeGroup]
    nodes_in_row: int
    maps: Sequence[HeatMap]
    pending: Sequence[PendingBand]
    causes: Sequence[CauseGroup]
    explained: Sequence[Explained]
    scores: ScoreMap | None
    zones: Sequence[ZoneUse]
    spread: Sequence[Spread]
    decisions: Mapping[int, Decision]  # by number, in ascending order
    slowest: Sequence[int]
    funnels: Sequence[int]
    by_column: Sequence[ColumnFacts]
    checked: "Checked | None" = None
    notes: Sequence[str] = ()
    pools: Sequence[PoolUse] = ()


@attrs.frozen
class UnplacedHere:
    pod: str
    why: str
    remedy: str


@attrs.frozen
class Checked:
    """The result of `kschedd check`."""

    verdict: str
    fits: bool
    unplaced: tuple[UnplacedHere, ...]
    displaced: tuple[tuple[str, str, str], ...]  # pod, result, reason
    usage: tuple[tuple[str, float, float], ...]  # resource, before, after
    troubles: tuple[str, ...] = ()
