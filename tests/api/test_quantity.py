"""Quantities have the exact values that Kubernetes computes."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.api import quantity
from kschedd.api.quantity import MAX_INT64, QuantityError, as_stored, canonical, milli_value, parse, shown, value


def low_bits(number: int) -> int:
    """Return the number wrapped to an int64."""
    return (number + 2**63) % 2**64 - 2**63


@pytest.mark.parametrize(
    ("text", "units", "milli"),
    [
        pytest.param("1", 1, 1000, id="plain"),
        pytest.param("100m", 1, 100, id="milli-rounds-up-to-one-unit"),
        pytest.param("1500m", 2, 1500, id="units-round-up"),
        pytest.param("0.1m", 1, 1, id="finer-than-a-milli-rounds-up"),
        pytest.param("1n", 1, 1, id="a-nano-is-something"),
        pytest.param("0.5n", 1, 1, id="finer-than-a-nano-rounds-up"),
        pytest.param("1u", 1, 1, id="micro"),
        pytest.param("2k", 2000, 2_000_000, id="kilo"),
        pytest.param("1Ki", 1024, 1_024_000, id="kibi"),
        pytest.param("1.5Gi", 1536 * 2**20, 1536 * 2**20 * 1000, id="fraction-of-gibi"),
        pytest.param("0.1Ki", 103, 102_400, id="fraction-of-kibi-rounds-up"),
        pytest.param("1E", 10**18, 0, id="exa-is-not-an-exponent"),
        pytest.param("1e3", 1000, 1_000_000, id="exponent"),
        pytest.param("1E3", 1000, 1_000_000, id="capital-exponent"),
        pytest.param("12e-1", 2, 1200, id="negative-exponent"),
        pytest.param("+1", 1, 1000, id="plus-sign"),
        pytest.param("-1500m", -2, -1500, id="negative-rounds-away-from-zero"),
        pytest.param(".5", 1, 500, id="no-digit-before-the-point"),
        pytest.param("5.", 5, 5000, id="no-digit-after-the-point"),
        pytest.param("007", 7, 7000, id="leading-zeros"),
        pytest.param("0Ki", 0, 0, id="zero"),
        pytest.param("8Ei", MAX_INT64, -1000, id="binary-is-capped-and-its-milli-wrap-around"),
        pytest.param("4e18", 4 * 10**18, 0, id="too-large-by-tens-is-nothing"),
        pytest.param("100E", 0, 0, id="too-large-in-units-too"),
        pytest.param("1e999999999999", 0, 0, id="huge-exponent"),
        pytest.param("9223372036854775807", MAX_INT64, -1000, id="nineteen-digits-wrap-around"),
        pytest.param("9223372036854775808", -(2**63), 0, id="one-more-is-the-least-int64"),
        pytest.param("900000000000000000", 9 * 10**17, low_bits(9 * 10**20), id="a-thousandfold-wraps-around"),
        pytest.param("9300000000000000k", low_bits(93 * 10**17), low_bits(93 * 10**20), id="kilo-wraps-around"),
        pytest.param("20000000000T", 0, 0, id="tera-does-not"),
        pytest.param("1e-999999999999", 1, 1, id="tiny-exponent-is-a-nano"),
        pytest.param(2, 2, 2000, id="yaml-integer"),
        pytest.param(0.5, 1, 500, id="yaml-float-is-its-text"),
        pytest.param(0.1, 1, 100, id="no-binary-noise"),
        pytest.param(1e-05, 1, 1, id="yaml-float-with-exponent"),
    ],
)
def test_units_and_milli(text: str | int | float, units: int, milli: int) -> None:
    assert (value(text), milli_value(text)) == (units, milli)


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "1.5.0",
        "1i",
        "1.5mi",
        "1Kb",
        "1 ",
        " 1",
        "one",
        "1e",
        "e3",
        "m",
        ".",
        "-",
        "--1",
        "1_000",
        "٣",
        "1\n",
        "9" * 3000,
    ],
)
def test_what_is_no_quantity_is_refused_with_what_is_allowed(bad: str) -> None:
    with pytest.raises(QuantityError, match="number with an optional suffix"):
        value(bad)


@pytest.mark.parametrize("bad", [True, None, [], {}, math.inf, math.nan])
def test_other_types_are_refused(bad: object) -> None:
    value(1)  # the cache contains an equal key, which must not accept True
    with pytest.raises(QuantityError):
        milli_value(bad)
    with pytest.raises(QuantityError):
        value(bad)


def test_a_long_value_is_not_repeated_whole() -> None:
    with pytest.raises(QuantityError) as refusal:
        value("9" * 1_000_000)
    assert len(str(refusal.value)) < 400


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("1.5", "1500m"),
        ("1.5Gi", "1536Mi"),
        ("1024Mi", "1Gi"),
        ("1000m", "1"),
        ("512", "512"),
        ("0.5Ki", "512"),
        ("1000000", "1M"),
        ("1500e3", "1500e3"),
        ("1000e3", "1e6"),
        ("0.1Ki", "102400m"),
        ("100n", "100n"),
        ("0Gi", "0"),
        ("-2Ki", "-2Ki"),
        (1500, "1500"),
    ],
)
def test_canonical_form(text: str | int, printed: str) -> None:
    assert canonical(text) == printed


def test_sums_are_printed_canonically() -> None:
    assert quantity.format_milli(1500) == "1500m"
    assert quantity.format_milli(2000) == "2"
    assert quantity.format_value(3 * 2**30, "BinarySI") == "3Gi"
    assert quantity.format_value(110) == "110"


digits = st.text("0123456789", max_size=12)
SUFFIXES = {
    **{s: Fraction(10) ** e for s, e in zip("num", (-9, -6, -3), strict=True)},
    **{s: Fraction(1000) ** (i + 1) for i, s in enumerate("kMGTPE")},
    **{s + "i": Fraction(1024) ** (i + 1) for i, s in enumerate("KMGTPE")},
    "": Fraction(1),
    "e3": Fraction(1000),
    "E-7": Fraction(1, 10**7),
    "e+2": Fraction(100),
}


def up(number: Fraction, per_unit: int) -> int:
    """Round the number away from zero to a multiple of 1/per_unit, and return it in that unit."""
    whole = math.ceil(abs(number) * per_unit)
    return whole if number >= 0 else -whole


def fits(number: int) -> bool:
    return abs(number) <= MAX_INT64


@given(st.sampled_from(["", "+", "-"]), digits, st.none() | digits, st.sampled_from(sorted(SUFFIXES)))
def test_equal_to_plain_fractions(sign: str, whole: str, fraction: str | None, suffix: str) -> None:
    if not whole and not fraction:
        return
    text = sign + whole + ("" if fraction is None else "." + fraction) + suffix
    number = Fraction(int(whole + (fraction or "")), 10 ** len(fraction or "")) * SUFFIXES[suffix]
    number = -number if sign == "-" else number
    nano = Fraction(up(number, 10**9), 10**9)
    if suffix.endswith("i"):
        nano = max(-Fraction(MAX_INT64), min(Fraction(MAX_INT64), nano))
    assert parse(text) == nano
    for read, units in ((value(text), up(nano, 1)), (milli_value(text), up(nano, 1000))):
        # A negative value that does not fit is rounded up instead of away from zero.
        wraps = {0, low_bits(units), low_bits(units + 1 if units < 0 else units)}
        assert read == units if fits(units) else read in wraps
    assert parse(canonical(text)) == parse(text)
    assert canonical(canonical(text)) == canonical(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("é", '"é"'),
        (["é"], '["é"]'),
        ({"Type": "é"}, '{"Type":"é"}'),
        ("a\x01\x7f\x80", r'"a\x01\x7f\u0080"'),
        ("\n", r'"\n"'),
    ],
)
def test_texts_are_shown_as_go_shows_them(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    ("written", "stored"),
    [("1e21", "1e21"), ("1000E", "1"), (10**23, "100"), ("123000E", "123"), ("1234567890123456789012", None)],
)
def test_beyond_exa_there_is_no_suffix(written: str | int, stored: str | None) -> None:
    assert as_stored(written) == (stored or written)
