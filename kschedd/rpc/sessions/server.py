"""The daemon's side of the socket: accepts clients from listeners and runs a session for each.

Uses: the sessions (session.py), in which calls run the handlers of the method table. The server does not depend on the
methods or on the kind of listener. Owns: the set of sessions. Ends: after `shut_down` when every session has ended, or
by cancellation, which disconnects all clients.
"""

from __future__ import annotations

import itertools
import pwd
import socket
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import attrs
import structlog
import trio

from kschedd.access.users import Caller, User
from kschedd.rpc.encoding import encode_error
from kschedd.rpc.protocol import NO_MSGID
from kschedd.rpc.sessions.remote import RemoteDoor
from kschedd.rpc.sessions.session import ClientSession, SessionLimits, Shared
from kschedd.service.daemon.answers import ClientAnswer
from kschedd.service.table import Method

Listener = trio.abc.Listener[Any]


@attrs.frozen
class Places:
    """The limits on the number of clients.

    When all slots are occupied, the client that has been idle longest is disconnected for a new client. If no client is
    idle, the new client gets a reserved slot, in which streams are not allowed.
    """

    clients: int = 1024
    reserve: int = 16
    of_one_process: int = 256
    remote: int = 512  # maximum number of TCP clients, so that clients of the Unix socket always find a free slot
    # seconds without data after which a client without streams and requests is idle
    idle_s: float = 1.0


class Server:
    """The server of a method table (see `built_in.method_table`) for the clients of the listeners.

    `identity` is `rpc.ping`'s result without `pong`.
    """

    def __init__(
        self,
        methods: Mapping[str, Method],
        *,
        identity: Mapping[str, Any] | None = None,
        terms: SessionLimits | None = None,
        places: Places | None = None,
        shared: Shared | None = None,
        log: structlog.typing.FilteringBoundLogger | None = None,
    ) -> None:
        assert "rpc.methods" in methods, "make the table with method_table: it adds the built-in methods"
        self.methods = methods
        self.identity = dict(identity or {})
        self._terms = terms or SessionLimits()
        self._places = places or Places()
        self._shared = shared or Shared()
        self._log = log or structlog.get_logger("kschedd.rpc")
        self._sessions: dict[ClientSession, Caller] = {}
        self._numbers = itertools.count(1)
        self._of_process: Counter[int] = Counter()  # by process: number of its sessions
        self._remote = 0  # number of sessions over TCP
        self._most: Counter[str] = Counter()
        self._grace_s = 0.0
        self._stop = trio.Event()

    @property
    def clients(self) -> int:
        """The number of connected clients."""
        return len(self._sessions)

    def usage(self) -> dict[str, Callable[[], tuple[int, int]]]:
        """Return the current and the highest usage of each limit, by the name of the limit."""
        shared, there, most = self._shared, self._sessions, self._most

        def of_one(use: Callable[[ClientSession], int]) -> int:
            return max(map(use, there), default=0)

        over = self._places.clients
        return {
            "clients": lambda: (min(over, len(there)), min(over, most["clients"])),
            "clients-in-reserve": lambda: (max(0, len(there) - over), max(0, most["clients"] - over)),
            "clients-of-one-process": lambda: (max(self._of_process.values(), default=0), most["process"]),
            "clients-on-tcp": lambda: (self._remote, most["tcp"]),
            "requests": lambda: (of_one(lambda session: session.running), shared.most_requests),
            "streams": lambda: (of_one(lambda session: session.streaming), shared.most_streams),
            "unread": lambda: (of_one(lambda session: session.unread), shared.total.most_of_one),
            "unread-of-all": lambda: (shared.total.held, shared.total.most_held),
            "unfinished-of-all": lambda: (shared.unfinished.held, shared.unfinished.most_held),
        }

    def _enter(self, session: ClientSession, caller: Caller) -> None:
        self._sessions[session] = caller
        if caller.process:
            self._of_process[caller.process] += 1
        self._remote += bool(caller.address)
        now = {"clients": len(self._sessions), "process": self._of_process[caller.process], "tcp": self._remote}
        for what, count in now.items():
            self._most[what] = max(self._most[what], count)

    def _leave(self, session: ClientSession) -> None:
        caller = self._sessions.pop(session)
        self._remote -= bool(caller.address)
        self._of_process[caller.process] -= 1
        if self._of_process[caller.process] <= 0:
            del self._of_process[caller.process]

    def describe_clients(self) -> list[ClientAnswer]:
        return [session.describe() for session in self._sessions]

    async def serve(
        self,
        listeners: Sequence[Listener],
        remote: RemoteDoor | None = None,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve until `shut_down`; close the listeners. Reports `started` when it accepts connections."""
        async with trio.open_nursery() as clients:
            async with trio.open_nursery() as accepting:
                accepting.start_soon(self._accept, listeners, clients)
                if remote is not None:
                    accepting.start_soon(self._accept_remote, remote, clients)
                task_status.started()
                await self._stop.wait()
                accepting.cancel_scope.cancel()
            for session in list(self._sessions):
                session.shut_down(self._grace_s)

    def shut_down(self, grace_s: float = 2.0) -> None:
        """Accept no more clients and no more requests; running requests may end within `grace_s`."""
        self._grace_s = grace_s
        self._stop.set()

    async def _accept(self, listeners: Sequence[Listener], clients: trio.Nursery) -> None:
        await trio.serve_listeners(self._serve_client, list(listeners), handler_nursery=clients)

    async def _accept_remote(self, door: RemoteDoor, clients: trio.Nursery) -> None:
        async def serve(stream: trio.SocketStream) -> None:
            admitted = await door.admit(stream)
            if admitted is not None:
                await self._serve_caller(admitted.stream, admitted.caller, admitted.early)

        await trio.serve_listeners(serve, door.listeners, handler_nursery=clients)

    async def _serve_client(self, stream: trio.abc.Stream) -> None:
        await self._serve_caller(stream, peer_of(stream))

    async def _serve_caller(self, stream: trio.abc.Stream, caller: Caller, early: bytes = b"") -> None:
        shown = caller.shown
        name = f"{next(self._numbers)}{f' ({shown})' if shown else ''}"
        if self._stop.is_set():
            await self._turn_away(stream, name, "shutting_down", "the daemon is shutting down")
            return
        refusal, terms = self._place_for(caller)
        if refusal:
            await self._turn_away(stream, name, "too_many", refusal)
            return
        session = ClientSession(
            stream, name, self.methods, self.identity, terms, self._shared, self._log, caller, early
        )
        self._enter(session, caller)
        self._log.debug("rpc.client_came", client=name)
        try:
            await session.run()
        finally:
            self._leave(session)
            self._log.debug("rpc.client_ended", client=name)

    def _place_for(self, caller: Caller) -> tuple[str, SessionLimits]:
        """Return why another client of this caller must be rejected ("" if it is accepted), and the client's limits."""
        places, process = self._places, caller.process
        if (
            len(self._sessions) < places.clients
            and self._of_process[process] < places.of_one_process
            and not (caller.address and self._remote >= places.remote)
        ):
            return "", self._terms
        there = [session for session in self._sessions if not session.ending]
        if process:
            own = [session for session in there if self._sessions[session].process == process]
            if len(own) >= places.of_one_process:
                why = f"process {process} has {len(own)} connections, the most one may have"
                return ("" if self._end_idle(own, why) else why), self._terms
        if caller.address:
            remote = [session for session in there if self._sessions[session].address]
            if len(remote) >= places.remote:
                why = f"{len(remote)} clients are connected by TCP, the most there may be"
                return ("" if self._end_idle(remote, why) else why), self._terms
        if len(there) < places.clients:
            return "", self._terms
        why = f"{len(there)} clients are connected, the most there may be"
        if self._end_idle(there, why):
            return "", self._terms
        if len(there) < places.clients + places.reserve:
            return "", attrs.evolve(self._terms, streams=0)
        return why, self._terms

    def _end_idle(self, among: Sequence[ClientSession], why: str) -> bool:
        """End the session that has been idle longest; return False if none is idle."""
        idle = [(session.idle_s, session) for session in among if session.idle_s is not None]
        idle_s, longest = max(idle, key=lambda entry: entry[0], default=(-1.0, None))
        if longest is None or idle_s < self._places.idle_s:
            return False
        longest.end_idle(
            f"{why}, and this one was idle for {idle_s:.0f} s: connect again when there is something to do"
        )
        return True

    async def _turn_away(self, stream: trio.abc.Stream, name: str, code: str, why: str) -> None:
        self._log.warning("rpc.client_turned_away", client=name, why=why)
        with trio.move_on_after(1):
            try:
                await stream.send_all(encode_error(NO_MSGID, code, why))
            except trio.BrokenResourceError:
                pass


def peer_of(stream: trio.abc.Stream) -> Caller:
    """Return the caller at the other end of a Unix socket, from the operating system."""
    if not isinstance(stream, trio.SocketStream) or stream.socket.family != socket.AF_UNIX:
        return Caller()
    if not hasattr(socket, "SO_PEERCRED"):
        return Caller()
    pid, uid, _gid = struct.unpack("3i", stream.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return Caller(User(_login_name(uid), uid=str(uid)), pid, uid)


@cache
def _login_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
