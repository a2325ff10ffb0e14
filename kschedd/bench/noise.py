"""Statistical comparison of two measurements: whether they differ by more than noise, and with what confidence.

Two samples of runs are compared by the exact Mann-Whitney test, which counts arrangements of their ranks. The test
computes how often a split at least as uneven would occur if both samples had the same distribution, and assumes nothing
about that distribution. A test of ranks is appropriate, because load on the machine makes single runs much slower, but
no run much faster. If many rows are compared, some rows seem to differ by chance: Holm's correction keeps the
probability that any row is wrongly called different below `ALPHA`. The size of a difference is the ratio of medians,
with a 95 % bootstrap interval.

The runs cannot show influences that differ between two days (temperature, other load, kernels). Only interleaved runs
compensate for slow changes of the machine's speed.
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
    """The difference between the later runs and the earlier runs.

    `ratio` is the median of the later runs divided by that of the earlier runs; `low` and `high` are the 95 % interval
    of the ratio; `p` is the probability of such a difference by chance alone, corrected for the number of rows.
    """

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
            return f"not enough runs: {self.runs[0]} and {self.runs[1]} runs, at least {_enough()} each (--runs)"
        if self.kind == NOISE:
            return f"within noise ({between}, p {self.p:.2g})"
        return f"{self.kind} by {change} ({between}, p {self.p:.2g})"


def verdicts(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> list[RunsDifference]:
    """Return a verdict for each pair of (later, earlier) runs; higher figures are better.

    The verdicts are corrected for the number of pairs.
    """
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
    """Return the two-sided p-value of the exact test.

    A pair of equal values counts half for each sample, which makes the verdict `noise` more likely.
    """
    n, m = len(first), len(second)
    if not n or not m:
        return 1.0
    doubled = sum(2 * (a > b) + (a == b) for a in first for b in second)
    extreme = min(doubled, 2 * n * m - doubled) / 2
    counts = _arrangements(n, m)
    tail = sum(counts[: int(np.ceil(extreme)) + 1])
    return min(1.0, 2 * tail / sum(counts))


def least_p(n: int, m: int) -> float:
    """Return the smallest p-value that samples of these sizes can reach."""
    return min(1.0, 2 / sum(_arrangements(n, m))) if n and m else 1.0


def _enough() -> int:
    """Return the smallest number of runs per side for which a difference can be significant."""
    return next(size for size in range(2, 100) if least_p(size, size) <= ALPHA)


@cache
def _arrangements(n: int, m: int) -> tuple[int, ...]:
    """Return, for each u, the number of arrangements of n and m values with u pairs won by the first sample."""
    if not n or not m:
        return (1,)
    # The largest value is either in the first sample, where it exceeds all m values of the second, or in the second
    # sample.
    of_first, of_second = _arrangements(n - 1, m), _arrangements(n, m - 1)
    counts = [0] * (n * m + 1)
    for won, count in enumerate(of_first):
        counts[won + m] += count
    for won, count in enumerate(of_second):
        counts[won] += count
    return tuple(counts)


def holm(chances: Sequence[float]) -> list[float]:
    """Return the p-values with Holm's correction.

    The smallest p-value is multiplied by the number of values, the next p-value by one less, and so on; the results
    never decrease.
    """
    corrected = [0.0] * len(chances)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        highest = max(highest, min(1.0, chances[place] * (len(chances) - rank)))
        corrected[place] = highest
    return corrected


def bootstrap_ratio(later: Sequence[float], earlier: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the ratio of medians, by resampling the runs of each side."""
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
