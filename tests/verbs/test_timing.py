"""Tests of times and durations that users pass to `advance` and `until`."""

import pytest

from kschedd.verbs.command_line.grammar import UsageError
from kschedd.verbs.scheduler.timing import is_moment, moment_of

TEN_PAST = 1_735_690_200.0


@pytest.mark.parametrize("text", ["t=2025-01-01T00:10:00Z", "2025-01-01T00:10:00Z", "2025-01-01T01:10:00+01:00"])
def test_a_moment_is_written_with_or_without_its_t(text: str) -> None:
    assert is_moment(text)
    assert moment_of(text) == TEN_PAST


@pytest.mark.parametrize("text", ["5m", "+5m", "t==3", "pending == 0", "2025", "time > 2025-01-01", "pod web-0"])
def test_durations_and_conditions_are_no_moments(text: str) -> None:
    assert not is_moment(text)


@pytest.mark.parametrize("text", ["t=soon", "2025-02-30T00:00:00Z", "2025-01-01T00:10"])
def test_a_moment_that_is_none_is_told_as_such(text: str) -> None:
    assert is_moment(text)
    with pytest.raises(UsageError, match="expected a time such as t=2025-01-01T00:10:00Z"):
        moment_of(text)
