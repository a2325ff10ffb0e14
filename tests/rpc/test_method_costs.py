"""Tests that every method costs at most n log n of the length of each parameter, or rejects the parameter."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, cast

import pytest
import trio.testing

from kschedd.access.users import Caller
from kschedd.controllers.embedded import embedded_controllers
from kschedd.daemon import cluster_actors
from kschedd.errors import KscheddError
from kschedd.methods import daemon_methods
from kschedd.rpc.sessions.built_in import method_table
from kschedd.service.daemon.process import DaemonState
from kschedd.service.params import Param, bind
from kschedd.service.table import Call, ClientServices, Method, StreamProducer
from kschedd.service.turns import Turns
from kschedd.service.workers import AtOnce
from tests.actors.clusters import deployment, node, pod
from tests.cost import GROWTH, counting
from tests.metering import metered, until_settled

SIZE: Final = 200
APART: Final = 2_000
"""Calls that the cluster makes at any size; work that grows with the square of `SIZE` makes many more."""


@pytest.fixture(autouse=True, scope="module")
def every_turn_is_counted() -> Iterator[None]:
    with metered():
        yield


def values(size: int) -> dict[str, str]:
    return {f"k{number}": "v" for number in range(size)}


def config_map(size: int, name: str = "m") -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "labels": values(size)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": values(size)}


def maps(size: int) -> list[dict[str, Any]]:
    return [config_map(1, f"m{number}") for number in range(size)]


def yaml(size: int) -> str:
    aliases = "".join(f"  k{number}: *a\n" for number in range(size))
    return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  a: &a v\n" + aliases


def wide_pod(size: int) -> dict[str, Any]:
    raw = pod("wide")
    raw["metadata"]["labels"] = values(size)
    return raw


def sized(pattern: str) -> Callable[[int], str]:
    return lambda size: ",".join(pattern.format(number) for number in range(size))


BY_NAME: Final[dict[str, list[Callable[[int], Any]]]] = {
    "manifests": [maps, config_map, yaml, lambda n: json.dumps(config_map(n)), wide_pod],
    "manifest": [config_map, wide_pod],
    "patch": [
        lambda n: {"data": values(n)},
        lambda n: {"metadata": {"finalizers": [f"x.io/f{number}" for number in range(n)]}},
        lambda n: [{"op": "add", "path": f"/data/k{number}", "value": "v"} for number in range(n)],
    ],
    "label_selector": [sized("k{}!=v"), sized("k{}")],
    "field_selector": [sized("metadata.name!=v{}")],
    "selector": [sized("k{}!=v"), sized("k{}")],
    "taints": [lambda n: [f"k{number}=v:NoSchedule" for number in range(n)]],
    "set": [values],
    "condition": [lambda n: " and ".join("nodes > 1" for _ in range(n)), lambda n: "(" * n + "1" + ")" * n],
    "shapes": [lambda n: [node(f"s{number}") for number in range(n)]],
    "fields": [lambda n: [f"metadata.f{number}" for number in range(n)]],
    "pod": [lambda n: "default/" + "a" * n, wide_pod],
    "text": [yaml, lambda n: "[" * n],
}
"""What is said at length, by the parameter's name; of what is not here, whatever its type allows."""

PLAIN: Final[dict[str, Any]] = {
    "kind": "ConfigMap",
    "name": "there",
    "manifest": config_map(1),
    "manifests": [pod("b")],
    "patch": {"data": {"a": "b"}},
    "taints": ["a=b:NoSchedule"],
    "shapes": [node("shape")],
    "pod": "default/a",
    "node": "n1",
    "like": "n1",
}
"""What is said of required parameters that are not the long one."""


def at_length(param: Param) -> list[Callable[[int], Any]]:
    """Return functions that make long values of the types that this parameter accepts."""
    by_type: list[Callable[[int], Any]] = [
        lambda n: "a" * n,
        lambda n: ",".join(f"k{number}" for number in range(n)),
        lambda n: [f"k{number}" for number in range(n)],
        lambda n: [{"a": number} for number in range(n)],
        values,
    ]
    makers = [*BY_NAME.get(param.name, []), *by_type]
    return [make for make in makers if not param.choices and param.allows(make(2))]


def plain(param: Param) -> Any:
    if param.name in PLAIN and param.allows(PLAIN[param.name]):
        return PLAIN[param.name]
    candidates: list[Any] = [*param.choices[-1:], "a", 1, 0.5, True, {}, [], ["a"], list(param.choices[-1:])]
    return next(each for each in candidates if param.allows(each))


def described_methods() -> dict[str, Method]:
    return method_table(daemon_methods(cast(Any, None), cast(Any, None)))


def walk() -> Iterator[Any]:
    """Yield all cases; the everyday run includes the first of each name of a parameter."""
    seen = set[str]()
    for method in described_methods().values():
        for param in method.params:
            for number, _ in enumerate(at_length(param)):
                new = param.name not in seen
                seen.add(param.name)
                name = f"{method.name}-{param.name}-{number}"
                yield pytest.param(method.name, param.name, number, id=name, marks=() if new else pytest.mark.full)


class Services:
    """A client's services without a session. Work for threads is done in this thread, so that it is counted."""

    def __init__(self, methods: dict[str, Method]) -> None:
        self.turns, self.workers, self.methods = Turns(), AtOnce(), methods
        self.identity: dict[str, Any] = {}
        self.caller = Caller()

    def cancel_stream(self, stream_id: int) -> bool:
        return False

    def at_end(self, name: str, do: Any) -> None:
        assert name


class Sink:
    """A stream whose client reads all items."""

    id: Final = 1

    def __init__(self) -> None:
        self.items: list[Any] = []

    async def send(self, item: Any) -> None:
        await trio.lowlevel.checkpoint()
        self.items.append(item)

    async def send_many(self, items: Sequence[Any]) -> None:
        for item in items:
            await self.send(item)


async def fed(feed: StreamProducer, sink: Sink) -> None:
    """Fill a stream; a feed that raises an error has a cost, too."""
    with suppress(KscheddError):
        await feed(sink)


async def cost(name: str, param: str, which: int, size: int) -> int:
    """Return the cost until the call is answered and all work caused by it is done.

    If the call opens a stream, it is read while objects change.
    """
    async with (
        cluster_actors(controllers=embedded_controllers(), seed=7) as cluster,
        trio.open_nursery() as streams,
    ):
        state = DaemonState("1", "", cluster.clock.now())
        methods = method_table(daemon_methods(cluster, state))
        await cluster.store.create_many([node("n1"), config_map(1, "there"), deployment(replicas=1)])
        await trio.testing.wait_all_tasks_blocked()
        method = methods[name]
        declared = {each.name: each for each in method.params}
        given = {each.name: plain(each) for each in method.params if each.required}
        given[param] = at_length(declared[param])[which](size)
        opened: list[StreamProducer] = []

        def open_stream(feed: StreamProducer) -> int:
            opened.append(feed)
            return Sink.id

        with counting() as counted:
            with suppress(KscheddError), trio.move_on_after(5):  # a rejection has a cost, too
                services = cast(ClientServices, Services(methods))
                args = bind(name, method.params, [given])
                await method.handler(Call(name, args, "test", services, open_stream))
            for feed in opened:
                streams.start_soon(fed, feed, Sink())
            await trio.testing.wait_all_tasks_blocked()
            if opened:
                await cluster.store.create_many([config_map(1, "later"), pod("later")])
                await trio.testing.wait_all_tasks_blocked()
        streams.cancel_scope.cancel()
    return counted.units


async def test_streams_are_read_when_costs_are_counted(autojump_clock: trio.testing.MockClock) -> None:
    seen: list[Any] = []

    async def send(sink: Sink, item: Any) -> None:
        seen.append(item)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Sink, "send", send)
        await cost("objects.watch", "fields", 0, 2)
    assert "ADDED" in [item.type for item in seen]


@pytest.mark.parametrize(("name", "param", "which"), list(walk()))
async def test_twice_the_parameter_costs_at_most_little_more_than_twice(
    autojump_clock: trio.testing.MockClock, name: str, param: str, which: int
) -> None:
    await cost(name, param, which, 10)  # fills caches and imports modules
    for _ in until_settled():
        small, large = await cost(name, param, which, SIZE), await cost(name, param, which, 2 * SIZE)
    for _ in range(4):  # periodic work, such as a sample of the metrics, may run during one of the repetitions
        if large <= GROWTH * small + APART:
            return
        large = await cost(name, param, which, 2 * SIZE)
    assert large <= GROWTH * small + APART
