"""Tests of every method over a socket, with a running cluster."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest
import trio

from kschedd.access.users import Caller
from kschedd.actors.cluster import LiveCluster
from kschedd.actors.queue import QueueActor
from kschedd.api.pods import Pod
from kschedd.api.simulation.pod_behavior import PodBehavior
from kschedd.api.simulation.standard_class import STANDARD_CLASS
from kschedd.daemon import cluster_actors
from kschedd.framework.status import Code, Status
from kschedd.log.log import KEPT
from kschedd.methods import daemon_methods
from kschedd.rpc.client import Client
from kschedd.rpc.sessions.built_in import method_table
from kschedd.rpc.sessions.listener import unix_listener
from kschedd.rpc.sessions.server import Server
from kschedd.scheduling.records import PodBound
from kschedd.service.daemon.process import DaemonState
from kschedd.service.errors import RpcError
from kschedd.service.objects.reading import ReadingMethods
from kschedd.service.params import bind
from kschedd.service.table import Call
from kschedd.service.turns import Turns
from tests.actors.clusters import comes_to, deployment, node, placed, pod, rejected, with_plugins


class Hold:
    name: ClassVar = "Hold"

    def permit(self, state: Any, pod: Pod, node_name: str) -> Any:
        return (Status(Code.WAIT), 60.0) if pod.name == "held" else None


class Talk:
    """A client and the cluster behind its socket."""

    def __init__(self, client: Client, cluster: LiveCluster, daemon: DaemonState) -> None:
        self.client, self.cluster, self.daemon = client, cluster, daemon

    async def __call__(self, method: str, /, **named: Any) -> Any:
        with trio.fail_after(90):
            return await self.client.call(method, **named)


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    config, registry = with_plugins(Hold)
    path = tmp_path / "kschedd.sock"
    async with cluster_actors(config, registry=registry, seed=7) as cluster, unix_listener(path) as listener:
        daemon = DaemonState("1.2.3", str(path), cluster.clock.now())
        server = Server(method_table(daemon_methods(cluster, daemon)))
        async with trio.open_nursery() as nursery:
            await nursery.start(server.serve, [listener])
            async with Client.connect(path) as client:
                yield Talk(client, cluster, daemon)
            nursery.cancel_scope.cancel()


async def test_a_cluster_from_manifest_to_explanation(talk: Talk) -> None:
    applied = await talk("objects.apply", manifests=[node("n1", cpu="1"), pod("a"), pod("big", cpu="2")])
    assert [result["action"] for result in applied["results"]] == ["created"] * 3
    await placed(talk.cluster, "a")
    message = await rejected(talk.cluster, "big")

    got = await talk("objects.get", kind="po", name="a")
    assert got["object"]["spec"]["nodeName"] == "n1"
    listed = await talk("objects.list", kind="pods", field_selector="spec.nodeName=n1")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]

    # The queue has received the event of the pod's new condition.
    await comes_to(talk.cluster.queue, _has_condition, True)
    queued = await talk("queue.list")
    assert queued["counts"]["unschedulable"] == 1
    [entry] = queued["pods"]
    assert (entry["key"], entry["place"], entry["attempts"]) == ("default/big", "unschedulable", 1)
    assert entry["message"] == message
    assert entry["unschedulable_plugins"] == ["NodeResourcesFit"]
    assert entry["since_s"] >= 0

    explained = await talk("scheduler.explain", pod="default/big")
    assert explained["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert explained["verdicts"][0]["plugin"] == "NodeResourcesFit"
    assert explained["decision"]["message"] == message
    tried = await talk("scheduler.explain", pod=pod("little"))
    assert tried["chosen"] == "n1"
    assert await talk.cluster.store.find("Pod", "default", "little") is None

    decisions = await talk("scheduler.decisions", pod="default/a")
    assert [(d["pod"], d["node"], d["attempt"]) for d in decisions] == [("default/a", "n1", 1)]
    status = await talk("scheduler.status")
    wanted = {"nodes": 1, "pods": 1, "scheduled": 1, "failed_attempts": 1, "unschedulable": 1, "paused": False}
    assert {name: status[name] for name in wanted} == wanted
    events = (await talk("events.list", **{"for": "pod/big"}))["events"]
    assert [(e["reason"], e["object"], e["message"], e["count"]) for e in events] == [
        ("FailedScheduling", "Pod/big", message, 1)
    ]
    assert len((await talk("events.list", limit=1))["events"]) == 1
    assert (await talk("events.list", namespace="kube-system"))["events"] == []


def _has_condition(owner: QueueActor) -> bool:
    entry = owner.queue.entry("default/big")
    return entry is not None and "conditions" in entry.pod.raw["status"]


async def test_the_way_of_a_pod_through_the_queue(talk: Talk) -> None:
    await talk("objects.apply", manifests=[node("tiny", cpu="50m"), pod("a")])
    await rejected(talk.cluster, "a")
    reported = await talk("queue.pod", pod="default/a")
    assert [(move["from"], move["to"]) for move in reported["history"]] == [
        ("outside", "active"),
        ("active", "in_flight"),
        ("in_flight", "unschedulable"),
    ]
    assert reported["first_attempt"] == reported["history"][1]["time"]
    assert list(reported["held_s"]) == ["active", "in_flight", "unschedulable"]
    assert (await talk("queue.activate", pods=["default/a"]))["moved"] == ["default/a"]
    with pytest.raises(RpcError, match='there is no pod "default/b" in the queue'):
        await talk("queue.activate", pods=["default/b"])
    with pytest.raises(RpcError, match="give either pods or all"):
        await talk("queue.activate")
    with pytest.raises(RpcError, match='pod "default/b" is not in the queue'):
        await talk("queue.pod", pod="default/b")


async def test_a_pod_that_waits_for_longer_than_its_moves_are_kept(talk: Talk) -> None:
    await talk("objects.apply", manifests=[node("tiny", cpu="50m"), pod("a")])
    await rejected(talk.cluster, "a")
    await talk.cluster.queue.query(lambda owner: owner.queue.counts())  # its moves are in the log
    others = [PodBound(0.0, "default/other", "", "n1", "")] * KEPT
    await talk.cluster.log.query(lambda log: log.extend(others))
    reported = await talk("queue.pod", pod="default/a")
    assert (reported["place"], reported["history"], reported["held_s"], reported["first_attempt"]) == (
        "unschedulable",
        [],
        {},
        None,
    )


async def test_waiting_pods_are_listed_allowed_and_rejected(talk: Talk) -> None:
    await talk("objects.apply", manifests=[node(), pod("held")])
    await _waiting(talk)
    [waiting] = await talk("waiting.list")
    assert (waiting["pod"], waiting["node"]) == ("default/held", "n1")
    assert 0 < waiting["plugins"]["Hold"] <= 60
    with pytest.raises(RpcError, match="does not wait for Gang, but for Hold"):
        await talk("waiting.allow", pod="default/held", plugin="Gang")
    decided = {"pod": "default/held", "decided": True}
    assert await talk("waiting.reject", pod="default/held", reason="not now") == decided
    assert await rejected(talk.cluster, "held") == "0/1 nodes are available: 1 not now."
    await talk("queue.activate", all=True)
    await _waiting(talk)
    assert await talk("waiting.allow", pod="default/held") == decided
    await placed(talk.cluster, "held")
    with pytest.raises(RpcError, match='pod "default/held" does not wait at Permit'):
        await talk("waiting.allow", pod="default/held")


async def _waiting(talk: Talk) -> None:
    await comes_to(talk.cluster.scheduler, lambda owner: bool(owner.machine.waiting.pods), True)


def _change(item: dict[str, Any]) -> tuple[str, str]:
    return item["type"], item["object"]["metadata"]["name"]


async def test_changes_of_a_watch_arrive_in_order_and_it_resumes(talk: Talk) -> None:
    async with talk.client.subscribe("objects.watch", kind="nodes") as changes:
        since = changes.result["resource_version"]
        await talk("objects.apply", manifests=[node("n1"), pod("a"), node("n2")])
        seen = [await anext(changes) for _ in range(2)]
        assert list(map(_change, seen)) == [("ADDED", "n1"), ("ADDED", "n2")]
    await talk("nodes.cordon", name="n1")
    await talk("objects.delete", kind="node", name="n2")
    async with talk.client.subscribe("objects.watch", kind="Node", since=seen[-1]["resource_version"]) as changes:
        more = [await anext(changes) for _ in range(2)]
        assert list(map(_change, more)) == [("MODIFIED", "n1"), ("DELETED", "n2")]
    assert since < seen[0]["resource_version"] < more[-1]["resource_version"]
    with pytest.raises(RpcError, match='no kind "nothing"'):
        await talk("objects.watch", kind="nothing")


async def test_a_watch_sends_the_fields_that_are_asked_for(talk: Talk) -> None:
    fields = ["spec.unschedulable", "spec.nothing.of.it", "metadata.name", "status", "status.capacity"]
    async with talk.client.subscribe("objects.watch", kind="nodes", fields=fields) as changes:
        await talk("objects.apply", manifests=[node("n1")])
        await talk("nodes.cordon", name="n1")
        added, cordoned = [(await anext(changes))["object"] for _ in range(2)]
    assert set(added) == {"apiVersion", "kind", "metadata", "status"}
    assert added["status"]["capacity"]
    assert cordoned["spec"] == {"unschedulable": True}


async def test_a_watch_with_pauses_sends_of_each_object_the_latest(talk: Talk) -> None:
    # The first batch has the objects that exist when the stream begins; all later changes within the pause are one
    # batch.
    async with talk.client.subscribe("objects.watch", kind="nodes", interval_s=60) as changes:
        await talk("objects.apply", manifests=[node("first")])
        assert _change(await anext(changes)) == ("ADDED", "first")
        since = changes.result["resource_version"]
    await talk("objects.apply", manifests=[node("n1"), node("n2"), node("n3")])
    await talk("nodes.cordon", name="n1")
    await talk("objects.delete", kind="node", name="n2")
    async with talk.client.subscribe("objects.watch", kind="nodes", since=since, interval_s=60) as changes:
        seen = [await anext(changes) for _ in range(4)]
    assert list(map(_change, seen)) == [("ADDED", "first"), ("ADDED", "n3"), ("ADDED", "n1"), ("DELETED", "n2")]
    assert seen[2]["object"]["spec"]["unschedulable"] is True


@pytest.mark.parametrize("interval_s", [0, 0.01])
async def test_a_watch_leaves_out_the_kinds_that_it_is_to_be_without(talk: Talk, interval_s: float) -> None:
    async with talk.client.subscribe("objects.watch", without=["Pod", "Node"], interval_s=interval_s) as changes:
        await talk("objects.apply", manifests=[node("n1"), config_map("m", 1)])
        while (change := _change(await anext(changes)))[1] != "m":
            assert change[1] != "n1"


async def test_a_watch_from_a_version_of_another_history_is_gone(talk: Talk) -> None:
    found = await talk("objects.list", kind="nodes")
    version, epoch = found["resource_version"], found["epoch"]
    async with talk.client.subscribe("objects.watch", kind="nodes", since=version, epoch=epoch):
        pass
    for since, of, words in (
        (version, "0" * 32, f"resource version {version} belongs to another history of this cluster: list again"),
        (version + 1, epoch, f"Too large resource version: {version + 1}, current: {version}"),
    ):
        with pytest.raises(RpcError, match=words) as gone:
            await talk("objects.watch", kind="nodes", since=since, epoch=of)
        assert gone.value.code == "gone"


async def test_events_are_followed(talk: Talk) -> None:
    async with talk.client.subscribe("events.watch", namespace="default") as events:
        await talk("objects.apply", manifests=[node(), pod("a")])
        event = await anext(events)
        assert (event["reason"], event["object"]) == ("Scheduled", "Pod/a")


async def test_events_are_followed_from_where_a_client_was(talk: Talk) -> None:
    async with talk.client.subscribe("events.watch") as events:
        await talk("objects.apply", manifests=[node(), pod("a")])
        seen = await anext(events)
        start = events.result
    await talk("objects.apply", manifests=[pod("b")])
    async with talk.client.subscribe("events.watch", since=seen["number"], instance=start["instance"]) as events:
        assert (await anext(events))["object"] == "Pod/b"
    for since, instance in ((seen["number"], "0" * 32), (10_000, start["instance"])):
        with pytest.raises(RpcError, match=f"the events after number {since} are not kept") as gone:
            await talk("events.watch", since=since, instance=instance)
        assert gone.value.code == "gone"


async def test_the_status_is_followed(talk: Talk) -> None:
    async with talk.client.subscribe("scheduler.watch", interval_s=0) as statuses:
        assert (await anext(statuses))["scheduled"] == 0
        await talk("objects.apply", manifests=[node(), pod("a")])
        with trio.fail_after(90):
            async for status in statuses:
                if status["scheduled"] == 1:
                    break
        assert status["last_decisions"][0]["pod"] == "default/a"


async def test_weights_are_changed_and_shown(talk: Talk) -> None:
    change = {"profile": "default-scheduler", "plugin": "NodeResourcesFit"}
    assert await talk("scheduler.set_weight", **change, weight=5) == {"before": 1, "after": 5}
    config = await talk("scheduler.config")
    score = {ref["name"]: ref["weight"] for ref in config["profiles"][0]["plugins"]["score"]}
    assert score["NodeResourcesFit"] == 5
    for wrong, words in (
        ({"plugin": "NodeName"}, "does not score in this profile"),
        ({"profile": "other"}, "no such profile"),
        ({"weight": 0}, "not a weight"),
    ):
        with pytest.raises(RpcError, match=words):
            await talk("scheduler.set_weight", **{**change, "weight": 1, **wrong})
    assert await talk("scheduler.set_weight", **change, weight=1) == {"before": 5, "after": 1}


async def test_single_objects_are_made_replaced_and_edited(talk: Talk) -> None:
    made = (await talk("objects.create", manifest=deployment()))["object"]
    with pytest.raises(RpcError, match="already exists") as twice:
        await talk("objects.create", manifest=deployment())
    assert twice.value.code == "already_exists"
    made["spec"]["replicas"] = 7
    replaced = (await talk("objects.replace", manifest=made))["object"]
    assert replaced["spec"]["replicas"] == 7
    with pytest.raises(RpcError, match="the object has been modified") as stale:
        await talk("objects.replace", manifest={**made, "metadata": {**made["metadata"], "resourceVersion": "1"}})
    assert stale.value.code == "conflict"
    scaled = await talk("objects.scale", kind="deploy", name="web", replicas=2)
    assert (scaled["before"], scaled["after"]) == (7, 2)
    changed = await talk("objects.patch", kind="deploy", name="web", patch={"spec": {"paused": True}})
    assert changed["changed"] == ["spec.paused"]
    labelled = await talk("objects.label", kind="deploy", name="web", set={"tier": "front"})
    assert labelled["object"]["metadata"]["labels"]["tier"] == "front"
    noted = await talk("objects.annotate", kind="deploy", name="web", set={"a/b": "c"})
    assert noted["object"]["metadata"]["annotations"]["a/b"] == "c"
    gone = await talk("objects.delete", kind="deploy", name="web")
    assert gone["deleted"] == [{"kind": "Deployment", "namespace": "default", "name": "web", "gone": True}]
    with pytest.raises(RpcError) as missing:
        await talk("objects.get", kind="deploy", name="web")
    assert missing.value.code == "not_found"


async def _counts(cluster: LiveCluster, task_status: trio.TaskStatus[set[int]]) -> None:
    """Record the number of pods whenever the store is idle."""
    seen: set[int] = set()
    task_status.started(seen)
    while True:
        seen.add(await cluster.store.do(lambda store: store.count("Pod")))


async def test_others_are_answered_while_many_objects_are_deleted(talk: Talk, nursery: trio.Nursery) -> None:
    await talk("objects.apply", manifests=[pod(f"p{number}") for number in range(250)])
    seen = await nursery.start(_counts, talk.cluster)
    gone = await talk("objects.delete", kind="Pod", all=True)
    assert len(gone["deleted"]) == 250
    assert seen & {150, 50}


async def test_others_are_answered_while_a_dump_of_manifests_is_loaded(
    talk: Talk, nursery: trio.Nursery, tmp_path: Path
) -> None:
    dump = tmp_path / "pods.json"
    dump.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [pod(f"p{n}") for n in range(70)]}))
    seen = await nursery.start(_counts, talk.cluster)
    taken = await talk("cluster.load", paths=[str(dump)])
    assert (taken["applied"], taken["errors"]) == (70, [])
    assert seen & {32, 64}


@pytest.mark.parametrize(
    ("dumped", "used", "kept"),
    [
        pytest.param({"metadata": {"name": "n2", "uid": "u"}}, False, False, id="a-dump-has-its-own-classes"),
        pytest.param({"metadata": {"name": "n2", "uid": "u"}}, True, True, id="a-class-in-use-stays"),
        pytest.param({"metadata": {"name": "n2"}}, False, True, id="manifests-are-no-dump"),
    ],
)
async def test_a_dump_is_loaded_in_place_of_the_default_storage_class(
    talk: Talk, tmp_path: Path, dumped: dict[str, Any], used: bool, kept: bool
) -> None:
    await talk("objects.create", manifest=dict(STANDARD_CLASS))
    store = talk.cluster.store
    await store.do(lambda here: here.simulate_pods(PodBehavior(5.0, 1.0, waits_for_configuration=True)))
    if used:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": spec}
        await talk("objects.create", manifest=claim)
    file = tmp_path / "nodes.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [{**node(), **dumped}]}))
    assert (await talk("cluster.load", paths=[str(file)]))["errors"] == []
    found = await talk("objects.list", kind="StorageClass")
    assert bool(found["items"]) is kept
    behavior = await store.do(lambda here: here.pod_behavior)
    assert behavior == (
        PodBehavior(None, 1.0) if "uid" in dumped["metadata"] else PodBehavior(5.0, 1.0, None, None, True)
    )


async def test_nodes_are_tainted_and_cordoned(talk: Talk) -> None:
    await talk("objects.create", manifest=node())
    tainted = await talk("nodes.taint", name="n1", taints=["a=b:NoSchedule"])
    assert tainted["object"]["spec"]["taints"] == [{"key": "a", "value": "b", "effect": "NoSchedule"}]
    assert (await talk("nodes.cordon", name="n1"))["changed"] == ["spec.unschedulable"]
    again = await talk("nodes.cordon", name="n1")
    assert (again["changed"], again["warnings"], again["unsupported"]) == ([], [], [])
    assert (await talk("nodes.uncordon", name="n1"))["changed"] == ["spec.unschedulable"]


@pytest.mark.parametrize(
    ("method", "given", "code", "words"),
    [
        pytest.param(
            "objects.list", {"kind": "pods", "label_selector": "a in"}, "invalid", "invalid selector", id="labels"
        ),
        pytest.param(
            "objects.list", {"kind": "pods", "label_selector": "a ~ b"}, "invalid", "found '~'", id="unknown-operator"
        ),
        pytest.param(
            "objects.list", {"kind": "pods", "field_selector": "a"}, "invalid", "can't understand 'a'", id="fields"
        ),
        pytest.param("objects.get", {"kind": "pods"}, "bad_params", "name", id="a-parameter-missing"),
        pytest.param("objects.get", {"kind": "pods", "name": "x"}, "not_found", 'pods "x" not found', id="no-object"),
        pytest.param("objects.create", {"manifest": {}}, "invalid", "kind: Required value", id="an-empty-manifest"),
        pytest.param("objects.create", {"manifest": node(cpu="-1")}, "invalid", "must be greater than", id="cpu"),
        pytest.param("events.list", {"for": "web"}, "invalid", "is not KIND/NAME", id="no-object-named"),
        pytest.param("scheduler.explain", {"pod": node()}, "invalid", "a Node is not a Pod", id="explain-a-node"),
        pytest.param("scheduler.explain", {"pod": "x"}, "not_found", 'pods "x" not found', id="explain-nothing"),
        pytest.param(
            "scheduler.explain",
            {"pod": pod(schedulerName="other")},
            "invalid",
            "requests scheduler 'other'; configured profiles: default-scheduler",
            id="explain-for-another-scheduler",
        ),
        pytest.param("queue.list", {"place": "nowhere"}, "bad_params", "place", id="no-such-place"),
    ],
)
async def test_what_is_wrong_is_said(talk: Talk, method: str, given: dict[str, Any], code: str, words: str) -> None:
    with pytest.raises(RpcError, match=words) as refused:
        await talk(method, **given)
    assert refused.value.code == code


async def test_the_daemon_says_what_it_is(talk: Talk) -> None:
    info = await talk("daemon.info")
    assert (info["version"], info["seed"], info["profiles"], info["journal"]) == (
        "1.2.3",
        7,
        ["default-scheduler"],
        None,
    )
    assert info["objects"] == {"Namespace": 4, "PriorityClass": 2}
    kinds = await talk("objects.kinds")
    assert {"name": "Pod", "plural": "pods", "count": 0}.items() <= next(k for k in kinds if k["name"] == "Pod").items()
    assert await talk("daemon.stop", grace_s=0.5) == {"stopping": True}
    assert talk.daemon.stop.is_set()
    assert talk.daemon.grace_s == 0.5


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        pytest.param("scheduler.watch", {"interval_s": float("nan")}, "bad_params", id="no-number"),
        pytest.param("scheduler.watch", {"interval_s": float("inf")}, "bad_params", id="for-ever"),
        pytest.param("daemon.stop", {"grace_s": float("nan")}, "bad_params", id="no-grace"),
        pytest.param("daemon.stop", {"grace_s": 1e300}, "bad_params", id="too-much-grace"),
        pytest.param("daemon.stop", {"grace_s": -1}, "bad_params", id="negative-grace"),
        pytest.param("queue.list", {"limit": -1}, "bad_params", id="negative-number-of-pods"),
        pytest.param("events.list", {"limit": -1}, "bad_params", id="negative-number-of-events"),
        pytest.param("scheduler.decisions", {"limit": -5}, "bad_params", id="negative-number-of-decisions"),
        pytest.param("scheduler.decisions", {"limit": 2**64 - 1}, "bad_params", id="more-than-there-can-be"),
        pytest.param("objects.watch", {"since": -1}, "bad_params", id="before-the-first-version"),
        pytest.param("objects.watch", {"since": 2**64 - 1}, "gone", id="a-version-that-never-comes"),
        pytest.param("objects.watch", {"since": 1, "epoch": "other"}, "gone", id="versions-of-another-history"),
        pytest.param(
            "objects.delete", {"kind": "Pod", "name": "a", "grace_period_s": 2**64 - 1}, "bad_params", id="64"
        ),
        pytest.param("objects.scale", {"kind": "rs", "name": "a", "replicas": 2**40}, "bad_params", id="too-many"),
        pytest.param("stream.cancel", {"stream": -1}, "bad_params", id="no-stream"),
    ],
)
async def test_numbers_that_mean_nothing_are_refused(talk: Talk, method: str, params: Any, code: str) -> None:
    with pytest.raises(RpcError) as refused:
        await talk(method, **params)
    assert refused.value.code == code


async def test_a_watch_from_a_version_that_is_still_to_come_is_refused_in_the_words_of_the_api_server(
    talk: Talk,
) -> None:
    with pytest.raises(RpcError, match=r"Too large resource version: 1000000, current: \d+"):
        await talk("objects.watch", since=1_000_000)


def config_map(name: str, entries: int) -> Any:
    data = {f"k{number}": "x" for number in range(entries)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def test_a_large_object_is_made_and_changed_aside_and_is_what_the_store_has(talk: Talk) -> None:
    made = (await talk("objects.create", manifest=config_map("a", 10_000)))["object"]
    stored = await talk.cluster.store.find("ConfigMap", "default", "a")
    assert stored is not None
    assert made["metadata"] == stored.metadata
    assert made["metadata"]["resourceVersion"] == str(stored.resource_version)
    changed = await talk("objects.label", kind="cm", name="a", set={"b": "c"})
    assert changed["changed"] == ["metadata.labels"]
    assert changed["object"]["metadata"]["uid"] == made["metadata"]["uid"]
    with pytest.raises(RpcError, match="already exists"):
        await talk("objects.create", manifest=config_map("a", 10_000))


async def test_a_short_list_takes_no_turn_among_long_ones(talk: Talk) -> None:
    [method] = [method for method in ReadingMethods(talk.cluster).table() if method.name == "objects.list"]
    assert method.large
    assert method.small is not None
    made = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{n}"}} for n in range(257)]

    async def few(kind: str) -> bool:
        given = bind(method.name, method.params, [{"kind": kind}])
        assert method.small is not None
        return await method.small(Call(method.name, given, "1", services, lambda feed: 0)) is not None

    turns = Turns()
    services = cast(Any, SimpleNamespace(turns=turns, caller=Caller()))
    await talk("objects.apply", manifests=made[1:])
    assert await few("ConfigMap")
    assert turns.slices == 0
    assert not await few("Event")  # the scheduler's Events are in another log
    await talk("objects.apply", manifests=made[0])
    assert not await few("ConfigMap")
    assert await few("Node")


async def test_an_object_larger_than_etcd_takes_is_refused_in_its_words(talk: Talk) -> None:
    large = {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": "a"},
        "template": {"metadata": {"name": "x" * (1536 << 10)}, "spec": {"containers": [{"name": "c", "image": "c"}]}},
    }
    with pytest.raises(RpcError, match=r"^etcdserver: request is too large$") as refused:
        await talk("objects.create", manifest=large)
    assert refused.value.code == "too_large"
    assert await talk.cluster.store.find("PodTemplate", "default", "a") is None


async def test_all_of_an_atomic_apply_is_there_or_nothing(talk: Talk) -> None:
    many = [config_map(f"c{number}", 1) for number in range(300)]
    done = await talk("objects.apply", manifests=many, atomic=True)
    assert (len(done["results"]), done["errors"]) == (300, [])
    assert len((await talk("objects.list", kind="cm"))["items"]) == 300
    bad = [config_map("new", 1), {**config_map("bad", 1), "metadata": {"name": "Bad Name"}}]
    refused = await talk("objects.apply", manifests=bad, atomic=True)
    assert (refused["results"], len(refused["errors"])) == ([], 1)
    assert await talk.cluster.store.find("ConfigMap", "default", "new") is None


async def test_an_atomic_apply_tells_its_objects_as_they_are(talk: Talk) -> None:
    await talk("objects.create", manifest=pod("before"))
    reported = await talk("objects.apply", manifests=[pod("a")], atomic=True, with_objects=True, field_manager="me")
    found = await talk("objects.get", kind="Pod", name="a")
    for field in ("uid", "resourceVersion"):
        assert reported["results"][0]["object"]["metadata"][field] == found["object"]["metadata"][field]
    assert "managedFields" not in reported["results"][0]["object"]["metadata"]


async def test_a_dry_run_changes_nothing(talk: Talk) -> None:
    tried = await talk("objects.apply", manifests=[config_map("a", 1)], dry_run=True)
    assert tried["results"][0]["action"] == "created"
    assert await talk.cluster.store.find("ConfigMap", "default", "a") is None


async def test_who_places_a_pod_himself_binds_it_once(talk: Talk) -> None:
    await talk("objects.apply", manifests=[pod("by-hand", schedulerName="nobody")])
    assert await talk("pods.bind", name="by-hand", node="n1") == {"node": "n1"}
    with pytest.raises(RpcError, match='pod by-hand is already assigned to node "n1"') as refused:
        await talk("pods.bind", name="by-hand", node="n2")
    assert refused.value.code == "conflict"
    with pytest.raises(RpcError, match="not found"):
        await talk("pods.bind", name="who", node="n1")


async def test_the_configuration_is_changed_and_each_change_undone(talk: Talk) -> None:
    profile = "default-scheduler"
    before = await talk("scheduler.config")
    for params, path, values in (
        ({"what": "plugin-off", "plugin": "ImageLocality"}, "plugins.score[ImageLocality]", (1, None)),
        ({"what": "plugin-on", "plugin": "NodeLabel", "points": ["filter"]}, "plugins.filter[NodeLabel]", (None, True)),
        (
            {"what": "args", "plugin": "InterPodAffinity", "args": {"hardPodAffinityWeight": 9}},
            "pluginConfig[InterPodAffinity]",
            ({}, {"hardPodAffinityWeight": 9}),
        ),
        ({"what": "percentage", "percentage": 7}, "percentageOfNodesToScore", (None, 7)),
    ):
        change = await talk("config.change", profile=profile, **params)
        found = {one["path"]: (one["before"], one["after"]) for one in change["values"]}
        assert found[f"profiles[{profile}].{path}"] == values
    for params, path, values in (
        ({"what": "backoff", "seconds": 2, "max_seconds": 4}, "podMaxBackoffSeconds", (10, 4)),
        ({"what": "parallelism", "parallelism": 3}, "parallelism", (16, 3)),
        ({"what": "flush", "seconds": 30}, "podMaxInUnschedulablePodsDuration", ("300s", "30s")),
    ):
        change = await talk("config.change", **params)
        assert (path, *values) in [(one["path"], one["before"], one["after"]) for one in change["values"]]
    assert [change["number"] for change in await talk("config.changes")] == list(range(1, 8))
    for _ in range(7):
        await talk("config.undo")
    assert await talk("scheduler.config") == before
    with pytest.raises(RpcError, match="no change to undo"):
        await talk("config.undo")


async def test_a_whole_configuration_is_taken_in_and_taken_back(talk: Talk) -> None:
    text = "apiVersion: kubescheduler.config.k8s.io/v1beta1\nkind: KubeSchedulerConfiguration\nparallelism: 5\n"
    before = await talk("scheduler.config")
    await talk("config.change", what="all", text=text)
    values = {one["path"]: (one["value"], one["origin"]) for one in await talk("config.values")}
    assert values["parallelism"] == (5, "change 1")
    assert values["profiles[default-scheduler].plugins.score[NodePreferAvoidPods]"] == (10000, "change 1")
    await talk("config.undo")
    assert await talk("scheduler.config") == before


async def test_configuration_files_are_checked_shown_and_converted(talk: Talk) -> None:
    text = "apiVersion: v1\nkind: Policy\npriorities: [{name: EqualPriority, weight: 1}]\n"
    checked = await talk("config.check", text=text, source="p.yaml")
    assert (checked["release"], checked["errors"]) == ("v1.19", [])
    assert [(one["file"], one["line"]) for one in checked["warnings"]] == [("p.yaml", 3)]
    converted = await talk("config.convert", text=text)
    assert converted["text"].startswith("# line 3, $.priorities[0].name: EqualPriority: has no effect")
    assert {"path": "parallelism", "value": 16, "origin": "default of v1.19"} in await talk("config.show", text=text)
    wrong = await talk("config.check", text=text.replace("EqualPriority", "EqalPriority"), source="p.yaml")
    why = 'no such priority; did you mean "EqualPriority"?'
    assert [(one["line"], one["why"]) for one in wrong["errors"]] == [(3, why)]
    again = await talk("config.convert")
    assert "kind: KubeSchedulerConfiguration" in again["text"]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"what": "weight", "profile": "default-scheduler"}, "plugin: required for a change of weight"),
        ({"what": "plugin-on", "profile": "default-scheduler", "plugin": "Nope"}, "no such plugin"),
        ({"what": "plugin-off", "profile": "other", "plugin": "NodeName"}, "no such profile"),
        ({"what": "all", "text": "kind: Policy"}, "apiVersion: required, but missing"),
        ({"what": "nonsense"}, "what"),
        (
            {
                "what": "all",
                "text": "apiVersion: kubescheduler.config.k8s.io/v1alpha1\nkind: KubeSchedulerConfiguration\n"
                "algorithmSource: {policy: {file: {path: /etc/passwd}}}\n",
            },
            "the daemon does not read files for its clients",
        ),
    ],
)
async def test_a_change_that_is_refused_changes_nothing(talk: Talk, params: dict[str, Any], words: str) -> None:
    before = await talk("scheduler.config")
    with pytest.raises(RpcError, match=words):
        await talk("config.change", **params)
    assert await talk("scheduler.config") == before
    assert await talk("config.changes") == []
