"""Tests that the kind of a reason does not depend on the numbers in the message."""

import pytest

from kschedd.report.reasons import NO_NODES, reasons_of


@pytest.mark.parametrize(
    ("message", "reasons"),
    [
        pytest.param(
            "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable. preemption: 0/3 nodes are "
            "available: 3 Preemption is not helpful for scheduling.",
            "Insufficient cpu; node(s) were unschedulable",
            id="preemption-is-left-out",
        ),
        pytest.param(
            "0/9 nodes are available: 2 node(s) were unschedulable, 7 Insufficient cpu. no new claims to deallocate, "
            "preemption: 0/9 nodes are available: 9 No preemption victims found for incoming pod.",
            "Insufficient cpu; node(s) were unschedulable",
            id="counts-and-order-do-not-matter",
        ),
        pytest.param("0/1 nodes are available: 1 x, and y.", "x, and y", id="a-comma-within-a-reason"),
        pytest.param("0/3 nodes are available:", NO_NODES, id="nothing-said"),
        pytest.param("no nodes available to schedule pods", "no nodes available to schedule pods", id="another-text"),
        pytest.param("e" * 500, "e" * 159 + "…", id="cut"),
    ],
)
def test_reasons(message: str, reasons: str) -> None:
    assert reasons_of(message) == reasons
