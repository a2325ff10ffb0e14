"""Explaining works on a fork: whatever is explained, the live cluster stays as it is, bit for bit."""

import random
from collections import OrderedDict
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedd.answers import plain
from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod, PodSignature
from kschedd.api.selecting.selectors import parse_label_selector
from kschedd.api.selecting.terms import PodAffinityTerm
from kschedd.cache.counts import PodMatcher, pod_matcher, spread_matcher
from kschedd.cache.forked_counts import ForkedCounts
from kschedd.explain.explain import begin, explain, finish
from kschedd.explain.fork import fork_for, scheduler_on
from kschedd.simulation.engine import Engine

ZONE = "topology.kubernetes.io/zone"
_NOT_X = {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x"]}]}
_VALUES = (str, int, float, bool, type(None), bytes, Object, PodSignature)


def state(held: Any, seen: dict[int, Any] | None = None) -> Any:
    """All that can be reached from here in plain values: columns as bytes, containers in their order."""
    seen = {} if seen is None else seen
    if isinstance(held, _VALUES):
        return held
    if id(held) in seen:
        return ("again", seen[id(held)])
    seen[id(held)] = len(seen)
    if isinstance(held, np.ndarray):
        return str(held.dtype), held.shape, held.tobytes()
    if isinstance(held, dict | OrderedDict):
        return [(key, state(value, seen)) for key, value in held.items()]
    if isinstance(held, list | tuple):
        return [state(value, seen) for value in held]
    if isinstance(held, set | frozenset):
        return frozenset(held)
    if attrs.has(type(held)):
        return type(held).__name__, [
            (each.name, state(getattr(held, each.name), seen)) for each in attrs.fields(type(held))
        ]
    if hasattr(held, "__dict__"):
        # Which lists of pods a fork shares is no state: they are copied before they are changed.
        held_by_name = [(name, state(value, seen)) for name, value in vars(held).items() if name != "_shared"]
        return type(held).__name__, held_by_name
    return held


def node(name: str, zone: str, pick: random.Random) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, ZONE: zone}},
        "spec": {"taints": [{"key": "odd", "effect": "NoSchedule"}]} if pick.random() < 0.2 else {},
        "status": {
            "allocatable": {
                "example.com/gpu": "1",
                "cpu": str(pick.choice((1, 2, 4))),
                "memory": "4Gi",
                "pods": str(pick.choice((2, 10))),
            },
            "conditions": [{"type": "Ready", "status": "True"}],
            "images": [{"names": [f"app:{pick.randrange(3)}"], "sizeBytes": 1 << 28}],
        },
    }


def pod(name: str, pick: random.Random) -> Any:
    app = pick.choice("xyz")
    spec: dict[str, Any] = {
        "containers": [
            {
                "name": "c",
                "image": f"app:{pick.randrange(3)}",
                "resources": {"requests": {"cpu": f"{pick.choice((100, 500, 1500))}m", "memory": "256Mi"}},
                "ports": [{"containerPort": 80, "hostPort": 80}] if pick.random() < 0.2 else [],
            }
        ],
        "priority": 0,
    }
    term = {"labelSelector": {"matchLabels": {"app": pick.choice("xyz")}}, "topologyKey": ZONE}
    if pick.random() < 0.3:
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    elif pick.random() < 0.3:
        weighted = [{"weight": 5, "podAffinityTerm": term}]
        spec["affinity"] = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}
    if pick.random() < 0.3:
        selector = {"matchLabels": {"app": app}}
        spec["topologySpreadConstraints"] = [
            {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
        ]
    if pick.random() < 0.2:
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": pick.choice("pq")}}]
    del spec["priority"]
    meta = {"name": name, "namespace": "default", "labels": {"app": app}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def cluster(seed: int) -> Engine:
    pick = random.Random(seed)
    engine = Engine(seed=seed)
    for number in range(pick.randint(1, 6)):
        engine.store.create(node(f"n{number}", pick.choice("ab"), pick))
    for number in range(pick.randint(1, 20)):
        engine.store.create(pod(f"p{number}", pick))
        engine.run_until_idle()
    for obj in list(engine.store.list("Pod"))[: pick.randint(0, 2)]:
        engine.store.delete("Pod", "default", obj.name, grace_period_s=pick.choice((0, 30)))
    engine.run_until_idle()
    return engine


def pods(engine: Engine) -> list[Pod]:
    return [obj for obj in engine.store.list("Pod") if isinstance(obj, Pod)]


@given(st.integers(min_value=0, max_value=2**32))
@settings(max_examples=20, deadline=None)
def test_no_explanation_changes_anything(seed: int) -> None:
    engine = cluster(seed)
    live = engine.machine.cluster
    table, counts = state(live.table), state(live.counts)
    rest = state([live.objects, live._pods, live._marked_deleted, live._pods_of_unknown_nodes])
    shared = state(list(engine.machine.handle._shared.values()))
    for each in pods(engine):
        plain(explain(engine.machine, each, engine.driver.nominator.by_node()))
        assert state(live.table) == table
        assert state(live.counts) == counts
        assert state([live.objects, live._pods, live._marked_deleted, live._pods_of_unknown_nodes]) == rest
        assert state(list(engine.machine.handle._shared.values())) == shared


@given(st.integers(min_value=0, max_value=2**32))
@settings(max_examples=20, deadline=None)
def test_a_forks_counts_and_columns_are_those_of_the_cluster(seed: int) -> None:
    engine = cluster(seed)
    live, fork = engine.machine.cluster, engine.machine.cluster.fork()
    assert isinstance(fork.counts, ForkedCounts)
    fork.counts.recount()
    for column in ("allocatable", "requested", "nonzero", "pod_count", "alive", "taints"):
        assert getattr(fork.table, column).tobytes() == getattr(live.table, column).tobytes()
    assert [[each.uid for each in row] for row in fork.table.pods] == [[p.uid for p in row] for row in live.table.pods]
    assert (fork.table.ports, fork.table.claims) == (live.table.ports, live.table.claims)

    def existing_terms(counts: Any) -> Any:
        return {
            key: (term.carriers, term.count.by_row, term.weight.by_row) for key, term in counts.existing_terms.items()
        }

    selectors = [parse_label_selector(raw) for raw in ({"matchLabels": {"app": "x"}}, _NOT_X, {})]
    terms = [PodAffinityTerm(selector, ZONE, frozenset(("default",)), None) for selector in selectors]
    for kind in (PodMatcher((term,), live=only_live) for term in terms for only_live in (True, False)):
        assert fork.counts.matching(kind).by_row == live.counts.matching(kind).by_row
    assert existing_terms(fork.counts) == existing_terms(live.counts)


@given(st.integers(min_value=0, max_value=2**32))
@settings(max_examples=20, deadline=None)
def test_a_pod_that_has_a_node_is_judged_as_in_a_cluster_without_it(seed: int) -> None:
    engine = cluster(seed)
    placed = [each for each in pods(engine) if each.node_name and not each.deletion_timestamp]
    if not placed:
        return
    chosen = placed[seed % len(placed)]
    found = plain(explain(engine.machine, chosen, {}))
    assert found["as_if_absent"]
    engine.machine.cluster.remove_pod(chosen)
    without = plain(explain(engine.machine, attrs.evolve(chosen, node_name=""), {}))
    for part in ("verdicts", "scores", "totals", "ties", "message", "search"):
        assert found[part] == without[part]


def test_an_explanation_is_of_the_moment_when_it_began() -> None:
    engine = cluster(1)
    (first, *others) = pods(engine)
    expected = plain(explain(engine.machine, first, {}))
    fork = begin(engine.machine, first, {})
    for each in others:
        engine.store.delete("Pod", "default", each.name, grace_period_s=0)
    engine.store.delete("Node", "", engine.store.list("Node")[0].name)
    engine.store.create(node("late", "a", random.Random(1)))
    engine.run_until_idle()
    assert plain(finish(fork)) == expected


@pytest.mark.parametrize("uid", ["", "never-seen"])
def test_a_pod_that_is_not_there_is_nowhere_in_the_fork_either(uid: str) -> None:
    engine = cluster(1)
    stranger = Pod.from_raw(
        pod("stranger", random.Random(1)) | {"metadata": {"name": "s", "namespace": "d", "uid": uid}}
    )
    fork = fork_for(engine.machine, stranger, {})
    assert fork.known is None
    assert scheduler_on(fork).cluster.pod_count == engine.machine.cluster.pod_count


def changeable(held: Any, found: dict[int, Any]) -> dict[int, Any]:
    """All that can be reached from here and changed, by its identity."""
    if isinstance(held, (*_VALUES, tuple, frozenset, type)) or callable(held) or id(held) in found:
        return found
    found[id(held)] = held
    inner: Any = ()
    if isinstance(held, dict | OrderedDict):
        inner = held.values()
    elif isinstance(held, list):
        inner = held
    elif attrs.has(type(held)):
        inner = [getattr(held, each.name) for each in attrs.fields(type(held))]
    elif hasattr(held, "__dict__"):
        inner = vars(held).values()
    for each in inner:
        changeable(each, found)
    return found


@given(st.integers(min_value=0, max_value=2**32))
@settings(max_examples=10, deadline=None)
def test_a_fork_shares_nothing_that_changes(seed: int) -> None:
    live = cluster(seed).machine.cluster
    fork = live.fork()
    shared = changeable(live, {}).keys() & (theirs := changeable(fork, {})).keys()
    shared -= {id(labels) for labels in live.counts.namespaces.values()}  # the objects' own, which nobody changes
    shared -= {id(there) for there in live.table.pods}  # copied by whoever changes one first: see the next test
    assert {type(theirs[each]).__name__ for each in shared} <= {"_Known", "ResizeRules"}


@given(st.integers(min_value=0, max_value=2**32))
@settings(max_examples=20, deadline=None)
def test_pods_that_come_and_go_on_one_side_do_so_on_that_side_alone(seed: int) -> None:
    pick = random.Random(seed)
    live = cluster(seed).machine.cluster
    sides = [live, live.fork(), live.fork()]
    sides.append(sides[1].fork())
    expected = [{row: [each.uid for each in side.table.pods[row]] for row in side.table} for side in sides]
    for number in range(30):
        place = pick.randrange(len(sides))
        side, pods_of = sides[place], expected[place]
        row = pick.choice(sorted(pods_of))
        there = side.table.pods[row]
        if there and pick.random() < 0.5:
            gone = pick.choice(there)
            side.table.remove_pod(row, gone)
            at = pods_of[row].index(gone.uid)
            pods_of[row][at] = pods_of[row][-1]
            pods_of[row].pop()
        else:
            meta = {"name": f"new-{number}", "namespace": "default", "uid": f"new-{number}"}
            side.table.add_pod(row, Pod.from_raw({**pod("new", pick), "metadata": meta}))
            pods_of[row].append(f"new-{number}")
    for side, pods_of in zip(sides, expected, strict=True):
        assert {row: [each.uid for each in side.table.pods[row]] for row in side.table} == pods_of


def test_a_fork_goes_its_own_way() -> None:
    engine = cluster(1)
    live = engine.machine.cluster
    before = state([live.table, live.counts])
    fork = live.fork()
    assert isinstance(fork.counts, ForkedCounts)
    fork.counts.recount()
    kind = spread_matcher("default", parse_label_selector({"matchLabels": {"app": "x"}}))
    others = sum(fork.counts.matching(kind).by_row.values())
    raw = {**pod("more", random.Random(1)), "spec": {"containers": [], "nodeName": "n0"}}
    meta = {"name": "more", "namespace": "default", "uid": "more", "labels": {"app": "x"}}
    fork.put(Pod.from_raw({**raw, "metadata": meta}))
    assert sum(fork.counts.matching(kind).by_row.values()) == others + 1
    everywhere = PodAffinityTerm(
        parse_label_selector({}), ZONE, frozenset(), parse_label_selector({"matchLabels": {"a": "b"}})
    )
    assert not fork.counts.matching(pod_matcher([everywhere])).by_row
    labelled = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"a": "b"}}}
    fork.put(Object.from_raw(labelled))
    assert sum(fork.counts.matching(pod_matcher([everywhere])).by_row.values()) == fork.pod_count
    fork.put(Node.from_raw(node("n0", "elsewhere", random.Random(2))))
    fork.put(Node.from_raw(node("late", "b", random.Random(3))))
    fork.remove_node("n0")
    zones = fork.table.label(ZONE)
    reported = {name: zones.values[zones.ids[row]] for name, row in fork.table.row_of.items()}
    assert reported == {each.name: each.labels[ZONE] for each in fork.table.nodes if each is not None}
    assert state([live.table, live.counts]) == before
