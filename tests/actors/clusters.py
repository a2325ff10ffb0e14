"""Small clusters for the tests of actors and the daemon, and functions that wait for their states."""

from collections.abc import Callable
from typing import Any, TypeVar

import trio
import trio.testing

from kschedd.actors.cluster import LiveCluster
from kschedd.actors.mailbox import ActorRef
from kschedd.api.pods import Pod
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw
from kschedd.config.model import Config
from kschedd.config.versions.kube_versions import DEFAULT, KubernetesVersion
from kschedd.framework.interface import plugin_info
from kschedd.framework.registry import Registry
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.store.store import Store

Raw = dict[str, Any]
S = TypeVar("S")
T = TypeVar("T")


def node(name: str = "n1", *, cpu: str = "4", pods: int = 110, labels: Raw | None = None, **spec: Any) -> Raw:
    room = {"cpu": cpu, "memory": "16Gi", "pods": str(pods)}
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
    status = {"capacity": room, "allocatable": room}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status}


def pod(name: str = "web", *, cpu: str = "100m", namespace: str = "default", **spec: Any) -> Raw:
    container = {"name": "app", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container], **spec}}


def deployment(name: str = "web", replicas: int = 3, cpu: str = "100m") -> Raw:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod(cpu=cpu)["spec"]},
        },
    }


def with_plugins(*classes: type[Any], version: KubernetesVersion = DEFAULT, **settings: Any) -> tuple[Config, Registry]:
    """Return the default profile with these plugins added, and the registry that contains them."""
    registry = Registry({cls.name: cls for cls in classes})
    catalogue = {**IN_TREE, **{cls.name: plugin_info(cls) for cls in classes}}
    enabled = {"multiPoint": {"enabled": [{"name": cls.name} for cls in classes]}}
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "plugins": enabled}],
        **settings,
    }
    return config_from_raw(raw, catalogue=catalogue, version=version), registry


async def until(cluster: LiveCluster, true: Callable[[Store], Any]) -> Any:
    """Wait until the condition is true for the store; return its result."""
    watch = await cluster.store.watch()
    try:
        with trio.fail_after(90):
            while not (answer := await cluster.store.do(true)):
                watch.take()
                assert await watch.wait(), "the cluster ended first"
            return answer
    finally:
        watch.close()


async def placed(cluster: LiveCluster, *names: str) -> dict[str, str]:
    """Wait until these pods have nodes; return the nodes."""

    def nodes(store: Store) -> dict[str, str]:
        found = {name: store.find("Pod", "default", name) for name in names}
        given = {name: pod.node_name for name, pod in found.items() if isinstance(pod, Pod) and pod.node_name}
        return given if len(given) == len(names) else {}

    result: dict[str, str] = await until(cluster, nodes)
    return result


async def rejected(cluster: LiveCluster, name: str, saying: str = "") -> str:
    """Wait until the pod's PodScheduled condition is False with this text in its message; return the message."""

    def message(store: Store) -> str:
        found = store.find("Pod", "default", name)
        conditions = found.status.get("conditions") or () if found is not None else ()
        answer = [c.get("message", "") for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"]
        return answer[0] if answer and saying in answer[0] else ""

    result: str = await until(cluster, message)
    return result


async def comes_to(asking: ActorRef[S], question: Callable[[S], T], expected: T) -> None:
    """Wait until a query of an actor returns this answer. The query is repeated whenever the event loop is idle.

    One idle moment is not enough, because an actor also works in threads and at deadlines.
    """
    answer = await asking.query(question)
    with trio.move_on_after(60):
        while answer != expected:
            await trio.testing.wait_all_tasks_blocked(0.001)
            answer = await asking.query(question)
    assert answer == expected


async def nothing_is_left_of(cluster: LiveCluster, *names: str) -> None:
    """Delete these pods; check that scheduler and queue have none of them, and that each node's sums match its pods."""
    for name in names:
        await cluster.store.delete("Pod", "default", name, grace_period_s=0)
    keys = {f"default/{name}" for name in names}

    def left(driver: SchedulingDriver) -> Raw:
        known = driver.machine.cluster
        nominated = [pod.key for pods in driver.nominator.nominated.values() for pod in pods]
        table = known.table
        off = {
            table.names[row]: int(table.requested[0, row])
            for row in table
            if table.requested[0, row] != sum(pod.requests.get("cpu", 0) for pod in table.pods[row])
            or keys & {pod.key for pod in table.pods[row]}
        }
        return {
            "assumed": [pod.key for pod in known.assumed_pods()],
            "waiting": [waiting.pod.key for waiting in driver.machine.waiting.pods.values()],
            "bindings": [cycle.assumed.pod.key for cycle in driver.bindings.cycles.values()],
            "nominated": keys.intersection(nominated),
            "pending": keys.intersection(driver.pending.pods),
            "rooms": off,
        }

    nothing = {"assumed": [], "waiting": [], "bindings": [], "nominated": set(), "pending": set(), "rooms": {}}
    await comes_to(cluster.scheduler, left, nothing)
    await comes_to(
        cluster.queue,
        lambda owner: (
            [entry.key for entry in owner.queue.in_flight_pods() if entry.key in keys]
            + [key for key in keys if owner.queue.entry(key) is not None]
        ),
        [],
    )
