"""Requests that would hold up others, carried out beside them: on a fork of the store, in a thread of the pool.

A write is large when its message was, or the object that it is about is. Then it runs on a fork; what came of it is
taken over by the store (`kschedd.store.trial`), or it is tried again where somebody else's write may have made a
difference. What a request raises on the fork it raises here: so it stood at that moment.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from kschedd.api.objects import Object
from kschedd.rpc.cluster import Cluster
from kschedd.rpc.errors import RpcError
from kschedd.rpc.table import Call
from kschedd.rpc.workers import GivenUp
from kschedd.store.cluster_api import ClusterWriter

T = TypeVar("T")

LARGE: Final = 2_000
"""Values in an object from which on it is large: it takes several milliseconds to look through."""
_TRIES: Final = 8
_TEXT: Final = 1 << 9  # characters of text that count as one value more


async def change(
    cluster: Cluster,
    call: Call,
    request: Callable[[ClusterWriter], T],
    about: Callable[[ClusterWriter], Object | None] | None = None,
) -> T:
    """What `request` returns, run over the store; aside if the message, or the object it is `about`, is large."""
    if not call.size:

        def at_once(store: ClusterWriter) -> tuple[bool, T | None]:
            if about is not None and (found := about(store)) is not None and is_large(found.raw):
                return False, None
            return True, request(store)

        done, result = await cluster.store.do(at_once)
        if done:
            return result  # type: ignore[return-value]
    return await aside(cluster, call, lambda store, _: request(store))


async def aside(cluster: Cluster, call: Call, request: Callable[[ClusterWriter, GivenUp], T]) -> T:
    """Run it on a fork and take over what it did; the objects in its result are those that were taken over."""
    for _ in range(_TRIES):
        fork = await cluster.store.do(lambda store: store.fork())
        since = fork.version

        def try_it(given_up: GivenUp, fork: ClusterWriter = fork, since: int = since) -> tuple[T, Any]:
            result = request(fork, given_up)
            return result, fork.changes_since(since)

        result, changes = await call.desk.workers.run(call.client, try_it)
        if not changes.objects:
            return result
        adopted = await cluster.store.do_in_steps(lambda store, changes=changes: store.adopt(changes))  # type: ignore[misc]
        if adopted is not None:
            here = {id(new.raw): adopted[key].raw for key, (_, new) in changes.objects.items() if new is not None}
            if isinstance(result, dict) and "object" in result:
                result["object"] = here.get(id(result["object"]), result["object"])
            return result
    raise RpcError("conflict", f"{call.method}: what it depends on was changed {_TRIES} times meanwhile; try again")


async def beside(cluster: Cluster, call: Call, request: Callable[[ClusterWriter, GivenUp], T]) -> T:
    """Run it on a fork, of which nothing is kept."""
    fork = await cluster.store.do(lambda store: store.fork())
    return await call.desk.workers.run(call.client, lambda given_up: request(fork, given_up))


def weight(raw: Any, limit: int = LARGE) -> int:
    """About how many values it is, counted up to the limit and little further."""
    waiting = [raw]
    counted = 0
    while waiting and counted <= limit:
        value = waiting.pop()
        if isinstance(value, dict):
            counted += 2 * len(value)
            if counted <= limit:
                waiting.extend(value.values())
        elif isinstance(value, list):
            counted += len(value)
            if counted <= limit:
                waiting.extend(value)
        elif isinstance(value, str):
            counted += len(value) // _TEXT
    return counted


def is_large(raw: Any) -> bool:
    return weight(raw) > LARGE
