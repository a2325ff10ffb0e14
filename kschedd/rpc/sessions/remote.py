"""Admission over the network: TCP clients authenticate with a token or a client certificate before a session begins.

If there is a certificate, TLS is negotiated first. The client then sends one message, `rpc.authenticate` with a token,
and receives an answer. The whole admission is limited to a few seconds and a few kilobytes. Connections that are not
yet authenticated have their own limit, as in the HTTP server. Unauthenticated connections occupy no client slots, and
their requests are not executed.

Owns: the connections that are not authenticated yet. Ends: never by itself.
Fails: a peer's fault ends its connection.
"""

import contextlib
from typing import Any, Final

import attrs
import structlog
import trio

from kschedd.access.addresses import SCHEME, Address
from kschedd.access.credentials import Credentials, certified
from kschedd.access.listening import in_tls
from kschedd.access.users import Caller, User
from kschedd.http.unauthenticated import Unauthenticated, address_of
from kschedd.rpc.encoding import encode_error, encode_response
from kschedd.rpc.message_checks import Limits
from kschedd.rpc.protocol import AUTHENTICATE, NO_MSGID, Event, RpcRequest, first_message
from kschedd.rpc.sessions.built_in import who_is
from kschedd.service.errors import RpcError

_MESSAGE: Final = 16 << 10
_REPORTED_EVERY_S: Final = 10.0
_LAST_WORDS_S: Final = 1.0


@attrs.frozen
class AdmissionLimits:
    """The limits on connections that are not yet authenticated: number, time, and bytes of the message."""

    pending: int = 64
    seconds: float = 10.0
    message: int = _MESSAGE


@attrs.frozen(eq=False)
class Admitted:
    """A connection with an authenticated caller.

    `early` contains bytes that arrived after the authentication message.
    """

    stream: trio.abc.Stream
    caller: Caller
    early: bytes = b""


@attrs.define(eq=False)
class RemoteDoor:
    """The admission of TCP clients. `refused` is the number of rejections since the start."""

    listeners: list[trio.SocketListener]
    credentials: Credentials
    limits: AdmissionLimits = attrs.field(factory=AdmissionLimits)
    log: Any = attrs.field(factory=lambda: structlog.get_logger("kschedd.rpc"))
    refused: int = 0
    _pending: Unauthenticated[trio.CancelScope] = attrs.field(init=False)
    _reported_at: float = attrs.field(default=-_REPORTED_EVERY_S, init=False)
    _untold: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._pending = Unauthenticated(self.limits.pending)

    @property
    def url(self) -> str:
        port = self.listeners[0].socket.getsockname()[1]
        return f"{SCHEME}{Address(self.credentials.settings.address.host, port)}"

    def used(self) -> tuple[int, int]:
        """Return the current and the highest number of connections that are not yet authenticated."""
        return len(self._pending), self._pending.most_so_far

    async def admit(self, stream: trio.SocketStream) -> Admitted | None:
        """Return the connection of an authenticated caller; None if it was rejected and received an error."""
        address = address_of(stream)
        if not address:
            return None
        scope = trio.CancelScope(deadline=trio.current_time() + self.limits.seconds)
        if (closed := self._pending.add(scope, address)) is not None:
            closed.cancel()
        self.log.debug("rpc.knocked", address=address)
        why = f"authentication timed out after {self.limits.seconds:g} s, or too many connections were unauthenticated"
        try:
            with scope:
                return await self._admitted(stream, address)
        except RpcError as refusal:
            why = refusal.message
        except (trio.BrokenResourceError, trio.ClosedResourceError) as gone:
            why = f"it went, or its TLS failed ({gone.__cause__ or gone})"
        finally:
            self._pending.discard(scope)
        self._refused(address, why)
        return None

    async def _admitted(self, stream: trio.SocketStream, address: str) -> Admitted:
        """Authenticate a connection. Raises RpcError, which the peer has already received."""
        secured: trio.abc.Stream = stream
        if self.credentials.tls is not None:
            tls = in_tls(stream, self.credentials)
            await tls.do_handshake()
            certificate = tls.getpeercert() if self.credentials.settings.client_ca is not None else None
            if (named := certified(certificate)) is not None:
                return Admitted(tls, Caller(self._acting(named), address=address))
            secured = tls
        message, early = await self._message(secured)
        try:
            user = self._user_of(message)
        except RpcError as refusal:
            msgid = message.msgid if isinstance(message, RpcRequest) else NO_MSGID
            with trio.move_on_after(_LAST_WORDS_S), contextlib.suppress(trio.BrokenResourceError):
                await secured.send_all(encode_error(msgid, refusal.code, refusal.message))
            raise
        assert isinstance(message, RpcRequest), "only a request names a user"
        caller = Caller(self._acting(user), address=address)
        await secured.send_all(encode_response(message.msgid, who_is(caller)))
        return Admitted(secured, caller, early)

    def _acting(self, user: User) -> User:
        return user.under_rbac() if self.credentials.settings.rbac else user

    async def _message(self, stream: trio.abc.Stream) -> tuple[Event | None, bytes]:
        """Return the first message (None if the stream ended before it), and the bytes after it."""
        limits = Limits.of_requests(self.limits.message)
        data = b""
        while (found := first_message(data, limits) if data else None) is None:
            more = await stream.receive_some(limits.message + 1 - len(data))
            if not more:
                return None, b""
            data += more
        return found

    def _user_of(self, message: Event | None) -> User:
        """Return the user that the first message authenticates. Raises RpcError."""
        match message:
            case (
                RpcRequest(method=method, params=[str(token)])
                | RpcRequest(method=method, params=[{"token": str(token)}])
            ):
                if method == AUTHENTICATE:
                    user = self.credentials.tokens.user_of(token)
                    if user is not None:
                        return user
                    raise RpcError("unauthenticated", "unknown token")
        raise RpcError("unauthenticated", f"the first message has to be {AUTHENTICATE} with a token")

    def _refused(self, address: str, why: str) -> None:
        """Log a rejection; many rejections share one line every few seconds."""
        self.refused += 1
        self._untold += 1
        now = trio.current_time()
        if now - self._reported_at < _REPORTED_EVERY_S:
            return
        others = self._untold - 1
        self._reported_at, self._untold = now, 0
        self.log.warning("rpc.not_admitted", address=address, why=why, **({"others_before": others} if others else {}))
