"""Bodies of extenders: read as json reads them, whatever their shape."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.extenders.messages import UnreadableAnswer, filter_result, first_value, priorities

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=20,
)


@given(VALUES, st.sampled_from([None, 1, "\t"]), st.sampled_from(["", " ", "\n", "{}"]))
def test_what_json_writes_is_read_as_it_was(value: Any, indent: Any, after: str) -> None:
    body = " " + json.dumps(value, indent=indent) + (f"\n{after}" if after else "")
    assert first_value(body.encode()) == value


@given(VALUES, st.data())
def test_what_is_cut_short_is_read_as_json_would_or_refused(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(0, len(text)))]
    try:
        expected = json.loads(cut)
    except ValueError:
        try:
            first_value(cut.encode())
        except UnreadableAnswer:
            return
        # As Go, what follows the first value is not looked at.
        json.JSONDecoder().raw_decode(cut)
    else:
        assert first_value(cut.encode()) == expected


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param(b"", "EOF", id="nothing"),
        pytest.param(b"  <html>", "invalid character '<' looking for beginning of value", id="html"),
        pytest.param(b'{"a": 1,}', "invalid character '}' in what should be JSON", id="a-comma-too-much"),
        pytest.param(b'{"a" 1}', "invalid character '1' in what should be JSON", id="no-colon"),
        pytest.param(b'{"a": [1', "unexpected EOF", id="cut-off"),
        pytest.param(b"NaN", "invalid character 'N' looking for beginning of value", id="nan"),
        pytest.param(b"[" * 100_000, "unexpected EOF", id="deep"),
    ],
)
def test_what_is_no_json_is_refused_in_words(body: bytes, why: str) -> None:
    with pytest.raises(UnreadableAnswer) as refused:
        first_value(body)
    assert str(refused.value) == why or body.startswith(b"[[")


def test_null_is_an_answer_of_nothing() -> None:
    assert filter_result(b"null", names=True).names is None
    assert priorities(b"null") == []
