"""Tests of the scheduling loop in an environment that lists the writes: their order and their results."""

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.config.loading.load import default_config
from kschedd.config.versions.kube_versions import V1_34, V1_36, KubernetesVersion
from kschedd.framework.status import Code, Status, error
from kschedd.framework.writes import Create, MergePatch, Plan, Write
from kschedd.queue.entry import QueuedPod, SubQueue
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.debug.breakpoints import BreakpointSpec
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.loop import SchedulingLoop
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.store.objects.log import ADDED, WatchEvent
from tests.scheduling.driven import Driven, Raw, node, pod
from tests.scheduling.test_pod_group_stepping import GATES, group, member


class Outside:
    """A clock that stands still, pods by key, and the list of all writes; `refused` has answers by class of write."""

    now_s = 1000.0
    now_ns = 10**12

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.written: list[Write] = []
        self.refused: dict[type[Write], Status] = {}

    def current_pod(self, key: str) -> Pod | None:
        return self.pods.get(key)

    def write(self, write: Write) -> Status | None:
        self.written.append(write)
        return self.refused.get(type(write))

    @property
    def summary(self) -> list[str]:
        """The name of the object of each write, after the class of the write; without writes of statuses."""
        return [f"{type(each).__name__} {_name(each)}" for each in self.written if not isinstance(each, MergePatch)]


def _name(write: Any) -> str:
    return write.raw["metadata"]["name"] if isinstance(write, Create) else write.name


class Looped:
    """A loop with an environment, to which the test delivers the events."""

    def __init__(
        self, *plugins: type[Any], version: KubernetesVersion = V1_34, machine: SchedulingMachine | None = None
    ) -> None:
        self.outside = Outside()
        self.applied: list[Effects] = []
        machine = machine or Driven(*plugins, version=version).machine
        self.loop = SchedulingLoop(machine, self.outside, on_effects=self.applied.append)

    def see(self, *raws: Raw) -> None:
        objects: list[Object] = [parse(raw) for raw in raws]
        self.outside.pods |= {one.key: one for one in objects if isinstance(one, Pod)}
        self.loop.observe_all([WatchEvent(ADDED, None, one, 1) for one in objects])

    def attempt(self) -> Any:
        """Attempt the next pod and return what became of it."""
        entry = self.loop.pop()
        assert entry is not None
        result = self.loop.decide(entry)
        assert result is not None
        return self.loop.complete(entry, result)

    def place_of(self, name: str) -> SubQueue:
        entry = self.loop.queue.entry(f"default/{name}")
        assert entry is not None
        return entry.place


class Asks:
    """A plugin that writes two ConfigMaps before a pod is bound, and waits until the pod's name is in `answered`."""

    name: ClassVar = "Asks"
    answered: ClassVar[set[str]] = set()

    def pre_bind(self, state: Any, pod: Pod, node_name: str) -> Plan:
        writes = tuple(Create(_config_map(f"{pod.name}-{number}")) for number in (1, 2))
        return Plan(writes, lambda cluster: Status(Code.SUCCESS) if pod.name in self.answered else None, 30.0)


def _config_map(name: str) -> Raw:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


@pytest.fixture(autouse=True)
def _nothing_answered() -> None:
    Asks.answered.clear()


# -- attempts ----------------------------------------------------------------------------------------------------


def test_a_pod_is_bound_and_leaves_the_queue() -> None:
    run = Looped()
    run.see(node(), pod("p"))
    assert isinstance(run.attempt(), AssumedPod)
    assert run.outside.summary == ["Bind p"]
    assert run.loop.pop() is None
    assert run.loop.queue.entry("default/p") is None
    assert run.loop.driver.bindings.cycles == {}
    assert [len(effects.plans) for effects in run.applied if effects.plans] == [1]


def test_a_loop_continues_with_the_driver_that_it_is_given() -> None:
    machine = SchedulingMachine(default_config(version=V1_34), seed=1)
    driver = SchedulingDriver(machine)
    assert SchedulingLoop(machine, Outside(), driver=driver).driver is driver


def test_no_pod_is_popped_while_no_attempt_is_allowed_or_the_debugger_has_paused() -> None:
    run = Looped()
    run.see(node(), pod("p"))
    run.loop.driver.popped.attempts_allowed = 0
    assert run.loop.pop() is None
    run.loop.driver.popped.attempts_allowed = 1
    run.loop.driver.debugger.pause(0.0)
    assert run.loop.pop() is None
    run.loop.driver.debugger.resume()
    entry = run.loop.pop()
    assert entry is not None
    assert entry.pod.name == "p"


def test_a_pod_that_is_being_deleted_is_skipped_and_no_longer_in_flight() -> None:
    run = Looped()
    run.see(node(), pod("p"))
    entry = run.loop.pop()
    assert entry is not None
    assert run.loop.queue.in_flight_pods() == [entry]
    old = parse(pod("p"))
    new = parse(pod("p", deletionTimestamp="2025-01-01T00:00:00Z", resourceVersion="2"))
    run.loop.observe(WatchEvent("MODIFIED", old, new, 2))
    assert run.loop.decide(entry) is None
    assert run.loop.queue.in_flight_pods() == []


def test_a_nomination_with_which_a_pod_arrives_counts_once_the_pod_is_active() -> None:
    run = Looped()
    run.see(node(), pod("p", nominated="n"))
    assert [one.name for one in run.loop.driver.nominator.on_node("n")] == ["p"]


def _stops(run: Looped, entry: QueuedPod, results: list[Any]) -> list[str]:
    stops = []
    for at in run.loop.stepped_cycle(entry, results.append):
        stops.append(at.point)
        run.loop.driver.debugger.resume()
    return stops


def test_a_cycle_that_stops_has_the_result_of_one_that_does_not() -> None:
    run = Looped()
    run.see(node(), pod("p"), pod("q", cpu="2"))
    for plugin in ("NodeResourcesFit", "TaintToleration"):
        run.loop.driver.debugger.add(BreakpointSpec(plugin=plugin, point="filter"))
    results: list[Any] = []
    for _ in "pq":
        entry = run.loop.pop()
        assert entry is not None
        assert _stops(run, entry, results) == ["filter", "filter"]
    placed, failed = results
    assert isinstance(placed, ScheduleResult)
    assert isinstance(failed, FitError)
    assert run.outside.summary == ["Bind p"]
    assert run.place_of("q") is SubQueue.UNSCHEDULABLE


# -- groups ------------------------------------------------------------------------------------------------------


def _gang(debugged: bool) -> tuple[Looped, QueuedPod]:
    run = Looped(machine=SchedulingMachine(default_config(version=V1_36, feature_gates=GATES), seed=1))
    run.see(node(cpu="2"), group("gang"), member("a"), member("b"))
    if debugged:
        run.loop.driver.debugger.add(BreakpointSpec(pod="default/nobody"))
    entry = run.loop.pop()
    assert entry is not None
    return run, entry


@pytest.mark.parametrize("debugged", [False, True])
def test_the_cycle_of_a_group_binds_all_its_pods_and_reports_each_result_before(debugged: bool) -> None:
    run, entry = _gang(debugged)
    seen: list[tuple[str, Sequence[str]]] = []

    def on_result(one: QueuedPod, result: Any) -> None:
        assert isinstance(result, ScheduleResult)
        seen.append((one.pod.name, list(run.outside.summary)))

    if debugged:
        assert list(run.loop.stepped_group(entry, on_result)) == []
    else:
        run.loop.group_cycle(entry, on_result)
    assert [name for name, _ in seen] == ["a", "b"]
    assert seen[0][1] == []
    assert sorted(run.outside.summary) == ["Bind a", "Bind b"]
    assert run.loop.pop() is None


# -- plans -------------------------------------------------------------------------------------------------------


def test_a_plan_ends_with_its_first_rejected_write_and_the_binding_fails() -> None:
    run = Looped(Asks)
    run.outside.refused[Create] = error("no room")
    run.see(node(), pod("p"))
    run.attempt()
    assert run.outside.summary == ["Create p-1"]
    assert run.place_of("p") is SubQueue.ERROR_BACKOFF
    assert run.loop.machine.cluster.pod_count == 0


def test_a_binding_waits_until_its_plan_is_ready() -> None:
    run = Looped(Asks)
    run.see(node(), pod("p"))
    run.attempt()
    assert not run.loop.resume_bindings()
    assert run.outside.summary == ["Create p-1", "Create p-2"]
    Asks.answered.add("p")
    run.see(_config_map("any"))
    assert run.loop.resume_bindings()
    assert run.outside.summary == ["Create p-1", "Create p-2", "Bind p"]
    assert not run.loop.resume_bindings()


@pytest.mark.parametrize(("one_by_one", "first"), [(True, ["Bind p"]), (False, [])])
def test_earlier_bindings_continue_before_a_plan_if_bindings_are_made_one_by_one(
    one_by_one: bool, first: list[str]
) -> None:
    run = Looped(Asks)
    run.loop.one_by_one = one_by_one
    run.see(node(cpu="3"), pod("p"))
    run.attempt()
    Asks.answered.add("p")
    run.see(_config_map("any"), pod("q"))
    run.outside.written.clear()
    run.attempt()
    assert run.outside.summary == [*first, "Create q-1", "Create q-2"]


def test_held_plans_are_executed_on_release_in_their_order() -> None:
    run = Looped()
    run.see(node(cpu="3"), pod("p"), pod("q"))
    run.loop.held = []
    run.attempt()
    run.attempt()
    assert run.outside.summary == []
    assert len(run.loop.driver.bindings.cycles) == 2
    run.loop.release()
    assert run.outside.summary == ["Bind p", "Bind q"]
    assert run.loop.driver.bindings.cycles == {}
    assert run.loop.held is None
    run.see(pod("r"))
    run.attempt()
    assert run.outside.summary[2:] == ["Bind r"]
    run.loop.release()
    assert len(run.outside.summary) == 3


# -- evictions ---------------------------------------------------------------------------------------------------


def _preempting(version: KubernetesVersion, **current: Any) -> Looped:
    """Return a run before the attempt of a preemptor; `current` are the changes of its victim that are not observed."""
    run = Looped(version=version)
    run.see(node(), pod("victim", on="n"), pod("p", priority=9))
    run.outside.pods["default/victim"] = Pod.from_raw(pod("victim", on="n", **current))
    return run


def test_a_preemptor_waits_for_the_end_of_its_victims() -> None:
    run = _preempting(V1_34)
    run.attempt()
    assert run.outside.summary == ["Delete victim"]
    assert run.place_of("p") is SubQueue.UNSCHEDULABLE


@pytest.mark.parametrize(
    ("version", "current", "place"),
    [
        pytest.param(V1_34, {"uid": "another"}, SubQueue.ACTIVE, id="all-are-gone"),
        pytest.param(V1_34, {}, SubQueue.ACTIVE, id="a-write-is-rejected"),
        pytest.param(V1_36, {"uid": "another"}, SubQueue.UNSCHEDULABLE, id="all-are-gone-in-1.36"),
        pytest.param(V1_36, {}, SubQueue.ACTIVE, id="a-write-is-rejected-in-1.36"),
    ],
)
def test_a_preemptor_whose_victims_are_not_evicted(version: KubernetesVersion, current: Raw, place: SubQueue) -> None:
    run = _preempting(version, **current)
    run.outside.refused = {MergePatch: error("no")}
    run.attempt()
    assert run.outside.summary == []
    assert run.place_of("p") is place
