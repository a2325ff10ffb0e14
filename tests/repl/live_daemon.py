"""A daemon in a thread of the tests' process, for a REPL in a separate process."""

import io
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import structlog
import trio

from kschedd.actors.clock import REAL, Clock
from kschedd.actors.cluster import LiveCluster
from kschedd.controllers.embedded import embedded_controllers
from kschedd.daemon import cluster_actors
from kschedd.methods import daemon_methods
from kschedd.rpc.sessions.built_in import method_table
from kschedd.rpc.sessions.listener import unix_listener
from kschedd.rpc.sessions.server import Server
from kschedd.service.daemon.process import DaemonState


@attrs.frozen
class LiveDaemon:
    """A running daemon, and functions that wait for it.

    `until_idle` waits until no work is pending at the cluster's current time. `until_running` waits until scheduling
    runs up to the given point.
    """

    socket: str
    until_idle: Callable[[], None]
    until_running: Callable[[str], None]
    stop: Callable[[], None]


@contextmanager
def live_daemon(where: Path, *, speed: float = REAL, start_s: float | None = None) -> Iterator[LiveDaemon]:
    """Run a daemon with the controllers of a cluster, seed 1 and no journal."""
    path = where / "k.sock"
    started: queue.Queue[LiveDaemon] = queue.Queue()
    failures: list[BaseException] = []

    async def main() -> None:
        clock = Clock.started(start_s, speed)
        log = structlog.wrap_logger(structlog.PrintLogger(io.StringIO()))
        async with (
            cluster_actors(seed=1, clock=clock, controllers=embedded_controllers()) as cluster,
            unix_listener(path) as listener,
        ):
            state = DaemonState("1.2.3", str(path), cluster.clock.now())
            server = Server(method_table(daemon_methods(cluster, state)), log=log)
            token = trio.lowlevel.current_trio_token()
            async with trio.open_nursery() as nursery:
                await nursery.start(server.serve, [listener])
                started.put(
                    LiveDaemon(
                        str(path),
                        lambda: trio.from_thread.run(cluster.time.until_idle, trio_token=token),
                        lambda what: trio.from_thread.run(_until_running, cluster, what, trio_token=token),
                        lambda: token.run_sync_soon(nursery.cancel_scope.cancel),
                    )
                )

    def run() -> None:
        try:
            trio.run(main)
        except BaseException as failure:
            failures.append(failure)
            raise

    thread = threading.Thread(target=run)
    thread.start()
    daemon = started.get(timeout=180)
    try:
        yield daemon
    finally:
        daemon.stop()
        thread.join(180)
        assert not thread.is_alive(), "the daemon has not ended"
        assert not failures


async def _until_running(cluster: LiveCluster, what: str) -> None:
    with trio.fail_after(180):
        while True:
            number = cluster.stops.number
            until = await cluster.scheduler.query(lambda driver: driver.debugger.until)
            if until is not None and what in until.what:
                return
            await cluster.stops.wait_past(number)
