"""Execution of a client's requests: on the store, or for large requests in a thread on a fork of the store.

A write is large if its message, or the object that it changes, is large. A large write runs on a fork, in a thread of
the worker pool. The store then adopts the changes (`kschedd.store.trial`). If a concurrent write may have affected the
result, the request is retried. An exception on the fork is raised to the caller, because it is correct for the state of
the store when the fork was made.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

import attrs

from kschedd.access.users import User
from kschedd.api.objects import Object
from kschedd.api.schemas.weight import is_large
from kschedd.errors import KscheddError
from kschedd.service.cluster import ClusterBackend
from kschedd.service.errors import RpcError
from kschedd.service.operations.serving import serve
from kschedd.service.request import PatchBody, Request, Response
from kschedd.service.table import Call
from kschedd.service.workers import GivenUp, Workers
from kschedd.store.admission_plugins.attributes import UserInfo
from kschedd.store.cluster_api import ClusterReader, ClusterWriter
from kschedd.store.errors import NotFound
from kschedd.store.patches.json_patch import copies
from kschedd.store.trial import Changes, Key, key_of
from kschedd.values import in_parts

T = TypeVar("T")

# maximum number of copies in a JSON patch that runs directly on the store; each copy may double the object
_COPIES: Final = 1
_TRIES: Final = 8
_AT_ONCE: Final = 100  # maximum number of objects of a collection that one request to the store writes


@runtime_checkable
class ShowsObjects(Protocol):
    """A result that contains objects."""

    def adopted(self, here: Callable[[Object], Object]) -> Any:
        """Return an equal result with `here(object)` in place of each object."""


@attrs.frozen(eq=False)
class Executor:
    """Executes the requests of one client.

    `what` is the request's name in messages; `large` is true if its message is large.
    """

    cluster: ClusterBackend
    workers: Workers
    client: str
    what: str
    user: User
    large: bool = False
    annotations: dict[str, str] = attrs.field(factory=dict)  # annotations of the audit event; each request adds its own

    @classmethod
    def of(cls, cluster: ClusterBackend, call: Call) -> "Executor":
        services = call.services
        return cls(
            cluster, services.workers, call.client, call.method, services.caller.user, bool(call.size), call.annotations
        )

    @property
    def user_info(self) -> UserInfo:
        user = self.user
        return UserInfo(user.name, user.groups, user.uid, user.extra, user.judged)

    def requested(self, store: ClusterWriter, request: Request) -> Response:
        """Execute a request for this client, inside a function that already runs on the store."""
        try:
            response = serve(store, attrs.evolve(request, user=self.user_info))
        except KscheddError as refusal:
            self._annotate(refusal.audit_annotations)
            raise
        self._annotate(response.audit_annotations)
        return response

    def _annotate(self, annotations: Mapping[str, str]) -> None:
        """Add the annotations that the execution of a request has produced. The first value of a key stays."""
        for name, value in annotations.items():
            self.annotations.setdefault(name, value)

    async def serve(self, request: Request) -> Response:
        """Execute a request for this client."""
        # these requests are fast even for a large object
        if request.body is None or request.subresource == "binding":
            return await self.cluster.store.do(lambda store: self.requested(store, request))
        given = request.body.value if isinstance(request.body, PatchBody) else request.body
        return await self.change(
            lambda store: self.requested(store, request), lambda store: _object_of(store, request), given
        )

    async def edit(
        self,
        find: Callable[[ClusterReader], Object],
        make: Callable[[ClusterReader, Object], Request],
        given: Any = None,
    ) -> Response:
        """Execute the request that `make` creates for the object that `find` returns.

        `given` is a value from the request's message.
        """
        return await self.change(lambda store: self.requested(store, make(store, find(store))), find, given)

    async def serve_each(self, request: Request, objects: Sequence[Object]) -> list[Response]:
        """Execute a request for each of these objects in several parts, with other requests in between.

        Deleted objects are skipped, unless the request is for a single object.
        """
        served: list[Response] = []
        for some in in_parts(objects, _AT_ONCE):
            served += await self.cluster.store.do(partial(self._each, request=request, some=some))
        return served

    def _each(self, store: ClusterWriter, request: Request, some: Sequence[Object]) -> list[Response]:
        served = []
        for obj in some:
            one = attrs.evolve(request, kind=obj.kind, namespace=obj.namespace, name=obj.name)
            try:
                served.append(self.requested(store, one))
            except NotFound:
                if request.name:
                    raise
        return served

    async def change(
        self,
        request: Callable[[ClusterWriter], T],
        about: Callable[[ClusterWriter], Object | None] | None = None,
        given: Any = None,
    ) -> T:
        """Run `request` on the store, or on a fork if it may take long.

        A request may take long if its message, the value `given`, or the object that it changes is large. The value's
        size is checked separately, because aliases in YAML and copies in a JSON patch create many values from few
        bytes.
        """
        if not (self.large or is_large(given) or copies(given) > _COPIES):

            def at_once(store: ClusterWriter) -> tuple[T] | None:
                if about is not None and (found := about(store)) is not None and is_large(found.raw):
                    return None
                return (request(store),)

            done = await self.cluster.store.do(at_once)
            if done is not None:
                return done[0]
        return await self.aside(lambda store, _: request(store))

    async def aside(self, request: Callable[[ClusterWriter, GivenUp], T]) -> T:
        """Run the request on a fork and adopt its changes; the result contains the adopted objects."""
        store = self.cluster.store
        for _ in range(_TRIES):
            fork = await store.do_in_steps(lambda store: store.forking())
            since = fork.version

            def try_it(given_up: GivenUp, fork: ClusterWriter = fork, since: int = since) -> tuple[T, Changes]:
                result = request(fork, given_up)
                return result, fork.changes_since(since)

            result, changes = await self.workers.run(self.client, try_it)
            if not changes.objects:
                return result

            def adopt(
                store: ClusterWriter, changes: Changes = changes
            ) -> Generator[None, None, Mapping[Key, Object] | None]:
                return store.adopt(changes)

            adopted = await store.do_in_steps(adopt)
            if adopted is not None:
                return _shown(result, adopted)
        raise RpcError("conflict", f"{self.what}: what it depends on was changed {_TRIES} times meanwhile; try again")

    async def beside(self, request: Callable[[ClusterWriter, GivenUp], T]) -> T:
        """Run the request on a fork and discard the fork's changes."""
        fork = await self.cluster.store.do_in_steps(lambda store: store.forking())
        return await self.workers.run(self.client, lambda given_up: request(fork, given_up))


def _shown(result: T, adopted: Mapping[Key, Object]) -> T:
    """Return a fork's result with the adopted objects of the store in place of the fork's objects."""
    if isinstance(result, ShowsObjects):
        shown: T = result.adopted(lambda obj: adopted.get(key_of(obj), obj))
        return shown
    return result


def _object_of(store: ClusterWriter, request: Request) -> Object | None:
    """Return the object that a request changes; None if it does not exist."""
    return store.find(request.kind, request.namespace, request.name) if request.name else None
