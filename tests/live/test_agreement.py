"""Tests of the comparison of a mirrored cluster's placements with ours."""

from pathlib import Path
from typing import Any

import pytest
import trio

from kschedd.actors.cluster import LiveCluster
from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.explain.answers import Explanation, Rejection, Score, SearchAnswer, Skipped, VerdictAnswer
from kschedd.live.agreement import AgreementActor, ObservedBinding, bindings, judged
from kschedd.store.objects.log import ADDED, MODIFIED, WatchEvent
from tests.apiserver.asking import node, pod
from tests.live.test_mirror import mirror_of, origin, runs, until


def explained(**values: Any) -> Explanation:
    empty: dict[str, Any] = {
        "pod": "default/p",
        "node": None,
        "node_exists": None,
        "as_if_absent": False,
        "reserved": None,
        "profile": "default-scheduler",
        "gated_by": None,
        "pre_filter": None,
        "verdicts": [verdict("n1"), verdict("n2")],
        "filters": [],
        "skipped": Skipped([], []),
        "scores": {},
        "weights": {},
        "totals": {},
        "chosen": None,
        "ties": [],
        "nominated": None,
        "message": "",
        "preemption": None,
        "search": SearchAnswer(2, 2, 100),
        "took_us": [],
        "notes": [],
    }
    return Explanation(**{**empty, **values})


def verdict(name: str, plugin: str | None = None, *reasons: str) -> VerdictAnswer:
    return VerdictAnswer(name, plugin, "" if plugin is None else "Unschedulable", [*reasons], [], [])


SCORED: dict[str, Any] = {
    "chosen": "n1",
    "ties": ["n1"],
    "totals": {"n1": 90, "n2": 70},
    "scores": {
        "Fit": {"n1": Score(50, 50, 50), "n2": Score(55, 55, 55)},
        "Spread": {"n1": Score(20, 20, 40), "n2": Score(7, 7, 15)},
    },
}
BEHIND = "70 points, n1 has 90; Spread gives 25 points fewer"


@pytest.mark.parametrize(
    ("found", "on", "expected"),
    [
        pytest.param(explained(**SCORED), "n1", ("equal", "", ""), id="chosen"),
        pytest.param(explained(ties=["n1", "n2"]), "n2", ("equal", "", ""), id="tie"),
        pytest.param(explained(**SCORED), "n2", ("lower score", "Spread", BEHIND), id="lower-score"),
        pytest.param(
            explained(**SCORED, search=SearchAnswer(200, 150, 100)),
            "n2",
            ("partial search", "Spread", f"{BEHIND}; a search ends at 100 feasible nodes"),
            id="partial-search",
        ),
        pytest.param(
            explained(verdicts=[verdict("n1"), verdict("n2", "Fit", "Insufficient cpu", "Too many pods")]),
            "n2",
            ("rejected", "Fit", "Fit: Insufficient cpu; Too many pods"),
            id="rejected",
        ),
        pytest.param(
            explained(verdicts=[], pre_filter=Rejection("VolumeBinding", "Unschedulable", ["no claim"])),
            "n2",
            ("rejected", "VolumeBinding", "VolumeBinding: no claim"),
            id="rejected-before-the-nodes",
        ),
        pytest.param(
            explained(**SCORED), "n3", ("unknown node", "", "the mirror does not have this node"), id="unknown-node"
        ),
    ],
)
def test_a_binding_is_judged_by_the_explanation(found: Explanation, on: str, expected: tuple[str, str, str]) -> None:
    assert judged(found, on) == expected


def observed(name: str, on: str, *, bound: bool = True, created: str = "2026-01-01T00:00:00Z") -> Pod:
    raw = pod(name)
    raw["metadata"] |= {"uid": name, "creationTimestamp": created, "resourceVersion": "1"}
    if on:
        raw["spec"]["nodeName"] = on
    if bound:
        raw["status"] = {"conditions": [{"type": "PodScheduled", "status": "True"}]}
    found = parse(raw)
    assert isinstance(found, Pod)
    return found


def test_bindings_are_found_among_all_changes_of_pods() -> None:
    now = 1767225630.0  # 30 s after the creation
    pending = observed("a", "", bound=False)
    changes = [
        WatchEvent(ADDED, None, pending, 11),
        WatchEvent(MODIFIED, pending, observed("a", "n1"), 12),
        WatchEvent(MODIFIED, observed("a", "n1"), observed("a", "n1"), 13),
        WatchEvent(ADDED, None, observed("new", "n2"), 14),  # received first when it is bound
        WatchEvent(ADDED, None, observed("static", "n2", bound=False), 15),
        WatchEvent(ADDED, None, observed("old", "n2", created="2025-12-31T23:00:00Z"), 16),
    ]
    first, second = bindings(changes, now, 12)
    assert (first.pod, first.node, first.version, first.earlier) == (pending, "n1", 11, 11)
    assert (second.pod.name, second.pod.node_name, second.node) == ("new", "", "n2")
    assert (second.version, second.earlier) == (13, 12)


async def test_the_placements_of_an_equal_scheduler_are_equal(tmp_path: Path) -> None:
    async with origin() as real, mirror_of(tmp_path, real) as (cluster, _), trio.open_nursery() as nursery:
        actor = AgreementActor(cluster)
        nursery.start_soon(actor.run)
        await trio.testing.wait_all_tasks_blocked()
        for name in ("n2", "n3"):
            await real.cluster.store.create(node(name))
        other = pod("other")
        other["spec"]["schedulerName"] = "another"
        await real.cluster.store.create(other)
        for number in range(6):
            await real.cluster.store.create(pod(f"p{number}"))
            await until(lambda number=number: runs(cluster, f"p{number}"))  # type: ignore[misc]
        await real.cluster.store.bind("default", "other", "n1")

        async def evaluated() -> bool:
            found = actor.describe()
            return found.bound == 7 == sum(found.results.values()) + found.of_others

        await until(evaluated)
        found = actor.describe()
        assert set(found.results) <= {"equal", "race"}
        assert (found.of_others, found.not_evaluated) == (1, 0)
        nursery.cancel_scope.cancel()


async def test_a_placement_that_differs_is_kept_with_its_rule(tmp_path: Path) -> None:
    async with origin() as real, mirror_of(tmp_path, real) as (cluster, _), trio.open_nursery() as nursery:
        tainted = node("n2")
        tainted["spec"] = {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]}
        await real.cluster.store.create(tainted)
        bound = pod("by-hand")
        bound["spec"]["schedulingGates"] = [{"name": "wait"}]
        await real.cluster.store.create(bound)

        async def received() -> bool:
            found = await cluster.store.find("Pod", "default", "by-hand")
            return found is not None and await cluster.store.find("Node", "", "n2") is not None

        await until(received)
        actor = AgreementActor(cluster)
        before = await cluster.store.get("Pod", "default", "by-hand")
        assert isinstance(before, Pod)
        version = await cluster.store.do(lambda store: store.version)
        await actor.judge(ObservedBinding(before, "n2", 7.0, version, version))
        found = actor.describe()
        assert found.results == {"rejected": 1}
        assert [(each.plugin, each.result, each.pods) for each in found.plugins] == [("TaintToleration", "rejected", 1)]
        [other] = found.latest
        assert (other.pod, other.node, other.expected) == ("default/by-hand", "n2", ["n1"])
        assert other.why == "TaintToleration: node(s) had untolerated taint(s)"
        nursery.cancel_scope.cancel()


async def test_bindings_that_arrive_in_another_order_are_a_race(tmp_path: Path) -> None:
    """Evaluate pods as if the other scheduler had decided about the second one first."""
    async with origin() as real, mirror_of(tmp_path, real) as (cluster, _), trio.open_nursery() as nursery:
        actor = AgreementActor(cluster)
        nursery.start_soon(actor.run)
        await trio.testing.wait_all_tasks_blocked()
        await real.cluster.store.create(node("n2"))
        for name in ("first", "second"):
            waiting = pod(name)
            waiting["spec"]["schedulingGates"] = [{"name": "a/b"}]
            waiting["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
            await real.cluster.store.create(waiting)
        both = [await received(cluster, name) for name in ("first", "second")]
        await real.cluster.store.patch("Pod", "default", "first", {"spec": {"schedulingGates": None}})
        await until(lambda: runs(cluster, "first"))
        taken = await cluster.store.get("Pod", "default", "first")
        assert isinstance(taken, Pod)
        await until(lambda: judged_pods(actor, 1))
        version = await cluster.store.do(lambda store: store.version)
        await actor.judge(ObservedBinding(both[1], taken.node_name, cluster.clock.now(), version, version))
        assert actor.describe().results["race"] == 1
        assert actor.describe().latest[-1].why == "it is the best node in the state before the previous binding"
        nursery.cancel_scope.cancel()


async def received(cluster: LiveCluster, name: str) -> Pod:
    async def is_there() -> bool:
        return await cluster.store.find("Pod", "default", name) is not None

    await until(is_there)
    found = await cluster.store.get("Pod", "default", name)
    assert isinstance(found, Pod)
    return found


async def judged_pods(actor: AgreementActor, count: int) -> bool:
    return sum(actor.describe().results.values()) == count


async def test_a_pod_that_cannot_be_explained_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(fork: object) -> Explanation:
        raise ValueError("an unreadable pod")

    monkeypatch.setattr("kschedd.live.agreement.finish", fail)
    async with origin() as real, mirror_of(tmp_path, real) as (cluster, _), trio.open_nursery() as nursery:
        actor = AgreementActor(cluster)
        nursery.start_soon(actor.run)
        await trio.testing.wait_all_tasks_blocked()
        for count, name in enumerate(("one", "two"), 1):
            await real.cluster.store.create(pod(name))
            await until(lambda count=count: not_evaluated(actor, count))  # type: ignore[misc]
        assert (actor.describe().bound, actor.describe().results) == (2, {})
        nursery.cancel_scope.cancel()


async def not_evaluated(actor: AgreementActor, count: int) -> bool:
    return actor.describe().not_evaluated == count
