"""Tests that attempts with cached evaluations have the same results as attempts without.

Nodes, pods and nominations are added, changed and removed in a cluster with two schedulers: one has a cache, the other
evaluates everything anew. Few signatures let most attempts find an entry, and few rows let most changes invalidate a
part of it; the table starts with two rows and the logs hold four changes, so the table grows and the logs overflow;
unused columns of labels and resources are dropped at once. An out-of-tree plugin is among those whose verdicts are
cached.
"""

from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import NodeTable
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw
from kschedd.config.versions.kube_versions import V1_34
from kschedd.framework.handle import Handle
from kschedd.framework.registry import Registry
from kschedd.framework.status import Status, unschedulable
from kschedd.scheduling.attempt.node_search import StartNode
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.attempt.scheduler import Scheduler
from kschedd.scheduling.attempt.ties import by_name
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.filtering import evaluation
from kschedd.scheduling.nominations.nominator import Nominator
from kschedd.scheduling.profiles.profile import build_profile
from tests.full_run import everyday, examples

ZONES = ("a", "b")
SERVICE = Object.from_raw(
    {"kind": "Service", "metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": {"app": "y"}}}
)
TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}
SOFT_TAINT = {"key": "soft", "effect": "PreferNoSchedule"}


def node(number: int, cpu: int, zone: str, taints: list[Any], cordoned: bool) -> Node:
    name = f"n{number}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone, "disk": f"d{number % 2}"}
    allocatable = {"cpu": str(cpu), "memory": "8Gi", "pods": "5", "x.com/a": "1", "x.com/b": str(cpu - 1)}
    return Node.from_raw(
        {
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": taints, "unschedulable": cordoned},
            "status": {"allocatable": allocatable, "images": [{"names": ["i:1"], "sizeBytes": 500 << 20}]},
        }
    )


def _spread(when: str) -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"app": "x"}},
    }


def _apart(strength: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    if strength == "required":
        return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": term}]}


SHAPES: list[dict[str, Any]] = [
    {},
    {"nodeSelector": {"disk": "d1"}},
    {"tolerations": [{"operator": "Exists"}]},
    {"topologySpreadConstraints": [_spread("DoNotSchedule")]},
    {"topologySpreadConstraints": [_spread("ScheduleAnyway")]},
    {"affinity": {"podAntiAffinity": _apart("required")}},
    {"affinity": {"podAntiAffinity": _apart("preferred")}},
    {"ports": True},
    {"asks": {"x.com/a": "1"}},
    {"asks": {"x.com/b": "2", "x.com/none": "0"}},
]


def pod(name: str, shape: int, on: str = "", named: str = "", nominated: str = "") -> Pod:
    """Return a pod of this shape: assigned to a node, with affinity to one node (as a DaemonSet's), or nominated."""
    spec = dict(SHAPES[shape])
    if named:
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [named]}]}
        preferred = [{"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}]
        affinity = {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        }
        spec["affinity"] = {**spec.get("affinity", {}), "nodeAffinity": affinity}
    container: dict[str, Any] = {"name": "c", "image": "i:1", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    asks = spec.pop("asks", {})
    container["resources"]["requests"] |= asks
    if asks:
        container["resources"]["limits"] = asks
    if spec.pop("ports", False):
        container["ports"] = [{"containerPort": 1, "hostPort": 80, "protocol": "TCP"}]
    spec["containers"] = [container]
    if on:
        spec["nodeName"] = on
    meta = {"name": name, "namespace": "default", "uid": name, "labels": {"app": "x" if shape % 2 else "y"}}
    status = {"nominatedNodeName": nominated} if nominated else {}
    return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": spec, "status": status})


class Fussy:
    """An out-of-tree plugin that limits the app's pods per node, and prefers nodes with an odd number of them."""

    name: ClassVar = "Fussy"
    depends_on: ClassVar = frozenset({"node", "pods"})
    most: ClassVar[int] = 2

    def cache_key(self, cluster: SchedulerCache) -> int:
        return Fussy.most

    def filter_rows(self, state: Any, incoming: Pod, table: Any, rows: Any) -> Any:
        app = incoming.labels["app"]
        running = [sum(other.labels.get("app") == app for other in table.pods[row]) for row in rows.tolist()]
        return [1 if count >= Fussy.most else 0 for count in running]

    def code_status(self, state: Any, incoming: Pod, code: int) -> Status:
        return unschedulable(f"more than {Fussy.most}")

    def score_rows(self, state: Any, incoming: Pod, table: Any, rows: Any) -> Any:
        return [len(table.pods[row]) * 10 + int(table.names[row][1:]) % 2 for row in rows.tolist()]


class KeepsOff:
    """A plugin that reads pods: it rejects nodes where a pod is being deleted, and prefers nodes with noted pods."""

    name: ClassVar = "KeepsOff"
    depends_on: ClassVar = frozenset({"pods"})

    def filter_rows(self, state: Any, pod: Pod, table: Any, rows: Any) -> Any:
        return np.array([any(other.deletion_timestamp for other in table.pods[row]) for row in rows], dtype=np.int64)

    def code_status(self, state: Any, pod: Pod, code: int) -> Status:
        return unschedulable("node(s) had a pod that goes")

    def score_rows(self, state: Any, pod: Pod, table: Any, rows: Any) -> Any:
        notes = [sum(len(other.annotations) for other in table.pods[row]) for row in rows]
        return np.minimum(np.array(notes, dtype=np.int64) * 10, 100)


def touched(old: Pod, how: str) -> Pod:
    meta = dict(old.raw["metadata"])
    if how == "deleted":
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    elif how == "noted":
        meta["annotations"] = {} if old.annotations else {"note": "x"}
    else:
        meta["labels"] = {**old.labels, "app": "x" if old.labels["app"] == "y" else "y"}
    return Pod.from_raw({**old.raw, "metadata": meta})


_NAMES = st.integers(0, 5).map("n{}".format)
changes = st.one_of(
    st.tuples(
        st.just("node"),
        st.integers(0, 5),
        st.sampled_from([2, 4]),
        st.sampled_from(ZONES),
        st.lists(st.sampled_from([TAINT, SOFT_TAINT]), max_size=1),
        st.booleans(),
    ),
    st.tuples(st.just("no node"), st.integers(0, 5)),
    st.tuples(st.just("nodes"), st.integers(3, 8), st.booleans()),
    st.tuples(st.just("pod"), st.integers(0, len(SHAPES) - 1), st.integers(0, 5)),
    st.tuples(st.just("no pod"), st.integers(0, 30)),
    st.tuples(st.just("nominate"), st.integers(0, len(SHAPES) - 1), _NAMES),
    st.tuples(st.just("nominate itself"), st.integers(0, len(SHAPES) - 1), _NAMES),
    st.tuples(st.just("most"), st.integers(1, 3)),
    st.tuples(st.just("service"), st.booleans()),
    st.tuples(st.just("touch"), st.integers(0, 30), st.sampled_from(["deleted", "noted", "relabelled"])),
)
attempts = st.one_of(
    st.tuples(st.integers(0, len(SHAPES) - 1), st.just(""), st.just("")),
    st.tuples(st.integers(0, 3), _NAMES, st.one_of(st.just(""), _NAMES)),
)


def scheduler(cluster: SchedulerCache, cached: bool, *added: type[Any]) -> Scheduler:
    registry = Registry({cls.name: cls for cls in added})
    enabled = [{"name": cls.name, "weight": 7} for cls in added]
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": enabled}}}],
    }
    config = config_from_raw(raw, catalogue={**IN_TREE, **registry.catalogue()}, version=V1_34)
    running = build_profile(config, config.profiles[0], registry, Handle(cluster, rules=V1_34.default_rules))
    return Scheduler(running, cluster, by_name, StartNode(), cached)


def small_cluster() -> SchedulerCache:
    """Return a cluster whose table grows and whose logs overflow soon."""
    cluster = SchedulerCache(NodeTable(capacity=2))
    cluster.versions.nodes.limit = cluster.versions.pods.limit = 4
    cluster.table.most_labels, cluster.table.most_resources = 2, 3
    return cluster


def outcome(result: ScheduleResult | FitError) -> Any:
    if isinstance(result, FitError):
        return result.message, result.diagnosis.unschedulable_plugins, result.nominated_node
    totals = None if result.totals is None else result.totals.tolist()
    answer = [(name, status) for name, status in result.verdicts.by_node() if status is not None]
    return result.node_name, result.feasible.tolist(), totals, result.visited, answer


class Trial:
    """A cluster, a scheduler with a cache, and one without."""

    def __init__(self, *added: type[Any]) -> None:
        Fussy.most = 2
        self.cluster = small_cluster()
        self.plain = scheduler(self.cluster, False, *added)
        self.with_cache = scheduler(self.cluster, True, *added)
        self.placed: list[Pod] = []
        self.nominator = Nominator()
        self.tried: list[Pod] = []  # a signature is kept as long as a pod has it

    def change(self, number: int, change: Any) -> None:
        cluster, placed = self.cluster, self.placed
        match change:
            case ("node", place, cpu, zone, taints, cordoned):
                cluster.put_node(node(place, cpu, zone, taints, cordoned))
            case ("no node", place):
                cluster.remove_node(f"n{place}")
            case ("nodes", many, cordoned):
                for place in range(6, 6 + many):
                    cluster.put_node(node(place, 2, "b", [], cordoned))
            case ("pod", shape, place):
                placed.append(pod(f"p{number}", shape, on=f"n{place}"))
                cluster.put_pod(placed[-1])
            case ("no pod", place) if placed:
                cluster.remove_pod(placed.pop(place % len(placed)))
            case ("nominate", shape, name):
                others = self.nominator.on_node(name)
                if len(others) < 2:
                    self.nominator.add(pod(f"w{number}", shape, "", "", name))
                for other in others[1:]:
                    self.nominator.remove(other)
            case ("nominate itself", shape, name):
                # `incoming` of the next attempt, which does not count its nomination.
                self.nominator.add(pod(f"i{number}", shape, "", "", name))
            case ("touch", place, how) if placed:
                placed[place % len(placed)] = touched(placed[place % len(placed)], how)
                cluster.put_pod(placed[place % len(placed)])
            case ("service", there):
                (cluster.put if there else cluster.remove)(SERVICE)
            case ("most", most):
                Fussy.most = most
        cluster.table.trim()  # as the driver does

    def attempt(self, incoming: Pod) -> ScheduleResult | FitError:
        self.tried.append(incoming)
        start = self.plain.start.index
        expected: ScheduleResult | FitError = drive(self.plain.attempt(incoming, self.nominator.by_node()))
        for _ in range(2):
            self.with_cache.start.index = start
            assert outcome(drive(self.with_cache.attempt(incoming, self.nominator.nominated))) == outcome(expected)
        return expected


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(changes, attempts), min_size=6, max_size=30), st.sampled_from([(), (Fussy,), (KeepsOff,)]))
def test_what_is_cached_is_what_the_plugins_say(script: list[Any], added: tuple[type[Any], ...]) -> None:
    """After each change, try a pod of a random signature, and pods of three fixed signatures."""
    trial = Trial(*added)
    trial.change(0, ("node", 0, 4, "a", [], False))
    for number, (change, (shape, named, nominated)) in enumerate(script, 1):
        trial.change(number, change)
        for always in (0, 3, 6):
            trial.attempt(pod(f"a{number}-{always}", always))
        incoming = pod(f"i{number}", shape, "", named, nominated)
        result = trial.attempt(incoming)
        if isinstance(result, ScheduleResult) and number % 3 == 0:
            trial.placed.append(trial.cluster.assume(incoming, result.node_name))


@pytest.mark.parametrize("how", ["deleted", "noted"])
def test_a_failed_search_is_not_the_same_once_a_pod_has_changed(how: str) -> None:
    cluster = SchedulerCache()
    machine = scheduler(cluster, True, KeepsOff)
    cluster.put_node(node(0, 4, "a", [], False))
    there = touched(pod("there", 0, on="n0"), how)
    cluster.put_pod(there)
    outcomes = []
    for _ in range(3):
        outcomes.append(drive(machine.attempt(pod("p", 0), {})))
    changed = Pod.from_raw({**there.raw, "metadata": {**there.raw["metadata"], "deletionTimestamp": None}})
    changed = changed if how == "deleted" else touched(changed, "deleted")
    cluster.put_pod(changed)
    outcomes.append(drive(machine.attempt(pod("p", 0), {})))
    kinds = [type(result) for result in outcomes]
    assert kinds == (
        [FitError, FitError, FitError, ScheduleResult]
        if how == "deleted"
        else [ScheduleResult, ScheduleResult, ScheduleResult, FitError]
    )


@pytest.mark.parametrize("shape", range(len(SHAPES)))
def test_a_stream_of_one_signature_is_placed_as_without_a_cache(shape: int) -> None:
    def run(cached: bool) -> list[str]:
        cluster = SchedulerCache()
        for number in range(300):
            cluster.put_node(node(number, 4, ZONES[number % 2], [TAINT] if number % 7 == 0 else [], number % 11 == 0))
        machine = scheduler(cluster, cached)
        chosen = []
        for number in range(150):
            result = drive(machine.attempt(pod(f"p{number}", shape), {}))
            chosen.append(result.node_name if isinstance(result, ScheduleResult) else result.message)
            if isinstance(result, ScheduleResult):
                cluster.assume(result.pod, result.node_name)
        return chosen

    assert run(True) == run(False)


@pytest.mark.parametrize("shape", range(len(SHAPES)))
def test_pods_that_name_their_nodes_are_placed_as_without_a_cache(shape: int) -> None:
    def run(cached: bool) -> list[str]:
        cluster = SchedulerCache()
        for number in range(40):
            cluster.put_node(node(number, 4, ZONES[number % 2], [TAINT] if number % 7 == 0 else [], number % 11 == 0))
        machine = scheduler(cluster, cached)
        chosen = []
        for number in range(120):
            # Every third pod was nominated to a node that its affinity does not name.
            nominated = f"n{(number + 1) % 40}" if number % 3 == 0 else ""
            daemon = pod(f"p{number}", shape, "", f"n{number % 45}", nominated)
            result = drive(machine.attempt(daemon, {}))
            chosen.append(result.node_name if isinstance(result, ScheduleResult) else result.message)
            if isinstance(result, ScheduleResult):
                cluster.assume(result.pod, result.node_name)
        return chosen

    found = run(True)
    assert found == run(False)
    assert any(name == "n1" for name in found)


# -- windows of a large cluster -----------------------------------------------------------------------------------

_NODES = 700


def _with_few_wanted(machine: Scheduler) -> Scheduler:
    machine.profile.percentage = 15
    return machine


class _Stream:
    """A cluster of 700 nodes, of which a search needs 105, and two schedulers that place the same pods."""

    def __init__(self, *, cpu: int = 4, soft: bool = False) -> None:
        self.cluster = SchedulerCache()
        for number in range(_NODES):
            taints = [TAINT] if number % 7 == 0 else [SOFT_TAINT] if soft and number % 3 == 0 else []
            self.cluster.put_node(node(number, cpu, ZONES[number % 2], taints, number % 11 == 0))
        self.plain = _with_few_wanted(scheduler(self.cluster, False))
        self.cached = _with_few_wanted(scheduler(self.cluster, True))
        self.placed: list[Pod] = []

    def place(self, shape: int) -> None:
        incoming = pod(f"p{len(self.placed)}", shape)
        expected: ScheduleResult | FitError = drive(self.plain.attempt(incoming, {}))
        result: ScheduleResult | FitError = drive(self.cached.attempt(incoming, {}))
        assert outcome(result) == outcome(expected)
        assert self.cached.start.index == self.plain.start.index
        if isinstance(result, ScheduleResult):
            self.placed.append(self.cluster.assume(incoming, result.node_name))


@pytest.mark.parametrize(
    "shapes",
    [[0], [2], [0, 2], [0, 0, 1], [3], [4], [5], [6], [0, 3], [1, 5], [3, 5]],
    ids=lambda shapes: "-".join(map(str, shapes)),
)
@pytest.mark.parametrize("soft", [False, True], ids=["plain", "normalized"])
def test_streams_are_placed_as_without(shapes: list[int], soft: bool) -> None:
    stream = _Stream(soft=soft)
    for number in range(40):
        stream.place(shapes[number % len(shapes)])
    assert len(stream.placed) > 20


@pytest.mark.parametrize("shape", [0, 3, 4, 5])
@pytest.mark.parametrize("every", everyday([1, 6], lambda number: number == 1))
@pytest.mark.parametrize("change", ["pod gone", "pod come", "pod noted", "node tainted", "node gone", "node come"])
def test_what_changes_in_the_next_window_is_seen(change: str, every: int, shape: int) -> None:
    stream = _Stream()
    cluster = stream.cluster
    for number in range(36):
        stream.place(shape)
        if number % every:
            continue
        ahead = (stream.plain.start.index + 37) % _NODES  # within the next window
        match change:
            case "pod gone":
                there = cluster.table.pods[ahead]
                cluster.remove_pod(there[0] if there else stream.placed[number // 2])
            case "pod come":
                cluster.put_pod(pod(f"c{number}", shape, on=cluster.table.names[ahead]))
            case "pod noted":
                cluster.put_pod(touched(stream.placed[-1], "deleted" if number % 2 else "noted"))
            case "node tainted":
                cluster.put_node(node(ahead, 4, ZONES[ahead % 2], [TAINT], False))
            case "node gone":
                cluster.remove_node(f"n{ahead}")
            case "node come":
                cluster.put_node(node(_NODES + number, 4, "a", [], False))


def test_nodes_that_are_full_are_passed_over() -> None:
    stream = _Stream(cpu=1)
    for number in range(_NODES):
        if number % 5:
            stream.cluster.put_pod(pod(f"there{number}", 0, on=f"n{number}"))
    for _ in range(_NODES // 5):
        stream.place(0)
    assert isinstance(drive(stream.cached.attempt(pod("late", 0), {})), FitError)
    assert len(stream.placed) > 100


# -- classes that share the verdicts on Node objects --------------------------------------------------------------


def of_its_own_kind(pod: Pod) -> Pod:
    return Pod.from_raw({**pod.raw, "metadata": {**pod.raw["metadata"], "labels": {**pod.labels, "pod": pod.name}}})


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.tuples(changes, st.sampled_from([0, 1, 2, 3, 5])), min_size=6, max_size=30),
    st.sampled_from([(), (Fussy,)]),
)
def test_what_is_kept_by_key_is_what_the_filters_say(script: list[Any], added: tuple[type[Any], ...]) -> None:
    trial = Trial(*added)
    trial.change(0, ("node", 0, 4, "a", [], False))
    for number, (change, shape) in enumerate(script, 1):
        trial.change(number, change)
        for always in (0, 1, 2, shape):
            incoming = of_its_own_kind(pod(f"a{number}-{always}", always))
            result = trial.attempt(incoming)
        if isinstance(result, ScheduleResult) and number % 3 == 0:
            trial.placed.append(trial.cluster.assume(incoming, result.node_name))


@pytest.mark.parametrize(
    "most", everyday([1, 256], lambda most: most == 1), ids=["entries-are-dropped", "all-are-kept"]
)
def test_a_stream_of_pods_of_kinds_of_their_own_is_placed_as_without(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster has more nodes than one search visits.

    Each search starts after the last visited node, and wraps around, until no node has room.
    """
    monkeypatch.setattr(evaluation, "_MOST", most)
    monkeypatch.setattr(evaluation, "_FEWEST", 1)

    def run(cached: bool) -> list[Any]:
        cluster = SchedulerCache()
        for number in range(300):
            cluster.put_node(node(number, 2, ZONES[number % 2], [TAINT] if number % 7 == 0 else [], number % 11 == 0))
        machine = scheduler(cluster, cached)
        outcomes = []
        for number in range(700):
            incoming = of_its_own_kind(pod(f"p{number}", (0, 1, 2, 3, 8)[number % 5]))
            result = drive(machine.attempt(incoming, {}))
            outcomes.append((*outcome(result), machine.start.index))
            if isinstance(result, ScheduleResult):
                cluster.assume(incoming, result.node_name)
            if number == 400:
                cluster.put_node(node(1, 8, "a", [TAINT], False))
                cluster.remove_node("n2")
        return outcomes

    found = run(True)
    assert found == run(False)
    assert len({len(one) for one in found}) == 2, "some found a node and some did not"
