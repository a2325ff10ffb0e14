"""Tests of a daemon that is killed repeatedly while clients write, read and watch.

After each start, every acknowledged write exists, no event that a client saw is lost, and no version is reused.
KSCHEDD_CRASHES sets the number of kills at random moments; `python -m tests.bench.crashes` makes thousands.
"""

import os
import random
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import trio
import trio.lowlevel

from kschedd.rpc.client import Client
from kschedd.rpc.errors import ConnectionLostError, NoDaemonError
from kschedd.service.errors import RpcError
from tests.forked_daemons import Daemon, Server, forked_daemons
from tests.full_run import FULL
from tests.killing_points import POINTS, STARTING

CRASHES = int(os.environ.get("KSCHEDD_CRASHES") or (8 if FULL else 4))
_OBJECTS = 8
_PATIENCE_S = 90


@attrs.define
class EventListener:
    """All events that any client received, from all daemons."""

    events: dict[int, tuple[str, str, str]] = attrs.field(factory=dict)  # by version: type, name, number
    numbers: dict[str, int] = attrs.field(factory=dict)  # the highest number that a client saw or wrote, by object
    answers: int = 0

    def event(self, item: dict[str, Any]) -> None:
        if "number" not in item["object"]["data"]:  # kube-root-ca.crt
            return
        meant = (item["type"], item["object"]["metadata"]["name"], item["object"]["data"]["number"])
        assert self.events.setdefault(item["resource_version"], meant) == meant
        self.object(item["object"])

    def object(self, raw: dict[str, Any]) -> None:
        name, number = raw["metadata"]["name"], int(raw["data"]["number"])
        self.numbers[name] = max(number, self.numbers.get(name, 0))


def config_map(name: str, number: int) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"number": str(number)}}


async def write(client: Client, event_listener: EventListener, names: Iterable[str], start: int) -> None:
    number = start
    while True:
        for name in names:
            await client.call("objects.apply", [config_map(name, number)])
            event_listener.object(config_map(name, number))
            event_listener.answers += 1
            number += 1


async def ask(client: Client, event_listener: EventListener, chance: random.Random) -> None:
    """Read objects that others are writing, and request a dry run of writing them again."""
    while True:
        name = f"c{chance.randrange(_OBJECTS)}"
        try:
            raw = (await client.call("objects.get", kind="ConfigMap", name=name))["object"]
            event_listener.object(raw)
            number = int(raw["data"]["number"])
            answer = await client.call("objects.apply", manifests=[config_map(name, number)], dry_run=True)
        except RpcError as refusal:
            if refusal.code != "not_found":
                raise
        else:
            if answer["results"][0]["action"] == "unchanged":
                event_listener.object(config_map(name, number))


async def follow(client: Client, event_listener: EventListener, since: int) -> None:
    async with client.subscribe("objects.watch", kind="ConfigMap", since=since) as items:
        async for item in items:
            event_listener.event(item)


async def until_lost(path: Path, work: Any) -> None:
    try:
        async with Client.connect(path) as client:
            await work(client)
    except* (ConnectionLostError, NoDaemonError):
        pass


async def check(path: Path, event_listener: EventListener, since: int, patience_s: float = _PATIENCE_S) -> int:
    """Check the daemon that was started afterwards; return its current version."""
    async with Client.connect(path) as client:
        found = await client.call("objects.list", kind="ConfigMap")
        own = [raw for raw in found["items"] if "number" in raw["data"]]  # not kube-root-ca.crt
        there = {raw["metadata"]["name"]: int(raw["data"]["number"]) for raw in own}
        for name, number in event_listener.numbers.items():
            assert there[name] >= number, f"{name} went back"
        latest: int = found["resource_version"]
        # the watch ends when all of them have arrived
        expected = {version for version in event_listener.events if version > since}
        assert all(version <= latest for version in expected), "a version went back"
        versions = {int(raw["metadata"]["resourceVersion"]): raw for raw in found["items"]}
        expected |= {version for version in versions if version > since}
        again = EventListener(dict(event_listener.events))
        async with client.subscribe("objects.watch", kind="ConfigMap", since=since) as items:
            while expected:
                with trio.fail_after(patience_s):
                    item = await anext(items)
                again.event(item)
                version = item["resource_version"]
                assert item["object"] == versions.get(version, item["object"])
                expected.discard(version)
        return latest


@attrs.define(eq=False)
class Run:
    """The observations of the clients over all daemons; versions after `since` are compared with the next daemon."""

    daemons: Server
    patience_s: float = _PATIENCE_S
    listener: EventListener = attrs.field(factory=EventListener)
    since: int = 0
    seen: int = 0  # events up to `since`
    resumed: int = 0  # how often a watch could resume

    @property
    def path(self) -> Path:
        return self.daemons.socket

    async def round(self, chance: random.Random, point: str = "-", count: int = 0) -> None:
        """Check one daemon against the observations of earlier ones, use it, and kill it."""
        if daemon := self.daemons.start(point, count):
            try:
                await self.check()
                await self.use(daemon, chance, point != "-")
            except* Exception as errors:
                if point == "-" or errors.subgroup((AssertionError, trio.TooSlowError)) is not None:
                    raise
            finally:
                daemon.close()

    async def end(self) -> None:
        """Start and check one more daemon."""
        daemon = self.daemons.start()
        assert daemon is not None
        try:
            await self.check()
            # Earlier events need not arrive, although no client of this daemon has seen them.
            before = self.since
            await self.check()
            assert self.since == before
        finally:
            daemon.close()

    async def check(self) -> None:
        """Compare the daemon with the observations; events that it no longer keeps are not requested."""
        try:
            latest = await check(self.path, self.listener, self.since, self.patience_s)
        except* RpcError as refused:
            if any(not isinstance(error, RpcError) or error.code != "gone" for error in refused.exceptions):
                raise
            latest = None
        if latest is None:
            async with Client.connect(self.path) as client:
                latest = int((await client.call("daemon.info"))["resource_version"])
        else:
            self.resumed += 1
        assert latest >= max(self.listener.events, default=0), "a version went back"
        self.since = latest
        self.seen += len(self.listener.events)
        self.listener.events.clear()

    async def use(self, daemon: Daemon, chance: random.Random, by_itself: bool) -> None:
        """Run all clients, and kill the daemon meanwhile, unless it kills itself."""
        path, listener = self.path, self.listener
        enough = listener.answers + chance.randrange(1, 25)
        start = 1 + max(listener.numbers.values(), default=0)
        with trio.fail_after(self.patience_s):
            async with trio.open_nursery() as clients:
                for half in (0, 1):
                    names = [f"c{n}" for n in range(_OBJECTS) if n % 2 == half]
                    clients.start_soon(
                        until_lost, path, partial(write, event_listener=listener, names=names, start=start)
                    )
                clients.start_soon(until_lost, path, partial(ask, event_listener=listener, chance=chance))
                clients.start_soon(until_lost, path, partial(follow, event_listener=listener, since=self.since))
                while not by_itself and self.listener.answers < enough:  # noqa: ASYNC110 - others count
                    await trio.sleep(0.002)
                if not by_itself:
                    daemon.kill()


def drawn(number: int, chance: random.Random) -> tuple[str, int]:
    """Return the point at which a daemon kills itself, and the number of times it must reach it."""
    point = POINTS[number % len(POINTS)]
    if point in STARTING.values():
        return point, 1
    return point, chance.randrange(1, 4 if "compact" in point or "vacuum" in point else 60)


async def test_what_was_answered_or_seen_is_there_after_each_kill_9(tmp_path: Path) -> None:
    with forked_daemons(tmp_path) as daemons:
        run = Run(daemons)
        for number in range(CRASHES):
            await run.round(random.Random(number))
        for number in range(len(POINTS)):
            chance = random.Random(number)
            await run.round(chance, *drawn(number, chance))
        await run.end()
        assert daemons.reached() == dict.fromkeys(POINTS, 1)
    assert run.listener.answers > CRASHES
    assert run.seen > CRASHES
    assert run.resumed > 0


LEASES = {"kind": "Lease", "namespace": "kube-node-lease"}


def lease_event(item: dict[str, Any]) -> tuple[int, str, str]:
    return item["resource_version"], item["object"]["metadata"]["name"], item["object"]["spec"]["renewTime"]


async def leases(client: Client) -> dict[str, tuple[int, str]]:
    """Return version and renewTime of each Lease."""
    found = (await client.call("objects.list", **LEASES))["items"]
    return {
        raw["metadata"]["name"]: (int(raw["metadata"]["resourceVersion"]), raw["spec"]["renewTime"]) for raw in found
    }


async def test_a_watch_of_leases_resumes_after_a_kill_9_with_each_lease_in_its_present_state(tmp_path: Path) -> None:
    """The first watch gets one renewal at once; a later daemon reports each Lease with a version after that renewal."""
    names = {"n1", "n2", "n3"}
    capacity = {"cpu": "1", "memory": "1Gi", "pods": "10"}
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"capacity": capacity}}
        for name in sorted(names)
    ]
    seen = 0
    with forked_daemons(tmp_path) as daemons:
        for number in range(4):
            daemon = daemons.start()
            assert daemon is not None
            try:
                async with Client.connect(daemons.socket) as client:
                    with trio.fail_after(_PATIENCE_S):
                        if number == 0:
                            await client.call("objects.apply", nodes)
                            while len(await leases(client)) < len(names):  # noqa: ASYNC110 - a controller creates them
                                await trio.sleep(0.01)
                            seen = (await client.call("daemon.info"))["resource_version"]
                        before = await leases(client)
                        assert all(version > seen for version, _ in before.values()) or number == 0
                        first: dict[str, tuple[int, str]] = {}
                        async with client.subscribe("objects.watch", **LEASES, since=seen) as items:
                            while (number and first.keys() != names) or not first:
                                version, name, time = lease_event(await anext(items))
                                assert version > seen
                                assert name not in first
                                first[name] = version, time
                            if number:
                                assert first == before
                                version, name, time = lease_event(await anext(items))  # of this daemon's first renewal
                            assert (await leases(client))[name] == (version, time)
                            seen = version
            finally:
                daemon.close()
