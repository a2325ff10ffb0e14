"""Tests that the names offered for completion are those of the existing objects."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from kschedd.daemon import cluster_actors
from kschedd.methods import daemon_methods
from kschedd.rpc.client import Client
from kschedd.rpc.sessions.built_in import method_table
from kschedd.rpc.sessions.listener import unix_listener
from kschedd.rpc.sessions.server import Server
from kschedd.service.daemon.process import DaemonState
from kschedd.verbs.command_line.grammar import LiveState
from kschedd_repl.prompt.names import MOST_NAMES, NameBook, NameKeeper
from tests.actors.clusters import node, pod

Raw = dict[str, Any]


def _map(name: str, **labels: str) -> Raw:
    meta = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def _change(kind: str, raw: Raw) -> Raw:
    return {"type": kind, "object": raw, "resource_version": 1}


@pytest.fixture
def book() -> NameBook:
    book = NameBook()
    kinds = [{"name": "ConfigMap", "plural": "configmaps", "count": 1}, {"name": "Pod", "plural": "pods", "count": 0}]
    assert book.begin(kinds) == ["ConfigMap"]
    book.listed("ConfigMap", [_map("a", app="x")])
    book.make()
    return book


def test_names_and_labels_come_and_go(book: NameBook) -> None:
    assert book.names.objects["ConfigMap"] == ("default/a",)
    assert book.names.label_keys["ConfigMap"] == ("app",)
    assert not book.changed(_change("ADDED", _map("b", tier="y")))
    assert not book.changed(_change("MODIFIED", _map("a", app="z")))
    book.make()
    assert book.names.of("ConfigMap", "default") == ["a", "b"]
    assert book.names.labels["ConfigMap"] == ("app=z", "tier=y")
    assert dict(book.names.counts) == {"ConfigMap": 2, "Pod": 0}
    assert not book.changed(_change("DELETED", _map("a")))
    book.make()
    assert book.names.of("ConfigMap", "default") == ["b"]


def test_the_first_of_a_kind_and_a_new_kind(book: NameBook) -> None:
    assert not book.changed(_change("ADDED", {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}}))
    book.make()
    assert book.names.objects["Pod"] == ("/p",)
    widget = {"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "w"}}
    assert book.changed(_change("ADDED", widget)), "a kind that nobody knew: to be listed"
    assert not book.changed(_change("DELETED", widget))


def test_a_kind_with_too_many_objects_is_only_counted_until_they_are_fewer(book: NameBook) -> None:
    grown = [book.changed(_change("ADDED", _map(f"m{number}"))) for number in range(MOST_NAMES)]
    assert grown == [False] * (MOST_NAMES - 1) + [True], "there is one more than that"
    assert book.begin([{"name": "ConfigMap", "plural": "configmaps", "count": MOST_NAMES + 1}]) == []
    assert book.unwatched == {"ConfigMap"}
    book.make()
    assert book.names.objects["ConfigMap"] == ()
    assert not book.counted([{"name": "ConfigMap", "count": MOST_NAMES // 2 + 1}])
    book.make()
    assert dict(book.names.counts) == {"ConfigMap": MOST_NAMES // 2 + 1}
    assert book.counted([{"name": "ConfigMap", "count": MOST_NAMES // 2}]), "few enough to be watched again"


def test_pods_and_nodes_are_known_by_their_states(book: NameBook) -> None:
    def pod(name: str, node: str = "", phase: str = "Pending") -> Raw:
        meta = {"name": name, "namespace": "default"}
        return {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": meta,
            "spec": {"nodeName": node},
            "status": {"phase": phase},
        }

    def node(name: str, **spec: Any) -> Raw:
        return {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name}, "spec": spec}

    book.begin([{"name": kind, "plural": kind.lower() + "s", "count": 0} for kind in ("Pod", "Node")])
    for raw in (pod("a"), pod("b", "n1"), pod("c", "n1", "Succeeded"), node("n1", unschedulable=True), node("n2")):
        book.changed(_change("ADDED", raw))
    book.make()
    live = {state: book.names.live(state, "default") for state in LiveState}
    assert (live[LiveState.PENDING], live[LiveState.BOUND]) == (["a"], ["b"])
    assert (live[LiveState.CORDONED], live[LiveState.UNCORDONED]) == (["n1"], ["n2"])
    book.changed(_change("MODIFIED", pod("a", "n2", "Running")))
    book.changed(_change("DELETED", pod("b", "n1", "Running")))
    book.changed(_change("MODIFIED", node("n1", taints=[{"key": "gpu", "value": "x", "effect": "NoSchedule"}])))
    book.make()
    assert book.names.live(LiveState.PENDING, "default") == []
    assert book.names.live(LiveState.BOUND, "default") == ["a"]
    assert book.names.live(LiveState.CORDONED, "") == []
    assert book.names.taints == {"n1": ("gpu:NoSchedule",)}


def test_pending_pods_are_known_however_many_pods_there_are(book: NameBook) -> None:
    assert book.begin([{"name": "Pod", "plural": "pods", "count": MOST_NAMES + 1}]) == []
    for queued in (["default/b", "default/a"], ["default/b"]):
        book.queued(queued)
        book.make()
        assert book.names.live(LiveState.PENDING, "default") == sorted(key.partition("/")[2] for key in queued)


@asynccontextmanager
async def _kept(
    path: Path, book: NameBook
) -> AsyncIterator[tuple[Client, Callable[[Callable[[], bool]], Awaitable[None]]]]:
    """Run a daemon, and a NameKeeper that keeps its names in a book.

    Yields a client, and a function that waits until a condition on the book holds.
    """
    async with cluster_actors(seed=7) as cluster, unix_listener(path) as listener:
        server = Server(method_table(daemon_methods(cluster, DaemonState("1", str(path), cluster.clock.now()))))
        async with trio.open_nursery() as nursery:
            await nursery.start(server.serve, [listener])
            news = trio.Event()

            def reported() -> None:
                nonlocal news
                news.set()
                news = trio.Event()

            async def until(answer: Callable[[], bool]) -> None:
                with trio.fail_after(180):
                    while not answer():
                        await news.wait()

            async with Client.connect(path) as client, trio.open_nursery() as keeping:
                keeping.start_soon(NameKeeper(book, reported).run, client)
                yield client, until
                keeping.cancel_scope.cancel()
            nursery.cancel_scope.cancel()


async def test_the_names_of_a_live_cluster(tmp_path: Path) -> None:
    book = NameBook()
    async with _kept(tmp_path / "kschedd.sock", book) as (client, wait_until):

        async def until(kind: str, names: list[str]) -> None:
            await wait_until(lambda: book.names.of(kind, "default") == names)

        await until("Namespace", ["default", "kube-node-lease", "kube-public", "kube-system"])
        for name in ("n2", "n1"):
            await client.call("objects.create", manifest=node(name))
        await until("Node", ["n1", "n2"])
        # The number of nodes stays the same, their names change.
        await client.call("objects.delete", kind="Node", name="n1")
        await client.call("objects.create", manifest=node("n3"))
        await until("Node", ["n2", "n3"])
        await client.call("objects.label", kind="Node", name="n3", set={"disk": "ssd"})
        await wait_until(lambda: "disk=ssd" in book.names.labels["Node"])
        await client.call("objects.create", manifest=_map("late"))
        await until("ConfigMap", ["late"])


async def test_a_kind_that_has_too_many_objects_is_watched_again_when_it_has_few(tmp_path: Path) -> None:
    book = NameBook(lambda kind: 4 if kind == "Pod" else 100)
    async with _kept(tmp_path / "kschedd.sock", book) as (client, until):
        names = [f"p{number}" for number in range(5)]
        await client.call("objects.apply", manifests=[pod(name) for name in names])
        await until(lambda: "Pod" in book.unwatched and book.names.live(LiveState.PENDING, "default") == names)
        assert book.names.of("Pod", "default") == []
        await client.call("objects.create", manifest=_map("seen"))
        await until(lambda: book.names.of("ConfigMap", "default") == ["seen"])
        for name in names[2:]:
            await client.call("objects.delete", kind="Pod", name=name)
        await until(lambda: book.names.of("Pod", "default") == names[:2])
        assert book.names.live(LiveState.PENDING, "default") == names[:2]
