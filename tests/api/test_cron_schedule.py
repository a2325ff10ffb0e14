"""Tests of cron schedules, with cases from robfig/cron v3's parser_test.go and spec_test.go."""

import datetime

import pytest

from kschedd.api.cron_schedule import ScheduleError, parse_schedule


def instant(text: str) -> float:
    return datetime.datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("schedule", "after", "comes"),
    [
        # every so often
        ("0/15 * * * *", "2012-07-09T14:45:00+00:00", "2012-07-09T15:00:00+00:00"),
        ("*/15 * * * *", "2012-07-09T14:59:59+00:00", "2012-07-09T15:00:00+00:00"),
        ("20-35/15 * * * *", "2012-07-09T15:45:00+00:00", "2012-07-09T16:20:00+00:00"),
        ("20-35/15 * * * *", "2012-07-09T15:20:00+00:00", "2012-07-09T15:35:00+00:00"),
        ("*/15 * * * *", "2012-07-09T23:46:00+00:00", "2012-07-10T00:00:00+00:00"),
        ("20-35/15 1/2 * * *", "2012-07-09T23:35:51+00:00", "2012-07-10T01:20:00+00:00"),
        ("20-35/15 10-12 * * *", "2012-07-09T23:35:51+00:00", "2012-07-10T10:20:00+00:00"),
        ("20-35/15 1/2 */2 * *", "2012-07-09T23:35:51+00:00", "2012-07-11T01:20:00+00:00"),
        ("20-35/15 * 9-20 * *", "2012-07-09T23:35:51+00:00", "2012-07-10T00:20:00+00:00"),
        ("20-35/15 * 9-20 Jul *", "2012-07-09T23:35:51+00:00", "2012-07-10T00:20:00+00:00"),
        # months and years
        ("0 0 9 Apr-Oct *", "2012-07-09T23:35:00+00:00", "2012-08-09T00:00:00+00:00"),
        ("0 0 */5 Apr,Aug,Oct Mon", "2012-07-09T23:35:00+00:00", "2012-08-01T00:00:00+00:00"),
        ("0 0 */5 Oct Mon", "2012-07-09T23:35:00+00:00", "2012-10-01T00:00:00+00:00"),
        ("0 0 * Feb Mon", "2012-07-09T23:35:00+00:00", "2013-02-04T00:00:00+00:00"),
        ("0 0 * Feb Mon/2", "2012-07-09T23:35:00+00:00", "2013-02-01T00:00:00+00:00"),
        ("0 0 29 Feb ?", "2012-07-09T23:35:00+00:00", "2016-02-29T00:00:00+00:00"),
        # day of month or of week
        ("0 0 1,15 * Sun", "2012-07-14T12:00:00+00:00", "2012-07-15T00:00:00+00:00"),
        ("0 0 1,15 * Sun", "2012-07-15T12:00:00+00:00", "2012-07-22T00:00:00+00:00"),
        ("0 0 * * Mon", "2012-07-15T00:00:00+00:00", "2012-07-16T00:00:00+00:00"),
        ("0 0 */10 * Sun", "2012-07-11T12:00:00+00:00", "2012-07-15T00:00:00+00:00"),
        # names of schedules
        ("@hourly", "2012-07-09T23:35:00+00:00", "2012-07-10T00:00:00+00:00"),
        ("@daily", "2012-07-09T23:35:00+00:00", "2012-07-10T00:00:00+00:00"),
        ("@midnight", "2012-07-09T23:35:00+00:00", "2012-07-10T00:00:00+00:00"),
        ("@weekly", "2012-07-09T23:35:00+00:00", "2012-07-15T00:00:00+00:00"),
        ("@monthly", "2012-07-09T23:35:00+00:00", "2012-08-01T00:00:00+00:00"),
        ("@yearly", "2012-07-09T23:35:00+00:00", "2013-01-01T00:00:00+00:00"),
        ("@annually", "2012-07-09T23:35:00+00:00", "2013-01-01T00:00:00+00:00"),
        ("@every 5m", "2012-07-09T23:35:10+00:00", "2012-07-09T23:40:10+00:00"),
        ("@every 1h30m", "2012-07-09T23:35:10+00:00", "2012-07-10T01:05:10+00:00"),
        ("@every 10ms", "2012-07-09T23:35:10+00:00", "2012-07-09T23:35:11+00:00"),
        # the clock is put forward
        ("TZ=America/New_York 30 2 11 Mar ?", "2012-03-11T00:00:00-05:00", "2013-03-11T02:30:00-04:00"),
        ("TZ=America/New_York 0 * * * ?", "2012-03-11T00:00:00-05:00", "2012-03-11T01:00:00-05:00"),
        ("TZ=America/New_York 0 * * * ?", "2012-03-11T01:00:00-05:00", "2012-03-11T03:00:00-04:00"),
        ("TZ=America/New_York 0 * * * ?", "2012-03-11T03:00:00-04:00", "2012-03-11T04:00:00-04:00"),
        ("TZ=America/New_York 0 1 * * ?", "2012-03-11T01:00:00-05:00", "2012-03-12T01:00:00-04:00"),
        ("TZ=America/New_York 0 2 * * ?", "2012-03-11T00:00:00-05:00", "2012-03-12T02:00:00-04:00"),
        # and back
        ("TZ=America/New_York 30 2 04 Nov ?", "2012-11-04T00:00:00-04:00", "2012-11-04T02:30:00-05:00"),
        ("TZ=America/New_York 30 1 04 Nov ?", "2012-11-04T01:45:00-04:00", "2012-11-04T01:30:00-05:00"),
        ("TZ=America/New_York 0 * * * ?", "2012-11-04T00:00:00-04:00", "2012-11-04T01:00:00-04:00"),
        ("TZ=America/New_York 0 * * * ?", "2012-11-04T01:00:00-04:00", "2012-11-04T01:00:00-05:00"),
        ("TZ=America/New_York 0 * * * ?", "2012-11-04T01:00:00-05:00", "2012-11-04T02:00:00-05:00"),
        ("CRON_TZ=America/New_York 0 1 * * ?", "2012-11-04T00:00:00-04:00", "2012-11-04T01:00:00-04:00"),
        ("TZ=America/New_York 0 1 * * ?", "2012-11-04T01:00:00-04:00", "2012-11-04T01:00:00-05:00"),
        ("TZ=America/New_York 0 1 * * ?", "2012-11-04T01:00:00-05:00", "2012-11-05T01:00:00-05:00"),
        ("TZ=America/New_York 0 2 * * ?", "2012-11-04T00:00:00-04:00", "2012-11-04T02:00:00-05:00"),
        ("TZ=America/New_York 0 3 3 * ?", "2012-11-04T00:00:00-04:00", "2012-12-03T03:00:00-05:00"),
        # midnight does not exist
        ("TZ=America/Sao_Paulo 0 9 10 * ?", "2018-10-17T05:00:00-04:00", "2018-11-10T06:00:00-05:00"),
        ("TZ=America/Sao_Paulo 0 9 22 * ?", "2018-02-14T05:00:00-05:00", "2018-02-22T07:00:00-05:00"),
    ],
)
def test_when_a_schedule_comes(schedule: str, after: str, comes: str) -> None:
    assert parse_schedule(schedule).next_after(instant(after)) == instant(comes)


@pytest.mark.parametrize("schedule", ["0 0 30 Feb ?", "0 0 31 Apr ?", "59 23 31 2 *"])
def test_a_day_that_never_is(schedule: str) -> None:
    assert parse_schedule(schedule).next_after(instant("2012-07-09T23:35:00+00:00")) is None


def test_the_time_zone_of_the_object() -> None:
    at = parse_schedule("0 9 * * *", "Europe/Zurich").next_after(instant("2025-07-01T00:00:00+00:00"))
    assert at == instant("2025-07-01T07:00:00+00:00")


def test_fractions_of_a_second_do_not_matter() -> None:
    schedule = parse_schedule("* * * * *")
    assert schedule.next_after(119.9) == 120
    assert schedule.next_after(120.0) == 180
    assert parse_schedule("@every 1m").next_after(0.7) == 60


@pytest.mark.parametrize(
    ("schedule", "why"),
    [
        ("", "empty spec string"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"),
        ("5 j * * *", 'failed to parse int from j: strconv.Atoi: parsing "j": invalid syntax'),
        ("@every Xm", 'failed to parse duration @every Xm: time: invalid duration "Xm"'),
        ("@unrecognized", "unrecognized descriptor: @unrecognized"),
        ("TZ=Nowhere/City * * * * *", "provided bad location Nowhere/City: unknown time zone Nowhere/City"),
        ("9e9 * * * *", 'failed to parse int from 9e9: strconv.Atoi: parsing "9e9": invalid syntax'),
        (
            "99999999999999999999 * * * *",
            'failed to parse int from 99999999999999999999: strconv.Atoi: parsing "99999999999999999999": value out of '
            "range",
        ),
        ("5-6-7 * * * *", "too many hyphens: 5-6-7"),
        ("2/3/5 * * * *", "too many slashes: 2/3/5"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("*/-12 * * * *", "negative number (-12) not allowed: -12"),
        ("* * * jan-x *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
    ],
)
def test_what_is_no_schedule_is_refused_in_the_parsers_words(schedule: str, why: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        parse_schedule(schedule)
    assert str(refusal.value) == why


def test_an_unknown_time_zone_is_refused() -> None:
    with pytest.raises(ScheduleError, match="unknown time zone Mars/Olympus"):
        parse_schedule("* * * * *", "Mars/Olympus")


@pytest.mark.parametrize("schedule", ["*/5 * * * *", "0 0 * * *", "0 0 1 * *", "0 12 1 1 *"])
@pytest.mark.parametrize("zone", ["", "TZ=Asia/Tokyo ", "TZ=America/New_York "])
def test_nothing_comes_after_the_last_date(schedule: str, zone: str) -> None:
    assert parse_schedule(f"{zone}{schedule}").next_after(instant("9999-12-31T23:58:00+00:00")) is None


def test_numbers_of_more_digits_than_python_reads() -> None:
    zeros, nines = "0" * 5_000, "9" * 5_000
    assert parse_schedule(f"{zeros}7 * * * *", "").next_after(0.0) == 7 * 60
    for text in (f"{nines} * * * *", f"*/{nines} * * * *"):
        with pytest.raises(ScheduleError, match="value out of range"):
            parse_schedule(text, "")
