"""Tests of the rate and the order of requests to a server."""

import math
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from kschedd.config.model import ClientConnection
from kschedd.live.api_server import ApiServer
from kschedd.live.rate_limit import RateLimit
from kschedd.live.remote import MirroredCluster
from kschedd.live.write_order import WriteOrder
from kschedd.startup.options import MirrorOptions

A, B = ("Pod", "default", "a"), ("Pod", "default", "b")


def test_a_burst_goes_at_once_and_the_rest_at_the_rate() -> None:
    limit = RateLimit(10, 3)
    assert [round(limit.next_at(100), 6) for _ in range(5)] == [100, 100, 100, 100.1, 100.2]
    assert round(limit.next_at(100.25), 6) == 100.3
    assert [round(limit.next_at(200), 6) for _ in range(4)] == [200, 200, 200, 200.1], "full again after a rest"


@pytest.mark.parametrize("qps", [0, -1, -0.5])
def test_no_rate_is_no_limit(qps: float) -> None:
    limit = RateLimit(qps, 1)
    assert {limit.next_at(7) for _ in range(1000)} == {7}
    assert not math.isnan(limit.next_at(8))


@pytest.mark.parametrize(
    ("flags", "configured", "url", "limit"),
    [
        pytest.param({}, {}, "https://127.0.0.1:6443", (-1.0, 100), id="none-on-this-machine"),
        pytest.param({}, {}, "https://localhost:6443", (-1.0, 100), id="none-on-localhost"),
        pytest.param({}, {}, "https://10.0.0.1:6443", (50.0, 100), id="as-kube-scheduler"),
        pytest.param({}, {"qps": 50.0}, "https://127.0.0.1:6443", (50.0, 100), id="as-configured"),
        pytest.param({"qps": 7.0}, {"qps": 5.0, "burst": 6}, "https://10.0.0.1", (7.0, 6), id="flags-decide"),
        pytest.param({"burst": 7}, {"qps": -1.0, "burst": 6}, "https://10.0.0.1", (-1.0, 7), id="no-limit"),
    ],
)
def test_the_rate_is_that_of_the_flags_or_the_configuration_or_the_server(
    flags: dict[str, Any], configured: dict[str, Any], url: str, limit: tuple[float, int]
) -> None:
    server: Any = ServerAt(url)
    leader: Any = None
    cluster = MirroredCluster(ApiServer(server), leader, MirrorOptions(**flags).pace(ClientConnection(**configured)))
    assert cluster.rate_limit() == RateLimit(*limit)


@attrs.frozen
class ServerAt:
    url: str


async def test_what_is_done_to_one_object_is_done_in_order(autojump_clock: MockClock) -> None:
    turns, done = WriteOrder(), list[str]()

    async def work(name: str, keys: tuple[tuple[str, str, str], ...], wait_s: float) -> None:
        with turns.take(keys) as turn:
            task_status.set()
            await turn.come()
            await trio.sleep(wait_s)
            done.append(name)

    async with trio.open_nursery() as nursery:
        for name, keys, wait_s in (("slow", (A,), 5.0), ("other", (B,), 1.0), ("both", (A, B), 0.0), ("a", (A,), 0.0)):
            task_status = trio.Event()
            nursery.start_soon(work, name, keys, wait_s)
            await task_status.wait()
    assert done == ["other", "slow", "both", "a"]


async def test_a_turn_that_is_given_up_holds_nobody_up() -> None:
    turns = WriteOrder()
    with turns.take([A]):
        later = turns.take([A])
        with trio.move_on_after(0):
            await later.come()
    with later:
        await later.come()
    with turns.take([A]) as last:
        await last.come()
    await wait_all_tasks_blocked()
    assert not turns._last
