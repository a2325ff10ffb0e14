"""Tests of forks over the socket: they leave the live cluster unchanged, and predict its behavior."""

import gc
import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from kschedd.actors.clock import VIRTUAL, Clock
from kschedd.actors.cluster import LiveCluster
from kschedd.api.pods import Pod
from kschedd.clusters.forks import MOST_FORKS, fork_of
from kschedd.config.loading.load import default_config
from kschedd.config.versions.kube_versions import V1_34
from kschedd.controllers.embedded import embedded_controllers
from kschedd.daemon import cluster_actors
from kschedd.methods import cluster_methods, daemon_methods
from kschedd.rpc.client import Client
from kschedd.rpc.sessions.built_in import method_table
from kschedd.rpc.sessions.listener import unix_listener
from kschedd.rpc.sessions.server import Server
from kschedd.service.daemon.process import DaemonState
from kschedd.service.errors import RpcError
from kschedd.service.workers import GivenUp
from kschedd.simulation.engine import Engine
from kschedd.store.cluster_api import ClusterReader
from tests.actors.clusters import deployment, node, pod, rejected, until

START_S = 1_735_689_600.0


class MachineClock:
    now_s = 0.0


class Talk:
    def __init__(self, client: Client, cluster: LiveCluster, machine: MachineClock) -> None:
        self.client, self.cluster, self.machine = client, cluster, machine

    async def __call__(self, method: str, /, **named: Any) -> Any:
        with trio.fail_after(60):
            return await self.client.call(method, **named)

    async def within(self, fork: str, method: str, /, **params: Any) -> Any:
        return await self("fork.call", fork=fork, method=method, params=params)


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    """Run three nodes, a Deployment whose pods run, and a pod that is too large for all nodes."""
    path = tmp_path / "kschedd.sock"
    controllers = embedded_controllers()
    config = default_config(version=V1_34)
    async with (
        cluster_actors(config, seed=7, controllers=controllers) as cluster,
        unix_listener(path) as listener,
    ):
        machine = MachineClock()
        daemon = DaemonState("1.2.3", str(path), cluster.clock.now(), machine_s=lambda: machine.now_s)
        server = Server(method_table(daemon_methods(cluster, daemon)))
        async with trio.open_nursery() as nursery:
            await nursery.start(server.serve, [listener])
            async with Client.connect(path) as client:
                talk = Talk(client, cluster, machine)
                nodes = [node(name, labels={"topology.kubernetes.io/zone": name}) for name in ("n1", "n2", "n3")]
                await talk("objects.apply", manifests=[*nodes, deployment(replicas=4, cpu="500m"), pod("big", cpu="9")])
                await running(talk.cluster, 4)
                await rejected(talk.cluster, "big")
                yield talk
            nursery.cancel_scope.cancel()


async def running(cluster: LiveCluster, count: int) -> None:
    """Wait until this number of the Deployment's pods run and its status contains this; then no work is pending."""

    def is_so(store: Any) -> bool:
        pods = [each for each in store.list("Pod") if each.labels.get("app") == "web"]
        ready = store.get("Deployment", "default", "web").status.get("readyReplicas") or 0
        return ready == count == len([each for each in pods if each.status.get("phase") == "Running"])

    await until(cluster, is_so)


def lasting(raw: Any) -> Any:
    """Return the object without fields that change with time."""
    return {**raw, "status": {key: value for key, value in raw.get("status", {}).items() if key != "conditions"}}


async def state_of(cluster: LiveCluster) -> str:
    """Return the daemon's objects, queue, nominations and columns as text. Leases change with time alone."""
    objects = await cluster.store.do(
        lambda store: [[lasting(obj.raw) for obj in store.list(kind)] for kind in store.kinds() if kind != "Lease"]
    )
    queue = await cluster.queue.query(
        lambda owner: [(each.key, str(each.place), each.attempts) for each in owner.queue.entries()]
    )
    scheduler = await cluster.scheduler.query(
        lambda owner: [
            owner.machine.cluster.table.requested.tolist(),
            [[each.key for each in pods] for pods in owner.machine.cluster.table.pods],
            list(owner.bindings.cycles),
            repr(owner.machine.choose.random.getstate()),
            owner.machine.start.index,
            owner.machine.config.profiles[0].weight("NodeResourcesFit"),
        ]
    )
    return json.dumps([objects, queue, scheduler], default=repr)


async def nodes_of(talk: Talk, fork: str | None = None) -> dict[str, str]:
    wanted = {"kind": "Pod", "label_selector": "app=web"}
    found = await (talk("objects.list", **wanted) if fork is None else talk.within(fork, "objects.list", **wanted))
    return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in found["items"]}


async def test_a_fork_of_virtual_time_taken_while_much_is_under_way_foretells_what_comes(tmp_path: Path) -> None:
    clock = Clock.started(START_S, VIRTUAL)
    async with cluster_actors(seed=7, controllers=embedded_controllers(), clock=clock) as cluster:
        await cluster.store.create_many([node(name, cpu="8") for name in ("n1", "n2", "n3")])
        await cluster.store.create(deployment(replicas=40, cpu="100m"))
        job = {"parallelism": 10, "completions": 40, "template": deployment()["spec"]["template"]}
        job["template"]["spec"]["restartPolicy"] = "Never"
        job["template"]["metadata"]["annotations"] = {"kschedd.io/run-seconds": "1"}
        await cluster.store.create(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": "batch", "namespace": "default"},
                "spec": job,
            }
        )
        engine = Engine(resumed=await cluster.snapshot())
        engine.advance(START_S + 300)
        await cluster.time.advance(START_S + 300, trio.lowlevel.checkpoint)
        placed = await cluster.store.do(_places)
        assert len(placed) == 80
        assert _places(engine.store) == placed


def _places(store: ClusterReader) -> dict[str, str]:
    return {pod.name: pod.node_name for pod in store.list("Pod") if isinstance(pod, Pod)}


async def test_what_is_done_in_a_fork_does_not_touch_the_cluster(talk: Talk) -> None:
    before = await state_of(talk.cluster)
    await talk("fork.create", name="a")
    await talk.within("a", "objects.apply", manifests=[deployment(replicas=9, cpu="500m"), node("n4", cpu="16")])
    await talk.within("a", "nodes.taint", name="n1", taints=["k=v:NoExecute"])
    await talk.within("a", "nodes.stop", name="n2")
    await talk.within("a", "objects.delete", kind="Node", name="n3")
    await talk.within("a", "scheduler.set_weight", profile="default-scheduler", plugin="NodeResourcesFit", weight=7)
    await talk("fork.advance", fork="a", seconds=1_000)
    different = await talk("fork.diff", fork="a")
    assert {each["sign"] + each["name"] for each in different["nodes"]} == {"~n1", "~n2", "-n3", "+n4"}
    assert different["config"] == ["weight NodeResourcesFit 7 in default-scheduler"]
    assert {"placed", "moved"} <= {each["change"] for each in different["pods"]}
    assert await state_of(talk.cluster) == before


async def test_pods_of_a_deleted_node_are_different_before_any_time_passes(talk: Talk) -> None:
    on = await talk.cluster.store.do(lambda store: {pod.name: pod.node_name for pod in store.list("Pod")})
    name = next(name for name in on.values() if name)
    await talk("fork.create", name="a")
    await talk.within("a", "objects.delete", kind="Node", name=name)
    different = await talk("fork.diff", fork="a")
    orphaned = {each["name"]: each["node"] for each in different["pods"] if each["change"] == "orphaned"}
    assert orphaned == {pod: node_name for pod, node_name in on.items() if node_name == name}
    await talk("fork.advance", fork="a", seconds=1_000)
    later = await talk("fork.diff", fork="a")
    assert "orphaned" not in {each["change"] for each in later["pods"]}


async def test_a_fork_may_make_the_decisions_of_another_version(talk: Talk) -> None:
    await talk("fork.create", name="a", version="1.36")
    [profile] = (await talk.within("a", "scheduler.config"))["profiles"]
    assert {plugin["name"]: plugin["weight"] for plugin in profile["plugins"]["score"]}["DynamicResources"] == 2
    assert (await talk("fork.diff", fork="a"))["config"] == ["kube-version 1.36"]
    [here] = (await talk("scheduler.config"))["profiles"]
    assert "DynamicResources" not in {plugin["name"] for plugin in here["plugins"]["score"]}
    with pytest.raises(RpcError, match=r'Kubernetes "1\.33" is not supported .*; 1\.34 is the closest'):
        await talk("fork.create", name="b", version="1.33")


async def test_a_fork_may_have_features_turned_on_and_keeps_the_fields_of_its_version(talk: Talk) -> None:
    gates = ["GenericWorkload=true,GangScheduling=true"]
    await talk("fork.create", name="a", version="1.36", feature_gates=gates)
    what = "kube-version 1.36 GenericWorkload=true GangScheduling=true"
    assert (await talk("fork.diff", fork="a"))["config"] == [what]
    grouped = {**pod("red"), "spec": {**pod("red")["spec"], "schedulingGroup": {"podGroupName": "red"}}}
    [refused] = (await talk("objects.apply", manifests=[grouped]))["errors"]
    assert 'unknown field "spec.schedulingGroup"' in refused["why"]
    assert (await talk.within("a", "objects.apply", manifests=[grouped]))["errors"] == []
    made = await talk.within("a", "objects.get", kind="Pod", name="red")
    assert made["object"]["spec"]["schedulingGroup"] == {"podGroupName": "red"}


@pytest.mark.parametrize(
    ("version", "gates", "why"),
    [
        pytest.param("1.36", ["Ganging=true"], 'no such feature gate; did you mean "GangScheduling', id="unknown"),
        pytest.param("1.34", ["GangScheduling=true"], "no such feature gate", id="not-of-that-version"),
        pytest.param("1.36", ["DRAAdminAccess=false"], "its gate locked", id="locked"),
        pytest.param("1.36", ["GangScheduling=true"], "GenericWorkload=true, too", id="without-what-it-builds-on"),
        pytest.param(None, ["GangScheduling"], "GangScheduling=true or GangScheduling=false", id="without-a-state"),
    ],
)
async def test_gates_that_a_fork_cannot_have_are_refused(
    talk: Talk, version: str | None, gates: list[str], why: str
) -> None:
    with pytest.raises(RpcError, match=why):
        await talk("fork.create", name="a", version=version, feature_gates=gates)
    assert await talk("fork.list") == []


async def test_nodes_like_one_that_is_there_are_added_in_a_fork_and_in_the_cluster(talk: Talk) -> None:
    await talk("nodes.taint", name="n1", taints=["team=red:NoSchedule"])
    await talk("nodes.cordon", name="n1")
    await talk("fork.create", name="a")
    await talk("nodes.add", like="n1", prefix="n1")
    assert await talk.within("a", "nodes.add", like="n1", count=2) == ["n1-1", "n1-2"]
    assert await talk("nodes.add", like="n1", count=2) == ["n1-2", "n1-3"]
    added = (await talk("objects.get", kind="Node", name="n1-3"))["object"]
    assert added["spec"]["taints"] == [{"key": "team", "value": "red", "effect": "NoSchedule"}]
    assert added["metadata"]["labels"]["topology.kubernetes.io/zone"] == "n1"
    with pytest.raises(RpcError, match='nodes "n9" not found'):
        await talk("nodes.add", like="n9")


async def test_what_was_planned_is_what_happens(talk: Talk) -> None:
    await talk("fork.create", name="plan")
    bigger = deployment(replicas=10, cpu="500m")
    await talk.within("plan", "objects.apply", manifests=[bigger])
    await talk("fork.advance", fork="plan", seconds=None)
    planned = await nodes_of(talk, "plan")
    await talk("objects.apply", manifests=[bigger])
    await running(talk.cluster, 10)
    assert await nodes_of(talk) == planned
    assert len(planned) == 10


async def test_a_fork_of_a_fork_goes_on_from_there(talk: Talk) -> None:
    await talk("fork.create", name="a")
    await talk.within("a", "objects.apply", manifests=[node("n4", cpu="16")])
    made = await talk("fork.create", name="b", of="a")
    assert (made["of"], made["nodes"]) == ("a", 4)
    await talk.within("b", "objects.delete", kind="Node", name="n4")
    assert (await talk("fork.diff", fork="b"))["nodes"] == [{"sign": "-", "name": "n4", "what": ["gone"]}]
    different = await talk("fork.diff", fork="a")
    assert different["nodes"] == [{"sign": "+", "name": "n4", "what": ["new"]}]
    assert [(each["change"], each["name"], each["to"]) for each in different["pods"]] == [("placed", "big", "n4")]


async def test_what_was_changed_by_hand_is_exported_and_can_be_applied(talk: Talk) -> None:
    await talk("fork.create", name="a")
    await talk.within("a", "objects.scale", kind="Deployment", name="web", replicas=2)
    await talk.within("a", "objects.apply", manifests=[node("n4")])
    await talk.within("a", "objects.delete", kind="Pod", name="big")
    found = await talk("fork.export", fork="a")
    assert found["deleted"] == [{"kind": "Pod", "namespace": "default", "name": "big"}]
    results = (await talk("objects.apply", manifests=found["manifests"], dry_run=True))["results"]
    assert [(each["kind"], each["name"], each["action"]) for each in results] == [
        ("Deployment", "web", "configured"),
        ("Node", "n4", "created"),
    ]


async def test_what_the_api_server_gives_a_job_and_a_service_is_not_exported_and_what_they_state_is(talk: Talk) -> None:
    await talk("fork.create", name="a")
    of_pods = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"}, "spec": {"template": of_pods}}
    await talk.within("a", "objects.create", manifest=job)
    for name, spec in (("plain", {}), ("headless", {"clusterIP": "None"})):
        spec = {**spec, "ports": [{"port": 80}]}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
        await talk.within("a", "objects.create", manifest=service)
    found = await talk("fork.export", fork="a")
    applied = await talk("objects.apply", manifests=found["manifests"])
    assert (applied["errors"], len(applied["results"])) == ([], 3)
    for name, address in (("plain", "10.0.1.2"), ("headless", "None")):
        made = await talk("objects.get", kind="Service", name=name)
        assert made["object"]["spec"]["clusterIP"] == address


async def test_forks_are_listed_and_limited_and_go_when_discarded(talk: Talk) -> None:
    for number in range(MOST_FORKS):
        made = await talk("fork.create")
        assert made["name"] == f"fork-{number + 1}"
    with pytest.raises(RpcError, match=f'there are {MOST_FORKS} forks, which is the limit.*"fork-1" has not been used'):
        await talk("fork.create", name="more")
    assert [each["name"] for each in await talk("fork.list")][:2] == ["fork-1", "fork-2"]
    await talk("fork.discard", fork="fork-1")
    assert (await talk("fork.create", name="more"))["name"] == "more"


async def test_the_fork_not_used_for_the_longest_time_is_known_by_the_machines_clock(talk: Talk) -> None:
    await talk("fork.create", name="a")
    talk.machine.now_s = 100.0
    await talk.within("a", "daemon.info")
    talk.machine.now_s = 130.0
    (reported,) = await talk("fork.list")
    assert (reported["age_s"], reported["idle_s"]) == (130, 30)


async def test_a_large_snapshot_is_no_work_for_the_garbage_collector(talk: Talk) -> None:
    snapshot = await talk.cluster.snapshot()
    old = {id(each) for each in gc.get_objects(generation=2)}
    assert {id(snapshot.store), id(snapshot.driver.cluster)} <= old


async def test_what_waited_while_its_fork_was_discarded_is_refused(talk: Talk) -> None:
    fork = fork_of("a", "", await talk.cluster.snapshot(), cluster_methods, 0.0)
    assert fork.use(lambda one: one.name, GivenUp()) == "a"
    fork.close()
    with pytest.raises(RpcError, match='there is no fork "a"'):
        fork.use(lambda one: one.name, GivenUp())


@pytest.mark.parametrize(
    ("method", "params", "code", "why"),
    [
        ("fork.create", {"name": "Not A Name"}, "invalid", "is no name of a fork"),
        ("fork.create", {"name": "a"}, "already_exists", 'there is a fork "a" already'),
        ("fork.create", {"of": "b"}, "not_found", 'there is no fork "b"'),
        ("fork.diff", {"fork": "aa"}, "not_found", 'did you mean "a"'),
        ("fork.call", {"fork": "a", "method": "fork.list"}, "unknown_method", "fork.list"),
        ("fork.call", {"fork": "a", "method": "daemon.stop"}, "invalid", "is not a process that can be stopped"),
        ("fork.call", {"fork": "a", "method": "objects.get"}, "bad_params", "kind"),
        ("fork.call", {"fork": "a", "method": "objects.watch", "params": {"kind": "Pod"}}, "invalid", "changes"),
    ],
)
async def test_what_cannot_be_done_is_refused_in_words(
    talk: Talk, method: str, params: dict[str, Any], code: str, why: str
) -> None:
    await talk("fork.create", name="a")
    with pytest.raises(RpcError, match=why) as refused:
        await talk(method, **params)
    assert refused.value.code == code


@pytest.mark.parametrize("seconds", [-1, 1e308, 10 * 365 * 86_400 + 1])
async def test_time_in_a_fork_passes_as_asked_or_not_at_all(talk: Talk, seconds: float) -> None:
    await talk("fork.create", name="a")
    with pytest.raises(RpcError, match=r"allowed: number[|]null from 0 to 315360000"):
        await talk("fork.advance", fork="a", seconds=seconds)
    assert (await talk("fork.list"))[0]["elapsed_s"] == 0


YEARS_S = 5 * 365 * 86_400  # lifetime of leases and heartbeats in seconds, so that the fork never renews them


async def time_passes(talk: Talk, name: str) -> None:
    """Wait until time has passed in the fork."""
    with trio.fail_after(180):
        while not any(fork["name"] == name and fork["elapsed_s"] for fork in await talk("fork.list")):
            await trio.lowlevel.checkpoint()


async def test_discarding_a_fork_ends_what_runs_in_it(talk: Talk) -> None:
    await talk("fork.create", name="a")
    ended: list[str] = []

    async def advance() -> None:
        with pytest.raises(RpcError) as reported:
            await talk.client.call("fork.advance", fork="a", seconds=YEARS_S)
        ended.append(reported.value.code)

    async with trio.open_nursery() as nursery, Client.connect(talk.client.path) as other:
        nursery.start_soon(advance)
        await time_passes(talk, "a")
        with trio.fail_after(180):
            await other.call("fork.discard", fork="a")
    assert ended == ["not_found"]


async def test_what_runs_in_a_fork_ends_with_the_client_that_asked_for_it(talk: Talk) -> None:
    await talk("fork.create", name="a")
    async with Client.connect(talk.client.path) as other, trio.open_nursery() as nursery:
        nursery.start_soon(partial(other.call, "fork.advance", fork="a", seconds=YEARS_S))
        await time_passes(talk, "a")
        nursery.cancel_scope.cancel()
    assert await talk.within("a", "objects.list", kind="Node")
    (fork,) = await talk("fork.list")
    assert 0 < fork["elapsed_s"] < YEARS_S
