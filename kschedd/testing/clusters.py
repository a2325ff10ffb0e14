"""Random clusters for plugin tests: a few nodes, pods of few signatures, and random changes to them.

The seed determines all values. Nodes differ in zone, labels, taints, images and capacity. Pods differ in their
requests, selectors, tolerations, affinities and volumes. Each property has few possible values, so that most
combinations occur.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache

Raw = Mapping[str, Any]

_ZONE: Final = "topology.kubernetes.io/zone"
_HOST: Final = "kubernetes.io/hostname"
_TAINTS: Final = (
    {"key": "k", "value": "v", "effect": "NoSchedule"},
    {"key": "k", "effect": "NoExecute"},
    {"key": "soft", "effect": "PreferNoSchedule"},
)
_MOST_NODES: Final = 6


@attrs.frozen
class ClusterChange:
    """The changes of one step: for each node the parts that changed, with the names in `fast_path.Dependency`."""

    of: Mapping[str, frozenset[str]]  # changed parts of each node, by the name of the node


class RandomCluster:
    """A cluster with random nodes and pods.

    `node_labels`, `pod_labels`: additional labels that may be set, with their possible values.
    """

    def __init__(
        self,
        seed: int,
        node_labels: Mapping[str, Sequence[str]] | None = None,
        pod_labels: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.random = Random(seed)
        self.cluster = SchedulerCache()
        self._node_labels = {"disk": ("ssd", "hdd"), **(node_labels or {})}
        self._pod_labels = {"app": ("x", "y"), **(pod_labels or {})}
        self._placed: list[Pod] = []
        self._count = 0
        for raw in _volumes():
            self.cluster.put(parse(raw))
        for number in range(self.random.randint(2, _MOST_NODES)):
            self.cluster.put_node(self.node(f"n{number}"))
        for _ in range(self.random.randint(0, 6)):
            self._add_pod()

    # -- objects ----------------------------------------------------------------------------------------------

    def node(self, name: str) -> Node:
        """Return a node with that name, in a random state."""
        random = self.random
        labels = {_HOST: name, _ZONE: random.choice("ab")}
        labels.update(self._labels(self._node_labels))
        images = [{"names": [f"{image}:1"], "sizeBytes": 300 << 20} for image in ("i", "j") if random.random() < 0.5]
        room = {"cpu": random.choice(("1", "2", "4")), "memory": random.choice(("2Gi", "8Gi")), "pods": "5"}
        return Node.from_raw(
            {
                "kind": "Node",
                "metadata": {"name": name, "uid": name, "labels": labels},
                "spec": {
                    "taints": random.sample(_TAINTS, random.choice((0, 0, 1, 2))),
                    "unschedulable": random.random() < 0.15,
                },
                "status": {"allocatable": room, "images": images},
            }
        )

    def pod(self, node_name: str = "") -> Pod:
        """Return a pod with one of few signatures, on a node or unassigned."""
        self._count += 1
        name = f"p{self._count}"
        random = self.random
        requests = {"cpu": random.choice(("100m", "1")), "memory": random.choice(("100Mi", "1Gi"))}
        container: dict[str, Any] = {"name": "c", "image": random.choice(("i", "j")) + ":1"}
        if random.random() < 0.8:
            container["resources"] = {"requests": requests}
        if random.random() < 0.2:
            container["ports"] = [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
        spec: dict[str, Any] = {"containers": [container]}
        if random.random() < 0.6:
            spec.update(random.choice(_WISHES)(random))
        if node_name:
            spec["nodeName"] = node_name
        meta = {"name": name, "namespace": "default", "uid": name, "labels": self._labels(self._pod_labels)}
        return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": spec, "status": {}})

    def like(self, pod: Pod) -> Pod:
        """Return another pod with the same signature and all other fields different."""
        self._count += 1
        name = f"p{self._count}"
        meta = {**pod.raw["metadata"], "name": name, "uid": name, "annotations": {"note": name}}
        return Pod.from_raw({**pod.raw, "metadata": meta})

    def _labels(self, choices: Mapping[str, Sequence[str]]) -> dict[str, str]:
        return {key: self.random.choice(values) for key, values in choices.items() if self.random.random() < 0.7}

    # -- changes ----------------------------------------------------------------------------------------------

    def change(self) -> ClusterChange:
        """Make one random change and return it."""
        steps: tuple[Callable[[], ClusterChange], ...] = (
            self._change_node,
            self._add_pod,
            self._remove_pod,
            self._touch_pod,
            self._touch_pod,
        )
        return self.random.choice(steps)()

    def _change_node(self) -> ClusterChange:
        name = f"n{self.random.randrange(_MOST_NODES)}"
        if name in self.cluster.table.row_of and self.random.random() < 0.2:
            self.cluster.remove_node(name)
        else:
            self.cluster.put_node(self.node(name))
        return ClusterChange({name: frozenset(("node", "requested", "pods"))})

    def _add_pod(self) -> ClusterChange:
        name = self.random.choice(sorted(self.cluster.table.row_of))
        self._placed.append(self.pod(name))
        self.cluster.put_pod(self._placed[-1])
        return ClusterChange({name: frozenset(("requested", "pods"))})

    def _remove_pod(self) -> ClusterChange:
        if not self._placed:
            return ClusterChange({})
        pod = self._placed.pop(self.random.randrange(len(self._placed)))
        self.cluster.remove_pod(pod)
        return ClusterChange({pod.node_name: frozenset(("requested", "pods"))})

    def _touch_pod(self) -> ClusterChange:
        """Change a pod on a node without changing its requests: new annotations, or a deletion timestamp."""
        if not self._placed:
            return ClusterChange({})
        place = self.random.randrange(len(self._placed))
        old = self._placed[place]
        meta = dict(old.raw["metadata"])
        if self.random.random() < 0.5:
            meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        else:
            meta["annotations"] = {"touched": str(self.random.random())}
        self._placed[place] = Pod.from_raw({**old.raw, "metadata": meta})
        self.cluster.put_pod(self._placed[place])
        return ClusterChange({old.node_name: frozenset(("pods",))})


# -- pod specs ---------------------------------------------------------------------------------------------------------


def _affinity_term(key: str) -> Raw:
    return {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": key}


def _between_pods(random: Random) -> Raw:
    key = random.choice((_ZONE, _HOST))
    which = random.choice(("podAffinity", "podAntiAffinity"))
    if random.random() < 0.5:
        return {"affinity": {which: {"requiredDuringSchedulingIgnoredDuringExecution": [_affinity_term(key)]}}}
    preferred = [{"weight": 5, "podAffinityTerm": _affinity_term(key)}]
    return {"affinity": {which: {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}


def _node_affinity(random: Random) -> Raw:
    term = {"matchExpressions": [{"key": "disk", "operator": random.choice(("Exists", "DoesNotExist"))}]}
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"n{random.randrange(4)}"]}]}
    required = {"nodeSelectorTerms": [random.choice((term, named))]}
    preferred = [{"weight": 3, "preference": term}]
    affinity: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    if random.random() < 0.5:
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return {"affinity": {"nodeAffinity": affinity}}


def _spread(random: Random) -> Raw:
    constraint = {
        "maxSkew": 1,
        "topologyKey": random.choice((_ZONE, _HOST)),
        "whenUnsatisfiable": random.choice(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    return {"topologySpreadConstraints": [constraint]}


def _tolerations(random: Random) -> Raw:
    tolerations: Sequence[Raw] = (
        {"operator": "Exists"},
        {"key": "k", "operator": "Exists"},
        {"key": "soft", "operator": "Exists", "effect": "PreferNoSchedule"},
        {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
    )
    return {"tolerations": [random.choice(tolerations)]}


def _claims(random: Random) -> Raw:
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": random.choice(("bound", "waiting"))}}]}


_WISHES: Final[tuple[Callable[[Random], Raw], ...]] = (
    lambda random: {"nodeSelector": {"disk": random.choice(("ssd", "hdd"))}},
    lambda random: {"priority": random.choice((0, 10))},
    _between_pods,
    _node_affinity,
    _spread,
    _tolerations,
    _claims,
)


def _volumes() -> Sequence[Raw]:
    """Return a bound claim, a claim with WaitForFirstConsumer, and the objects that both require."""
    storage_class = {
        "kind": "StorageClass",
        "metadata": {"name": "late", "uid": "late"},
        "provisioner": "csi.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    terms = [{"matchExpressions": [{"key": _ZONE, "operator": "In", "values": ["a"]}]}]
    volume = {
        "kind": "PersistentVolume",
        "metadata": {"name": "v", "uid": "v", "labels": {_ZONE: "a"}},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": "default", "name": "bound", "uid": "bound"},
            "storageClassName": "late",
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
            "csi": {"driver": "csi.example.com", "volumeHandle": "v"},
        },
        "status": {"phase": "Bound"},
    }

    def claim(name: str, **more: Any) -> Raw:
        annotations = {"pv.kubernetes.io/bind-completed": "yes"} if more else {}
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "late",
            **more,
        }
        meta = {"name": name, "namespace": "default", "uid": name, "annotations": annotations}
        return {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec, "status": {}}

    return (storage_class, volume, claim("bound", volumeName="v"), claim("waiting"))
