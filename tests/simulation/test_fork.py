"""Tests that a fork continues as its cluster would, and that changes of the fork do not affect the cluster."""

import gc
import json
import weakref
from collections.abc import Callable
from random import Random
from typing import Any

import attrs
import numpy as np
import pytest

from kschedd.api.pods import Pod
from kschedd.controllers.embedded import embedded_controllers
from kschedd.queue.snapshot import EntryStates
from kschedd.scheduling.debug.breakpoints import BreakpointSpec
from kschedd.scheduling.stops import interventions
from kschedd.simulation.engine import Engine, LoggedAttempt
from kschedd.store.errors import ApiError
from tests.full_run import every

ZONES = ("a", "b", "c")


def node(name: str, zone: str, cpu: str = "4") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "20"}},
    }


def template(app: str, cpu: str, priority: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": app}},
            }
        ],
    }
    if priority:
        spec["priorityClassName"] = priority
    return {"metadata": {"labels": {"app": app}}, "spec": spec}


def deployment(app: str, replicas: int, cpu: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": app, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": app}},
            "template": template(app, cpu),
        },
    }


def pod(name: str, cpu: str, priority: str = "") -> dict[str, Any]:
    made = template(name, cpu, priority)
    return {"apiVersion": "v1", "kind": "Pod", **made, "metadata": {"name": name, "namespace": "default"}}


def claim(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "storageClassName": "slow",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def with_claim(name: str) -> dict[str, Any]:
    made = pod(name, "100m")
    made["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
    return made


SET_UP: list[dict[str, Any]] = [
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000},
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "slow"},
        "provisioner": "example.com/disks",
        "volumeBindingMode": "WaitForFirstConsumer",
    },
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
    },
]


class Cluster:
    """An engine with all controllers of a cluster, and the log of its attempts."""

    def __init__(self, of: "Cluster | None" = None, stopped: bool = False) -> None:
        self.log: list[dict[str, object]] = []
        if of is None:
            self.engine = Engine(seed=7, controllers=embedded_controllers(), on_decision=self.note)
        else:
            snapshot = attrs.evolve(of.engine.snapshot(), stopped=stopped)
            self.engine = Engine(resumed=snapshot, on_decision=self.note)

    def note(self, attempt: LoggedAttempt) -> None:
        self.log.append(attempt.line())

    def fork(self, stopped: bool = False) -> "Cluster":
        return Cluster(self, stopped)

    def do(self, change: Callable[[Any], Any]) -> None:
        try:
            change(self.engine.store)
        except ApiError:
            pass  # an object that no longer exists: the cluster and the fork both reject the change
        self.engine.run_until_idle()

    def advance(self, seconds: float) -> None:
        self.engine.advance(self.engine.now + seconds)


def fingerprint(engine: Engine) -> str:
    """Return the whole state of the cluster as text."""
    store, machine, queue = engine.store, engine.machine, engine.queue
    table = machine.cluster.table
    random = machine.choose.random.getstate()
    entries = EntryStates.of(queue.entries())
    held = {name: value.tolist() for name, value in vars(table).items() if isinstance(value, np.ndarray)}
    return json.dumps(
        [
            [[obj.raw for obj in store.list(kind)] for kind in store.kinds()],
            store.version,
            held,
            [[each.key for each in pods] for pods in table.pods],
            sorted(each.key for each in machine.cluster.assumed_pods()),
            repr(random),
            machine.start.index,
            [repr([value for value in fields if not isinstance(value, Pod)]) for fields in entries.fields],
            {str(place): count for place, count in queue.counts().items()},
            {name: [each.key for each in pods] for name, pods in engine.driver.nominator.nominated.items()},
            sorted(engine.driver.bindings.cycles),
            engine.next_moment(),
            engine.now,
        ],
        default=repr,
    )


def changes(random: Random) -> list[Callable[[Cluster], None]]:
    """Return random next changes, which are the same for each cluster to which they are applied."""
    return [_change(random, number) for number in range(random.randint(3, 10))]


def _change(random: Random, number: int) -> Callable[[Cluster], None]:
    name, some = f"p{random.randrange(1000)}-{number}", f"n{random.randrange(6)}"
    cpu, zone = random.choice(("500m", "1", "2", "3")), random.choice(ZONES)
    replicas, wait_s = random.randint(0, 9), random.choice((0.5, 1.0, 11.0, 40.0, 400.0))
    taints = {"taints": [{"key": "k", "effect": "NoExecute"}]}
    what = random.randrange(9)
    writes: list[Callable[[Any], Any]] = [
        lambda store: store.create(pod(name, cpu)),
        lambda store: store.create(pod(name, cpu, "high")),
        lambda store: store.apply(deployment("web", replicas, cpu)),
        lambda store: store.delete("Node", "", some),
        lambda store: store.create(node(f"n-{name}", zone, "2")),
        lambda store: store.merge_patch("Node", "", some, {"spec": taints}),
        lambda store: store.merge_patch("Node", "", some, {"spec": {"unschedulable": True}}),
        lambda store: (store.create(claim(name)), store.create(with_claim(name))),
    ]
    if what == len(writes):
        return lambda cluster: cluster.advance(wait_s)
    return lambda cluster: cluster.do(writes[what])


def begun(seed: int) -> tuple[Cluster, Random]:
    """Return a cluster with work pending: pods that wait, back off, preempt and wait for volumes."""
    random, cluster = Random(seed), Cluster()
    for raw in SET_UP:
        cluster.engine.store.create(raw)
    for number in range(6):
        cluster.engine.store.create(node(f"n{number}", ZONES[number % 3]))
    cluster.engine.run_until_idle()
    cluster.do(lambda store: store.create(deployment("web", 6, "1")))
    for change in changes(random):
        change(cluster)
    return cluster, random


@pytest.mark.parametrize("seed", every(5, range(25)))
def test_a_fork_decides_as_the_cluster_does_when_the_same_happens(seed: int) -> None:
    cluster, random = begun(seed)
    fork = cluster.fork()
    again = fork.fork()
    cluster.log.clear()
    for change in changes(random):
        for each in (cluster, fork, again):
            change(each)
    for each in (cluster, fork, again):
        each.advance(700.0)
    assert fork.log == cluster.log
    assert again.log == cluster.log
    assert fingerprint(fork.engine) == fingerprint(cluster.engine)
    assert fingerprint(again.engine) == fingerprint(cluster.engine)


@pytest.mark.parametrize("seed", every(5, range(25, 35)))
def test_what_happens_in_a_fork_leaves_the_cluster_as_it_was(seed: int) -> None:
    cluster, random = begun(seed)
    before = fingerprint(cluster.engine)
    fork = cluster.fork()
    assert fingerprint(fork.engine) == before
    nested = fork.fork()
    for change in changes(random):
        change(fork)
    fork.advance(700.0)
    assert fingerprint(cluster.engine) == before
    assert fingerprint(nested.engine) == before


def test_what_happens_to_the_cluster_leaves_a_fork_as_it_was() -> None:
    cluster, random = begun(99)
    fork = cluster.fork()
    before = fingerprint(fork.engine)
    for change in changes(random):
        change(cluster)
    cluster.advance(700.0)
    assert fingerprint(fork.engine) == before


STOPS = [{"point": point} for point in ("preFilter", "filter", "preScore", "score", "reserve", "preBind", "bind")]


@pytest.mark.parametrize("stop", [*STOPS, {"outcome": "scheduled"}], ids=lambda stop: "-".join(stop.values()))
def test_in_a_fork_a_stopped_attempt_begins_again_and_comes_to_the_same(stop: dict[str, str]) -> None:
    cluster, _ = begun(7)
    for number in range(6, 12):
        cluster.engine.store.create(node(f"n{number}", ZONES[number % 3]))
    cluster.engine.store.create(claim("data"))
    debugger = cluster.engine.driver.debugger
    debugger.add(BreakpointSpec(pod="default/web", **stop), once=True)
    cluster.do(lambda store: store.create({**with_claim("data"), "metadata": {"name": "web", "namespace": "default"}}))
    cluster.advance(30.0)
    assert debugger.stop is not None
    before = fingerprint(cluster.engine)
    fork = cluster.fork()
    again = fork.fork()
    assert fork.engine.driver.debugger.stop is None
    for each in (fork, again):
        each.advance(60.0)
    assert fingerprint(cluster.engine) == before
    debugger.resume()
    cluster.advance(60.0)
    web = again.engine.current_pod("default/web")
    assert web is not None
    assert web.status["phase"] == "Running"
    assert fingerprint(fork.engine) == fingerprint(cluster.engine)
    assert fingerprint(again.engine) == fingerprint(cluster.engine)


def place_of(cluster: Cluster) -> tuple[object, ...] | None:
    """Return the position at which the debugger has stopped the cluster."""
    stop = cluster.engine.driver.debugger.stop
    if stop is None or (at := stop.point) is None:
        return None
    rows = None if at.rows is None or at.table is None else [at.table.names[row] for row in at.rows.tolist()]
    return stop.why, at.cycle, at.pod.key, at.attempt, at.point, at.plugin, at.outcome, at.node, rows


def steps_of(cluster: Cluster) -> list[tuple[object, ...] | None]:
    """Return the stop points of `next` up to the end of the attempt and its binding cycle."""
    places = []
    while (place := place_of(cluster)) is not None:
        places.append(place)
        cluster.engine.driver.debugger.next()
        cluster.advance(30.0)
    return places


@pytest.mark.parametrize("stop", [*STOPS, {"outcome": "scheduled"}], ids=lambda stop: "-".join(stop.values()))
def test_a_fork_with_the_debugger_is_stopped_at_the_same_place_and_takes_the_same_steps(stop: dict[str, str]) -> None:
    cluster, _ = begun(7)
    for number in range(6, 12):
        cluster.engine.store.create(node(f"n{number}", ZONES[number % 3]))
    cluster.engine.store.create(claim("data"))
    cluster.engine.driver.debugger.add(BreakpointSpec(pod="default/web", **stop))
    cluster.do(lambda store: store.create({**with_claim("data"), "metadata": {"name": "web", "namespace": "default"}}))
    cluster.advance(30.0)
    assert place_of(cluster) is not None
    fork = cluster.fork(stopped=True)
    nested = fork.fork(stopped=True)
    for each in (fork, nested):
        assert place_of(each) == place_of(cluster)
        assert [mark.hits for mark in each.engine.driver.debugger.breakpoints.values()] == [1]
        each.engine.advance(each.engine.now)
        assert place_of(each) == place_of(cluster)
    steps = steps_of(cluster)
    assert steps
    assert steps_of(nested) == steps_of(fork) == steps
    for each in (cluster, fork, nested):
        each.engine.driver.debugger.resume()
        each.advance(60.0)
    assert fingerprint(nested.engine) == fingerprint(fork.engine) == fingerprint(cluster.engine)


@pytest.mark.parametrize("seed", [2, 5, 38, 41, 77, 104])
def test_wherever_a_cluster_is_stopped_its_fork_goes_on_in_the_same_way(seed: int) -> None:
    cluster, random = begun(seed)
    debugger = cluster.engine.driver.debugger
    debugger.add(BreakpointSpec(point=random.choice(["preFilter", "filter", "postFilter", "score", "reserve", "bind"])))
    while debugger.stop is None:
        for change in changes(random):
            change(cluster)
            cluster.advance(5.0)
    for _ in range(random.randrange(4)):
        debugger.next()
        cluster.advance(0.0)
    fork = cluster.fork(stopped=True)
    for _ in range(12):
        assert place_of(fork) == place_of(cluster)
        for each in (cluster, fork):
            each.engine.driver.debugger.next()
            each.advance(3.0)
    for each in (cluster, fork):
        each.engine.driver.debugger.end()
        each.advance(700.0)
    assert fingerprint(fork.engine) == fingerprint(cluster.engine)


def test_a_fork_with_the_debugger_has_the_changes_that_were_made_by_hand() -> None:
    cluster = Cluster()
    for number in range(4):
        cluster.engine.store.create(node(f"n{number}", "a", cpu=str(2 + number)))
    cluster.engine.driver.debugger.add(BreakpointSpec(point="filter"), once=True)
    cluster.do(lambda store: store.create(pod("web", "1")))
    interventions.veto(cluster.engine.driver, "n3")
    cluster.engine.driver.debugger.next(point=True)
    cluster.engine.run_until_idle()
    other = cluster.fork(stopped=True)
    interventions.force(cluster.engine.driver, "n0")
    fork = cluster.fork(stopped=True)
    stepper = fork.engine.driver.attempts.stepper
    assert stepper is not None
    assert (stepper.forced, stepper.vetoed) == ("n0", {"n3"})
    for each in (cluster, fork, other):
        each.engine.driver.debugger.resume()
        each.engine.run_until_idle()
    assert [each.log[-1]["node"] for each in (cluster, fork, other)] == ["n0", "n0", "n2"]


def test_a_fork_that_is_stopped_has_not_seen_what_happened_since_the_attempt_began() -> None:
    cluster = Cluster()
    for number in range(2):
        cluster.engine.store.create(node(f"n{number}", "a", cpu=str(2 + number)))
    cluster.engine.driver.debugger.add(BreakpointSpec(point="filter", plugin="NodeResourcesFit"), once=True)
    cluster.do(lambda store: store.create(pod("web", "1")))
    cluster.do(lambda store: store.create(node("n9", "a", cpu="64")))
    fork = cluster.fork(stopped=True)
    assert place_of(fork) == place_of(cluster)
    for each in (cluster, fork):
        each.engine.driver.debugger.resume()
        each.engine.run_until_idle()
    assert [each.log[-1]["node"] for each in (cluster, fork)] == ["n1", "n1"]
    assert fingerprint(fork.engine) == fingerprint(cluster.engine)


@pytest.mark.parametrize("stopped", [False, True])
def test_a_binding_that_fails_while_an_attempt_is_stopped_is_retried_in_the_cluster_and_its_fork(stopped: bool) -> None:
    cluster = Cluster()
    for raw in SET_UP:
        cluster.engine.store.create(raw)
    for name in ("n0", "n1"):
        cluster.engine.store.create(node(name, "a"))
    never = {**SET_UP[1], "metadata": {"name": "never"}, "provisioner": "example.com/none"}
    cluster.engine.store.create(never)
    wanted = claim("data")
    wanted["spec"]["storageClassName"] = "never"
    cluster.engine.store.create(wanted)
    cluster.do(lambda store: store.create({**with_claim("data"), "metadata": {"name": "v", "namespace": "default"}}))
    cluster.engine.driver.debugger.add(BreakpointSpec(pod="default/web", point="score"), once=True)
    cluster.do(lambda store: store.create(pod("web", "1")))
    cluster.advance(700.0)
    assert not cluster.engine.driver.bindings.cycles, "the claim was not provisioned within 10 minutes"
    fork = cluster.fork(stopped)
    cluster.log.clear()
    for each in (cluster, fork):
        each.engine.driver.debugger.resume()
        each.advance(100.0)
    assert [(line["pod"], line["attempt"]) for line in cluster.log][-1] == ("default/v", 2)
    assert fork.log == cluster.log[-2:]


def test_a_fork_of_a_cluster_stopped_between_two_attempts_makes_none() -> None:
    cluster = Cluster()
    cluster.engine.store.create(node("n0", "a"))
    cluster.engine.driver.debugger.pause(cluster.engine.now)
    cluster.do(lambda store: store.create(pod("web", "1")))
    fork, running = cluster.fork(stopped=True), cluster.fork()
    for each in (fork, running):
        each.advance(30.0)
    assert (fork.log, [line["pod"] for line in running.log]) == ([], ["default/web"])
    fork.engine.driver.debugger.step(1)
    fork.engine.run_until_idle()
    assert [line["pod"] for line in fork.log] == ["default/web"]
    assert fork.engine.driver.debugger.stop is not None


def test_what_was_changed_by_hand_of_a_stopped_attempt_does_not_count_in_a_fork() -> None:
    cluster = Cluster()
    for number in range(3):
        cluster.engine.store.create(node(f"n{number}", "a", cpu=str(2 + number)))
    cluster.engine.driver.debugger.add(BreakpointSpec(point="filter"), once=True)
    cluster.do(lambda store: store.create(pod("web", "1")))
    interventions.force(cluster.engine.driver, "n0")
    fork = cluster.fork()
    for each in (cluster, fork):
        each.engine.driver.debugger.resume()
        each.engine.run_until_idle()
    assert (cluster.log[-1]["node"], fork.log[-1]["node"]) == ("n0", "n2")


def test_a_closed_fork_gives_back_what_it_held_without_the_garbage_collector() -> None:
    cluster, _ = begun(1)
    fork = cluster.fork()
    held = weakref.ref(fork.engine.machine.cluster.table), weakref.ref(fork.engine.store)
    gc.disable()
    try:
        fork.engine.close()
        assert [each() for each in held] == [None, None]
    finally:
        gc.enable()


def test_a_large_fork_is_no_work_for_the_garbage_collector() -> None:
    cluster, _ = begun(1)
    fork = cluster.fork()
    old = {id(each) for each in gc.get_objects(generation=2)}
    assert {id(fork.engine.store), id(fork.engine.machine.cluster), id(fork.engine.loop)} <= old
