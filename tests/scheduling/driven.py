"""A scheduling driver whose events the test delivers, and manifests for it."""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw
from kschedd.config.versions.kube_versions import V1_34, KubernetesVersion
from kschedd.framework.registry import Registry
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.failure import FailedAttempt
from kschedd.scheduling.inputs import BeginAttempt, CompleteAttempt, Observe, PluginCalled
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.profiles.metrics import SchedulingMetrics
from kschedd.store.objects.log import ADDED, DELETED, MODIFIED, WatchEvent

Raw = dict[str, Any]
NOW = 1000.0


def node(name: str = "n", cpu: str = "1") -> Raw:
    status = {"allocatable": {"cpu": cpu, "memory": "4Gi", "pods": "10"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(name: str, *, cpu: str = "1", priority: int = 0, on: str = "", nominated: str = "", **meta: Any) -> Raw:
    spec: Raw = {
        "priority": priority,
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
    }
    if on:
        spec["nodeName"] = on
    status = {"nominatedNodeName": nominated} if nominated else {}
    named = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1", **meta}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": spec, "status": status}


class Driven:
    """A driver with a list as its queue: pods are popped in the order in which the test names them."""

    def __init__(
        self,
        *plugins: type[Any],
        profiles: Sequence[str] = ("default-scheduler",),
        version: KubernetesVersion = V1_34,
        gates: Mapping[str, bool] | None = None,
        **settings: Any,
    ) -> None:
        registry = Registry({plugin.name: plugin for plugin in plugins})
        enabled = {"multiPoint": {"enabled": [{"name": plugin.name} for plugin in plugins]}}
        raw = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": name, "plugins": enabled, **settings} for name in profiles],
        }
        config = config_from_raw(
            raw, catalogue={**IN_TREE, **registry.catalogue()}, version=version, feature_gates=gates
        )
        ticks = count()
        # each reading of the clock advances it by a millisecond
        self.metrics = SchedulingMetrics(lambda: next(ticks) / 1000)
        self.machine = SchedulingMachine(config, registry=registry, seed=1, metrics=self.metrics)
        self.driver = SchedulingDriver(self.machine)
        self.objects: dict[tuple[str, str], Object] = {}

    def see(self, *raws: Raw) -> None:
        """Deliver these objects to the driver as watch events."""
        for raw in raws:
            new = parse(raw)
            old = self.objects.get((new.kind, new.key))
            self.objects[new.kind, new.key] = new
            self.driver.step(Observe((WatchEvent(ADDED if old is None else MODIFIED, old, new, 1),)))

    def goes(self, name: str) -> None:
        gone = self.objects.pop(("Pod", f"default/{name}"))
        self.driver.step(Observe((WatchEvent(DELETED, gone, gone, 1),)))

    def entry(self, name: str) -> QueuedPod:
        found = self.objects["Pod", f"default/{name}"]
        assert isinstance(found, Pod)
        return QueuedPod(found, found.key, 0, attempts=1)

    def attempt(self, name: str) -> AssumedPod | FailedAttempt:
        """Make one attempt for the pod; effects requested before are dropped."""
        self.driver.take_effects()
        entry = self.entry(name)
        attempt = self.driver.step(BeginAttempt(entry))
        assert attempt is not None
        return self.driver.step(CompleteAttempt(entry, drive(attempt)), NOW)

    def called(self) -> str:
        """Make the plugin call for which the binding cycles wait; return the plugin's name."""
        [wanted] = self.driver.take_effects().calls
        self.driver.step(PluginCalled(wanted.uid, wanted.run()), NOW)
        return wanted.plugin
