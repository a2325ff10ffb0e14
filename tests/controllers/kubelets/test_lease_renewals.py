"""Tests that renewals of Leases are writes while a client watches Leases, and cost nothing otherwise."""

from typing import Any

import pytest

from kschedd.api.text.times import micros
from kschedd.controllers.kubelets.heartbeats import NODE_LEASES, Heartbeats
from kschedd.controllers.nodes.nodelifecycle import NodeLifecycle
from kschedd.controllers.runner import ControllerRunner
from kschedd.store.errors import Forbidden
from kschedd.store.objects.log import Cursor
from kschedd.store.store import Store
from kschedd.values import run_steps
from tests.store.manifests import Clock, node

START = 1_700_000_000.0


class Cluster:
    """Nodes with heartbeats, and the controller that notices missing heartbeats."""

    def __init__(self, *names: str) -> None:
        self.clock = Clock(START)
        self.store = Store(now=self.clock)
        self.heartbeats = Heartbeats()
        self.runner = ControllerRunner(self.store, (self.heartbeats, NodeLifecycle()))
        self.add(*names)

    def add(self, *names: str) -> None:
        for name in names:
            self.store.create(node(name))
            self.runner.run_until_idle()
            self.clock.now += 1

    def open(self) -> Cursor:
        """Open a watch of Leases as the store's actor does."""
        since = self.store.version
        if not self.store.is_watched("Lease"):
            run_steps(self.store.renewing_leases())
        cursor = self.store.watch({"Lease"}, since)
        self.runner.run_until_idle()
        return cursor

    def run_to(self, elapsed_s: float) -> None:
        while (due := self.runner.next_deadline) is not None and due <= START + elapsed_s:
            self.clock.now = due
            self.runner.run_until_idle()
        self.clock.now = START + elapsed_s

    def renewals(self, cursor: Cursor) -> list[tuple[str, float]]:
        """Return name and time, in seconds since the start, of each event; check that its version is its own."""
        events = cursor.take()
        assert all(event.new.resource_version == event.version for event in events)
        return [(event.new.name, self.renewed_s(event.new.raw)) for event in events]

    def renewed_s(self, lease: Any) -> float:
        return micros(lease["spec"]["renewTime"]) / 1e6 - START

    def read(self, name: str) -> tuple[float, int]:
        """Return the renewTime and the version of a Lease as a client reads it."""
        found = self.store.get("Lease", NODE_LEASES, name)
        return self.renewed_s(found.raw), found.resource_version


def test_no_renewal_is_written_while_nobody_watches() -> None:
    cluster = Cluster("a", "b")
    version = cluster.store.version
    cluster.run_to(3605)
    assert cluster.runner.next_deadline is None
    assert cluster.store.version == version
    assert cluster.read("a")[0] == 3600


def test_a_watch_begins_with_the_renewals_that_are_overdue_and_gets_each_later_one() -> None:
    cluster = Cluster("a", "b")
    cluster.run_to(25)
    watch = cluster.open()
    assert cluster.renewals(watch) == [("a", 20), ("b", 21)]
    cluster.run_to(41)
    assert cluster.renewals(watch) == [("a", 30), ("b", 31), ("a", 40), ("b", 41)]


def test_a_read_shows_what_the_watch_has_shown() -> None:
    cluster = Cluster("a")
    watch = cluster.open()
    for elapsed in range(5, 60, 7):
        cluster.run_to(elapsed)
        last = next(iter(reversed(watch.take())), None)
        if last is not None:
            assert cluster.read("a") == (cluster.renewed_s(last.new.raw), last.version)
            assert [each.raw for each in cluster.store.list("Lease")] == [last.new.raw]


def test_fresh_leases_are_renewed_for_a_new_watch_as_well() -> None:
    cluster = Cluster("a", "b")
    watch = cluster.open()
    assert cluster.renewals(watch) == [("b", 2)]  # early, because no renewal is due
    cluster.run_to(13)
    assert cluster.renewals(watch) == [("a", 10), ("b", 12)]


def test_a_node_that_joins_is_renewed_too() -> None:
    cluster = Cluster()
    watch = cluster.open()
    cluster.add("a")
    cluster.run_to(21)
    assert cluster.renewals(watch) == [("a", 0), ("a", 10), ("a", 20)]


def test_renewals_end_with_the_last_watch_and_are_computed_again() -> None:
    cluster = Cluster("a")
    one, two = cluster.open(), cluster.open()
    cluster.run_to(12)
    one.close()
    cluster.run_to(22)
    assert cluster.renewals(two)[-1] == ("a", 21)  # every ten seconds after the early renewal
    two.close()
    cluster.run_to(32)
    version = cluster.store.version
    cluster.run_to(300)
    assert cluster.runner.next_deadline is None
    assert cluster.store.version == version
    assert cluster.read("a")[0] == 291


def test_a_kubelet_that_stops_is_not_renewed() -> None:
    cluster = Cluster("a")
    watch = cluster.open()
    cluster.run_to(11)
    stop = {"metadata": {"annotations": {"kschedd.io/kubelet": "stopped"}}}
    cluster.store.merge_patch("Node", "", "a", stop)
    cluster.runner.run_until_idle()
    assert cluster.renewals(watch)[-1] == ("a", 11)
    cluster.run_to(30)
    assert watch.take() == []


def test_renewals_do_not_wake_the_controllers() -> None:
    cluster = Cluster("a", "b", "c")
    cluster.run_to(15)
    cluster.open()
    renewal = next(event for event in reversed(cluster.store.written_after(0)) if event.new.kind == "Lease")
    assert not cluster.heartbeats.concerns(renewal)


def test_a_store_that_rejects_writes_computes_renewals() -> None:
    cluster = Cluster("a")
    refusal = Forbidden("Lease", "a", "this cluster mirrors another one")
    cluster.store.refuse_writes(refusal)
    cluster.run_to(25)
    version = cluster.store.version
    run_steps(cluster.store.renewing_leases())
    assert cluster.read("a")[0] == 20
    assert cluster.store.version == version


@pytest.mark.parametrize("kind", ["Node", "Pod"])
def test_a_watch_of_another_kind_does_not_count(kind: str) -> None:
    cluster = Cluster("a")
    cluster.store.watch({kind})
    assert not cluster.store.is_watched("Lease")
