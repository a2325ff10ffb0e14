"""Tests of a server on a real Unix socket that receives bytes written by hand, in real time."""

import os
import socket
import stat
import struct
from pathlib import Path
from typing import Any

import msgpack
import pytest
import structlog
import trio

from kschedd.errors import KscheddError
from kschedd.rpc.client import Client
from kschedd.rpc.encoding import PIECE
from kschedd.rpc.message_checks import Limits
from kschedd.rpc.sessions.built_in import method_table
from kschedd.rpc.sessions.listener import unix_listener
from kschedd.rpc.sessions.sending import Total
from kschedd.rpc.sessions.server import Places, Server
from kschedd.rpc.sessions.session import ENDS_AT_ONCE, Shared, freed
from kschedd.rpc.sessions.unfinished import Unfinished
from kschedd.service.params import Param
from kschedd.service.table import Call, Large, Method, Stream


async def _echo(call: Call) -> Any:
    return call["value"]


ECHO = Method("echo", _echo, (Param("value"),), doc="Return the parameter.")


class PodGoneError(KscheddError):
    rpc_code = "not_found"


class Waiter:
    """A method that waits until it is released, and records the outcome of its calls."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0
        self.cancelled = 0
        self.begun = trio.Event()
        self.ended = trio.Event()
        self.go = trio.Event()
        self.method = Method("wait", self._wait, doc="Waits.")

    async def _wait(self, call: Call) -> str:
        self.running += 1
        self.most = max(self.most, self.running)
        self.begun.set()
        try:
            await self.go.wait()
        except trio.Cancelled:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
            if not self.running:
                self.ended.set()
        return "went"


def failing(error: BaseException) -> Method:
    async def fail(call: Call) -> None:
        raise error

    return Method("fail", fail, doc="Fails.")


async def test_an_exchange_in_bytes(serve) -> None:
    raw = await (await serve(ECHO)).raw()
    await raw.send(b"\x94\x00\x01\xa4echo\x91\xa2hi")
    assert await raw.stream.receive_some(100) == b"\x94\x01\x01\xc0\xa2hi"


async def test_named_parameters(serve) -> None:
    raw = await (await serve(ECHO)).raw()
    await raw.send(b"\x94\x00\x01\xa4echo\x91\x81\xa5value\x2a")
    assert await raw.message() == [1, 1, None, 42]


async def test_requests_cut_into_single_bytes(serve) -> None:
    raw = await (await serve(ECHO)).raw()
    for byte in b"\x94\x00\x01\xa4echo\x91\xa2hi\x94\x00\x02\xa4echo\x91\xc0":
        await raw.send(bytes([byte]))
    assert await raw.message() == [1, 1, None, "hi"]
    assert await raw.message() == [1, 2, None, None]


async def test_an_unknown_method_is_answered_with_a_near_name(serve) -> None:
    raw = await (await serve(ECHO)).raw()
    await raw.send(msgpack.packb([0, 1, "ecco", []]))
    assert await raw.message() == [
        1,
        1,
        {
            "code": "unknown_method",
            "message": 'no method "ecco"; did you mean "echo"?',
            "data": {"method": "ecco", "did_you_mean": ["echo"]},
        },
        None,
    ]


async def test_bad_parameters_are_answered_and_the_connection_goes_on(serve) -> None:
    raw = await (await serve(ECHO)).raw()
    await raw.send(msgpack.packb([0, 1, "echo", []]) + msgpack.packb([0, 2, "echo", ["x"]]))
    bad, good = sorted([await raw.message(), await raw.message()], key=lambda answer: answer[1])
    assert bad[2]["code"] == "bad_params"
    assert bad[2]["message"] == 'echo: "value" (parameter 1): got nothing, allowed: any'
    assert good == [1, 2, None, "x"]


async def test_params_that_are_no_array_are_answered_and_the_connection_goes_on(serve) -> None:
    raw = await (await serve(ECHO)).raw()
    await raw.send(msgpack.packb([0, 1, "echo", {"value": 1}]) + msgpack.packb([0, 2, "echo", ["x"]]))
    answers = [await raw.message(), await raw.message()]
    assert sorted((msgid, error and error["code"]) for _, msgid, error, _ in answers) == [
        (1, "protocol_error"),
        (2, None),
    ]


async def test_responses_come_as_they_are_ready(serve) -> None:
    waiter = Waiter()
    raw = await (await serve(ECHO, waiter.method)).raw()
    await raw.send(msgpack.packb([0, 1, "wait", []]) + msgpack.packb([0, 2, "echo", ["x"]]))
    assert await raw.message() == [1, 2, None, "x"]
    waiter.go.set()
    assert await raw.message() == [1, 1, None, "went"]


async def test_a_notification_is_run_and_not_answered(serve) -> None:
    waiter = Waiter()
    raw = await (await serve(ECHO, waiter.method)).raw()
    await raw.send(msgpack.packb([2, "wait", []]))
    await waiter.begun.wait()
    waiter.go.set()
    await waiter.ended.wait()
    await raw.send(msgpack.packb([2, "no.such", []]) + msgpack.packb([2, "echo", []]))
    await raw.send(msgpack.packb([0, 1, "echo", ["x"]]))
    assert await raw.message() == [1, 1, None, "x"]


async def test_an_error_of_ours_is_answered_with_its_code(serve) -> None:
    raw = await (await serve(failing(PodGoneError("pod a/b is gone")))).raw()
    await raw.send(msgpack.packb([0, 1, "fail", []]))
    assert await raw.message() == [1, 1, {"code": "not_found", "message": "pod a/b is gone"}, None]


async def test_an_error_wrapped_by_the_nursery_of_a_handler_is_found(serve) -> None:
    async def raises() -> None:
        raise PodGoneError("gone")

    async def nursery_within(call: Call) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(raises)

    raw = await (await serve(Method("deep", nursery_within, doc="Fails in a nursery."))).raw()
    await raw.send(msgpack.packb([0, 1, "deep", []]))
    assert (await raw.message())[2]["code"] == "not_found"


@pytest.mark.parametrize("result", [object(), 2**70, "\ud800", {1, 2}])
async def test_a_result_with_no_messagepack_form_is_a_bug_of_the_handler(serve, result: object) -> None:
    async def give(call: Call) -> object:
        return result

    with structlog.testing.capture_logs() as logs:
        raw = await (await serve(Method("give", give, doc="Gives."))).raw()
        await raw.send(msgpack.packb([0, 1, "give", []]))
        assert (await raw.message())[2]["code"] == "internal"
    assert [entry["event"] for entry in logs if entry["log_level"] == "error"] == ["rpc.handler_bug"]


async def test_a_bug_is_logged_with_its_traceback_and_the_daemon_goes_on(serve) -> None:
    with structlog.testing.capture_logs() as logs:
        raw = await (await serve(ECHO, failing(ZeroDivisionError("x")))).raw()
        await raw.send(msgpack.packb([0, 1, "fail", []]) + msgpack.packb([0, 2, "echo", ["x"]]))
        answers = sorted([await raw.message(), await raw.message()], key=lambda answer: answer[1])
    assert answers[0][2]["code"] == "internal"
    assert "ZeroDivisionError" in answers[0][2]["message"]
    assert answers[1] == [1, 2, None, "x"]
    (bug,) = [entry for entry in logs if entry["event"] == "rpc.handler_bug"]
    assert isinstance(bug["exc_info"], ZeroDivisionError)
    assert bug["method"] == "fail"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"\xc1", "no MessagePack value", id="not-msgpack"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", "is no message", id="http"),
        pytest.param(b"\x94\x00\x01\xa4echo\x91\xc6" + struct.pack(">I", 100 << 20), "104857600", id="100-mb-header"),
        pytest.param(b"\x91" * 100_000, "nested far too deep", id="deep-nesting"),
    ],
)
async def test_garbage_is_answered_once_and_closes_only_its_client(serve, data: bytes, why: str) -> None:
    served = await serve(ECHO)
    bad, good = await served.raw(), await served.raw()
    await bad.send(data)
    kind, msgid, error, result = await bad.message()
    reported = (1, "too_large") if why == "104857600" else (0, "protocol_error")
    assert (kind, msgid, error["code"], result) == (1, *reported, None)
    assert why in error["message"]
    assert await bad.message() is None
    await good.send(msgpack.packb([0, 1, "echo", ["still here"]]))
    assert await good.message() == [1, 1, None, "still here"]


@pytest.mark.parametrize(
    ("params", "why"),
    [
        pytest.param(b"\x91\xa2\xff\xff", "not UTF-8", id="not-utf8"),
        pytest.param(b"\x91\x81\x05\x01", "not allowed for map key", id="a-number-as-key"),
    ],
)
async def test_a_request_that_is_wrong_within_is_answered_and_its_client_stays(serve, params: bytes, why: str) -> None:
    raw = await (await serve(ECHO)).raw()
    await raw.send(b"\x94\x00\x01\xa4echo" + params)
    kind, msgid, error, result = await raw.message()
    assert (kind, msgid, error["code"], result) == (1, 1, "protocol_error", None)
    assert why in error["message"]
    await raw.send(msgpack.packb([0, 2, "echo", ["still here"]]))
    assert await raw.message() == [1, 2, None, "still here"]


async def test_what_was_asked_before_the_garbage_is_answered(serve) -> None:
    raw = await (await serve(ECHO)).raw()
    await raw.send(msgpack.packb([0, 1, "echo", ["x"]]))
    assert await raw.message() == [1, 1, None, "x"]
    await raw.send(b"\xc1")
    assert (await raw.message())[1] == 0


async def test_a_megabyte_in_one_line_comes_back_whole(serve) -> None:
    raw = await (await serve(ECHO)).raw()
    text = "x" * (1 << 20)
    await raw.send(msgpack.packb([0, 1, "echo", [text]]))
    assert (await raw.message())[3] == text


async def test_a_client_that_vanishes_has_its_request_cancelled(serve) -> None:
    waiter = Waiter()
    served = await serve(ECHO, waiter.method)
    raw, other = await served.raw(), await served.raw()
    await raw.send(msgpack.packb([0, 1, "wait", []]))
    await waiter.begun.wait()
    await raw.stream.aclose()
    with trio.fail_after(90):
        await waiter.ended.wait()
    assert waiter.cancelled == 1
    await other.send(msgpack.packb([0, 1, "echo", ["x"]]))
    assert await other.message() == [1, 1, None, "x"]


async def test_a_client_that_vanishes_in_the_middle_of_a_frame_is_forgotten(serve) -> None:
    served = await serve(ECHO)
    raw = await served.raw()
    await raw.send(b"\x94\x00\x01\xa4echo\x91\xda\x10\x00half")
    await raw.stream.aclose()
    await served.ended()


async def test_a_client_that_vanishes_with_all_its_slots_taken_is_noticed(serve) -> None:
    waiter = Waiter()
    served = await serve(waiter.method, terms={"requests": 2})
    raw = await served.raw()
    await raw.send(b"".join(msgpack.packb([0, i, "wait", []]) for i in range(5)))
    await waiter.begun.wait()
    await raw.stream.aclose()
    with trio.fail_after(90):
        await waiter.ended.wait()
    assert (waiter.most, waiter.cancelled) == (2, 2)


async def test_a_client_that_closes_its_sending_side_still_gets_its_answers(serve) -> None:
    waiter = Waiter()
    raw = await (await serve(waiter.method)).raw()
    await raw.send(msgpack.packb([0, 1, "wait", []]))
    await raw.stream.send_eof()
    await waiter.begun.wait()
    waiter.go.set()
    assert await raw.message() == [1, 1, None, "went"]
    assert await raw.message() is None


async def test_one_that_closes_its_sending_side_and_then_vanishes_is_cancelled(serve) -> None:
    waiter = Waiter()
    raw = await (await serve(waiter.method)).raw()
    await raw.send(msgpack.packb([0, 1, "wait", []]))
    await raw.stream.send_eof()
    await waiter.begun.wait()
    await raw.stream.aclose()
    with trio.fail_after(90):
        await waiter.ended.wait()
    assert waiter.cancelled == 1


async def test_two_hundred_requests_at_once_run_within_the_limit_and_are_all_answered(serve) -> None:
    waiter = Waiter()
    raw = await (await serve(waiter.method, terms={"requests": 50})).raw()
    await raw.send(b"".join(msgpack.packb([0, i, "wait", []]) for i in range(1, 201)))
    await waiter.begun.wait()
    await trio.testing.wait_all_tasks_blocked(0.05)
    assert waiter.running == 50
    waiter.go.set()
    answers = [await raw.message() for _ in range(200)]
    assert sorted(answer[1] for answer in answers) == list(range(1, 201))
    assert {answer[3] for answer in answers} == {"went"}
    assert waiter.most == 50


async def test_a_thousand_pipelined_requests_are_answered(serve) -> None:
    raw = await (await serve(ECHO)).raw()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(raw.send, b"".join(msgpack.packb([0, i, "echo", [i]]) for i in range(1000)))
        answers = [await raw.message() for _ in range(1000)]
    assert sorted(answer[3] for answer in answers) == list(range(1000))


async def test_a_client_that_reads_nothing_is_dropped_with_a_log_line_and_nobody_else(serve) -> None:
    async def big(call: Call) -> bytes:
        return bytes(8 << 20)

    with structlog.testing.capture_logs() as logs:
        served = await serve(ECHO, Method("big", big, doc="Much."), terms={"stall_s": 0.2})
        deaf, other = await served.raw(), await served.raw()
        await deaf.send(msgpack.packb([0, 1, "big", []]))
        await other.send(msgpack.packb([0, 1, "echo", ["x"]]))
        assert await other.message() == [1, 1, None, "x"]
        await served.ended(clients=1)
    (left,) = [entry for entry in logs if entry["event"] == "rpc.client_left"]
    assert left["log_level"] == "warning"
    assert left["why"] == "dropped: it has read nothing for 0.2 s"
    await other.send(msgpack.packb([0, 2, "echo", ["y"]]))
    assert await other.message() == [1, 2, None, "y"]


async def test_one_client_too_many_is_told_so(serve) -> None:
    served = await serve(ECHO, places=Places(clients=1, reserve=0))
    first = await served.raw()
    await first.send(msgpack.packb([0, 1, "echo", [1]]))
    await first.message()
    second = await served.raw()
    _, msgid, error, _ = await second.message()
    assert (msgid, error["code"]) == (0, "too_many")
    assert await second.message() is None


async def test_a_client_whose_half_requests_fill_the_memory_for_them_is_told_so_and_others_go_on(serve) -> None:
    unfinished = Unfinished(most=100_000)
    served = await serve(ECHO, shared=Shared(unfinished=unfinished))
    small, large = await served.raw(), await served.raw()
    whole = msgpack.packb([0, 1, "echo", ["x" * 80_000]])
    await small.send(whole[:40_000])
    await large.send(whole[:79_000])
    _, msgid, error, _ = await large.message()
    assert (msgid, error["code"]) == (0, "too_slow")
    assert "most of it from this client" in error["message"]
    assert await large.message() is None
    await small.send(whole[40_000:])
    assert await small.message() == [1, 1, None, "x" * 80_000]
    await served.ended(clients=1)
    assert unfinished.held == 0
    assert 100_000 < unfinished.most_held < 120_000


async def test_a_request_that_is_never_ended_is_forgotten_with_its_client(serve) -> None:
    unfinished = Unfinished()
    served = await serve(ECHO, shared=Shared(unfinished=unfinished))
    raw = await served.raw()
    await raw.send(msgpack.packb([0, 1, "echo", ["x"]]) + msgpack.packb([0, 2, "echo", ["x" * 5_000]])[:3_000])
    assert await raw.message() == [1, 1, None, "x"]
    with trio.fail_after(90):
        await raw.stream.aclose()
    await served.ended()
    assert (unfinished.held, 0 < unfinished.most_held <= 3_000) == (0, True)


async def test_three_hundred_clients_that_come_at_once_are_all_answered(serve, tmp_path: Path) -> None:
    served = await serve(ECHO, places=Places(of_one_process=400))
    answered = []

    async def ask(number: int) -> None:
        async with Client.connect(served.path) as client:
            answered.append(await client.call("echo", number))

    with trio.fail_after(120):
        async with trio.open_nursery() as clients:
            for number in range(300):
                clients.start_soon(ask, number)
    assert sorted(answered) == list(range(300))


async def test_shutdown_lets_requests_end_and_answers_those_that_do_not(serve, nursery) -> None:
    waiter, stuck = Waiter(), Waiter()
    served = await serve(waiter.method, Method("stuck", stuck._wait, doc="Waits longer."))
    raw = await served.raw()
    await raw.send(msgpack.packb([0, 1, "wait", []]) + msgpack.packb([0, 2, "stuck", []]))
    await waiter.begun.wait()
    await stuck.begun.wait()
    served.server.shut_down(grace_s=0.2)
    waiter.go.set()
    assert await raw.message() == [1, 1, None, "went"]
    assert await raw.message() == [
        1,
        2,
        {"code": "shutting_down", "message": "the daemon is shutting down"},
        None,
    ]
    assert await raw.message() is None
    await served.ended()


async def test_requests_not_yet_begun_at_shutdown_are_answered_too(serve) -> None:
    waiter = Waiter()
    served = await serve(waiter.method, terms={"requests": 1})
    raw = await served.raw()
    await raw.send(b"".join(msgpack.packb([0, i, "wait", []]) for i in range(1, 4)))
    await waiter.begun.wait()
    await trio.testing.wait_all_tasks_blocked(0.05)
    served.server.shut_down(grace_s=0)
    answers = [await raw.message() for _ in range(3)]
    assert sorted((answer[1], answer[2]["code"]) for answer in answers) == [(i, "shutting_down") for i in (1, 2, 3)]


async def test_the_built_in_methods(serve) -> None:
    raw = await (await serve(ECHO, identity={"version": "9"})).raw()
    await raw.send(msgpack.packb([0, 1, "rpc.ping", []]))
    assert await raw.message() == [1, 1, None, {"pong": True, "version": "9"}]
    await raw.send(msgpack.packb([0, 2, "rpc.methods", []]))
    methods = (await raw.message())[3]
    assert [method["name"] for method in methods] == [
        "echo",
        "rpc.methods",
        "rpc.ping",
        "rpc.authenticate",
        "stream.cancel",
    ]
    assert methods[0] == {
        "name": "echo",
        "doc": "Return the parameter.",
        "params": [{"name": "value", "type": "any", "required": True, "doc": ""}],
        "returns": "",
        "writes": True,
    }


async def test_the_call_says_which_client_it_is_from(serve) -> None:
    async def who(call: Call) -> str:
        return call.client

    raw = await (await serve(Method("who", who, doc="Who calls."))).raw()
    await raw.send(msgpack.packb([0, 1, "who", []]))
    client = (await raw.message())[3]
    assert client.startswith("1")
    if hasattr(socket, "SO_PEERCRED"):
        assert client == f"1 (pid {os.getpid()}, uid {os.getuid()})"


async def test_a_listener_of_another_kind_will_do(nursery) -> None:
    server = Server(method_table([ECHO]))
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    await nursery.start(server.serve, listeners)
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(b"\x94\x00\x01\xa4echo\x91\xa2hi")
        assert await stream.receive_some(100) == b"\x94\x01\x01\xc0\xa2hi"


# Streams


def counting(many: int, *, sent: list[int] | None = None) -> Method:
    async def count(call: Call) -> dict[str, int]:
        async def feed(stream: Stream) -> None:
            for number in range(call["since"], many):
                await stream.send({"n": number, "text": "x" * call["size"]})
                if sent is not None:
                    sent.append(number)

        return {"stream": call.open_stream(feed), "from": call["since"]}

    params = (Param("since", "integer", False, 0), Param("size", "integer", False, 0))
    return Method("count", count, params, doc="Counts.", items="a map with `n`")


async def test_a_stream_follows_its_response_and_ends_with_a_reason(serve) -> None:
    raw = await (await serve(counting(3))).raw()
    await raw.send(msgpack.packb([0, 1, "count", []]))
    assert await raw.message() == [1, 1, None, {"stream": 1, "from": 0}]
    for number in range(3):
        assert await raw.message() == [2, "stream.item", [1, number, {"n": number, "text": ""}]]
    assert await raw.message() == [2, "stream.end", [1, {"code": "done", "message": ""}]]


async def test_a_stream_is_resumed_by_the_token_in_its_items(serve) -> None:
    served = await serve(counting(5))
    first = await served.raw()
    await first.send(msgpack.packb([0, 1, "count", []]))
    await first.message()
    token = [await first.message() for _ in range(2)][-1][2][2]["n"]
    await first.stream.aclose()
    second = await served.raw()
    await second.send(msgpack.packb([0, 1, "count", [token + 1]]))
    assert (await second.message())[3]["from"] == 2
    assert (await second.message())[2] == [1, 0, {"n": 2, "text": ""}]


async def test_several_items_in_one_go(serve) -> None:
    async def open_(call: Call) -> dict[str, int]:
        async def feed(stream: Stream) -> None:
            await stream.send_many(["a", "b"])
            await stream.send_many([])
            await stream.send("c")

        return {"stream": call.open_stream(feed)}

    raw = await (await serve(Method("open", open_, doc="Opens."))).raw()
    await raw.send(msgpack.packb([0, 1, "open", []]))
    await raw.message()
    assert [(await raw.message())[2] for _ in range(3)] == [[1, 0, "a"], [1, 1, "b"], [1, 2, "c"]]


def endless(ended: trio.Event) -> Method:
    async def open_(call: Call) -> dict[str, int]:
        async def feed(stream: Stream) -> None:
            try:
                await trio.sleep_forever()
            finally:
                ended.set()

        return {"stream": call.open_stream(feed)}

    return Method("endless", open_, doc="Open a stream without items.")


async def test_a_stream_can_be_cancelled(serve) -> None:
    ended = trio.Event()
    raw = await (await serve(endless(ended))).raw()
    await raw.send(msgpack.packb([0, 1, "endless", []]))
    assert (await raw.message())[3] == {"stream": 1}
    await raw.send(msgpack.packb([0, 2, "stream.cancel", [1]]))
    answers = [await raw.message(), await raw.message()]
    assert [1, 2, None, {"cancelled": True}] in answers
    assert [2, "stream.end", [1, {"code": "cancelled", "message": "the client cancelled it"}]] in answers
    assert ended.is_set()
    await raw.send(msgpack.packb([0, 3, "stream.cancel", [1]]))
    assert await raw.message() == [1, 3, None, {"cancelled": False}]


async def test_a_stream_of_a_client_that_vanishes_is_cancelled(serve) -> None:
    ended = trio.Event()
    raw = await (await serve(endless(ended))).raw()
    await raw.send(msgpack.packb([0, 1, "endless", []]))
    await raw.message()
    await raw.stream.aclose()
    with trio.fail_after(90):
        await ended.wait()


async def test_at_shutdown_streams_end_with_that_reason(serve) -> None:
    served = await serve(endless(trio.Event()))
    raw = await served.raw()
    await raw.send(msgpack.packb([0, 1, "endless", []]))
    await raw.message()
    served.server.shut_down()
    assert await raw.message() == [
        2,
        "stream.end",
        [1, {"code": "shutting_down", "message": "the daemon is shutting down"}],
    ]
    assert await raw.message() is None


@pytest.mark.parametrize(("error", "code"), [(PodGoneError("gone"), "not_found"), (ZeroDivisionError("x"), "internal")])
async def test_a_stream_that_fails_ends_with_the_error(serve, error: Exception, code: str) -> None:
    async def open_(call: Call) -> dict[str, int]:
        async def feed(stream: Stream) -> None:
            await stream.send(1)
            raise error

        return {"stream": call.open_stream(feed)}

    with structlog.testing.capture_logs() as logs:
        raw = await (await serve(Method("open", open_, doc="Opens."))).raw()
        await raw.send(msgpack.packb([0, 1, "open", []]))
        _, _, (_, name, [_, reason]) = [await raw.message() for _ in range(3)]
    assert (name, reason["code"]) == ("stream.end", code)
    assert ("rpc.handler_bug" in [entry["event"] for entry in logs]) == (code == "internal")


async def test_a_slow_reader_of_a_stream_is_felt_by_its_feed_and_loses_nothing(serve) -> None:
    sent: list[int] = []
    raw = await (await serve(counting(5000, sent=sent))).raw()
    await raw.send(msgpack.packb([0, 1, "count", [0, 10_000]]))
    await raw.message()
    await trio.testing.wait_all_tasks_blocked(0.05)
    # 50 MB are to be sent; the socket and the outbox hold far less.
    assert 0 < len(sent) < 1000
    numbers = [(await raw.message())[2][2]["n"] for _ in range(5000)]
    assert numbers == list(range(5000))


async def test_a_stream_needs_a_request(serve) -> None:
    with structlog.testing.capture_logs() as logs:
        raw = await (await serve(ECHO, counting(3))).raw()
        await raw.send(msgpack.packb([2, "count", []]))
        await trio.testing.wait_all_tasks_blocked(0.05)
        await raw.send(msgpack.packb([0, 1, "echo", ["x"]]))
        assert await raw.message() == [1, 1, None, "x"]
    (failed,) = [entry for entry in logs if entry["event"] == "rpc.notification_failed"]
    assert "call it as a request" in failed["why"]


async def test_streams_of_one_client_are_limited(serve) -> None:
    raw = await (await serve(endless(trio.Event()), terms={"streams": 2})).raw()
    await raw.send(b"".join(msgpack.packb([0, i, "endless", []]) for i in (1, 2, 3)))
    answers = [await raw.message() for _ in range(3)]
    assert sorted(answer[2]["code"] if answer[2] else "" for answer in answers) == ["", "", "too_many"]


async def test_a_call_that_fails_after_opening_a_stream_opens_none(serve) -> None:
    async def open_(call: Call) -> None:
        async def feed(stream: Stream) -> None:
            raise AssertionError("a stream of a failed call begins")

        call.open_stream(feed)
        raise PodGoneError("after all")

    raw = await (await serve(ECHO, Method("open", open_, doc="Opens."))).raw()
    await raw.send(msgpack.packb([0, 1, "open", []]) + msgpack.packb([0, 2, "stream.cancel", [1]]))
    answers = sorted([await raw.message(), await raw.message()], key=lambda answer: answer[1])
    assert answers[0][2]["code"] == "not_found"
    assert answers[1][3] == {"cancelled": False}


async def test_the_socket_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "dir" / "kschedd.sock"
    async with unix_listener(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert not path.exists()


async def test_what_is_not_read_is_not_encoded_either(serve) -> None:
    requests = 0

    async def big(call: Call) -> bytes:
        nonlocal requests
        requests += 1
        return bytes(1 << 20)

    served = await serve(Method("big", big, doc="Much."), terms={"held": 1 << 20, "requests": 4})
    raw = await served.raw()
    await raw.send(b"".join(msgpack.packb([0, number, "big", []]) for number in range(1, 65)))
    await trio.testing.wait_all_tasks_blocked(0.05)
    assert requests <= 8  # the running requests, and those whose answers are being sent
    assert sorted([(await raw.message())[1] for _ in range(64)]) == list(range(1, 65))
    assert requests == 64


async def test_a_stream_that_is_not_read_goes_no_further(serve) -> None:
    taken = 0

    async def watch(call: Call) -> Any:
        async def feed(stream: Stream) -> None:
            nonlocal taken
            while True:
                taken += 1
                await stream.send_many([bytes(1 << 16)] * 10)

        return {"stream": call.open_stream(feed)}

    served = await serve(Method("watch", watch, doc="Follows."), terms={"held": 1 << 20})
    raw = await served.raw()
    await raw.send(msgpack.packb([0, 1, "watch", []]))
    await trio.testing.wait_all_tasks_blocked(0.05)
    assert taken <= 5


async def test_a_client_that_leaves_in_the_middle_of_a_stream_is_no_bug(serve) -> None:
    async def watch(call: Call) -> Any:
        async def feed(stream: Stream) -> None:
            while True:
                await stream.send(bytes(1 << 16))

        return {"stream": call.open_stream(feed)}

    with structlog.testing.capture_logs() as logs:
        served = await serve(Method("watch", watch, doc="Follows."))
        raw = await served.raw()
        await raw.send(msgpack.packb([0, 1, "watch", []]))
        await raw.message()
        await raw.stream.aclose()
        await served.ended()
    assert [entry for entry in logs if entry["log_level"] in ("error", "warning")] == []


async def test_the_client_for_whom_most_waits_is_dropped_and_told_so_when_all_hold_too_much(serve) -> None:
    async def big(call: Call) -> bytes:
        return bytes(8 << 20)

    with structlog.testing.capture_logs() as logs:
        shared = Shared(total=Total(most=4 << 20))
        served = await serve(ECHO, Method("big", big, doc="Much."), shared=shared)
        deaf, other = await served.raw(), await served.raw()
        await deaf.send(msgpack.packb([0, 1, "big", []]))
        await other.send(msgpack.packb([0, 1, "echo", ["x"]]))
        assert await other.message() == [1, 1, None, "x"]
        _, msgid, error, _ = await deaf.message()
        assert (msgid, error["code"]) == (0, "too_slow")
        assert await deaf.message() is None
    assert "more than 4 MiB wait for all clients" in next(e["why"] for e in logs if e["event"] == "rpc.client_left")
    assert shared.total.held == 0


async def test_the_longest_idle_client_makes_room_for_a_new_one(serve) -> None:
    served = await serve(ECHO, places=Places(clients=3, reserve=0, idle_s=0.0))
    idle = [await served.raw() for _ in range(3)]
    for number, raw in enumerate(idle):
        await raw.send(msgpack.packb([0, 1, "echo", [number]]))
        await raw.message()
    await idle[0].send(msgpack.packb([0, 2, "echo", ["again"]]))
    await idle[0].message()
    newcomer = await served.raw()
    await newcomer.send(msgpack.packb([0, 1, "echo", ["in"]]))
    assert await newcomer.message() == [1, 1, None, "in"]
    _, msgid, error, _ = await idle[1].message()
    assert (msgid, error["code"]) == (0, "idle")
    assert await idle[1].message() is None
    for raw in (idle[0], idle[2]):
        await raw.send(msgpack.packb([0, 3, "echo", ["still here"]]))
        assert (await raw.message())[3] == "still here"


async def test_places_are_kept_for_short_visits_when_everybody_is_busy(serve) -> None:
    async def watch(call: Call) -> Any:
        async def feed(stream: Stream) -> None:
            await trio.sleep_forever()

        return {"stream": call.open_stream(feed)}

    served = await serve(ECHO, Method("watch", watch, doc="Follows."), places=Places(clients=2, reserve=1, idle_s=0.0))
    busy = [await served.raw() for _ in range(2)]
    for raw in busy:
        await raw.send(msgpack.packb([0, 1, "watch", []]))
        await raw.message()
    visitor = await served.raw()
    await visitor.send(msgpack.packb([0, 1, "echo", ["in"]]) + msgpack.packb([0, 2, "watch", []]))
    answers = sorted([await visitor.message(), await visitor.message()], key=lambda answer: answer[1])
    assert answers[0][3] == "in"
    assert answers[1][2]["code"] == "too_many"
    next_one = await served.raw()
    await next_one.send(msgpack.packb([0, 1, "echo", ["in, too"]]))
    assert (await next_one.message())[3] == "in, too"
    assert (await visitor.message())[2]["code"] == "idle"


class Spawned(trio.abc.Instrument):
    def __init__(self) -> None:
        self.names: list[str] = []
        self.watched = trio.Event()

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        self.names.append(task.name.rpartition(".")[2])
        if self.names[-1] == "_watch_hang_up":
            self.watched.set()


@pytest.mark.parametrize("runs", [pytest.param(False, id="nothing-runs"), pytest.param(True, id="a-request-runs")])
async def test_a_hang_up_is_watched_for_only_where_something_runs_still(serve, runs: bool) -> None:
    waiter = Waiter()
    served = await serve(ECHO, waiter.method)
    spawned = Spawned()
    trio.lowlevel.add_instrument(spawned)
    raw = await served.raw()
    await raw.send(msgpack.packb([0, 1, "echo", [1]]))
    await raw.message()
    if runs:
        await raw.send(msgpack.packb([0, 2, "wait", []]))
        await waiter.begun.wait()
    raw.stream.socket.shutdown(socket.SHUT_WR)
    if runs:
        with trio.fail_after(90):
            await spawned.watched.wait()
        waiter.go.set()
    await served.ended()
    trio.lowlevel.remove_instrument(spawned)
    assert spawned.names.count("_answer") == 1 + runs
    assert spawned.names.count("_watch_hang_up") == runs


async def test_one_process_does_not_take_all_places(serve) -> None:
    served = await serve(ECHO, places=Places(clients=10, of_one_process=2, idle_s=1000.0))
    for _ in range(2):
        raw = await served.raw()
        await raw.send(msgpack.packb([0, 1, "echo", [1]]))
        await raw.message()
    third = await served.raw()
    _, msgid, error, _ = await third.message()
    assert (msgid, error["code"]) == (0, "too_many")
    assert "has 2 connections, the most one may have" in error["message"]


async def test_a_large_answer_is_encoded_in_pieces_and_reads_as_one(serve) -> None:
    async def much(call: Call) -> Any:
        return Large({"kind": "Pod"}, "items", [{"name": "x" * 1000, "number": number} for number in range(2000)])

    shared = Shared()
    raw = await (await serve(Method("much", much, doc="Much.", large=True), shared=shared)).raw()
    await raw.send(msgpack.packb([0, 1, "much", []]))
    _, _, _, result = await raw.message()
    assert result["kind"] == "Pod"
    assert [item["number"] for item in result["items"]] == list(range(2000))
    assert shared.shares.turns.slices > 2000 * 1000 // PIECE


async def test_a_small_result_of_a_large_method_takes_no_turn_among_large_ones(serve) -> None:
    async def much(call: Call) -> Any:
        return "large"

    async def little(call: Call) -> Any:
        return "small" if call["few"] else None

    shared = Shared()
    method = Method("much", much, (Param("few", "boolean", doc="Few."),), doc="Much.", large=True, small=little)
    raw = await (await serve(method, shared=shared)).raw()
    for other in range(4):
        await shared.shares.large.acquire(f"{other}")
    await raw.send(msgpack.packb([0, 1, "much", [False]]) + msgpack.packb([0, 2, "much", [True]]))
    assert (await raw.message())[1:] == [2, None, "small"]
    assert shared.shares.large.waiting == 1
    shared.shares.large.release("0")
    assert (await raw.message())[1:] == [1, None, "large"]


async def test_a_request_beyond_the_limit_is_answered_in_the_words_of_the_api_server(serve) -> None:
    served = await serve(ECHO, terms={"wire": Limits.of_requests(100_000)})
    raw = await served.raw()
    await raw.send(msgpack.packb([0, 7, "echo", ["x" * 100_000]]))
    assert (await raw.message())[1] == 7
    await raw.send(msgpack.packb([0, 8, "echo", [["x" * 60_000] * 2]]))
    _, msgid, error, _ = await raw.message()
    assert (msgid, error["code"], error["message"]) == (
        8,
        "too_large",
        "Request entity too large: limit is 100000",
    )
    assert await raw.message() is None


async def test_values_made_for_an_answer_count_while_it_waits(serve) -> None:
    made = 0

    async def much(call: Call) -> Any:
        nonlocal made
        made += 1
        return Large({}, "items", [bytes(1000)] * 1000, each=1000)

    served = await serve(Method("much", much, doc="Much.", large=True), terms={"held": 2_000_000})
    raw = await served.raw()
    await raw.send(b"".join(msgpack.packb([0, number, "much", []]) for number in range(1, 33)))
    await trio.testing.wait_all_tasks_blocked(0.05)
    assert made <= 6
    assert sorted([(await raw.message())[1] for _ in range(32)]) == list(range(1, 33))


async def test_of_many_clients_that_go_at_once_few_sessions_end_in_one_iteration(serve) -> None:
    class Ends(trio.abc.Instrument):
        most = now = 0

        def after_io_wait(self, timeout: float) -> None:
            self.now = 0

        def task_exited(self, task: trio.lowlevel.Task) -> None:
            if task.name.endswith("._run_handler"):
                self.now += 1
                self.most = max(self.most, self.now)

    served, ends = await serve(ECHO), Ends()
    clients = [await served.raw() for _ in range(5 * ENDS_AT_ONCE)]
    for raw in clients:
        await raw.send(msgpack.packb([0, 1, "echo", [1]]))
        await raw.message()
    trio.lowlevel.add_instrument(ends)
    for raw in clients:
        raw.stream.socket.close()
    await served.ended()
    trio.lowlevel.remove_instrument(ends)
    assert 0 < ends.most <= ENDS_AT_ONCE


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(lambda objects: [objects], id="by-position"),
        pytest.param(lambda objects: [{"manifests": {"kind": "List", "items": objects}}], id="a-list-by-name"),
    ],
)
def test_the_objects_of_a_large_request_are_freed_in_steps(made) -> None:
    class Value:
        left = 0

        def __init__(self) -> None:
            Value.left += 1

        def __del__(self) -> None:
            Value.left -= 1

    params = made([{"spec": Value()} for _ in range(50)])
    seen = {Value.left for _ in freed(params)}
    assert seen >= set(range(1, 50))
    assert (params, Value.left) == ([], 0)
