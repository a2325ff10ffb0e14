"""Tests of a controller's turn: an exception for one object does not affect other objects, and is retried."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import pytest

from kschedd.controllers.embedded import embedded_controllers
from kschedd.controllers.kubelets.kubelets import Kubelets
from kschedd.controllers.runner import ControllerRunner
from kschedd.controllers.running.controller import Controller, Reconciling, View
from kschedd.controllers.running.turns import take_turn, turn_in_steps
from kschedd.controllers.workloads.deployments import Deployments
from kschedd.controllers.workloads.replicasets import ReplicaSets
from kschedd.object_faults import FaultLedger
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.store.store import Store
from kschedd.store.writes import Create, Write, patch_of
from tests.store.manifests import Clock, config_map, node, pod, workload

NOTED: Final = "example.com/noted"


class Noter:
    """A controller that marks every ConfigMap, and raises an exception for those named `bad` until it is repaired."""

    name: Final = "noter"
    kinds: Final = frozenset(("ConfigMap",))
    next_deadline: Final = None

    def __init__(self) -> None:
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)
        self.mended = False

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        writes: list[Write] = []
        for event in events:
            if event.new.name == "bad" and not self.mended:
                raise KeyError("of the controller's making")
            if event.type != DELETED and NOTED not in event.new.annotations:
                writes.append(patch_of(event.new, {"metadata": {"annotations": {NOTED: "yes"}}}))
        return writes

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        return [write]


class StepByStep(Noter):
    """The same controller, with a pause after each event."""

    def reconciling(self, events: Sequence[WatchEvent], view: View, now: float) -> Reconciling:
        writes: list[Write] = []
        for event in events:
            writes += self.reconcile([event], view, now)
            yield
        return writes


def noted(store: Store) -> dict[str, bool]:
    return {obj.name: NOTED in obj.annotations for obj in store.list("ConfigMap")}


@pytest.mark.parametrize("kind", [Noter, StepByStep])
@pytest.mark.object_faults
def test_an_object_that_a_controller_trips_over_keeps_nobody_waiting(kind: type[Noter]) -> None:
    clock = Clock()
    store = Store(now=clock)
    noter = kind()
    cluster = ControllerRunner(store, [noter])
    for name in ("a", "bad", "c"):
        store.create(config_map(name))
    cluster.run_until_idle()
    assert noted(store) == {"a": True, "bad": False, "c": True}
    (fault,) = cluster.faults()
    assert str(fault.ref) == "ConfigMap/default/bad"
    assert "KeyError" in fault.why
    assert fault.retry_s == clock.now + 1

    noter.mended = True
    clock.now += 1
    store.create(config_map("d"))  # after this event, due objects are retried
    cluster.run_until_idle()
    assert noted(store) == {"a": True, "bad": True, "c": True, "d": True}
    assert cluster.faults() == []


@pytest.mark.object_faults
def test_a_write_that_is_refused_over_and_over_is_given_up_for_now() -> None:
    class Stubborn(Noter):
        def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
            return [Create(config_map(event.new.name)) for event in events]

    store = Store(now=Clock())
    cluster = ControllerRunner(store, [Stubborn()])
    store.create(config_map("a"))
    cluster.run_until_idle()
    (fault,) = cluster.faults()
    assert "refused 20 times in a row" in fault.why


@pytest.mark.object_faults
def test_whatever_a_write_raises_is_its_objects(monkeypatch: Any) -> None:
    store = Store(now=Clock())
    cluster = ControllerRunner(store, [Noter()])
    merge_patch = store.merge_patch

    def odd(kind: str, namespace: str, name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "odd":
            raise OverflowError("too much")
        return merge_patch(kind, namespace, name, *args, **kwargs)

    monkeypatch.setattr(store, "merge_patch", odd)
    store.create(config_map("odd"))
    store.create(config_map("b"))
    cluster.run_until_idle()
    assert noted(store) == {"b": True, "odd": False}
    assert [str(fault.ref) for fault in cluster.faults()] == ["ConfigMap/default/odd"]


def put_past_the_checks(store: Store, kind: str, name: str, status: Any, namespace: str = "default") -> None:
    """Write a status that no API server would accept."""
    old = store.get(kind, namespace, name)
    store._write(old, {**old.raw, "status": status})


@pytest.mark.object_faults
def test_each_controller_blames_the_object_it_looks_after() -> None:
    store = Store(now=Clock())
    cluster = ControllerRunner(store, [Deployments(), ReplicaSets(), Kubelets()])
    store.create(workload("Deployment", "good", replicas=1))
    store.create(workload("Deployment", "bad", replicas=1))
    store.create(node("broken"))
    put_past_the_checks(store, "Deployment", "bad", {"conditions": ["x"], "collisionCount": "x"})
    put_past_the_checks(store, "Node", "broken", {"conditions": ["x"]}, "")
    store.create(pod("p"))
    cluster.run_until_idle()
    assert {str(fault.ref) for fault in cluster.faults()} == {"Deployment/default/bad", "Node/broken"}
    assert [rs.owner.name for rs in store.list("ReplicaSet") if rs.owner] == ["good"]


def test_every_controller_of_an_embedded_cluster_keeps_a_ledger_of_its_own() -> None:
    ledgers = [controller.faults for controller in embedded_controllers()]
    assert [ledger.component for ledger in ledgers] == [controller.name for controller in embedded_controllers()]
    assert len(set(map(id, ledgers))) == len(ledgers)


class Picky(Noter):
    """A controller that reads only ConfigMaps named `mine`."""

    name: Final = "picky"

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def concerns(self, event: WatchEvent) -> bool:
        return event.new.name == "mine"

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        self.seen += [event.new.name for event in events]
        return []


def test_a_controller_has_no_turn_for_what_does_not_concern_it() -> None:
    store = Store()
    store.create(config_map("other"))
    picky = Picky()
    runner = ControllerRunner(store, [picky])
    runner.run_until_idle()
    for name in ("mine", "another"):
        store.create(config_map(name))
    runner.run_until_idle()
    assert picky.seen == ["mine"]


def test_a_turn_has_a_pause_where_the_controller_has_one_and_before_each_write() -> None:
    store = Store(now=Clock())
    for name in ("a", "b", "c"):
        store.create(config_map(name))
    events = [WatchEvent("ADDED", None, each, each.resource_version) for each in store.list("ConfigMap")]
    looked = [noted(store) for _ in turn_in_steps(StepByStep(), events, store)]
    nobody = dict.fromkeys("abc", False)
    assert looked == [nobody, nobody, nobody, nobody, {**nobody, "a": True}, {**nobody, "a": True, "b": True}]
    assert noted(store) == dict.fromkeys("abc", True)


def test_a_pod_that_starts_and_runs_on_costs_one_turn_of_the_kubelets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    store = Store(now=clock)
    runner = ControllerRunner(store, embedded_controllers())
    for number in range(3):
        store.create(node(f"n{number}"))
    runner.run_until_idle()
    turns: Counter[str] = Counter()

    def counted(controller: Controller, events: Sequence[WatchEvent], store: ClusterWriter) -> int:
        turns[controller.name] += 1
        return take_turn(controller, events, store)

    monkeypatch.setattr("kschedd.controllers.runner.take_turn", counted)
    for number in range(20):
        store.create(pod(f"p{number}", nodeName=f"n{number % 3}"))
        runner.run_until_idle()
    assert {each.status["phase"] for each in store.list("Pod")} == {"Running"}
    nodes = 3  # each node changes once, when it has the image
    assert turns["kubelets"] == 20 + nodes
    assert turns["taint-eviction-controller"] == turns["pod-garbage-collector"] == nodes


def test_a_pod_on_a_missing_node_is_collected_although_its_later_events_concern_nobody() -> None:
    clock = Clock()
    store = Store(now=clock)
    runner = ControllerRunner(store, embedded_controllers())
    store.create(node("n"))
    runner.run_until_idle()
    store.create(pod("stray", nodeName="gone"))
    store.create(pod("stays", nodeName="n"))
    runner.run_until_idle()
    clock.now += 60
    runner.run_until_idle()
    assert [each.name for each in store.list("Pod")] == ["stays"]


def test_an_idle_round_looks_at_no_event_again() -> None:
    store = Store()
    runner = ControllerRunner(store, embedded_controllers())
    store.create(config_map("a"))
    runner.run_until_idle()
    assert runner.run_until_idle() == 0
    assert not runner._cursor.behind
    assert not any(runner._inboxes)
