"""Tests of the contract of `kschedd.store.cluster_api`, with the embedded store behind its actor and with the fake."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from kschedd.actors.objects.store import Message, StoreActor, StoreClient
from kschedd.api.selecting.selectors import parse_label_selector
from kschedd.controllers.running.controller import Controller
from kschedd.controllers.running.turns import take_turn
from kschedd.object_faults import FaultLedger
from kschedd.store.cluster_api import ClusterApi, ClusterWriter
from kschedd.store.errors import AlreadyExists, ApiError, Conflict, Gone, Invalid, NotFound, TooManyRequests
from kschedd.store.store import Store
from kschedd.store.writes import Bind, Create, Delete, Evict, Patch, Update, patch_of, status_of
from tests.actors.clusters import node, pod
from tests.store.fake_cluster_api import FakeCluster, FakeClusterApi

_KEPT = 20  # events


@pytest.fixture(params=["embedded", "fake"])
async def api(request: pytest.FixtureRequest, nursery: trio.Nursery) -> AsyncIterator[ClusterApi]:
    if request.param == "fake":
        yield FakeClusterApi(FakeCluster(_KEPT))
        return
    send, receive = trio.open_memory_channel[Message](16)
    nursery.start_soon(StoreActor(Store(now=lambda: 0.0, history=_KEPT), receive).run)
    client = StoreClient.of(send)
    yield client
    client.close()


async def started(api: ClusterApi, name: str, node_name: str = "n1", **labels: str) -> Any:
    """Create and bind a pod that is running and ready."""
    raw = pod(name)
    await api.create({**raw, "metadata": {**raw["metadata"], "labels": labels}})
    bound = await api.bind("default", name, node_name)
    ready = [{"type": "Ready", "status": "True"}]
    return await api.perform(status_of(bound, {"phase": "Running", "conditions": ready}))


# -- reading and writing


async def test_what_was_created_is_found_under_its_name(api: ClusterApi) -> None:
    made = await api.create(pod("a"))
    assert (made.key, bool(made.uid), made.resource_version > 0) == ("default/a", True, True)
    assert (await api.get("Pod", "default", "a")).raw == made.raw
    assert await api.find("Pod", "default", "b") is None
    with pytest.raises(NotFound):
        await api.get("Pod", "default", "b")


async def test_a_name_is_given_once(api: ClusterApi) -> None:
    await api.create(pod("a"))
    with pytest.raises(AlreadyExists):
        await api.create(pod("a"))


async def test_of_many_bindings_each_is_done_or_refused_on_its_own(api: ClusterApi) -> None:
    await api.create_many([pod("a"), pod("b"), pod("c")])
    wanted = [Bind("default", name, uid, "n1") for name, uid in (("a", ""), ("b", "other"), ("nobody", ""), ("c", ""))]
    refused = await api.do(lambda cluster: cluster.bind_many(wanted))
    assert [type(failure) for failure in refused] == [type(None), Conflict, NotFound, type(None)]
    assert [found.name for found in await api.do(lambda cluster: cluster.pods_on("n1"))] == ["a", "c"]


async def test_each_write_has_a_higher_version_and_one_that_changes_nothing_has_none(api: ClusterApi) -> None:
    first = await api.create(node("n1"))
    second = await api.patch("Node", "", "n1", {"metadata": {"labels": {"a": "b"}}})
    again = await api.patch("Node", "", "n1", {"metadata": {"labels": {"a": "b"}}})
    assert first.resource_version < second.resource_version == again.resource_version
    assert await api.do(lambda cluster: cluster.version) == second.resource_version


async def test_an_object_once_read_never_changes(api: ClusterApi) -> None:
    before = await api.create(node("n1"))
    await api.patch("Node", "", "n1", {"metadata": {"labels": {"a": "b"}}})
    assert "a" not in before.labels


@pytest.mark.parametrize("verb", ["update", "patch", "patch-uid", "delete-uid", "bind-uid", "evict-uid"])
async def test_a_write_for_another_version_or_object_is_refused_and_does_nothing(api: ClusterApi, verb: str) -> None:
    stale = await api.create(pod("a"))
    current = await api.patch("Pod", "default", "a", {"metadata": {"labels": {"a": "b"}}})
    other = {"metadata": {"uid": "another", "labels": {"a": "c"}}}
    writes = {
        "update": Update(stale.raw),
        "patch": patch_of(stale, {"metadata": {"labels": {"a": "c"}}}, exactly=True),
        "patch-uid": Patch("Pod", "default", "a", other),
        "delete-uid": Delete("Pod", "default", "a", "another"),
        "bind-uid": Bind("default", "a", "another", "n1"),
        "evict-uid": Evict("default", "a", "another"),
    }
    with pytest.raises(Invalid if verb == "patch-uid" else Conflict):
        await api.perform(writes[verb])
    assert (await api.get("Pod", "default", "a")).raw == current.raw


async def test_a_status_is_written_by_its_subresource_only(api: ClusterApi) -> None:
    made = await api.create(pod("a"))
    await api.perform(status_of(made, {"phase": "Failed"}))
    await api.patch("Pod", "default", "a", {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Running"}})
    found = await api.get("Pod", "default", "a")
    assert (found.status["phase"], found.labels) == ("Failed", {"a": "b"})


async def test_a_listing_is_sorted_and_may_be_narrowed(api: ClusterApi) -> None:
    for name, app in (("b", "x"), ("a", "y"), ("c", "x")):
        raw = pod(name)
        await api.create({**raw, "metadata": {**raw["metadata"], "labels": {"app": app}}})
    assert [obj.name for obj in await api.list("Pod")] == ["a", "b", "c"]
    selector = parse_label_selector({"matchLabels": {"app": "x"}})
    assert [obj.name for obj in await api.list("Pod", "default", selector)] == ["b", "c"]
    assert not await api.list("Pod", "elsewhere")
    assert await api.do(lambda cluster: (cluster.count("Pod"), "Pod" in cluster.kinds())) == (3, True)


async def test_dependents_are_found_by_their_owners_uid_and_pods_by_their_node(api: ClusterApi) -> None:
    owner = await api.create(pod("owner"))
    raw = pod("child")
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "owner", "uid": owner.uid}
    await api.create({**raw, "metadata": {**raw["metadata"], "ownerReferences": [reference]}})
    await api.bind("default", "child", "n1")

    def names(cluster: ClusterWriter) -> list[list[str]]:
        found = (cluster.owned_by(owner.uid), cluster.pods_on("n1"), cluster.in_namespace("default"))
        return [sorted(obj.name for obj in each if obj.kind == "Pod") for each in found]

    assert await api.do(names) == [["child"], ["child"], ["child", "owner"]]


# -- binding, deleting, evicting


async def test_a_pod_is_bound_once(api: ClusterApi) -> None:
    await api.create(pod("a"))
    bound = await api.bind("default", "a", "n1")
    conditions = {each["type"]: each["status"] for each in bound.status["conditions"]}
    assert (bound.spec["nodeName"], conditions["PodScheduled"]) == ("n1", "True")
    with pytest.raises(Conflict):
        await api.bind("default", "a", "n2")
    with pytest.raises(NotFound):
        await api.bind("default", "nobody", "n1")


async def test_a_pod_without_a_node_goes_at_once(api: ClusterApi) -> None:
    await api.create(pod("a"))
    await api.delete("Pod", "default", "a")
    assert await api.find("Pod", "default", "a") is None


async def test_a_running_pod_has_its_grace_and_goes_when_that_is_cut_to_nothing(api: ClusterApi) -> None:
    await started(api, "a")
    marked = await api.delete("Pod", "default", "a")
    assert marked.deleting
    assert marked.metadata["deletionGracePeriodSeconds"] == 30
    await api.delete("Pod", "default", "a", grace_period_s=0)
    assert await api.find("Pod", "default", "a") is None


async def test_an_eviction_spends_the_budget_and_is_refused_when_that_is_spent(api: ClusterApi) -> None:
    for name in "ab":
        await started(api, name, app="web")
    selector = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1}
    meta = {"name": "web", "namespace": "default"}
    raw = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": selector}
    budget = await api.create(raw)
    status = {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}
    await api.perform(status_of(budget, {**status, "observedGeneration": 1}))
    assert (await api.evict("default", "a")).deleting
    before = await api.get("Pod", "default", "b")
    with pytest.raises(TooManyRequests):
        await api.evict("default", "b")
    assert (await api.get("Pod", "default", "b")).raw == before.raw


async def test_a_pod_that_does_not_run_is_evicted_whatever_its_budget_says(api: ClusterApi) -> None:
    raw = pod("a")
    await api.create({**raw, "metadata": {**raw["metadata"], "labels": {"app": "web"}}})
    meta = {"name": "web", "namespace": "default"}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1}
    await api.create({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec})
    await api.evict("default", "a")
    assert await api.find("Pod", "default", "a") is None


# -- batches


async def test_a_batch_is_answered_in_order_and_a_refusal_stops_nothing(api: ClusterApi) -> None:
    answers = await api.perform_each(
        [Create(pod("a")), Create(pod("a")), Bind("default", "a", "", "n1"), Delete("Pod", "default", "b")]
    )
    assert [type(answer) if isinstance(answer, ApiError) else answer.name for answer in answers] == [
        "a",
        AlreadyExists,
        "a",
        NotFound,
    ]
    assert (await api.get("Pod", "default", "a")).spec["nodeName"] == "n1"


async def test_what_is_tried_on_a_fork_is_not_done(api: ClusterApi) -> None:
    await api.create(pod("a"))

    def attempt(cluster: ClusterWriter) -> tuple[int, int]:
        fork = cluster.fork()
        fork.create(pod("b"))
        fork.delete("Pod", "default", "a")
        return fork.count("Pod"), cluster.count("Pod")

    version = await api.do(lambda cluster: cluster.version)
    assert await api.do(attempt) == (1, 1)
    assert await api.do(lambda cluster: cluster.version) == version
    assert await api.find("Pod", "default", "b") is None


@pytest.mark.parametrize("meanwhile", [False, True], ids=["nothing-in-between", "changed-in-between"])
async def test_what_a_fork_did_is_taken_over_unless_it_is_stale(api: ClusterApi, meanwhile: bool) -> None:
    await api.create(pod("a"))
    await api.create(pod("b"))
    fork = await api.do(lambda cluster: cluster.fork())
    since = fork.version
    fork.merge_patch("Pod", "default", "a", {"metadata": {"labels": {"x": "y"}}})
    fork.delete("Pod", "default", "b")
    fork.create(pod("c"))
    if meanwhile:
        await api.patch("Pod", "default", "a", {"metadata": {"labels": {"x": "z"}}})
    adopted = await api.do_in_steps(lambda cluster: cluster.adopt(fork.changes_since(since)))
    found = {obj.name: obj.labels.get("x") for obj in await api.list("Pod")}
    assert found == ({"a": "z", "b": None} if meanwhile else {"a": "y", "c": None})
    assert (adopted is None) == meanwhile


# -- watching


async def test_a_watch_tells_every_write_in_order_once(api: ClusterApi) -> None:
    watch = await api.watch(["Pod"])
    await api.create(pod("a"))
    await api.create(node("n1"))
    await api.bind("default", "a", "n1")
    await api.delete("Pod", "default", "a", grace_period_s=0)
    events = watch.take()
    assert [(event.type, event.new.name) for event in events] == [
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("MODIFIED", "a"),  # it is being deleted
        ("DELETED", "a"),
    ]
    versions = [event.version for event in events]
    assert versions == sorted(set(versions)) == [event.new.resource_version for event in events]
    assert events[1].old is events[0].new
    assert (list(watch.take()), watch.behind) == ([], False)
    watch.close()


async def test_a_watch_begins_with_what_is_there(api: ClusterApi) -> None:
    await api.create(node("n1"))
    watch = await api.watch(["Node"], with_present=True)
    await api.create(node("n2"))
    assert [event.new.name for event in [*watch.take(), *watch.take()]] == ["n1", "n2"]
    watch.close()


async def test_a_watch_is_taken_up_again_where_it_was_left(api: ClusterApi) -> None:
    watch = await api.watch(["Pod"])
    await api.create(pod("a"))
    assert len(watch.take()) == 1
    left = watch.version
    watch.close()
    await api.create(pod("b"))
    again = await api.watch(["Pod"], left)
    assert [event.new.name for event in again.take()] == ["b"]
    again.close()


async def test_a_watch_from_too_long_ago_is_gone(api: ClusterApi) -> None:
    since = (await api.create(pod("first"))).resource_version
    for number in range(3 * _KEPT):
        await api.create(pod(f"p{number}"))
    with pytest.raises(Gone):
        await api.watch(["Pod"], since)


async def test_a_watcher_is_woken_by_a_write_and_told_the_end(api: ClusterApi) -> None:
    watch = await api.watch(["Pod"])
    await api.create(pod("a"))
    with trio.fail_after(90):
        assert await watch.wait()
        assert len(watch.take()) == 1
        await api.end_watches()
        assert not await watch.wait()
    assert watch.ended


# -- those who know nothing else


class Labelling:
    """A controller that labels every pod that it sees."""

    name = "labelling"
    kinds = frozenset(("Pod",))
    next_deadline = None

    def __init__(self) -> None:
        self.faults: FaultLedger[list[Any]] = FaultLedger(self.name)

    def reconcile(self, events: Any, view: Any, now: float) -> list[Any]:
        found = (view.find("Pod", event.new.namespace, event.new.name) for event in events)
        return [patch_of(obj, {"metadata": {"labels": {"seen": "yes"}}}) for obj in found if obj is not None]

    def refused(self, write: Any, error: ApiError, view: Any, now: float) -> list[Any]:
        return []


async def test_a_controller_works_on_any_of_them(api: ClusterApi) -> None:
    controller: Controller = Labelling()
    watch = await api.watch(controller.kinds, with_present=True)
    await api.create(pod("a"))
    await api.do(lambda cluster: take_turn(controller, watch.take(), cluster))
    assert (await api.get("Pod", "default", "a")).labels == {"seen": "yes"}
    watch.close()
