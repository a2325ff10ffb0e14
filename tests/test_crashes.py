"""The daemon is killed again and again while somebody writes, somebody reads and somebody watches.

After each start: every write that was answered is there, nothing that was seen is gone, and no version means something
else than it did. KSCHEDD_CRASHES=330 has it killed so often.
"""

import os
import random
import subprocess
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import trio
import trio.lowlevel

from kschedd.rpc.client import Client
from kschedd.rpc.errors import ConnectionLostError, NoDaemonError, RpcError
from tests.daemons import process

CRASHES = int(os.environ.get("KSCHEDD_CRASHES") or 4)
_OBJECTS = 8


@attrs.define
class EventListener:
    """All that anybody was told, over all daemons."""

    events: dict[int, tuple[str, str, str]] = attrs.field(factory=dict)  # by version: type, name, number
    numbers: dict[str, int] = attrs.field(factory=dict)  # the highest that was seen or answered, by object
    answers: int = 0

    def event(self, item: dict[str, Any]) -> None:
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
    """Reads what others are writing, and asks what a write of it would come to."""
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


async def use_until_killed(
    path: Path, daemon: "subprocess.Popen[bytes]", event_listener: EventListener, since: int, chance: random.Random
) -> None:
    """Everybody at work until so many writes were answered; then the daemon is killed amidst of it."""
    enough = event_listener.answers + chance.randrange(1, 120)
    halves = [[f"c{n}" for n in range(_OBJECTS) if n % 2 == half] for half in (0, 1)]
    start = 1 + max(event_listener.numbers.values(), default=0)
    async with trio.open_nursery() as nursery:
        for names in halves:
            nursery.start_soon(
                until_lost, path, partial(write, event_listener=event_listener, names=names, start=start)
            )
        nursery.start_soon(until_lost, path, partial(ask, event_listener=event_listener, chance=chance))
        nursery.start_soon(until_lost, path, partial(follow, event_listener=event_listener, since=since))
        while event_listener.answers < enough:
            await trio.lowlevel.checkpoint()
        daemon.kill()


async def check(path: Path, event_listener: EventListener, since: int) -> int:
    """Ask the daemon that was started after; the version that it is at."""
    async with Client.connect(path) as client:
        found = await client.call("objects.list", kind="ConfigMap")
        there = {raw["metadata"]["name"]: int(raw["data"]["number"]) for raw in found["items"]}
        for name, number in event_listener.numbers.items():
            assert there[name] >= number, f"{name} went back"
        latest: int = found["resource_version"]
        expected = {version for version in event_listener.events if version > since}  # it ends when all have come again
        assert all(version <= latest for version in expected), "a version went back"
        last = max((raw["metadata"]["resourceVersion"] for raw in found["items"]), key=int, default="0")
        again = EventListener(dict(event_listener.events))
        async with client.subscribe("objects.watch", kind="ConfigMap", since=since) as items:
            while int(last) > max(again.events, default=0) or expected:
                with trio.fail_after(90):
                    item = await anext(items)
                again.event(item)
                expected.discard(item["resource_version"])
        return latest


async def test_what_was_answered_or_seen_is_there_after_each_kill_9(tmp_path: Path) -> None:
    event_listener = EventListener()
    since = 0
    for round_ in range(CRASHES):
        chance = random.Random(round_)
        async with process(tmp_path) as daemon:
            if round_:
                since = await check(tmp_path / "k.sock", event_listener, since)
            else:
                async with Client.connect(tmp_path / "k.sock") as client:
                    since = (await client.call("daemon.info"))["resource_version"]
            await use_until_killed(tmp_path / "k.sock", daemon, event_listener, since, chance)
    async with process(tmp_path):
        await check(tmp_path / "k.sock", event_listener, since)
    assert event_listener.answers > CRASHES
    assert event_listener.events
