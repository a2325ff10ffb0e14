"""Tests that attempts made together in a run have the same results and effects as attempts made one by one.

Two drivers with the same seed get the same events: one makes runs where possible, the other single attempts.
"""

from random import Random
from typing import Any

import attrs
import pytest

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.metrics import catalogue
from kschedd.queue.operations import AttemptFailed
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.binding.run import AttemptRun
from kschedd.scheduling.debug.breakpoints import BreakpointSpec
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.inputs import (
    BeginAttempt,
    CompleteAttempt,
    CompleteRun,
    PlansExecuted,
    PodsNominated,
    PodsPopped,
)
from kschedd.scheduling.records import AttemptRecord, PodBound
from tests.full_run import every
from tests.scheduling.driven import NOW, Driven, Raw, node, pod

_NODES = 700
_PREFERS = {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {}}}
_SOFT = [{"key": "soft", "effect": "PreferNoSchedule"}]


@attrs.define(eq=False)
class Both:
    """The two drivers, and the number of attempts in runs."""

    together: Driven = attrs.field(factory=lambda: Driven(percentageOfNodesToScore=15))
    apart: Driven = attrs.field(factory=lambda: Driven(percentageOfNodesToScore=15))
    in_runs: int = 0
    last: tuple[Effects, ...] = ()

    def see(self, *raws: Raw) -> None:
        for one in (self.together, self.apart):
            one.see(*raws)

    def attempt(self, *names: str) -> None:
        """Attempt these pods and answer as the API server; check that both drivers request the same effects."""
        effects = []
        for one in (self.together, self.apart):
            one.driver.take_effects()
            one.driver.step(PodsPopped([one.entry(name) for name in names]))
            while one.driver.popped.has_next:
                run = one.driver.attempts.begin_run(NOW) if one is self.together else ()
                if isinstance(run, AttemptRun) and run:
                    self.in_runs += len(run)
                    one.driver.step(CompleteRun(run, 0.0), NOW)
                    continue
                entry = one.driver.popped.take(NOW)
                assert entry is not None
                attempt = one.driver.step(BeginAttempt(entry))
                if attempt is not None:
                    one.driver.step(CompleteAttempt(entry, drive(attempt)), NOW)
            effects.append(one.driver.take_effects())
        self.last = tuple(effects)
        self.compare(*effects)

    def compare(self, together: Effects, apart: Effects) -> None:
        assert _outcomes(together) == _outcomes(apart)
        assert together.released == apart.released
        assert _failed(together) == _failed(apart)
        assert [(one.uid, one.plan) for one in together.plans] == [(one.uid, one.plan) for one in apart.plans]
        first, second = self.together.driver, self.apart.driver
        assert list(first.bindings.cycles) == list(second.bindings.cycles)
        assert first.bindings.begun == second.bindings.begun
        assert first.machine.start.index == second.machine.start.index
        one, other = first.machine.cluster.table, second.machine.cluster.table
        for column in ("requested", "nonzero", "pod_count"):
            assert (getattr(one, column) == getattr(other, column)).all(), column
        assert [[pod.key for pod in row] for row in one.pods] == [[pod.key for pod in row] for row in other.pods]
        # In a run of several templates, the pods of one template come before those of the next.
        assert sorted(one.versions.pods.rows) == sorted(other.versions.pods.rows)
        assert one.versions.now == other.versions.now
        assert one.versions.pods.dates == other.versions.pods.dates
        assert ((one.versions.row_pods_at > 0) == (other.versions.row_pods_at > 0)).all()
        groups = [machine.cluster.counts._groups for machine in (first.machine, second.machine)]
        assert {key: group.by_row for key, group in groups[0].items()} == {
            key: group.by_row for key, group in groups[1].items()
        }

    def answer(self) -> None:
        """Report the last requested effects as done."""
        for one, effects in zip((self.together, self.apart), self.last, strict=True):
            one.driver.step(PlansExecuted([(wanted.uid, None) for wanted in effects.plans]), NOW)
        together, apart = self.together.driver.take_effects(), self.apart.driver.take_effects()
        assert _bound(together) == _bound(apart)
        assert self.together.driver.bindings.pods_bound == self.apart.driver.bindings.pods_bound


def _outcomes(effects: Effects) -> list[tuple[Any, ...]]:
    return [
        (
            one.pod,
            one.attempt,
            one.feasible,
            one.visited,
            one.ties,
            one.score,
            one.nominated_node,
            one.node,
            one.message,
        )
        for one in effects.happened
        if isinstance(one, AttemptRecord)
    ]


def _bound(effects: Effects) -> list[tuple[str, str]]:
    return [(one.pod, one.node) for one in effects.happened if isinstance(one, PodBound)]


def _failed(effects: Effects) -> list[tuple[str, int]]:
    """Return the pods whose attempts have failed, each with the last observation before the attempt."""
    return [(one.pod.key, one.seen) for one in effects.queue if isinstance(one, AttemptFailed)]


def _both(**fields: Any) -> Both:
    both = Both(**fields)
    both.see(*(node(f"n{number}", cpu="8") for number in range(_NODES)))
    return both


def _several(both: Both, first: int, many: int, **fields: Any) -> list[str]:
    names = [f"p{number}" for number in range(first, first + many)]
    both.see(*(pod(name, cpu="100m", **fields) for name in names))
    return names


def _named(name: str, node_name: str) -> Raw:
    """Return a pod of a DaemonSet, with node affinity to the named node."""
    raw = pod(name, cpu="100m")
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}
    required = {"nodeSelectorTerms": [term]}
    raw["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return raw


def test_pods_of_one_template_are_attempted_in_runs_with_the_same_outcome() -> None:
    both = _both()
    for first in range(0, 120, 24):
        both.attempt(*_several(both, first, 24))
        both.answer()
    assert both.in_runs > 40


def test_pods_of_several_templates_in_turn_are_attempted_in_runs_with_the_same_outcome() -> None:
    both = _both()
    for first in range(0, 180, 30):
        names = [f"p{number}" for number in range(first, first + 30)]
        both.see(*(pod(name, cpu="100m", priority=number % 2) for number, name in enumerate(names)))
        both.attempt(*names)
        both.answer()
    assert both.in_runs > 40


def _tainted(number: int) -> Raw:
    """Return a node; of every five, one has a NoSchedule taint and one a PreferNoSchedule taint."""
    raw = node(f"n{number}", cpu="8")
    raw["spec"] = {"taints": ([{"key": "t", "effect": "NoSchedule"}], _SOFT, [], [], [])[number % 5]}
    return raw


@pytest.mark.parametrize("turns", [2, 3], ids=["two-templates", "three-templates"])
def test_pods_that_tolerate_and_pods_that_do_not_are_in_runs_round_the_end_of_the_order(turns: int) -> None:
    both = Both()
    both.see(*(_tainted(number) for number in range(_NODES)))
    for first in range(0, 180, 30):
        names = [f"p{number}" for number in range(first, first + 30)]
        raws = [pod(name, cpu="100m") for name in names]
        for number, raw in enumerate(raws):
            tolerated = [{}, {"key": "t", "operator": "Exists"}, {"operator": "Exists"}][number % turns]
            raw["spec"]["tolerations"] = [tolerated] if tolerated else []
        both.see(*raws)
        both.attempt(*names)
        both.answer()
    assert both.in_runs > 120


def test_pods_that_name_their_node_are_attempted_in_runs_with_the_same_outcome() -> None:
    both = _both()
    for first in range(0, 120, 30):
        names = [f"d{number}" for number in range(first, first + 30)]
        both.see(*(_named(name, f"n{number}") for number, name in enumerate(names, first)))
        both.attempt(*names)
        both.answer()
    assert both.in_runs > 80


def test_a_run_of_pods_that_name_their_nodes_ends_at_a_node_that_is_full_by_now() -> None:
    both = _both()
    for first in range(0, 60, 20):
        names = [f"p{number}" for number in range(first, first + 20)]
        both.see(*(_named(name, f"n{number}") for number, name in enumerate(names)))
        both.attempt(*names)
    before = both.in_runs
    both.see(*(pod(f"full{number}", cpu="8", on=f"n{number}") for number in (5, 6)))
    names = [f"p{number}" for number in range(60, 80)]
    both.see(*(_named(name, f"n{number}") for number, name in enumerate(names)))
    both.attempt(*names)
    assert both.in_runs - before == 18
    assert len(_failed(both.last[0])) == 2


def test_two_pods_that_name_one_node_are_not_in_one_run() -> None:
    both = _both()
    names = [f"d{number}" for number in range(60)]
    both.see(*(_named(name, f"n{number % 7}") for number, name in enumerate(names)))
    both.attempt(*names[:30])
    both.attempt(*names[30:])
    assert 0 < both.in_runs < 60


def _changes(random: Random, both: Both, number: int) -> None:
    """Change the cluster between two attempts."""
    which = random.randrange(7)
    row = random.randrange(_NODES)
    if which == 0:
        raw = node(f"n{row}", cpu=random.choice(["1", "8", "16"]))
        if random.random() < 0.3:
            raw["spec"] = {"taints": _SOFT if random.random() < 0.5 else [{"key": "t", "effect": "NoSchedule"}]}
        both.see(raw)
    elif which == 1:
        both.see(pod(f"other{number}", cpu="2", on=f"n{row}"))
    elif which == 2:
        raw = pod(f"waits{number}", cpu="500", nominated=f"n{row}")
        both.see(raw)
        for one in (both.together, both.apart):
            one.driver.step(PodsNominated([one.entry(f"waits{number}").pod]))
    elif which == 3:
        for one in (both.together, both.apart):
            for waits in [name for _, name in one.objects if name.startswith("default/waits")]:
                one.goes(waits.removeprefix("default/"))
    elif which == 4 and random.random() < 0.3:
        both.see({"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"s{number}", "namespace": "default"}})


@pytest.mark.parametrize("seed", every(3, range(6)))
def test_what_happens_in_between_changes_nothing_of_that(seed: int) -> None:
    random = Random(seed)
    both = _both()
    made = 0
    for turn in range(25):
        names: list[str] = []
        for _ in range(random.randrange(1, 4)):
            shape = random.randrange(5)
            many = random.randrange(1, 20)
            if shape < 3:
                fields: dict[str, Any] = {"priority": shape} if shape else {}
                names += _several(both, made, many, **fields)
            elif shape == 3:
                owner = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}]
                names += _several(both, made, many, ownerReferences=owner)
            else:
                named = [f"d{made + number}" for number in range(many)]
                both.see(*(_named(name, f"n{random.randrange(_NODES)}") for name in named))
                names += named
            made += many
        if random.random() < 0.5:
            random.shuffle(names)
        if names and random.random() < 0.3:  # deleted, or being deleted, when its attempt begins
            gone = random.choice(names)
            raw = dict(both.apart.objects["Pod", f"default/{gone}"].raw)
            raw["metadata"] = {**raw["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
            both.see(raw)
        both.attempt(*names)
        if random.random() < 0.8:
            both.answer()
            _changes(random, both, turn)
        else:
            both.answer()
    assert both.in_runs > 0


def test_where_attempts_are_counted_or_stopped_there_are_no_runs() -> None:
    both = _both()
    names = [f"d{number}" for number in range(60)]
    both.see(*(_named(name, f"n{number}") for number, name in enumerate(names)))
    both.attempt(*names[:30])
    driver = both.together.driver
    driver.step(PodsPopped([both.together.entry(name) for name in names[30:]]))
    assert driver.machine.longest_run(driver.popped.entries[0].pod) > 1
    driver.popped.attempts_allowed = 5
    assert not driver.attempts.begin_run(NOW)
    driver.popped.attempts_allowed = None
    driver.debugger.add(BreakpointSpec(pod="default/d40"))
    assert not driver.attempts.begin_run(NOW)


def test_the_next_attempt_after_a_run_is_whole_where_scores_are_to_be_noted() -> None:
    both = _both()
    names = [f"d{number}" for number in range(60)]
    both.see(*(_named(name, f"n{number}") for number, name in enumerate(names)))
    both.attempt(*names[:30])
    driver, sampling = both.together.driver, both.together.metrics.sampling
    names, later = names[30:50], names[50:]
    driver.step(PodsPopped([both.together.entry(name) for name in names]))
    sampling.shares = (0.0, 1.0)
    driver.step(CompleteRun(driver.attempts.begin_run(NOW), 0.0), NOW)
    assert sampling.due
    driver.step(PodsPopped([both.together.entry(name) for name in later]))
    assert not driver.attempts.begin_run(NOW)
    sampling.next()
    assert sampling.scores
    assert not sampling.due


def test_what_is_noted_of_scores_after_a_run_is_noted_at_once() -> None:
    """Record them before the next attempt with timed plugins, whose feasible nodes are others."""
    both = _both()
    both.attempt(*_several(both, 0, 24))
    driver, sampling = both.together.driver, both.together.metrics.sampling
    few = pod("few", cpu="100m")
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in ("n1", "n2")]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    few["spec"]["affinity"] = {"nodeAffinity": required}
    both.see(few)
    sampling.shares = (0.0, 1.0)
    both.together.attempt("few")
    [scores] = [family for family in driver.metrics() if family.metric is catalogue.SCORE]
    assert ("NodeResourcesFit", "default-scheduler") in scores.samples
    sampling.shares = (1.0, 0.0)
    [name] = _several(both, 24, 1)
    assert isinstance(both.together.attempt(name), AssumedPod)


def test_where_pods_cannot_be_assumed_together_each_is_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    both = _both()

    def fails(*args: object) -> None:
        raise ValueError("of a pod")

    monkeypatch.setattr(both.together.driver.machine.cluster.counts.__class__, "prepare", fails)
    both.attempt(*_several(both, 0, 40))
    both.answer()
    assert both.in_runs > 10


@pytest.mark.parametrize(
    "changed",
    [
        {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 1, "hostPort": 1}]}]},
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
        {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_PREFERS]}}},
        {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"example.com/new": "1"}}}]},
        {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"memory": str(1 << 57)}}}]},
    ],
)
def test_pods_with_more_to_count_than_plain_requests_are_assumed_one_by_one(changed: Raw) -> None:
    driven = Driven()
    driven.see(node("a"), node("b"))
    cluster = driven.machine.cluster
    plain = Pod.from_raw(pod("p"))
    raw = pod("q")
    other = Pod.from_raw({**raw, "spec": {**raw["spec"], **changed}})
    assert cluster.assume_each([plain], ["a"]) is not None
    before = cluster.table.requested.copy(), cluster.versions.now
    assert cluster.assume_each([other], ["b"]) is None
    assert not cluster.is_assumed(other)
    assert (cluster.table.requested == before[0]).all()
    assert cluster.versions.now == before[1]
    assert cluster.assume(other, "b").node_name == "b"


def test_pods_of_two_daemon_sets_are_judged_each_by_its_own_requests() -> None:
    both = _both()
    for first in range(0, 90, 30):
        names = [f"d{number}" for number in range(first, first + 30)]
        raws = [_named(name, f"n{number}") for number, name in enumerate(names, first)]
        for raw in raws[1::2]:  # more than a node has
            raw["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "64"}}
        both.see(*raws)
        both.attempt(*names[::2])
        both.answer()
        both.attempt(*names[1::2])
        both.see(*(_named(f"e{name}", f"n{number}") for number, name in enumerate(names, 100 + first)))
        mixed = [_named(f"f{name}", f"n{number}") for number, name in enumerate(names, 140 + first)]
        for raw in mixed:
            raw["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "64"}}
        both.see(*mixed)
        both.attempt(*(prefix + name for name in names for prefix in "ef"))
        both.answer()
    assert both.in_runs > 10


def test_a_run_ends_where_the_controller_of_the_pods_is_another_one() -> None:
    both = _both()
    names = [f"d{number}" for number in range(60)]
    raws = [_named(name, f"n{number}") for number, name in enumerate(names)]
    for number, raw in enumerate(raws):
        owner = "first" if number < 40 else "second"
        ref = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": owner, "uid": owner, "controller": True}
        raw["metadata"]["ownerReferences"] = [ref]
    both.see(*raws)
    both.attempt(*names[:30])
    driver = both.together.driver
    driver.step(PodsPopped([both.together.entry(name) for name in names[30:]]))
    assert [result.pod.name for result in driver.attempts.begin_run(NOW).results] == names[30:40]


def _counting(raw: Raw, number: int) -> Raw:
    """Return the pod with requirements that make plugins count pods.

    Some pods are spread over zones, some prefer the zone of similar pods, and some avoid the nodes of similar pods.
    """
    like = {"labelSelector": {"matchLabels": {"app": f"a{number}"}}}
    raw["metadata"]["labels"] = {"app": f"a{number}"}
    if number < 2:
        when = ("DoNotSchedule", "ScheduleAnyway")[number]
        raw["spec"]["topologySpreadConstraints"] = [
            {"maxSkew": 2, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": when, **like}
        ]
    elif number == 2:
        term = {"topologyKey": "topology.kubernetes.io/zone", **like}
        preferred = [{"weight": 10, "podAffinityTerm": term}]
        raw["spec"]["affinity"] = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    else:
        required = [{"topologyKey": "kubernetes.io/hostname", **like}]
        raw["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return raw


def _in_zones(both: Both) -> None:
    for number in range(_NODES):
        raw = _tainted(number)
        labels = {"topology.kubernetes.io/zone": f"z{number % 3}", "kubernetes.io/hostname": raw["metadata"]["name"]}
        raw["metadata"]["labels"] = labels
        both.see(raw)


@pytest.mark.parametrize(
    ("kinds", "fewest"),
    [
        pytest.param((0,), 120, id="spread"),
        pytest.param((1,), 120, id="softly-spread"),
        pytest.param((2,), 120, id="preferring-pods"),
        pytest.param((3,), 120, id="away-from-their-like"),
        pytest.param((0, 4), 60, id="spread-and-plain"),
        pytest.param((0, 2, 3), 60, id="three-in-turn"),
        pytest.param((0,) * 11 + (2,), 60, id="spread-and-now-and-then-another"),
        pytest.param((4, 3, 1), 30, id="plain-and-two-that-count-pods"),
    ],
)
def test_pods_whose_plugins_count_pods_are_attempted_in_runs_with_the_same_outcome(
    kinds: tuple[int, ...], fewest: int
) -> None:
    both = Both()
    _in_zones(both)
    for first in range(0, 210, 30):
        names = [f"p{number}" for number in range(first, first + 30)]
        raws = [pod(name, cpu="100m") for name in names]
        for number, raw in enumerate(raws):
            kind = kinds[number % len(kinds)]
            if kind < 4:
                _counting(raw, kind)
        both.see(*raws)
        both.attempt(*names)
        both.answer()
    assert both.in_runs > fewest


@pytest.mark.parametrize("seed", range(4))
def test_what_happens_between_runs_of_such_pods_changes_nothing_of_that(seed: int) -> None:
    random = Random(seed)
    both = Both()
    _in_zones(both)
    made = 0
    for turn in range(25):
        names: list[str] = []
        for _ in range(random.randrange(1, 4)):
            kind, many = random.randrange(5), random.randrange(1, 20)
            fresh = [f"p{made + number}" for number in range(many)]
            raws = [pod(name, cpu=random.choice(("100m", "1")) if kind < 2 else "100m") for name in fresh]
            both.see(*(_counting(raw, kind) if kind < 4 else raw for raw in raws))
            names += fresh
            made += many
        if random.random() < 0.3:
            random.shuffle(names)
        both.attempt(*names)
        both.answer()
        if random.random() < 0.8:
            _changes(random, both, turn)
        if random.random() < 0.3:  # one is deleted from its node
            there = [row[0].name for row in both.apart.driver.machine.cluster.table.pods if row]
            gone = random.choice(there)
            for one in (both.together, both.apart):
                one.goes(gone)
    assert both.in_runs > 60


def test_a_run_ends_with_a_pod_that_could_not_be_assumed_and_it_is_not_tried_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = Both()
    _in_zones(both)
    assume = SchedulerCache.assume
    failed: set[tuple[int, str]] = set()

    def fails(self: SchedulerCache, pod: Pod, node_name: str) -> Pod:
        if pod.name in ("p17", "p18", "p40") and (id(self), pod.name) not in failed:
            failed.add((id(self), pod.name))
            raise ValueError("of a pod")
        return assume(self, pod, node_name)

    monkeypatch.setattr(SchedulerCache, "assume", fails)
    for first in range(0, 60, 30):
        names = [f"p{number}" for number in range(first, first + 30)]
        both.see(*(_counting(pod(name, cpu="100m"), 0) for name in names))
        both.attempt(*names)
        both.answer()
    assert ["of a pod" in message for *_, node, message in _outcomes(both.last[0]) if not node] == [True]
    assert both.in_runs > 30
