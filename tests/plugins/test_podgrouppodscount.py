"""Tests of PodGroupPodsCount: placements in which more pods of the group run score higher."""

import numpy as np
import pytest

from kschedd.cache.pod_groups import PodGroups
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.handle import Handle
from kschedd.framework.placements import PlacedPods, Placement
from kschedd.framework.status import Status, error
from kschedd.plugins.podgrouppodscount import PodGroupPodsCount
from tests.plugins.test_gangscheduling import group, pod


def scores(running: int, *fitting: int) -> list[int] | Status:
    """Score placements in which these numbers of pods fit; other pods of the group are running already."""
    cluster = SchedulerCache()
    handle = Handle(cluster)
    plugin = PodGroupPodsCount.from_args(None, handle)
    for number in range(running):
        one = pod(f"r{number}", "pg1", node="n")
        cluster.put(one)
        handle.shared(PodGroups).put(one)
    handle.shared(PodGroups).put(pod("waits", "pg1"))
    rows = np.zeros(0, dtype=np.int64)
    placements = [
        PlacedPods(Placement(str(number), rows), [pod(f"p{each}", "pg1") for each in range(count)])
        for number, count in enumerate(fitting)
    ]
    found = plugin.score_placements(group("pg1", 3), placements, cluster.table)
    return found if isinstance(found, Status) else list(found)


@pytest.mark.parametrize(
    ("running", "fitting", "expected"),
    [
        pytest.param(0, (3, 1), [100, 33], id="shares-of-the-largest-number-rounded-down"),
        pytest.param(0, (0, 4), [0, 100], id="none-fits"),
        pytest.param(2, (3, 1), [100, 60], id="running-pods-count-in-each"),
        pytest.param(1, (0, 0), [100, 100], id="only-running-pods"),
    ],
)
def test_scores(running: int, fitting: tuple[int, ...], expected: list[int]) -> None:
    assert scores(running, *fitting) == expected


def test_without_any_pod_there_is_no_score() -> None:
    why = "no pods from pod group are assigned to any of the candidate placements"
    assert scores(0, 0, 0) == error(why)
