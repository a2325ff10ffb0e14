"""Tests of controllers as actors: they write to the store, and receive their own writes from watches."""

import threading
from collections.abc import Generator, Sequence
from typing import Any, Final

import pytest
import trio

from kschedd.actors.clock import VIRTUAL, Clock
from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.controllers.embedded import embedded_controllers
from kschedd.controllers.running.controller import View
from kschedd.daemon import cluster_actors
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError
from kschedd.store.managing import with_resolved_entries
from kschedd.store.objects.log import WatchEvent
from kschedd.store.store import Store
from kschedd.store.writes import Write
from tests.actors.clusters import deployment, node, pod, until
from tests.store.manifests import config_map


def running(store: Store) -> list[str]:
    return [found.name for found in store.list("Pod") if isinstance(found, Pod) and found.phase == "Running"]


async def test_a_deployment_becomes_pods_that_run_and_a_smaller_one_fewer() -> None:
    async with cluster_actors(controllers=embedded_controllers()) as cluster:
        await cluster.store.create_many([node("n1"), node("n2")])
        await cluster.store.create(deployment(replicas=5))
        await until(cluster, lambda store: len(running(store)) == 5)
        await cluster.store.do(
            lambda store: store.merge_patch("Deployment", "default", "web", {"spec": {"replicas": 2}})
        )
        await until(cluster, lambda store: sum(not found.deleting for found in store.list("Pod")) == 2)


async def test_a_node_that_is_cordoned_is_tainted_and_back() -> None:
    def taints(store: Store) -> list[str]:
        found = store.get("Node", "", "n1")
        assert isinstance(found, Node)
        return [taint.key for taint in found.taints]

    async with cluster_actors(controllers=embedded_controllers()) as cluster:
        await cluster.store.create(node())
        for wanted, expected in ((True, ["node.kubernetes.io/unschedulable"]), (None, [])):
            patch = {"spec": {"unschedulable": wanted}}
            await cluster.store.do(lambda store, patch=patch: store.merge_patch("Node", "", "n1", patch))
            await until(cluster, lambda store, expected=expected: taints(store) == expected)


async def test_what_was_there_before_a_controller_is_looked_after_and_timers_ring() -> None:
    short = pod("short", nodeName="n1", restartPolicy="Never")
    short["metadata"]["annotations"] = {"kschedd.io/run-seconds": "0.05"}
    async with cluster_actors(controllers=embedded_controllers()) as cluster:
        await cluster.store.create_many([short, node()])
        await until(cluster, lambda store: store.get("Pod", "default", "short").status.get("phase") == "Succeeded")


async def test_what_an_owner_leaves_behind_is_cleared_up() -> None:
    async with cluster_actors(controllers=embedded_controllers()) as cluster:
        await cluster.store.create_many([node(), deployment(replicas=2)])
        await until(cluster, lambda store: len(running(store)) == 2)
        await cluster.store.do(lambda store: store.delete("Deployment", "default", "web"))
        await until(cluster, lambda store: store.count("ReplicaSet") == 0)
        await until(cluster, lambda store: all(found.deleting for found in store.list("Pod")))


async def test_what_is_written_of_a_large_node_is_worked_out_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    forks = 0
    plain = Store.forking

    def forking(store: Store, since: int | None = None) -> Generator[None, None, Store]:
        nonlocal forks
        forks += 1
        return plain(store, since)

    def ready(store: Store) -> bool:
        found = store.get("Node", "", "large")
        return any(one["type"] == "Ready" for one in found.status.get("conditions") or ())

    monkeypatch.setattr(Store, "forking", forking)
    async with cluster_actors(controllers=embedded_controllers()) as cluster:
        await cluster.store.create(node("large", labels={f"l{number}": "" for number in range(1_500)}))
        await until(cluster, ready)
    assert forks


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet"])
async def test_what_is_written_for_a_workload_with_many_labels_is_worked_out_aside(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    here = threading.get_ident()
    made: list[tuple[str, bool]] = []
    plain = Store.create

    def create(store: Store, raw: dict[str, Any], **flags: Any) -> Object:
        made.append((str(raw["kind"]), threading.get_ident() == here))
        return plain(store, raw, **flags)

    monkeypatch.setattr(Store, "create", create)
    labels = {f"l{number}": "" for number in range(1_500)}
    workload = {**deployment(replicas=1), "kind": kind}
    workload["spec"] |= {"selector": {"matchLabels": labels}}
    workload["spec"]["template"]["metadata"]["labels"] = labels
    if kind == "ReplicationController":
        workload |= {"apiVersion": "v1"}
        workload["spec"]["selector"] = labels
    if kind == "DaemonSet":
        del workload["spec"]["replicas"]
    async with cluster_actors(controllers=embedded_controllers()) as cluster:
        await cluster.store.create_many([node(), workload])
        made.clear()
        await until(cluster, lambda store: len(running(store)) == 1)
    assert "Pod" in dict(made)
    large = [each for each in made if each[0] in ("Pod", "ReplicaSet", "ControllerRevision")]
    assert [kind for kind, on_the_loop in large if on_the_loop] == []


async def test_a_daemon_set_is_counted_right_when_turns_were_taken_aside() -> None:
    daemons = deployment()
    daemons |= {"kind": "DaemonSet"}
    del daemons["spec"]["replicas"]

    def counts(store: Store) -> tuple[int, int]:
        status = store.get("DaemonSet", "default", "web").status
        return status.get("desiredNumberScheduled", 0), status.get("currentNumberScheduled", 0)

    async with cluster_actors(controllers=embedded_controllers()) as cluster:
        await cluster.store.create_many([node(), daemons])
        await until(cluster, lambda store: counts(store) == (1, 1))
        for number in range(3):
            labels = {f"l{each}": str(number) for each in range(1_500)}
            await cluster.store.create(node(f"large-{number}", labels=labels))
            await until(cluster, lambda store, number=number: counts(store) == (number + 2, number + 2))
        await cluster.store.do(lambda store: store.delete("Node", "", "large-1"))
        await until(cluster, lambda store: counts(store) == (3, 3))


async def nothing() -> None:
    """Do nothing when the time changes."""


class Stopwatch:
    """A replacement for the module `time`: the time changes only when a duration is added."""

    time_s = 0.0

    def perf_counter(self) -> float:
        return self.time_s


@pytest.fixture
def stopwatch(monkeypatch: pytest.MonkeyPatch) -> Stopwatch:
    made = Stopwatch()
    monkeypatch.setattr("kschedd.actors.controllers.time", made)
    return made


class Slow:
    """A controller that reads all objects for `look_s` seconds of this clock, and records when."""

    name: Final = "slow"
    kinds: Final = frozenset(("ConfigMap",))
    next_deadline: Final = None

    def __init__(self, look_s: float, stopwatch: Stopwatch) -> None:
        self.stopwatch = stopwatch
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)
        self.look_s = look_s
        self.looked: list[int] = []

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        self.stopwatch.time_s += self.look_s
        self.looked.append(len(events))
        return []

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        return []


async def _looks(look_s: float, writes: int, stopwatch: Stopwatch) -> int:
    """Return how often such a controller reads while this number of objects is written one after the other."""
    slow = Slow(look_s, stopwatch)
    async with cluster_actors(controllers=[slow]) as cluster:
        for number in range(writes):
            await cluster.store.create(config_map(f"c{number}"))
            await trio.sleep(0.001)
        with trio.fail_after(90):
            while sum(slow.looked) < writes:  # noqa: ASYNC110 - a look writes nothing that a watch would tell of
                await trio.sleep(0.01)
    return len(slow.looked)


@pytest.mark.usefixtures("autojump_clock")
async def test_a_controller_whose_looks_take_long_has_fewer_of_them(stopwatch: Stopwatch) -> None:
    assert await _looks(0.0, 60, stopwatch) > 3 * await _looks(0.04, 60, stopwatch)


async def test_nobody_rests_while_time_may_stand_still_for_him(stopwatch: Stopwatch) -> None:
    slow, clock = Slow(0.03, stopwatch), Clock.started(1_000.0, VIRTUAL)
    async with cluster_actors(controllers=[slow], clock=clock) as cluster:
        for number in range(5):
            await cluster.store.create(config_map(f"c{number}"))
            await cluster.time.advance(clock.now() + 1, nothing)
            assert sum(slow.looked) == number + 1


async def test_others_have_the_loop_between_the_writes_of_a_turn_and_see_nothing_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounds = 0
    made_in: list[int] = []
    plain = Store.create

    def create(store: Store, raw: dict[str, Any], **options: Any) -> Object:
        if raw["kind"] == "Pod":
            made_in.append(rounds)
        return plain(store, raw, **options)

    async def count() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await trio.lowlevel.checkpoint()

    monkeypatch.setattr(Store, "create", create)
    monkeypatch.setattr("kschedd.actors.objects.store._STEPS_S", 0.0)  # independent of the machine's speed
    async with cluster_actors(controllers=embedded_controllers()) as cluster, trio.open_nursery() as beside:
        beside.start_soon(count)
        await cluster.store.create(deployment(replicas=400))
        seen = [0]
        while seen[-1] < 400:
            seen.append(await cluster.store.do(lambda store: store.count("Pod")))
        beside.cancel_scope.cancel()
    assert len(made_in) == 400
    assert len(set(made_in)) > 1, "the loop went on between two of them"
    assert set(seen) == {0, 400}, "nobody saw a part of it"


async def test_controllers_are_field_managers_of_their_objects() -> None:
    async with cluster_actors(controllers=embedded_controllers(served=True)) as cluster:
        await cluster.store.create(node())
        await cluster.store.do(lambda store: store.create(deployment(replicas=1), manager="kubectl"))
        await until(cluster, lambda store: bool(store.list("Deployment")[0].status.get("availableReplicas")))
        kinds = ("Deployment", "ReplicaSet", "Event", "Pod")
        found = await cluster.store.do(lambda store: [store.list(kind)[0] for kind in kinds])
    entries = [with_resolved_entries(obj.raw)["metadata"].get("managedFields") or () for obj in found]
    managers = [sorted((each["manager"], each.get("subresource", "")) for each in listed) for listed in entries]
    ours = "kube-controller-manager"
    assert managers == [
        [(ours, ""), (ours, "status"), ("kubectl", "")],
        [(ours, ""), (ours, "status")],
        [(ours, "")],
        [],
    ]
