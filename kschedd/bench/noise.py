"""Whether two measurements differ by more than noise, said with how sure that is.

Two samples of runs are compared by the Mann-Whitney test, exactly (by counting arrangements of their ranks): it asks
how often a split at least as uneven would come about if both were of one kind, and supposes nothing of how runs are
distributed, which matters since a busy machine makes single runs much slower and none much faster. Where many rows are
compared at once, some look uneven by chance: Holm's correction keeps the chance that any row is called different by
mistake below `ALPHA`. The size of a difference is the ratio of medians, with a 95 % interval by the bootstrap.

Runs say nothing of what changes between two days (temperature, neighbours, kernels): only interleaved runs do.
"""

from collections.abc import Sequence
from functools import cache
from typing import Final

import attrs
import numpy as np

ALPHA: Final = 0.05
_RESAMPLES: Final = 10_000
_SEED: Final = 20_240_601

FASTER, SLOWER, NOISE, UNKNOWN = "faster", "slower", "noise", "unknown"


@attrs.frozen
class RunsDifference:
    """`ratio`: median of the later runs by that of the earlier ones; `low` and `high`: its 95 % interval; `p`: how
    often chance alone would do as much, corrected for the number of rows."""

    kind: str
    ratio: float
    low: float
    high: float
    p: float
    runs: tuple[int, int]

    @property
    def text(self) -> str:
        change = f"{abs(self.ratio - 1):.1%}".replace("%", " %")
        between = f"{self.low - 1:+.1%} to {self.high - 1:+.1%}".replace("%", " %")
        if self.kind == UNKNOWN:
            return f"cannot be told: {self.runs[0]} and {self.runs[1]} runs, at least {_enough()} each (--runs)"
        if self.kind == NOISE:
            return f"within noise ({between}, p {self.p:.2g})"
        return f"{self.kind} by {change} ({between}, p {self.p:.2g})"


def verdicts(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> list[RunsDifference]:
    """A verdict on each pair of (later, earlier) runs, higher being better, that takes the number of pairs into
    account."""
    chances = [mann_whitney(later, earlier) for later, earlier in pairs]
    testable = [least_p(len(later), len(earlier)) <= ALPHA for later, earlier in pairs]
    corrected = iter(holm([p for p, able in zip(chances, testable, strict=True) if able]))
    found = []
    for (later, earlier), p, able in zip(pairs, chances, testable, strict=True):
        p = next(corrected) if able else p
        ratio = _ratio(later, earlier)
        low, high = bootstrap_ratio(later, earlier)
        kind = UNKNOWN if not able else NOISE if p > ALPHA else FASTER if ratio > 1 else SLOWER
        found.append(RunsDifference(kind, ratio, low, high, p, (len(later), len(earlier))))
    return found


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> float:
    """The two-sided p of the exact test. Equal values count half to each side, which errs towards noise."""
    n, m = len(first), len(second)
    if not n or not m:
        return 1.0
    doubled = sum(2 * (a > b) + (a == b) for a in first for b in second)
    extreme = min(doubled, 2 * n * m - doubled) / 2
    counts = _arrangements(n, m)
    tail = sum(counts[: int(np.ceil(extreme)) + 1])
    return min(1.0, 2 * tail / sum(counts))


def least_p(n: int, m: int) -> float:
    """The least p that samples of these sizes can come to."""
    return min(1.0, 2 / sum(_arrangements(n, m))) if n and m else 1.0


def _enough() -> int:
    """The least number of runs of each by which anything can be told."""
    return next(size for size in range(2, 100) if least_p(size, size) <= ALPHA)


@cache
def _arrangements(n: int, m: int) -> tuple[int, ...]:
    """In how many arrangements of n and m values exactly u pairs are won by the first, for each u."""
    if not n or not m:
        return (1,)
    # The greatest value is either of the first sample, and wins against all m, or of the second.
    of_first, of_second = _arrangements(n - 1, m), _arrangements(n, m - 1)
    counts = [0] * (n * m + 1)
    for won, count in enumerate(of_first):
        counts[won + m] += count
    for won, count in enumerate(of_second):
        counts[won] += count
    return tuple(counts)


def holm(chances: Sequence[float]) -> list[float]:
    """Each p as it counts among the others: the least times their number, the next times one less, never falling."""
    corrected = [0.0] * len(chances)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        highest = max(highest, min(1.0, chances[place] * (len(chances) - rank)))
        corrected[place] = highest
    return corrected


def bootstrap_ratio(later: Sequence[float], earlier: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the ratio of medians, by drawing runs of each side again and again."""
    if not len(later) or not len(earlier):
        return 1.0, 1.0
    random = np.random.default_rng(_SEED)
    medians = [
        np.median(random.choice(np.asarray(side, dtype=float), (_RESAMPLES, len(side))), axis=1)
        for side in (later, earlier)
    ]
    ratios = medians[0] / np.maximum(medians[1], 1e-12)
    low, high = np.percentile(ratios, (2.5, 97.5))
    return float(low), float(high)


def _ratio(later: Sequence[float], earlier: Sequence[float]) -> float:
    below = float(np.median(earlier)) if len(earlier) else 0.0
    return float(np.median(later)) / below if below and len(later) else 1.0
