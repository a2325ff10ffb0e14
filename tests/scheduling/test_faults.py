"""Tests that a plugin's exception becomes an Error status with its name, and that scheduling continues."""

from typing import Any, ClassVar

import pytest

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw
from kschedd.framework.registry import PluginLoadError, Registry
from kschedd.framework.status import Code, Status, unschedulable
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.failure import FailedAttempt
from kschedd.scheduling.machine import SchedulingMachine


def node(name: str) -> Node:
    status = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}}
    return Node.from_raw({"kind": "Node", "metadata": {"name": name}, "status": status})


def pod(name: str = "p") -> Pod:
    meta = {"name": name, "namespace": "default", "uid": name}
    return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": {"containers": [{"name": "c", "image": "i"}]}})


def machine(cls: type[Any]) -> SchedulingMachine:
    registry = Registry()
    registry.add(cls, "a test")
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": cls.name}]}}}],
    }
    config = config_from_raw(raw, catalogue={**IN_TREE, **registry.catalogue()})
    made = SchedulingMachine(config, registry=registry)
    made.cluster.load([node("a"), node("b")])
    return made


class Faulty:
    name: ClassVar = "Faulty"


class RaisesInFilter(Faulty):
    def filter(self, state: Any, pod: Pod, node: Any) -> Status | None:
        raise ValueError("no idea")


class RaisesInScore(Faulty):
    def score(self, state: Any, pod: Pod, node: Any) -> int:
        raise ValueError("no idea")


class ScoresTooHigh(Faulty):
    def score(self, state: Any, pod: Pod, node: Any) -> int:
        return 1000


class ScoresText(Faulty):
    def score(self, state: Any, pod: Pod, node: Any) -> Any:
        return "100"


class RaisesInPreFilter(Faulty):
    def pre_filter(self, state: Any, pod: Pod, cluster: Any) -> None:
        raise ValueError("no idea")


class ColumnsOfTheWrongLength(Faulty):
    def score_rows(self, state: Any, pod: Pod, table: Any, rows: Any) -> Any:
        return rows[:1]


class ColumnsThatRaise(Faulty):
    depends_on: ClassVar = frozenset({"node"})

    def filter_rows(self, state: Any, pod: Pod, table: Any, rows: Any) -> Any:
        raise ValueError("no idea")

    def code_status(self, state: Any, pod: Pod, code: int) -> Status:
        return unschedulable("never said")


@pytest.mark.parametrize(
    ("cls", "answer"),
    [
        (RaisesInFilter, 'running "Faulty" filter plugin: ValueError: no idea'),
        (RaisesInScore, 'running Score plugins: plugin "Faulty" failed with: ValueError: no idea'),
        (ScoresTooHigh, 'plugin "Faulty" returns an invalid score 1000'),
        (ScoresText, "score returned '100'; an int from 0 to 100 is expected"),
        (RaisesInPreFilter, 'running PreFilter plugin "Faulty": ValueError: no idea'),
        (
            ColumnsOfTheWrongLength,
            "failed with: score_rows returned an array of shape (1,); an int64 array of 2 values",
        ),
        (ColumnsThatRaise, 'running "Faulty" filter plugin: ValueError: no idea'),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)
def test_a_fault_is_an_error_that_names_the_plugin(cls: type[Any], answer: str) -> None:
    made = machine(cls)
    for _ in range(3):  # cached from the second attempt on
        result = drive(made.begin(pod(), {}))
        assert isinstance(result, FitError)
        assert result.status.code == Code.ERROR
        assert answer in result.message
        rejected = made.completion.complete(QueuedPod(pod(), "default/p", 0), result, 0.0)
        assert isinstance(rejected, FailedAttempt)
        assert (rejected.reason, rejected.unschedulable_plugins) == ("SchedulerError", frozenset())


class RejectsInReserve(Faulty):
    undone: ClassVar[list[str]] = []

    def reserve(self, state: Any, pod: Pod, node_name: str) -> Status | None:
        return unschedulable("not here")

    def unreserve(self, state: Any, pod: Pod, node_name: str) -> None:
        self.undone.append(node_name)


class WaitsInPermit(Faulty):
    def permit(self, state: Any, pod: Pod, node_name: str) -> Any:
        return Status(Code.WAIT), 5.0


def test_a_reservation_refused_is_taken_back() -> None:
    made = machine(RejectsInReserve)
    result = drive(made.begin(pod(), {}))
    assert isinstance(result, ScheduleResult)
    rejected = made.completion.complete(QueuedPod(pod(), "default/p", 0), result, 0.0)
    assert isinstance(rejected, FailedAttempt)
    assert rejected.message == "0/1 nodes are available: 1 not here."
    assert rejected.unschedulable_plugins == {"Faulty"}
    assert RejectsInReserve.undone == [result.node_name]
    assert made.cluster.pod_count == 0


def test_permit_waits_until_it_is_allowed_or_its_time_is_over() -> None:
    made = machine(WaitsInPermit)
    outcomes = []
    for name in ("allowed", "late"):
        result = drive(made.begin(pod(name), {}))
        reserved = made.completion.complete(QueuedPod(pod(name), f"default/{name}", 0), result, 100.0)
        assert isinstance(reserved, AssumedPod)
        assert reserved.waiting is not None
        assert reserved.waiting.deadline == 105.0
        outcomes.append(reserved.waiting)
    assert made.waiting.allow("allowed", "Faulty")
    outcomes[1].expire(104.9)
    assert not outcomes[1].decided
    outcomes[1].expire(105.0)
    assert outcomes[0].decided
    assert outcomes[0].rejection is None
    assert outcomes[1].rejection is not None
    assert outcomes[1].rejection.message == "rejected due to timeout after waiting 5s at plugin Faulty"


def test_the_error_says_which_line_of_the_plugin_raised() -> None:
    result = drive(machine(RaisesInFilter).begin(pod(), {}))
    line = RaisesInFilter.filter.__code__.co_firstlineno + 1
    assert result.message.endswith(f"ValueError: no idea (test_faults.py:{line})")


def test_a_plugin_without_any_extension_point_is_refused() -> None:
    with pytest.raises(PluginLoadError, match="none of the methods"):
        Registry().add(Faulty, "a test")


class RaisesOnB(Faulty):
    def filter(self, state: Any, pod: Pod, node: Any) -> Status | None:
        if node.name == "b":
            raise ValueError("no idea")
        return None


def test_the_first_error_ends_the_search_and_the_next_one_begins_there() -> None:
    made = machine(RaisesOnB)
    for _ in range(2):
        result = drive(made.begin(pod(), {}))
        assert isinstance(result, FitError)
        assert result.status.code is Code.ERROR
        assert made.start.index == 1
