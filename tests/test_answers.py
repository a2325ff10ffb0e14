"""Answers as attrs classes: their shape, the meaning of their fields, and their plain values."""

from collections.abc import Mapping
from typing import Annotated

import attrs
import msgpack

from kschedd.answers import ABSENT, Absent, meanings, plain, returned, shape
from kschedd.rpc.encoding import encode_response
from tests.rpc.documented import faults, shape_of

NodeName = Annotated[str, "node"]


@attrs.frozen
class Part:
    number: Annotated[int, "how many"]


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
    assert faults(shape_of(returned(Whole)), sent) == []
    assert "more" not in sent
    assert plain(attrs.evolve(WHOLE, more=Part(5)))["more"] == {"number": 5}
    assert faults(shape_of(returned(Whole)), {**sent, "part": {}}) == ["answer.part.number is missing"]


def test_parts_that_are_shared_stay_shared() -> None:
    part = Part(1)
    first, second = plain([part, part])
    assert first is second
