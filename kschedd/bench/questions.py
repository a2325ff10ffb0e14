"""Socket requests during a benchmark, which measure the response times of a busy daemon.

One client, on a Unix socket in a temporary folder, sends one request after the other at a fixed rate, like a user who
watches the scheduler. Server and client run in the measured process, so their processor time is included.
"""

import itertools
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import trio

from kschedd.actors.cluster import LiveCluster
from kschedd.bench.own_time import Clock
from kschedd.methods import daemon_methods
from kschedd.rpc.client import Client
from kschedd.rpc.sessions.built_in import method_table
from kschedd.rpc.sessions.listener import unix_listener
from kschedd.rpc.sessions.server import Server
from kschedd.service.daemon.process import DaemonState

_EVERY_S: Final = 0.01
ASKED: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("rpc.ping", {}),
    ("daemon.info", {}),
    ("objects.get", {"kind": "Node", "name": "node-0"}),
    ("queue.list", {"limit": 20}),
    ("scheduler.status", {}),
    ("scheduler.decisions", {"limit": 20}),
)


@attrs.define(eq=False)
class Questions:
    """A client that sends requests. `latencies_s` contains the response time of each request in seconds."""

    _client: Client
    _clock: Clock
    latencies_s: list[float] = attrs.field(factory=list)
    any_answered: trio.Event = attrs.field(factory=trio.Event)

    async def ask(self) -> None:
        """Send requests forever, one after the other, with a pause after each answer."""
        for method, params in itertools.cycle(ASKED):
            began = self._clock()
            await self._client.call(method, **params)
            self.latencies_s.append(self._clock() - began)
            self.any_answered.set()
            await trio.sleep(_EVERY_S)


@asynccontextmanager
async def questions_to(cluster: LiveCluster, clock: Clock) -> AsyncIterator[Questions]:
    """Yield a client of this cluster; the cluster is served while the context is open."""
    with tempfile.TemporaryDirectory(prefix="kschedd-bench-") as folder:
        path = Path(folder) / "k.sock"
        state = DaemonState("bench", str(path), cluster.clock.now())
        server = Server(method_table(daemon_methods(cluster, state)))
        async with unix_listener(path) as listener, trio.open_nursery() as serving:
            await serving.start(server.serve, [listener])
            async with Client.connect(path) as client:
                yield Questions(client, clock)
            serving.cancel_scope.cancel()
