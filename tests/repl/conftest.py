"""A daemon with fixed answers behind a real socket, in a thread, since the REPL runs a Trio loop itself."""

import io
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest
import structlog
import trio

from kschedd.rpc.sessions.built_in import method_table
from kschedd.rpc.sessions.listener import unix_listener
from kschedd.rpc.sessions.server import Server
from tests.verbs.fake_daemon import FakeDaemon, methods_of, node, pod


@attrs.define(eq=False)
class Served:
    daemon: FakeDaemon
    path: str
    stop: Callable[[], None]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    fake = FakeDaemon(node("node-a"), node("node-b", "zone-b"), pod("web-0", "node-a"), pod("web-1"))
    path = tmp_path / "s"
    started: queue.Queue[Callable[[], None]] = queue.Queue()
    thread = threading.Thread(target=_serve, args=(fake, path, started))
    thread.start()
    stop = started.get(timeout=180)
    yield Served(fake, str(path), stop)
    stop()
    thread.join(180)
    assert not thread.is_alive()


def _serve(fake: FakeDaemon, path: Path, started: "queue.Queue[Callable[[], None]]") -> None:
    async def main() -> None:
        server = Server(method_table(methods_of(fake)), log=structlog.wrap_logger(structlog.PrintLogger(io.StringIO())))
        token = trio.lowlevel.current_trio_token()

        def stop() -> None:
            try:
                token.run_sync_soon(server.shut_down, 0.1)
            except trio.RunFinishedError:
                pass  # stopped before

        async with unix_listener(path) as listener, trio.open_nursery() as nursery:
            await nursery.start(server.serve, [listener])
            started.put(stop)

    trio.run(main)
