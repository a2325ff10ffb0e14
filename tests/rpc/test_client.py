"""Tests of both clients with a live server, in real time, and with servers that misbehave."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest
import trio

from kschedd.errors import KscheddError
from kschedd.rpc.client import BlockingClient, Client, Subscription
from kschedd.rpc.errors import ConnectionLostError, NoDaemonError, SocketPathError
from kschedd.rpc.sessions.listener import unix_listener
from kschedd.service.errors import RpcError
from kschedd.service.params import Param
from kschedd.service.table import Call, Method, Stream


async def _echo(call: Call) -> Any:
    return call["value"]


async def _fail(call: Call) -> None:
    raise KscheddError("no good")


async def _hang(call: Call) -> None:
    await trio.sleep_forever()


async def _count(call: Call) -> dict[str, Any]:
    async def feed(stream: Stream) -> None:
        for number in range(call["many"]):
            await stream.send(number)
        if call["then"] == "fail":
            raise RpcError("expired", "too old", {"oldest": 7})
        if call["then"] == "wait":
            await trio.sleep_forever()

    return {"stream": call.open_stream(feed), "hello": True}


METHODS = (
    Method("echo", _echo, (Param("value", required=False),), doc="Return the parameter."),
    Method("fail", _fail, doc="Fails."),
    Method("hang", _hang, doc="Never ends."),
    Method("count", _count, (Param("many", "integer"), Param("then", required=False)), doc="Counts."),
)


async def in_thread(path: Path, work: Callable[[BlockingClient], Any], **options: Any) -> Any:
    """Run `work` with a blocking client in a thread, and return its result."""

    def run() -> Any:
        with BlockingClient(path, **options) as daemon:
            return work(daemon)

    with trio.fail_after(90):
        return await trio.to_thread.run_sync(run)


async def test_calls_by_position_and_by_name(serve) -> None:
    served = await serve(*METHODS)
    async with Client.connect(served.path) as daemon:
        assert await daemon.call("echo", [1, "x"]) == [1, "x"]
        assert await daemon.call("echo", value={"a": b"b"}) == {"a": b"b"}
        assert await daemon.call("echo") is None
    assert await in_thread(served.path, lambda d: [d.call("echo", 1), d.call("echo", value=2)]) == [1, 2]


async def test_both_forms_in_one_call_are_refused_before_they_are_sent(serve) -> None:
    served = await serve(*METHODS)
    async with Client.connect(served.path) as daemon:
        with pytest.raises(TypeError, match="all by position or all by name"):
            await daemon.call("count", 5, then="fail")
        assert await daemon.call("echo", 1) == 1


async def test_a_parameter_that_cannot_be_encoded_leaves_the_client_usable(serve) -> None:
    served = await serve(*METHODS)
    async with Client.connect(served.path) as daemon:
        with pytest.raises(TypeError):
            await daemon.call("echo", object())
        assert await daemon.call("echo", 1) == 1


async def test_errors_are_typed(serve) -> None:
    served = await serve(*METHODS)
    async with Client.connect(served.path) as daemon:
        with pytest.raises(RpcError, match="no good") as caught:
            await daemon.call("fail")
        assert caught.value.code == "invalid"
        with pytest.raises(RpcError) as caught:
            await daemon.call("ecko")
        assert (caught.value.code, caught.value.data["did_you_mean"]) == ("unknown_method", ["echo"])

    def fails(daemon: BlockingClient) -> tuple[str, str]:
        with pytest.raises(RpcError) as caught:
            daemon.call("fail")
        return caught.value.code, str(caught.value)

    assert await in_thread(served.path, fails) == ("invalid", "no good")


async def test_an_error_of_the_block_comes_out_as_it_is(serve) -> None:
    served = await serve(*METHODS)
    with pytest.raises(RpcError, match="no good"):
        async with Client.connect(served.path) as daemon:
            await daemon.call("fail")


async def test_two_hundred_calls_at_once_each_get_their_own_answer(serve) -> None:
    served = await serve(*METHODS)
    answers: dict[int, int] = {}

    async def ask(daemon: Client, number: int) -> None:
        answers[number] = await daemon.call("echo", number)

    async with Client.connect(served.path) as daemon, trio.open_nursery() as nursery:
        for number in range(200):
            nursery.start_soon(ask, daemon, number)
    assert answers == {number: number for number in range(200)}


async def test_a_cancelled_call_leaves_the_client_usable(serve) -> None:
    served = await serve(*METHODS)
    async with Client.connect(served.path) as daemon:
        with trio.move_on_after(0.01):
            await daemon.call("hang")
        assert await daemon.call("echo", 1) == 1


async def test_a_notification_is_sent(serve) -> None:
    reported = trio.Event()

    async def tell(call: Call) -> None:
        reported.set()

    served = await serve(*METHODS, Method("tell", tell, doc="Hears."))
    async with Client.connect(served.path) as daemon:
        await daemon.notify("tell")
        with trio.fail_after(90):
            await reported.wait()


async def test_a_subscription_yields_items_until_its_end(serve) -> None:
    served = await serve(*METHODS)
    async with Client.connect(served.path) as daemon:
        async with daemon.subscribe("count", many=5) as numbers:
            assert numbers.result == {"stream": 1, "hello": True}
            assert [number async for number in numbers] == [0, 1, 2, 3, 4]
        assert await daemon.call("echo", 1) == 1

    def count(daemon: BlockingClient) -> list[int]:
        return list(daemon.subscribe("count", many=5))

    assert await in_thread(served.path, count) == [0, 1, 2, 3, 4]


async def test_a_stream_ends_when_nobody_reads_what_is_made_of_it(serve) -> None:
    served = await serve(*METHODS)
    reader, writer = os.pipe()

    def count(daemon: BlockingClient) -> list[int]:
        stream = daemon.subscribe("count", 2, "wait")
        seen = [next(stream), next(stream)]
        os.close(reader)
        with pytest.raises(BrokenPipeError):
            next(stream)
        assert daemon.call("echo", 7) == 7, "the connection is as good as before"
        return seen

    try:
        assert await in_thread(served.path, count, output=writer) == [0, 1]
    finally:
        os.close(writer)


async def read(numbers: Subscription, seen: list[int]) -> None:
    async for number in numbers:
        seen.append(number)


async def test_a_subscription_that_fails_raises_after_its_items(serve) -> None:
    served = await serve(*METHODS)
    seen: list[int] = []
    async with Client.connect(served.path) as daemon, daemon.subscribe("count", 2, "fail") as numbers:
        with pytest.raises(RpcError, match="too old") as caught:
            await read(numbers, seen)
    assert seen == [0, 1]
    assert (caught.value.code, caught.value.data) == ("expired", {"oldest": 7})

    def count(daemon: BlockingClient) -> tuple[int, int]:
        numbers = daemon.subscribe("count", 2, "fail")
        items = next(numbers), next(numbers)
        with pytest.raises(RpcError, match="too old"):
            next(numbers)
        return items

    assert await in_thread(served.path, count) == (0, 1)


async def test_leaving_a_subscription_cancels_it(serve) -> None:
    served = await serve(*METHODS, terms={"streams": 1})
    async with Client.connect(served.path) as daemon:
        for _ in range(3):
            async with daemon.subscribe("count", 2, "wait") as numbers:
                assert await anext(numbers) == 0
            # The next request may overtake the cancellation; a call in between prevents this.
            while await daemon.call("stream.cancel", numbers.id) != {"cancelled": False}:
                pass

    def twice(daemon: BlockingClient) -> list[int]:
        firsts = []
        for _ in range(3):
            with daemon.subscribe("count", 2, "wait") as numbers:
                firsts.append(next(numbers))
            while daemon.call("stream.cancel", numbers.id) != {"cancelled": False}:
                pass
        return firsts

    assert await in_thread(served.path, twice) == [0, 0, 0]


async def test_calls_are_answered_while_a_subscription_is_not_read(serve) -> None:
    served = await serve(*METHODS)
    async with Client.connect(served.path) as daemon:
        async with daemon.subscribe("count", 5000, buffer=10, patience_s=0.01) as numbers:
            for number in range(100):
                assert await daemon.call("echo", number) == number
            assert [await anext(numbers) for _ in range(10)] == list(range(10))
            with pytest.raises(RpcError, match="faster than they were read") as caught:
                await anext(numbers)
        assert caught.value.code == "too_slow"
        assert await daemon.call("echo", 1) == 1

    def unread(daemon: BlockingClient) -> list[int]:
        numbers = daemon.subscribe("count", 5000, buffer=10)
        for number in range(2000):
            assert daemon.call("echo", number) == number
        seen: list[int] = []
        with pytest.raises(RpcError, match="faster than they were read"):
            seen.extend(iter(lambda: next(numbers), None))
        return seen

    # Items in the same bytes as the answer are not counted, and their number is random.
    seen = await in_thread(served.path, unread)
    assert seen == list(range(len(seen)))
    assert len(seen) < 5000


async def test_a_stream_far_longer_than_the_buffer_is_read_whole(serve) -> None:
    served = await serve(*METHODS)
    async with Client.connect(served.path) as daemon:
        async with daemon.subscribe("count", 5000, buffer=10, patience_s=20) as numbers:
            assert [number async for number in numbers] == list(range(5000))
        async with daemon.subscribe("count", 5000, buffer=10, patience_s=20) as numbers:
            assert await anext(numbers) == 0
        assert await daemon.call("echo", 1) == 1
    assert await in_thread(served.path, lambda d: list(d.subscribe("count", 5000, buffer=10))) == list(range(5000))


async def test_what_comes_along_with_the_opening_answer_is_not_too_much(tmp_path: Path) -> None:
    """The bytes of the answer may contain the first items, even more items than may wait later."""
    answer = [1, 1, None, {"stream": 1}]
    items = [[2, "stream.item", [1, number, number]] for number in range(50)]
    end = [2, "stream.end", [1, {"code": "done", "message": ""}]]

    async def answer_at_once(stream: trio.SocketStream) -> None:
        await stream.receive_some(65536)
        await stream.send_all(b"".join(map(msgpack.packb, [answer, *items, end])))
        await stream.receive_some(1)

    path = tmp_path / "s"
    async with trio.open_nursery() as nursery, unix_listener(path) as listener:
        nursery.start_soon(trio.serve_listeners, answer_at_once, [listener])
        found = await in_thread(path, lambda daemon: list(daemon.subscribe("count", buffer=10)))
        assert found == list(range(50))
        nursery.cancel_scope.cancel()


async def test_two_subscriptions_of_a_blocking_client_keep_apart(serve) -> None:
    served = await serve(*METHODS)

    def both(daemon: BlockingClient) -> tuple[list[int], list[int]]:
        first, second = daemon.subscribe("count", 50), daemon.subscribe("count", 30)
        return list(second), list(first)

    assert await in_thread(served.path, both) == (list(range(30)), list(range(50)))


async def test_subscribing_to_what_is_no_stream_says_so(serve) -> None:
    served = await serve(*METHODS)
    async with Client.connect(served.path) as daemon:
        with pytest.raises(RpcError, match="opens no stream"):
            async with daemon.subscribe("echo", 1):
                pass

    def subscribe(daemon: BlockingClient) -> None:
        with pytest.raises(RpcError, match="opens no stream"):
            daemon.subscribe("echo", 1)

    await in_thread(served.path, subscribe)


async def test_a_call_that_takes_too_long_ends_with_timeout_and_the_next_one_works(serve) -> None:
    served = await serve(*METHODS)

    def late(daemon: BlockingClient) -> int:
        daemon.timeout = 0.05
        with pytest.raises(RpcError, match=r"hang: no answer within 0\.05 s") as caught:
            daemon.call("hang")
        assert caught.value.code == "timeout"
        daemon.timeout = 20
        return daemon.call("echo", 5)

    assert await in_thread(served.path, late) == 5


async def test_a_megabyte_goes_there_and_back(serve) -> None:
    served = await serve(*METHODS)
    value = {"text": "x" * (2 << 20)}
    async with Client.connect(served.path) as daemon:
        assert await daemon.call("echo", value=value) == value
    assert await in_thread(served.path, lambda daemon: daemon.call("echo", value=value)) == value


async def test_no_daemon_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "none.sock"
    with pytest.raises(NoDaemonError) as caught:
        async with Client.connect(path):
            pass
    assert str(caught.value) == f"no daemon at {path}: start one with `kschedd run --detach`"
    with pytest.raises(NoDaemonError, match=r"start one with `kschedd run --detach`"):
        BlockingClient(path)


async def test_a_path_that_cannot_be_a_socket_says_why(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 120)
    with pytest.raises(SocketPathError, match="a socket's path may have 107"):
        BlockingClient(path)
    with pytest.raises(SocketPathError, match="a socket's path may have 107"):
        async with Client.connect(path):
            pass


async def test_when_the_daemon_ends_calls_and_subscriptions_say_so(serve) -> None:
    served = await serve(*METHODS)
    async with Client.connect(served.path) as daemon, daemon.subscribe("count", 1, "wait") as numbers:
        assert await anext(numbers) == 0
        served.server.shut_down()
        with pytest.raises(RpcError) as caught:
            await anext(numbers)
        assert caught.value.code == "shutting_down"
        with pytest.raises((ConnectionLostError, RpcError)):
            await daemon.call("hang")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        pytest.param(b"", "it closed the connection", id="nothing"),
        pytest.param(b"\xc1", "it sent invalid MessagePack-RPC", id="garbage"),
        pytest.param(
            msgpack.packb([1, 0, {"code": "too_many", "message": "full up"}, None]), "full up", id="turned-away"
        ),
    ],
)
async def test_a_daemon_that_hangs_up(tmp_path: Path, nursery: trio.Nursery, answer: bytes, error: str) -> None:
    path = tmp_path / "odd.sock"

    async def hang_up(stream: trio.SocketStream) -> None:
        await stream.receive_some(10_000)
        await stream.send_all(answer)

    listening = trio.socket.socket(trio.socket.AF_UNIX)
    await listening.bind(str(path))
    listening.listen(5)
    nursery.start_soon(trio.serve_listeners, hang_up, [trio.SocketListener(listening)])
    async with Client.connect(path) as daemon:
        for _ in range(2):
            with pytest.raises((ConnectionLostError, RpcError), match=error):
                await daemon.call("echo", 1)

    def lost(daemon: BlockingClient) -> None:
        for _ in range(2):
            with pytest.raises((ConnectionLostError, RpcError), match=error):
                daemon.call("echo", 1)

    await in_thread(path, lost)
    nursery.cancel_scope.cancel()


async def test_a_closed_client_says_so(serve) -> None:
    served = await serve(*METHODS)
    async with Client.connect(served.path) as daemon:
        pass
    with pytest.raises(ConnectionLostError, match="this client is closed"):
        await daemon.call("echo", 1)
    blocking = BlockingClient(served.path)
    blocking.close()
    with pytest.raises(ConnectionLostError, match="this client is closed"):
        blocking.call("echo", 1)
