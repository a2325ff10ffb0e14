"""Tests of NodeVolumeLimits: which volumes count toward a driver's limit on a node."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import NodeTable
from kschedd.config.versions.kube_versions import V1_34, V1_36, V1_37
from kschedd.config.versions.rules import Rules
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import QUEUE, QUEUE_SKIP, ActionType, EventResource
from kschedd.framework.handle import Handle
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.status import SKIP, Code, Status, unschedulable
from kschedd.plugins.volumes.nodevolumelimits import NodeVolumeLimits

EXCEEDED = unschedulable("node(s) exceed max volume count")
EBS = {"awsElasticBlockStore": {"volumeID": "vol-1"}}


def make(kind: str, name: str, namespace: str = "", **fields: Any) -> Object:
    meta = {"name": name, "uid": f"{kind}-{name}", **fields.pop("metadata", {})}
    if namespace:
        meta["namespace"] = namespace
    return parse({"kind": kind, "metadata": meta, **fields})


def csi_node(**limits: int | None) -> Object:
    drivers = [
        {"name": name.replace("_", "."), "allocatable": {} if count is None else {"count": count}}
        for name, count in limits.items()
    ]
    return make("CSINode", "n", spec={"drivers": drivers})


def bound(name: str, driver: str = "csi.one", source: dict[str, Any] | None = None) -> list[Object]:
    spec = source or {"csi": {"driver": driver, "volumeHandle": name}}
    return [
        make("PersistentVolumeClaim", name, "default", spec={"volumeName": f"pv-{name}"}),
        make("PersistentVolume", f"pv-{name}", spec=spec),
    ]


def pod(name: str, *claims: str, node: str = "", volumes: list[dict[str, Any]] | None = None) -> Pod:
    used: list[dict[str, Any]] = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    spec: dict[str, Any] = {"containers": [], "volumes": [*used, *(volumes or [])]}
    if node:
        spec["nodeName"] = node
    made = make("Pod", name, "default", spec=spec)
    assert isinstance(made, Pod)
    return made


class Trial:
    def __init__(self, *objects: Object, rules: Rules = V1_34.rules) -> None:
        self.cluster = SchedulerCache()
        self.cluster.load([make("Node", "n"), *objects])
        self.plugin = NodeVolumeLimits.from_args(None, Handle(self.cluster, rules=rules))

    def judge(self, wanted: Pod) -> Status | None:
        state = CycleState()
        status = self.plugin.pre_filter(state, wanted, self.cluster)
        if status is not None:
            return status
        return self.plugin.filter(state, wanted, NodeInfo(self.cluster.table, 0))


def test_pod_without_such_volumes_is_skipped() -> None:
    assert Trial().judge(pod("a", volumes=[{"name": "t", "emptyDir": {}}])) is SKIP


def test_limit_is_reached_exactly() -> None:
    trial = Trial(csi_node(csi_one=2), *bound("a"), *bound("b"), *bound("c"), pod("there", "a", node="n"))
    assert trial.judge(pod("new", "b")) is None
    assert trial.judge(pod("new", "b", "c")) == EXCEEDED


def test_each_driver_has_its_own_limit_or_none() -> None:
    trial = Trial(csi_node(csi_one=0, csi_two=None), *bound("a", "csi.two"), *bound("b", "csi.three"), *bound("c"))
    assert trial.judge(pod("new", "a", "b")) is None
    assert trial.judge(pod("new", "c")) == EXCEEDED
    assert Trial(*bound("a")).judge(pod("new", "a")) is None


def test_volume_shared_by_pods_is_attached_once() -> None:
    trial = Trial(csi_node(csi_one=1), *bound("a"), pod("there", "a", node="n"))
    assert trial.judge(pod("new", "a")) is None


def test_claim_without_a_volume_counts_for_its_class() -> None:
    waiting = make("PersistentVolumeClaim", "w", "default", spec={"storageClassName": "c"})
    classless = make("PersistentVolumeClaim", "x", "default", spec={})
    trial = Trial(csi_node(csi_one=0), waiting, classless, make("StorageClass", "c", provisioner="csi.one"))
    assert trial.judge(pod("new", "w")) == EXCEEDED
    assert trial.judge(pod("new", "x")) is None


def test_in_tree_volumes_count_for_the_driver_in_their_place() -> None:
    ebs_class = make("StorageClass", "c", provisioner="kubernetes.io/aws-ebs")
    waiting = make("PersistentVolumeClaim", "w", "default", spec={"storageClassName": "c"})
    full = Trial(csi_node(ebs_csi_aws_com=0), *bound("a", source=EBS), waiting, ebs_class)
    assert full.judge(pod("new", "a")) == EXCEEDED
    assert full.judge(pod("new", "w")) == EXCEEDED
    assert full.judge(pod("new", volumes=[{"name": "v", **EBS}])) == EXCEEDED
    assert Trial(*bound("a", source=EBS)).judge(pod("new", "a")) is None


def test_same_disk_inline_and_claimed_is_one() -> None:
    inline = pod("there", volumes=[{"name": "v", **EBS}], node="n")
    assert Trial(csi_node(ebs_csi_aws_com=1), *bound("a", source=EBS), inline).judge(pod("new", "a")) is None


def test_portworx_counts_only_where_the_node_says_it_was_migrated() -> None:
    source = {"portworxVolume": {"volumeID": "p"}}
    limited = csi_node(pxd_portworx_com=0)
    assert Trial(limited, *bound("a", source=source)).judge(pod("new", "a")) is None
    meta = {"annotations": {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/portworx-volume"}}
    migrated = make("CSINode", "n", metadata=meta, spec=limited.spec)
    assert Trial(migrated, *bound("a", source=source)).judge(pod("new", "a")) == EXCEEDED


def test_portworx_counts_everywhere_by_the_rule_of_1_36() -> None:
    source = {"portworxVolume": {"volumeID": "p"}}
    trial = Trial(csi_node(pxd_portworx_com=0), *bound("a", source=source), rules=V1_36.rules)
    assert trial.judge(pod("new", "a")) == EXCEEDED
    assert trial.judge(pod("new", volumes=[{"name": "v", **source}])) == EXCEEDED


def test_inline_disk_that_cannot_be_translated_is_an_error_on_nodes_with_the_driver() -> None:
    bad = pod("new", volumes=[{"name": "v", "awsElasticBlockStore": {"volumeID": "aws://a/b"}}])
    status = Trial(csi_node(ebs_csi_aws_com=5)).judge(bad)
    assert status is not None
    assert status.code is Code.ERROR
    assert status.message.startswith("converting volume(v) from inline to csi: failed to translate Kubernetes ID")
    assert Trial().judge(bad) is None


def test_missing_claim() -> None:
    status = Trial(csi_node(csi_one=1)).judge(pod("new", "gone"))
    assert status == Status(
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        ('looking up PVC default/gone: persistentvolumeclaim "gone" not found',),
    )
    assert Trial(csi_node(csi_one=1), *bound("a"), pod("there", "gone", node="n")).judge(pod("new", "a")) is None


def attachment(volume: str, node: str = "n") -> Object:
    source = {"persistentVolumeName": volume}
    return make("VolumeAttachment", f"va-{volume}", spec={"attacher": "csi.one", "nodeName": node, "source": source})


def test_attachments_count_beside_what_pods_use() -> None:
    objects = [csi_node(csi_one=2), *bound("a"), *bound("b"), *bound("c"), pod("there", "a", node="n")]
    assert Trial(*objects, attachment("pv-a")).judge(pod("new", "c")) is None
    assert Trial(*objects, attachment("pv-b")).judge(pod("new", "c")) == EXCEEDED
    assert Trial(*objects, attachment("pv-b", "other")).judge(pod("new", "c")) is None


def test_what_is_remembered_of_a_node_follows_every_change() -> None:
    trial = Trial(csi_node(csi_one=1), *bound("a"), *bound("b"))
    assert trial.judge(pod("new", "b")) is None
    there = pod("there", "a", node="n")
    trial.cluster.put(there)
    assert trial.judge(pod("new", "b")) == EXCEEDED
    trial.cluster.put(csi_node(csi_one=2))
    assert trial.judge(pod("new", "b")) is None
    trial.cluster.put(csi_node(csi_one=1))
    trial.cluster.put(make("PersistentVolume", "pv-a", spec={"csi": {"driver": "csi.two", "volumeHandle": "a"}}))
    assert trial.judge(pod("new", "b")) is None
    trial.cluster.put(attachment("pv-a"))
    assert trial.judge(pod("new", "b")) == EXCEEDED
    trial.cluster.remove(attachment("pv-a"))
    trial.cluster.remove(there)
    assert trial.judge(pod("new", "b")) is None


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
@pytest.mark.parametrize("attached", [(), ("pv-a",), ("pv-a", "pv-d")], ids=["no-attachment", "of-a", "of-a-and-d"])
@pytest.mark.parametrize("stay", ["", "a", "b", "ab"], ids=["none-stays", "a-stays", "b-stays", "both-stay"])
def test_a_node_of_a_dry_run_has_the_verdict_of_a_node_with_the_pods_that_stay(
    stay: str, attached: tuple[str, ...], limit: int
) -> None:
    objects = [csi_node(csi_one=limit), *(obj for name in "abcd" for obj in bound(name)), *map(attachment, attached)]
    there = {name: pod(f"there-{name}", name, node="n") for name in "ab"}
    trial = Trial(*objects, *there.values())
    copy = trial.cluster.table.copy_rows([0])
    copy.pods[0] = [there[name] for name in stay]
    for wanted in (pod("new", "a"), pod("new", "c"), pod("new", "a", "d")):
        state = CycleState()
        trial.plugin.pre_filter(state, wanted, trial.cluster)
        reported = trial.plugin.filter(state, wanted, NodeInfo(copy, 0))
        assert reported == Trial(*objects, *(there[name] for name in stay)).judge(wanted)


@pytest.mark.parametrize(
    ("resource", "action", "old", "new", "answer"),
    [
        (EventResource.CSI_NODE, ActionType.UPDATE, csi_node(csi_one=1), csi_node(csi_one=2), QUEUE),
        (EventResource.CSI_NODE, ActionType.UPDATE, csi_node(csi_one=2), csi_node(csi_one=1), QUEUE_SKIP),
        (EventResource.POD, ActionType.DELETE, pod("x", "b", node="n"), None, QUEUE),
        (EventResource.POD, ActionType.DELETE, pod("x", "b"), None, QUEUE_SKIP),
        (EventResource.POD, ActionType.DELETE, pod("x", node="n"), None, QUEUE_SKIP),
        (EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, None, bound("a")[0], QUEUE),
        (EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, None, bound("b")[0], QUEUE_SKIP),
        (EventResource.VOLUME_ATTACHMENT, ActionType.DELETE, attachment("pv-x"), None, QUEUE),
    ],
)
def test_hints(
    resource: EventResource, action: ActionType, old: Object | None, new: Object | None, answer: object
) -> None:
    events = Trial().plugin.events_to_register()
    (found,) = [e for e in events if e.event.resource is resource and e.event.action == action]
    assert found.hint is not None
    assert found.hint(pod("new", "a"), old, new) is answer


@pytest.mark.parametrize(
    ("volume", "answer"),
    [
        pytest.param({"awsElasticBlockStore": {"volumeID": "vol-1"}}, QUEUE, id="of-the-attacher"),
        pytest.param({"gcePersistentDisk": {"pdName": "disk"}}, QUEUE_SKIP, id="of-another-attacher"),
        pytest.param({"iscsi": {"targetPortal": "h", "iqn": "i", "lun": 0}}, QUEUE_SKIP, id="not-attached"),
        pytest.param({"azureDisk": {"kind": "Shared", "diskURI": "d"}}, QUEUE, id="that-cannot-be-translated"),
    ],
)
def test_a_detached_volume_wakes_pods_with_inline_volumes_of_its_attacher(
    volume: dict[str, Any], answer: object
) -> None:
    registered = Trial().plugin.events_to_register()
    (found,) = [each for each in registered if each.event.resource is EventResource.VOLUME_ATTACHMENT]
    assert found.hint is not None
    detached = make("VolumeAttachment", "va", spec={"attacher": "ebs.csi.aws.com", "nodeName": "n", "source": {}})
    assert found.hint(pod("new", volumes=[{"name": "v", **volume}]), detached, None) is answer


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        pytest.param({"kind": "Managed"}, "", id="managed"),
        pytest.param({}, "", id="unstated-which-the-api-server-makes-shared"),
        pytest.param({"kind": "Shared"}, "kind(Shared) is not supported in csi migration", id="shared"),
        pytest.param({"kind": "Dedicated"}, "kind(Dedicated) is not supported in csi migration", id="dedicated"),
    ],
)
def test_an_inline_azure_disk_has_to_be_managed(kind: dict[str, str], error: str) -> None:
    volume = {"name": "v", "azureDisk": {"diskName": "d", "diskURI": "u", **kind}}
    status = Trial(csi_node(disk_csi_azure_com=5)).judge(pod("new", volumes=[volume]))
    if not error:
        assert status is None
        return
    assert status is not None
    assert (status.code, status.message) == (Code.ERROR, f"converting volume(v) from inline to csi: {error}")
    assert Trial().judge(pod("new", volumes=[volume])) is None, "without a CSINode nothing is migrated"


def test_a_claimed_azure_disk_that_is_not_managed_does_not_count() -> None:
    def disk(kind: str) -> dict[str, Any]:
        return {"azureDisk": {"diskName": "d", "diskURI": "u", "kind": kind}}

    shared, managed = bound("a", source=disk("Shared")), bound("b", source=disk("Managed"))
    trial = Trial(csi_node(disk_csi_azure_com=0), *shared, *managed)
    assert trial.judge(pod("new", "a")) is None
    assert trial.judge(pod("new", "b")) == EXCEEDED


# -- nodes that need not be asked about ------------------------------------------------------------------------------


class Known:
    """Three nodes with changing limits and pods, and a pod with two volumes."""

    def __init__(self) -> None:
        self.cluster = SchedulerCache()
        volumes = [each for name in "abcd" for each in bound(name)]
        self.cluster.load([*(make("Node", f"n{number}") for number in range(3)), *volumes])
        self.plugin = NodeVolumeLimits.from_args(None, Handle(self.cluster, rules=V1_34.default_rules))
        self.state, self.wanted = CycleState(), pod("new", "a", "b")

    def ask(self, table: NodeTable) -> list[bool]:
        """Return the nodes that are known to pass; the filter is called for all nodes."""
        self.state.data.clear()
        assert self.plugin.pre_filter(self.state, self.wanted, self.cluster) is None
        rows = np.arange(len(table.row_of))
        known: list[bool] = self.plugin.known_to_pass(self.state, self.wanted, table, rows).tolist()
        for row, passes in enumerate(known):
            status = self.plugin.filter(self.state, self.wanted, NodeInfo(table, row))
            assert not passes or status is None, f"{table.names[row]}: {status}"
        return known


def on_node(number: int, limit: int | None) -> Object:
    drivers = [{"name": "csi.one", "allocatable": {} if limit is None else {"count": limit}}]
    return make("CSINode", f"n{number}", spec={"drivers": drivers})


CHANGES = st.one_of(
    st.tuples(st.just("limit"), st.integers(0, 2), st.sampled_from([None, 0, 1, 2, 3, 4])),
    st.tuples(st.just("comes"), st.integers(0, 2), st.sampled_from(["a", "c", "d"])),
    st.tuples(st.just("leaves"), st.integers(0, 2), st.sampled_from(["a", "c", "d"])),
    st.tuples(st.just("node"), st.integers(0, 2), st.sampled_from([0, 1, 2])),
)


@given(st.lists(CHANGES, max_size=12), st.sampled_from(["", "a", "d"]))
@settings(max_examples=60, deadline=None)
def test_no_node_that_is_known_to_pass_is_rejected(changes: list[tuple[str, int, Any]], joins: str) -> None:
    known = Known()
    for what, number, detail in changes:
        name = f"{number}-{detail}"
        if what == "limit":
            known.cluster.put(on_node(number, detail))
        elif what == "comes":
            known.cluster.put(pod(name, detail, node=f"n{number}"))
        elif what == "leaves":
            known.cluster.remove(pod(name, detail, node=f"n{number}"))
        else:  # Another node may use its row next.
            known.cluster.remove(make("Node", f"n{number}"))
            known.cluster.put(make("Node", f"n{number}"))
        known.ask(known.cluster.table)
    table = known.cluster.table
    copy = table.copy_rows(list(table))
    if joins:
        copy.add_pod(0, pod("joins", joins))
    for pods in copy.pods:
        del pods[1:]
    known.ask(copy)


def test_which_nodes_need_not_be_asked_about() -> None:
    known = Known()
    known.cluster.load([on_node(0, 2), on_node(1, 2), pod("there", "c", node="n1")])
    assert known.ask(known.cluster.table) == [True, False, True]
    copy = known.cluster.table.copy_rows([2, 1, 0])
    assert known.ask(copy) == [True, False, True]
    copy.add_pod(0, pod("joins", "d"))
    assert known.ask(copy) == [False, False, True]
    known.cluster.remove(pod("there", "c", node="n1"))
    assert known.ask(known.cluster.table) == [True, True, True]


def test_of_another_table_no_node_is_known_to_pass() -> None:
    known = Known()
    known.cluster.load([on_node(number, 2) for number in range(3)])
    assert known.ask(known.cluster.table) == [True, True, True]
    assert known.ask(known.cluster.table.fork()) == [False, False, False]


def test_where_no_node_has_limits_none_need_be_asked_about() -> None:
    known = Known()
    disk = bound("disk", source={"awsElasticBlockStore": {"volumeID": "vol-1"}})
    known.cluster.load(disk)
    known.wanted = pod("new", "disk", "a")
    assert known.ask(known.cluster.table) == [True, True, True]
    known.cluster.put(on_node(0, 1))
    assert known.ask(known.cluster.table) == [True, True, True]
    known.cluster.put(on_node(0, 0))
    assert known.ask(known.cluster.table) == [False, True, True]


@pytest.mark.parametrize("migrated", ["", "kubernetes.io/portworx-volume"])
def test_a_node_with_room_for_volumes_of_in_tree_plugins_need_not_be_asked_about(migrated: str) -> None:
    known = Known()
    known.cluster.load(bound("disk", source={"awsElasticBlockStore": {"volumeID": "vol-1"}}))
    known.cluster.load(bound("px", source={"portworxVolume": {"volumeID": "p"}}))
    known.wanted = pod("new", "disk", "px", "a")
    meta = {"annotations": {"storage.alpha.kubernetes.io/migrated-plugins": migrated}}
    for number, most in enumerate((1, 0)):
        drivers = [
            {"name": name, "allocatable": {"count": most}}
            for name in ("ebs.csi.aws.com", "pxd.portworx.com", "csi.one")
        ]
        known.cluster.put(make("CSINode", f"n{number}", metadata=meta, spec={"drivers": drivers}))
    assert known.ask(known.cluster.table) == [True, False, True]
    known.cluster.put(pod("there", volumes=[{"name": "v", "awsElasticBlockStore": {"volumeID": "2"}}], node="n0"))
    assert known.ask(known.cluster.table) == [False, False, True]


def test_of_a_pod_with_a_volume_of_no_known_name_no_node_is_known_to_pass() -> None:
    known = Known()
    known.cluster.put(on_node(0, 5))
    known.wanted = pod("new", "a", volumes=[{"name": "v", "awsElasticBlockStore": {"volumeID": "aws://a/b"}}])
    assert known.ask(known.cluster.table) == [False, False, False]


def preventing(driver: str, prevents: bool = True) -> Object:
    return make("CSIDriver", driver, spec={"preventPodSchedulingIfMissing": prevents})


NEEDED = V1_37.rules


@pytest.mark.parametrize(
    ("rules", "there", "why"),
    [
        pytest.param(NEEDED, [preventing("csi.one")], "csi.one", id="no-csi-node"),
        pytest.param(NEEDED, [preventing("csi.one"), csi_node(csi_two=3)], "csi.one", id="another-driver"),
        pytest.param(NEEDED, [preventing("csi.one"), csi_node(csi_one=3)], "", id="installed"),
        pytest.param(NEEDED, [preventing("csi.one", False), csi_node(csi_two=3)], "", id="not-required"),
        pytest.param(NEEDED, [preventing("csi.two"), csi_node(csi_two=3)], "", id="required-by-others"),
        pytest.param(V1_34.rules, [preventing("csi.one"), csi_node(csi_two=3)], "", id="1.34"),
    ],
)
def test_a_node_without_a_driver_that_prevents_scheduling_is_infeasible(
    rules: Rules, there: list[Object], why: str
) -> None:
    trial = Trial(*bound("a"), *there, rules=rules)
    expected = unschedulable(f"{why} CSI driver is not installed on the node") if why else None
    assert trial.judge(pod("new", "a")) == expected
    state, wanted = CycleState(), pod("new", "a")
    trial.plugin.pre_filter(state, wanted, trial.cluster)
    known = trial.plugin.known_to_pass(state, wanted, trial.cluster.table, np.array([0]))
    assert not (known.any() and why)


def test_pods_without_volumes_are_left_alone() -> None:
    plugin, plain, using = Trial().plugin, pod("plain"), pod("new", "a")
    assert plugin.idle_for(plain) == ("pre_filter",)
    assert plugin.idle_for(using) == ()
    assert plugin.affected_by(using.pod_spec)
    assert not plugin.affected_by(plain.pod_spec)


def test_no_node_is_known_to_pass_before_pre_filter() -> None:
    trial = Trial(csi_node(csi_one=2), *bound("a"))
    rows = np.array([0])
    assert not trial.plugin.known_to_pass(CycleState(), pod("new", "a"), trial.cluster.table, rows).any()
    empty = Trial(*bound("a"))
    assert not empty.plugin.known_to_pass(CycleState(), pod("new", "a"), empty.cluster.table, rows).any()


def test_the_filter_needs_no_pre_filter() -> None:
    trial = Trial(csi_node(csi_one=0), *bound("a"))
    node = NodeInfo(trial.cluster.table, 0)
    assert trial.plugin.filter(CycleState(), pod("new", "a"), node) == EXCEEDED


def test_a_limit_that_is_exceeded_already_matters_to_new_volumes_only() -> None:
    trial = Trial(csi_node(csi_one=1), *bound("a"), *bound("b"), pod("p", "a", node="n"), pod("q", "b", node="n"))
    assert trial.judge(pod("new", "a")) is None
