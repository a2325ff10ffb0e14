"""Tests of the cache of recently used values, also in a growing cluster."""

import pytest

from kschedd.cache.recently_used import RecentlyUsed
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.filtering import evaluation
from kschedd.scheduling.inputs import PodsNominated
from kschedd.scheduling.nominations import counted as nominations
from kschedd.scheduling.preemption import candidates
from tests.scheduling.driven import Driven, Raw, node, pod


def test_what_was_used_longest_ago_goes() -> None:
    kept: RecentlyUsed[str, int] = RecentlyUsed()
    for number, key in enumerate("abc"):
        kept.keep(key, number, 3)
    kept.move_to_end("a")
    kept.keep("d", 3, 3)
    assert list(kept) == ["c", "a", "d"]


def test_what_is_kept_now_stays_where_the_bound_is_lower_than_before() -> None:
    kept: RecentlyUsed[str, int] = RecentlyUsed()
    for number, key in enumerate("abc"):
        kept.keep(key, number, 3)
    assert kept.keep("a", 7, 1) == 7
    assert kept == {"a": 7}


def test_a_key_is_new_once() -> None:
    kept: RecentlyUsed[str, None] = RecentlyUsed()
    assert [kept.keep_new(key, None, 2) for key in "aabca"] == [True, False, True, True, True]


def _kind(number: int, name: str) -> Raw:
    """Return a pod of one of many kinds, each with its own toleration and priority."""
    raw = pod(name, cpu=f"{number + 1}m", priority=number)
    raw["spec"]["tolerations"] = [{"key": f"k{number}", "operator": "Exists"}]
    return raw


def test_a_cluster_that_grows_leaves_room_for_fewer_kinds_of_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill the memory limit, which is in bytes; each entry has space for each node.

    After the number of nodes has doubled, the least recently used kind is evaluated again.
    """
    for module in (evaluation, candidates, nominations):
        monkeypatch.setattr(module, "_FEWEST", 2)
    monkeypatch.setattr(nominations, "_MEMORY", 6 * 64 * nominations._BYTES_A_ROW)
    one = Driven()
    table = one.machine.cluster.table
    table.most_evaluation_bytes = 6 * (64 * evaluation._BYTES_A_ROW + evaluation._BYTES_AN_ENTRY)
    one.see(*(node(f"n{number}", cpu="8") for number in range(60)))
    assert table.capacity == 64
    waits = pod("waits", cpu="500", priority=1000, nominated="n0")
    one.see(waits)
    one.driver.step(PodsNominated([one.entry("waits").pod]))
    for number in range(6):
        for turn in range(2):
            one.see(_kind(number, f"p{number}-{turn}"))
            assert isinstance(one.attempt(f"p{number}-{turn}"), AssumedPod)
    one.see(*(node(f"n{number}", cpu="8") for number in range(60, 200)))
    assert table.capacity > 64
    for number in range(6):
        one.see(_kind(number, f"again{number}"))
        assert isinstance(one.attempt(f"again{number}"), AssumedPod)
