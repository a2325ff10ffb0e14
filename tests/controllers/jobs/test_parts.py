"""Tests of Jobs' indexes, failure policies and back-offs, with cases from upstream's tests."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.api.pods import Pod
from kschedd.api.text.times import stamp
from kschedd.controllers.jobs.failure_policy import FailureMatch, match_failure
from kschedd.controllers.jobs.indexes import COMPLETION_INDEX, IndexSet, completion_index
from kschedd.controllers.jobs.pod_backoff import FAILURE_COUNT, PodBackoff, finished_at, index_ready_at

NOW = 1_700_000_000.0


def pod(status: dict[str, Any] | None = None, **meta: Any) -> Pod:
    whole = {"name": "p", "namespace": "default", "uid": "u", "creationTimestamp": stamp(NOW - 500), **meta}
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": whole, "spec": {"containers": []}, "status": status or {}}
    return Pod.from_raw(raw)


@pytest.mark.parametrize(
    ("text", "completions", "read"),
    [
        pytest.param("", 10, "", id="empty"),
        pytest.param("1,2-4", 10, "1-4", id="adjacent-ones-are-joined"),
        pytest.param("0,2,4", 10, "0,2,4", id="single-ones"),
        pytest.param("0-1", 10, "0,1", id="two-are-written-as-two"),
        pytest.param("1-5,8", 4, "1-3", id="cut-at-the-completions"),
        pytest.param("0,x,3", 10, "0,3", id="what-cannot-be-read-is-passed-over"),
        pytest.param("3-x,7", 10, "7", id="nor-half-an-interval"),
    ],
)
def test_indexes_as_text(text: str, completions: int, read: str) -> None:
    assert str(IndexSet.parse(text, completions)) == read


@given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)), st.integers(0, 10), st.integers(0, 45))
def test_index_sets_are_sets(one: set[int], other: set[int], count: int, completions: int) -> None:
    first, second = IndexSet.of(one), IndexSet.of(other)
    assert first.total == len(one)
    assert {index for index in range(45) if index in first} == one
    assert first.union(second) == IndexSet.of(one | other)
    assert first.common(second) == len(one & other)
    missing = [index for index in range(completions) if index not in one]
    assert first.first_missing(count, completions) == missing[:count]
    assert IndexSet.parse(str(first), 41) == first


@pytest.mark.parametrize(
    ("annotation", "index"),
    [
        pytest.param(None, -1, id="none"),
        pytest.param("3", 3, id="a-number"),
        pytest.param("-3", -1, id="negative"),
        pytest.param("x", -1, id="a-word"),
    ],
)
def test_the_index_of_a_pod(annotation: str | None, index: int) -> None:
    annotations = {} if annotation is None else {COMPLETION_INDEX: annotation}
    assert completion_index(pod(annotations=annotations)) == index


def ended(code: int, name: str = "main") -> dict[str, Any]:
    return {"name": name, "state": {"terminated": {"exitCode": code}}}


def on_exit(action: str, operator: str, *values: int, container: str | None = None) -> dict[str, Any]:
    requirement: dict[str, Any] = {"operator": operator, "values": list(values)}
    if container:
        requirement["containerName"] = container
    return {"action": action, "onExitCodes": requirement}


def on_condition(action: str, type_: str, status: str = "True") -> dict[str, Any]:
    return {"action": action, "onPodConditions": [{"type": type_, "status": status}]}


FIVE = {"phase": "Failed", "containerStatuses": [ended(5)]}
TWO = {"phase": "Failed", "containerStatuses": [ended(1, "main"), ended(6, "side")]}
INIT = {
    "phase": "Failed",
    "initContainerStatuses": [ended(5, "init")],
    "containerStatuses": [{"name": "main", "state": {}}],
}
EVICTED = {"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True"}]}
CODE_5 = "Container main for pod default/p failed with exit code 5 matching FailJob rule at index 0"
DISRUPTED = "Pod default/p has condition DisruptionTarget matching FailJob rule at index 0"


@pytest.mark.parametrize(
    ("rules", "status", "expected"),
    [
        pytest.param(None, FIVE, FailureMatch(), id="no-policy"),
        pytest.param([], FIVE, FailureMatch(), id="no-rules"),
        pytest.param([on_exit("FailJob", "In", 1, 5)], FIVE, FailureMatch(True, "FailJob", CODE_5), id="in"),
        pytest.param([on_exit("FailJob", "In", 1, 2)], FIVE, FailureMatch(), id="not-among-them"),
        pytest.param([on_exit("FailJob", "NotIn", 1)], FIVE, FailureMatch(True, "FailJob", CODE_5), id="not-in"),
        pytest.param([on_exit("FailJob", "NotIn", 5)], FIVE, FailureMatch(), id="not-in-but-it-is"),
        pytest.param([on_exit("Ignore", "In", 5)], FIVE, FailureMatch(False, "Ignore"), id="ignored"),
        pytest.param([on_exit("Count", "In", 5)], FIVE, FailureMatch(True, "Count"), id="counted"),
        pytest.param([on_exit("FailIndex", "In", 5)], FIVE, FailureMatch(True, "FailIndex"), id="fails-its-index"),
        pytest.param(
            [on_exit("Ignore", "In", 5), on_exit("FailJob", "In", 5)],
            FIVE,
            FailureMatch(False, "Ignore"),
            id="the-first-wins",
        ),
        pytest.param(
            [on_exit("Ignore", "In", 6, container="side")], TWO, FailureMatch(False, "Ignore"), id="by-container"
        ),
        pytest.param([on_exit("Ignore", "In", 6, container="main")], TWO, FailureMatch(), id="another-container"),
        pytest.param([on_exit("Ignore", "In", 5)], INIT, FailureMatch(False, "Ignore"), id="init-containers-too"),
        pytest.param(
            [on_exit("Ignore", "NotIn", 1)],
            {"phase": "Failed", "containerStatuses": [ended(0)]},
            FailureMatch(),
            id="exit-code-0-never-matches",
        ),
        pytest.param(
            [on_condition("FailJob", "DisruptionTarget")],
            EVICTED,
            FailureMatch(True, "FailJob", DISRUPTED),
            id="condition",
        ),
        pytest.param(
            [on_condition("Ignore", "DisruptionTarget")], EVICTED, FailureMatch(False, "Ignore"), id="evicted"
        ),
        pytest.param([on_condition("Ignore", "DisruptionTarget", "False")], EVICTED, FailureMatch(), id="other-status"),
        pytest.param(
            [{"action": "Later", "onExitCodes": {"operator": "In", "values": [5]}}], FIVE, FailureMatch(), id="new"
        ),
    ],
)
def test_failure_policies(rules: Any, status: dict[str, Any], expected: FailureMatch) -> None:
    assert match_failure(None if rules is None else {"rules": rules}, pod(status)) == expected


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(1, 10), (2, 20), (3, 40), (4, 80), (5, 160), (6, 320), (7, 600), (8, 600), (1000, 600)],
)
def test_the_backoff_doubles_from_10_s_to_10_min(failures: int, seconds: int) -> None:
    assert PodBackoff(failures, NOW).ready_at() == NOW + seconds
    annotated = pod({"phase": "Failed", "containerStatuses": [at(NOW)]}, annotations={FAILURE_COUNT: str(failures - 1)})
    assert index_ready_at(annotated) == NOW + seconds


def at(seconds: float) -> dict[str, Any]:
    return {"name": "c", "state": {"terminated": {"exitCode": 1, "finishedAt": stamp(seconds)}}}


def at_times(*times: float) -> list[Pod]:
    return [pod({"containerStatuses": [at(time)]}) for time in times]


@pytest.mark.parametrize(
    ("before", "succeeded", "failed", "after"),
    [
        pytest.param(PodBackoff(), [], [], PodBackoff(), id="nothing-ended"),
        pytest.param(PodBackoff(), [], [NOW], PodBackoff(1, NOW), id="a-first-failure"),
        pytest.param(PodBackoff(2, NOW - 60), [], [NOW, NOW - 5], PodBackoff(4, NOW), id="more-failures"),
        pytest.param(PodBackoff(2, NOW - 60), [NOW], [], PodBackoff(), id="a-success-clears-it"),
        pytest.param(
            PodBackoff(2, NOW - 60), [NOW - 5], [NOW - 9, NOW], PodBackoff(1, NOW), id="failures-after-it-count"
        ),
        pytest.param(PodBackoff(2, NOW - 60), [NOW], [NOW], PodBackoff(), id="at-the-same-time-does-not-count"),
    ],
)
def test_failures_count_from_the_last_success(
    before: PodBackoff, succeeded: list[float], failed: list[float], after: PodBackoff
) -> None:
    assert before.after(at_times(*succeeded), at_times(*failed)) == after


@pytest.mark.parametrize(
    ("given", "ago"),
    [
        pytest.param(pod({"containerStatuses": [at(NOW - 3), at(NOW - 7)]}), 3, id="the-last-container"),
        pytest.param(
            pod({"containerStatuses": [at(NOW - 3), {"name": "d", "state": {}}]}), 500, id="not-all-have-ended"
        ),
        pytest.param(
            pod({"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": stamp(NOW - 4)}]}),
            4,
            id="ready",
        ),
        pytest.param(pod(deletionTimestamp=stamp(NOW - 5), deletionGracePeriodSeconds=30), 35, id="its-deletion"),
        pytest.param(pod(), 500, id="its-creation"),
    ],
)
def test_when_a_pod_ended(given: Pod, ago: float) -> None:
    assert finished_at(given) == NOW - ago
