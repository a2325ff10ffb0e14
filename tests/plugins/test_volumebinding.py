"""Tests of VolumeBinding: verdicts, assumed volumes, writes, and the volume controllers' reactions."""

from typing import Any

import numpy as np
import pytest

from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.versions.feature_gates import defaults
from kschedd.config.versions.kube_versions import V1_34, V1_35, KubernetesVersion
from kschedd.config.versions.rules import Rules
from kschedd.controllers.runner import ControllerRunner
from kschedd.controllers.running.controller import Controller
from kschedd.controllers.storage.provisioner import Provisioner
from kschedd.controllers.storage.volumes import VolumeController
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import QUEUE, QUEUE_SKIP, EventResource
from kschedd.framework.handle import Handle
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.status import SKIP, Code, Status
from kschedd.framework.writes import Plan, Update
from kschedd.plugins.volumes.volumebinding import CAPACITY_SHAPE, VolumeBinding, VolumeBindingArgs
from kschedd.storage.claims import SELECTED_NODE
from kschedd.store.store import Store

NO_MATCH = "node(s) didn't find available persistent volumes to bind"
WRONG_NODE = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def make(kind: str, name: str, namespace: str = "", **fields: Any) -> Object:
    meta = {"name": name, "uid": f"{kind}-{name}", **fields.pop("metadata", {})}
    if namespace:
        meta["namespace"] = namespace
    return parse({"kind": kind, "metadata": meta, **fields})


def node(name: str, **labels: str) -> Object:
    return make("Node", name, metadata={"labels": labels})


def claim(name: str = "data", *, annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    base = {
        "storageClassName": "local",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "5Gi"}},
    }
    meta = {"annotations": annotations or {}}
    return make(
        "PersistentVolumeClaim", name, "default", metadata=meta, spec={**base, **spec}, status={"phase": "Pending"}
    )


def volume(name: str, zone: str = "", size: str = "5Gi", **spec: Any) -> Object:
    base: dict[str, Any] = {
        "storageClassName": "local",
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
    }
    if zone:
        demand = {"key": "zone", "operator": "In", "values": [zone]}
        base["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [demand]}]}}
    return make("PersistentVolume", name, spec={**base, **spec}, status={"phase": "Available"})


def storage_class(name: str = "local", mode: str = "WaitForFirstConsumer", **fields: Any) -> Object:
    fields = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": mode, **fields}
    return make("StorageClass", name, **fields)


def pod(*claims: str, name: str = "web", volumes: list[dict[str, Any]] | None = None) -> Pod:
    used: list[dict[str, Any]] = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    made = make("Pod", name, "default", spec={"containers": [], "volumes": [*used, *(volumes or [])]})
    assert isinstance(made, Pod)
    return made


class Trial:
    """The plugin in a cluster of its own."""

    def __init__(self, *objects: Object, args: VolumeBindingArgs | None = None, gates: dict[str, bool] | None = None):
        self.cluster = SchedulerCache()
        self.cluster.load(objects)
        states = {**defaults(V1_34.gates), **(gates or {})}
        self.plugin = VolumeBinding.from_args(
            args, Handle(self.cluster, feature_gates=states, rules=V1_34.rules.under(states))
        )
        self.state = CycleState()

    def verdicts(self, wanted: Pod) -> dict[str, list[str]] | Status:
        rejected = self.plugin.pre_filter(self.state, wanted, self.cluster)
        if rejected is not None:
            return rejected
        found = {}
        table = self.cluster.table
        known = self.plugin.known_to_pass(self.state, wanted, table, np.array(list(table), dtype=np.int64)).tolist()
        for (name, row), passes in zip(table.row_of.items(), known, strict=True):
            status = self.plugin.filter(self.state, wanted, NodeInfo(table, row))
            assert not passes or status is None, f"{name} need not be asked about, and is rejected"
            found[name] = [] if status is None else list(status.reasons)
            assert status is None or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        return found


def rejection(trial: Trial, wanted: Pod) -> tuple[str, str]:
    status = trial.verdicts(wanted)
    assert isinstance(status, Status)
    return status.code.label, status.message


def test_pod_without_claims_is_skipped_everywhere() -> None:
    trial = Trial(node("a"))
    wanted = pod(volumes=[{"name": "tmp", "emptyDir": {}}])
    assert trial.verdicts(wanted) is SKIP
    assert trial.plugin.reserve(trial.state, wanted, "a") is None
    assert trial.plugin.pre_bind_pre_flight(trial.state, wanted, "a") is SKIP
    assert trial.plugin.pre_bind(trial.state, wanted, "a") is None


EPHEMERAL = [{"name": "tmp", "ephemeral": {"volumeClaimTemplate": {}}}]


@pytest.mark.parametrize(
    ("objects", "wanted", "why"),
    [
        ([], pod("data"), 'persistentvolumeclaim "data" not found'),
        (
            [],
            pod(volumes=EPHEMERAL),
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "web-tmp"',
        ),
        (
            [claim("web-tmp")],
            pod(volumes=EPHEMERAL),
            "PVC default/web-tmp was not created for pod default/web (pod is not owner)",
        ),
        (
            [make("PersistentVolumeClaim", "data", "default", spec={"volumeName": "v"}, status={"phase": "Lost"})],
            pod("data"),
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "v"',
        ),
        (
            [make("PersistentVolumeClaim", "data", "default", metadata={"deletionTimestamp": "2025-01-01T00:00:00Z"})],
            pod("data"),
            'persistentvolumeclaim "data" is being deleted',
        ),
        ([claim(), storage_class(mode="Immediate")], pod("data"), "pod has unbound immediate PersistentVolumeClaims"),
        ([claim(storageClassName="")], pod("data"), "pod has unbound immediate PersistentVolumeClaims"),
        ([claim(volumeName="v"), storage_class()], pod("data"), "pod has unbound immediate PersistentVolumeClaims"),
    ],
)
def test_claims_that_keep_the_pod_from_every_node(objects: list[Object], wanted: Pod, why: str) -> None:
    assert rejection(Trial(node("a"), *objects), wanted) == ("UnschedulableAndUnresolvable", why)


def test_class_without_binding_mode_is_an_error() -> None:
    trial = Trial(claim(), make("StorageClass", "local", provisioner="x"))
    assert rejection(trial, pod("data")) == ("Error", 'VolumeBindingMode not set for StorageClass "local"')


def test_bound_volume_is_used_from_where_it_is() -> None:
    trial = Trial(
        node("a", zone="a"),
        node("b", zone="b"),
        claim(annotations=BOUND, volumeName="v"),
        claim("gone", annotations=BOUND, volumeName="gone"),
        volume("v", "a"),
    )
    assert trial.verdicts(pod("data")) == {"a": [], "b": [WRONG_NODE]}
    assert trial.verdicts(pod("gone", "data")) == {"a": [NO_VOLUME], "b": [NO_VOLUME]}


@pytest.mark.parametrize(
    ("claims", "known"),
    [
        pytest.param(["data"], True, id="bound-to-a-volume-for-every-node"),
        pytest.param(["data", "disk"], True, id="one-of-a-plugin-that-some-nodes-have-migrated"),
        pytest.param(["data", "zonal"], False, id="one-that-is-for-some-nodes-once-migrated"),
        pytest.param(["data", "here"], False, id="one-for-some-nodes"),
        pytest.param(["data", "gone"], False, id="one-that-is-not-there"),
        pytest.param(["data", "later"], False, id="one-to-be-bound"),
    ],
)
def test_no_node_is_asked_about_for_volumes_that_any_can_use(claims: list[str], known: bool) -> None:
    objects = [
        claim(annotations=BOUND, volumeName="v"),
        volume("v"),
        claim("here", annotations=BOUND, volumeName="w"),
        volume("w", "a"),
        claim("disk", annotations=BOUND, volumeName="disk"),
        volume("disk", awsElasticBlockStore={"volumeID": "vol-1"}),
        claim("zonal", annotations=BOUND, volumeName="zonal"),
        _in_zone(volume("zonal", awsElasticBlockStore={"volumeID": "vol-2"})),
        claim("gone", annotations=BOUND, volumeName="gone"),
        claim("later"),
        storage_class(),
    ]
    trial, wanted = Trial(node("a"), *objects), pod(*claims)
    assert trial.plugin.pre_filter(trial.state, wanted, trial.cluster) is None
    requests = trial.plugin.known_to_pass(trial.state, wanted, trial.cluster.table, np.array([0]))
    assert requests.tolist() == [known]
    if known:  # It is reserved without a call of the filter, and no volume is to be bound.
        assert trial.plugin.reserve(trial.state, wanted, "a") is None
        assert trial.plugin.pre_bind_pre_flight(trial.state, wanted, "a") is SKIP


def test_in_tree_volume_is_used_by_the_drivers_keys_where_the_node_was_migrated() -> None:
    ebs = volume("v", "a", awsElasticBlockStore={"volumeID": "vol-1"})
    ebs = make("PersistentVolume", "v", spec={**ebs.spec, "nodeAffinity": _zone_affinity("a")})
    migrated = {"annotations": {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}}
    zone = {"topology.kubernetes.io/zone": "a"}
    trial = Trial(
        node("old", **zone),
        node("new", **zone, **{"topology.ebs.csi.aws.com/zone": "a"}),
        node("unlabelled", **zone),
        make("CSINode", "new", metadata=migrated),
        make("CSINode", "unlabelled", metadata=migrated),
        claim(annotations=BOUND, volumeName="v"),
        ebs,
    )
    assert trial.verdicts(pod("data")) == {"old": [], "new": [], "unlabelled": [WRONG_NODE]}


def _in_zone(volume: Object) -> Object:
    labels = {"topology.kubernetes.io/zone": "a"}
    return parse({**volume.raw, "metadata": {**volume.raw["metadata"], "labels": labels}})


def _zone_affinity(zone: str) -> dict[str, Any]:
    demand = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [demand]}]}}


def test_two_claims_take_two_volumes_smallest_first() -> None:
    trial = Trial(
        node("a", zone="a"),
        node("b", zone="b"),
        storage_class(),
        claim("large", resources={"requests": {"storage": "8Gi"}}),
        claim("small", resources={"requests": {"storage": "2Gi"}}),
        volume("a3", "a", "3Gi"),
        volume("a9", "a", "9Gi"),
        volume("b9", "b", "9Gi"),
    )
    assert trial.verdicts(pod("large", "small")) == {"a": [], "b": [NO_MATCH]}


def test_claim_with_a_node_chosen_fits_there_only() -> None:
    dynamic = storage_class(provisioner="csi.example.com")
    trial = Trial(node("a"), node("b"), dynamic, claim(annotations={SELECTED_NODE: "b"}))
    assert trial.verdicts(pod("data")) == {"a": [NO_MATCH], "b": []}


def test_selector_that_cannot_be_read_is_the_nodes_error() -> None:
    trial = Trial(node("a"), storage_class(), claim(selector={"matchExpressions": [{"key": "a", "operator": "Is"}]}))
    wanted = pod("data")
    assert trial.plugin.pre_filter(trial.state, wanted, trial.cluster) is None
    status = trial.plugin.filter(trial.state, wanted, NodeInfo(trial.cluster.table, trial.cluster.table.row_of["a"]))
    assert status is not None
    assert status.code is Code.ERROR


def test_reserved_volume_is_out_of_the_question_until_it_is_given_back() -> None:
    trial = Trial(node("a"), storage_class(), claim("one"), claim("two"), volume("only"))
    first, second = pod("one", name="first"), pod("two", name="second")
    assert trial.verdicts(first) == {"a": []}
    assert trial.plugin.reserve(trial.state, first, "a") is None
    taken = trial.state
    trial.state = CycleState()
    assert trial.verdicts(second) == {"a": [NO_MATCH]}
    trial.plugin.unreserve(taken, first, "a")
    assert trial.verdicts(second) == {"a": []}


def test_a_node_that_was_not_filtered_has_no_volumes_to_bind() -> None:
    trial = Trial(node("n"), storage_class(), claim(storageClassName="local"), volume("v", storageClassName="local"))
    state, wanted = CycleState(), pod("data")
    assert trial.plugin.pre_filter(state, wanted, trial.cluster) is None
    why = Status(Code.ERROR, ('no pod volume found for node "elsewhere"',))
    assert trial.plugin.pre_bind_pre_flight(state, wanted, "elsewhere") == why
    assert trial.plugin.pre_bind(state, wanted, "elsewhere") == why


def test_no_score_unless_its_gate_is_on() -> None:
    off = Trial(args=VolumeBindingArgs(shape=CAPACITY_SHAPE))
    assert off.plugin.pre_score(off.state, pod(), off.cluster, None) is SKIP
    assert off.plugin.score_rows(off.state, pod(), off.cluster.table, np.zeros(2, dtype=np.int64)).tolist() == [0, 0]


def test_pods_on_a_node_do_not_affect_its_verdict() -> None:
    assert not Trial().plugin.affected_by(pod("data").pod_spec)


@pytest.mark.parametrize(("capacity", "score"), [("5Gi", 0), ("10Gi", 50), ("50Gi", 90), ("1Gi", 0), (None, 0)])
def test_the_less_of_the_room_a_volume_takes_the_better(capacity: str | None, score: int) -> None:
    room = {"storageClassName": "local", "maximumVolumeSize": "90Gi", "nodeTopology": {}}
    if capacity is not None:  # where kube-scheduler 1.37.2 crashes
        room["capacity"] = capacity
    trial = Trial(
        node("a"),
        storage_class(provisioner="csi.example.com"),
        make("CSIDriver", "csi.example.com", spec={"storageCapacity": True}),
        make("CSIStorageCapacity", "c", "kube-system", **room),
        claim(),
        args=VolumeBindingArgs(shape=CAPACITY_SHAPE),
        gates={"StorageCapacityScoring": True},
    )
    wanted = pod("data")
    assert trial.verdicts(wanted) == {"a": []}
    assert trial.plugin.pre_score(trial.state, wanted, trial.cluster, None) is None
    assert trial.plugin.score_rows(trial.state, wanted, trial.cluster.table, np.array([0])).tolist() == [score]


# --- binding, with a store and the controllers of the embedded cluster -----------------------------------------------


class Embedded:
    """A store, the volume controllers, a scheduler's cluster that watches the store, and the plugin."""

    def __init__(self, *raws: dict[str, Any], bind_timeout_s: int = 600, rules: Rules = V1_34.rules) -> None:
        self.now = 0.0
        self.store = Store(now=lambda: self.now)
        controllers: list[Controller] = [VolumeController(), Provisioner(delay_s=5)]
        self.settling = ControllerRunner(self.store, controllers)
        self.watch = self.store.watch(None)
        self.cluster = SchedulerCache()
        for raw in raws:
            self.store.create(raw)
        self.settling.run_until_idle()
        self.follow()
        args = VolumeBindingArgs(bind_timeout_s=bind_timeout_s)
        self.plugin = VolumeBinding.from_args(args, Handle(self.cluster, rules=rules))
        self.state = CycleState()

    def follow(self) -> None:
        for event in self.watch.take():
            if event.type == "DELETED":
                self.cluster.remove(event.new)
            else:
                self.cluster.put(event.new)

    def advance(self, seconds: float) -> None:
        self.now += seconds
        self.settling.run_until_idle()
        self.follow()

    def reserve(self, name: str, node_name: str) -> tuple[Pod, Plan]:
        wanted = self.store.get("Pod", "default", name)
        assert isinstance(wanted, Pod)
        assert self.plugin.pre_filter(self.state, wanted, self.cluster) is None
        row = self.cluster.table.row_of[node_name]
        assert self.plugin.filter(self.state, wanted, NodeInfo(self.cluster.table, row)) is None
        self.cluster.assume(wanted, node_name)
        assert self.plugin.reserve(self.state, wanted, node_name) is None
        assert self.plugin.pre_bind_pre_flight(self.state, wanted, node_name) is None
        plan = self.plugin.pre_bind(self.state, wanted, node_name)
        assert isinstance(plan, Plan)
        return wanted, plan

    def carry_out(self, plan: Plan) -> None:
        for write in plan.writes:
            assert isinstance(write, Update)
            self.store.update(write.raw)
        self.settling.run_until_idle()

    def ready(self, plan: Plan) -> Status | None:
        assert plan.ready is not None
        return plan.ready(self.cluster)


def raw_node(name: str, zone: str) -> dict[str, Any]:
    labels = {"topology.kubernetes.io/zone": zone}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def raw_class(**fields: Any) -> dict[str, Any]:
    base = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "local"}}
    return {**base, "provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer", **fields}


def raw_claim() -> dict[str, Any]:
    spec = {
        "storageClassName": "local",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    meta = {"name": "data", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def raw_volume(zone: str) -> dict[str, Any]:
    spec = {
        "storageClassName": "local",
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "local": {"path": "/x"},
        "nodeAffinity": _zone_affinity(zone),
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": spec}


RAW_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    },
}


def test_existing_volume_is_bound_and_the_wait_ends() -> None:
    cluster = Embedded(raw_node("n", "a"), raw_class(), raw_claim(), raw_volume("a"), RAW_POD)
    _, plan = cluster.reserve("web", "n")
    cluster.carry_out(plan)
    assert cluster.ready(plan) is None  # no event of its writes has arrived yet
    cluster.advance(0)
    status = cluster.ready(plan)
    assert status is not None
    assert status.code is Code.SUCCESS
    assert cluster.store.get("PersistentVolumeClaim", "default", "data").spec["volumeName"] == "disk"
    again = CycleState()
    wanted = cluster.store.get("Pod", "default", "web")
    assert isinstance(wanted, Pod)
    assert cluster.plugin.pre_filter(again, wanted, cluster.cluster) is None
    assert cluster.plugin.filter(again, wanted, NodeInfo(cluster.cluster.table, 0)) is None


def test_volume_is_made_where_the_pod_goes_and_the_wait_ends() -> None:
    cluster = Embedded(raw_node("n", "a"), raw_class(), raw_claim(), RAW_POD)
    _, plan = cluster.reserve("web", "n")
    assert plan.timeout_s == 600
    cluster.carry_out(plan)
    cluster.advance(4)
    assert cluster.ready(plan) is None
    cluster.advance(1)
    status = cluster.ready(plan)
    assert status is not None
    assert status.code is Code.SUCCESS


def test_provisioner_that_fails_ends_the_wait_with_an_error() -> None:
    broken = {"name": "local", "annotations": {"kschedd.io/provision-fails": "true"}}
    cluster = Embedded(raw_node("n", "a"), raw_class(metadata=broken), raw_claim(), RAW_POD)
    wanted, plan = cluster.reserve("web", "n")
    cluster.carry_out(plan)
    cluster.advance(5)
    status = cluster.ready(plan)
    assert status is not None
    assert status.code is Code.ERROR
    assert status.message == 'binding volumes: provisioning failed for PVC "data"'
    cluster.plugin.unreserve(cluster.state, wanted, "n")
    assert cluster.cluster.forget(wanted)


def test_provisioner_that_never_answers_runs_into_the_timeout() -> None:
    silent = {"name": "local", "annotations": {"kschedd.io/provision-seconds": "never"}}
    raws = raw_node("n", "a"), raw_class(metadata=silent), raw_claim(), RAW_POD
    cluster = Embedded(*raws, bind_timeout_s=30)
    _, plan = cluster.reserve("web", "n")
    cluster.carry_out(plan)
    cluster.advance(1_000)
    assert cluster.ready(plan) is None
    assert plan.timeout_s == 30
    assert plan.timed_out == Status(Code.ERROR, ("binding volumes: context deadline exceeded",))


@pytest.mark.parametrize(
    ("version", "kind", "namespace", "name", "why"),
    [
        (V1_34, "Node", "", "n", 'failed to get node "n": node "n" not found'),
        (V1_34, "PersistentVolume", "", "disk", 'failed to check binding: could not find v1.PersistentVolume "disk"'),
        (V1_35, "PersistentVolume", "", "disk", 'failed to check binding: persistentvolumes "disk" not found'),
        (
            V1_34,
            "PersistentVolumeClaim",
            "default",
            "data",
            'failed to check binding: could not find v1.PersistentVolumeClaim "default/data"',
        ),
        (
            V1_35,
            "PersistentVolumeClaim",
            "default",
            "data",
            'failed to check binding: persistentvolumeclaims "default/data" not found',
        ),
    ],
)
def test_what_goes_meanwhile_ends_the_wait(
    version: KubernetesVersion, kind: str, namespace: str, name: str, why: str
) -> None:
    raws = raw_node("n", "a"), raw_class(), raw_claim(), raw_volume("a"), RAW_POD
    cluster = Embedded(*raws, rules=version.rules)
    _, plan = cluster.reserve("web", "n")
    cluster.carry_out(plan)
    cluster.store.delete(kind, namespace, name)
    if kind != "Node":  # no controller here removes the protection finalizer
        cluster.store.merge_patch(kind, namespace, name, {"metadata": {"finalizers": None}})
    cluster.follow()
    assert cluster.ready(plan) == Status(Code.ERROR, (f"binding volumes: {why}",))


@pytest.mark.parametrize("end", ["forget", "mark_deleted"])
def test_pod_that_is_gone_or_deleted_ends_the_wait(end: str) -> None:
    cluster = Embedded(raw_node("n", "a"), raw_class(), raw_claim(), raw_volume("a"), RAW_POD)
    wanted, plan = cluster.reserve("web", "n")
    cluster.carry_out(plan)
    getattr(cluster.cluster, end)(wanted)
    status = cluster.ready(plan)
    assert status is not None
    assert status.message == 'binding volumes: pod does not exist any more: pod "web" not found'


# --- what may help a rejected pod ------------------------------------------------------------------------------------


def hint(resource: EventResource, old: Object | None, new: Object, wanted: Pod) -> object:
    (found,) = [e for e in Trial().plugin.events_to_register() if e.event.resource is resource]
    assert found.hint is not None
    return found.hint(wanted, old, new)


def capacity(**fields: Any) -> Object:
    return make("CSIStorageCapacity", "c", "kube-system", **fields)


def csi_driver(**spec: Any) -> Object:
    return make("CSIDriver", "csi.example.com", spec=spec)


ZONED = [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}]
INLINE = pod(volumes=[{"name": "s", "csi": {"driver": "csi.example.com"}}])


@pytest.mark.parametrize(
    ("resource", "old", "new", "wanted", "answer"),
    [
        (EventResource.STORAGE_CLASS, None, storage_class(), pod("data"), QUEUE),
        (EventResource.STORAGE_CLASS, storage_class(), storage_class(), pod("data"), QUEUE_SKIP),
        (EventResource.STORAGE_CLASS, storage_class(), storage_class(allowedTopologies=ZONED), pod("data"), QUEUE),
        (EventResource.PERSISTENT_VOLUME_CLAIM, None, claim(), pod("data"), QUEUE),
        (EventResource.PERSISTENT_VOLUME_CLAIM, None, claim("other"), pod("data"), QUEUE_SKIP),
        (EventResource.PERSISTENT_VOLUME_CLAIM, None, claim("web-tmp"), pod(volumes=EPHEMERAL), QUEUE),
        (EventResource.CSI_NODE, None, make("CSINode", "n"), pod("data"), QUEUE),
        (EventResource.CSI_NODE, make("CSINode", "n"), make("CSINode", "n"), pod("data"), QUEUE_SKIP),
        (EventResource.CSI_DRIVER, csi_driver(storageCapacity=True), csi_driver(), INLINE, QUEUE),
        (EventResource.CSI_DRIVER, csi_driver(), csi_driver(storageCapacity=True), INLINE, QUEUE_SKIP),
        (EventResource.CSI_DRIVER, csi_driver(storageCapacity=True), csi_driver(), pod("data"), QUEUE_SKIP),
        (EventResource.CSI_STORAGE_CAPACITY, None, capacity(), pod("data"), QUEUE),
        (EventResource.CSI_STORAGE_CAPACITY, capacity(), capacity(capacity="1Gi"), pod("data"), QUEUE),
        (
            EventResource.CSI_STORAGE_CAPACITY,
            capacity(capacity="2Gi"),
            capacity(capacity="1Gi"),
            pod("data"),
            QUEUE_SKIP,
        ),
    ],
)
def test_hints(resource: EventResource, old: Object | None, new: Object, wanted: Pod, answer: object) -> None:
    assert hint(resource, old, new, wanted) is answer
