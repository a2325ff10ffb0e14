"""Tests of all actors together, from the creation of a pod to its binding and deletion."""

from collections.abc import Callable
from typing import Any, TypeVar

import trio
import trio.lowlevel

from kschedd.actors.queue import QueueActor
from kschedd.api.pods import Pod
from kschedd.config.changing.changes import with_weight
from kschedd.config.loading.load import config_from_raw
from kschedd.daemon import cluster_actors
from kschedd.log.log import Log
from kschedd.queue.entry import Move, SubQueue
from kschedd.scheduling.debug.work import Work
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.inputs import BeginAttempt, CompleteRun, Input, Reconfigure
from kschedd.scheduling.popped import MOST_POPPED
from kschedd.scheduling.records import AttemptRecord
from kschedd.store.store import Store
from tests.actors.clusters import comes_to, node, placed, pod, rejected, until

T = TypeVar("T")


def scheduled(log: Log) -> int:
    return sum(bool(attempt.node) for attempt in log.attempts())


async def test_pods_get_nodes_and_it_is_told() -> None:
    async with cluster_actors(seed=1) as cluster:
        await cluster.store.create_many([node("n1"), node("n2")])
        await cluster.store.create_many([pod(f"p{number}") for number in range(50)])
        nodes = await placed(cluster, *(f"p{number}" for number in range(50)))
        assert set(nodes.values()) == {"n1", "n2"}
        decided = await cluster.log.query(scheduled)
        reported = await cluster.log.query(lambda log: [reported.first.message for reported in log.events.latest()])
        assert decided == 50
        assert f"Successfully assigned default/p0 to {nodes['p0']}" in reported
        counts = await cluster.queue.query(lambda owner: owner.queue.counts())
        assert set(counts.values()) == {0}


async def test_the_caches_follow_what_was_bound() -> None:
    async with cluster_actors() as cluster:
        await cluster.store.create(node(cpu="1"))
        await cluster.store.create_many([pod(f"p{number}", cpu="300m") for number in range(4)])
        await rejected(cluster, "p3")
        await cluster.store.do(lambda store: store.delete("Pod", "default", "p0", grace_period_s=0))
        assert await placed(cluster, "p3") == {"p3": "n1"}

        def room(owner: SchedulingDriver) -> list[int]:
            table = owner.machine.cluster.table
            return [
                int(table.requested[0, table.row_of["n1"]]),
                owner.machine.cluster.pod_count,
                len(owner.bindings.cycles),
            ]

        await until(cluster, lambda store: store.count("Pod") == 3)
        await comes_to(cluster.scheduler, room, [900, 3, 0])


async def test_a_pod_that_fits_nowhere_says_why_and_gets_the_node_that_comes_later() -> None:
    async with cluster_actors() as cluster:
        await cluster.store.create(node("small", cpu="1"))
        await cluster.store.create(pod("big", cpu="2"))
        message = await rejected(cluster, "big")
        assert message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
        assert await cluster.queue.query(lambda owner: owner.queue.counts()[SubQueue.UNSCHEDULABLE]) == 1
        [reported] = await cluster.log.query(lambda log: log.events.latest("default", "big"))
        assert (reported.first.reason, reported.first.message) == ("FailedScheduling", message)
        await cluster.store.create(node("large", cpu="4"))
        assert await placed(cluster, "big") == {"big": "large"}


async def test_the_more_important_pod_evicts_the_others_and_takes_their_room() -> None:
    async with cluster_actors() as cluster:
        high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
        await cluster.store.create_many([high, node(cpu="1")])
        await cluster.store.create_many(
            [pod(f"low{number}", cpu="400m", terminationGracePeriodSeconds=0) for number in range(2)]
        )
        await placed(cluster, "low0", "low1")
        await cluster.store.create(pod("urgent", cpu="1", priorityClassName="high"))
        assert await placed(cluster, "urgent") == {"urgent": "n1"}
        assert await cluster.store.do(lambda store: store.count("Pod")) == 1
        reasons = await cluster.log.query(lambda log: [reported.first.reason for reported in log.events.latest()])
        assert reasons.count("Preempted") == 2
        nominated = await cluster.scheduler.query(lambda owner: bool(owner.nominator))
        assert not nominated


async def test_pods_of_an_unknown_scheduler_are_left_alone_and_profiles_share_the_queue() -> None:
    profiles = [{"schedulerName": "default-scheduler"}, {"schedulerName": "other"}]
    raw = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": profiles}
    async with cluster_actors(config_from_raw(raw)) as cluster:
        await cluster.store.create(node())
        await cluster.store.create_many([pod("a", schedulerName="nobodys"), pod("b", schedulerName="other"), pod("c")])
        await placed(cluster, "b", "c")
        left = await cluster.store.find("Pod", "default", "a")
        assert isinstance(left, Pod)
        assert left.node_name == ""
        assert await cluster.log.query(lambda log: log.attempts("default/a")) == []


async def test_a_gated_pod_waits_for_its_gate() -> None:
    async with cluster_actors() as cluster:
        await cluster.store.create(node())
        await cluster.store.create(pod("gated", schedulingGates=[{"name": "example.com/quota"}]))
        await cluster.store.create(pod("free"))
        await placed(cluster, "free")
        assert await cluster.queue.query(lambda owner: owner.queue.counts()[SubQueue.GATED]) == 1
        await cluster.store.do(
            lambda store: store.merge_patch("Pod", "default", "gated", {"spec": {"schedulingGates": None}})
        )
        assert await placed(cluster, "gated") == {"gated": "n1"}


async def test_a_pending_pod_that_is_deleted_is_nowhere_afterwards() -> None:
    async with cluster_actors() as cluster:
        await cluster.store.create(pod("lonely"))
        await rejected(cluster, "lonely", "no nodes available")
        await cluster.store.do(lambda store: store.delete("Pod", "default", "lonely"))
        await cluster.store.create(node())
        await cluster.store.create(pod("next"))
        await placed(cluster, "next")
        assert await cluster.queue.query(lambda owner: owner.queue.entry("default/lonely")) is None
        assert await cluster.scheduler.query(lambda owner: list(owner.pending.pods)) == []


async def test_a_changed_weight_counts_from_the_next_attempt_on() -> None:
    async with cluster_actors() as cluster:

        def last(owner: list[AttemptRecord]) -> int | None:
            return owner[-1].score

        await cluster.store.create_many([node("n1"), node("n2")])
        await cluster.store.create(pod("a"))
        await placed(cluster, "a")
        before = last(await cluster.log.query(lambda log: log.attempts("default/a")))

        def heavier(owner: SchedulingDriver) -> int:
            old = owner.step(
                Reconfigure(with_weight(owner.machine.config, "default-scheduler", "NodeResourcesFit", 50))
            )
            found = old.profile("default-scheduler")
            assert found is not None
            return found.weight("NodeResourcesFit")

        assert await cluster.scheduler.query(heavier) == 1
        await cluster.store.create(pod("b"))
        await placed(cluster, "b")
        after = last(await cluster.log.query(lambda log: log.attempts("default/b")))
        assert before is not None
        assert after is not None
        assert after > before + 1000


async def test_the_queue_remembers_how_a_pod_went_through_it() -> None:
    async with cluster_actors() as cluster:
        await cluster.store.create_many([node("tiny", cpu="50m"), pod("late")])
        await rejected(cluster, "late")
        await cluster.store.create(node())
        await placed(cluster, "late")

        def moves(log: Log) -> list[tuple[str, str]]:
            return [(move.source.value, move.target.value) for move in log.moves("default/late")]

        await cluster.queue.query(lambda owner: owner.queue.counts())  # wait until the queue's moves are in the log
        went = await cluster.log.query(moves)
        assert went[:3] == [("outside", "active"), ("active", "in_flight"), ("in_flight", "unschedulable")]
        assert went[-1] == ("in_flight", "outside")


async def test_a_large_load_lets_others_have_their_turn() -> None:
    async with cluster_actors() as cluster:
        await cluster.store.create_many([node(f"n{number}") for number in range(200)])
        seen: set[int] = set()  # numbers of bound pods at the times when other tasks ran

        async def look() -> None:
            while True:
                seen.add(await cluster.store.do(lambda store: sum(bool(pod.node_name) for pod in _pods(store))))

        raws = [pod(f"p{number}") for number in range(2000)]
        await cluster.store.create_many(raws)
        async with trio.open_nursery() as beside:
            beside.start_soon(look)
            await until(cluster, lambda store: all(pod.node_name for pod in _pods(store)))
            beside.cancel_scope.cancel()
        assert await cluster.log.query(scheduled) == 2000
        assert seen - {0, 2000}


async def test_important_pods_that_come_while_others_are_being_tried_are_tried_before_them() -> None:
    async with cluster_actors() as cluster:
        classes = [("low", 1), ("high", 9)]
        meta = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        await cluster.store.create_many([{**meta, "metadata": {"name": n}, "value": v} for n, v in classes])
        await cluster.store.create_many([node(f"n{number}") for number in range(50)])
        low = [pod(f"low{number}", priorityClassName="low") for number in range(600)]
        went: list[tuple[str, str]] = []  # pods when they become active, and when they are attempted
        await cluster.queue.query(lambda owner: _note_active(owner, went))
        await cluster.scheduler.query(lambda owner: _note_attempts(owner, went))
        await cluster.store.create_many(low)
        for number in range(60):
            await cluster.store.create(pod(f"high{number}", priorityClassName="high"))
            await trio.lowlevel.checkpoint()
        await until(cluster, lambda store: all(pod.node_name for pod in _pods(store)))
        assert await cluster.log.query(scheduled) == 660
        counts = await cluster.queue.query(lambda owner: owner.queue.counts())
        assert set(counts.values()) == {0}
        for number in range(60):
            name = f"high{number}"
            between = went[went.index(("active", name)) : went.index(("attempt", name))]
            before = [pod for what, pod in between if what == "attempt" and pod.startswith("low")]
            assert len(before) <= MOST_POPPED


def _note_active(owner: QueueActor, went: list[tuple[str, str]]) -> None:
    recorder = owner.queue.recorder
    assert recorder is not None, "the actor has set one"

    def recorded(move: Move) -> None:
        recorder(move)
        if move.target == SubQueue.ACTIVE:
            went.append(("active", move.pod.partition("/")[2]))

    owner.queue.recorder = recorded


def _note_attempts(owner: SchedulingDriver, went: list[tuple[str, str]]) -> None:
    class Noting:
        def given(self, given: Input, now: float, step: Callable[[Any, float], T]) -> T:
            if isinstance(given, BeginAttempt):
                went.append(("attempt", given.entry.pod.name))
            elif isinstance(given, CompleteRun):
                went.extend(("attempt", result.pod.name) for result in given.run.results)
            return step(given, now)

        def completing(self, work: Work[T], now: float, took_s: float) -> Work[T]:
            return work

        def taken(self, effects: Effects) -> None:
            assert effects is not None

    owner.listener = Noting()


def _pods(store: Store) -> list[Pod]:
    return [found for found in store.list("Pod") if isinstance(found, Pod)]
