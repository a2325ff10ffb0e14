"""The parts of a cluster that autoscalers read, and the answers that they give about it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod

#: kinds of objects that autoscalers read
READ_KINDS: Final = frozenset(("Node", "Pod", "Namespace", "DaemonSet", "PodDisruptionBudget"))

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

    @classmethod
    def of(cls, objects: Iterable[Object], now_s: float) -> "PooledCluster":
        nodes: list[Node] = []
        pods: dict[str, list[Pod]] = {}
        pending: list[Pod] = []
        by_kind: dict[str, list[Object]] = {}
        for obj in objects:
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
    """Why a pool launches no node for a pod: the rule, and the values that it compares."""

    pool: str
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
