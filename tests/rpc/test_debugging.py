"""Tests of the debugger over the socket: clients that stop a daemon, change its state, and disconnect; virtual time."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs

from kschedd.actors.clock import VIRTUAL, Clock
from kschedd.actors.cluster import LiveCluster
from kschedd.controllers.embedded import embedded_controllers
from kschedd.daemon import cluster_actors
from kschedd.methods import daemon_methods
from kschedd.rpc.client import Client
from kschedd.rpc.sessions.built_in import method_table
from kschedd.rpc.sessions.listener import unix_listener
from kschedd.rpc.sessions.server import Server
from kschedd.service.daemon.process import DaemonState
from kschedd.service.errors import RpcError
from kschedd.startup.clock import started_clock
from kschedd.startup.options import DaemonOptions
from kschedd.startup.state import StateOptions
from kschedd.store.journal.clock_mark import ClockMark
from tests.actors.clusters import node, placed, pod, until
from tests.rpc.documented import as_documented

START = 1_700_000_000.0


class Debugged:
    """A daemon in virtual time, and clients of it."""

    def __init__(self, cluster: LiveCluster, path: Path, table: Any) -> None:
        self.cluster, self.path, self.table = cluster, path, table

    async def call(self, client: Client, method: str, /, **named: Any) -> Any:
        with trio.fail_after(60):
            answer = await client.call(method, **named)
        assert as_documented(self.table[method].answer, answer), method
        return answer

    async def last(self, client: Client, method: str, /, **named: Any) -> Any:
        """Return the last item of a stream."""
        item = None
        with trio.fail_after(60):
            async with client.subscribe(method, **named) as stream:
                async for item in stream:
                    assert as_documented(self.table[method].item, item), method
        return item

    async def create(self, *raws: Any) -> None:
        async with Client.connect(self.path) as client:
            await self.call(client, "objects.apply", manifests=list(raws))

    async def state_is(self, stopped: bool) -> Any:
        """Wait until scheduling is stopped, or runs; return the state."""
        async with Client.connect(self.path) as client:
            with trio.fail_after(60):
                async with client.subscribe("debug.watch") as states:
                    async for state in states:
                        if (state["stopped"] is not None) is stopped:
                            return state


@pytest.fixture
async def debugged(tmp_path: Path) -> AsyncIterator[Debugged]:
    path = tmp_path / "kschedd.sock"
    clock = Clock.started(START, VIRTUAL)
    async with (
        cluster_actors(seed=7, clock=clock, controllers=embedded_controllers()) as cluster,
        unix_listener(path) as listener,
    ):
        daemon = DaemonState("1.2.3", str(path), cluster.clock.now())
        table = method_table(daemon_methods(cluster, daemon))
        server = Server(table)
        async with trio.open_nursery() as nursery:
            await nursery.start(server.serve, [listener])
            yield Debugged(cluster, path, table)
            nursery.cancel_scope.cancel()


async def test_another_program_stops_looks_changes_and_lets_go_on(debugged: Debugged) -> None:
    await debugged.create(node("n1"), node("n2"))
    async with Client.connect(debugged.path) as client:
        made = await debugged.call(client, "debug.break_add", point="score", plugin="NodeResourcesFit")
        assert made["warnings"] == []
        await debugged.create(pod("web"))
        state = await debugged.state_is(stopped=True)
        assert state["stopped"]["pod"] == "default/web"
        assert state["stopped"]["breakpoint"] == made["id"]
        status = await debugged.call(client, "scheduler.status")
        assert status["paused"]
        assert status["stopped_at"]["plugin"] == "NodeResourcesFit"
        where = await debugged.call(client, "debug.where")
        assert where["attempt"]["left"]["count"] == 2
        await debugged.create(pod("meanwhile"))  # the store and all other components continue
        forced = await debugged.call(client, "debug.force", node="n2")
        assert forced == {"pod": "default/web", "node": "n2", "reasons": []}
        await debugged.call(client, "debug.break_delete", id=made["id"])
        assert (await debugged.call(client, "debug.resume"))["stopped"] is None
        assert await placed(debugged.cluster, "web") == {"web": "n2"}
        await placed(debugged.cluster, "meanwhile")


async def test_a_second_debugger_is_told_who_holds_it(debugged: Debugged) -> None:
    async with Client.connect(debugged.path) as first, Client.connect(debugged.path) as second:
        holder = (await debugged.call(first, "debug.pause"))["holder"]
        with pytest.raises(RpcError) as refused:
            await debugged.call(second, "debug.resume")
        assert refused.value.code == "conflict"
        assert f"client {holder} holds the debugger" in str(refused.value)
        assert (await debugged.call(second, "debug.state"))["stopped"]["why"] == "paused"  # who looks only may
        await debugged.call(second, "debug.attach", take=True)
        assert (await debugged.call(second, "debug.resume"))["stopped"] is None


@pytest.mark.parametrize("keep", [False, True])
async def test_a_debugger_that_goes_away_leaves_the_daemon_running_unless_it_said_keep(
    debugged: Debugged, keep: bool
) -> None:
    await debugged.create(node("n1"))
    async with Client.connect(debugged.path) as client:
        await debugged.call(client, "debug.attach", keep=keep)
        await debugged.call(client, "debug.break_add", pod="default/web", point="filter")
        await debugged.create(pod("web"))
        await debugged.state_is(stopped=True)
    with trio.fail_after(60):
        held = True
        while held:
            number = debugged.cluster.stops.number
            held = await debugged.cluster.scheduler.query(lambda driver: driver.debugger.holder != "")
            if held:
                await debugged.cluster.stops.wait_past(number)
    state = await debugged.state_is(stopped=keep)
    assert state["holder"] is None
    if not keep:
        await placed(debugged.cluster, "web")
        async with Client.connect(debugged.path) as client:
            [left] = await debugged.call(client, "debug.break_list")
            assert left["disabled_because"] == "the client that set it has gone"


async def test_a_daemon_that_is_stopped_ends_in_order(tmp_path: Path) -> None:
    journal = tmp_path / "journal.db"
    async with cluster_actors(seed=7, state=StateOptions(journal=journal), clock=Clock.started(START)) as cluster:
        await cluster.store.create(node("n1"))

        def stop(driver: Any) -> None:
            driver.debugger.next()

        await cluster.scheduler.query(stop)
        number = cluster.stops.number
        await cluster.store.create(pod("web"))
        with trio.fail_after(60):
            await cluster.stops.wait_stopped(number)
    async with cluster_actors(seed=7, state=StateOptions(journal=journal), clock=Clock.started(START)) as cluster:
        await placed(cluster, "web")


async def test_virtual_time_stands_still_and_is_moved_from_deadline_to_deadline(debugged: Debugged) -> None:
    await debugged.create(node("n1"), pod("big", cpu="9"))
    batch = pod("batch", restartPolicy="Never")
    batch["metadata"]["annotations"] = {"kschedd.io/run-seconds": "90"}
    await debugged.create(batch)
    async with Client.connect(debugged.path) as client:
        before = await debugged.call(client, "time.get")
        assert (before["now_s"], before["virtual"]) == (START, True)
        last = await debugged.last(client, "time.advance", seconds=300)
        assert (last["now_s"], last["moved"]) == (START + 300, "reached")
    finished = await until(debugged.cluster, lambda store: store.find("Pod", "default", "batch").status["phase"])
    assert finished == "Succeeded"


async def test_until_moves_virtual_time_to_what_it_waits_for(debugged: Debugged) -> None:
    async with Client.connect(debugged.path) as client:
        await debugged.call(client, "debug.until", seconds=45)
        end = await debugged.last(client, "debug.wait")
        assert end["stopped"]["why"] == "until 2023-11-14T22:14:05Z"
        assert debugged.cluster.clock.now() == START + 45


async def test_an_until_that_never_comes_ends_with_its_client_and_nothing_is_lost(debugged: Debugged) -> None:
    await debugged.create(node("n1"))
    async with Client.connect(debugged.path) as client:
        await debugged.call(client, "debug.attach", keep=True)
        await debugged.call(client, "debug.until", condition="nodes == 7")
        async with client.subscribe("debug.wait"):
            await debugged.state_is(stopped=False)
        state = await debugged.state_is(stopped=True)
        assert state["stopped"]["why"] == "paused"
        await debugged.create(pod("web"))
        await debugged.call(client, "debug.step")
        await placed(debugged.cluster, "web")


async def test_one_call_runs_up_to_something_and_waits_for_it(debugged: Debugged) -> None:
    async with Client.connect(debugged.path) as client:
        end = await debugged.last(client, "debug.wait", seconds=45)
        assert end["stopped"]["why"] == "until 2023-11-14T22:14:05Z"
        for goal, why in (({"pod": ""}, "debug.wait: pod: must be a pattern"), ({"condition": "nodes =="}, "nodes")):
            with pytest.raises(RpcError, match=why):
                await debugged.last(client, "debug.wait", **goal)


@pytest.mark.parametrize("rounds", range(10))
async def test_a_run_that_is_interrupted_at_any_moment_has_ended(debugged: Debugged, rounds: int) -> None:
    async with Client.connect(debugged.path) as client, trio.open_nursery() as nursery:
        await debugged.call(client, "time.set_speed", speed=1)  # in virtual time, running ends when nothing is due
        await debugged.call(client, "debug.pause")

        async def run() -> None:
            async with client.subscribe("debug.wait", condition="nodes == 7"):
                await trio.sleep_forever()

        nursery.start_soon(run)
        for _ in range(rounds):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            assert (await debugged.state_is(stopped=True))["stopped"]["why"] == "paused"


async def test_a_breakpoint_ends_an_advance_where_it_is_reached(debugged: Debugged) -> None:
    await debugged.create(node("n1"), pod("big", cpu="9"))
    async with Client.connect(debugged.path) as client:
        await debugged.cluster.time.until_idle()
        await debugged.call(client, "debug.break_add", pod="default/big", outcome="unschedulable")
        last = await debugged.last(client, "time.advance", seconds=3600)
        assert last["moved"] == "stopped"
        assert START < last["now_s"] < START + 3600
        assert (await debugged.call(client, "debug.state"))["stopped"]["outcome"] == "unschedulable"


async def test_time_that_passes_by_itself_is_not_moved(debugged: Debugged) -> None:
    async with Client.connect(debugged.path) as client:
        await debugged.call(client, "time.set_speed", speed=10)
        with pytest.raises(RpcError, match="time runs by itself at 10x: make it virtual first with `time virtual`"):
            await debugged.last(client, "time.advance", seconds=1)
        await debugged.call(client, "time.set_speed", speed=0)
        with pytest.raises(RpcError, match="time does not go back"):
            await debugged.last(client, "time.advance", until_s=START - 1)
        for beyond in ({"seconds": 1e12}, {"until_s": 1e308}, {"until_s": 253_402_300_800}):
            with pytest.raises(RpcError, match="cannot advance beyond 9999-12-31T23:59:59Z"):
                await debugged.last(client, "time.advance", **beyond)


async def test_after_a_restart_virtual_time_goes_on_from_where_it_was(tmp_path: Path) -> None:
    options = DaemonOptions(speed=VIRTUAL)
    for began, moved_to in ((1_735_689_600.0, 1_735_689_700.0), (1_735_689_700.0, 1_735_689_800.0)):
        mark = ClockMark(tmp_path)
        clock = started_clock(options, mark)
        assert clock.now() == began
        async with cluster_actors(
            seed=7, state=StateOptions(journal=tmp_path / "journal.db", mark_time=mark.write), clock=clock
        ) as cluster:
            await cluster.time.advance(moved_to, trio.lowlevel.checkpoint)
        mark.close()


@pytest.mark.parametrize("text", ["damaged", "", "nan", "inf", "1e400", "-1e15", "253402300800"])
async def test_a_mark_that_is_no_time_counts_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "clock").write_text(text)
    with capture_logs() as lines:
        assert started_clock(DaemonOptions(speed=VIRTUAL), ClockMark(tmp_path)).now() == 1_735_689_600.0
    assert [line["event"] for line in lines] == ["clock_mark_unreadable"]


async def test_a_mark_that_is_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "clock")
    with capture_logs() as lines:
        assert started_clock(DaemonOptions(speed=VIRTUAL), ClockMark(tmp_path)).now() == 1_735_689_600.0
    assert [line["event"] for line in lines] == ["clock_mark_unreadable", "clock_mark_unwritable"]


async def test_virtual_time_goes_on_from_where_real_time_was(tmp_path: Path) -> None:
    mark = ClockMark(tmp_path)
    clock = started_clock(DaemonOptions(), mark)
    async with cluster_actors(
        seed=7, state=StateOptions(journal=tmp_path / "journal.db", mark_time=mark.write), clock=clock
    ) as cluster:
        await cluster.store.do(lambda store: store.create(node("n1")))
    mark.close()
    began = started_clock(DaemonOptions(speed=VIRTUAL), ClockMark(tmp_path)).now()
    assert 0 <= clock.now() - began < 60


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        pytest.param(
            DaemonOptions(speed=VIRTUAL, start_s=0.0),
            {"event": "time_goes_on", "at": "2100-01-01T00:00:00Z", "instead_of": "1970-01-01T00:00:00Z"},
            id="a-start-that-does-not-count",
        ),
        pytest.param(
            DaemonOptions(),
            {"event": "clock_behind", "cluster_continues_at": "2100-01-01T00:00:00Z"},
            id="machine-behind",
        ),
    ],
)
async def test_the_log_tells_of_a_time_that_is_not_as_asked(
    tmp_path: Path, options: DaemonOptions, reported: dict[str, str]
) -> None:
    ClockMark(tmp_path).write(4_102_444_800.0)
    with capture_logs() as lines:
        clock = started_clock(options, ClockMark(tmp_path))
    assert clock.now() >= 4_102_444_800.0
    assert (clock.ahead_s > 0) is (not clock.is_virtual)
    assert [{**line, **reported} == line for line in lines] == [True]


async def test_a_pod_that_waits_for_a_stopped_scheduler_is_told_so(debugged: Debugged) -> None:
    await debugged.create(node("n1"))
    async with Client.connect(debugged.path) as client:
        await debugged.call(client, "debug.attach")
        await debugged.call(client, "debug.pause")
        await debugged.create(pod("web"))
        found = await debugged.call(client, "causes.explain", kind="Pod", name="web")
        assert found["cause"]["code"] == "SchedulingStopped"
        assert [remedy["commands"] for remedy in found["remedies"]] == [["kschedd resume"]]
        alone = await debugged.call(client, "causes.explain", kind="Pod", name="web", remedies=False)
        assert alone["cause"] == found["cause"]
        assert [group["code"] for group in await debugged.call(client, "causes.pending")] == ["SchedulingStopped"]
        await debugged.call(client, "debug.resume")
    await debugged.state_is(stopped=False)
