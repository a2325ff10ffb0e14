"""A case: a pod without a node, its workload, the cluster around it, and each plugin's verdict on each node."""

import copy
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.cache.table import Ints
from kschedd.causes.cluster_nodes import ClusterNodes
from kschedd.causes.workload import Edit, ExaminedWorkload
from kschedd.explain.explain import begin
from kschedd.explain.judgment import Judgment
from kschedd.scheduling.records import PodPreempted
from kschedd.simulation.engine import Engine
from kschedd.store.cluster_api import ClusterReader

Raw = Mapping[str, Any]


@attrs.define(eq=False, slots=False)
class Case:
    """`judgment` contains the verdicts on the pod, computed as if it had no node.

    `deviceless` contains nodes that can never have the devices that the pod requests.
    """

    engine: Engine
    workload: ExaminedWorkload
    pod: Pod
    judgment: Judgment
    preempted: Sequence[PodPreempted] = ()  # pods of the namespace
    deviceless: frozenset[str] = frozenset()
    extended: Object | None = None  # claim that replaces the pod's extended resources, which `pod` then lacks
    extended_names: Sequence[str] = ()
    cluster: ClusterNodes = attrs.field(kw_only=True)

    def after(self, edit: Edit) -> "Case":
        """Return the case after these edits of the workload, which also change the pod."""
        manifest = self.workload.edited(edit)
        raw = copy.deepcopy(dict(self.pod.raw))
        edit(copy.deepcopy(manifest), raw["spec"])
        return self.with_pod(Pod.from_raw(raw), attrs.evolve(self.workload, obj=parse(manifest)))

    def with_pod(self, pod: Pod, workload: ExaminedWorkload | None = None) -> "Case":
        """Return the case with its pod replaced by this pod."""
        judgment = self.judgment.of_changed(pod)
        return Case(self.engine, workload or self.workload, pod, judgment, self.preempted, cluster=self.cluster)

    @property
    def store(self) -> ClusterReader:
        return self.engine.store

    @property
    def nodes(self) -> Mapping[str, Node]:
        return self.cluster.by_name

    @cached_property
    def rejections(self) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
        """The rejecting plugins of each node, with their reasons."""
        return {node: plugins for plugins, nodes in self.judgment.alike for node in nodes}

    def rejected_only_by(self, *plugins: str) -> set[str]:
        """Return the nodes that no plugin rejects except these plugins."""
        found: set[str] = set()
        for verdicts, nodes in self.judgment.alike:
            if verdicts.keys() <= {*plugins}:
                found.update(nodes)
        return found

    def rejected_by(self, *plugins: str) -> set[str]:
        """Return the nodes that at least one of these plugins rejects."""
        found: set[str] = set()
        for verdicts, nodes in self.judgment.alike:
            if not verdicts.keys().isdisjoint(plugins):
                found.update(nodes)
        return found

    def rejected_for(self, plugin: str, reason: str) -> set[str]:
        """Return the nodes that this plugin rejects for this reason, possibly among other reasons."""
        found: set[str] = set()
        for verdicts, nodes in self.judgment.alike:
            if reason in verdicts.get(plugin, ()):
                found.update(nodes)
        return found

    @cached_property
    def selected(self) -> set[str]:
        """The nodes that the pod's selector and node affinity allow."""
        return set(self.cluster.names - self.rejected_by("NodeAffinity", "NodeName"))

    @cached_property
    def reachable(self) -> set[str]:
        """The selected nodes on which the pod's volumes and devices are usable; all selected nodes if there is none."""
        return self.selected - self.rejected_by("VolumeBinding", "VolumeZone") - self.deviceless or self.selected

    @cached_property
    def open(self) -> set[str]:
        """The reachable nodes that are not cordoned and whose taints the pod tolerates."""
        return self.reachable - self.rejected_by("TaintToleration", "NodeUnschedulable")

    @cached_property
    def open_names(self) -> list[str]:
        """The sorted names of the open nodes."""
        return sorted(self.open)

    @cached_property
    def open_keys(self) -> frozenset[str]:
        """The label keys of the open nodes."""
        return frozenset().union(*[self.nodes[name].labels for name in self.open])

    def open_with(self, key: str) -> int:
        """Return the number of open nodes that have this label."""
        return sum(key in self.nodes[name].labels for name in self.open)

    @cached_property
    def requested(self) -> Mapping[str, int]:
        """The amount of each resource that the pod requests, without amounts of 0."""
        return {name: amount for name, amount in self.pod.requests.items() if amount}

    @cached_property
    def large_enough(self) -> set[str]:
        """The open nodes that would have enough capacity for the pod if no other pods were on them."""
        names = self.open_names
        enough = np.ones(len(names), dtype=bool)
        for resource, amount in self.requested.items():
            enough &= self.there(names, resource) >= amount
        if enough.all():
            return set(names)
        return {name for name, holds in zip(names, enough.tolist(), strict=True) if holds}

    def holds(self, node: Node) -> bool:
        return all(node.allocatable.get(name, 0) >= amount for name, amount in self.requested.items())

    def there(self, names: Sequence[str], resource: str) -> Ints:
        """Return the allocatable amount of a resource on each of these nodes."""
        return self.cluster.there(names, resource)

    def most(self, names: Sequence[str], resource: str, *, free: bool = False) -> tuple[int, str]:
        """Return the largest of these nodes' amounts, and the last node with that amount."""
        amounts = self.frees(names, resource) if free else self.there(names, resource)
        largest = int(amounts.max())
        return largest, names[int(np.flatnonzero(amounts == largest)[-1])]

    def frees(self, names: Sequence[str], resource: str) -> Ints:
        """Return the free amount of a resource on each of these nodes, in millicores or whole units."""
        return self.cluster.frees(names, resource)

    def free(self, node: str, resource: str) -> int:
        """Return the free amount of a resource on a node, in millicores or whole units."""
        return int(self.frees([node], resource)[0])

    @property
    def labels(self) -> Mapping[str, Counter[str]]:
        """For each label key of the nodes, the number of nodes with each value."""
        return self.cluster.labels

    @cached_property
    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        """The labels of each namespace."""
        return {obj.name: obj.labels for obj in self.store.list("Namespace")}

    def zones(self, nodes: Iterable[str], key: str) -> set[str]:
        return {self.nodes[name].labels[key] for name in nodes if key in self.nodes[name].labels}


def case_of(engine: Engine, workload: ExaminedWorkload, pod: Pod, preempted: Sequence[PodPreempted] = ()) -> Case:
    """Return the case of a pod; a profile with its scheduler name must exist."""
    judgment = Judgment(begin(engine.machine, pod, engine.driver.nominator.by_node()))
    return Case(engine, workload, pod, judgment, preempted, cluster=ClusterNodes(engine.machine.cluster.table))
