"""The REST API on a port, with its listeners, its server, and its shutdown.

Owns: the listening sockets while the context is open. Ends: after `HttpFace.shut_down`, when `run` returns.
Raises: AccessError if the address cannot be used.
"""

import contextlib
import resource
from collections.abc import AsyncIterator, Collection, Hashable
from typing import Any, Protocol

import attrs
import trio

from kschedd.access.addresses import Address
from kschedd.access.audit_log import AuditLog
from kschedd.access.credentials import Credentials
from kschedd.access.listening import TlsListener, open_listeners, raise_file_limit
from kschedd.apiserver.access import Access
from kschedd.apiserver.catalogue.version import OF_DEFAULT, ServedVersion
from kschedd.apiserver.codec.encoding import Encoder
from kschedd.apiserver.face import ApiFace
from kschedd.apiserver.services import FaceServices
from kschedd.apiserver.tokens import signing_key
from kschedd.controllers.parts import Part
from kschedd.http.protocol import HttpRequest
from kschedd.http.server import HttpLimits, HttpResponse, HttpServer, Peer
from kschedd.limits import BOUNDS
from kschedd.service.cluster import ClusterBackend
from kschedd.service.workers import FairShares
from kschedd.store.creating.service_addresses import SERVICE_RANGE

MOST_CONNECTIONS = BOUNDS["http-connections"].default


class Pages(Protocol):
    """A handler of other requests on the same port."""

    def serves(self, request: HttpRequest) -> bool: ...

    def admits(self, request: HttpRequest, peer: Peer) -> Hashable | None: ...

    async def __call__(self, request: HttpRequest, peer: Peer) -> HttpResponse: ...


@attrs.define(eq=False)
class _Routes:
    """The handler of the port: the REST API, and pages if there are any."""

    api: ApiFace
    pages: Pages | None = None

    async def __call__(self, request: HttpRequest, peer: Peer) -> HttpResponse:
        return await self._handler(request)(request, peer)

    def admits(self, request: HttpRequest, peer: Peer) -> Hashable | None:
        return self._handler(request).admits(request, peer)

    def _handler(self, request: HttpRequest) -> "ApiFace | Pages":
        return self.pages if self.pages is not None and self.pages.serves(request) else self.api


@attrs.frozen(eq=False)
class HttpFace:
    """A listening REST API; `url` is its address."""

    url: str
    access: Access
    _server: HttpServer
    _routes: _Routes
    _listeners: list[Any]

    def add_pages(self, pages: Pages) -> None:
        """Serve these pages as well; call this method before `run`."""
        self._routes.pages = pages

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until `shut_down`. Report "started" when connections are accepted."""
        async with trio.open_nursery() as nursery:
            await self._routes.api.register()
            await nursery.start(self._routes.api.follow)
            await nursery.start(self._server.serve, self._listeners)
            task_status.started()
            await self._server.ended.wait()
            nursery.cancel_scope.cancel()

    def used(self) -> tuple[int, int]:
        """Return the current and the highest number of connections."""
        return self._server.used()

    def unauthenticated(self) -> tuple[int, int]:
        """Return the current and the highest number of connections that are not admitted yet."""
        return self._server.unauthenticated()

    def encoded(self) -> tuple[int, int]:
        """Return the current and the highest number of bytes in the cache of encoded objects."""
        return self._routes.api.services.encoder.used()

    def shut_down(self, grace_s: float) -> None:
        self._server.shut_down(grace_s)


@contextlib.asynccontextmanager
async def http_face(
    credentials: Credentials,
    cluster: ClusterBackend,
    version: str,
    most_body: int,
    service_range: str = SERVICE_RANGE,
    without: Collection[Part] = (),
    served: ServedVersion = OF_DEFAULT,
    audit: AuditLog | None = None,
    most_connections: int = MOST_CONNECTIONS,
    most_encoded: int = BOUNDS["encoded-objects"].default,
    most_unauthenticated: int = BOUNDS["http-unauthenticated"].default,
    shares: FairShares | None = None,
    key: bytes | None = None,
) -> AsyncIterator[HttpFace]:
    """Serve the REST API of this cluster while the context is open. Raises AccessError."""
    raise_file_limit()
    address, secured = credentials.settings.address, credentials.tls is not None
    tcp = await open_listeners(credentials.settings)
    async with contextlib.AsyncExitStack() as opened:
        for listener in tcp:
            await opened.enter_async_context(listener)
        port = tcp[0].socket.getsockname()[1]
        url = f"{'https' if secured else 'http'}://{Address(address.host, port)}"
        listeners = [TlsListener(each, credentials) for each in tcp] if secured else list(tcp)
        access = Access(credentials)
        face = ApiFace(
            FaceServices(
                cluster,
                served,
                "kubelets" not in without,
                shares or FairShares(),
                encoder=Encoder(most_encoded),
                key=signing_key(None) if key is None else key,
            ),
            access,
            version,
            service_range,
            audit,
        )
        routes = _Routes(face)
        server = HttpServer(
            routes,
            explain=face.explain,
            admits=routes.admits if access.asks_for_credentials else None,
            limits=HttpLimits(_possible(most_connections), most_body, unauthenticated=most_unauthenticated),
        )
        yield HttpFace(url, access, server, routes, listeners)


def _possible(most: int) -> int:
    """Return the number of connections that the file descriptors allow, less those for the daemon's other work."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if soft == resource.RLIM_INFINITY else max(16, min(most, soft - 256))
