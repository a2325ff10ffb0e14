"""Tests of the effects on the cluster of attempts and bindings that do not end as planned."""

from typing import Any, ClassVar

import pytest

from kschedd.api.pods import Pod
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw, default_config
from kschedd.config.versions.kube_versions import V1_34
from kschedd.controllers.embedded import embedded_controllers
from kschedd.framework.events import ActionType, ClusterEventWithHint, EventResource, on
from kschedd.framework.registry import Registry
from kschedd.framework.status import Status, error, unschedulable
from kschedd.plugins.resources.noderesourcesfit import NodeResourcesFit
from kschedd.queue.entry import Move, SubQueue
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.simulation.engine import Engine, LoggedAttempt

Raw = dict[str, Any]


def node(name: str = "n", cpu: str = "1") -> Raw:
    status = {"allocatable": {"cpu": cpu, "memory": "4Gi", "pods": "10"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(name: str, cpu: str = "1", **spec: Any) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}], **spec},
    }


def priority(name: str, value: int) -> Raw:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def create(engine: Engine, *raws: Raw) -> None:
    for raw in raws:
        engine.store.create(raw)
        engine.run_until_idle()


def node_of(engine: Engine, name: str) -> str:
    found = engine.store.get("Pod", "default", name)
    assert isinstance(found, Pod)
    return found.node_name


def with_volume_that_never_comes(engine: Engine) -> None:
    create(
        engine,
        node(),
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "slow", "annotations": {"kschedd.io/provision-seconds": "never"}},
            "provisioner": "csi.example.com",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "c", "namespace": "default"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "slow",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
        pod("waits", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]),
    )


def test_a_pod_deleted_while_its_volume_is_made_gives_its_place_back_at_once() -> None:
    run = Engine(default_config(version=V1_34), controllers=embedded_controllers(), audit=True)
    with_volume_that_never_comes(run)
    create(run, pod("next"))
    assert len(run.driver.bindings.cycles) == 1
    assert node_of(run, "next") == ""
    run.store.delete("Pod", "default", "waits")
    run.run_until_idle()
    run.advance(run.now + 3)
    assert run.driver.bindings.cycles == {}
    assert node_of(run, "next") == "n"
    assert run.machine.cluster.pod_count == 1


def test_a_victim_that_waits_for_its_volume_is_preempted_once() -> None:
    decisions: list[LoggedAttempt] = []
    run = Engine(default_config(version=V1_34), controllers=embedded_controllers(), on_decision=decisions.append)
    with_volume_that_never_comes(run)
    create(run, priority("high", 10), pod("high", priorityClassName="high"))
    run.advance(run.now + 3)
    assert node_of(run, "high") == "n"
    assert run.store.find("Pod", "default", "waits") is None
    assert [decision.node for decision in decisions if decision.pod == "default/high"] == ["", "n"]


def test_a_preemptor_is_kept_out_until_its_victims_are_evicted_and_then_woken_by_their_end() -> None:
    moves: list[Move] = []
    run = Engine(default_config(version=V1_34), controllers=embedded_controllers(), recorder=moves.append)
    create(run, node(), priority("high", 10), pod("low", terminationGracePeriodSeconds=5))
    create(run, pod("high", priorityClassName="high"))
    entry = run.queue.entry("default/high")
    assert entry is not None
    assert entry.place is SubQueue.UNSCHEDULABLE
    assert run.driver.nominator.node_of(entry.uid) == "n"
    run.advance(run.now + 10)
    assert node_of(run, "high") == "n"
    woken = [move for move in moves if move.pod == "default/high" and move.source is SubQueue.UNSCHEDULABLE]
    assert [(move.event, move.plugin) for move in woken] == [("AssignedPodDelete", "NodeResourcesFit")]


class RefusesOnce:
    """A plugin that rejects its first pod with `status`, and accepts all others."""

    name: ClassVar = "RefusesOnce"
    status: ClassVar[Status]

    def __init__(self) -> None:
        self.left = 1

    def events_to_register(self) -> list[ClusterEventWithHint]:
        return [on(EventResource.POD, ActionType.DELETE)]


class AtBind(RefusesOnce):
    def pre_bind(self, state: Any, pod: Pod, node_name: str) -> Status | None:
        self.left -= 1
        return self.status if self.left >= 0 else None


class BindFails(AtBind):
    status = error("the disk is on fire")


class AtPermit(RefusesOnce):
    status = unschedulable("not yet")

    def permit(self, state: Any, pod: Pod, node_name: str) -> Any:
        self.left -= 1
        return self.status if self.left >= 0 else None


def with_plugin(plugin: type[Any], moves: list[Move]) -> Engine:
    registry = Registry()
    registry.add(plugin, "a test")
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": plugin.name}]}}}],
    }
    config = config_from_raw(raw, catalogue={**IN_TREE, **registry.catalogue()}, version=V1_34)
    return Engine(config, registry=registry, recorder=moves.append)


@pytest.mark.parametrize(
    ("plugin", "place", "event"),
    [
        pytest.param(BindFails, SubQueue.ERROR_BACKOFF, "ScheduleAttemptFailure", id="an-error-waits-and-tries-again"),
        pytest.param(AtPermit, SubQueue.UNSCHEDULABLE, "ScheduleAttemptFailure", id="a-rejection-sleeps"),
    ],
)
def test_who_is_turned_away_after_the_filters_leaves_its_node(plugin: type[Any], place: SubQueue, event: str) -> None:
    moves: list[Move] = []
    run = with_plugin(plugin, moves)
    create(run, node(), pod("p"))
    entry = run.queue.entry("default/p")
    assert entry is not None
    assert entry.place is place
    assert moves[-1].event == event
    assert run.machine.cluster.pod_count == 0
    run.advance(run.now + 400)
    assert node_of(run, "p") == "n"


def test_the_room_a_failed_binding_leaves_wakes_others() -> None:
    moves: list[Move] = []
    run = with_plugin(BindFails, moves)
    create(run, node())
    for raw in (pod("p"), pod("q")):
        run.store.create(raw)
    run.run_until_idle()
    # q was attempted second, whether the node was full or not, and must be woken when it is free.
    run.advance(run.now + 5)
    assert sorted((node_of(run, "p"), node_of(run, "q"))) == ["", "n"]


@pytest.mark.parametrize(
    ("owner", "method"),
    [
        pytest.param(NodeResourcesFit, "filter_rows", id="in-the-attempt"),
        pytest.param(SchedulingMachine, "skips", id="at-its-beginning"),
    ],
)
def test_what_an_attempt_raises_is_that_pods_and_the_run_goes_on(
    owner: type[Any], method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = getattr(owner, method)

    def trips(self: Any, *args: Any) -> Any:
        if any(isinstance(arg, Pod) and arg.name == "bad" for arg in args):
            raise OverflowError("too much")
        return there(self, *args)

    monkeypatch.setattr(owner, method, trips)
    run = Engine(default_config(version=V1_34))
    create(run, node(cpu="4"), pod("bad"), pod("good"))
    assert node_of(run, "good") == "n"
    bad = run.store.get("Pod", "default", "bad")
    assert isinstance(bad, Pod)
    [condition] = bad.status["conditions"]
    assert condition["reason"] == "SchedulerError"
    assert "too much" in condition["message"]
    entry = run.queue.entry("default/bad")
    assert entry is not None
    assert entry.place is SubQueue.ERROR_BACKOFF
    monkeypatch.setattr(owner, method, there)
    run.advance(run.now + 60)
    assert node_of(run, "bad") == "n"
