"""Results of the methods for forks."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import attrs

from kschedd.pools.cluster import PoolRefusal, RemovalVerdict


@attrs.frozen
class ForkAnswer:
    name: str
    user: Annotated[str, "the user who created it"]
    of: Annotated[str, "the fork from which it was created; empty for the cluster itself"]
    age_s: Annotated[float, "seconds since its creation, by the machine's clock"]
    idle_s: Annotated[float, "seconds since its last use, by the machine's clock"]
    elapsed_s: Annotated[float, "seconds of virtual time that have passed in the fork"]
    nodes: int
    pods: Annotated[int, "pods with a node"]
    pending: int
    writes: Annotated[int, "number of writes in the fork"]
    begins_again: Annotated[
        str,
        "the pod whose attempt the debugger had stopped, if the fork was created without `stopped` (empty: none); in "
        "the fork this attempt begins again, without manual changes, and scheduling is not stopped",
    ]


@attrs.frozen
class AdvanceAnswer:
    elapsed_s: float
    now_s: float
    at_rest: Annotated[bool, "false if work was left at the time limit"]


@attrs.frozen
class ObjectName:
    kind: str
    namespace: str
    name: str


@attrs.frozen
class ExportAnswer:
    manifests: Annotated[str, "YAML, empty if there were no writes"]
    deleted: Annotated[Sequence[ObjectName], "deleted or evicted objects"]
    config: Annotated[Sequence[Annotated[str, "text"]], "descriptions of the configuration changes"]


@attrs.frozen
class ShapeAnswer:
    """The number of pods that fit if one more node of a shape is added."""

    name: str
    price: float
    more: Annotated[int | None, "additional pods that fit with one more node of that shape; null at the limit"]


@attrs.frozen
class AlternativeAnswer:
    """The number of pods of another size that fit."""

    amount: Annotated[str, "amount of the resource per pod; its other requests are scaled by the same factor"]
    fits: int
    limited: Annotated[bool, "true if the limit was reached"]


@attrs.frozen
class FitsAnswer:
    """The number of additional pods of a spec that fit, or of sets with one pod of each spec: `fits`."""

    specs: Sequence[ObjectName]
    fits: int
    nodes: Annotated[int, "number of nodes that got pods"]
    limited: Annotated[bool, "true if the limit was reached"]
    why: Annotated[str, "the reason why no further pod fits"]
    lacking: Annotated[int | None, "index of the spec whose pod does not fit; null if the limit was reached"]
    shapes: Sequence[ShapeAnswer]
    resource: Annotated[str, "the resource by which alternatives are scaled; empty: there are none"] = ""
    amount: Annotated[str, "amount of this resource per pod"] = ""
    alternatives: Annotated[Sequence[AlternativeAnswer], "counts for pods of other sizes, the smallest first"] = ()


@attrs.frozen
class NeededShape:
    """The number of needed nodes of one shape, and the price of each node.

    For a node that a pool can launch, `pool`, `type`, `zone` and `capacity_type` describe the launch.
    """

    name: str
    count: int
    price: float
    pool: str = ""
    type: Annotated[str, "instance type"] = ""
    zone: str = ""
    capacity_type: Annotated[str, "spot, on-demand or reserved; empty if the pool states none"] = ""


@attrs.frozen
class UnplacedAnswer:
    """A pod (namespace/name) that remains pending with any number of nodes, and kube-scheduler's message."""

    pod: str
    why: str


@attrs.frozen
class NeededAnswer:
    """The additional nodes that are needed.

    `nodes` lists the additional nodes, with their total `price`. `trials` is the number of forks that were tried.
    """

    nodes: Sequence[NeededShape]
    price: float
    trials: int
    exact: Annotated[bool, "false if another combination may be cheaper"]
    bound: Annotated[float, "no combination of these shapes is cheaper than this"]
    unplaced: Annotated[Sequence[UnplacedAnswer], "pods that are unschedulable even with the largest number of nodes"]


# -- node pools -----------------------------------------------------------------------------------------------------


@attrs.frozen
class LaunchedAnswer:
    """A node that an autoscaler launches, and the pods (namespace/name) for which the autoscaler launches it."""

    name: str
    pool: str
    type: str
    zone: Annotated[str, "empty: any, or unknown"]
    capacity_type: Annotated[str, "spot, on-demand or reserved; empty if the pool states none"]
    price: Annotated[float | None, "per hour; null: unknown"]
    pods: Sequence[Annotated[str, "pod"]]


@attrs.frozen
class ExpectedAnswer:
    """A pending pod (namespace/name) that fits on an existing node by the autoscaler's rules."""

    pod: str
    node: str


@attrs.frozen
class RefusedLaunchAnswer:
    """A pending pod (namespace/name) for which no pool launches a node."""

    pod: str
    pools: Sequence[PoolRefusal]


@attrs.frozen
class PodLaunchAnswer:
    """The decision of an autoscaler about one pending pod: one of `launch`, `existing` and `refused`.

    `pod`: namespace/name.
    """

    pod: str
    autoscaler: str
    launch: Annotated[LaunchedAnswer | None, "the node that is launched, or is being launched, for the pod"]
    ready_at: Annotated[str | None, "when the node that is being launched is ready, in UTC; null: not yet launched"]
    existing: Annotated[str, "the node on which the pod fits by the rules of the autoscaler; empty: none"]
    refused: Annotated[Sequence[PoolRefusal], "why no pool launches a node for the pod"]


@attrs.frozen
class LaunchAnswer:
    """The decision of an autoscaler about the pending pods."""

    autoscaler: str
    launches: Sequence[LaunchedAnswer]
    existing: Sequence[ExpectedAnswer]
    refused: Sequence[RefusedLaunchAnswer]
    price: Annotated[float | None, "of all launches together, per hour; null: a price is unknown"]


@attrs.frozen
class RemovalAnswer:
    """Nodes to remove together. `manifest` is the replacement, a Node to create before the nodes are removed."""

    reason: str
    nodes: Sequence[Annotated[str, "name"]]
    replacement: LaunchedAnswer | None
    manifest: Annotated[Mapping[str, Any] | None, "object"]
    saved: Annotated[float | None, "per hour; null: a price is unknown"]


@attrs.frozen
class ScaleDownAnswer:
    """The next removal (null: none), and verdicts about the nodes that were examined."""

    autoscaler: str
    removal: RemovalAnswer | None
    nodes: Sequence[RemovalVerdict]
