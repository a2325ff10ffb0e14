"""Tests of covering: the cheapest covers and their bounds, compared with all possible covers."""

from itertools import product
from random import Random

import numpy as np
import pytest

from kschedd.simulation.comparing.covering import CoveringProblem, CoverSearch


def problem_of(seed: int) -> tuple[CoveringProblem, int]:
    random = Random(seed)
    shapes, demands, most = random.randint(1, 4), random.randint(1, 4), random.choice((3, 6))
    prices = [random.choice((0.1, 0.2, 0.35, 0.7, 1.0, 1.9)) for _ in range(shapes)]
    supply = [[random.choice((0, 1, 2, 4, 7)) for _ in range(shapes)] for _ in range(demands)]
    demand = [random.randint(-3, 9) for _ in range(demands)]
    one = np.ones((1, shapes))
    limits = np.array([float(most)])
    return CoveringProblem(np.array(prices), np.array(supply, float), np.array(demand, float), one, limits), most


@pytest.mark.parametrize("seed", range(80))
def test_covers_come_by_ascending_price(seed: int) -> None:
    problem, most = problem_of(seed)
    every = np.array([*product(range(most + 1), repeat=len(problem.prices))], float)
    possible = every[problem.covers(every) & problem.allowed(every)]
    prices = np.sort(possible @ problem.prices)
    search = CoverSearch(problem, 100_000)
    if len(prices):
        assert search.bound <= prices[0] + 1e-9
    found = []
    for number, counts in zip(range(5), search, strict=False):
        found.append(np.array(counts) @ problem.prices)
        assert search.bound == pytest.approx(found[number])
    assert found == pytest.approx(prices[:5].tolist())
    assert search.exhausted is (len(prices) < 5)
    for counts in (*search.good(), *search.of_one_kind()):
        row = np.array([counts], float)
        assert problem.covers(row)[0]
        assert problem.allowed(row)[0]


def test_a_demand_that_no_shape_supplies_has_no_cover() -> None:
    none = np.zeros((0, 1))
    search = CoverSearch(CoveringProblem(np.ones(1), np.zeros((1, 1)), np.ones(1), none, np.zeros(0)), 50)
    assert [*search] == []
    assert not search.exhausted


def test_the_search_ends_after_its_states_and_still_has_a_bound() -> None:
    supply, limits = np.array([[1.0, 2.0, 3.0]]), np.array([1000.0])
    problem = CoveringProblem(np.array([1.0, 1.7, 2.6]), supply, np.array([50.0]), np.ones((1, 3)), limits)
    search = CoverSearch(problem, 10)
    assert [*search] == []
    assert 42.5 <= search.bound <= 42.6
    assert np.array(search.good()[0]) @ problem.prices == pytest.approx(42.5)
