"""Covering: the cheapest multiset of shapes that meets demands, and lower bounds of its price.

A cover is a vector of whole numbers, the count of each shape, with `supply @ counts >= demand`. `CoverSearch` yields
covers by ascending price (A*). Its bound is a price below which no further cover exists: a feasible solution of the
dual linear program, found by the simplex method, and rounded up to a multiple of the prices' greatest common divisor.

Shapes: S shapes, D demands, L limits. All arrays are float64 and are never written.
"""

import heapq
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

import attrs
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_TINY: Final = 1e-9
_MOST_PIVOTS: Final = 1_000
_MOST_STATES: Final = 5_000
_WIDTH: Final = 24  # states that a beam search keeps at each level
_MOST_LEVELS: Final = 4_096
_WORSE: Final = 1.25  # covers that are more expensive than the best by this factor are not searched


@attrs.frozen(eq=False)
class CoveringProblem:
    """The problem. `usage @ counts <= limits` must hold as well; prices are 0 or more."""

    prices: Floats  # S
    supply: Floats  # D by S
    demand: Floats  # D
    usage: Floats  # L by S
    limits: Floats  # L

    def allowed(self, counts: Floats) -> npt.NDArray[np.bool_]:
        """Return whether each row of counts is within the limits."""
        return np.asarray((counts @ self.usage.T <= self.limits + _TINY).all(axis=1))

    def covers(self, counts: Floats) -> npt.NDArray[np.bool_]:
        """Return whether each row of counts meets the demands."""
        return np.asarray((counts @ self.supply.T >= self.demand - _TINY).all(axis=1))

    def duals(self) -> Floats:
        """Return vectors w of weights with `w @ supply <= prices`: then `w @ rest` bounds the price of any rest."""
        found = [self._dual()]
        for number, row in enumerate(self.supply):
            offered = row > 0
            if offered.any():
                single = np.zeros(len(self.demand))
                single[number] = (self.prices[offered] / row[offered]).min()
                found.append(single)
        return np.array(found)

    def _dual(self) -> Floats:
        """Maximize `w @ demand` over `w >= 0` with `w @ supply <= prices`, by the simplex method with Bland's rule."""
        shapes, demands = len(self.prices), len(self.demand)
        table = np.zeros((shapes + 1, demands + shapes + 1))
        table[:shapes, :demands], table[:shapes, demands:-1], table[:shapes, -1] = (
            self.supply.T,
            np.eye(shapes),
            self.prices,
        )
        table[-1, :demands] = -self.demand
        basis = list(range(demands, demands + shapes))
        for _ in range(_MOST_PIVOTS):
            entering = next(iter(np.flatnonzero(table[-1, :-1] < -_TINY)), None)
            if entering is None:
                break
            column = table[:shapes, entering]
            rows = np.flatnonzero(column > _TINY)
            if not len(rows):
                break  # unbounded: a demand that no shape supplies
            ratios = table[rows, -1] / column[rows]
            leaving = min(rows[ratios <= ratios.min() + _TINY], key=lambda row: basis[row])
            table[leaving] /= table[leaving, entering]
            for row in range(shapes + 1):
                if row != leaving:
                    table[row] -= table[row, entering] * table[leaving]
            basis[leaving] = int(entering)
        weights = np.zeros(demands + shapes)
        weights[basis] = np.maximum(table[:shapes, -1], 0.0)
        return self._feasible(weights[:demands])

    def _feasible(self, weights: Floats) -> Floats:
        """Scale the weights down until they are feasible in spite of rounding errors."""
        used = weights @ self.supply
        over = used > self.prices
        return weights * (self.prices[over] / used[over]).min() if over.any() else weights


class CoverSearch:
    """Yields covers by ascending price, each at most once. `bound`: no cover that was not yielded is cheaper.

    The search ends after a number of states; `exhausted` is true if there is no further cover.
    """

    def __init__(self, problem: CoveringProblem, most_states: int = _MOST_STATES) -> None:
        self._problem = problem
        self._most_states = most_states
        self._duals = problem.duals()
        self._unit = _common_unit(problem.prices.tolist())
        self._one_more = np.eye(len(problem.prices))
        self.bound = self._rounded(float(self._least(np.zeros((1, len(problem.prices))))[0]))
        self.exhausted = False

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        shapes = len(self._problem.prices)
        # deeper states first among those with an equal bound, because they are covers sooner
        heap: list[tuple[float, int, tuple[int, ...], int]] = [(self.bound, 0, (0,) * shapes, 0)]
        for _ in range(self._most_states):
            if not heap:
                self.exhausted = True
                self.bound = math.inf
                return
            self.bound, depth, counts, first = heapq.heappop(heap)
            own = np.array(counts, dtype=np.float64)
            if self._problem.covers(own[None])[0]:
                yield counts
            more = own + self._one_more[first:]
            allowed, least = self._problem.allowed(more), self._least(more).tolist()
            for number in np.flatnonzero(allowed).tolist():
                shape = first + number
                child = (*counts[:shape], counts[shape] + 1, *counts[shape + 1 :])
                heapq.heappush(heap, (max(self.bound, self._rounded(least[number])), depth - 1, child, shape))
        if heap:
            self.bound = heap[0][0]

    def good(self, width: int = _WIDTH) -> list[tuple[int, ...]]:
        """Return covers by ascending price that a beam search finds; cheaper covers may exist."""
        problem, shapes = self._problem, len(self._problem.prices)
        found: dict[tuple[int, ...], float] = {}
        states, best = np.zeros((1, shapes)), math.inf
        for _ in range(_MOST_LEVELS):
            children = np.unique((states[:, None, :] + self._one_more).reshape(-1, shapes), axis=0)
            children = children[problem.allowed(children)]
            least, covered = self._least(children), problem.covers(children)
            for counts, price in zip(
                children[covered].tolist(), (children[covered] @ problem.prices).tolist(), strict=True
            ):
                found[tuple(map(int, counts))] = price
                best = min(best, price)
            left = np.flatnonzero(~covered & (least < best * _WORSE + _TINY))
            states = children[left[np.argsort(least[left], kind="stable")[:width]]]
            if not len(states):
                break
        return sorted(found, key=lambda counts: (found[counts], counts))

    def of_one_kind(self) -> list[tuple[int, ...]]:
        """Return the smallest cover of each shape by itself that covers at all, by ascending price."""
        problem, demand = self._problem, np.maximum(self._problem.demand, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = np.where(demand[:, None] > 0, demand[:, None] / problem.supply, 0.0)
        counts = np.ceil(needed.max(axis=0, initial=0.0) - _TINY)
        rows = np.diag(np.where(np.isfinite(counts), counts, 0.0))
        rows = rows[np.isfinite(counts) & problem.covers(rows) & problem.allowed(rows)]
        order = np.argsort(rows @ problem.prices, kind="stable")
        return [tuple(map(int, row)) for row in rows[order].tolist()]

    def _least(self, counts: Floats) -> Floats:
        """Return a lower bound of the price of each row of counts with all that it needs in addition."""
        rest = self._problem.demand - counts @ self._problem.supply.T
        prices: Floats = counts @ self._problem.prices + np.maximum((rest @ self._duals.T).max(axis=1), 0.0)
        return prices

    def _rounded(self, price: float) -> float:
        return price if self._unit is None else float(math.ceil(price / self._unit - 1e-6) * self._unit)


def _common_unit(prices: Sequence[float]) -> Fraction | None:
    """Return the greatest common divisor of the prices, or None if all prices are 0."""
    stated = [Fraction(str(price)) for price in prices if price]
    if not stated:
        return None
    shared = math.lcm(*(each.denominator for each in stated))
    return Fraction(math.gcd(*(int(each * shared) for each in stated)), shared)
