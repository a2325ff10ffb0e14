"""The everyday run of the tests and the full run, which KSCHEDD_FULL=1 selects.

In the everyday run, tests/conftest.py deselects tests with the marker `full` and prints their number. Tests that go
through recorded cases in a loop then go through a part of them, and the number of the other cases is printed as well.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

import attrs
import pytest

T = TypeVar("T")

FULL: Final = os.environ.get("KSCHEDD_FULL", "") not in ("", "0")


@attrs.define
class LeftOut:
    """What this process leaves out of the everyday run: tests, and cases of the tests that run."""

    tests: int = 0
    cases: int = 0


LEFT_OUT: Final = LeftOut()


def everyday(cases: Iterable[T], chosen: Callable[[T], bool]) -> list[Any]:
    """Return the cases as parameters of a test; the everyday run includes only the chosen cases."""
    return [case if chosen(case) else pytest.param(case, marks=pytest.mark.full) for case in cases]


def every(step: int, cases: Iterable[T]) -> list[Any]:
    """Return the cases as parameters of a test; the everyday run includes every `step`-th case, from the first."""
    return [pytest.param(case, marks=pytest.mark.full) if number % step else case for number, case in enumerate(cases)]


def part(step: int, cases: Sequence[T]) -> Sequence[T]:
    """Return all cases in the full run, and every `step`-th, from the first, in the everyday run."""
    if FULL:
        return cases
    chosen = cases[::step]
    LEFT_OUT.cases += len(cases) - len(chosen)
    return chosen


def examples(number: int) -> int:
    """Return the number of examples that Hypothesis draws: all in the full run, a fifth in the everyday run."""
    return number if FULL else max(1, number // 5)


def split(items: Iterable[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests of the everyday run, and those that only the full run includes."""
    chosen: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        (others if item.get_closest_marker("full") else chosen).append(item)
    return chosen, others
