"""Bodies of extenders are parsed as by the module json, whatever their shape."""

import json
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.extenders import messages
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


@given(VALUES)
def test_what_is_long_is_read_as_it_was(value: Any) -> None:
    nested = {"a": {"b": {"c": value}}}
    with patch.object(messages, "_SHORT", 4):
        assert first_value(json.dumps(nested).encode()) == nested


def test_no_long_part_is_decoded_at_once() -> None:
    taken = []

    class Decoder(json.JSONDecoder):
        def raw_decode(self, s: str, idx: int = 0) -> tuple[Any, int]:
            value, end = super().raw_decode(s, idx)
            taken.append(end - idx)
            return value, end

    deep = {"a": {"b": {"c": {"d": [[1, "x" * 10]] * 10_000}}}}
    with patch.object(messages, "_DECODER", Decoder()):
        assert first_value(json.dumps(deep).encode()) == deep
    assert max(taken) <= messages._SHORT


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


def test_of_the_nodes_of_an_answer_only_their_names_are_kept() -> None:
    node = {"Metadata": {"NAME": "n1", "labels": {"a": "b"}}, "status": {"images": [1, 2]}}
    body = json.dumps({"nodes": {"kind": "List", "Items": [node, node]}, "Error": ""}).encode()
    assert first_value(body) == {
        "nodes": {"kind": "List", "Items": [{"Metadata": {"NAME": "n1"}}] * 2},
        "Error": "",
    }
    assert filter_result(body, names=False).names == ("n1", "n1")


@pytest.mark.parametrize(
    ("items", "why"),
    [
        pytest.param([1], "json: cannot unmarshal number into Go value of type v1.Node", id="a-number-for-a-node"),
        pytest.param(
            [{"metadata": []}],
            "json: cannot unmarshal array into Go struct field Node.metadata of type v1.ObjectMeta",
            id="a-list-for-its-metadata",
        ),
        pytest.param(
            [{"metadata": {"name": 7}}],
            "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string",
            id="a-number-for-its-name",
        ),
    ],
)
def test_a_node_of_another_form_is_refused_in_words(items: list[Any], why: str) -> None:
    with pytest.raises(UnreadableAnswer) as refused:
        filter_result(json.dumps({"Nodes": {"items": items}}).encode(), names=False)
    assert str(refused.value) == why


def test_a_node_without_a_name_has_an_empty_one() -> None:
    assert filter_result(b'{"Nodes": {"items": [{}, null, {"metadata": null}]}}', names=False).names == ("", "", "")
