"""Tests of the services that plugins receive, and of their forks."""

from typing import Any

import attrs

from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.handle import Handle
from tests.framework.pods import make_pod


@attrs.define
class Assumptions:
    """An object that plugins share, with a copy for forks."""

    cluster: SchedulerCache
    pods: tuple[str, ...] = ()

    def fork(self, cluster: SchedulerCache) -> "Assumptions":
        return Assumptions(cluster, self.pods)


@attrs.define
class Totals:
    """An object that plugins share, which a fork computes again."""

    cluster: SchedulerCache


def test_without_a_scheduler_no_pod_waits_and_nothing_is_changed() -> None:
    handle = Handle(SchedulerCache())
    assert not handle.allow("uid", "Coscheduling")
    assert not handle.reject("uid", "Coscheduling", "no")
    of_pods = handle.decided_at_permit, handle.in_pre_bind, handle.evicting, handle.leaving
    assert [answer("uid") for answer in of_pods] == [False] * 4
    assert (list(handle.nominated_pods("n")), list(handle.waiting_pods())) == ([], [])
    assert (handle.seed, handle.now_s) == (0, 0.0)


def test_plugins_share_one_object() -> None:
    handle = Handle(SchedulerCache())
    shared = handle.shared(Totals)
    assert shared.cluster is handle.cluster
    assert handle.shared(Totals) is shared


def test_a_fork_has_copies_of_what_plugins_assume_and_the_pods_that_wait_now() -> None:
    waiting: list[Any] = [(make_pod("a"), "n")]
    handle = Handle(SchedulerCache(), {"Gate": True}, 7, waiting_pods=lambda: tuple(waiting), now_s=5.0)
    handle.shared(Assumptions).pods = ("a",)
    totals = handle.shared(Totals)
    cluster = SchedulerCache()
    fork = handle.fork(cluster)
    waiting.clear()
    assert fork.shared(Assumptions) == Assumptions(cluster, ("a",))
    assert fork.shared(Totals) is not totals
    assert fork.shared(Totals).cluster is cluster
    assert [(one.name, on) for one, on in fork.waiting_pods()] == [("a", "n")]
    assert (fork.feature_gates, fork.seed, fork.now_s) == ({"Gate": True}, 7, 5.0)
