"""Tests of pods that wait at Permit: their deadline, their end, and the durations in messages."""

import pytest

from kschedd.framework.status import Status, error, unschedulable
from kschedd.scheduling.binding.waiting import WaitingPod, WaitingPods, duration
from tests.scheduling.test_scheduler import pod


def waiting() -> WaitingPod:
    return WaitingPod(pod("p"), "n", {"Slow": 90.0, "Fast": 30.0}, {"Slow": 90.0, "Fast": 30.0})


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.5, "500ms"),
        (0.0015, "1.5ms"),
        (1, "1s"),
        (30.25, "30.25s"),
        (60, "1m0s"),
        (90, "1m30s"),
        (3600, "1h0m0s"),
        (3661.5, "1h1m1.5s"),
        (900, "15m0s"),
    ],
)
def test_durations_are_formatted_as_in_go(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_pod_waits_until_the_earliest_timeout_of_the_plugins_that_have_not_allowed_it() -> None:
    one = waiting()
    assert (one.deadline, one.decided) == (30.0, False)
    one.allow("Fast")
    assert (one.deadline, one.decided) == (90.0, False)
    one.allow("unknown")
    one.allow("Slow")
    assert (one.decided, one.rejection) == (True, None)
    one.reject("Slow", "too late")
    assert one.rejection is None


@pytest.mark.parametrize(("now", "plugin"), [(29.9, ""), (30.0, "Fast"), (100.0, "Fast")])
def test_the_plugin_whose_timeout_was_first_rejects_the_pod(now: float, plugin: str) -> None:
    one = waiting()
    one.expire(now)
    assert one.decided is bool(plugin)
    if plugin:
        why = "rejected due to timeout after waiting 30s at plugin Fast"
        assert one.rejection == unschedulable(why).by("Fast")


def test_a_copy_is_independent() -> None:
    one = waiting()
    other = one.copy()
    other.allow("Fast")
    other.reject("Slow", "no")
    assert (one.deadline, one.decided) == (30.0, False)


@pytest.mark.parametrize(
    ("method", "rejection"),
    [
        ("reject", unschedulable("why").by("Slow")),
        ("preempt", error("waiting on permit for pod: why").by("Slow")),
    ],
)
def test_a_pod_is_rejected_once_and_only_while_it_waits(method: str, rejection: Status) -> None:
    pods = WaitingPods({"uid-p": waiting()})
    end = getattr(pods, method)
    assert end("unknown", "Slow", "why") is False
    assert not pods.decided("uid-p")
    assert end("uid-p", "Slow", "why") is True
    assert pods.decided("uid-p")
    assert end("uid-p", "Fast", "again") is True
    assert pods.pods["uid-p"].rejection == rejection


def test_a_pod_is_allowed_only_while_it_waits() -> None:
    pods = WaitingPods({"uid-p": waiting()})
    assert pods.allow("unknown", "Slow") is False
    assert pods.decided("unknown") is False
    assert pods.allow("uid-p", "Slow") is True
    assert not pods.decided("uid-p")
    assert pods.allow("uid-p", "Fast") is True
    assert pods.decided("uid-p")
