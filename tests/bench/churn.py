"""The objects that the soak (`soak.py`) creates and deletes in each round, so that the cluster is never idle.

Each round creates pods, nodes, workloads, volumes, namespaces, custom kinds, and new label values, label keys, topology
keys, resources, images and taints. It deletes as many from earlier rounds, and sends requests about them: explanations,
forks, histories, lists, subscriptions. Some of these requests are invalid. The total number of objects stays constant.
"""

import random
from collections import deque
from typing import Any

import attrs
import trio

from kschedd.rpc.client import Client
from kschedd.service.errors import RpcError

Raw = dict[str, Any]
NODES = 40
PODS = 300  # number of single pods; workloads create more
_WORKLOADS = 8
_KINDS_OF_PODS = 14
_CLASSES = ("low", "high")


def node(number: int) -> Raw:
    name = f"n{number}"
    room = {"cpu": "16", "memory": "64Gi", "pods": "110", f"soak.example/r{number % 7}": "4"}
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": f"z{number % 3}",
        "soak.example/batch": f"b{number}",
        f"soak.example/key-{number}": "here",
    }
    spec: Raw = {}
    if number % 4 == 0:
        room[f"soak.example/only-{number}"] = "2"
        spec["taints"] = [{"key": f"soak.example/t{number}", "value": "x", "effect": "PreferNoSchedule"}]
    status = {
        "capacity": room,
        "allocatable": room,
        "images": [{"names": [f"soak.example/image:{number}"], "sizeBytes": 100_000_000 + number}],
    }
    meta = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status}


def pod(number: int, namespace: str = "default") -> Raw:
    """Return a pod of one of several kinds, each with a value that no other pod has."""
    labels = {"app": f"a{number % 20}", "run": f"r{number}"}
    requests: Raw = {"cpu": "100m", "memory": "64Mi"}
    container: Raw = {"name": "app", "image": f"soak.example/image:{number}", "resources": {"requests": requests}}
    spec: Raw = {"containers": [container]}
    own = {"matchLabels": {"run": f"r{number}"}}
    like = {"matchLabels": {"app": labels["app"]}}
    match number % _KINDS_OF_PODS:
        case 0:
            spec["nodeSelector"] = {f"soak.example/never-{number}": "x"}
        case 1:
            container["resources"]["limits"] = {f"soak.example/unknown-{number}": "1"}
            requests[f"soak.example/unknown-{number}"] = "1"
        case 2:
            terms = [{"labelSelector": own, "topologyKey": "kubernetes.io/hostname"}]
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        case 3:
            spec["topologySpreadConstraints"] = [
                {
                    "maxSkew": 1,
                    "topologyKey": f"soak.example/topology-{number}" if number % 3 else "topology.kubernetes.io/zone",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": like,
                }
            ]
        case 4:
            container["ports"] = [{"containerPort": 80, "hostPort": 10_000 + number % 50_000}]
        case 5:
            spec["schedulingGates"] = [{"name": f"soak.example/gate-{number}"}]
        case 6:
            spec["priorityClassName"] = _CLASSES[number // _KINDS_OF_PODS % 2]
            requests["cpu"] = "6"
        case 7:
            spec["tolerations"] = [{"key": f"soak.example/t{number}", "operator": "Exists"}]
        case 8:
            spec["schedulerName"] = f"nobodys-{number}"
        case 9:
            weighted = {"weight": 5, "podAffinityTerm": {"labelSelector": own, "topologyKey": f"soak.example/{number}"}}
            spec["affinity"] = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}
        case 10:
            term = {"matchExpressions": [{"key": "soak.example/batch", "operator": "NotIn", "values": [f"b{number}"]}]}
            required = {"nodeSelectorTerms": [term]}
            spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        case 11:
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": f"claim-{number}"}}]
        case _:
            pass
    meta = {"name": f"p{number}", "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def of_claim(number: int) -> list[Raw]:
    """Return a claim and a matching volume."""
    capacity = {"storage": f"{1 + number % 5}Gi"}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"claim-{number}"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": capacity}},
    }
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"volume-{number}"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": capacity,
            "claimRef": {"namespace": "default", "name": f"claim-{number}"},
            "hostPath": {"path": f"/data/{number}"},
        },
    }
    return [claim, volume]


def workload(number: int) -> list[Raw]:
    """Return a namespace, a Deployment, StatefulSet or Job in it, a Service and a PodDisruptionBudget."""
    namespace, labels = f"ns-{number}", {"app": f"w{number}"}
    template = {"metadata": {"labels": labels}, "spec": pod(_KINDS_OF_PODS - 1)["spec"]}
    spec: Raw = {"selector": {"matchLabels": labels}, "template": template, "replicas": 3}
    kind = ("Deployment", "StatefulSet", "Job")[number % 3]
    if kind == "StatefulSet":
        spec["serviceName"] = "none"
    if kind == "Job":
        spec = {"completions": 3, "parallelism": 3, "template": template}
        template["spec"]["restartPolicy"] = "Never"
    meta = {"name": f"w{number}", "namespace": namespace}
    version = "batch/v1" if kind == "Job" else "apps/v1"
    service = {"selector": labels, "ports": [{"port": 80}]}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": {"round": f"r{number}"}}},
        {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec},
        {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": service},
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": meta,
            "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
        },
    ]


def custom_kind(number: int) -> Raw:
    names = {"kind": f"Soak{number}", "plural": f"soak{number}s", "singular": f"soak{number}"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"soak{number}s.soak.example"},
        "spec": {
            "group": "soak.example",
            "scope": "Namespaced",
            "names": names,
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


@attrs.define(eq=False)
class Churn:
    """Runs rounds; `answers` counts successful calls, and `refused` counts errors by code."""

    client: Client
    path: str
    chance: random.Random
    pods_a_round: int | None = None  # None: 6 to 17
    number: int = 0
    made: int = 0  # pods
    nodes: deque[int] = attrs.field(factory=deque)
    pods: deque[str] = attrs.field(factory=deque)
    workloads: deque[int] = attrs.field(factory=deque)
    answers: int = 0
    refused: dict[str, int] = attrs.field(factory=dict)

    async def begin(self) -> None:
        for value, name in enumerate(_CLASSES):
            meta = {"name": name}
            await self._ask(
                "objects.create",
                manifest={
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": meta,
                    "value": value * 1000,
                },
            )
        while len(self.nodes) < NODES:
            await self._add_node()

    async def round(self) -> None:
        self.number += 1
        await self._pods(self.pods_a_round or self.chance.randrange(6, 18))
        if self.number % 3 == 0:
            await self._add_node()
            await self._delete("Node", f"n{self.nodes.popleft()}")
        if self.number % 10 == 0:
            await self._workload()
        await self._changes()
        await self._questions()
        await self._mistakes()
        if self.number % 5 == 0:
            await self._fork()
        if self.number % 50 == 0:
            await self._custom()

    async def _pods(self, count: int) -> None:
        manifests: list[Raw] = []
        for _ in range(count):
            self.made += 1
            manifests.append(pod(self.made))
            self.pods.append(f"p{self.made}")
            if self.made % _KINDS_OF_PODS == 11:
                manifests += of_claim(self.made)
        await self._ask("objects.apply", manifests=manifests)
        while len(self.pods) > PODS:
            name = self.pods.popleft()
            await self._delete("Pod", name)
            if int(name[1:]) % _KINDS_OF_PODS == 11:
                await self._delete("PersistentVolumeClaim", f"claim-{name[1:]}")
                await self._delete("PersistentVolume", f"volume-{name[1:]}")

    async def _add_node(self) -> None:
        number = 1 + (self.nodes[-1] if self.nodes else 0)
        self.nodes.append(number)
        await self._ask("objects.create", manifest=node(number))

    async def _workload(self) -> None:
        self.workloads.append(self.number)
        await self._ask("objects.apply", manifests=workload(self.number))
        if len(self.workloads) > _WORKLOADS:
            gone = self.workloads.popleft()
            for made in reversed(workload(gone)):
                await self._delete(made["kind"], made["metadata"]["name"], made["metadata"].get("namespace"))

    async def _changes(self) -> None:
        name = self.chance.choice(self.pods)
        await self._ask("objects.label", kind="Pod", name=name, set={"soak": f"v{self.number}"}, overwrite=True)
        row = f"n{self.chance.choice(self.nodes)}"
        await self._ask(
            "objects.label", kind="Node", name=row, set={"soak.example/batch": f"c{self.number}"}, overwrite=True
        )
        match self.number % 6:
            case 0:
                await self._ask("nodes.cordon", name=row)
                await self._ask("nodes.uncordon", name=row)
            case 1:
                await self._ask(
                    "scheduler.set_weight",
                    profile="default-scheduler",
                    plugin="ImageLocality",
                    weight=1 + self.number % 5,
                )
            case 2:
                point = await self._ask("debug.break_add", pod=f"nobody/{self.number}")
                if point is not None:
                    await self._ask("debug.break_delete", id=point["id"])
            case 3:
                await self._ask("objects.annotate", kind="Pod", name=name, set={f"soak/{self.number}": "x" * 50})
            case 4:
                await self._ask("pods.evict", name=name)
            case _:
                await self._ask("queue.activate", pods=[f"default/{name}"])

    async def _questions(self) -> None:
        name = f"default/{self.chance.choice(self.pods)}"
        await self._ask("scheduler.explain", pod=name)
        await self._ask("queue.pod", pod=name)
        await self._ask("scheduler.decisions", pod=name)
        match self.number % 8:
            case 0:
                await self._ask("objects.list", kind="Pod")
            case 1:
                await self._ask("events.list")
            case 2:
                await self._ask("metrics.get")
            case 3:
                await self._ask("queue.list")
            case 4:
                await self._ask("daemon.limits")
            case 5:
                await self._ask("capacity.pods", manifests=pod(13), limit=50)
            case 6:
                await self._ask("objects.list", kind="Node", label_selector=f"soak.example/key-{self.number}")
            case _:
                async with Client.connect(self.path) as another, another.subscribe("objects.watch", kind="Pod"):
                    await another.call("rpc.ping")

    async def _mistakes(self) -> None:
        number = self.number
        match number % 5:
            case 0:
                await self._ask(f"no.such_{number}")
            case 1:
                await self._ask("objects.get", kind=f"Kind{number}", name="x")
            case 2:
                broken = pod(13)
                broken["spec"][f"field{number}"] = 1
                await self._ask("objects.apply", manifests=broken, namespace=f"nowhere-{number}")
            case 3:
                await self._ask("scheduler.explain", pod=f"default/no-{number}")
            case _:
                await self._ask("objects.apply", manifests=f"a: [{number}\n", source=f"file-{number}")

    async def _fork(self) -> None:
        made = await self._ask("fork.create")
        if made is None:
            return
        fork = made["name"]
        await self._ask("fork.call", fork=fork, method="nodes.cordon", params={"name": f"n{self.nodes[0]}"})
        await self._ask("fork.call", fork=fork, method="objects.create", params={"manifest": pod(10**6 + self.number)})
        await self._ask("fork.advance", fork=fork, seconds=30)
        await self._ask("fork.diff", fork=fork)
        await self._ask("fork.discard", fork=fork)

    async def _custom(self) -> None:
        await self._ask("objects.create", manifest=custom_kind(self.number))
        meta = {"name": "one", "namespace": "default"}
        made = {"apiVersion": "soak.example/v1", "kind": f"Soak{self.number}", "metadata": meta}
        await self._ask("objects.create", manifest=made)
        await self._delete("CustomResourceDefinition", f"soak{self.number}s.soak.example")

    async def _delete(self, kind: str, name: str, namespace: str | None = None) -> None:
        await self._ask("objects.delete", kind=kind, name=name, namespace=namespace)

    async def _ask(self, method: str, /, **params: Any) -> Any:
        """Return the result of the call; count an error and return None.

        Raises AssertionError if the error is a bug of the daemon.
        """
        try:
            with trio.fail_after(120):
                result = await self.client.call(method, **params)
        except RpcError as refused:
            if refused.code == "internal":
                raise AssertionError(f"{method} {params}: {refused}") from refused
            name = "(no method)" if refused.code == "unknown_method" else method
            key = f"{name} {refused.code}"
            self.refused[key] = self.refused.get(key, 0) + 1
            return None
        self.answers += 1
        return result
