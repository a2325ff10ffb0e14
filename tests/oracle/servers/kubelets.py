"""Simulated kubelets for a real control plane: nodes, leases, pods that run and end, and a volume provisioner.

    python tests/oracle/servers/kubelets.py DIR/kubelets.kubeconfig --nodes 20

Bound pods become Running, those of Jobs Succeeded after 3 s, and deleted pods are removed. Claims of the StorageClass
`dyn` (WaitForFirstConsumer) get a volume on their node. It is one process with threads, which runs until it is killed.
"""

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import httpx
from client import MERGE_PATCH, client_of, create, path

RETRIES = 20
LEASE_S = 40
JOB_S = 3


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def conditions(**states: str) -> list[dict[str, str]]:
    return [
        {"type": name, "status": state, "reason": "Kubelet", "message": "", "lastTransitionTime": now()}
        for name, state in states.items()
    ]


class Kubelets:
    """The kubelets of all nodes: their actions on each pod, by uid, and a pool of threads."""

    def __init__(self, client: httpx.Client, options: argparse.Namespace) -> None:
        self._client = client
        self._options = options
        self._threads = ThreadPoolExecutor(8)
        self._done: dict[str, str] = {}
        self._lock = threading.Lock()
        self.names = [f"n{number:02d}" for number in range(options.nodes)]

    def register(self, number: int) -> None:
        """Create a node with its status and CSINode; unless all are equal, some have disks, taints and devices."""
        name, alike = self.names[number], self._options.alike
        labels = {
            "kubernetes.io/hostname": name,
            "topology.kubernetes.io/zone": "abcd"[number % 4],
            "topology.kubernetes.io/region": "r",
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
        }
        if not alike and number % 3 == 0:
            labels["disk"] = "ssd"
        dedicated = [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]
        taints = dedicated if not alike and number in (18, 19) else []
        spec = {"taints": taints}
        create(
            self._client,
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec},
        )
        capacity = {"cpu": self._options.cpu, "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
        info = dict.fromkeys(("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "kubeProxyVersion"), "x")
        info |= {"kubeletVersion": self._options.version, "containerRuntimeVersion": "x://1"}
        info |= {"operatingSystem": "linux", "architecture": "amd64"}
        states = conditions(Ready="True", MemoryPressure="False", DiskPressure="False", PIDPressure="False")
        status: dict[str, Any] = {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": states,
            "nodeInfo": info,
        }
        if self._options.declared:
            status["declaredFeatures"] = self._options.declared.split(",")
        self._patch_status(path("Node", name=name), status)
        drivers: dict[str, Any] = {"drivers": []}
        create(
            self._client,
            {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name}, "spec": drivers},
        )
        if not alike and number < 6:
            create(self._client, _devices(name))

    def renew_leases(self) -> None:
        while True:
            for name in self.names:
                self._renew(name)
            time.sleep(LEASE_S / 4)

    def _renew(self, name: str) -> None:
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        where, spec = path("Lease", "kube-node-lease", name), {"renewTime": at}
        answer = self._client.patch(where, json={"spec": spec}, headers=MERGE_PATCH)
        if answer.status_code == httpx.codes.NOT_FOUND:
            metadata = {"name": name, "namespace": "kube-node-lease"}
            spec |= {"holderIdentity": name, "leaseDurationSeconds": LEASE_S}
            kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
            create(self._client, {**kind, "metadata": metadata, "spec": spec})

    def act(self, pod: dict[str, Any], tries: int = 1) -> None:
        """Act on the pod as its kubelet does; retry after a second if the server rejects the request."""
        metadata, spec = pod["metadata"], pod["spec"]
        try:
            if metadata.get("deletionTimestamp"):
                self._remove(metadata)
            elif spec.get("nodeName") and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
                self._run(metadata, spec)
        except (httpx.HTTPError, RuntimeError) as fault:
            self._done.pop(metadata["uid"], None)
            if tries >= RETRIES:
                print(f"pod {metadata['name']}: {str(fault)[:200]}", file=sys.stderr)
                return
            threading.Timer(1, self._threads.submit, (self.act, pod, tries + 1)).start()

    def _remove(self, metadata: dict[str, Any]) -> None:
        if self._done.get(metadata["uid"]) == "gone":
            return
        self._done[metadata["uid"]] = "gone"
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
        self._client.request("DELETE", path("Pod", metadata["namespace"], metadata["name"]), json=options)

    def _run(self, metadata: dict[str, Any], spec: dict[str, Any]) -> None:
        with self._lock:
            if metadata["uid"] in self._done:
                return
            self._done[metadata["uid"]] = "running"
        number = len(self._done) % 65000
        address = f"10.244.{number >> 8}.{number & 255}"
        running = {"ready": True, "started": True, "state": {"running": {"startedAt": now()}}}
        states = dict.fromkeys(("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"), "True")
        status = {
            "phase": "Running",
            "startTime": now(),
            "podIP": address,
            "podIPs": [{"ip": address}],
            "hostIP": "127.0.0.1",
            "conditions": conditions(**states, PodScheduled="True"),
            "containerStatuses": _containers(spec, running),
        }
        where = path("Pod", metadata["namespace"], metadata["name"])
        self._patch_status(where, status)
        if any(owner["kind"] == "Job" for owner in metadata.get("ownerReferences", [])):
            ended = {"ready": False, "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
            status = {"phase": "Succeeded", "containerStatuses": _containers(spec, ended)}
            threading.Timer(JOB_S, self._patch_status, (where, status)).start()

    def _patch_status(self, where: str, status: dict[str, Any]) -> None:
        answer = self._client.patch(f"{where}/status", json={"status": status}, headers=MERGE_PATCH)
        if answer.status_code == httpx.codes.TOO_MANY_REQUESTS or answer.is_server_error:
            raise RuntimeError(answer.text[:200])
        if answer.is_error and answer.status_code != httpx.codes.NOT_FOUND:
            print(f"{where}: {answer.text[:300]}", file=sys.stderr)

    def provision(self, claim: dict[str, Any]) -> None:
        """Create the volume of a claim whose node is selected."""
        metadata, spec = claim["metadata"], claim["spec"]
        node = metadata.get("annotations", {}).get("volume.kubernetes.io/selected-node")
        if node and not spec.get("volumeName") and spec.get("storageClassName") == "dyn":
            create(self._client, _volume(metadata, spec, node))

    def follow(self, url: str, act: Callable[[dict[str, Any]], None]) -> None:
        """List the objects, watch them, and handle each one in a thread; list again when the watch ends."""
        while True:
            try:
                listed = self._client.get(url).raise_for_status().json()
                for obj in listed["items"]:
                    self._threads.submit(act, obj)
                query = {"watch": "1", "resourceVersion": listed["metadata"]["resourceVersion"]}
                with self._client.stream("GET", url, params=query, timeout=None) as stream:
                    for line in stream.iter_lines():
                        event = json.loads(line)
                        if event["type"] == "ERROR":
                            break
                        if event["type"] in ("ADDED", "MODIFIED"):
                            self._threads.submit(act, event["object"])
            except httpx.HTTPError as fault:
                print(f"watch of {url}: {str(fault)[:200]}", file=sys.stderr)
                time.sleep(1)


def _containers(spec: dict[str, Any], state: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": one["name"], "image": one["image"], "imageID": "x", "restartCount": 0, **state}
        for one in spec["containers"]
    ]


def _devices(node: str) -> dict[str, Any]:
    devices = [
        {
            "name": f"gpu{number}",
            "attributes": {"model": {"string": "big" if number else "small"}},
            "capacity": {"memory": {"value": "80Gi" if number else "40Gi"}},
        }
        for number in range(2)
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": devices}
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
    return {**kind, "metadata": {"name": f"{node}-gpu"}, "spec": spec}


def _volume(claim: dict[str, Any], spec: dict[str, Any], node: str) -> dict[str, Any]:
    reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
    reference |= {key: claim[key] for key in ("namespace", "name", "uid")}
    on_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": f"pv-{claim['uid']}",
            "annotations": {"pv.kubernetes.io/provisioned-by": "dyn.example.com"},
        },
        "spec": {
            "capacity": spec["resources"]["requests"],
            "accessModes": spec["accessModes"],
            "storageClassName": "dyn",
            "persistentVolumeReclaimPolicy": "Delete",
            "csi": {"driver": "dyn.example.com", "volumeHandle": claim["uid"]},
            "claimRef": reference,
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}},
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kubeconfig", help="kubeconfig of a user with all permissions")
    parser.add_argument("--nodes", type=int, default=20, help="number of nodes (default: 20)")
    parser.add_argument("--cpu", default="8", help="CPU of each node (default: 8)")
    parser.add_argument("--version", default="v1.37.2", help="the kubelets' version (default: v1.37.2)")
    parser.add_argument("--declared", default="", help="comma-separated features that the nodes declare")
    parser.add_argument("--alike", action="store_true", help="create nodes without own labels, taints and devices")
    options = parser.parse_args()
    kubelets = Kubelets(client_of(options.kubeconfig), options)
    for number in range(options.nodes):
        kubelets.register(number)
    print(f"registered {options.nodes} nodes", flush=True)
    threading.Thread(target=kubelets.renew_leases, daemon=True).start()
    claims = ("/api/v1/persistentvolumeclaims", kubelets.provision)
    threading.Thread(target=kubelets.follow, args=claims, daemon=True).start()
    kubelets.follow("/api/v1/pods", kubelets.act)


if __name__ == "__main__":
    main()
