"""Durations in Go's notation."""

import pytest

from kschedd.api.text.durations import DurationError, brief_duration, parse_duration, parse_span, show_duration


@pytest.mark.parametrize(
    ("text", "seconds", "shown"),
    [
        pytest.param("0", 0, "0s", id="zero-needs-no-unit"),
        pytest.param("7s", 7, "7s", id="seconds"),
        pytest.param("90s", 90, "1m30s", id="seconds-are-carried"),
        pytest.param("1h", 3600, "1h0m0s", id="lower-units-are-written-out"),
        pytest.param("1h15m30.918s", 4530.918, "1h15m30.918s", id="all-units"),
        pytest.param("250ms", 0.25, "250ms", id="below-a-second"),
        pytest.param("1.5h", 5400, "1h30m0s", id="a-fraction"),
        pytest.param("-5s", -5, "-5s", id="negative"),
        pytest.param("+5s", 5, "5s", id="a-plus-sign"),
    ],
)
def test_durations_are_read_and_written_as_go_does(text: str, seconds: float, shown: str) -> None:
    assert parse_duration(text) == pytest.approx(seconds)
    assert show_duration(seconds) == shown


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("7", 'time: missing unit in duration "7"', id="no-unit"),
        pytest.param("", 'time: invalid duration ""', id="empty"),
        pytest.param("s", 'time: invalid duration "s"', id="no-number"),
        pytest.param("7d", 'time: unknown unit "d" in duration "7d"', id="days"),
        pytest.param("soon", 'time: invalid duration "soon"', id="a-word"),
        pytest.param("-", 'time: invalid duration "-"', id="a-sign-alone"),
    ],
)
def test_what_is_no_duration_is_refused_in_gos_words(text: str, why: str) -> None:
    with pytest.raises(DurationError) as refusal:
        parse_duration(text)
    assert str(refusal.value) == why


def test_flags_of_ours_accept_days_as_their_tables_print_them() -> None:
    assert parse_span("2d12h") == 60 * 3600
    assert parse_span("90s") == 90
    with pytest.raises(DurationError, match='unknown unit "w"'):
        parse_span("1w")


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0s"), (30, "30s"), (300, "5m"), (3600, "1h"), (3605, "1h0m5s"), (5400, "1h30m")]
)
def test_trailing_zeros_are_left_out_of_a_brief_duration(seconds: float, shown: str) -> None:
    assert brief_duration(seconds) == shown
