"""Tests that a fork's changes apply to the store unless the fork is stale, and that lists are sorted in slices."""

from collections.abc import Generator
from typing import Any, TypeVar

import pytest

from kschedd.store.errors import StillToCome, TooLarge
from kschedd.store.objects.listing import in_order
from kschedd.store.store import Store
from tests.actors.clusters import node, pod

T = TypeVar("T")


def driven(work: Generator[None, None, T]) -> tuple[T, int]:
    """Run the generator and return its result and the number of yields."""
    left = 0
    while True:
        try:
            next(work)
        except StopIteration as done:
            return done.value, left
        left += 1


@pytest.fixture
def store() -> Store:
    return Store(now=lambda: 0.0, seed=3)


def space(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def test_what_became_of_a_fork_becomes_of_the_store(store: Store) -> None:
    old = store.create(pod("old"))
    store.create(pod("gone"))
    fork = store.fork()
    since = fork.version
    fork.create(space("team"))
    fork.create(pod("new", namespace="team"))
    fork.merge_patch("Pod", "default", "old", {"metadata": {"labels": {"a": "b"}}})
    fork.delete("Pod", "default", "gone")
    fork.create(pod("short"))
    fork.delete("Pod", "default", "short")
    assert store.version == since
    store.create(pod("other"))  # a write of another client that does not conflict
    adopted, left = driven(store.adopt(fork.changes_since(since)))
    assert adopted is not None
    assert left == 4
    assert [obj.name for obj in store.list("Pod")] == ["old", "other", "new"]
    assert store.get("Pod", "default", "old").labels == {"a": "b"}
    assert store.get("Pod", "default", "old").uid == old.uid
    made = store.get("Pod", "team", "new")
    assert (made.raw["metadata"]["uid"], made.raw["metadata"]["resourceVersion"]) == (
        made.uid,
        str(made.resource_version),
    )
    assert [event.version for event in store.watch(None, since).take()] == list(range(since + 1, store.version + 1))


def test_two_forks_of_one_moment_do_not_give_two_objects_one_uid(store: Store) -> None:
    forks = [store.fork(), store.fork()]
    since = store.version
    for fork, name in zip(forks, "ab", strict=True):
        fork.create(pod(name))
    for fork in forks:
        driven(store.adopt(fork.changes_since(since)))
    assert len({obj.uid for obj in store.list("Pod")}) == 2


@pytest.mark.parametrize(
    "labels", [pytest.param({}, id="labels-of-its-own-pods"), pytest.param({"a": "b"}, id="labels-of-its-own")]
)
def test_a_job_that_gets_another_uid_than_in_the_fork_selects_pods_by_that_one(store: Store, labels: Any) -> None:
    store.create(pod("other"))
    fork = store.fork()
    since = fork.version
    of_pods = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    meta = {"name": "once", "labels": labels}
    fork.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": of_pods}})
    driven(store.adopt(fork.changes_since(since)))
    job = store.get("Job", "default", "once")
    assert job.uid != fork.get("Job", "default", "once").uid
    assert job.spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": job.uid}}
    generated = {"batch.kubernetes.io/controller-uid": job.uid, "controller-uid": job.uid}
    assert job.spec["template"]["metadata"]["labels"].items() >= generated.items()
    assert job.labels == job.metadata["labels"] == (labels or job.spec["template"]["metadata"]["labels"])
    store.merge_patch("Job", "default", "once", {"metadata": {"annotations": {"is": "valid"}}})


@pytest.mark.parametrize(
    "meanwhile",
    [
        pytest.param(lambda store: store.create(pod("a")), id="the-same-object"),
        pytest.param(lambda store: store.create(space("team")), id="what-admission-reads"),
    ],
)
def test_what_is_stale_is_not_taken_over(store: Store, meanwhile: Any) -> None:
    fork = store.fork()
    since = fork.version
    fork.create(pod("a"))
    meanwhile(store)
    version = store.version
    assert driven(store.adopt(fork.changes_since(since))) == (None, 0)
    assert store.version == version


def service(name: str) -> dict[str, Any]:
    spec = {"type": "NodePort", "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def test_two_services_never_get_one_address(store: Store) -> None:
    forks = [store.fork(), store.fork()]
    since = store.version
    for fork, name in zip(forks, "ab", strict=True):
        fork.create(service(name))
    assert driven(store.adopt(forks[0].changes_since(since)))[0] is not None
    assert driven(store.adopt(forks[1].changes_since(since)))[0] is None


def test_a_service_is_no_matter_to_what_is_none(store: Store) -> None:
    fork = store.fork()
    since = fork.version
    fork.create(pod("a"))
    store.create(service("s"))
    assert driven(store.adopt(fork.changes_since(since)))[0] is not None


def test_many_changes_are_looked_through_before_any_is_done_and_that_can_be_left_as_well(store: Store) -> None:
    fork = store.fork()
    since = fork.version
    for number in range(3_000):
        fork.create(node(f"n{number}"))
    before = store.version
    work = store.adopt(fork.changes_since(since))
    for _ in range(3):
        next(work)
    assert store.version == before
    adopted, left = driven(work)
    assert adopted is not None
    assert len(adopted) == left == 3_000


def test_a_list_is_in_order_and_can_be_left_in_between(store: Store) -> None:
    for number in range(12_000):
        store.create(node(f"n{number * 7919 % 12_000}"))
    found, left = driven(in_order(store.present("Node")))
    assert [obj.name for obj in found] == [obj.name for obj in store.list("Node")]
    assert left >= 3 + 12


def test_objects_larger_than_the_limit_are_refused_whatever_makes_them_so(store: Store) -> None:
    store.max_object_bytes = 20_000
    long = {"metadata": {"annotations": {"a": "x" * 20_000}}}
    store.create(pod("a"))
    with pytest.raises(TooLarge):
        store.merge_patch("Pod", "default", "a", long)
    with pytest.raises(TooLarge):
        store.create({**pod("b"), "metadata": {"name": "b", **long["metadata"]}})
    with pytest.raises(TooLarge):
        store.create(pod("c", nodeSelector={f"k{number}": "v" for number in range(3_000)}))
    with pytest.raises(TooLarge):
        store.patch_status("Pod", "default", "a", {"message": "x" * 20_000})
    with pytest.raises(TooLarge):
        store.create({**node("n"), "metadata": {"name": "n", **long["metadata"]}})


def test_a_watch_from_a_version_still_to_come_is_refused(store: Store) -> None:
    with pytest.raises(StillToCome, match=f"Too large resource version: 99, current: {store.version}"):
        store.watch(None, 99)
