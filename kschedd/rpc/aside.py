"""Large requests, executed off the event loop: on a fork of the store, in a thread of the worker pool.

A write is large if its message or the object it changes is large. It then runs on a fork; the store adopts the changes
(`kschedd.store.trial`), or the request is retried if a concurrent write may have changed its outcome. An exception on
the fork is raised to the caller: it is correct for the store's state at the time of the fork.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from kschedd.api.objects import Object, Raw
from kschedd.api.weight import is_large
from kschedd.rpc.cluster import ClusterBackend
from kschedd.rpc.errors import RpcError
from kschedd.rpc.table import Call
from kschedd.rpc.workers import GivenUp
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.json_patch import copies
from kschedd.store.managing import MANAGED, without_entries
from kschedd.store.trial import Changes, Key

T = TypeVar("T")

_COPIES: Final = 1  # of a JSON patch that is applied at once; each may double the object
_TRIES: Final = 8


async def change(
    cluster: ClusterBackend,
    call: Call,
    request: Callable[[ClusterWriter], T],
    about: Callable[[ClusterWriter], Object | None] | None = None,
    given: Any = None,
) -> T:
    """Run `request` on the store, or on a fork if it may take long.

    It may if the message, the value `given` in it, or the object it is `about`, is large. The value is looked at as
    well as the message: aliases of YAML and copies of a JSON patch make many values of few bytes.
    """
    if not (call.size or is_large(given) or copies(given) > _COPIES):

        def at_once(store: ClusterWriter) -> tuple[T] | None:
            if about is not None and (found := about(store)) is not None and is_large(found.raw):
                return None
            return (request(store),)

        done = await cluster.store.do(at_once)
        if done is not None:
            return done[0]
    return await aside(cluster, call, lambda store, _: request(store))


def _answer(result: Any) -> Sequence[dict[str, Any]]:
    return [result] if isinstance(result, dict) else []


async def aside(
    cluster: ClusterBackend,
    call: Call,
    request: Callable[[ClusterWriter, GivenUp], T],
    told: Callable[[T], Iterable[dict[str, Any]]] = _answer,
) -> T:
    """Run the request on a fork and adopt its changes.

    `told`: the maps of the result that tell an object as `object`; they get the adopted one.
    """
    for _ in range(_TRIES):
        fork = await cluster.store.do_in_steps(lambda store: store.forking())
        since = fork.version

        def try_it(given_up: GivenUp, fork: ClusterWriter = fork, since: int = since) -> tuple[T, Any]:
            result = request(fork, given_up)
            return result, fork.changes_since(since)

        result, changes = await call.services.workers.run(call.client, try_it)
        if not changes.objects:
            return result

        def adopt(
            store: ClusterWriter, changes: Changes = changes
        ) -> Generator[None, None, Mapping[Key, Object] | None]:
            return store.adopt(changes)

        adopted = await cluster.store.do_in_steps(adopt)
        if adopted is not None:
            here = {_identity(new.raw): adopted[key] for key, (_, new) in changes.objects.items() if new is not None}
            for each in told(result):
                if "object" in each:
                    each["object"] = _adopted(each["object"], here)
            return result
    raise RpcError("conflict", f"{call.method}: what it depends on was changed {_TRIES} times meanwhile; try again")


def _identity(raw: Raw) -> tuple[Any, ...]:
    """What tells an object of a fork from all others, and from what else bears its uid, such as its Scale."""
    return raw.get("apiVersion"), raw.get("kind"), (raw.get("metadata") or {}).get("uid")


def _adopted(shown: Raw, here: Mapping[tuple[Any, ...], Object]) -> Raw:
    """An object of the fork as it is in the store: its uid and resourceVersion may be others."""
    found = here.get(_identity(shown))
    if found is None:
        return shown
    return found.raw if MANAGED in shown["metadata"] else without_entries(found.raw)


async def beside(cluster: ClusterBackend, call: Call, request: Callable[[ClusterWriter, GivenUp], T]) -> T:
    """Run the request on a fork and discard the fork's changes."""
    fork = await cluster.store.do_in_steps(lambda store: store.forking())
    return await call.services.workers.run(call.client, lambda given_up: request(fork, given_up))
