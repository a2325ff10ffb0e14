"""A small cluster for the workload controllers: store, controllers, and a scheduler that follows node affinity."""

from collections.abc import Sequence
from typing import Any

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.controllers.garbage import GarbageCollector
from kschedd.controllers.kubelets.kubelets import Kubelets
from kschedd.controllers.nodes.nodetaints import NodeTaints
from kschedd.controllers.runner import ControllerRunner
from kschedd.controllers.running.controller import Controller
from kschedd.controllers.workloads.daemon_pods import target_node
from kschedd.store.store import Store
from tests.store.manifests import Clock, node


class WorkloadCluster:
    """A cluster with nodes n0, n1, … (`nodes` of them); pods that name no node are scheduled to the first node."""

    def __init__(self, controllers: Sequence[Controller], nodes: int = 1) -> None:
        self.clock = Clock()
        self.store = Store(now=self.clock, seed=6)
        self.runner = ControllerRunner(self.store, [*controllers, Kubelets(), GarbageCollector(), NodeTaints()])
        self.scheduling = True
        for number in range(nodes):
            self.store.create(node(f"n{number}"))

    def step(self) -> bool:
        """Run the controllers, then the scheduler. Return False if nothing changed."""
        before = self.store.version
        self.runner.run_until_idle()
        for pod in self.pods() if self.scheduling else ():
            wanted = target_node(pod) or "n0"
            if not pod.node_name and self.store.find("Node", "", wanted) is not None and not pod.deletion_timestamp:
                self.store.bind(pod.namespace, pod.name, wanted)
        return self.store.version != before

    def rest(self, within_s: float = 60) -> None:
        """Run until nothing changes within this number of seconds."""
        for _ in range(500):
            if not self.step():
                wake = self.runner.next_deadline
                if wake is None or wake > self.clock.now + within_s:
                    return
                self.clock.now = max(wake, self.clock.now)
        raise AssertionError("never comes to rest")

    def pods(self) -> list[Pod]:
        return [p for p in self.store.list("Pod") if isinstance(p, Pod)]

    def get(self, kind: str, name: str) -> Object:
        return self.store.get(kind, "default", name)

    def patch(self, kind: str, name: str, patch: dict[str, Any], namespace: str = "default") -> Object:
        return self.store.merge_patch(kind, namespace, name, patch)

    def fail(self, name: str) -> None:
        self.store.patch_status("Pod", "default", name, {"phase": "Failed"})
