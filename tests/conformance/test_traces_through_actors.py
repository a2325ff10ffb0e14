"""Tests of golden traces through the daemon's actors."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from kschedd.conformance.records import GoldenRecord, read_records
from kschedd.conformance.traces import Lockstep
from tests.conformance.actors_lockstep import actors_differences
from tests.conformance.golden_records import Raw, node, pod, trace
from tests.conftest import SharedPart
from tests.full_run import part


def through_actors(record: GoldenRecord) -> list[str]:
    clock = MockClock()
    found: list[str] = trio.run(actors_differences, record, clock, clock=clock)
    return found


@pytest.fixture
def golden(shared_part: SharedPart) -> list[GoldenRecord]:
    return list(read_records(shared_part("conformance") / "traces.jsonl.gz"))


def test_every_trace_comes_out_of_the_daemons_actors_as_kube_scheduler_has_it(golden: list[GoldenRecord]) -> None:
    assert len(golden) >= 200
    played = part(8, golden)
    wrong = {record.id: found for record in played if (found := through_actors(record))}
    reported = [f"{name}: {'; '.join(found[:3])}" for name, found in wrong.items()]
    assert not wrong, "\n".join([f"{len(wrong)} of {len(played)}:", *reported[:5]])


def made(*ops: Raw, **fields: Any) -> GoldenRecord:
    """Return a trace whose expected steps come from the scheduling loop."""

    def record(want: list[Raw]) -> GoldenRecord:
        raw = trace(list(ops), want, **fields)
        return GoldenRecord(raw["id"], raw["family"], raw["config"], raw["objects"], raw)

    run = Lockstep(record([]))
    return record([run.step(op, ()) for op in ops])


def create(raw: Raw) -> Raw:
    return {"op": "create", "object": raw}


def victim() -> Raw:
    low = pod("low")
    return {**low, "spec": {**low["spec"], "nodeName": "a"}, "status": {"phase": "Running"}}


def preemption_with_a_node_that_comes_too_late() -> GoldenRecord:
    late = {"op": "run", "cycles": 1, "during": [create(node("b"))]}
    return made(create(pod("high", priority=10)), late, {"op": "run"}, objects=[node("a", cpu="1"), victim()])


def test_the_loop_and_the_actors_make_the_same_of_a_trace() -> None:
    record = preemption_with_a_node_that_comes_too_late()
    assert [attempt["result"] for step in record.want["steps"] for attempt in step["attempts"]] == [
        "unschedulable",
        "scheduled",
    ]
    assert through_actors(record) == []


def test_a_step_that_differs_is_found() -> None:
    record = preemption_with_a_node_that_comes_too_late()
    record.want["steps"][1]["nominated"] = {"b": ["default/high"]}
    found = through_actors(record)
    assert found
    assert all(line.startswith("steps[1].nominated") for line in found)
