"""Tests of the rules of NodeName, NodeUnschedulable, NodePorts, NodeAffinity and ImageLocality."""

from typing import Any

import pytest

from kschedd.api.node_fit import ports_conflict
from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.selecting.selectors import SelectorError
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.versions.kube_versions import V1_34_1, V1_36
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import QUEUE, QUEUE_SKIP, ActionType, ClusterEvent, EventResource
from kschedd.framework.fast_path import PRE_POINTS
from kschedd.framework.handle import Handle
from kschedd.framework.interface import PreFilterResult
from kschedd.framework.status import SKIP, Code, Status
from kschedd.plugins.devices.nodedeclaredfeatures import NodeDeclaredFeatures
from kschedd.plugins.nodeaffinity import NodeAffinity
from kschedd.plugins.nodeaffinity_args import NodeAffinityArgs
from kschedd.plugins.nodename import NodeName
from kschedd.plugins.nodeports import NodePorts
from kschedd.plugins.nodeunschedulable import NodeUnschedulable
from kschedd.plugins.resources.imagelocality import ImageLocality
from kschedd.plugins.schedulinggates import SchedulingGates


def node(name: str, labels: dict[str, str] | None = None, status: Any = None, **spec: Any) -> Node:
    meta = {"name": name, "labels": labels or {}}
    return Node.from_raw({"kind": "Node", "metadata": meta, "spec": spec, "status": status or {}})


def pod(name: str = "new", **spec: Any) -> Pod:
    spec.setdefault("containers", [{"name": "c", "image": "i"}])
    return Pod.from_raw({"kind": "Pod", "metadata": {"name": name, "namespace": "d", "uid": name}, "spec": spec})


def cluster_of(*objects: Any) -> SchedulerCache:
    cluster = SchedulerCache()
    cluster.load(objects)
    return cluster


def rejected(plugin: Any, incoming: Pod, cluster: SchedulerCache) -> dict[str, str]:
    """Return the plugin's reasons by the name of the rejected node."""
    table = cluster.table
    codes = plugin.filter_rows(CycleState(), incoming, table, table.order)
    if codes is None:
        return {}
    answer = {}
    for row, code in zip(table.order.tolist(), codes.tolist(), strict=True):
        if code:
            status: Status = plugin.code_status(CycleState(), incoming, code)
            answer[table.names[row]] = status.message
    return answer


def registered(plugin: Any) -> list[tuple[ClusterEvent, bool]]:
    """Return the plugin's events, and whether the hint of each is valid for all pods of a signature."""
    return [(each.event, each.by_signature) for each in plugin.events_to_register()]


def test_a_pod_that_names_its_node_fits_only_there() -> None:
    cluster = cluster_of(node("a"), node("b"))
    plugin = NodeName.from_args(None, Handle(cluster))
    assert rejected(plugin, pod(nodeName="b"), cluster) == {"a": "node(s) didn't match the requested node name"}
    assert rejected(plugin, pod(nodeName="gone"), cluster).keys() == {"a", "b"}
    assert rejected(plugin, pod(), cluster) == {}
    for incoming, narrowed in [(pod(), None), (pod(nodeName="b"), PreFilterResult(frozenset({"b"})))]:
        assert plugin.pre_filter(CycleState(), incoming, cluster) == narrowed
        assert plugin.repeats_while_unchanged(incoming, cluster) == (("pre_filter",) if narrowed is None else ())
        assert plugin.idle_for(incoming) == (("filter",) if narrowed is None else ())
    assert registered(plugin) == [(ClusterEvent(EventResource.NODE, ActionType.ADD), False)]


def test_a_cordoned_node_takes_only_pods_that_tolerate_it() -> None:
    cluster = cluster_of(node("open"), node("cordoned", unschedulable=True))
    tolerating = pod(tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])
    plugin = NodeUnschedulable.from_args(None, Handle(cluster))
    assert rejected(plugin, pod(), cluster) == {"cordoned": "node(s) were unschedulable"}
    assert rejected(plugin, tolerating, cluster) == {}
    assert [plugin.verdict_key(incoming, CycleState()) for incoming in (pod(), tolerating)] == [False, True]
    assert registered(plugin) == [
        (ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT), True),
        (ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION), True),
    ]
    of_nodes, of_pods = plugin.events_to_register()
    assert of_nodes.hint is not None
    assert of_pods.hint is not None
    open_, cordoned = node("n"), node("n", unschedulable=True)
    changes = [(None, open_), (None, cordoned), (cordoned, open_), (open_, open_), (open_, cordoned)]
    answers = [of_nodes.hint(pod(), old, new) for old, new in changes]
    assert answers == [QUEUE, QUEUE_SKIP, QUEUE, QUEUE_SKIP, QUEUE_SKIP]
    other = Pod.from_raw({**tolerating.raw, "metadata": {"name": "other", "namespace": "d", "uid": "other"}})
    assert [of_pods.hint(pod(), pod(), new) for new in (tolerating, pod(), other, None)] == [QUEUE, *[QUEUE_SKIP] * 3]


@pytest.mark.parametrize(
    ("wanted", "used", "taken"),
    [
        pytest.param(("0.0.0.0", "TCP", 80), ("10.0.0.1", "TCP", 80), True, id="every-address-meets-one"),
        pytest.param(("10.0.0.1", "TCP", 80), ("0.0.0.0", "TCP", 80), True, id="one-address-meets-every"),
        pytest.param(("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), False, id="different-addresses"),
        pytest.param(("0.0.0.0", "UDP", 80), ("0.0.0.0", "TCP", 80), False, id="different-protocols"),
        pytest.param(("0.0.0.0", "TCP", 81), ("0.0.0.0", "TCP", 80), False, id="different-ports"),
    ],
)
def test_host_ports_meet(wanted: Any, used: Any, taken: bool) -> None:
    assert ports_conflict((wanted,), {used}) is taken


def test_a_node_with_other_ports_in_use_is_free() -> None:
    def listening(name: str, port: int, **spec: Any) -> Pod:
        ports = [{"hostPort": port, "containerPort": 1, "protocol": "TCP"}]
        return pod(name, containers=[{"name": "c", "image": "i", "ports": ports}], **spec)

    there = [listening("p80", 80, nodeName="same"), listening("p81", 81, nodeName="other")]
    cluster = cluster_of(node("same"), node("other"), node("none"), *there)
    plugin, incoming = NodePorts.from_args(None, Handle(cluster)), listening("new", 80)
    reason = "node(s) didn't have free ports for the requested pod ports"
    assert rejected(plugin, incoming, cluster) == {"same": reason}
    assert rejected(plugin, incoming, cluster_of(node("none"))) == {}
    assert plugin.filter_rows(CycleState(), pod(), cluster.table, cluster.table.order) is None
    assert plugin.repeats_while_unchanged(incoming, cluster) == PRE_POINTS
    for each, idle, answer in [(incoming, (), None), (pod(), ("pre_filter",), SKIP)]:
        assert plugin.idle_for(each) == idle
        assert plugin.pre_filter(CycleState(), each, cluster) is answer
    assert registered(plugin) == [
        (ClusterEvent(EventResource.POD, ActionType.DELETE), True),
        (ClusterEvent(EventResource.NODE, ActionType.ADD), False),
    ]


def test_ports_of_sidecars_count_and_those_of_init_containers_do_not() -> None:
    port = {"containerPort": 1, "hostPort": 80, "protocol": "TCP"}
    sidecar = pod(initContainers=[{"name": "s", "image": "i", "restartPolicy": "Always", "ports": [port]}])
    init = pod(initContainers=[{"name": "s", "image": "i", "ports": [port]}])
    taken = pod("there", nodeName="n", containers=[{"name": "c", "image": "i", "ports": [port]}])
    cluster = cluster_of(node("n"), taken)
    assert list(rejected(NodePorts(), sidecar, cluster)) == ["n"]
    assert rejected(NodePorts(), init, cluster) == {}
    assert NodePorts().pre_filter(CycleState(), init, cluster) is SKIP


@pytest.mark.parametrize(
    ("node_name", "nominated", "port", "hint"),
    [
        ("n", "", 80, QUEUE),
        ("", "n", 80, QUEUE),  # the port was kept free for it
        ("", "", 80, QUEUE_SKIP),
        ("n", "", 81, QUEUE_SKIP),
        ("", "n", 81, QUEUE_SKIP),
    ],
)
def test_a_pod_that_goes_frees_the_ports_of_the_node_it_was_on_or_meant_for(
    node_name: str, nominated: str, port: int, hint: Any
) -> None:
    def listening(port: int, **spec: Any) -> Pod:
        ports = [{"hostPort": port, "containerPort": port, "protocol": "TCP"}]
        return pod(containers=[{"name": "c", "image": "i", "ports": ports}], **spec)

    status = {"nominatedNodeName": nominated}
    gone = Pod.from_raw({**listening(port, nodeName=node_name).raw, "status": status})
    (after_pod, _) = NodePorts.from_args(None, Handle(SchedulerCache())).events_to_register()
    assert after_pod.hint is not None
    assert after_pod.hint(listening(80), gone, None) is hint


def affinity(**node_affinity: Any) -> Any:
    return {"nodeAffinity": node_affinity}


def required(*terms: Any) -> Any:
    return affinity(requiredDuringSchedulingIgnoredDuringExecution={"nodeSelectorTerms": list(terms)})


def named(*names: str) -> Any:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [n]} for n in names]}


@pytest.mark.parametrize(
    ("terms", "wanted"),
    [
        pytest.param([named("a")], PreFilterResult(frozenset({"a"}), already_filtered=True), id="one-name"),
        pytest.param([named("a"), named("gone")], PreFilterResult(frozenset({"a", "gone"})), id="either-name"),
        pytest.param([named("a"), {"matchExpressions": []}], None, id="a-term-without-name-leaves-all"),
        pytest.param(
            [{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["a"]}]}],
            None,
            id="a-term-without-a-certain-name-leaves-all",
        ),
    ],
)
def test_affinity_to_names_narrows_the_nodes(terms: list[Any], wanted: Any) -> None:
    plugin = NodeAffinity.from_args(NodeAffinityArgs(), Handle(SchedulerCache()))
    assert plugin.pre_filter(CycleState(), pod(affinity=required(*terms)), SchedulerCache()) == wanted


def test_two_names_at_once_conflict() -> None:
    plugin = NodeAffinity.from_args(NodeAffinityArgs(), Handle(SchedulerCache()))
    answer = plugin.pre_filter(CycleState(), pod(affinity=required(named("a", "b"))), SchedulerCache())
    assert isinstance(answer, Status)
    assert (answer.code, answer.message) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "pod affinity terms conflict")


def test_node_selector_affinity_and_added_affinity_all_count() -> None:
    ssd = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    added = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [ssd]}}
    plugin = NodeAffinity.from_args(NodeAffinityArgs(added), Handle(SchedulerCache()))
    cluster = cluster_of(node("a", {"disk": "ssd", "zone": "1"}), node("b", {"zone": "1"}), node("c", {"disk": "ssd"}))
    assert rejected(plugin, pod(nodeSelector={"zone": "1"}), cluster) == {
        "b": "node(s) didn't match scheduler-enforced node affinity",
        "c": "node(s) didn't match Pod's node affinity/selector",
    }


def with_added(**added: Any) -> NodeAffinity:
    return NodeAffinity.from_args(NodeAffinityArgs(added or None), Handle(SchedulerCache()))


SSD = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
ADDED = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [SSD]}}


@pytest.mark.parametrize(
    ("added", "spec", "skips"),
    [
        pytest.param({}, {}, True, id="nothing-to-match"),
        pytest.param({}, {"nodeSelector": {"zone": "1"}}, False, id="a-selector"),
        pytest.param({}, {"affinity": required(SSD)}, False, id="an-affinity"),
        pytest.param(ADDED, {}, False, id="an-added-affinity"),
    ],
)
def test_affinity_is_skipped_if_there_is(added: Any, spec: Any, skips: bool) -> None:
    plugin, incoming = with_added(**added), pod(**spec)
    assert (plugin.pre_filter(CycleState(), incoming, SchedulerCache()) is SKIP) is skips
    assert plugin.idle_for(incoming) == (("pre_filter",) if skips else ())


@pytest.mark.parametrize(
    ("added", "spec", "there"),
    [
        pytest.param({}, {}, ["b", "c"], id="alone"),
        pytest.param({}, {"nodeSelector": {"zone": "1"}}, ["b"], id="with-a-selector"),
        pytest.param(ADDED, {}, ["c"], id="with-an-added-affinity"),
    ],
)
def test_a_named_node_must_match_all_else_as_well(added: Any, spec: Any, there: list[str]) -> None:
    cluster = cluster_of(node("a", {"zone": "1", "disk": "ssd"}), node("b", {"zone": "1"}), node("c", {"disk": "ssd"}))
    for name in "bc":
        incoming = pod(affinity=required(named(name)), **spec)
        assert (name in rejected(with_added(**added), incoming, cluster)) is (name not in there)
        narrowed = with_added(**added).pre_filter(CycleState(), incoming, cluster)
        assert narrowed == PreFilterResult(frozenset({name}), already_filtered=not added and not spec)
        assert with_added(**added).idle_for(incoming) == ()
        if not added and not spec:
            assert set(rejected(with_added(), incoming, cluster)) == {"a", "b", "c"} - {name}


def test_the_weights_of_matching_preferred_terms_are_added_and_scaled() -> None:
    cluster = cluster_of(node("a", {"disk": "ssd", "zone": "1"}), node("b", {"disk": "ssd"}), node("c"))
    zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["1"]}]}
    incoming = pod(
        affinity=affinity(preferredDuringSchedulingIgnoredDuringExecution=[{"weight": 5, "preference": zone}])
    )
    added = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 20, "preference": SSD}]}
    state, rows = CycleState(), cluster.table.order
    for plugin, weights, scores in [
        (with_added(), [5, 0, 0], [100, 0, 0]),
        (with_added(**added), [25, 20, 0], [100, 80, 0]),
    ]:
        found = plugin.score_rows(state, incoming, cluster.table, rows)
        assert found.tolist() == weights
        assert plugin.normalize(state, incoming, found).tolist() == scores
        assert plugin.pre_score(state, incoming, cluster, rows) is None
    assert with_added().pre_score(state, pod(), cluster, rows) is SKIP
    assert with_added(**added).pre_score(state, pod(), cluster, rows) is None
    none = pod(affinity=affinity(preferredDuringSchedulingIgnoredDuringExecution=[]))
    assert with_added().pre_score(state, none, cluster, rows) is None, "an empty list is a list"


def test_an_unreadable_preferred_term_is_an_error() -> None:
    bad = {"weight": 1, "preference": {"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["-5"]}]}}
    incoming = pod(affinity=affinity(preferredDuringSchedulingIgnoredDuringExecution=[bad]))
    plugin = NodeAffinity.from_args(NodeAffinityArgs(), Handle(SchedulerCache()))
    answer = plugin.pre_score(CycleState(), incoming, None, cluster_of(node("a")).table.order)
    assert answer is not None
    assert answer.code == Code.ERROR
    with pytest.raises(SelectorError):
        _ = incoming.pod_spec.preferred_node_affinity


def test_affinity_is_woken_when_a_node_begins_to_match() -> None:
    plugin = NodeAffinity.from_args(NodeAffinityArgs(), Handle(SchedulerCache()))
    waiting = pod(nodeSelector={"disk": "ssd"})
    without, with_label = node("a"), node("a", {"disk": "ssd"})
    assert plugin._after_node(waiting, without, with_label) is QUEUE
    assert plugin._after_node(waiting, with_label, with_label) is QUEUE_SKIP
    assert plugin._after_node(waiting, None, without) is QUEUE_SKIP
    assert plugin._after_node(waiting, None, with_label) is QUEUE
    assert with_added(**ADDED)._after_node(pod(), None, without) is QUEUE_SKIP
    assert with_added(**ADDED)._after_node(pod(), None, with_label) is QUEUE
    changes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
    assert registered(plugin) == [(ClusterEvent(EventResource.NODE, changes), True)]


def test_images_count_by_size_and_by_how_many_nodes_have_them() -> None:
    gigabyte = 1000 * 1024 * 1024
    image = {"names": ["repo/app:latest"], "sizeBytes": gigabyte}
    cluster = cluster_of(node("has", status={"images": [image]}), node("lacks"))
    incoming = pod(containers=[{"name": "c", "image": "repo/app"}])
    scores = ImageLocality.from_args(None, Handle(cluster)).score_rows(
        CycleState(), incoming, cluster.table, cluster.table.order
    )
    # Half the nodes have the image, so half its size counts: (500 - 23) of (1000 - 23) MiB.
    assert scores.tolist() == [100 * (500 - 23) // (1000 - 23), 0]


MIB = 1 << 20


@pytest.mark.parametrize(
    ("size", "containers", "score"),
    [
        pytest.param(23 * MIB, 1, 0, id="23-MiB-and-less-do-not-count"),
        pytest.param(23 * MIB + 10 * MIB, 1, 1, id="from-23-MiB-on-the-size-counts"),
        pytest.param(1000 * MIB - 1, 1, 99, id="less-than-1000-MiB"),
        pytest.param(1000 * MIB, 1, 100, id="1000-MiB"),
        pytest.param(1000 * MIB, 2, 49, id="1000-MiB-for-each-container"),
        pytest.param(9000 * MIB, 2, 100, id="more-does-not-count"),
    ],
)
def test_the_score_of_an_image_grows_from_23_mib_to_1000_mib_for_each_container(
    size: int, containers: int, score: int
) -> None:
    cluster = cluster_of(node("n", status={"images": [{"names": ["a:1"], "sizeBytes": size}]}))
    incoming = pod(containers=[{"name": image, "image": f"{image}:1"} for image in "ab"[:containers]])
    plugin = ImageLocality.from_args(None, Handle(cluster))
    assert plugin.score_rows(CycleState(), incoming, cluster.table, cluster.table.order).tolist() == [score]


def test_scores_of_images_are_computed_again_when_the_images_of_a_node_change() -> None:
    cluster = cluster_of(node("n"))
    plugin = ImageLocality.from_args(None, Handle(cluster))
    before = plugin.cache_key(cluster)
    cluster.put(node("n", status={"images": [{"names": ["a:1"], "sizeBytes": MIB}]}))
    assert plugin.cache_key(cluster) != before


def test_an_image_has_the_size_that_is_told_first_which_may_be_none() -> None:
    first = {"images": [{"names": ["a:1"], "sizeBytes": 0}, {"names": ["b:1"]}]}
    second = {"images": [{"names": ["a:1"], "sizeBytes": 10**9}, {"names": ["b:1"], "sizeBytes": 10**9}]}
    cluster = cluster_of(node("n", status=first), node("m", status=second))
    plugin = ImageLocality.from_args(None, Handle(cluster))
    for image, scores in (("a:1", [0, 0]), ("b:1", [0, 46])):
        incoming = pod(containers=[{"name": "c", "image": image}])
        found = plugin.score_rows(CycleState(), incoming, cluster.table, cluster.table.order)
        assert found.tolist() == scores, image


def test_images_of_volumes_count_by_the_rule_of_1_36() -> None:
    cluster = cluster_of(node("n", status={"images": [{"names": ["data:1"], "sizeBytes": 500 << 20}]}))
    volume = {"name": "v", "image": {"reference": "data:1"}}
    incoming = pod(containers=[{"name": "c", "image": "i"}], volumes=[volume])
    for version, score in ((V1_34_1, 0), (V1_36, 100 * (500 - 23) // (1000 - 23))):
        plugin = ImageLocality.from_args(None, Handle(cluster, rules=version.rules))
        assert (plugin.constant_score(incoming, cluster.table) == 0) is (version is V1_34_1)
        assert plugin.score_rows(CycleState(), incoming, cluster.table, cluster.table.order).tolist() == [score]


def test_a_node_must_declare_the_features_that_a_pod_needs() -> None:
    both = {"declaredFeatures": ["RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"]}
    one = {"declaredFeatures": ["UserNamespacesHostNetworkSupport"]}
    cluster = cluster_of(node("both", status=both), node("one", status=one), node("none"))
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}
    restarting = pod(initContainers=[{"name": "c", "image": "i", "restartPolicyRules": [rule]}])
    answer = "node(s) didn't match Pod's required features"
    assert rejected(NodeDeclaredFeatures(), restarting, cluster) == {"one": answer, "none": answer}
    assert rejected(NodeDeclaredFeatures(), pod(hostNetwork=True, hostUsers=False), cluster) == {"none": answer}
    assert rejected(NodeDeclaredFeatures(), pod(hostNetwork=True, hostUsers=True), cluster) == {}
    assert rejected(NodeDeclaredFeatures(), pod(hostUsers=False), cluster) == {}


def test_a_node_that_declares_other_features_may_wake_a_pod() -> None:
    plugin = NodeDeclaredFeatures.from_args(None, Handle(SchedulerCache()))
    assert plugin.verdict_key(pod(hostNetwork=True, hostUsers=False), CycleState()) == {
        "UserNamespacesHostNetworkSupport"
    }
    assert registered(plugin) == [
        (ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE), True),
        (ClusterEvent(EventResource.POD, ActionType.UPDATE), True),
    ]
    [of_nodes, of_pods] = plugin.events_to_register()
    before, after = node("n"), node("n", status={"declaredFeatures": ["UserNamespacesHostNetworkSupport"]})
    waiting = pod("new", hostNetwork=True, hostUsers=False)
    assert of_nodes.hint is not None
    assert of_pods.hint is not None
    assert of_nodes.hint(waiting, before, after) is QUEUE
    assert of_nodes.hint(waiting, None, before) is QUEUE
    assert of_nodes.hint(waiting, after, after) is QUEUE_SKIP
    assert of_pods.hint(waiting, waiting, waiting) is QUEUE_SKIP
    assert of_pods.hint(waiting, waiting, pod("new")) is QUEUE
    assert of_pods.hint(waiting, waiting, pod("another")) is QUEUE_SKIP


def test_a_pods_image_gets_its_default_tag_and_a_nodes_name_is_taken_as_it_is() -> None:
    untagged, tagged, digest = ({"names": [name], "sizeBytes": 10**9} for name in ("a", "b:latest", "c@sha256:1"))
    cluster = cluster_of(node("n", status={"images": [untagged, tagged, digest]}))
    for image, score in (("a", 0), ("b", 95), ("c@sha256:1", 95), ("registry:5000/b", 0)):
        incoming = pod(containers=[{"name": "c", "image": image}])
        assert ImageLocality.from_args(None, Handle(cluster)).score_rows(
            CycleState(), incoming, cluster.table, cluster.table.order
        ).tolist() == [score]


def test_gates_keep_a_pod_out_and_are_named() -> None:
    answer = SchedulingGates().pre_enqueue(pod(schedulingGates=[{"name": "a"}, {"name": "b"}]))
    assert answer is not None
    assert answer.message == "waiting for scheduling gates: [a b]"
    assert SchedulingGates().pre_enqueue(pod()) is None
    plugin = SchedulingGates.from_args(None, Handle(SchedulerCache()))
    gone = ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
    assert registered(plugin) == [(ClusterEvent(EventResource.POD, gone), True)]
    [of_pods] = plugin.events_to_register()
    assert of_pods.hint is not None
    assert [of_pods.hint(pod(), None, new) for new in (pod(), pod("other"), None)] == [QUEUE, QUEUE_SKIP, QUEUE_SKIP]
