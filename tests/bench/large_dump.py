"""Benchmark of a large dump that is written, loaded and saved again: CPU time and memory.

    python -m tests.bench.large_dump write PATH.json [--nodes N] [--pods N] [--kubectl]
    python -m tests.bench.large_dump load PATH

`write` runs a small cluster of Deployments in virtual time, and copies its saved objects under other names until the
dump is large. With `--kubectl`, pods are as in a real cluster, each with a volume for its token and its own times,
addresses and container IDs, and are indented as by kubectl. `load` reads the dump into a store in a separate process
and prints the cost of each part; for JSON, it also checks that saving would produce the same dump. Not a test: times
vary.
"""

import argparse
import gzip
import json
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

from kschedd.api.text.times import stamp
from kschedd.config.loading.load import default_config
from kschedd.controllers.embedded import embedded_controllers
from kschedd.dumps.loading import prepare
from kschedd.dumps.saving import dump_objects, write_dump
from kschedd.dumps.sources import read_sources
from kschedd.framework.registry import Registry
from kschedd.garbage_collection import collection_paused
from kschedd.sdk.objects import node
from kschedd.simulation.simulation import Simulation
from kschedd.store.store import Store

Raw = dict[str, Any]

SMALL: Final = 50  # number of nodes of the cluster to copy
SETS: Final = 20  # Deployments of it
PER_COPY: Final = ("Node", "Namespace", "Deployment", "ReplicaSet", "Pod")
START_S: Final = 1.75e9


def small_cluster(pods: int) -> list[Raw]:
    """Return the objects that `save` writes for a cluster with this many pods on `SMALL` nodes."""
    simulation = Simulation(
        default_config(), seed=1, registry=Registry(), controllers=embedded_controllers(), start_s=START_S
    )
    store = simulation.store
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    for number in range(SMALL):
        zone = {"topology.kubernetes.io/zone": f"z{number % 3}"}
        store.apply(node(f"node-{number:03}", cpu="64", memory="256Gi", labels=zone))
    for number in range(SETS):
        replicas = pods // SETS + (number < pods % SETS)
        store.apply(deployment(f"app-{number:02}", replicas))
    simulation.finish(600)
    everything = (dict(obj.raw) for kind in PER_COPY for obj in store.list(kind) if obj.namespace != "kube-system")
    return [raw for raw in dump_objects(everything) if raw["kind"] != "Namespace" or raw["metadata"]["name"] == "shop"]


def deployment(name: str, replicas: int) -> Raw:
    labels = {"app": name, "tier": "web"}
    port = {"containerPort": 8080, "name": "http"}
    container = {
        "name": "main",
        "image": f"registry.example/{name}:1.7.3",
        "ports": [port],
        "env": [{"name": f"SETTING_{n}", "value": f"value {n} of {name}"} for n in range(5)],
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop", "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


class Copy:
    """A copy of the small cluster, in its own namespace."""

    def __init__(self, number: int, kubectl: bool, version: Iterator[int]) -> None:
        self._tail = f"-{number:04}"
        self._kubectl = kubectl
        self._version = version
        self._random = Random(number)

    def of(self, raw: Raw) -> Raw:
        kind, meta = raw["kind"], dict(raw["metadata"])
        if kind in ("Node", "Namespace"):
            meta["name"] += self._tail
        if "namespace" in meta:
            meta["namespace"] += self._tail
        if kind == "Namespace":
            meta["labels"] = {"kubernetes.io/metadata.name": meta["name"]}
        meta["uid"] = self._uid(meta["uid"])
        meta["resourceVersion"] = str(next(self._version))
        if "ownerReferences" in meta:
            meta["ownerReferences"] = [{**each, "uid": self._uid(each["uid"])} for each in meta["ownerReferences"]]
        copied = {**raw, "metadata": meta}
        if kind == "Pod":
            copied["spec"] = {**raw["spec"], "nodeName": raw["spec"]["nodeName"] + self._tail}
            if self._kubectl:
                copied = self._as_in_a_real_cluster(copied)
        return copied

    def _uid(self, uid: str) -> str:
        return uid[:-4] + self._tail[1:]

    def _as_in_a_real_cluster(self, pod: Raw) -> Raw:
        random = self._random
        token = "kube-api-access-" + "".join(random.choices("bcdfghjklmnpqrstvwxz2456789", k=5))
        mount = {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": token, "readOnly": True}
        sources = [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
        ]
        volume = {"name": token, "projected": {"defaultMode": 420, "sources": sources}}
        containers = [{**each, "volumeMounts": [mount]} for each in pod["spec"]["containers"]]
        born = START_S - random.randrange(10**7)
        address = f"10.{random.randrange(256)}.{random.randrange(256)}.{random.randrange(256)}"
        started = stamp(born + random.randrange(2, 40))
        states = [
            {
                "containerID": f"containerd://{random.getrandbits(256):064x}",
                "image": each["image"],
                "imageID": f"{each['image'].partition(':')[0]}@sha256:{random.getrandbits(256):064x}",
                "lastState": {},
                "name": each["name"],
                "ready": True,
                "restartCount": 0,
                "started": True,
                "state": {"running": {"startedAt": started}},
            }
            for each in containers
        ]
        conditions = [{**each, "lastTransitionTime": started} for each in pod["status"]["conditions"]]
        status = {**pod["status"], "conditions": conditions, "containerStatuses": states, "startTime": stamp(born)}
        status.update(podIP=address, podIPs=[{"ip": address}])
        meta = {**pod["metadata"], "creationTimestamp": stamp(born)}
        spec = {**pod["spec"], "containers": containers, "volumes": [volume], "serviceAccount": "default"}
        return {**pod, "metadata": meta, "spec": {**spec, "serviceAccountName": "default"}, "status": status}


def large(nodes: int, pods: int, kubectl: bool) -> Iterator[Raw]:
    copies = -(-nodes // SMALL)
    found = small_cluster(pods // copies)
    version = iter(range(1_000, 1 << 60))
    for kind in PER_COPY:
        of_kind = [raw for raw in found if raw["kind"] == kind]
        for number in range(copies):
            copy = Copy(number, kubectl, version)
            yield from map(copy.of, of_kind)


def indented(path: Path, objects: Iterator[Raw]) -> None:
    """Write the objects as a list in kubectl's format."""
    with path.open("w") as file:
        file.write('{\n    "apiVersion": "v1",\n    "items": [\n')
        for number, raw in enumerate(objects):
            text = json.dumps(raw, indent=4).replace("\n", "\n        ")
            file.write(("" if not number else ",\n") + "        " + text)
        file.write('\n    ],\n    "kind": "List",\n    "metadata": {\n        "resourceVersion": ""\n    }\n}\n')


def load(path: Path) -> None:
    size = path.stat().st_size
    print(f"{path.name}: {size / 1e6:,.0f} MB{' packed' if path.suffix == '.gz' else ''}")
    lap = Lap()
    with collection_paused():
        sources = read_sources([str(path)])
        lap.print("read")
        store = Store(now=lambda: START_S)
        prepared = prepare(sources, lambda key: store.find(*key) is not None, store.now)
        lap.print("prepare")
        in_the_way = _exhausted(store.take_in(prepared.objects))
        lap.print("take in")
    lap.print_total()
    print(f"{len(prepared.objects):,} objects, errors {prepared.errors[:3]}, {prepared.assumptions.texts()[:3]}")
    there = sum(store.count(kind) for kind in store.kinds())
    print(f"{there:,} objects in the store, in the way {len(in_the_way)}")
    if not path.name.removesuffix(".gz").endswith(".json"):
        return
    began = time.process_time()
    same = same_as(path, store)
    print(f"saved again it is {'the same' if same else 'DIFFERENT'} ({time.process_time() - began:.1f} s CPU)")


def _exhausted(steps: Any) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def same_as(path: Path, store: Store) -> bool:
    """Return whether `save` would write the same content for this store, except for versions."""
    opened = gzip.open(path) if path.suffix == ".gz" else path.open("rb")
    with opened as file:
        given = json.load(file)["items"]
    for raw in given:
        meta = raw["metadata"]
        there = store.get(raw["kind"], meta.get("namespace", ""), meta["name"]).raw
        [saved] = dump_objects([dict(there)])
        if {**saved, "metadata": {**saved["metadata"], "resourceVersion": meta["resourceVersion"]}} != raw:
            print(saved, raw, sep="\n")
            return False
    return True


class Lap:
    def __init__(self) -> None:
        self._total = 0.0
        self._since = time.process_time()

    def print(self, part: str) -> None:
        spent = time.process_time() - self._since
        self._total += spent
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{part:<10} {spent:6.2f} s CPU   {peak:7,.0f} MiB at most, {now_mib():7,.0f} now")
        self._since = time.process_time()

    def print_total(self) -> None:
        print(f"{'all':<10} {self._total:6.2f} s CPU")


def now_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / (1 << 20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("write", "load"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--kubectl", action="store_true")
    options = parser.parse_args()
    if options.what == "load":
        load(options.path)
        return
    objects = large(options.nodes, options.pods, options.kubectl)
    if options.kubectl and options.path.suffix == ".json":
        indented(options.path, objects)
    else:
        write_dump(options.path, objects, force=True)


if __name__ == "__main__":
    main()
