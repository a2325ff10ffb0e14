"""The REST API of a cluster in this process, without a socket: requests and responses are Python values."""

import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio

from kschedd.actors.cluster import LiveCluster
from kschedd.apiserver.access import Access
from kschedd.apiserver.catalogue.version import ServedVersion
from kschedd.apiserver.face import ApiFace
from kschedd.apiserver.services import FaceServices
from kschedd.config.loading.load import default_config
from kschedd.config.versions.kube_versions import DEFAULT, KubernetesVersion
from kschedd.controllers.parts import Part
from kschedd.controllers.running.controller import Controller
from kschedd.daemon import cluster_actors
from kschedd.http.protocol import HttpRequest
from kschedd.http.server import HttpResponse, Peer
from kschedd.startup.options import without_scheduler
from kschedd.startup.state import StateOptions
from kschedd.store.admission.chain import Admission
from kschedd.store.creating.service_addresses import SERVICE_RANGE

JSON = "application/json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
PODS = "/api/v1/namespaces/default/pods"


@attrs.frozen(eq=False)
class Answered:
    """A complete response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@attrs.define(eq=False)
class Watching:
    """An open watch: A watch; `events` contains its events in order, and `ended` is set at its end."""

    status: int
    ended: trio.Event
    _send: "trio.MemorySendChannel[dict[str, Any]]"
    _receive: "trio.MemoryReceiveChannel[dict[str, Any]]"
    _rest: bytes = b""

    def took(self, piece: bytes) -> None:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            self._send.send_nowait(json.loads(line))

    def done(self) -> None:
        self._send.close()
        self.ended.set()

    async def event(self) -> dict[str, Any]:
        with trio.fail_after(3600):
            return await self._receive.receive()

    async def rest(self) -> list[dict[str, Any]]:
        """All events until the end of the watch."""
        return [event async for event in self._receive]


@attrs.frozen(eq=False)
class Asker:
    face: ApiFace
    cluster: LiveCluster
    nursery: trio.Nursery

    async def respond(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        content_type: str = JSON,
        accept: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> HttpResponse:
        named = {"host": "localhost", "accept": accept, **(headers or {})}
        data = b""
        if body is not None:
            named["content-type"] = content_type
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = HttpRequest(method, target.encode(), named, data, True)
        return await self.face(request, Peer(1, "127.0.0.1"))

    async def ask(self, method: str, target: str, body: Any = None, **how: Any) -> Answered:
        return await self.whole(await self.respond(method, target, body, **how))

    async def whole(self, response: HttpResponse) -> Answered:
        """Wait for the complete response."""
        parts = [response.body]
        if response.stream is not None:

            async def send(piece: bytes) -> None:
                parts.append(piece)
                await trio.lowlevel.checkpoint()

            await response.stream(send)
        named = {name.lower(): value for name, value in response.headers}
        return Answered(response.status, named, b"".join(parts))

    async def get(self, target: str, **how: Any) -> Any:
        return (await self.ask("GET", target, **how)).json

    async def create(self, target: str, body: Any, **how: Any) -> Any:
        answered = await self.ask("POST", target, body, **how)
        assert answered.status == 201, answered.body
        return answered.json

    async def watch(self, target: str, **how: Any) -> Watching:
        """Start a watch; return it when it is open."""
        response = await self.respond("GET", target, **how)
        send, receive = trio.open_memory_channel[dict[str, Any]](100_000)
        watching = Watching(response.status, trio.Event(), send, receive)
        stream = response.stream
        assert stream is not None, response.body
        opened = trio.Event()

        async def took(piece: bytes) -> None:
            watching.took(piece)
            opened.set()
            await trio.lowlevel.checkpoint()

        async def run() -> None:
            await stream(took)
            watching.done()

        self.nursery.start_soon(run)
        await opened.wait()
        return watching


def pod(name: str, **meta: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **meta},
        "spec": {"containers": [{"name": "main", "image": "example/app"}]},
    }


def node(name: str) -> dict[str, Any]:
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


@asynccontextmanager
async def asking(
    *,
    controllers: Sequence[Controller] = (),
    scheduler: bool = False,
    access: Access | None = None,
    service_range: str = SERVICE_RANGE,
    admission: Admission | None = None,
    without: Collection[Part] = (),
    version: KubernetesVersion = DEFAULT,
    gates: Mapping[str, bool] | None = None,
) -> AsyncIterator[Asker]:
    """Run an empty cluster with the REST API; the scheduler and controllers are optional."""
    config = default_config(version=version, feature_gates=gates)
    config = config if scheduler else without_scheduler(config)
    actors = cluster_actors(
        config, controllers=controllers, state=StateOptions(service_range=service_range, admission=admission)
    )
    async with actors as cluster, trio.open_nursery() as nursery:
        services = FaceServices(cluster, ServedVersion.of(config), kubelets="kubelets" not in without)
        face = ApiFace(services, access or Access(), "test", service_range)
        await face.register()
        await nursery.start(face.follow)
        yield Asker(face, cluster, nursery)
        nursery.cancel_scope.cancel()
