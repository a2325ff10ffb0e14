"""Tests of a mirror of a cluster: here of kschedd's REST API, whose answers recorded conversations verify."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import attrs
import msgspec
import pytest
import trio

from kschedd.access.addresses import Address
from kschedd.access.credentials import ListenSettings
from kschedd.actors.cluster import LiveCluster
from kschedd.api.container_ids import with_container_ids
from kschedd.api.pods import Pod
from kschedd.apiserver.serving import http_face
from kschedd.causes.methods import CauseMethods
from kschedd.clusters.virtual import VirtualCluster, VirtualDaemon
from kschedd.controllers.embedded import embedded_controllers
from kschedd.controllers.parts import without_parts
from kschedd.daemon import cluster_actors
from kschedd.dumps.dumped_condition import dumped_condition
from kschedd.limits import read_limits
from kschedd.live.answers import MirrorAnswer
from kschedd.live.api_server import ApiServer, ServedPage, ServedResource, WatchBatch
from kschedd.live.connection import ServerConnection, ServerRequest
from kschedd.live.errors import HistoryLost, LiveError, NotServed, faults_of
from kschedd.live.holding import as_held, new_importer
from kschedd.live.mirror import MIRRORED, MirrorActor, mirroring
from kschedd.methods import cluster_methods
from kschedd.printing.reports.scheduling import status_text
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.service.daemon.process import DaemonState
from kschedd.store.errors import Mirrored
from tests.apiserver.asking import node, pod

Raw = dict[str, Any]
OriginT = TypeVar("OriginT", bound="Origin")

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{url}"}}}}]
users: [{{name: u, user: {{}}}}]
contexts: [{{name: here, context: {{cluster: c, user: u}}}}]
current-context: here
"""
PODS = ServedResource("Pod", "v1", "pods")


@attrs.frozen(eq=False)
class Origin:
    """The mirrored cluster, with its scheduler, kubelets and one node; `stop` ends it and its server."""

    cluster: LiveCluster
    port: int
    stop: trio.Event

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


async def serve(made: Callable[..., OriginT], port: int, parts: Raw, task_status: trio.TaskStatus[OriginT]) -> None:
    stop = trio.Event()
    async with (
        cluster_actors(**parts) as cluster,
        http_face(ListenSettings(Address("127.0.0.1", port)).load(), cluster, "test", 3 << 20) as face,
        trio.open_nursery() as nursery,
    ):
        await nursery.start(face.run)
        await cluster.store.create(node("n1"))
        task_status.started(made(cluster, int(face.url.rpartition(":")[2]), stop))
        await stop.wait()
        face.shut_down(0)


@asynccontextmanager
async def served(made: Callable[..., OriginT], port: int, **parts: Any) -> AsyncIterator[OriginT]:
    """`parts`: as `cluster_actors` takes them."""
    async with trio.open_nursery() as nursery:
        begun: OriginT = await nursery.start(partial(serve, made, port, parts))
        yield begun
        begun.stop.set()


def origin(port: int = 0, *limits: str) -> AbstractAsyncContextManager[Origin]:
    controllers = without_parts(embedded_controllers(), {"controllers"})
    return served(Origin, port, controllers=controllers, limits=read_limits(limits))


@asynccontextmanager
async def mirror_of(folder: Path, origin: Origin) -> AsyncIterator[tuple[LiveCluster, MirrorActor]]:
    file = folder / "kubeconfig"
    file.write_text(KUBECONFIG.format(url=origin.url))
    server = await ApiServer.connect(str(file))
    async with server, cluster_actors() as cluster, trio.open_nursery() as nursery:
        mirror = await mirroring(server, cluster)
        await nursery.start(mirror.run)
        yield cluster, mirror
        nursery.cancel_scope.cancel()


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    with trio.fail_after(180):
        while not await holds():  # noqa: ASYNC110 - what others have has no event for it
            await trio.sleep(0.02)


async def standing(cluster: LiveCluster) -> dict[tuple[str, str, str], Raw]:
    """Return all objects as a client reads them, without their resource versions, which differ between clusters."""
    found = {}
    for kind in MIRRORED:
        for obj in await cluster.store.list(kind):
            meta = {name: value for name, value in obj.metadata.items() if name != "resourceVersion"}
            raw = with_container_ids(obj.raw) if kind == "Pod" else obj.raw
            found[kind, obj.namespace, obj.name] = {**raw, "metadata": meta}
    return found


async def same(one: LiveCluster, other: LiveCluster) -> bool:
    return await standing(one) == await standing(other)


async def runs(cluster: LiveCluster, name: str) -> bool:
    found = await cluster.store.find("Pod", "default", name)
    return found is not None and found.status.get("phase") == "Running"


async def test_it_holds_what_is_there_and_follows_what_happens(tmp_path: Path) -> None:
    async with origin() as real:
        await real.cluster.store.create(pod("before"))
        await until(lambda: runs(real.cluster, "before"))
        async with mirror_of(tmp_path, real) as (cluster, _):
            assert await same(real.cluster, cluster)
            await real.cluster.store.create(pod("after"))
            await until(lambda: runs(cluster, "after"))
            await real.cluster.store.delete("Pod", "default", "before", grace_period_s=0)
            await until(lambda: same(real.cluster, cluster))
            assert [one.name for one in await cluster.store.list("Pod")] == ["after"]
            uid = (await cluster.store.get("Pod", "default", "after")).uid
            assert await cluster.scheduler.query(lambda driver: driver.machine.cluster.pod(uid)) is not None


async def test_it_holds_a_pod_that_gets_an_ephemeral_container(tmp_path: Path) -> None:
    debugger = {"spec": {"ephemeralContainers": [{"name": "debugger", "image": "busybox"}]}}
    async with origin() as real:
        for name in ("before", "after"):
            await real.cluster.store.create(pod(name))
            await until(lambda name=name: runs(real.cluster, name))
        await real.cluster.store.patch("Pod", "default", "before", debugger, subresource="ephemeralcontainers")
        async with mirror_of(tmp_path, real) as (cluster, _):
            assert await same(real.cluster, cluster)
            await real.cluster.store.patch("Pod", "default", "after", debugger, subresource="ephemeralcontainers")
            await until(lambda: same(real.cluster, cluster))
            held = await cluster.store.list("Pod")
            assert [one.raw["spec"]["ephemeralContainers"][0]["name"] for one in held] == ["debugger"] * 2


async def test_it_takes_no_writes_but_its_forks_do(tmp_path: Path) -> None:
    async with origin() as real, mirror_of(tmp_path, real) as (cluster, _):
        with pytest.raises(Mirrored, match=f"mirrored from {real.url} can only be changed there"):
            await cluster.store.create(pod("mine"))
        with pytest.raises(Mirrored):
            await cluster.store.patch("Node", "", "n1", {"spec": {"unschedulable": True}})
        snapshot = await cluster.snapshot()
        snapshot.store.create(pod("mine"))
        assert snapshot.store.find("Pod", "default", "mine") is not None
        assert await cluster.store.find("Pod", "default", "mine") is None


async def test_its_forks_have_controllers_and_schedule(tmp_path: Path) -> None:
    async with origin() as real:
        meta = {"name": "web", "namespace": "default"}
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {**pod("web")["spec"], "nodeSelector": {"a": "b"}}}
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        owned = pod("of-another-kind")
        owned["metadata"]["ownerReferences"] = [
            {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "u-1", "controller": True}
        ]
        await real.cluster.store.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})
        await real.cluster.store.create(owned)
        async with mirror_of(tmp_path, real) as (cluster, _):
            assert await same(real.cluster, cluster)
            fork = VirtualCluster(resumed=await cluster.snapshot())
            fork.engine.run_to_rest(60.0)
            daemon = DaemonState("", "", 0.0, mirror=lambda: MirrorAnswer(real.url, "", None, None))
            methods = CauseMethods(fork, daemon, cluster_methods)
            found = VirtualDaemon(fork, lambda one, own: methods.table()).call(
                "causes.explain", kind="Deployment", name="web"
            )
            first = found["remedies"][0]
            assert (first["scheduled"], first["displaced"]) == ("2 of 2", [])
            assert first["commands"][0].startswith("kubectl patch deployment web ")
            assert fork.engine.store.find("Pod", "default", "of-another-kind") is not None


async def test_pods_that_wait_there_wait_here_and_are_not_attempted(tmp_path: Path) -> None:
    async with origin() as real, mirror_of(tmp_path, real) as (cluster, _):
        large = pod("large")
        large["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1000"}}
        await real.cluster.store.create(large)

        async def waits() -> bool:
            return await cluster.queue.query(lambda owner: sum(owner.queue.counts().values())) == 1

        await until(waits)

        async def is_told() -> bool:
            found = await cluster.store.get("Pod", "default", "large")
            assert isinstance(found, Pod)
            answer = dumped_condition(found)
            return answer is not None and answer.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")

        await until(is_told)
        assert await cluster.log.query(lambda log: len(log.attempts())) == 0


async def test_a_server_that_comes_back_as_another_is_taken_as_it_is_then(tmp_path: Path) -> None:
    async with origin() as real:
        for name in ("a", "b", "c"):
            await real.cluster.store.create(pod(name))
        async with mirror_of(tmp_path, real) as (cluster, mirror):
            real.stop.set()
            await until(lambda: lost(mirror))
            async with origin(real.port) as other:
                await other.cluster.store.create(pod("d"))
                await until(lambda: runs(cluster, "d"))
                await until(lambda: same(other.cluster, cluster))
                await until(lambda: reached(mirror))


async def lost(mirror: MirrorActor) -> bool:
    """Return whether the mirror has found the server unreachable for every resource."""
    return mirror.describe().unreachable is not None and not any(mirror.followed.values())


async def reached(mirror: MirrorActor) -> bool:
    return mirror.describe().unreachable is None


async def test_what_a_server_no_longer_knows_is_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with origin(0, "watch-history=1000") as real:
        async with await _connected(tmp_path, real) as server:
            first = await server.page(PODS)
            for number in range(2100):  # more than the number of kept events, and deleted in one step
                await real.cluster.store.patch("Node", "", "n1", {"metadata": {"labels": {"n": str(number)}}})
            with pytest.raises(HistoryLost):
                async for _ in server.watch(PODS, first.version):
                    pass
        watch, request = ApiServer.watch, []

        async def from_the_first(self: ApiServer, resource: ServedResource, since: str) -> AsyncIterator[WatchBatch]:
            request.append((resource, since))
            async with aclosing(
                watch(self, resource, first.version if request.count(request[-1]) == 1 else since)
            ) as reported:
                async for events in reported:
                    yield events

        monkeypatch.setattr(ApiServer, "watch", from_the_first)
        async with mirror_of(tmp_path, real) as (cluster, _):
            await real.cluster.store.create(pod("a"))
            await until(lambda: runs(cluster, "a"))
            await until(lambda: same(real.cluster, cluster))


async def test_a_resource_that_is_not_served_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = ApiServer.page

    async def without_jobs(self: ApiServer, resource: ServedResource, more: str = "") -> ServedPage:
        if resource.plural == "jobs":
            raise NotServed(self.url, "jobs.batch is forbidden")
        return await page(self, resource, more)

    monkeypatch.setattr(ApiServer, "page", without_jobs)
    async with origin() as real, mirror_of(tmp_path, real) as (cluster, mirror):
        assert await same(real.cluster, cluster)
        assert {resource.kind for resource in mirror.followed} == {*MIRRORED, "DeviceTaintRule"} - {"Job"}


async def test_an_object_that_cannot_be_stored_is_named_until_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ApiServer.page

    async def spoiled(self: ApiServer, resource: ServedResource, more: str = "") -> ServedPage:
        found = await page(self, resource, more)
        for item in found.items if resource.plural == "pods" else ():
            item["spec"]["restartPolicy"] = "Nope"
        return found

    async with origin() as real:
        await real.cluster.store.create(pod("odd"))
        await until(lambda: runs(real.cluster, "odd"))
        with monkeypatch.context() as patched:
            patched.setattr(ApiServer, "page", spoiled)
            async with mirror_of(tmp_path, real) as (cluster, mirror):
                [left_out] = mirror.describe().left_out
                assert (left_out.kind, left_out.namespace, left_out.name) == ("Pod", "default", "odd")
                text = status_text({"mirror": attrs.asdict(mirror.describe())}, {}, TerminalStyle())
                assert f"Left out:   Pod default/odd: do not trust {left_out.affects}: Pod" in text
                assert 'spec.restartPolicy: Unsupported value: "Nope"' in text
                await real.cluster.store.patch("Pod", "default", "odd", {"metadata": {"labels": {"a": "b"}}})
                await until(lambda: runs(cluster, "odd"))
                assert mirror.describe().left_out == []


async def test_kinds_that_the_version_has_by_a_rule_are_mirrored(tmp_path: Path) -> None:
    taint = {"key": "example.com/broken", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
    spec = {"deviceSelector": {"driver": "gpu.example.com"}, "taint": taint}
    rule = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "r"}, "spec": spec}
    async with origin() as real, mirror_of(tmp_path, real) as (cluster, _):

        async def holds() -> bool:
            found = await cluster.store.find("DeviceTaintRule", "", "r")
            return found is not None and found.spec == spec

        await real.cluster.store.create(rule)
        await until(holds)
        await real.cluster.store.delete("DeviceTaintRule", "", "r")
        await until(lambda: _is_gone(cluster, "DeviceTaintRule", "r"))


async def _is_gone(cluster: LiveCluster, kind: str, name: str) -> bool:
    return await cluster.store.find(kind, "", name) is None


async def _connected(folder: Path, origin: Origin) -> ApiServer:
    file = folder / "kubeconfig"
    file.write_text(KUBECONFIG.format(url=origin.url))
    return await ApiServer.connect(str(file))


async def test_a_server_refuses_what_it_does_not_have(tmp_path: Path) -> None:
    async with origin() as real:
        async with await _connected(tmp_path, real) as server:
            with pytest.raises(NotServed):
                await server.page(ServedResource("Moon", "v1", "moons"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("", "is not a usable kubeconfig", id="empty"),
        pytest.param("{", "while parsing a flow node expected the node content", id="no-yaml"),
        pytest.param("kind: Config", "is not a usable kubeconfig", id="nothing-in-it"),
    ],
)
async def test_a_kubeconfig_that_leads_nowhere_is_told(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    with pytest.raises(LiveError, match=why) as raised:
        await ApiServer.connect(str(file))
    assert str(raised.value).startswith(f"{file}: ")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        pytest.param("http://127.0.0.1:1", "http://127.0.0.1:1: GET /api/v1/pods: .*: connection refused", id="nobody"),
        pytest.param("no address", "the URL of the server must begin with http", id="no-address"),
    ],
)
async def test_a_server_that_is_not_there_is_told(tmp_path: Path, url: str, why: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG.format(url=url))
    with pytest.raises(LiveError, match=why):
        async with await ApiServer.connect(str(file)) as server:
            await server.page(PODS)


async def test_a_kubeconfig_or_context_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(LiveError, match="nowhere: cannot be read: there is no such file"):
        await ApiServer.connect(str(tmp_path / "nowhere"))
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG.format(url="http://127.0.0.1:1"))
    with pytest.raises(LiveError, match="kubeconfig: No such context other"):
        await ApiServer.connect(str(file), "other")


@pytest.mark.parametrize(
    "body",
    [
        b"[1]",
        b"{",
        b'{"items": []}',
        b'{"metadata": {"resourceVersion": "1"}, "items": [3]}',
        b'{"metadata": 3}',
        b'{"metadata": {"resourceVersion": "1"}, "items": 7}',
        b"\xff",
    ],
)
async def test_nonsense_for_a_list_is_an_error_of_the_server(body: bytes) -> None:
    with pytest.raises(LiveError, match=r"^http://there: "):
        await ApiServer(_Saying(body)).page(PODS)


@pytest.mark.parametrize(
    "body",
    [
        b"[1]\n",
        b"{}\n",
        b'{"type": "ADDED"}\n',
        b'{"type": "ADDED", "object": {"metadata": 3}}\n',
        b'{"type": "MOVED", "object": {"metadata": {}}}\n',
        b'{"type": "ERROR", "object": {"code": 500, "message": "no"}}\n',
    ],
)
async def test_nonsense_for_an_event_is_an_error_of_the_server(body: bytes) -> None:
    with pytest.raises(LiveError, match=r"^http://there: "):
        async for _ in ApiServer(_Saying(body)).watch(PODS, "1"):
            pass


async def test_an_event_may_come_in_pieces() -> None:
    event = b'{"type": "ADDED", "object": {"metadata": {"name": "a"}}}\n'
    reported = [list(batch.events) async for batch in ApiServer(_Saying(event[:9], event[9:] + event)).watch(PODS, "1")]
    one = {"type": "ADDED", "object": {"metadata": {"name": "a"}, "kind": "Pod", "apiVersion": "v1"}}
    assert reported == [[], [one, one]]


async def test_pods_that_are_decoded_by_templates_are_stored_like_others() -> None:
    written = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
    events, raws = [], []
    for number in range(6):
        raw = pod(f"p{number}")
        raw["spec"] |= {"nodeName": f"n{number}"} if number > 1 else {}
        raw["metadata"] |= {"namespace": "default", "uid": f"u{number}", "resourceVersion": str(number + 1)}
        raw["metadata"] |= {"creationTimestamp": f"2026-01-01T00:00:0{number}Z", "managedFields": [written]}
        at = f"2026-01-01T00:00:1{number}Z"
        raw["status"] = {"phase": "Pending", "conditions": [{"type": "T", "status": "True", "lastTransitionTime": at}]}
        if number == 4:
            raw["metadata"]["deletionTimestamp"], raw["metadata"]["deletionGracePeriodSeconds"] = at, 30
        if number == 5:
            raw["spec"]["unknown"] = 1
        raws.append(raw)
        events.append(b'{"type": "ADDED", "object": %b}\n' % msgspec.json.encode(raw))
    batches = [batch async for batch in ApiServer(_Saying(*events)).watch(PODS, "1")]
    read = [
        (event["object"], like) for each in batches for event, like in zip(each.events, each.likenesses, strict=True)
    ]
    assert len({likeness for _, likeness in read if likeness is not None}) < 4 < len(read)

    def held(given: list[tuple[Raw, Any]]) -> tuple[list[Raw], list[str]]:
        found: list[str] = []
        objects = as_held(
            given, lambda raw, why: found.append(why), found.append, ("default-scheduler",), new_importer()
        )
        return [dict(obj.at_version(1).raw) for obj in objects], found

    assert held(read) == held([(raw, None) for raw in raws])
    assert held(read)[1] == ['Pod: unknown field "spec.unknown", dropped']


class _Saying(ServerConnection):
    """A server that answers every request with the same bytes."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    @property
    def url(self) -> str:
        return "http://there"

    @asynccontextmanager
    async def request(self, asked: ServerRequest, *, limited: bool = True) -> AsyncIterator[AsyncIterator[bytes]]:
        with faults_of(self.url):
            async with aclosing(self._body()) as body:
                yield body

    async def _body(self) -> AsyncGenerator[bytes, None]:
        for piece in self._pieces:
            yield piece
