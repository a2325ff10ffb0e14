"""Clients of the simulated daemon: they write, read and watch, die, read slowly, or send what is no message.

Each connects again and again, as long as the simulation lasts, and writes down what it did and saw. A value is written
once: a number of its own in a ConfigMap.
"""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio

from kschedd.rpc.client import Client, Subscription
from kschedd.rpc.errors import ConnectionLostError
from kschedd.service.errors import RpcError
from tests.faults.fake_network import Network
from tests.faults.history import Change, History, Key, Operation, Seen, Stream
from tests.faults.http_client import HttpClient, HttpSubscription
from tests.store.manifests import config_map, node, pod

NAMES = tuple(f"c{number}" for number in range(5))
KINDS = ("ConfigMap", "Pod", "Node")
LOST = "connection_lost"
_REFUSED_BY_JOURNAL_S = 0.5
AnyClient = Client | HttpClient


@attrs.define(eq=False)
class World:
    """State shared by all clients."""

    network: Network
    history: History
    chance: random.Random
    http: Network  # the port of Kubernetes' REST API
    ending: bool = False  # no writer begins anything any more
    working: int = 0  # writers that have not ended
    _written: int = 0

    def value(self) -> str:
        self._written += 1
        return str(self._written)

    @asynccontextmanager
    async def connection(self, http: bool = False) -> AsyncIterator[AnyClient]:
        if http:
            stream = await self.http.dial()
            try:
                yield HttpClient(stream)
            finally:
                stream.close()
        else:
            async with Client.over(await self.network.dial(), "the simulated daemon") as client:
                yield client


def seen_in(raw: Mapping[str, Any]) -> Seen:
    meta = raw["metadata"]
    key = (raw["kind"], meta.get("namespace", ""), meta["name"])
    value = raw.get("data", {}).get("number", "") if raw["kind"] == "ConfigMap" else ""
    node_name = raw.get("spec", {}).get("nodeName", "") if raw["kind"] == "Pod" else ""
    return Seen(key, int(meta["resourceVersion"]), value, node_name)


async def again_and_again(world: World, use: Callable[[AnyClient], Awaitable[None]], http: bool) -> None:
    """Use one connection after the other, until the simulation ends."""
    while not world.ending:
        try:
            async with world.connection(http) as client:
                await use(client)
        except* (ConnectionLostError, RpcError):
            await trio.sleep(0.05)


@attrs.frozen(eq=False)
class Writer:
    """Writes and reads single objects, one call after the other."""

    name: str
    world: World
    http: bool = False

    async def run(self) -> None:
        self.world.working += 1
        await again_and_again(self.world, self._use, self.http)
        self.world.working -= 1

    async def _use(self, client: AnyClient) -> None:
        chance = self.world.chance
        while not self.world.ending:
            if chance.random() < 0.03:
                return await self._die(client)
            await self._step(client)
            await trio.sleep(chance.choice((0.0, 0.001, 0.05)) * chance.random())

    async def _die(self, client: AnyClient) -> None:
        """Ask, and be gone before the answer is there."""
        with trio.move_on_after(0.005 * self.world.chance.random()):
            await self._step(client)

    async def _step(self, client: AnyClient) -> None:
        chance, name = self.world.chance, self.world.chance.choice(NAMES)
        key = ("ConfigMap", "default", name)
        value = self.world.value()
        what = chance.choices(("create", "replace", "apply", "patch", "delete", "get", "list", "pod"), _WEIGHTS)[0]
        manifest = config_map(name, number=value)
        if what == "create":
            await self.call(client, what, "objects.create", key, value, manifest=manifest)
        elif what == "apply":
            await self.call(client, what, "objects.apply", key, value, manifests=[manifest], with_objects=True)
        elif what == "patch":
            patch = {"data": {"number": value}}
            await self.call(client, what, "objects.patch", key, value, kind="ConfigMap", name=name, patch=patch)
        elif what == "delete":
            await self.call(client, what, "objects.delete", key, kind="ConfigMap", name=name)
        elif what == "get":
            await self.call(client, what, "objects.get", key, kind="ConfigMap", name=name)
        elif what == "list":
            kind = chance.choice(KINDS)
            await self.call(client, what, "objects.list", (kind, "", ""), kind=kind)
        elif what == "replace":
            read = await self.call(client, "get", "objects.get", key, kind="ConfigMap", name=name)
            if read.seen:
                await trio.sleep(0.01 * chance.random())
                version = read.seen[0].version
                manifest["metadata"]["resourceVersion"] = str(version)
                await self.call(client, what, "objects.replace", key, value, version, manifest=manifest)
        else:
            number = chance.randrange(8)
            if chance.random() < 0.4:
                key = ("Pod", "default", f"p{number}")
                await self.call(client, "delete", "objects.delete", key, kind="Pod", name=key[2], grace_period_s=0)
            else:
                made = pod(f"p{number}", cpu="1") if chance.random() < 0.8 else node(f"n{number % 2}")
                key = (made["kind"], made["metadata"].get("namespace", ""), made["metadata"]["name"])
                await self.call(client, "create", "objects.create", key, manifest=made)

    async def call(
        self,
        client: AnyClient,
        what: str,
        method: str,
        key: Key,
        value: str = "",
        expected: int | None = None,
        /,
        **params: Any,
    ) -> Operation:
        history = self.world.history
        noted = history.begin(self.name, what, key=key, value=value, expected=expected)
        try:
            answer = await client.call(method, **params)
        except (RpcError, ConnectionLostError) as error:
            noted.refused = error.code if isinstance(error, RpcError) else LOST
            noted.ended = history.now()
            if isinstance(error, ConnectionLostError):
                raise
            if noted.refused == "journal":
                await trio.sleep(_REFUSED_BY_JOURNAL_S)
            return noted
        if what == "list":
            noted.version = answer["resource_version"]
            noted.seen = [seen_in(raw) for raw in answer["items"]]
        elif what == "apply":
            noted.seen = [seen_in(each["object"]) for each in answer["results"]]
        elif what != "delete":
            noted.seen = [seen_in(answer["object"])]
        noted.ended = history.now()
        return noted


_WEIGHTS = (3, 4, 4, 3, 2, 4, 2, 4)


@attrs.define(eq=False)
class Watcher:
    """Watches one kind, or all, and resumes after the last version it has seen; `slow` ones leave things lying."""

    name: str
    world: World
    kind: str = ""
    slow: bool = False
    http: bool = False
    version: int | None = None  # seen up to here
    epoch: str = ""
    era: int = 0
    stuck: str = ""  # why it cannot go on from there

    async def run(self) -> None:
        await again_and_again(self.world, self._use, self.http)

    async def _use(self, client: AnyClient) -> None:
        history = self.world.history
        if self.era != history.era:
            self.version, self.era = history.eras[-1].base, history.era
        since = self.version
        kind: Any = self.kind or None
        try:
            buffer = 4 if self.slow else 10_000
            async with client.subscribe("objects.watch", kind=kind, since=since, buffer=buffer) as items:
                stream = Stream(self.name, self.kind, history.era, items.result["resource_version"])
                if since is not None and stream.since != since:
                    history.note(f"{self.name} asked for {since} and watches after {stream.since}")
                history.streams.append(stream)
                await self._follow(items, stream)
        except RpcError as error:
            if error.code == "gone":
                self.version = None
            raise

    async def _follow(self, items: Subscription | HttpSubscription, stream: Stream) -> None:
        chance = self.world.chance
        async for item in items:
            stream.changes.append(Change(item["type"], seen_in(item["object"])))
            stream.at.append(self.world.history.now())
            self.version = stream.changes[-1].seen.version
            if self.slow:
                await trio.sleep(chance.choice((0.0, 0.1, 3.0)) * chance.random())


async def be_rude(world: World) -> None:
    """Half messages, noise, and a hand that is never taken away; nobody learns anything from it."""
    chance = world.chance
    while not world.ending:
        stream = await world.network.dial()
        try:
            with trio.move_on_after(2 * chance.random()):
                noise = (chance.randbytes(50), b"\x94\x00\x01", b"\x94\x00\x01\xa8rpc.ping\x90")
                await stream.send_all(chance.choice(noise))
                if chance.random() < 0.5:
                    while await stream.receive_some(100):
                        pass
        except trio.BrokenResourceError:
            pass
        finally:
            stream.close()
        await trio.sleep(chance.random())
