"""Tests that a controller does little work between two pauses, however many objects there are."""

import sys
from collections.abc import Callable, Generator
from functools import cache, partial
from types import FrameType
from typing import Any, Final

import pytest

from kschedd.controllers.garbage import GarbageCollector
from kschedd.controllers.jobs.jobs import Jobs
from kschedd.controllers.runner import ControllerRunner
from kschedd.controllers.running.controller import Controller
from kschedd.controllers.running.turns import concerning, turn_in_steps
from kschedd.controllers.workloads.replicasets import ReplicaSets
from kschedd.store.store import Store
from tests.store.manifests import Clock, workload

MANY: Final = 1_500
MOST_CALLS: Final = 5_000  # maximum number of function calls in a step; MANY pods in one step would need 10,000 or more


class Steps:
    """Counts the function calls between two pauses."""

    def __init__(self) -> None:
        self.longest = self._calls = 0

    def run(self, steps: Generator[None, None, Any]) -> None:
        before = sys.getprofile()
        sys.setprofile(self._count)
        try:
            for _ in steps:
                self.longest, self._calls = max(self.longest, self._calls), 0
        finally:
            sys.setprofile(before)
        self.longest = max(self.longest, self._calls)

    def _count(self, frame: FrameType, event: str, arg: object) -> None:
        self._calls += event == "call"


@cache
def many_pods(kind: str) -> Store:
    """Return a store with a workload whose pods are created, scheduled and ready."""
    store = Store(now=Clock())
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "busy"}})
    made = workload(kind, "web", replicas=MANY)
    made["metadata"]["namespace"] = "busy"
    if kind == "Job":
        made["apiVersion"] = "batch/v1"
        made["spec"]["template"]["spec"]["restartPolicy"] = "Never"
        made["spec"] = {"parallelism": MANY, "completions": MANY, "template": made["spec"]["template"]}
    store.create(made)
    ControllerRunner(store, [ReplicaSets(), Jobs()]).run_until_idle()
    for number, each in enumerate(store.list("Pod")):
        store.bind("busy", each.name, f"n{number % 10}")
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}
        store.patch_status("Pod", "busy", each.name, {"phase": "Running", "conditions": [ready]})
    assert store.count("Pod") == MANY
    return store


def fewer(store: Store, kind: str, **spec: Any) -> None:
    store.merge_patch(kind, "busy", "web", {"spec": spec})


def deleted(store: Store, kind: str, **more: Any) -> None:
    store.delete(kind, "busy", "web", **more)


def emptied(store: Store) -> None:
    store.delete("Namespace", "", "busy")


@pytest.mark.parametrize(
    ("controller", "kind", "change"),
    [
        pytest.param(ReplicaSets, "ReplicaSet", partial(fewer, kind="ReplicaSet", replicas=1), id="ReplicaSet-fewer"),
        pytest.param(Jobs, "Job", partial(fewer, kind="Job", parallelism=1), id="Job-fewer"),
        pytest.param(Jobs, "Job", partial(fewer, kind="Job", suspend=True), id="Job-suspended"),
        pytest.param(Jobs, "Job", partial(deleted, kind="Job"), id="Job-deleted"),
        pytest.param(GarbageCollector, "ReplicaSet", partial(deleted, kind="ReplicaSet"), id="owner-deleted"),
        pytest.param(
            GarbageCollector,
            "ReplicaSet",
            partial(deleted, kind="ReplicaSet", propagation="Foreground"),
            id="owner-deleted-in-foreground",
        ),
        pytest.param(
            GarbageCollector,
            "ReplicaSet",
            partial(deleted, kind="ReplicaSet", propagation="Orphan"),
            id="dependents-orphaned",
        ),
        pytest.param(GarbageCollector, "ReplicaSet", emptied, id="namespace-emptied"),
    ],
)
def test_no_step_goes_through_all_pods(
    controller: Callable[[], Controller], kind: str, change: Callable[[Store], None]
) -> None:
    store, steps, acts = many_pods(kind).fork(), Steps(), controller()
    ControllerRunner(store, [acts]).run_until_idle()
    seen = store.version
    change(store)
    events = concerning(acts, store.written_after(seen))
    before = store.version
    steps.run(turn_in_steps(acts, events, store))
    assert store.version - before >= min(MANY // 3, 500), "there was something to do for many pods"
    assert steps.longest < MOST_CALLS
