"""The state of a cluster's pods, read with the public verbs: a workload's pods, and pods that a change displaced."""

import json
from collections.abc import Mapping
from typing import Any

import attrs

from kschedd.scenarios.commands import ScenarioCluster

_KINDS = {
    "deployment": "Deployment",
    "replicaset": "ReplicaSet",
    "statefulset": "StatefulSet",
    "daemonset": "DaemonSet",
}
_KINDS |= {"job": "Job", "pod": "Pod", "node": "Node"}


def read(cluster: ScenarioCluster, words: str) -> Any:
    """Return the output of `get WORDS -o json`."""
    result = cluster.execute(f"get {words} -o json", "")
    assert result.status == 0, result.text
    return json.loads(result.text)


@attrs.frozen
class Standing:
    """The pods of one workload, and all other pods.

    `pods`: (node, restarts) of the bound pods, by their uid.
    """

    wanted: int
    scheduled: int
    pods: Mapping[str, tuple[str, int]]
    names: Mapping[str, str]
    pending: frozenset[str]

    @property
    def complete(self) -> bool:
        return self.scheduled >= self.wanted


def standing(cluster: ScenarioCluster, ask: str, namespace: str) -> Standing:
    """Read the state of the workload's pods and of all others."""
    kind, _, name = ask.partition("/")
    pods = read(cluster, "pods -A")["items"]
    owners = {
        (item["kind"], item["metadata"]["namespace"], item["metadata"]["name"]): _controller(item)
        for item in read(cluster, "replicasets -A")["items"]
    }
    own: list[Any] = []
    others: dict[str, tuple[str, int]] = {}
    names: dict[str, str] = {}
    pending: set[str] = set()
    for pod in pods:
        meta = pod["metadata"]
        if (kind == "node" or meta["namespace"] == namespace) and _belongs(pod, _KINDS[kind], name, owners):
            own.append(pod)
            continue
        if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            continue
        full = f"{meta['namespace']}/{meta['name']}"
        node = pod["spec"].get("nodeName", "")
        if not node:
            pending.add(full)
        elif "deletionTimestamp" not in meta:
            names[meta["uid"]] = full
            restarts = sum(one.get("restartCount", 0) for one in pod["status"].get("containerStatuses", []))
            others[meta["uid"]] = (node, restarts)
    holding = [pod for pod in own if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]]
    if kind == "deployment":  # a stuck rollout keeps old pods, which do not match the template
        holding = [pod for pod in holding if _controller(pod)[1] == _newest(cluster, namespace, name)]
    return Standing(_wanted(cluster, kind, name, namespace), len(holding), others, names, frozenset(pending))


def displaced(before: Standing, after: Standing) -> list[str]:
    """Return sentences on pods of other workloads that left, moved, restarted or became pending."""
    found = [
        f"{before.names[uid]} was {was}, is {after.pods.get(uid, 'gone')}"
        for uid, was in before.pods.items()
        if after.pods.get(uid) != was
    ]
    return found + [f"{name} became pending" for name in sorted(after.pending - before.pending)]


def _controller(item: Mapping[str, Any]) -> tuple[str, str]:
    for owner in item["metadata"].get("ownerReferences", []):
        if owner.get("controller"):
            return (owner["kind"], owner["name"])
    return ("", "")


def _belongs(
    pod: Mapping[str, Any], kind: str, name: str, owners: Mapping[tuple[str, str, str], tuple[str, str]]
) -> bool:
    if kind == "Pod":
        return bool(pod["metadata"]["name"] == name)
    if kind == "Node":  # The node is to be drained, so its pods may move.
        return bool(pod["spec"].get("nodeName") == name)
    owner = _controller(pod)
    return (kind, name) in (owner, owners.get((owner[0], pod["metadata"]["namespace"], owner[1])))


def _wanted(cluster: ScenarioCluster, kind: str, name: str, namespace: str) -> int:
    if kind in ("pod", "node"):
        return int(kind == "pod")
    workload = read(cluster, f"{kind} {name} -n {namespace}")
    if kind == "daemonset":
        return int(workload["status"]["desiredNumberScheduled"])
    if kind == "job":
        return int(workload["spec"].get("parallelism", 1))
    return int(workload["spec"].get("replicas", 1))


def _newest(cluster: ScenarioCluster, namespace: str, deployment: str) -> str:
    """Return the name of the ReplicaSet with the Deployment's latest revision."""
    sets = [
        one
        for one in read(cluster, f"replicasets -n {namespace}")["items"]
        if _controller(one) == ("Deployment", deployment)
    ]
    revision = "deployment.kubernetes.io/revision"
    newest = max(sets, key=lambda one: int(one["metadata"].get("annotations", {}).get(revision, "0")))
    return str(newest["metadata"]["name"])
