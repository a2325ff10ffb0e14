"""Which criterion chose among the candidates of a preemption, in upstream's order."""

from typing import Any

import pytest

from kschedd.api.pods import Pod
from kschedd.explain.preempting import preemption_answer
from kschedd.framework.postfilter import Candidate, Preemption


def victim(name: str, priority: int = 0, started: str = "2025-01-01T00:00:00Z") -> Pod:
    meta = {"name": name, "namespace": "default", "uid": name}
    spec: dict[str, Any] = {"priority": priority, "containers": []}
    return Pod.from_raw({"metadata": meta, "spec": spec, "status": {"startTime": started}})


def candidate(node: str, *victims: Pod, violations: int = 0) -> Candidate:
    return Candidate(node, victims, violations)


LATE = "2025-02-01T00:00:00Z"


@pytest.mark.parametrize(
    ("other", "criterion"),
    [
        pytest.param(candidate("b", victim("v"), violations=1), "fewest violated disruption budgets", id="budgets"),
        pytest.param(candidate("b", victim("v", 5)), "lowest priority of the highest victim", id="highest"),
        pytest.param(candidate("b", victim("v"), victim("w", -3)), "lowest sum of priorities", id="sum"),
        pytest.param(candidate("b", victim("v", 0, "2024-01-01T00:00:00Z")), "latest start of the victims", id="start"),
        pytest.param(candidate("b", victim("v")), "the first by name", id="equals"),
    ],
)
def test_the_criterion_that_decided_is_named(other: Candidate, criterion: str) -> None:
    chosen = candidate("a", victim("u"))
    found = preemption_answer("a", [], Preemption((other, chosen), (), (), ()))
    assert found.decided_by == criterion
    assert [each.node for each in found.candidates] == ["a", "b"]
    assert found.tied == (["b"] if criterion == "the first by name" else [])


def test_one_candidate_needs_no_criterion() -> None:
    found = preemption_answer("a", [], Preemption((candidate("a", victim("u")),), ("a",), (), ()))
    assert (found.decided_by, found.left, found.candidate_count) == ("", [], 1)


def test_an_out_of_tree_plugin_says_no_more_than_its_choice() -> None:
    assert preemption_answer("a", [], None).candidate_count == 0
