"""Tests of the requests that are sent again before their failure is reported."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio
import trio.testing

from kschedd.live.api_server import ApiServer
from kschedd.live.connection import ServerRequest
from kschedd.live.errors import LiveError, RequestFailed
from kschedd.live.repeating import MOST_REPEATS, pause_before_repeat
from tests.live.scripted_server import EMPTY, ServedRequest, scripted
from tests.live.test_adverse_servers import kubeconfig
from tests.live.test_mirror import PODS

REFUSED = LiveError("s", "refused", is_refused=True)
LOST = LiveError("s", "lost", is_lost=True)
GET, POST = ServerRequest("GET", "api/v1/x"), ServerRequest("POST", "api/v1/x", body={"a": 1})


def busy(seconds: float | None) -> LiveError:
    return RequestFailed("s", "busy", 429, retry_after_s=seconds)


@pytest.mark.parametrize(
    ("failure", "method", "repeats", "pause_s"),
    [
        pytest.param(busy(2.0), "POST", 0, 2.0, id="the-pause-that-the-server-requests"),
        pytest.param(busy(0.0), "POST", 3, 0.0, id="without-a-pause"),
        pytest.param(busy(None), "GET", 0, None, id="busy-without-retry-after"),
        pytest.param(busy(3600.0), "GET", 0, None, id="a-pause-of-an-hour"),
        pytest.param(busy(1.0), "GET", MOST_REPEATS, None, id="too-often"),
        pytest.param(REFUSED, "POST", 0, 0.1, id="nothing-was-sent"),
        pytest.param(REFUSED, "POST", 2, 0.4, id="longer-each-time"),
        pytest.param(REFUSED, "POST", 9, 1.0, id="at-most-a-second"),
        pytest.param(LOST, "GET", 0, 0.1, id="a-read-is-safe"),
        pytest.param(LOST, "POST", 0, None, id="a-write-may-have-been-executed"),
        pytest.param(LiveError("s", "broken"), "GET", 0, None, id="anything-else"),
    ],
)
def test_the_pause_before_a_request_is_sent_again(
    failure: LiveError, method: str, repeats: int, pause_s: float | None
) -> None:
    assert pause_before_repeat(failure, method, repeats) == pause_s


async def refuse(request: ServedRequest) -> None:
    text = b'{"kind": "Status", "message": "too much"}'
    await request.stream.send_all(
        b"HTTP/1.1 429 Busy\r\nRetry-After: 0\r\nContent-Length: %d\r\n\r\n" % len(text) + text
    )


async def cut(request: ServedRequest) -> None:
    await request.stream.aclose()


@pytest.mark.parametrize(
    ("request_", "fails", "sent"),
    [
        pytest.param(POST, refuse, 4, id="busy"),
        pytest.param(GET, refuse, 4, id="busy-for-a-read"),
        pytest.param(GET, cut, 4, id="lost"),
    ],
)
async def test_a_request_is_answered_after_failures(
    tmp_path: Path,
    request_: ServerRequest,
    fails: Callable[[ServedRequest], Awaitable[None]],
    sent: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kschedd.live.repeating._FIRST_PAUSE_S", 0.0)
    bodies: list[object] = []

    async def script(request: ServedRequest) -> None:
        bodies.append(request.body)
        await (fails(request) if len(bodies) < 4 else request.answer({"kind": "X"}))

    async with scripted(script) as url, await ApiServer.connect(str(kubeconfig(tmp_path, url))) as server:
        assert await server.ask(request_) == {"kind": "X"}
    assert bodies == [request_.body] * sent


async def test_a_write_whose_answer_is_lost_is_sent_once(tmp_path: Path) -> None:
    sent = 0

    async def script(request: ServedRequest) -> None:
        nonlocal sent
        sent += 1
        await request.stream.aclose()

    async with scripted(script) as url, await ApiServer.connect(str(kubeconfig(tmp_path, url))) as server:
        with pytest.raises(LiveError, match="POST /api/v1/x: the connection was closed before the response"):
            await server.ask(POST)
    assert sent == 1


async def test_a_list_waits_for_a_busy_server(tmp_path: Path) -> None:
    asked = 0

    async def script(request: ServedRequest) -> None:
        nonlocal asked
        asked += 1
        await (refuse(request) if asked < 3 else request.answer(EMPTY))

    async with scripted(script) as url, await ApiServer.connect(str(kubeconfig(tmp_path, url))) as server:
        assert (await server.page(PODS)).version == "1"
    assert asked == 3


async def test_a_server_that_starts_again_is_waited_for(tmp_path: Path) -> None:
    """Send a write while the server does not listen."""

    async def script(request: ServedRequest) -> None:
        await request.answer({"kind": "X"})

    with trio.socket.socket() as free:
        await free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    answers: list[object] = []
    async with await ApiServer.connect(str(kubeconfig(tmp_path, f"http://127.0.0.1:{port}"))) as server:

        async def ask() -> None:
            answers.append(await server.ask(POST))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert not answers
            async with scripted(script, port):
                with trio.fail_after(60):
                    while not answers:  # noqa: ASYNC110 - the request has no event
                        await trio.sleep(0.01)
    assert answers == [{"kind": "X"}]
