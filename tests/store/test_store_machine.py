"""Tests that after any writes in any order, versions grow by one, watches are complete, and conflicts are detected."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kschedd.api.pods import Pod
from kschedd.store.errors import AlreadyExists, ApiError, Conflict, NotFound
from kschedd.store.objects.log import ADDED, DELETED, Cursor
from kschedd.store.store import Store
from kschedd.store.writes import Bind
from tests.store.manifests import Clock, config_map, node, pod

names = st.sampled_from(["a", "b", "c"])
kinds = st.sampled_from(["Pod", "Node", "ConfigMap"])
State = dict[tuple[str, str, str], Any]


def manifest(kind: str, name: str) -> dict[str, Any]:
    return {"Pod": pod, "Node": node, "ConfigMap": config_map}[kind](name)


def space(kind: str) -> str:
    return "" if kind == "Node" else "default"


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.store = Store(now=self.clock, seed=3)
        self.watches: list[tuple[State, Cursor]] = []
        self.version = self.store.version
        self.seen: dict[tuple[str, str], dict[str, Any]] = {}

    @initialize()
    def watch_from_the_beginning(self) -> None:
        self.watches.append(({}, self.store.watch(None, 0)))

    def state(self) -> State:
        return {
            (obj.kind, obj.namespace, obj.name): obj.raw for kind in self.store.kinds() for obj in self.store.list(kind)
        }

    @rule(kind=kinds, name=names)
    def create(self, kind: str, name: str) -> None:
        there = self.store.find(kind, space(kind), name)
        try:
            made = self.store.create(manifest(kind, name))
        except AlreadyExists:
            assert there is not None
        else:
            assert there is None
            self.seen[kind, name] = dict(made.raw)

    @rule(kind=kinds, name=names, label=st.sampled_from(["x", "y"]))
    def update_what_was_once_read(self, kind: str, name: str, label: str) -> None:
        read = self.seen.get((kind, name))
        if read is None:
            return
        current = self.store.find(kind, space(kind), name)
        meta = {**read["metadata"], "labels": {"l": label}}
        try:
            changed = self.store.update({**read, "metadata": meta})
        except NotFound:
            assert current is None
        except Conflict:
            assert current is not None
            assert current.metadata["resourceVersion"] != meta["resourceVersion"]
        else:
            assert current is not None
            assert current.metadata["resourceVersion"] == meta["resourceVersion"]
            assert changed.labels == {"l": label}

    @rule(kind=kinds, name=names)
    def read(self, kind: str, name: str) -> None:
        found = self.store.find(kind, space(kind), name)
        if found is not None:
            self.seen[kind, name] = dict(found.raw)

    @rule(name=names, phase=st.sampled_from(["Running", "Succeeded"]))
    def report(self, name: str, phase: str) -> None:
        if self.store.find("Pod", "default", name):
            self.store.patch_status("Pod", "default", name, {"phase": phase})

    @rule(name=names, node_name=names)
    def bind(self, name: str, node_name: str) -> None:
        before = self.store.find("Pod", "default", name)
        (refusal,) = self.store.bind_many([Bind("default", name, "", node_name)])
        if refusal is not None:
            assert isinstance(refusal, ApiError)
            assert not isinstance(before, Pod) or before.node_name or before.deleting
        else:
            assert isinstance(before, Pod)
            assert not before.node_name

    @rule(kind=kinds, name=names, grace=st.sampled_from([None, 0, 5]))
    def delete(self, kind: str, name: str, grace: int | None) -> None:
        if self.store.find(kind, space(kind), name):
            self.store.delete(kind, space(kind), name, grace_period_s=grace)

    @rule()
    def watch_from_here(self) -> None:
        self.watches.append((self.state(), self.store.watch(None, self.store.version)))

    @rule(back=st.integers(0, 20))
    def watch_from_a_while_ago(self, back: int) -> None:
        """Start a watch from an earlier version.

        The list at that version is no longer available, so the events before it are replayed instead.
        """
        since = max(0, self.store.version - back)
        past: State = {}
        start = self.store.watch(None, 0)
        replay(past, start, since)
        self.watches.append((past, self.store.watch(None, since)))

    @rule()
    def take(self) -> None:
        for state, cursor in self.watches:
            replay(state, cursor, None)
            assert state == self.state()

    @rule(seconds=st.integers(1, 100))
    def time_passes(self, seconds: int) -> None:
        self.clock.now += seconds

    @invariant()
    def versions_only_grow(self) -> None:
        assert self.store.version >= self.version
        self.version = self.store.version

    @invariant()
    def the_index_of_nodes_agrees_with_the_pods(self) -> None:
        pods = [p for p in self.store.list("Pod") if isinstance(p, Pod)]
        for name in ("a", "b", "c"):
            on_it = sorted(p.name for p in self.store.pods_on(name))
            assert on_it == sorted(p.name for p in pods if p.node_name == name)


def replay(state: State, cursor: Cursor, until: int | None) -> None:
    """Apply the events up to a version to `state`, and check that they are consistent with it."""
    limit = None if until is None else until - cursor.version
    before = cursor.version
    for event in cursor.take(limit):
        key = (event.new.kind, event.new.namespace, event.new.name)
        assert event.version == event.new.resource_version == before + 1
        before = event.version
        if event.type == ADDED:
            assert key not in state
        else:
            assert event.old is not None
            assert state[key] == event.old.raw
        if event.type == DELETED:
            del state[key]
        else:
            state[key] = event.new.raw


StoreMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestStore = StoreMachine.TestCase
