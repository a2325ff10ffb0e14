"""Tests of answers as attrs classes: their shape, the documentation of their fields, and their plain values."""

from collections.abc import Mapping
from typing import Annotated, Any

import attrs
import msgpack
import pytest

from kschedd.answers import ABSENT, Absent, AnswerError, json_schema, meanings, plain, read, returned, shape
from kschedd.rpc.encoding import encode_response

NodeName = Annotated[str, "node"]


@attrs.frozen
class Part:
    number: Annotated[int, "how many"]


@attrs.frozen
class Other:
    word: Annotated[str, "a noun"]


@attrs.frozen
class Whole:
    name: Annotated[str | None, "null: it has none"]
    part: Part | None
    parts: list[Part]
    nodes: list[NodeName]
    by_node: Mapping[NodeName, Mapping[str, Part]]
    counts: Annotated[Mapping[NodeName, int], "pods by node"]
    rate: float
    more: Annotated[Part | Absent, "only sometimes"] = ABSENT


WHOLE = Whole("w", Part(1), [Part(2)], ["n1"], {"n1": {"k": Part(3)}}, {"n1": 4}, 0.5)


def test_a_class_has_the_shape_of_its_fields() -> None:
    found = "{name, part: {number}, parts: [{number}], nodes: [node], by_node: {NODE: {TEXT: {number}}}, "
    assert shape(Whole) == f"{found}counts: {{NODE: integer}}, rate, more?: {{number}}}}"
    assert returned(list[Part]) == "An array of `{number}`"


def test_a_class_has_a_json_schema() -> None:
    part = {
        "type": "object",
        "properties": {"number": {"type": "integer", "description": "how many"}},
        "required": ["number"],
    }
    nullable_text = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    found = json_schema(Whole)
    assert found["required"] == ["name", "part", "parts", "nodes", "by_node", "counts", "rate"]
    assert found["properties"] == {
        "name": {**nullable_text, "description": "null: it has none"},
        "part": {"anyOf": [part, {"type": "null"}]},
        "parts": {"type": "array", "items": part},
        "nodes": {"type": "array", "items": {"type": "string", "description": "node"}},
        "by_node": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": part}},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}, "description": "pods by node"},
        "rate": {"type": "number"},
        "more": {**part, "description": "only sometimes"},
    }
    assert json_schema(Any) == {}


def test_a_field_has_its_meaning_by_its_path() -> None:
    assert dict(meanings(Whole)) == {
        "name": "null: it has none",
        "part.number": "how many",
        "parts.number": "how many",
        "by_node.number": "how many",
        "counts": "pods by node",
        "more": "only sometimes",
        "more.number": "how many",
    }


def test_an_answer_is_sent_as_maps_and_holds_to_its_shape() -> None:
    sent = msgpack.unpackb(encode_response(1, WHOLE))[3]
    assert sent == plain(WHOLE)
    assert "more" not in sent
    assert plain(attrs.evolve(WHOLE, more=Part(5)))["more"] == {"number": 5}


def test_an_answer_is_read_back_from_what_was_sent() -> None:
    sent = msgpack.unpackb(encode_response(1, WHOLE))[3]
    assert read(Whole, {**sent, "of a later daemon": 1}) == WHOLE
    assert read(Part | Other, {"word": "w"}) == Other("w")
    assert read(list[Part], [{"number": 1}]) == [Part(1)]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param({"part": {}}, "answer.part.number: is missing", id="missing"),
        pytest.param(
            {"parts": [{"number": "1"}]}, "answer.parts[0].number: an integer is expected, not str", id="type"
        ),
        pytest.param({"by_node": {"n": 1}}, "answer.by_node.n: a map is expected, not int", id="map"),
        pytest.param({"nodes": {}}, "answer.nodes: an array is expected, not dict", id="array"),
    ],
)
def test_a_message_of_another_form_is_not_read(change: dict[str, Any], why: str) -> None:
    with pytest.raises(AnswerError) as refused:
        read(Whole, {**plain(WHOLE), **change})
    assert str(refused.value) == why


def test_one_of_several_classes_has_the_shapes_of_all() -> None:
    assert returned(Part | Other) == "`{number}`, or `{word}`"
    assert dict(meanings(Part | Other)) == {"number": "how many", "word": "a noun"}


def test_parts_that_are_shared_stay_shared() -> None:
    part = Part(1)
    first, second = plain([part, part])
    assert first is second
