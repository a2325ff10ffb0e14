"""`kschedd replay --attach`: serves a replay on a socket like a daemon, and runs the REPL or a script on it.

The replay is served in a thread with a separate event loop, because the REPL also has an event loop. The replay ends
when the REPL ends, or, with --serve, on Ctrl-C or `kschedd stop`.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs
import structlog
import trio

from kschedd.access.addresses import Address, read_address
from kschedd.access.credentials import ListenSettings
from kschedd.access.errors import AccessError
from kschedd.access.listening import open_listeners
from kschedd.apiserver.access import Access
from kschedd.clusters.replayed import ReplayCluster, readable
from kschedd.errors import KscheddError
from kschedd.http.server import HttpServer
from kschedd.methods import daemon_methods
from kschedd.recording.reading import RecordingFile
from kschedd.rpc.paths import default_socket_path
from kschedd.rpc.sessions.built_in import method_table
from kschedd.rpc.sessions.listener import unix_listener
from kschedd.rpc.sessions.server import Server
from kschedd.service.daemon.process import DaemonState
from kschedd.service.workers import FairShares
from kschedd.simulation.replay.run import Replay, StopAt
from kschedd.web.serving import PATH, WebPage


@attrs.frozen(eq=False)
class AttachOptions:
    """`socket` is the path of the socket; None means a temporary path that only the REPL uses.

    With `web`, the replay serves the page in the browser on this address.
    """

    file: Path
    until: str | None
    to: str | None
    socket: str | None
    version: str
    web: str | None = None  # address of the page in the browser


def serve(options: AttachOptions) -> int:
    """Serve the replay until it is stopped. Raises AccessError for an address that is not on this machine."""
    web = None if options.web is None else read_address(options.web, "--web")
    if web is not None and not web.loopback:
        raise AccessError(f"{web}: a replay serves the page on loopback only", "--web")
    with _prepared(options) as cluster:
        trio.run(serve_replay, cluster, options.version, Path(options.socket or default_socket_path()), web)
    return 0


def attach(options: AttachOptions, commands: Sequence[str], files: Sequence[str]) -> int:
    """Run the REPL or a script on the replay. Returns an exit status."""
    from kschedd_repl.app import run_repl

    with _prepared(options) as cluster, TemporaryDirectory(prefix="kschedd-replay-") as folder:
        path = Path(options.socket or Path(folder) / "replay.sock")
        serving = _Serving()
        thread = threading.Thread(target=serving.run, args=(cluster, options.version, path), name="replay", daemon=True)
        thread.start()
        serving.ready.wait()
        if serving.failure is not None:
            raise serving.failure
        try:
            return run_repl(str(path), commands=commands, files=files, farewell="The recording stays as it is.")
        finally:
            serving.stop()
            thread.join()


@contextmanager
def _prepared(options: AttachOptions) -> Iterator[ReplayCluster]:
    """Yield the replay, stopped at the requested moment."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("error"))
    with RecordingFile.open(options.file) as recording:
        stop = StopAt.parse(options.until, options.to, recording.header.start_s)
        cluster = ReplayCluster(recording)
        if stop != StopAt():
            Replay(cluster.player).run(stop)
        cluster.player.driver.debugger.pause(cluster.player.now_s)
        yield cluster


class _Serving:
    """A thread with an event loop that serves a replay."""

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.failure: KscheddError | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._daemon: DaemonState | None = None

    def run(self, cluster: ReplayCluster, version: str, path: Path) -> None:
        try:
            trio.run(self._serve, cluster, version, path)
        except* KscheddError as faults:  # the waiting task raises these exceptions again
            self.failure = _first(faults)
        finally:
            self.ready.set()

    async def _serve(self, cluster: ReplayCluster, version: str, path: Path) -> None:
        self._token = trio.lowlevel.current_trio_token()
        async with trio.open_nursery() as nursery:
            self._daemon = await nursery.start(serve_replay, cluster, version, path)
            self.ready.set()

    def stop(self) -> None:
        if self._token is not None and self._daemon is not None:
            try:
                self._token.run_sync_soon(self._daemon.stop.set)
            except trio.RunFinishedError:
                return  # a client stopped the replay over the socket


def _first(faults: "BaseExceptionGroup[KscheddError]") -> KscheddError:
    inner = faults.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


async def serve_replay(
    cluster: ReplayCluster,
    version: str,
    path: Path,
    web: Address | None = None,
    *,
    task_status: "trio.TaskStatus[DaemonState]" = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve the replay until a client stops it over the socket, or the owner of the reported DaemonState ends it.

    With `web`, the page in the browser is served on this address, and its controls play the recording.
    """
    daemon = DaemonState(version, str(path), cluster.clock.now(), machine_s=trio.current_time)
    methods = method_table(readable(daemon_methods(cluster, daemon)))
    identity = {"server": "kschedd", "version": version, "pid": os.getpid(), "epoch": cluster.epoch}
    async with unix_listener(path) as listener, trio.open_nursery() as nursery:
        server = Server(methods, identity=identity)
        await nursery.start(server.serve, [listener])
        if web is not None:
            settings = ListenSettings(web)
            listeners = await open_listeners(settings)
            page = WebPage(methods, identity, Access(settings.load()), FairShares(), None, None, controls=True)
            await nursery.start(HttpServer(page).serve, listeners)
            port = listeners[0].socket.getsockname()[1]
            print(f"http://{attrs.evolve(web, port=port)}{PATH}", flush=True)
        task_status.started(daemon)
        await daemon.stop.wait()
        server.shut_down(daemon.grace_s)
        while server.clients:  # noqa: ASYNC110 - sessions end by themselves, within the grace period
            await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
