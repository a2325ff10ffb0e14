"""The daemon's end of the socket: takes clients from listeners and gives each a session.

Talks to: the sessions (session.py), whose calls run the handlers of the method table. Knows nothing of what
the methods do, nor of what kind of listener the clients come through. Owns: the set of sessions. Ends:
after `shut_down`, when every session has ended; or by cancellation, which cuts everybody off.
"""

from __future__ import annotations

import itertools
import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
import trio

from kschedd.rpc.protocol import NO_MSGID, encode_error
from kschedd.rpc.session import Session, Terms
from kschedd.rpc.table import Method

Listener = trio.abc.Listener[Any]


class Server:
    """Serves a method table (see `table.method_table`) to whoever comes through the listeners.

    `identity` is what `rpc.ping` tells of this daemon, besides `pong`.
    """

    def __init__(
        self,
        methods: Mapping[str, Method],
        *,
        identity: Mapping[str, Any] | None = None,
        terms: Terms | None = None,
        max_clients: int = 128,
        log: structlog.typing.FilteringBoundLogger | None = None,
    ) -> None:
        assert "rpc.methods" in methods, "make the table with method_table: it adds the built-in methods"
        self._methods = methods
        self._identity = dict(identity or {})
        self._terms = terms or Terms()
        self._max_clients = max_clients
        self._log = log or structlog.get_logger("kschedd.rpc")
        self._sessions: set[Session] = set()
        self._numbers = itertools.count(1)
        self._grace_s = 0.0
        self._stop = trio.Event()

    @property
    def clients(self) -> int:
        """How many are connected."""
        return len(self._sessions)

    async def serve(
        self, listeners: Sequence[Listener], *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serves until `shut_down`; closes the listeners. Reports started once it accepts."""
        async with trio.open_nursery() as clients:
            async with trio.open_nursery() as accepting:
                accepting.start_soon(self._accept, listeners, clients)
                task_status.started()
                await self._stop.wait()
                accepting.cancel_scope.cancel()
            for session in list(self._sessions):
                session.shut_down(self._grace_s)

    def shut_down(self, grace_s: float = 2.0) -> None:
        """Takes no more clients and no more requests; running ones have `grace_s` to end."""
        self._grace_s = grace_s
        self._stop.set()

    async def _accept(self, listeners: Sequence[Listener], clients: trio.Nursery) -> None:
        await trio.serve_listeners(self._serve_client, list(listeners), handler_nursery=clients)

    async def _serve_client(self, stream: trio.abc.Stream) -> None:
        name = f"{next(self._numbers)}{_who(stream)}"
        if self._stop.is_set() or len(self._sessions) >= self._max_clients:
            await self._turn_away(stream, name)
            return
        session = Session(stream, name, self._methods, self._identity, self._terms, self._log)
        self._sessions.add(session)
        self._log.debug("rpc.client_came", client=name)
        try:
            await session.run()
        finally:
            self._sessions.discard(session)
            self._log.debug("rpc.client_ended", client=name)

    async def _turn_away(self, stream: trio.abc.Stream, name: str) -> None:
        if self._stop.is_set():
            code, why = "shutting_down", "the daemon is ending"
        else:
            code, why = "too_many", f"{self._max_clients} clients are connected, the most there may be"
        self._log.warning("rpc.client_turned_away", client=name, why=why)
        with trio.move_on_after(1):
            try:
                await stream.send_all(encode_error(NO_MSGID, code, why))
            except trio.BrokenResourceError:
                pass


def _who(stream: trio.abc.Stream) -> str:
    """ " (pid 4711, uid 1000)" where the system says who is at the other end."""
    if not isinstance(stream, trio.SocketStream) or stream.socket.family != socket.AF_UNIX:
        return ""
    if not hasattr(socket, "SO_PEERCRED"):
        return ""
    pid, uid, _gid = struct.unpack("3i", stream.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return f" (pid {pid}, uid {uid})"
