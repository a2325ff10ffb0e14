"""Completion indexes of an Indexed Job, stored as intervals: `0-2,5,7,8`.

Source: Kubernetes v1.34, pkg/controller/job/indexed_job_utils.go.
"""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Self

import attrs

from kschedd.api.pods import Pod

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
UNKNOWN_INDEX = -1


@attrs.frozen
class IndexSet:
    """A set of indexes.

    `intervals` are pairs (first, last) in ascending order; they overlap or adjoin only if the parsed text did.
    """

    intervals: tuple[tuple[int, int], ...] = ()

    @classmethod
    def parse(cls, text: str, completions: int) -> Self:
        """Parse the indexes below `completions`, skipping invalid intervals."""
        found: list[tuple[int, int]] = []
        for part in text.split(",") if text else ():
            limits = part.split("-")
            try:
                first = int(limits[0])
                if first >= completions:
                    break
                last = min(int(limits[1]), completions - 1) if len(limits) > 1 else first
            except ValueError:
                continue
            if found and found[-1][1] == first - 1:
                found[-1] = (found[-1][0], last)
            else:
                found.append((first, last))
        return cls(tuple(found))

    @classmethod
    def of(cls, indexes: Iterable[int]) -> Self:
        return cls().union(cls(tuple((index, index) for index in sorted(set(indexes)))))

    def union(self, other: "IndexSet") -> Self:
        merged: list[tuple[int, int]] = []
        for first, last in sorted((*self.intervals, *other.intervals)):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], last))
            else:
                merged.append((first, last))
        return type(self)(tuple(merged))

    @property
    def total(self) -> int:
        return sum(last - first + 1 for first, last in self.intervals)

    def __contains__(self, index: int) -> bool:
        place = bisect_left(self.intervals, index, key=lambda interval: interval[1])
        return place < len(self.intervals) and self.intervals[place][0] <= index

    def common(self, other: "IndexSet") -> int:
        """Return the number of indexes that both sets contain."""
        count = mine = theirs = 0
        while mine < len(self.intervals) and theirs < len(other.intervals):
            first, last = self.intervals[mine]
            other_first, other_last = other.intervals[theirs]
            count += max(0, min(last, other_last) - max(first, other_first) + 1)
            mine += last <= other_last
            theirs += other_last <= last
        return count

    def first_missing(self, count: int, completions: int) -> list[int]:
        """Return the first `count` indexes below `completions` that are not in the set."""
        missing: list[int] = []
        candidate = 0
        for first, last in (*self.intervals, (completions, completions)):
            end = min(first, completions, candidate + count - len(missing))
            missing.extend(range(candidate, end))
            candidate = max(candidate, last + 1)
        return missing

    def __str__(self) -> str:
        return ",".join(
            str(first) if first == last else f"{first}{',' if last == first + 1 else '-'}{last}"
            for first, last in self.intervals
        )


def completion_index(pod: Pod) -> int:
    """Return the pod's index, or UNKNOWN_INDEX if it is missing or invalid."""
    text = pod.annotations.get(COMPLETION_INDEX)
    try:
        index = UNKNOWN_INDEX if text is None else int(text)
    except (TypeError, ValueError):
        return UNKNOWN_INDEX
    return index if index >= 0 else UNKNOWN_INDEX
