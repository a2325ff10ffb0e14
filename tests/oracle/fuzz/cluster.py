"""Nodes, namespaces and running pods of a fuzz input."""

import attrs

from tests.oracle.fuzz.draws import (
    EFFECTS,
    EXTENDED,
    HOSTNAME,
    IMAGES,
    NAMESPACES,
    PRIORITIES,
    REGION,
    TAINTS,
    TEAMS,
    ZONE,
    Draw,
    Raw,
)


@attrs.define(eq=False)
class Cluster:
    """The objects of an input so far; `minor` is the release's minor version, which determines the available fields."""

    draw: Draw
    minor: int
    config: Raw | None = None
    nodes: list[Raw] = attrs.Factory(list)
    pods: list[Raw] = attrs.Factory(list)
    others: list[Raw] = attrs.Factory(list)
    scheduler_names: list[str] = attrs.field(factory=lambda: ["default-scheduler"])
    _number: int = 0

    @property
    def objects(self) -> list[Raw]:
        return [*self.nodes, *self.others, *self.pods]

    @property
    def node_names(self) -> list[str]:
        return [node["metadata"]["name"] for node in self.nodes]

    def number(self) -> int:
        """Return a number that no other object of this input has in its name."""
        self._number += 1
        return self._number

    def add(self, kind: str, api_version: str, name: str, namespace: str = "", **fields: object) -> Raw:
        metadata: Raw = {"name": name, "uid": f"{kind.lower()}-{namespace}-{name}", "resourceVersion": "1"}
        if namespace:
            metadata["namespace"] = namespace
        obj = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}
        self.others.append(obj)
        return obj


def cluster_of(draw: Draw, minor: int, nodes: int, *, crowded: bool = False) -> Cluster:
    """Return a cluster of this many nodes with running pods; `crowded` leaves few free resources."""
    cluster = Cluster(draw, minor)
    for namespace in NAMESPACES:
        labels = {"kubernetes.io/metadata.name": namespace, "team": TEAMS[namespace]}
        cluster.add("Namespace", "v1", namespace)["metadata"]["labels"] = labels
    zones = [f"zone-{letter}" for letter in "abcd"[: draw.randint(1, 4)]]
    for place in range(nodes):
        cluster.nodes.append(node(draw, f"node-{place:03}", zones))
    for name in cluster.node_names:
        for _ in range(draw.randint(1, 4) if crowded else draw.choice((0, 0, 1, 2))):
            cluster.pods.append(running(cluster, name, large=crowded))
    return cluster


def node(draw: Draw, name: str, zones: list[str]) -> Raw:
    labels = {HOSTNAME: name}
    if draw.chance(90):
        labels[ZONE] = draw.choice(zones)
    if draw.chance(70):
        labels[REGION] = draw.choice(("r1", "r2"))
    if draw.chance(50):
        labels["disk"] = draw.choice(("ssd", "hdd"))
    if draw.chance(40):
        labels["generation"] = draw.choice(("1", "2", "7", "x"))
    spec: Raw = {}
    if draw.chance(25):
        keys = draw.some(TAINTS, 1, 2)
        spec["taints"] = [_taint(key, value, draw.choice(EFFECTS)) for key, value in keys]
    if draw.chance(5):
        spec["unschedulable"] = True
        spec.setdefault("taints", []).append(_taint("node.kubernetes.io/unschedulable", "", "NoSchedule"))
    allocatable = {
        "cpu": draw.cpu(2000, 16000),
        "memory": draw.memory(4096, 32768),
        "pods": draw.choice(("110", "110", "110", "4", "2")),
    }
    if draw.chance(40):
        allocatable["ephemeral-storage"] = draw.memory(10240, 102400)
    if draw.chance(30):
        allocatable[EXTENDED] = str(draw.randint(1, 4))
    status: Raw = {"allocatable": allocatable, "capacity": allocatable}
    if draw.chance(30):
        sizes = {image: (place + 1) * 150_000_000 for place, image in enumerate(IMAGES)}
        status["images"] = [{"names": [image], "sizeBytes": sizes[image]} for image in draw.some(IMAGES, 1, 3)]
    metadata = {"name": name, "uid": f"node-{name}", "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def _taint(key: str, value: str, effect: str) -> Raw:
    return {"key": key, "effect": effect} | ({"value": value} if value else {})


def pod(cluster: Cluster, *, large: bool = False, name: str = "") -> Raw:
    """Return a pending pod that requests CPU and memory only."""
    draw = cluster.draw
    name = name or f"p{cluster.number():03}"
    namespace = draw.choice(("default", *NAMESPACES))
    most = 3000 if large else 1000
    requests = {"cpu": draw.cpu(50, most)}
    if draw.chance(80):
        requests["memory"] = draw.memory(64, 4096 if large else 1024)
    container = {"name": "c0", "image": draw.choice(IMAGES), "resources": {"requests": requests}}
    priority = draw.choice(PRIORITIES)
    spec: Raw = {
        "schedulerName": draw.choice(cluster.scheduler_names),
        "containers": [container],
        "priority": priority,
        "preemptionPolicy": "Never" if draw.chance(10) else "PreemptLowerPriority",
        "terminationGracePeriodSeconds": 30,
    }
    metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}", "labels": draw.labels()}
    metadata["creationTimestamp"] = "2024-12-31T00:00:00Z"
    status = {"phase": "Pending"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def running(cluster: Cluster, node_name: str, *, large: bool = False) -> Raw:
    """Return a pod that runs on the node."""
    draw = cluster.draw
    found = pod(cluster, large=large)
    found["spec"]["nodeName"] = node_name
    start = f"2024-12-{draw.randint(1, 28):02}T{draw.randint(0, 23):02}:00:00Z"
    found["status"] = {"phase": "Running", "startTime": start}
    if draw.chance(3):
        found["metadata"] |= {"deletionTimestamp": "2025-01-01T00:10:00Z", "deletionGracePeriodSeconds": 30}
    return found
