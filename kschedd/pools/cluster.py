"""The parts of a cluster that autoscalers read, and the answers that they give about it."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Annotated, Any, Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.pools.volumes import NO_VOLUMES, VOLUME_KINDS, ClaimedVolumes
from kschedd.values import run_steps

#: kinds of objects that autoscalers read
READ_KINDS: Final = frozenset(("Node", "Pod", "Namespace", "DaemonSet", "PodDisruptionBudget", *VOLUME_KINDS))

_PART: Final = 500  # objects that are read between two pauses

Raw = Mapping[str, Any]


@attrs.frozen(eq=False)
class PooledCluster:
    """A cluster; `pods` are the running pods of each node, `pending` the pods that the scheduler could not place."""

    nodes: Sequence[Node]
    pods: Mapping[str, Sequence[Pod]]
    pending: Sequence[Pod]
    daemons: Sequence[Pod]  # a pod of each DaemonSet
    budgets: Sequence[Object]
    namespaces: Mapping[str, Mapping[str, str]]  # labels by name
    now_s: float
    volumes: ClaimedVolumes = NO_VOLUMES

    @classmethod
    def of(cls, objects: Iterable[Object], now_s: float) -> "PooledCluster":
        return run_steps(cls.in_steps(objects, now_s))

    @classmethod
    def in_steps(cls, objects: Iterable[Object], now_s: float) -> Generator[None, None, "PooledCluster"]:
        """Return the cluster with these objects, with pauses."""
        nodes: list[Node] = []
        pods: dict[str, list[Pod]] = {}
        pending: list[Pod] = []
        by_kind: dict[str, list[Object]] = {}
        for number, obj in enumerate(objects):
            if not number % _PART:
                yield
            if isinstance(obj, Pod):
                if obj.node_name and not obj.finished:
                    pods.setdefault(obj.node_name, []).append(obj)
                elif is_unschedulable(obj):
                    pending.append(obj)
            elif isinstance(obj, Node):
                nodes.append(obj)
            else:
                by_kind.setdefault(obj.kind, []).append(obj)
        return cls(
            sorted(nodes, key=lambda node: node.name),
            pods,
            sorted(pending, key=lambda pod: pod.key),
            [daemon_of(each) for each in by_kind.get("DaemonSet", ())],
            by_kind.get("PodDisruptionBudget", []),
            {each.name: each.labels for each in by_kind.get("Namespace", ())},
            now_s,
            ClaimedVolumes.of(each for kind in VOLUME_KINDS for each in by_kind.get(kind, ())),
        )

    def free_names(self, pool: str, taken: Iterable[str] = ()) -> Iterator[str]:
        """Yield names for new nodes of a pool."""
        used = {*taken, *(node.name for node in self.nodes)}
        return (name for number in count(1) if (name := f"{pool}-{number}") not in used)


def daemon_of(daemon_set: Object) -> Pod:
    """Return a pod of the DaemonSet."""
    template = daemon_set.spec["template"]
    meta = template.get("metadata") or {}
    named = {"name": daemon_set.name, "namespace": daemon_set.namespace, "uid": daemon_set.key}
    return Pod.from_raw({"metadata": {**meta, **named}, "spec": template["spec"]})


def is_unschedulable(pod: Pod) -> bool:
    """Return whether the scheduler found no node for the pod, and the pod waits for no preemption."""
    if pod.node_name or pod.finished or pod.deleting or pod.status.get("nominatedNodeName"):
        return False
    owner = pod.owner
    if owner is not None and owner.kind == "DaemonSet":
        return False
    return any(
        each.get("type") == "PodScheduled" and each.get("status") == "False" and each.get("reason") == "Unschedulable"
        for each in pod.status.get("conditions") or ()
    )


@attrs.frozen
class PoolRefusal:
    """Why a pool launches no node for a pod: the rule, and the values that the rule compares."""

    pool: Annotated[str, "empty: all pools"]
    rule: str
    why: str


@attrs.frozen(eq=False)
class NodeLaunch:
    """A node to launch, and the pods for which it is launched. `price` is per hour; None if it is unknown."""

    pool: str
    raw: Raw
    type: str
    price: float | None
    pods: Sequence[Pod]
    zone: str = ""
    capacity_type: str = ""

    @property
    def name(self) -> str:
        return str(self.raw["metadata"]["name"])


@attrs.frozen(eq=False)
class ScaleUp:
    """The launches for the pending pods.

    `existing` are the pods that the autoscaler expects to fit on a node of the cluster, with this node. `refused` are
    the pods for which no pool launches a node.
    """

    launches: Sequence[NodeLaunch] = ()
    existing: Sequence[tuple[Pod, str]] = ()
    refused: Sequence[tuple[Pod, Sequence[PoolRefusal]]] = ()


@attrs.frozen(eq=False)
class RemovalVerdict:
    """Whether an autoscaler would remove a node by itself, and the rule that decides.

    `price` and `saved` are per hour; null: unknown.
    """

    node: str
    pool: Annotated[str, "empty: none"]
    price: float | None
    pods: Annotated[int, "running pods"]
    verdict: Annotated[str, "delete, replace or keep"]
    rule: str = ""
    why: str = ""
    saved: float | None = None


@attrs.frozen(eq=False)
class Removal:
    """Nodes that an autoscaler removes together, and the node that replaces them."""

    reason: str
    nodes: Sequence[str]
    replacement: NodeLaunch | None
    saved: float | None


@attrs.frozen(eq=False)
class ScaleDown:
    """The next removal (None: no removal), and a verdict about each node that was examined."""

    verdicts: Sequence[RemovalVerdict]
    removal: Removal | None


def total_price(prices: Iterable[float | None]) -> float | None:
    """Return the sum; None if a price is unknown."""
    found = list(prices)
    return None if None in found else sum(price for price in found if price is not None)


def difference(prices: Iterable[float | None], replacement: NodeLaunch | None) -> float | None:
    """Return the price that a removal saves; None if a price is unknown."""
    before = total_price(prices)
    after = 0.0 if replacement is None else replacement.price
    return None if before is None or after is None else before - after
