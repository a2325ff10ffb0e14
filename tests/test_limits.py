"""Tests of the daemon's limits: set on the command line, enforced, and reported with their current use."""

from pathlib import Path
from typing import Any

import pytest
import trio

from kschedd.limits import BOUNDS, DaemonLimits, UnknownLimit, read_limits
from kschedd.rpc.client import Client
from kschedd.service.errors import RpcError
from kschedd.serving import run_daemon
from kschedd.startup.options import DaemonOptions
from kschedd.store.store import Store
from tests.actors.clusters import node, pod


def test_what_is_set_and_what_is_not() -> None:
    limits = read_limits(["forks=2", "clients=1", "forks=3"])
    assert (limits["forks"], limits["clients"], limits["streams"]) == (3, 1, BOUNDS["streams"].default)


@pytest.mark.parametrize(
    "text", ["forks", "forks=", "forks=0", "forks=-1", "forks=1e3", "forks=1001", f"forks={'9' * 5000}", "spoons=1", ""]
)
def test_what_is_no_limit(text: str) -> None:
    with pytest.raises(UnknownLimit, match=r"is no limit; allowed: clients|a whole number from 1 to"):
        read_limits([text])


@pytest.mark.parametrize("bound", BOUNDS.values(), ids=lambda bound: bound.name)
def test_a_default_is_one_that_could_be_set(bound: Any) -> None:
    assert bound.minimum <= bound.default <= bound.maximum
    assert read_limits([f"{bound.name}={bound.default}"])[bound.name] == DaemonLimits()[bound.name]


SET = {
    "forks": 1,
    "breakpoints": 2,
    "streams": 2,
    "log": 3,
    "watch-history": 10,
    "admitted-pods": 4,
    "clients": 20,
}


async def test_every_bound_is_kept_to_and_told_with_its_use(tmp_path: Path) -> None:
    options = DaemonOptions(socket=tmp_path / "k.sock", seed=1, log_level="error", speed=0, limits=DaemonLimits(SET))

    async def bounds(client: Client) -> dict[str, dict[str, Any]]:
        return {bound["name"]: bound for bound in await client.call("daemon.limits")}

    with trio.fail_after(120):
        async with trio.open_nursery() as nursery:
            path = await nursery.start(run_in_order, options)
            async with Client.connect(path) as client, client.subscribe("objects.watch", kind="Pod"):
                first = await bounds(client)
                assert {name: bound["limit"] for name, bound in first.items()} == {
                    **{name: bound.default for name, bound in BOUNDS.items()},
                    **SET,
                }
                assert (first["streams"]["used"], first["clients"]["used"]) == (1, 1)
                async with client.subscribe("debug.watch"):
                    with pytest.raises(RpcError, match="2 open streams, the maximum"):
                        await client.call("debug.watch")
                await client.call("fork.create")
                with pytest.raises(RpcError, match="there are 1 forks, which is the limit"):
                    await client.call("fork.create")
                for _ in range(2):
                    await client.call("debug.break_add", pod="nobody")
                with pytest.raises(RpcError, match="there are 2 breakpoints, the maximum"):
                    await client.call("debug.break_add", pod="nobody")
                await client.call("debug.break_delete", id=1)
                for number in range(30):
                    await client.call("objects.create", manifest=pod(f"p{number}"))
                async with client.subscribe("time.advance", seconds=1) as moved:
                    async for _ in moved:
                        pass
                found = await bounds(client)
                used = {name: (found[name]["used"], found[name]["most"]) for name in SET}
                assert used["streams"] == (1, 2)
                assert used["forks"] == (1, 1)
                assert used["breakpoints"] == (1, 2)
                assert used["log"] == (3, 3)
                assert used["admitted-pods"] == (1, 1), "they are of one kind"
                assert found["unread"]["most"] > 0
                assert found["http-connections"]["used"] is None, "there is no such part"
                await client.call("daemon.stop", grace_s=0.2)


def test_the_history_of_watches_is_as_long_as_was_asked() -> None:
    store = Store(now=lambda: 0.0)
    store.log.keep(10)
    for number in range(50):
        store.create(node(f"n{number}"))
    kept, most = store.history_used
    assert 10 <= kept <= 20
    assert kept <= most <= 100


async def run_in_order(options: DaemonOptions, task_status: trio.TaskStatus[Path]) -> None:
    assert await run_daemon(options, task_status=task_status) == 0
