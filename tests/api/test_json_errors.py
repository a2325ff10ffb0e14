"""Tests of JSON syntax errors with the messages of Go's scanner."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.api.text.json_errors import json_error


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "unexpected end of JSON input"),
        ("  ", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        ("[1,", "unexpected end of JSON input"),
        ('"abc', "unexpected end of JSON input"),
        ("not json", "invalid character 'o' in literal null (expecting 'u')"),
        ("tru]", "invalid character ']' in literal true (expecting 'e')"),
        ("fals", "unexpected end of JSON input"),
        ("x", "invalid character 'x' looking for beginning of value"),
        ("'", "invalid character '\\'' looking for beginning of value"),
        ('{"a":1}{"b":2}', "invalid character '{' after top-level value"),
        ("{}x", "invalid character 'x' after top-level value"),
        ("{x", "invalid character 'x' looking for beginning of object key string"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b"', "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("[[1}", "invalid character '}' after array element"),
        ('"a\nb"', "invalid character '\\n' in string literal"),
        ('"\\x"', "invalid character 'x' in string escape code"),
        ('"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("01", "invalid character '1' after top-level value"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1e+x", "invalid character 'x' in exponent of numeric literal"),
        ("1e", "unexpected end of JSON input"),
        ("NaN", "invalid character 'N' looking for beginning of value"),
        ("[٣]", "invalid character 'Ù' looking for beginning of value"),
        ("[é]", "invalid character 'Ã' looking for beginning of value"),
        ("\udc81", "invalid character '\\x81' looking for beginning of value"),
        ('{"a":[{"b":[1.5e-3,true,null,"\\u00e9"]}, {}, []]}', ""),
    ],
)
def test_the_character_that_is_out_of_place(text: str, why: str) -> None:
    assert json_error(text) == why


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(_JSON, st.integers(0, 60), st.sampled_from(["", "x", ",", "]", "}", '"', "\\", " ", "1", "\x00"]))
def test_go_finds_fault_where_python_does(value: object, at: int, put: str) -> None:
    text = json.dumps(value)
    text = text[:at] + put + text[at + 1 :]
    try:
        json.loads(text, parse_constant=_refuse)
    except ValueError:
        assert json_error(text)
    else:
        assert not json_error(text)


def _refuse(constant: str) -> None:
    raise ValueError(constant)
