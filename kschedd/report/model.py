"""The contents of a report as values, independent of their collector and sufficient for drawing.

Shapes: a series has one value for each column of time, NaN if missing. Shares are 0 to 1, or more if pods that ran
before request more than the capacity.
"""

from collections.abc import Mapping, Sequence

import attrs

from kschedd.causes.answers import DiagnosisAnswer, PendingGroup
from kschedd.explain.answers import Explanation
from kschedd.report.axis import Floats
from kschedd.report.decisions import Decision
from kschedd.service.nodes.answers import UsageAnswer
from kschedd.service.scheduling.answers import QueuedAnswer, WaitingAnswer


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
class NodeGroup:
    """Neighboring nodes of one zone, by name: one row of the heat maps. Nodes that were deleted are included."""

    label: str
    zone: str
    nodes: tuple[str, ...]


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
class PodOnNode:
    key: str
    phase: str


@attrs.frozen(eq=False)
class AtEnd:
    """The answers of methods at the end of the report, from which the views of the page are drawn.

    `diagnoses` and `explanations` are about workloads and pods of the first groups of `pending`.
    """

    usage: UsageAnswer
    pods: Mapping[str, tuple[PodOnNode, ...]]  # by node; empty if there are too many pods
    counts: Mapping[str, int]  # pods in each sub-queue
    queued: Sequence[QueuedAnswer]
    waiting: Sequence[WaitingAnswer]
    pending: Sequence[PendingGroup]
    diagnoses: Sequence[DiagnosisAnswer]
    explanations: Sequence[Explanation]


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
    at_end: AtEnd
    scores: ScoreMap | None
    zones: Sequence[ZoneUse]
    spread: Sequence[Spread]
    decisions: Mapping[int, Decision]  # by number, in ascending order
    slowest: Sequence[int]
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
class CheckedChange:
    """The effect of the checked manifests on a pod; the keys are those of `fork.diff`, `to` is "" without a node."""

    sign: str
    change: str
    pod: str
    node: str
    to: str
    cause: str
    displaced: bool  # the pod belonged to the cluster before, and lost its node


@attrs.frozen
class Checked:
    """The result of `kschedd check`."""

    verdict: str
    fits: bool
    applied: int
    unplaced: tuple[UnplacedHere, ...]
    changes: tuple["CheckedChange", ...]
    usage: tuple[tuple[str, float, float], ...]  # resource, before, after
    troubles: tuple[str, ...] = ()
