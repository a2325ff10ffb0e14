"""Tests of objects in the order in which Go writes them as JSON."""

import json
from typing import Any

import pytest

from kschedd.api.quantity import quoted
from kschedd.api.schemas.go_order import go_json, in_go_order
from kschedd.api.schemas.schema import schema_of


def test_fields_have_the_order_of_their_type_and_maps_that_of_their_keys() -> None:
    pod = {
        "spec": {"nodeName": "n", "odd": 1, "containers": [{"image": "i", "name": "c"}]},
        "metadata": {"labels": {"b": "1", "a": "2"}, "uid": "u", "name": "p"},
    }
    assert go_json(in_go_order(pod, schema_of("v1", "Pod"))) == (
        '{"metadata":{"name":"p","uid":"u","labels":{"a":"2","b":"1"}},'
        '"spec":{"containers":[{"name":"c","image":"i"}],"nodeName":"n","odd":1}}'
    )


@pytest.mark.parametrize("value", ["<a> & b", "é ", "tab\t", "\u2028\u2029", "\x01"])
def test_what_html_could_take_for_markup_is_escaped(value: Any) -> None:
    text = go_json(value)
    assert json.loads(text) == value
    assert not set(text) & set("<>&\u2028\u2029")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param('a"b\\', '"a\\"b\\\\"', id="quotes"),
        pytest.param("\a\b\f\n\r\t\v", '"\\a\\b\\f\\n\\r\\t\\v"', id="named-escapes"),
        pytest.param("\x01\x7f", '"\\x01\\x7f"', id="control-characters"),
        pytest.param("é世", '"é世"', id="letters"),
        pytest.param("\u200b\U000e0001", '"\\u200b\\U000e0001"', id="what-shows-nothing"),
    ],
)
def test_a_text_in_quotes(text: str, shown: str) -> None:
    assert quoted(text) == shown
