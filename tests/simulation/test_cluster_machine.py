"""Tests of the invariants of a cluster after any operations in any order.

Nodes, pods, labels, taints, resources and volumes are added, changed and deleted, and time passes; after every step,
when no work is pending, these invariants hold:

* every pending pod is in exactly one queue or in flight, and the queue has no other pods;
* at the time of its binding, no pod exceeded its node's capacity or conflicted with its ports, taints or labels;
* the columns of the cache equal those of a cluster made from the stored objects;
* no pod is attempted repeatedly at one moment;
* the auditor finds no sleeping pod that fits on a node, except for those that kube-scheduler 1.34 misses as well.

By default, a few hundred steps run, always the same. 10,000 random steps take about a minute:

    KSCHEDD_STEPS=10000 pytest tests/simulation/test_cluster_machine.py
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.quantity import nanos
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.controllers.embedded import embedded_controllers
from kschedd.queue.entry import SubQueue
from kschedd.scheduling.records import Happened, PodBound
from kschedd.simulation.engine import Engine, LoggedAttempt
from kschedd.store.errors import ApiError, NotFound

Raw = dict[str, Any]

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
NODES = [f"n{number}" for number in range(3)]
PODS = [f"p{number:02}" for number in range(14)]
CLAIMS = [f"c{number}" for number in range(3)]
APPS = ["a", "b"]
VOLUMES = [f"v{number}" for number in range(3)]
STORAGE = [
    *(("PersistentVolumeClaim", name) for name in CLAIMS),
    *(("PersistentVolume", name) for name in VOLUMES),
    ("StorageClass", "fast"),
]
WANTED_STEPS = os.environ.get("KSCHEDD_STEPS")
STEPS = int(WANTED_STEPS or "600")
STEPS_A_RUN = 40
MOST_TRIES = 100  # of one pod at one moment, over several steps

node_names = st.sampled_from(NODES)
pod_names = st.sampled_from(PODS)
cpus = st.sampled_from(["500m", "1", "2", "3"])
zones = st.sampled_from(["x", "y", None])
taints = st.sampled_from(
    [
        [],
        [],
        [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}],
        [{"key": "soft", "value": "", "effect": "PreferNoSchedule"}],
    ]
)
tolerations = st.sampled_from([[], [], [{"key": "dedicated", "operator": "Exists"}]])
apps = st.sampled_from(APPS)


def term(app: str, key: str) -> Raw:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


@st.composite
def affinities(draw: st.DrawFn) -> Raw:
    """Draw node affinity, pod affinity, anti-affinity or spreading; usually none."""
    match draw(st.integers(0, 6)):
        case 0:
            expression = {"key": ZONE, "operator": draw(st.sampled_from(["In", "NotIn"])), "values": ["x"]}
            selector = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
            return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}}
        case 1 | 2:
            which = draw(st.sampled_from(["podAffinity", "podAntiAffinity"]))
            terms = [term(draw(apps), draw(st.sampled_from([ZONE, HOST])))]
            return {"affinity": {which: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
        case 3:
            constraint = {
                "maxSkew": 1,
                "topologyKey": draw(st.sampled_from([ZONE, HOST])),
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": draw(apps)}},
            }
            return {"topologySpreadConstraints": [constraint]}
        case _:
            return {}


@st.composite
def pods(draw: st.DrawFn) -> Raw:
    container: Raw = {"name": "c", "image": "i", "resources": {"requests": {"cpu": draw(cpus)}}}
    by_hand = draw(st.integers(0, 9)) == 0  # assigned to a node without the scheduler
    # Two pods assigned without the scheduler may use one host port of a node; as upstream, deleting one frees the port.
    if draw(st.integers(0, 5)) == 0 and not by_hand:
        container["ports"] = [{"containerPort": 80, "hostPort": 80}]
    spec: Raw = {"containers": [container], "tolerations": draw(tolerations), **draw(affinities())}
    if priority := draw(st.sampled_from([0, 0, 0, 1, 10])):
        spec["priorityClassName"] = f"level-{priority}"
    if draw(st.integers(0, 7)) == 0:
        spec["schedulingGates"] = [{"name": "wait"}]
    if draw(st.integers(0, 4)) == 0:
        claim = {"claimName": draw(st.sampled_from(CLAIMS))}
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": claim}]
    if by_hand:
        spec["nodeName"] = draw(node_names)
    name = draw(pod_names)
    meta: Raw = {"name": name, "namespace": "default", "labels": {"app": draw(apps)}}
    if draw(st.integers(0, 3)) == 0:
        meta["annotations"] = {"kschedd.io/run-seconds": str(draw(st.sampled_from([5, 60])))}
        spec["restartPolicy"] = draw(st.sampled_from(["Never", "OnFailure"]))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


@st.composite
def nodes(draw: st.DrawFn) -> Raw:
    name = draw(node_names)
    labels = {HOST: name}
    if zone := draw(zones):
        labels[ZONE] = zone
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": draw(taints), "unschedulable": draw(st.integers(0, 5)) == 0},
        "status": {"allocatable": {"cpu": draw(cpus), "memory": "8Gi", "pods": draw(st.sampled_from(["2", "110"]))}},
    }


@st.composite
def classes(draw: st.DrawFn) -> Raw:
    modes = ["Immediate", "WaitForFirstConsumer"]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast", "annotations": {"kschedd.io/provision-seconds": "2"}},
        "provisioner": draw(st.sampled_from(["csi.example.com", "kubernetes.io/no-provisioner"])),
        "volumeBindingMode": draw(st.sampled_from(modes)),
    }


@st.composite
def claims(draw: st.DrawFn) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": draw(st.sampled_from(CLAIMS)), "namespace": "default"},
        "spec": {
            "accessModes": [draw(st.sampled_from(["ReadWriteOnce", "ReadWriteOncePod"]))],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


@st.composite
def volumes(draw: st.DrawFn) -> Raw:
    spec: Raw = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce", "ReadWriteOncePod"],
        "storageClassName": "fast",
        "persistentVolumeReclaimPolicy": "Retain",
        "csi": {"driver": "csi.example.com", "volumeHandle": "h"},
    }
    if zone := draw(zones):
        expression = {"key": ZONE, "operator": "In", "values": [zone]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    name = draw(st.sampled_from(VOLUMES))
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


class ClusterMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.waited: set[str] = set()  # uids of pods whose binding had to wait, while the cluster may have changed
        self.tries: Counter[str] = Counter()  # since the last advance of the clock
        self.tries_at = 0.0
        self.engine = Engine(
            seed=1, controllers=embedded_controllers(), on_happened=self.happened, on_decision=self.decided, audit=True
        )
        for priority in (1, 10):
            self.engine.store.create(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": f"level-{priority}"},
                    "value": priority,
                }
            )

    # -- what happens -----------------------------------------------------------------------------------------

    @initialize(
        some_nodes=st.lists(nodes(), min_size=2, max_size=5),
        some_claims=st.lists(claims(), min_size=1, max_size=3),
        storage=classes(),
        some_pods=st.lists(pods(), min_size=6, max_size=20),
    )
    def begin(self, some_nodes: list[Raw], some_claims: list[Raw], storage: Raw, some_pods: list[Raw]) -> None:
        for raw in (*some_nodes, storage, *some_claims, *some_pods):
            self.create(raw, run_until_idle=False)
        self.engine.run_until_idle()

    @rule(node=nodes())
    def node_comes(self, node: Raw) -> None:
        self.create(node)

    @rule(name=node_names, cpu=cpus)
    def node_is_resized(self, name: str, cpu: str) -> None:
        self.patch("Node", name, {"status": {"allocatable": {"cpu": cpu}}}, "status")

    @rule(name=node_names, zone=zones)
    def node_is_labelled(self, name: str, zone: str | None) -> None:
        self.patch("Node", name, {"metadata": {"labels": {ZONE: zone}}})

    @rule(name=node_names, wanted=taints)
    def node_is_tainted(self, name: str, wanted: list[Raw]) -> None:
        self.patch("Node", name, {"spec": {"taints": wanted}})

    @rule(name=node_names, unschedulable=st.booleans())
    def node_is_cordoned_or_not(self, name: str, unschedulable: bool) -> None:
        self.patch("Node", name, {"spec": {"unschedulable": unschedulable}})

    @rule(pod=pods())
    def pod_comes(self, pod: Raw) -> None:
        self.create(pod)

    @rule(several=st.lists(pods(), min_size=2, max_size=5))
    def pods_come_at_once(self, several: list[Raw]) -> None:
        for pod in several:
            self.create(pod, run_until_idle=False)
        self.engine.run_until_idle()

    @rule(name=pod_names, grace=st.sampled_from([0, 30]))
    def pod_goes(self, name: str, grace: int) -> None:
        self.delete("Pod", name, grace)

    @rule(name=pod_names, app=apps)
    def pod_is_labelled(self, name: str, app: str) -> None:
        self.patch("Pod", name, {"metadata": {"labels": {"app": app}}})

    @rule(name=pod_names)
    def pod_is_let_through_its_gate(self, name: str) -> None:
        self.patch("Pod", name, {"spec": {"schedulingGates": None}})

    @rule(name=pod_names)
    def pod_tolerates_more(self, name: str) -> None:
        found = self.engine.store.find("Pod", "default", name)
        if found is not None:
            more = [*(found.spec.get("tolerations") or ()), {"key": "dedicated", "operator": "Exists"}]
            self.patch("Pod", name, {"spec": {"tolerations": more}})

    @rule(claim=claims())
    def claim_comes(self, claim: Raw) -> None:
        self.create(claim)

    @rule(volume=volumes())
    def volume_comes(self, volume: Raw) -> None:
        self.create(volume)

    @rule(storage=classes())
    def class_comes(self, storage: Raw) -> None:
        self.create(storage)

    @rule(which=st.sampled_from([*(("Node", name) for name in NODES), *STORAGE]))
    def something_goes(self, which: tuple[str, str]) -> None:
        self.delete(*which)

    @rule(seconds=st.sampled_from([0.5, 1.0, 3.0, 12.0, 40.0, 330.0]))
    def time_passes(self, seconds: float) -> None:
        self.engine.advance(self.engine.now + seconds)

    # -- what must hold ---------------------------------------------------------------------------------------

    @invariant()
    def every_pending_pod_is_in_one_place(self) -> None:
        queue = self.engine.queue
        self.waited.update(self.engine.driver.bindings.cycles)
        pending = {pod.key for pod in self.pods() if not pod.node_name and not pod.finished}
        places: dict[str, list[str]] = {}
        for place in SubQueue:
            for entry in () if place is SubQueue.OUTSIDE else queue.entries(place):
                assert entry.place is place
                places.setdefault(entry.key, []).append(place.value)
        for underway in self.engine.driver.bindings.cycles.values():
            key = underway.assumed.pod.key
            if key not in places:
                places[key] = ["being bound"]
        assert {key: len(found) for key, found in places.items()} == dict.fromkeys(places, 1)
        being_deleted = {pod.key for pod in self.pods() if pod.deletion_timestamp}
        assert pending - places.keys() <= being_deleted
        assert places.keys() <= pending | {u.assumed.pod.key for u in self.engine.driver.bindings.cycles.values()}
        assert len(queue.entries(SubQueue.ACTIVE)) == 0

    @invariant()
    def nominated_pods_are_pending(self) -> None:
        pending = {pod.uid for pod in self.pods() if not pod.node_name}
        nominated = {uid for there in self.engine.driver.nominator.nodes.values() for uid in there}
        assert nominated <= pending

    @invariant()
    def the_cache_equals_one_made_from_the_objects(self) -> None:
        kept = self.engine.machine.cluster
        fresh = SchedulerCache()
        store = self.engine.store
        for kind in store.kinds():
            fresh.load(store.list(kind))
        assumed = [underway.assumed.pod for underway in self.engine.driver.bindings.cycles.values()]
        for pod in assumed:
            if fresh.pod(pod.uid) is None:
                fresh.put(pod)
        assert rows(kept) == rows(fresh)

    @invariant()
    def no_fitting_pod_is_left_asleep(self) -> None:
        assert self.engine.auditor is not None
        missed, self.engine.auditor.missed = self.engine.auditor.missed, []
        unknown = [found for found in missed if not found.upstream_gap]
        assert not unknown, "\n".join(map(str, unknown))

    def decided(self, decision: LoggedAttempt) -> None:
        if decision.time_s != self.tries_at:
            self.tries.clear()
            self.tries_at = decision.time_s
        self.tries[decision.pod] += 1
        assert self.tries[decision.pod] < MOST_TRIES, f"{decision} again and again"

    def happened(self, entries: Sequence[Happened]) -> None:
        for entry in entries:
            if isinstance(entry, PodBound):
                self.bound(entry)

    def bound(self, entry: PodBound) -> None:
        """Check a pod that was just bound: nothing has changed since the decision."""
        pod = self.engine.store.get("Pod", *entry.pod.split("/"))
        assert isinstance(pod, Pod)
        node = self.engine.store.find("Node", "", pod.node_name)
        if not isinstance(node, Node):
            return  # it was deleted while the pod waited for its volumes
        there = [other for other in self.engine.store.pods_on(node.name) if not other.finished]
        if pod.uid not in self.waited:
            assert sum(nanos(cpu_of(other)) for other in there) <= nanos(node.status["allocatable"]["cpu"])
            assert len(there) <= int(node.status["allocatable"]["pods"])
            assert not node.unschedulable
            keys = {t.get("key") for t in pod.spec.get("tolerations") or ()}
            assert all(t["key"] in keys for t in node.spec.get("taints") or () if t["effect"] == "NoSchedule")
            taken = {port for other in there if other.uid != pod.uid for port in other.pod_spec.host_ports}
            assert taken.isdisjoint(pod.pod_spec.host_ports)

    # -- how ---------------------------------------------------------------------------------------------------

    def pods(self) -> list[Pod]:
        return [pod for pod in self.engine.store.list("Pod") if isinstance(pod, Pod)]

    def create(self, raw: Raw, *, run_until_idle: bool = True) -> None:
        try:
            self.engine.store.create(raw)
        except ApiError:
            return  # it exists already, or was rejected
        if run_until_idle:
            self.engine.run_until_idle()

    def delete(self, kind: str, name: str, grace_s: int | None = None) -> None:
        namespaced = kind in ("Pod", "PersistentVolumeClaim")
        try:
            self.engine.store.delete(kind, "default" if namespaced else "", name, grace_period_s=grace_s)
        except NotFound:
            return
        self.engine.run_until_idle()

    def patch(self, kind: str, name: str, patch: Raw, subresource: Any = "") -> None:
        namespace = "default" if kind == "Pod" else ""
        try:
            self.engine.store.merge_patch(kind, namespace, name, patch, subresource=subresource)
        except ApiError:
            return
        self.engine.run_until_idle()


def cpu_of(pod: Pod) -> str:
    requests: Mapping[str, str] = pod.spec["containers"][0]["resources"]["requests"]
    return requests["cpu"]


def rows(cluster: SchedulerCache) -> dict[str, Any]:
    """Return the column values of each node, by name."""
    table = cluster.table
    return {
        name: (
            {resource: int(table.allocatable[number][row]) for resource, number in table.resources.items()},
            {resource: int(table.requested[number][row]) for resource, number in table.resources.items()},
            np.asarray(table.nonzero[:, row]).tolist(),
            int(table.pod_count[row]),
            bool(table.unschedulable[row]),
            table.taint_sets[int(table.taints[row])],
            sorted(pod.key for pod in table.pods[row]),
            sorted(table.ports.get(row, ())),
        )
        for name, row in sorted(table.row_of.items())
    }


ClusterMachine.TestCase.settings = settings(
    max_examples=max(1, STEPS // STEPS_A_RUN),
    stateful_step_count=STEPS_A_RUN,
    deadline=None,
    derandomize=WANTED_STEPS is None,  # the same steps in every run, unless a number of steps is set
    suppress_health_check=list(HealthCheck),
)
TestCluster = ClusterMachine.TestCase
