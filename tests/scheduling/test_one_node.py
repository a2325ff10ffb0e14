"""Tests of the evaluation of a pod on one node, without caches."""

from collections.abc import Collection, Mapping
from typing import Any

import attrs
import pytest

from kschedd.api.pods import Pod
from kschedd.framework.status import Code, Status, error, unresolvable, unschedulable
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.nominations.counted import NominatedPods
from tests.scheduling.test_scheduler import machine, node, plugin, pod, saying


def why_not(
    made: SchedulingMachine,
    wanted: Pod,
    *,
    nominated: Mapping[str, tuple[Pod, ...]] | None = None,
    skipped: Collection[str] = (),
) -> Status | None:
    counted = NominatedPods(made.cluster.table, wanted, nominated or {}).at("b")
    found: Status | None = drive(made.schedulers["default-scheduler"].one_node.why_not(wanted, "b", counted, skipped))
    return found


def on_b(status: Status | None) -> Any:
    """Return a filter that returns this status for the node b, and accepts all others."""
    return lambda state, pod, node: status if node.name == "b" else None


def test_a_pod_that_fits_on_the_node_has_no_status() -> None:
    assert why_not(machine(nodes=[node("a", unschedulable=True), node("b")]), pod()) is None


def test_only_the_node_is_evaluated() -> None:
    status = why_not(machine(nodes=[node("a"), node("b", unschedulable=True)]), pod())
    assert status == unresolvable("node(s) were unschedulable").by("NodeUnschedulable")


def test_the_pods_that_are_nominated_to_the_node_are_counted() -> None:
    made = machine()
    assert why_not(made, pod(cpu="5"), nominated={"a": (pod("q", cpu="5"),)}) is None
    status = why_not(made, pod(cpu="5"), nominated={"b": (pod("q", cpu="5"),)})
    assert status == unschedulable("Insufficient cpu").by("NodeResourcesFit")


def test_changes_of_the_node_are_seen() -> None:
    made = machine()
    assert why_not(made, pod(cpu="5")) is None
    made.cluster.put(attrs.evolve(pod("there", cpu="5"), node_name="b"))
    assert why_not(made, pod(cpu="5")) == unschedulable("Insufficient cpu").by("NodeResourcesFit")


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(unschedulable("no"), unschedulable("no").by("Filters"), id="rejected"),
        pytest.param(error("broken"), Status(Code.ERROR, ("broken",), "Filters"), id="error"),
    ],
)
def test_the_status_of_a_filter_is_returned_unless_the_filter_is_skipped(status: Status, expected: Status) -> None:
    made = machine(plugin("Filters", filter=on_b(status)))
    found = why_not(made, pod())
    assert found is not None
    assert (found.code, found.plugin) == (expected.code, expected.plugin)
    assert expected.message in found.message
    assert why_not(made, pod(), skipped=["Filters"]) is None


def test_a_filter_that_raises_is_an_error() -> None:
    def fails(state: Any, pod: Pod, node: Any) -> Status | None:
        raise OverflowError("too much")

    found = why_not(machine(plugin("Filters", filter=fails)), pod())
    assert found is not None
    assert (found.code, found.plugin) == (Code.ERROR, "Filters")
    assert "too much" in found.message


def test_a_filter_of_columns_that_raises_is_an_error() -> None:
    def fails(state: Any, pod: Pod, table: Any, rows: Any) -> Any:
        raise OverflowError("too much")

    columns = plugin("Columns", filter_rows=fails, code_status=lambda state, pod, code: unschedulable("no"))
    found = why_not(machine(columns), pod())
    assert found is not None
    assert (found.code, found.plugin) == (Code.ERROR, "Columns")
    assert found.message.startswith('running "Columns" filter plugin: OverflowError: too much')


def test_the_rejection_of_pre_filter_is_returned() -> None:
    made = machine(plugin("One", pre_filter=saying(unschedulable("not today"))))
    assert why_not(made, pod()) == unschedulable("not today").by("One")
