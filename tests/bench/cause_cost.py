"""Benchmark of causes and remedies at 5,000 nodes and 50,000 pods, compared to an explanation and a fork.

`python -m tests.bench.cause_cost [--nodes N] [--pods N] [--only NAME ...] [--no-remedies] [--pending N]` creates for
each cause a workload of 10 replicas with this mistake. It prints the CPU time of `scheduler.explain` for one pod, of
the cause (also as a multiple of it), of one fork, and of the first and all remedies in forks. `--pending N` prints the
CPU time for all causes of N pending pods in N / 5 workloads.
"""

import argparse
import gc
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import process_time
from typing import Any, Final

from kschedd.api.pods import Pod
from kschedd.causes.diagnosis import diagnosis
from kschedd.causes.pending import pending_groups
from kschedd.clusters.virtual import VirtualCluster
from kschedd.explain.explain import explain
from kschedd.garbage_collection import freeze_gc
from kschedd.methods import daemon_methods
from kschedd.sdk.objects import deployment, node, pod
from kschedd.simulation.engine import Engine

Raw = dict[str, Any]
ZONE: Final = "topology.kubernetes.io/zone"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
SPACE: Final = "case"
VICTIMS: Final = "victims"  # name of the case that is measured before its victims have terminated
FEW: Final = 5  # replicas of each pending workload


def _affinity(which: str, app: str, key: str = ZONE, **more: Any) -> Raw:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}
    return {"affinity": {which: {REQUIRED: [term]}}}


def _spread(app: str, **more: Any) -> Raw:
    selector = {"matchLabels": {"app": app}}
    each = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"topologySpreadConstraints": [{**each, **more}]}


def _web(replicas: int = 10, cpu: str = "100m", memory: str = "64Mi", **spec: Any) -> Raw:
    resources = spec.pop("resources", None)
    made = deployment("web", replicas, cpu=cpu, memory=memory, spec=spec, resources=resources)
    made["metadata"]["namespace"] = SPACE
    return made


def _object(api: str, kind: str, name: str, **more: Any) -> Raw:
    namespaced = kind in ("PersistentVolumeClaim", "ResourceQuota", "LimitRange", "ResourceClaimTemplate")
    place = {"namespace": SPACE} if namespaced else {}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **place}, **more}


def _claim(name: str, **spec: Any) -> Raw:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return _object("v1", "PersistentVolumeClaim", name, spec=wanted)


def _claiming(name: str) -> list[Raw]:
    return [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]


_ZONAL: Final = {
    "capacity": {"storage": "1Gi"},
    "accessModes": ["ReadWriteOnce"],
    "csi": {"driver": "d.example.com", "volumeHandle": "v"},
    "storageClassName": "manual",
    "nodeAffinity": {
        "required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["z0"]}]}]}
    },
}
_PORT: Final = [
    {"name": "main", "image": "i", "ports": [{"containerPort": 9100, "hostPort": 9100}]},
]
CASES: Final[Mapping[str, Sequence[Raw]]] = {
    "resources, above every node": [_web(cpu="64")],
    "resources, full": [_web(cpu="8")],
    "resources, misspelled": [_web(resources={"example.com/gpuu": "1"})],
    "label, misspelled": [_web(nodeSelector={"node-pool": "genral"})],
    "label, two demands": [_web(nodeSelector={"node-pool": "general", ZONE: "z9"})],
    "taint, not tolerated": [_web(nodeSelector={"node-pool": "special"})],
    "taint, misspelled": [
        _web(nodeSelector={"node-pool": "special"}, tolerations=[{"key": "dedicated", "value": "speical"}])
    ],
    "spread, key": [_web(**_spread("web", topologyKey="topology.kubernetes.io/zoen"))],
    "spread, unusable zone": [_web(**_spread("web"))],
    "spread, too few domains": [_web(**_spread("web", minDomains=9, nodeTaintsPolicy="Honor"))],
    "anti-affinity, of its own": [_web(**_affinity("podAntiAffinity", "web"))],
    "anti-affinity, to others": [_web(**_affinity("podAntiAffinity", "a1", namespaces=["default"]))],
    "anti-affinity, of others": [
        {**_web(3, **_affinity("podAntiAffinity", "web")), "metadata": {"name": "apart", "namespace": SPACE}},
        _web(),
    ],
    "affinity, misspelled": [_web(**_affinity("podAffinity", "a1x", namespaces=["default"]))],
    "affinity, other namespace": [_web(**_affinity("podAffinity", "a1"))],
    "affinity, full": [_web(cpu="8", **_affinity("podAffinity", "a1", namespaces=["default"]))],
    "volume, other zone": [
        _object("v1", "PersistentVolume", "pv", spec=_ZONAL),
        _claim("data", storageClassName="manual", volumeName="pv"),
        _web(1, volumes=_claiming("data"), nodeSelector={ZONE: "z1"}),
    ],
    "volume, class misspelled": [
        _object("storage.k8s.io/v1", "StorageClass", "standard", provisioner="d.example.com"),
        _claim("data", storageClassName="standrad"),
        _web(volumes=_claiming("data")),
    ],
    "port, held by a DaemonSet": [_web(containers=_PORT)],
    "quota": [
        _object("v1", "ResourceQuota", "team", spec={"hard": {"requests.cpu": "500m"}}),
        _web(),
    ],
    "priority, never preempts": [
        _object("scheduling.k8s.io/v1", "PriorityClass", "calm", value=10, preemptionPolicy="Never"),
        _web(cpu="8", priorityClassName="calm"),
    ],
    "preemption, victims": [
        _object("scheduling.k8s.io/v1", "PriorityClass", "high", value=10),
        _web(cpu="8", priorityClassName="high"),
    ],
    "preemption, equals": [
        _object("scheduling.k8s.io/v1", "PriorityClass", "high", value=10),
        _web(cpu="64", priorityClassName="high"),
    ],
    "devices, class missing": [
        _object(
            "resource.k8s.io/v1",
            "ResourceClaimTemplate",
            "gpu",
            spec={"spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "none"}}]}}},
        ),
        _web(resourceClaims=[{"name": "a", "resourceClaimTemplateName": "gpu"}]),
    ],
    "gate": [_web(schedulingGates=[{"name": "example.com/wait"}])],
    "scheduler misspelled": [_web(schedulerName="defualt-scheduler")],
    "healthy": [_web()],
    "healthy, 1,000 replicas": [_web(1_000)],
    "label, 1,000 replicas": [_web(1_000, nodeSelector={"node-pool": "genral"})],
}


def cluster(nodes: int, pods: int) -> VirtualCluster:
    """Return a cluster of nodes with 16 CPUs each, of which pods request 15; a tenth of the nodes is tainted."""
    made = VirtualCluster(None, seed=1)
    store = made.engine.store
    for number in range(nodes):
        special = number % 10 == 0
        store.create(
            node(
                f"n{number}",
                cpu="16",
                memory="64Gi",
                labels={ZONE: "z9" if special else f"z{number % 3}", "node-pool": "special" if special else "general"},
                taints=[{"key": "dedicated", "value": "special", "effect": "NoSchedule"}] if special else (),
                resources={"example.com/gpu": "4"} if special else {},
            )
        )
    sets = {}
    for number in range(100):
        raw = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": f"a{number}", "namespace": "default"},
            "spec": {
                "replicas": sum(1 for n in range(pods) if n % 100 == number),
                "selector": {"matchLabels": {"app": f"a{number}"}},
                "template": {"metadata": {"labels": {"app": f"a{number}"}}, "spec": {"containers": _PORT}},
            },
        }
        sets[number] = store.create(raw)
    raws = []
    for number in range(pods):
        owner = sets[number % 100]
        place = number % nodes
        agent = number < nodes
        raw = pod(
            f"p{number}",
            cpu="1500m",
            memory="256Mi",
            node_name=f"n{place}",
            labels={"app": f"a{number % 100}"},
        )
        if agent:
            raw["spec"]["containers"][0]["ports"] = [{"containerPort": 9100, "hostPort": 9100}]
        raw["metadata"]["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner.name, "uid": owner.uid, "controller": True}
        ]
        ready = [{"type": "Ready", "status": "True"}]
        raw["status"] = {"phase": "Running", "startTime": "2025-01-01T00:00:00Z", "conditions": ready}
        raws.append(raw)
    for result in store.create_many(raws, restore=True):
        assert isinstance(result, Pod), result
    made.engine.run_to_rest(60.0)
    return made


def timed(work: Callable[[], Any], times: int) -> tuple[float, Any]:
    """Return the median CPU time in seconds, and the last result."""
    took, result = [], None
    for _ in range(times):
        gc.collect()  # frees the memory of the previous case, because new memory is slower than reused memory
        began = process_time()
        result = work()
        took.append(process_time() - began)
    return median(took), result


def forked(engine: Engine) -> None:
    VirtualCluster(resumed=engine.snapshot()).engine.close()


def examined(engine: Engine, name: str) -> Pod | None:
    found = engine.store.find("Pod", SPACE, name.partition("/")[2]) if name else None
    return found if isinstance(found, Pod) else None


def measure(made: VirtualCluster, name: str, times: int, *, remedies: bool) -> str:
    engine = made.engine
    nodes = engine.store.count("Node")
    engine.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}})
    for raw in CASES[name]:
        engine.store.create(raw)
        engine.advance(engine.now + (1.0 if VICTIMS in name else 60.0))
    obj = engine.store.get("Deployment", SPACE, "web")
    cause_s, answer = timed(lambda: diagnosis(engine, obj, daemon_methods, trying=False), times)
    one = examined(engine, answer.examined)
    explain_s = None
    if one is not None and one.scheduler_name in engine.machine.schedulers:
        nominated = engine.driver.nominator.by_node()
        explain_s, _ = timed(lambda: explain(engine.machine, one, nominated), times)
    fork_s, _ = timed(lambda: forked(engine), times)
    text = f"{name:28} {answer.cause.code:26} {1e3 * (explain_s or 0):8.1f} {1e3 * cause_s:8.1f} "
    text += f"{cause_s / explain_s if explain_s else 0:6.2f} {1e3 * fork_s:8.1f}"
    if remedies:
        first_s, first = timed(lambda: diagnosis(engine, obj, daemon_methods, most=1), 1)
        all_s, found = timed(lambda: diagnosis(engine, obj, daemon_methods), 1)
        counts = f"{len(found.remedies)}/{len(found.tried)}"
        text += f" {first_s / fork_s:8.1f} {all_s / fork_s:8.1f} {counts:>6}"
        if not first.remedies:
            text += " none"
    for raw in CASES[name]:
        meta = raw["metadata"]
        engine.store.delete(raw["kind"], meta.get("namespace", ""), meta["name"])
    engine.store.delete("Namespace", "", SPACE)
    engine.run_to_rest(300.0)
    assert engine.store.find("Namespace", "", SPACE) is None
    assert engine.store.count("Node") == nodes
    return text


def many(made: VirtualCluster, pods: int) -> str:
    """Measure the groups of many pending workloads with several mistakes."""
    engine = made.engine
    mistakes = [name for name in CASES if len(CASES[name]) == 1 and "healthy" not in name and "1,000" not in name]
    engine.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}})
    for number in range(pods // FEW):
        (raw,) = CASES[mistakes[number % len(mistakes)]]
        engine.store.create(
            {
                **raw,
                "metadata": {**raw["metadata"], "name": f"web-{number}"},
                "spec": {**raw["spec"], "replicas": FEW},
            }
        )
    engine.run_to_rest(60.0)
    took, groups = timed(lambda: pending_groups(engine, None, lambda: None), 1)
    count = sum(group.count for group in groups)
    return f"{count:,} pending pods in {pods // FEW} workloads, {len(groups)} causes: {took:.2f} s of CPU"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[], help="parts of the names of cases")
    parser.add_argument("--no-remedies", action="store_true")
    parser.add_argument("--pending", type=int, default=0)
    options = parser.parse_args()
    made = cluster(options.nodes, options.pods)
    freeze_gc()  # as the daemon does
    gc.disable()  # otherwise a full collection would be part of one row
    print(
        f"{'CASE':28} {'CAUSE':26} {'EXPL MS':>8} {'CAUSE MS':>8} {'RATIO':>6} {'FORK MS':>8} {'FIRST':>8} {'ALL':>8} "
        f"{'FOUND':>6}",
        flush=True,
    )
    for name in CASES:
        if not options.only or any(part in name for part in options.only):
            print(measure(made, name, options.times, remedies=not options.no_remedies), flush=True)
    if options.pending:
        print(many(made, options.pending), flush=True)


if __name__ == "__main__":
    main()
