"""Tests of a replay on a socket: it can be read, stopped, stepped and forked like a daemon, but not changed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from kschedd.clusters.replayed import ReplayCluster
from kschedd.commands.offline.replay_attach import serve_replay
from kschedd.recording.reading import RecordingFile
from kschedd.rpc.client import Client
from kschedd.service.errors import RpcError
from kschedd.simulation.replay.run import Replay, StopAt


@asynccontextmanager
async def attached(file: Path, folder: Path, stop: StopAt) -> AsyncIterator[Client]:
    """Yield a client of a replay that is stopped at this moment."""
    with RecordingFile.open(file) as recording:
        cluster = ReplayCluster(recording)
        Replay(cluster.player).run(stop)
        cluster.player.driver.debugger.pause(cluster.player.now_s)
        async with trio.open_nursery() as nursery:
            daemon = await nursery.start(serve_replay, cluster, "0", folder / "s")
            with trio.fail_after(90):
                async with Client.connect(folder / "s") as client:
                    yield client
            daemon.stop.set()


AT_LARGE = StopAt(pod="default/large")


async def test_a_moment_can_be_looked_at(busy: Path, tmp_path: Path) -> None:
    async with attached(busy, tmp_path, AT_LARGE) as client:
        state = await client.call("debug.state")
        assert (
            state["next"]["pod"] == "default/large" if "next" in state else state["stopped"]["pod"] == "default/large"
        )
        pods = (await client.call("objects.list", kind="pods"))["items"]
        assert [pod["spec"].get("nodeName") for pod in pods if pod["metadata"]["name"] == "large"] == [None]
        decisions = await client.call("scheduler.decisions")
        assert "default/large" not in {each["pod"] for each in decisions}
        explained = await client.call("scheduler.explain", pod="large")
        assert explained["pod"] == "default/large"


async def test_it_goes_on_by_attempts_and_within_one(busy: Path, tmp_path: Path) -> None:
    async with attached(busy, tmp_path, AT_LARGE) as client:
        state = await client.call("debug.next")
        assert state["stopped"]["point"] == "preFilter"
        await client.call("debug.step")
        decisions = await client.call("scheduler.decisions", pod="default/large")
        assert [each["attempt"] for each in decisions] == [1]


async def test_it_plays_to_a_breakpoint_and_to_its_end(busy: Path, tmp_path: Path) -> None:
    async with attached(busy, tmp_path, StopAt(attempts=1)) as client:
        await client.call("debug.break_add", pod="default/later")
        await client.call("debug.resume")
        async with client.subscribe("debug.wait") as states:
            state = await anext(states)
        assert state["stopped"]["pod"] == "default/later"
        await client.call("debug.break_delete", id=1)
        await client.call("debug.resume")
        async with client.subscribe("debug.wait") as states:
            state = await anext(states)
        assert state["moved"] == "nothing due"


async def test_with_plugins_it_stops_before_attempts_only(moody_run: Path, tmp_path: Path) -> None:
    async with attached(moody_run, tmp_path, StopAt(attempts=0)) as client:
        await client.call("debug.break_add", pod="default/large")
        await client.call("debug.resume")
        async with client.subscribe("debug.wait") as states:
            state = await anext(states)
        assert state["stopped"]["pod"] == "default/large"
        assert state["stopped"]["point"] is None
        state = await client.call("debug.next")  # `later` is in any case attempted after it
        assert state["stopped"]["pod"] != "default/large" or state["stopped"]["point"] is None
        with pytest.raises(RpcError, match="has the answers of Moody but not its code"):
            await client.call("fork.create", name="tried")


async def test_a_fork_goes_on_from_a_moment(busy: Path, tmp_path: Path) -> None:
    async with attached(busy, tmp_path, AT_LARGE) as client:
        await client.call("fork.create", name="tried")
        await client.call("fork.call", fork="tried", method="nodes.cordon", params={"name": "n1"})
        reported = await client.call("fork.advance", fork="tried", seconds=5)
        assert reported["elapsed_s"] == 5
        changed = await client.call("fork.diff", fork="tried")
        assert changed["elapsed_s"] == 5


async def test_the_past_is_not_changed(busy: Path, tmp_path: Path) -> None:
    async with attached(busy, tmp_path, AT_LARGE) as client:
        for method, params in (
            ("objects.delete", {"kind": "pods", "name": "large", "namespace": "default"}),
            ("config.undo", {}),
            ("queue.activate", {"all": True}),
            ("debug.drop", {}),
        ):
            with pytest.raises(RpcError, match="the past cannot be changed"):
                await client.call(method, **params)
