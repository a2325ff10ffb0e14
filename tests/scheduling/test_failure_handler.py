"""Tests of failed attempts: the order of their writes, and pods that are gone, replaced or bound meanwhile."""

from typing import Any

import pytest

from kschedd.framework.writes import Delete, MergePatch, Write
from kschedd.queue.operations import AttemptFailed
from kschedd.scheduling.failure import FailedAttempt
from tests.scheduling.driven import NOW, Driven, node, pod

CLAIM = MergePatch("ResourceClaim", "default", "c", {"status": {"reservedFor": None}}, "status")
TOLD = MergePatch("Pod", "default", "v", {"status": {"conditions": []}}, "status")
GONE = Delete("Pod", "default", "v", "uid-v")


def failing(**fields: Any) -> tuple[Driven, FailedAttempt]:
    run = Driven()
    run.see(node(), pod("p"), pod("v", on="n"))
    entry = run.entry("p")
    run.driver.pending.begin(entry.uid)
    run.driver.take_effects()
    none: frozenset[str] = frozenset()
    return run, FailedAttempt(entry, "Unschedulable", "no cpu", none, none, None, **fields)


def names(writes: Any) -> list[tuple[str, str]]:
    return [(type(write).__name__, write.name) for write in writes]


def test_without_an_eviction_all_writes_come_before_the_pods_status() -> None:
    run, failed = failing(writes=(CLAIM, GONE))
    run.driver.attempts.failures.fail(failed, NOW)
    effects = run.driver.take_effects()
    assert names(effects.writes) == [("Patch", "c"), ("Delete", "v"), ("Patch", "p")]
    assert effects.evictions == []


def test_claims_are_released_before_an_eviction_and_the_rest_is_part_of_it() -> None:
    writes: tuple[Write, ...] = (CLAIM, TOLD, GONE)
    run, failed = failing(writes=writes, evicts=True)
    run.driver.attempts.failures.fail(failed, NOW)
    effects = run.driver.take_effects()
    assert names(effects.writes) == [("Patch", "c"), ("Patch", "p")]
    [eviction] = effects.evictions
    assert eviction.writes == (TOLD, GONE)
    [back] = effects.queue
    assert isinstance(back, AttemptFailed)
    assert (back.evicting, back.victims) == (True, {"uid-v"})
    assert effects.failures[0].message == "no cpu"


@pytest.mark.parametrize(
    ("meanwhile", "written"),
    [
        pytest.param(lambda run: run.goes("p"), ["p"], id="gone"),
        pytest.param(lambda run: run.see(pod("p", uid="other")), [], id="replaced"),
        pytest.param(lambda run: run.see(pod("p", on="n", resourceVersion="2")), [], id="bound"),
    ],
)
def test_a_pod_that_is_no_longer_pending_does_not_return_to_the_queue(meanwhile: Any, written: list[str]) -> None:
    run, failed = failing()
    meanwhile(run)
    run.driver.take_effects()
    run.driver.attempts.failures.fail(failed, NOW)
    effects = run.driver.take_effects()
    assert (effects.queue, effects.released) == ([], ["uid-p"])
    assert [write.name for write in effects.writes if isinstance(write, MergePatch)] == written
