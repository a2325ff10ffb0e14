"""Times and durations are parsed as by an API server, and parsed times can always be printed."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.api.text.times import duration_s, micros, seconds, stamp


@given(st.datetimes(timezones=st.just(UTC)))
def test_what_datetime_can_say_is_read_alike(moment: datetime) -> None:
    assert micros(moment.isoformat()) == (moment - datetime(1970, 1, 1, tzinfo=UTC)) // (
        datetime(1970, 1, 1, 0, 0, 0, 1) - datetime(1970, 1, 1)
    )


@given(st.integers(-62_167_219_200, 253_402_300_799))
def test_a_stamp_is_read_back_as_what_it_was_made_of(second: int) -> None:
    text = stamp(second)
    assert seconds(text) == second
    assert len(text) == 20


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("0000-01-01T00:00:00Z", -62_167_219_200.0, id="the-year-0"),
        pytest.param("9999-12-31T23:59:59Z", 253_402_300_799.0, id="the-year-9999"),
        pytest.param("2024-01-01T00:00:00+02:00", 1_704_060_000.0, id="an-offset"),
        pytest.param("2024-01-01T00:00:00.1234567891Z", 1_704_067_200.123456, id="any-number-of-digits"),
        pytest.param("0001-01-01T00:00:00+14:00", -62_135_647_200.0, id="before-the-year-1"),
    ],
)
def test_times_that_an_api_server_takes(text: str, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "soon",
        "",
        "2024-01-01",
        "2024-01-01T00:00:00",
        "2024-02-30T00:00:00Z",
        "2024-01-01T24:00:00Z",
        "20240101T000000Z",
    ],
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match=r"not an RFC 3339 time|out of range"):
        micros(text)


@given(st.floats(allow_nan=False))
def test_there_is_a_stamp_for_every_number(second: float) -> None:
    assert -62_167_219_200 <= seconds(stamp(second)) <= 253_402_300_799


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 10**9))
def test_a_duration_that_was_added_can_be_taken_away(absurd: int, seconds_: int) -> None:
    assert abs(duration_s(absurd)) <= 2**63 / 1e9
    assert duration_s(seconds_) == seconds_


def test_an_absurd_duration_wraps_around_as_in_go() -> None:
    assert duration_s(2**63 - 1) == -1.0
    assert duration_s(10**12) == pytest.approx(3_875_820_019.684)
