"""Tests of a mirror of a server that misbehaves."""

import base64
import gc
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import httpx
import pytest
import trio
import trustme
from trio.testing import MockClock

from kschedd.access.addresses import Address
from kschedd.access.credentials import ListenSettings
from kschedd.actors.cluster import LiveCluster
from kschedd.apiserver.serving import http_face
from kschedd.daemon import cluster_actors
from kschedd.live.api_server import ApiServer, ServedPage, ServedResource, WatchBatch
from kschedd.live.connection import ServerConnection, ServerRequest
from kschedd.live.errors import LiveError, NotServed
from kschedd.live.mirror import MirrorActor, mirroring
from tests.extenders.servers import answering
from tests.live.scripted_server import EMPTY, ServedRequest, nothing_happens, scripted
from tests.live.test_mirror import KUBECONFIG, PODS, until

Raw = dict[str, Any]


def pod(name: str, **meta: Any) -> Raw:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    return {"metadata": {"name": name, "namespace": "default", "uid": f"u-{name}", "resourceVersion": "5"} | meta} | {
        "spec": spec,
        "status": {},
    }


@asynccontextmanager
async def mirror_of(folder: Path, url: str) -> AsyncIterator[tuple[LiveCluster, MirrorActor]]:
    server = await ApiServer.connect(str(kubeconfig(folder, url)))
    async with server, cluster_actors() as cluster, trio.open_nursery() as nursery:
        mirror = await mirroring(server, cluster)
        await nursery.start(mirror.run)
        yield cluster, mirror
        nursery.cancel_scope.cancel()


def kubeconfig(folder: Path, url: str, user: str = "{}") -> Path:
    file = folder / "kubeconfig"
    file.write_text(KUBECONFIG.format(url=url).replace("user: {}", f"user: {user}"))
    return file


UNSCHEDULED = {"conditions": [{"type": "PodScheduled", "status": "False"}, 3]}
ODD: list[Raw] = [
    {"metadata": {}},
    {"metadata": {"name": "a", "uid": "u", "resourceVersion": 7}},
    {"metadata": {"name": ["a"], "namespace": {}, "uid": 3}},
    pod("a", uid=None),
    pod("a", uid=[]),
    pod("a", namespace=[]),
    pod("a", namespace=3),
    pod("a", namespace=[1]),
    pod("a", annotations=[1]),
    pod("a", labels={"a": 3}),
    pod("a", ownerReferences=3),
    pod("a", deletionTimestamp=3),
    pod("a", finalizers="x"),
    pod("a", creationTimestamp="yesterday"),
    pod("../../a"),
    pod("a" * 10_000),
    pod("a") | {"spec": []},
    pod("a") | {"spec": None},
    pod("a") | {"status": "x"},
    pod("a") | {"status": UNSCHEDULED},
    pod("a", annotations=3) | {"status": UNSCHEDULED},
    pod("a") | {"spec": {"containers": [3]}},
    pod("a") | {"spec": {"containers": 1, "volumes": [{"name": "kube-api-access-x"}]}},
    pod("a") | {"spec": {"volumes": [{"name": "kube-api-access-x"}, 3]}},
    pod("a") | {"kind": "Node", "apiVersion": 3},
    pod("a") | {"kind": [], "apiVersion": {}},
    pod("before2", uid="u-before"),
]


async def test_odd_objects_harm_no_others(tmp_path: Path) -> None:
    async def script(request: ServedRequest) -> None:
        if request.plural != "pods":
            await nothing_happens(request)
        elif request.watches:
            await request.tell(
                *({"type": kind, "object": odd} for kind in ("ADDED", "MODIFIED", "DELETED") for odd in ODD),
                {"type": "ADDED", "object": pod("after")},
                {"type": "BOOKMARK", "object": {"metadata": {}}},
            )
            await trio.sleep_forever()
        else:
            await request.answer({"metadata": {"resourceVersion": "1"}, "items": [*ODD, pod("before")]})

    async with scripted(script) as url, mirror_of(tmp_path, url) as (cluster, _):
        await until(partial(_are_there, cluster, "before", "after"))
        assert not await cluster.faults()


@pytest.mark.parametrize("plural", ["services", "nodes", "persistentvolumes", "jobs"])
async def test_an_object_in_what_is_no_namespace_is_left_out(tmp_path: Path, plural: str) -> None:
    odd = [{**pod(f"odd-{at}")["metadata"], "namespace": no} for at, no in enumerate(([1], {"a": 1}, [[]], 3, True))]
    items = {plural: [{"metadata": meta} for meta in odd], "pods": [pod("a")]}

    async def script(request: ServedRequest) -> None:
        if request.watches:
            await nothing_happens(request)
        else:
            await request.answer({**EMPTY, "items": items.get(request.plural, [])})

    async with scripted(script) as url, mirror_of(tmp_path, url) as (cluster, _):
        assert await _are_there(cluster, "a")


async def _are_there(cluster: LiveCluster, *names: str) -> bool:
    return set(names) <= {pod.name for pod in await cluster.store.list("Pod")}


async def test_what_can_no_longer_be_held_is_let_go(tmp_path: Path) -> None:
    async def script(request: ServedRequest) -> None:
        if request.plural != "pods":
            await nothing_happens(request)
        elif request.watches:
            await request.tell(
                {"type": "MODIFIED", "object": pod("a", labels={"a": 3})}, {"type": "ADDED", "object": pod("b")}
            )
            await trio.sleep_forever()
        else:
            await request.answer({"metadata": {"resourceVersion": "1"}, "items": [pod("a")]})

    async with scripted(script) as url, mirror_of(tmp_path, url) as (cluster, _):
        await until(partial(_are_there, cluster, "b"))
        assert [pod.name for pod in await cluster.store.list("Pod")] == ["b"]


async def test_what_it_may_not_see_ends_no_other_request(tmp_path: Path) -> None:
    """Send each rejection while the other requests are being answered."""
    listing, refused = trio.Event(), trio.Event()

    async def script(request: ServedRequest) -> None:
        if request.watches:
            await nothing_happens(request)
        elif request.plural == "namespaces":
            listing.set()
            await refused.wait()
            await request.answer(EMPTY)
        elif request.plural == "nodes":
            await listing.wait()
            counts[request.plural] += 1
            await request.refuse(403, "nodes is forbidden")
        else:
            refused.set()
            await request.answer(EMPTY)

    counts: Counter[str] = Counter()
    async with scripted(script) as url, mirror_of(tmp_path, url) as (_, mirror):
        assert "Node" not in {resource.kind for resource in mirror.followed}
        assert counts["nodes"] == 1


@pytest.mark.parametrize("code", [None, 410, 500])
async def test_a_watch_that_ends_at_once_is_not_begun_again_at_once(
    tmp_path: Path, code: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: Counter[str] = Counter()

    async def script(request: ServedRequest) -> None:
        if not request.watches:
            await request.answer(EMPTY)
            return
        begun[request.plural] += 1
        await request.tell(*[{"type": "ERROR", "object": {"code": code, "message": "no"}}] * (code is not None))

    monkeypatch.setattr("kschedd.live.mirror._FIRST_PAUSE_S", 3600)
    async with scripted(script) as url, mirror_of(tmp_path, url) as (_, mirror):

        async def all_have_begun() -> bool:
            return len(begun) == len(mirror.followed)

        await until(all_have_begun)
        for _ in range(20):
            await mirror.server.page(PODS)  # time for the other requests
        assert set(begun.values()) == {1}


async def test_two_watches_that_are_answered_and_fail_do_not_wake_one_another_at_once(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    server = await ApiServer.connect(str(kubeconfig(tmp_path, "http://there")))
    mock_clock.autojump_threshold = 0  # only now: while the mirror connects in a thread, the clock would jump
    watched: list[float] = []

    async def answered_and_fails(resource: ServedResource, since: str) -> AsyncIterator[WatchBatch]:
        watched.append(trio.current_time())
        assert len(watched) < 10_000, "it spins"
        yield WatchBatch()
        raise LiveError("http://there", "broken")

    async def empty(resource: ServedResource, more: str = "") -> ServedPage:
        return ServedPage((), "1", "")

    async with server, cluster_actors() as cluster, trio.open_nursery() as nursery:
        mirror = await mirroring(server, cluster)
        mirror.server = Scripted(server, empty, answered_and_fails)
        await nursery.start(mirror.run)
        await trio.sleep(30)
        nursery.cancel_scope.cancel()
    assert len(watched) <= 61 * len(mirror.followed), "none more often than every half a second"


@pytest.mark.parametrize("others_after_s", [0, 60])
async def test_a_failure_after_a_long_outage_is_followed_by_a_short_pause(
    tmp_path: Path, mock_clock: MockClock, others_after_s: float
) -> None:
    """The watch of pods fails once more after the server has come back, for other kinds at once or later."""
    server = await ApiServer.connect(str(kubeconfig(tmp_path, "http://there")))
    mock_clock.autojump_threshold = 0
    back_at = trio.current_time() + 200
    watched: list[float] = []

    async def healthy_later(resource: ServedResource, since: str) -> AsyncIterator[WatchBatch]:
        if trio.current_time() < back_at + (0 if resource.kind == "Pod" else others_after_s):
            raise LiveError("http://there", "connection refused")
        yield WatchBatch()
        if resource.kind == "Pod":
            watched.append(trio.current_time())
            if len(watched) == 1:
                await trio.sleep(5)
                raise LiveError("http://there", "connection lost")
        await trio.sleep_forever()

    async def empty(resource: ServedResource, more: str = "") -> ServedPage:
        return ServedPage((), "1", "")

    async with server, cluster_actors() as cluster, trio.open_nursery() as nursery:
        mirror = await mirroring(server, cluster)
        mirror.server = Scripted(server, empty, healthy_later)
        await nursery.start(mirror.run)
        await trio.sleep(300)
        nursery.cancel_scope.cancel()
    first, second = watched
    assert second - first < 8


@attrs.frozen(eq=False)
class Scripted:
    """A server whose lists and watches are functions."""

    server: ApiServer
    page: Any
    watch: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.server, name)


@pytest.mark.parametrize(
    ("lists", "why"),
    [
        pytest.param({"metadata": {"resourceVersion": ""}, "items": []}, "no resourceVersion", id="no-version"),
        pytest.param({"metadata": {"resourceVersion": "1", "continue": "x"}}, "does not end", id="without-end"),
    ],
)
async def test_a_list_that_cannot_be_one_is_told(
    tmp_path: Path, lists: Raw, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(request: ServedRequest) -> None:
        await request.answer(lists)

    monkeypatch.setattr("kschedd.live.mirror._MOST_PAGES", 9)
    async with scripted(script) as url:
        with pytest.RaisesGroup(pytest.RaisesExc(LiveError, match=why), flatten_subgroups=True, allow_unwrapped=True):
            async with mirror_of(tmp_path, url):
                pass


async def test_a_server_that_says_nothing_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(request: ServedRequest) -> None:
        await trio.sleep_forever()

    async with scripted(script) as url, await ApiServer.connect(str(kubeconfig(tmp_path, url))) as server:
        monkeypatch.setattr("kschedd.live.connection.SILENCE_S", 0.05)
        with pytest.raises(LiveError, match="no answer in time"):
            await server.page(PODS)
        with pytest.raises(LiveError, match="no answer in time"):
            async for _ in server.watch(PODS, "1"):
                pass


PLUGIN = """\
#!/bin/sh
echo >> {folder}/times
echo '{{"status": {{"token": "token-'$(wc -l < {folder}/times)'"}}}}'
"""


async def test_credentials_are_renewed_once_for_all_who_are_refused(tmp_path: Path) -> None:
    asking = 0
    both = trio.Event()

    async def script(request: ServedRequest) -> None:
        nonlocal asking
        if request.token != "token-1":
            await request.answer({"metadata": {"resourceVersion": request.token}, "items": []})
            return
        asking += 1
        if asking == 2:
            both.set()
        await both.wait()
        await request.refuse(401, "Unauthorized")

    plugin = tmp_path / "plugin"
    plugin.write_text(PLUGIN.format(folder=tmp_path))
    plugin.chmod(0o755)
    user = f'{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: "{plugin}"}}}}'
    async with scripted(script) as url, await ApiServer.connect(str(kubeconfig(tmp_path, url, user))) as server:
        versions = []

        async def ask() -> None:
            versions.append((await server.page(PODS)).version)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            nursery.start_soon(ask)
        assert versions == ["token-2", "token-2"]
        assert (tmp_path / "times").read_text() == "\n\n"


async def test_a_server_that_goes_while_a_body_is_sent_leaves_nothing_behind(tmp_path: Path) -> None:
    with answering(b"", reads=False) as url:
        connection = await ServerConnection.of(str(kubeconfig(tmp_path, url)))
        with pytest.raises(LiveError, match=url):
            async with connection.request(ServerRequest("POST", "api/v1/pods", body="a" * (32 << 20))):
                raise AssertionError("nothing was answered")
        await connection.aclose()
    gc.collect()  # an unclosed generator would warn here


async def test_credentials_that_are_refused_are_told(tmp_path: Path) -> None:
    async def script(request: ServedRequest) -> None:
        await request.refuse(401, "Unauthorized")

    async with scripted(script) as url, await ApiServer.connect(str(kubeconfig(tmp_path, url))) as server:
        with pytest.raises(LiveError, match=r"the kubeconfig's credentials were rejected: GET .*: HTTP 401 .*: Unauth"):
            await server.page(PODS)


@pytest.mark.parametrize("status", [400, 429, 500, 503])
async def test_what_a_server_says_of_a_failure_is_told(tmp_path: Path, status: int) -> None:
    async def script(request: ServedRequest) -> None:
        await request.refuse(status, "too much")

    async with scripted(script) as url, await ApiServer.connect(str(kubeconfig(tmp_path, url))) as server:
        with pytest.raises(LiveError, match=f"{url}: GET /api/v1/pods: HTTP {status} .*: too much") as raised:
            await server.page(PODS)
        assert not isinstance(raised.value, NotServed)


async def test_no_copy_of_a_key_stays_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copies = tmp_path / "copies"
    copies.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(copies))
    ca = base64.b64encode(trustme.CA().cert_pem.bytes()).decode()
    file = kubeconfig(tmp_path, "https://127.0.0.1:1")
    file.write_text(file.read_text().replace("server:", f"certificate-authority-data: {ca}, server:"))
    async with await ApiServer.connect(str(file)):
        assert [*copies.iterdir()] == []


async def test_a_mirror_can_be_served_over_http(tmp_path: Path) -> None:
    settings = ListenSettings(Address("127.0.0.1", 0))
    async with scripted(nothing_happens) as url, mirror_of(tmp_path, url) as (cluster, _):
        async with http_face(settings.load(), cluster, "test", 3 << 20) as face, trio.open_nursery() as nursery:
            await nursery.start(face.run)
            assert await cluster.store.list("Service") == []
            async with httpx.AsyncClient() as client:
                space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}
                answered = await client.post(f"{face.url}/api/v1/namespaces", json=space)
            assert (answered.status_code, answered.json()["reason"]) == (403, "Forbidden")
            face.shut_down(0)


@pytest.mark.parametrize("code", [410, 429, 500, 504])
async def test_a_list_that_is_refused_once_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """Reject a page of the list with status 410 because the request came too late."""
    monkeypatch.setattr("kschedd.live.mirror._FIRST_PAUSE_S", 0.0)
    refused: list[str] = []

    async def script(request: ServedRequest) -> None:
        if request.plural == "pods" and not request.watches and len(refused) < 2:
            refused.append(request.plural)
            await request.refuse(code, "later")
        elif request.plural == "pods" and not request.watches:
            await request.answer({**EMPTY, "items": [pod("a")]})
        else:
            await nothing_happens(request)

    async with scripted(script) as url, mirror_of(tmp_path, url) as (cluster, _):
        assert [found.name for found in await cluster.store.list("Pod")] == ["a"]
        assert len(refused) == 2


async def test_a_list_that_is_always_refused_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kschedd.live.mirror._FIRST_PAUSE_S", 0.0)

    async def script(request: ServedRequest) -> None:
        await (request.refuse(500, "broken") if request.plural == "pods" else nothing_happens(request))

    async with scripted(script) as url:
        server = await ApiServer.connect(str(kubeconfig(tmp_path, url)))
        async with server, cluster_actors() as cluster:
            mirror = await mirroring(server, cluster)
            with pytest.raises(LiveError, match="HTTP 500 Internal Server Error: broken"):
                await mirror.run()


async def test_the_first_list_is_repeated_after_the_connection_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Close the connection of the list of pods after the other kinds were listed, as a server does that is killed."""
    monkeypatch.setattr("kschedd.live.mirror._FIRST_PAUSE_S", 0.0)
    others: set[str] = set()
    lost: list[str] = []
    most_listed = trio.Event()

    async def script(request: ServedRequest) -> None:
        if request.plural != "pods" or request.watches:
            others.add(request.plural)
            if len(others) == 20:  # so that some of them were processed
                most_listed.set()
            await nothing_happens(request)
        elif len(lost) < 3:
            await most_listed.wait()
            lost.append(request.plural)
            await request.stream.aclose()
        else:
            await request.answer({**EMPTY, "items": [pod("a")]})

    async with scripted(script) as url, mirror_of(tmp_path, url) as (cluster, _):
        assert [found.name for found in await cluster.store.list("Pod")] == ["a"]
        assert len(lost) == 3


async def test_a_server_that_closes_each_connection_ends_it_at_once(tmp_path: Path) -> None:
    async def script(request: ServedRequest) -> None:
        await request.stream.aclose()

    async with scripted(script) as url:
        server = await ApiServer.connect(str(kubeconfig(tmp_path, url)))
        async with server, cluster_actors() as cluster:
            mirror = await mirroring(server, cluster)
            with pytest.raises(LiveError, match="the connection was closed before the response"):
                await mirror.run()


async def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    elsewhere: list[ServedRequest] = []

    async def other(request: ServedRequest) -> None:
        elsewhere.append(request)
        await request.answer(EMPTY)

    async with scripted(other) as target:

        async def script(request: ServedRequest) -> None:
            await request.stream.send_all(
                f"HTTP/1.1 307 Elsewhere\r\nLocation: {target}{request.path}\r\nContent-Length: 0\r\n\r\n".encode()
            )

        user = "{token: secret}"
        async with scripted(script) as url, await ApiServer.connect(str(kubeconfig(tmp_path, url, user))) as server:
            with pytest.raises(LiveError, match=rf'redirect \(307\) to "{target}/.*", which is not followed'):
                await server.page(PODS)
    assert elsewhere == []
