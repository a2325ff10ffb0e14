"""A cluster in virtual time that runs only kubelets."""

from typing import Any

from kschedd.api.conditions import condition
from kschedd.api.nodes import Node
from kschedd.api.objects import Raw
from kschedd.api.pods import Pod
from kschedd.api.simulation.pod_behavior import PodBehavior
from kschedd.controllers.kubelets.kubelets import Kubelets
from kschedd.controllers.runner import ControllerRunner
from kschedd.store.store import Store
from tests.store.manifests import Clock, node, pod


class KubeletCluster:
    """A store, its kubelets and their clock; it has node-1 (4 cpu, 16Gi, 110 pods) at the start."""

    def __init__(self, *, requires_configuration: bool = False, **capacity: str) -> None:
        self.clock = Clock()
        self.start = self.clock.now
        self.store = Store(now=self.clock)
        if requires_configuration:
            self.store.simulate_pods(PodBehavior(waits_for_configuration=True))
        self.runner = ControllerRunner(self.store, [Kubelets()])
        first = node()
        first["status"]["capacity"] |= {key.replace("_", "-"): amount for key, amount in capacity.items()}
        self.store.create(first)
        self.run_until_idle()

    def run_until_idle(self) -> None:
        self.runner.run_until_idle()
        assert not self.runner.faults()

    def restart_kubelets(self) -> None:
        """Replace the kubelets with new ones that continue from the stored objects."""
        self.runner = ControllerRunner(self.store, [Kubelets()])
        self.run_until_idle()

    def pod(self, name: str = "web") -> Pod:
        found = self.store.get("Pod", "default", name)
        assert isinstance(found, Pod)
        return found

    def node(self, name: str = "node-1") -> Node:
        found = self.store.get("Node", "", name)
        assert isinstance(found, Node)
        return found

    def run(
        self,
        name: str = "web",
        annotations: dict[str, str] | None = None,
        *,
        on: str = "node-1",
        namespace: str = "default",
        **spec: Any,
    ) -> None:
        """Create a pod on the node."""
        raw = pod(name, namespace=namespace, cpu=spec.pop("cpu", None), **spec)
        raw["metadata"]["annotations"] = {f"kschedd.io/{key}": text for key, text in (annotations or {}).items()}
        raw["spec"]["nodeName"] = on
        self.store.create(raw)
        self.run_until_idle()

    def annotate_node(self, name: str = "node-1", /, **annotations: str | None) -> None:
        named = {f"kschedd.io/{key.replace('_', '-')}": text for key, text in annotations.items()}
        self.store.merge_patch("Node", "", name, {"metadata": {"annotations": named}})
        self.run_until_idle()

    def until(self, seconds: float) -> None:
        """Advance the time to this number of seconds after the start, with all events on the way."""
        self.run_until_idle()
        while (due := self.runner.next_deadline) is not None and due <= self.start + seconds:
            self.clock.now = max(self.clock.now, due)
            self.run_until_idle()
        self.clock.now = self.start + seconds
        self.run_until_idle()

    def container(self, name: str = "app", pod: str = "web") -> Raw:
        status = self.pod(pod).status
        entries = [*(status.get("initContainerStatuses") or ()), *status["containerStatuses"]]
        return next(entry for entry in entries if entry["name"] == name)

    def states(self, pod: str = "web") -> dict[str, str]:
        """Return the state of each container: running, terminated, or the reason for waiting."""
        status = self.pod(pod).status
        found = {}
        for entry in [*(status.get("initContainerStatuses") or ()), *status["containerStatuses"]]:
            ((state, detail),) = entry["state"].items()
            found[entry["name"]] = detail["reason"] if state == "waiting" else state
        return found

    def condition(self, type_: str, pod: str = "web") -> tuple[str, str, str]:
        found = condition(self.pod(pod).status, type_) or {}
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    def pressure(self, type_: str = "MemoryPressure", node: str = "node-1") -> str:
        return (condition(self.node(node).status, type_) or {}).get("status", "")

    def phases(self) -> dict[str, str]:
        """Return the phase of each pod, or its reason if it has one."""
        pods = self.store.list("Pod")
        return {pod.name: pod.status.get("reason") or pod.status.get("phase", "") for pod in pods}

    def events(self, reason: str) -> list[str]:
        return [event.raw["message"] for event in self.store.list("Event") if event.raw["reason"] == reason]


def init(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": f"{name}:1", **fields}


def sidecar(name: str) -> dict[str, Any]:
    return init(name, restartPolicy="Always")
