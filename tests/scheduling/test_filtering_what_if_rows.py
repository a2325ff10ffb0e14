"""Tests of pods that are added to and removed from rows of a what-if copy, together or with a state for each row."""

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest

from kschedd.api.pods import Pod
from kschedd.cache.pod_batch import PodBatch
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import unschedulable
from kschedd.scheduling.filtering.what_if_rows import NominatedOnRows, WhatIfRows
from kschedd.scheduling.nominations.counted import NominatedPods
from kschedd.scheduling.verdicts import PASSED
from tests.scheduling.test_filtering_nominated_pods import SPREAD, Cluster, pod
from tests.scheduling.test_scheduler import plugin

ROWS = np.arange(4)


@attrs.define(eq=False)
class Copy:
    """A what-if copy of the nodes a to d for a pod, and the pods that are nominated to them."""

    made: Cluster
    rows: WhatIfRows
    nominated: NominatedOnRows

    @classmethod
    def of(cls, made: Cluster, incoming: Pod) -> "Copy":
        state, table, filters = CycleState(), made.cluster.table, made.scheduler.filters
        made.scheduler.pre_filters.at_once(state, incoming)
        names = [table.row_of[name] for name in "abcd"]
        rows = WhatIfRows(filters, state, incoming, table.copy_rows(names))
        counted = NominatedPods(table, incoming, made.nominator.nominated).everywhere
        return cls(made, rows, NominatedOnRows(rows, counted))

    def rejected(self, rows: Any = ROWS) -> str:
        """Return the names of the nodes that a filter rejects."""
        failed, _, _ = self.rows.judge(rows, self.made.scheduler.filters.local)
        return "".join(np.array(list("abcd"))[rows[failed != PASSED]])

    def there(self) -> Any:
        table = self.rows.table
        return [[each.name for each in pods] for pods in table.pods], table.requested.tolist(), table.pod_count.tolist()


def follower(called: list[tuple[str, str]]) -> type[Any]:
    """Return a plugin that rejects a node to which a pod was added, by a state that follows pods."""

    def pre_filter(state: Any, pod: Any, cluster: Any) -> None:
        state.data["added"] = 0

    def followed(amount: int) -> Callable[..., None]:
        def method(state: Any, pod: Any, other: Any, node: Any) -> None:
            called.append((node.name, other.name))
            state.data["added"] += amount

        return method

    return plugin(
        "Own",
        pre_filter=pre_filter,
        add_pod=followed(1),
        remove_pod=followed(-1),
        filter=lambda state, pod, node: unschedulable("no") if state.data["added"] > 0 else None,
    )


def seer() -> type[Any]:
    """Return a plugin that rejects a node with a pod."""
    return plugin("Own", filter=lambda state, pod, node: unschedulable("no") if node.pods else None)


PLAIN = pod("p")
SPREADING = pod("p", app="x", topologySpreadConstraints=SPREAD)


@pytest.mark.parametrize(
    ("plugins", "incoming", "notifies", "follows"),
    [
        pytest.param([], PLAIN, False, False, id="row-by-row"),
        pytest.param([], SPREADING, False, True, id="columns"),
        pytest.param([seer()], PLAIN, False, False, id="a-plugin-that-reads-the-pods"),
        pytest.param([follower([])], PLAIN, True, False, id="a-plugin-that-follows-pods"),
    ],
)
def test_nominated_pods_are_on_their_rows_until_they_are_removed(
    plugins: list[type[Any]], incoming: Pod, notifies: bool, follows: bool
) -> None:
    made = Cluster(*plugins)
    made.cluster.put_pod(pod("there", 1, on="d"))
    for name, on in (("k", "a"), ("l", "b"), ("m", "b")):
        made.nominate(name, on, cpu=2, app="x")
    copy = Copy.of(made, incoming)
    assert (copy.rows.notifies, copy.rows.follows) == (notifies, follows)
    assert copy.nominated.among(ROWS).tolist() == [True, True, False, False]
    before, rejected = copy.there(), copy.rejected()
    copy.nominated.add(ROWS[:2])
    pods, requested, counts = copy.there()
    assert pods == [["k"], ["l", "m"], [], ["there"]]
    assert counts == [1, 2, 0, 1]
    assert np.subtract(requested, before[1])[0].tolist() == [2000, 4000, 0, 0]
    assert copy.rows.table.joined == {0, 1}
    assert copy.rejected(ROWS[:2]) == ("ab" if plugins or incoming is SPREADING else "b")
    copy.nominated.remove(ROWS[1:2])
    assert copy.there()[0] == [["k"], [], [], ["there"]]
    copy.nominated.remove(ROWS[:1])
    assert copy.there() == before
    assert copy.rejected() == rejected


@pytest.mark.parametrize(
    ("plugins", "incoming", "expected"),
    [
        pytest.param([], PLAIN, "b", id="row-by-row"),
        pytest.param([], SPREADING, "ab", id="columns"),
        pytest.param([seer()], PLAIN, "ab", id="a-plugin-that-reads-the-pods"),
        pytest.param([follower([])], PLAIN, "ab", id="a-plugin-that-follows-pods"),
    ],
)
def test_pods_are_added_to_their_rows_until_they_are_removed(
    plugins: list[type[Any]], incoming: Pod, expected: str
) -> None:
    copy = Copy.of(Cluster(*plugins), incoming)
    batch = PodBatch.made([pod("k", 1, app="x"), pod("l", 4, app="x")], copy.rows.table)
    before, places = copy.there(), np.arange(2)
    copy.rows.add(batch, ROWS[:2], places)
    assert copy.there()[0] == [["k"], ["l"], [], []]
    assert copy.rejected() == expected
    copy.rows.remove_last(batch, ROWS[:2], places)
    assert copy.there() == before
    assert copy.rejected() == ""


def test_a_row_gets_a_state_of_its_own_when_it_is_read() -> None:
    called: list[tuple[str, str]] = []
    copy = Copy.of(Cluster(follower(called)), PLAIN)
    copy.rows.notify(0, pod("k"), 1)
    copy.rows.notify(2, pod("l"), 1)
    copy.rows.notify(2, pod("l"), -1)
    assert called == []
    assert copy.rejected(ROWS[:3]) == "a"
    assert called == [("a", "k"), ("c", "l"), ("c", "l")]
    copy.rows.notify(0, pod("k"), -1)
    assert called[3:] == [("a", "k")]
    assert copy.rejected() == ""
