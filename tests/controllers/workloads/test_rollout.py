import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.controllers.workloads.rollout import Replicas, fenceposts, proportioned, scale_down, scale_up


@pytest.mark.parametrize(
    ("surge", "unavailable", "wanted", "expected"),
    [
        pytest.param("25%", "25%", 10, (3, 2), id="surge-rounds-up-unavailable-down"),
        pytest.param("25%", "25%", 1, (1, 0), id="one-replica"),
        pytest.param(0, "10%", 5, (0, 1), id="both-zero-would-never-move"),
        pytest.param(2, 0, 5, (2, 0), id="absolute"),
        pytest.param(f"{'9' * 5000}%", 0, 5, (5 * 10**98, 0), id="percentage-of-many-digits"),
        pytest.param(1, 9, 5, (1, 5), id="never-more-unavailable-than-there-are"),
    ],
)
def test_fenceposts(surge: int | str, unavailable: int | str, wanted: int, expected: tuple[int, int]) -> None:
    assert fenceposts(surge, unavailable, wanted) == expected


def rs(name: str, wanted: int, available: int | None = None, max_replicas: int = 0) -> Replicas:
    return Replicas(name, wanted, wanted if available is None else available, name, max_replicas)


# Numbers from the tables of controller/deployment/rolling_test.go.
@pytest.mark.parametrize(
    ("wanted", "surge", "old", "new", "expected"),
    [
        pytest.param(10, 0, 10, 0, 0, id="no-room"),
        pytest.param(10, 2, 10, 0, 2, id="as-much-as-the-surge"),
        pytest.param(10, 2, 0, 0, 10, id="all-at-once"),
        pytest.param(10, 2, 5, 0, 7, id="room-left-by-the-old"),
        pytest.param(10, 2, 10, 2, 2, id="room-used-up"),
    ],
)
def test_growth_of_the_new(wanted: int, surge: int, old: int, new: int, expected: int) -> None:
    assert scale_up(rs("new", new), old + new, wanted, surge) == expected


@pytest.mark.parametrize(
    ("wanted", "unavailable", "old", "old_available", "new", "new_available", "expected"),
    [
        pytest.param(10, 0, 10, 10, 0, 0, {}, id="none-to-spare"),
        pytest.param(10, 2, 10, 10, 0, 0, {"old": 8}, id="as-many-as-may-be-unavailable"),
        pytest.param(10, 2, 10, 8, 0, 0, {"old": 8}, id="the-unhealthy-first"),
        pytest.param(10, 2, 10, 0, 0, 0, {"old": 8}, id="no-more-than-allowed-even-if-unhealthy"),
        pytest.param(10, 2, 8, 8, 2, 0, {}, id="new-ones-not-up-yet"),
        pytest.param(10, 2, 8, 8, 2, 2, {"old": 6}, id="new-ones-up"),
        pytest.param(100, 25, 75, 100, 50, 25, {}, id="a-status-from-before-the-last-step"),
    ],
)
def test_shrinking_of_the_old(
    wanted: int, unavailable: int, old: int, old_available: int, new: int, new_available: int, expected: dict[str, int]
) -> None:
    assert scale_down([rs("old", old, old_available)], rs("new", new, new_available), wanted, unavailable) == expected


def test_scaling_in_the_middle_of_a_rollout_keeps_the_proportions() -> None:
    sizes = proportioned([rs("a", 5, max_replicas=10), rs("b", 5, max_replicas=10)], 20, 0)
    assert sizes == {"a": 10, "b": 10}
    assert proportioned([rs("a", 8, max_replicas=10), rs("b", 2, max_replicas=10)], 5, 0) == {"a": 4, "b": 1}


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(0, 30)), min_size=1, max_size=4),
    st.integers(0, 50),
    st.integers(0, 10),
)
def test_proportions_add_up(sets: list[tuple[int, int]], wanted: int, surge: int) -> None:
    replicas = [rs(str(place), size, 0) for place, (size, _) in enumerate(sets)]
    sizes = {r.name: r.wanted for r in replicas} | proportioned(replicas, wanted, surge)
    assert sum(sizes.values()) == (wanted + surge if wanted else 0)
    assert min(sizes.values()) >= 0


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=4),
    st.tuples(st.integers(0, 9), st.integers(0, 9)),
    st.integers(0, 12),
    st.integers(0, 5),
)
def test_shrinking_never_leaves_too_few_available(
    old: list[tuple[int, int]], new: tuple[int, int], wanted: int, unavailable: int
) -> None:
    sets = [rs(str(place), size, up) for place, (size, up) in enumerate(old)]  # a status may be out of date
    fresh = rs("new", new[0], min(new))
    sizes = {r.name: r.wanted for r in sets} | scale_down(sets, fresh, wanted, unavailable)
    before = sum(min(r.wanted, r.available) for r in sets) + fresh.available
    after = sum(min(sizes[r.name], r.available) for r in sets) + fresh.available
    assert after >= min(before, wanted - unavailable)
