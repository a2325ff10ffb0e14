"""Benchmark of a preemption by the preemptor's constraints: 5,000 full nodes, of which 500 are tried.

`python -m tests.bench.preemption_cost [--nodes N] [--pods N] [--nominated N] [--times N] [--only KIND]` prints for
several kinds of preemptors the minimum, median and maximum CPU time of an attempt that finds its victims. The victims
are not deleted, so every attempt has the same cluster. With --nominated, similar pods are nominated to this number of
nodes, and to one more after each attempt.
"""

import argparse
import gc
from collections.abc import Iterator, Mapping
from statistics import median
from time import process_time
from typing import Any, Final

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.scheduling.attempt.outcome import FitError
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.nominations.nominator import Nominator
from kschedd.sdk.objects import node, pod
from kschedd.simulation.engine import Engine

ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
CSI: Final = "ebs.csi.aws.com"


def term(app: str, key: str) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def affinity(kind: str, app: str, key: str) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term(app, key)]}}}


CLAIM: Final = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "preemptors"}}]}
DEVICE: Final = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "preemptors"}]}
KINDS: Final[Mapping[str, dict[str, Any]]] = {
    "plain": {},
    "spread": {"topologySpreadConstraints": [{**term("a1", ZONE), "maxSkew": 5, "whenUnsatisfiable": "DoNotSchedule"}]},
    "spread over nodes": {
        "topologySpreadConstraints": [{**term("a1", HOST), "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule"}]
    },
    "anti-affinity": affinity("podAntiAffinity", "a1", HOST),
    "affinity": affinity("podAffinity", "a2", ZONE),
    "volume": CLAIM,
    "device": DEVICE,
}


def objects(nodes: int, pods: int) -> Iterator[dict[str, Any]]:
    for number in range(nodes):
        name = f"n{number}"
        labels = {ZONE: f"z{number % 3}", HOST: name}
        yield node(name, cpu=str(pods), memory="64Gi", labels=labels)
        driver = {"name": CSI, "nodeID": name, "topologyKeys": [], "allocatable": {"count": 2 * pods}}
        yield {"kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": [driver]}}
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {
            "driver": "gpu.example.com",
            "nodeName": name,
            "pool": pool,
            "devices": [{"name": "d0"}, {"name": "d1"}],
        }
        yield {"kind": "ResourceSlice", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": name}, "spec": spec}
    yield {"kind": "DeviceClass", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "gpu"}, "spec": {}}
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    yield {
        "kind": "ResourceClaim",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": "preemptors", "namespace": "default", "uid": "claim"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }
    yield from volume("preemptors")
    for number in range(nodes * pods):
        labels = {"app": f"a{number % 20}"}
        raw = pod(f"p{number}", cpu="1", memory="256Mi", node_name=f"n{number % nodes}", labels=labels)
        if number % nodes % 4 == 0:  # a quarter of the nodes runs pods with volumes
            yield from volume(f"c{number}")
            raw["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": f"c{number}"}}]
        yield {**raw, "metadata": {**raw["metadata"], "uid": f"p{number}"}}


def volume(name: str) -> Iterator[dict[str, Any]]:
    annotations = {"pv.kubernetes.io/bind-completed": "yes"}
    source = {"csi": {"driver": CSI, "volumeHandle": name}}
    reference = {"name": name, "namespace": "default", "uid": f"of-{name}"}
    yield {
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {**source, "claimRef": reference, "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}},
    }
    yield {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "uid": f"of-{name}", "annotations": annotations},
        "spec": {"volumeName": name, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Bound"},
    }


def preemptor_of(raw: dict[str, Any], uid: str) -> Pod:
    """Return a pod; if it has volumes, no other pod uses them."""
    spec = dict(raw["spec"])
    if "volumes" in spec:
        spec["volumes"] = [{**spec["volumes"][0], "name": uid}]
    return Pod.from_raw({**raw, "metadata": {**raw["metadata"], "uid": uid}, "spec": spec})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=4, help="on each node")
    parser.add_argument("--nominated", type=int, default=0, help="minimum number of nodes with a nominated pod")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--only", choices=tuple(KINDS))
    options = parser.parse_args()
    engine = Engine(None, seed=1)
    for raw in objects(options.nodes, options.pods):
        engine.machine.cluster.put(parse(raw))
    gc.collect()
    gc.freeze()
    print(f"{'PREEMPTOR':<20} {'CANDIDATES':>10} {'LEAST MS':>9} {'MEDIAN':>8} {'MOST':>8}")
    for kind in [options.only] if options.only else KINDS:
        raw = pod("x", cpu="2", labels={"app": "a1"}, spec={"priority": 100, **KINDS[kind]})
        times = []
        found = 0
        nominator = Nominator()
        for number in range(options.nominated):
            nominator.add(preemptor_of(raw, f"nominated-{number}"), f"n{number}")
        for number in range(options.times):
            preemptor = preemptor_of(raw, f"x{number}")
            engine.machine.handle.current_pod = lambda key, preemptor=preemptor: preemptor
            began = process_time()
            result = drive(engine.machine.begin(preemptor, nominator.nominated))
            times.append((process_time() - began) * 1000)
            assert isinstance(result, FitError), "the nodes are full"
            assert result.post_filter is not None, "nodes were rejected"
            assert result.post_filter.victims, result.message
            found = len(result.post_filter.details.candidates)
            if options.nominated:
                nominator.add(preemptor, f"n{options.nominated + number}")
        print(f"{kind:<20} {found:>10,} {min(times):>9.1f} {median(times):>8.1f} {max(times):>8.1f}")


if __name__ == "__main__":
    main()
