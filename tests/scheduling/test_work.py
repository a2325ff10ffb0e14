"""Tests of work: the calls that an attempt waits for, and the faults of plugins in these calls."""

from collections.abc import Callable

import pytest

from kschedd.api.pods import Pod
from kschedd.framework.faults import PluginError
from kschedd.scheduling.debug.breakpoints import StopPoint
from kschedd.scheduling.debug.work import Answers, Work, answered, drive
from tests.scheduling.driven import pod

FAULT = PluginError("Picky", "filter", "took too long")


def shard(*answers: int) -> Callable[[], Answers]:
    return lambda: list(answers)


def fails() -> Answers:
    raise FAULT


def two_rounds() -> Work[list[Answers]]:
    first = yield [shard(1, 2), shard(3)]
    second = yield [shard(4)]
    return [*first, *second]


def gives_up() -> Work[str]:
    try:
        yield [shard(1), fails]
    except PluginError as fault:
        return f"attempt failed: {fault.why}"
    return "no fault"


def ignores_the_fault() -> Work[None]:
    try:
        yield [fails]
    except PluginError:
        yield []


def test_each_round_of_calls_gets_its_answers_in_order() -> None:
    assert drive(two_rounds()) == [[1, 2], [3], [4]]


def test_the_caller_can_observe_each_call() -> None:
    seen: list[Answers] = []

    def observed(shard: Callable[[], Answers]) -> Answers:
        seen.append(shard())
        return seen[-1]

    assert drive(two_rounds(), observed) == seen == [[1, 2], [3], [4]]


def test_work_without_calls_has_a_result_too() -> None:
    def nothing_to_call() -> Work[int]:
        yield from ()
        return 3

    assert drive(nothing_to_call()) == 3


def test_a_fault_of_a_plugin_is_raised_where_the_work_waits() -> None:
    assert drive(gives_up()) == "attempt failed: took too long"


def test_a_plugin_fault_that_the_work_does_not_handle_is_the_callers() -> None:
    def unaware() -> Work[None]:
        yield [fails]

    with pytest.raises(PluginError, match="took too long"):
        drive(unaware())


def test_work_must_end_with_the_fault_of_a_plugin() -> None:
    work = ignores_the_fault()
    shards = next(work)
    assert not isinstance(shards, StopPoint)
    with pytest.raises(AssertionError, match="a search ends with the fault of a plugin"):
        answered(work, shards)


def test_work_that_is_run_to_its_end_at_once_must_not_stop() -> None:
    def stops() -> Work[None]:
        yield StopPoint(1, Pod.from_raw(pod("web")), 1, "filter", "NodeName")

    with pytest.raises(AssertionError, match="there is no stop point here, at filter NodeName"):
        drive(stops())
