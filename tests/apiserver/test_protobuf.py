"""Tests that protobuf bodies are parsed into the same objects as JSON bodies."""

from collections.abc import Iterator
from typing import Any

import pytest

from kschedd.api.schemas.schema import Fields, ListOf, MapOf, Schema, schema_of
from kschedd.apiserver.codec.protobuf import MAGIC, decode_protobuf, kinds, numbers
from tests.apiserver.asking import asking


def field(number: int, value: bytes) -> bytes:
    assert len(value) < 128
    return bytes((number << 3 | 2, len(value))) + value


def envelope(api_version: str, kind: str, body: bytes) -> bytes:
    return MAGIC + field(1, field(1, api_version.encode()) + field(2, kind.encode())) + field(2, body)


def test_a_rule_of_an_ingress_has_the_fields_of_its_value() -> None:
    path = field(1, b"/") + field(3, b"Prefix")
    rule = field(1, b"h.example") + field(2, field(1, field(1, path)))
    made = decode_protobuf(envelope("networking.k8s.io/v1", "Ingress", field(2, field(3, rule))))
    paths = [{"path": "/", "pathType": "Prefix"}]
    assert made["spec"] == {"rules": [{"host": "h.example", "http": {"paths": paths}}]}


@pytest.mark.parametrize(("spec", "read"), [(field(5, b""), {"storageClassName": ""}), (b"", {})])
def test_a_claim_of_no_class_is_not_one_of_the_default_class(spec: bytes, read: dict[str, Any]) -> None:
    assert decode_protobuf(envelope("v1", "PersistentVolumeClaim", field(2, spec)))["spec"] == read


def unknown(message: str, schema: Schema | None, seen: set[str]) -> Iterator[str]:
    """Return the fields of a message that the API type lacks."""
    if message in seen or not isinstance(schema, Fields):
        return
    seen.add(message)
    for name, typed in numbers(message).values():
        inner = schema if name == "~" else schema.get(name)
        if inner is None:
            yield f"{message}.{name}"
        elif isinstance(inner, ListOf | MapOf):
            yield from unknown(typed[1:], inner.item, seen)
        else:
            yield from unknown(typed, inner, seen)


def test_messages_have_no_field_that_the_api_has_not() -> None:
    seen: set[str] = set()
    reported = []
    for name, message in kinds().items():
        api_version, _, kind = name.partition(" ")
        if (schema := schema_of(api_version, kind)) is not None:
            reported += unknown(message, schema, seen)
    assert reported == []
    assert len(seen) > 300


async def test_an_answer_in_protobuf_alone_is_refused_without_being_offered() -> None:
    async with asking() as api:
        answered = await api.ask("GET", "/api/v1/nodes", accept="application/vnd.kubernetes.protobuf")
        assert (answered.status, answered.json["reason"]) == (406, "NotAcceptable")
        assert "protobuf" not in answered.json["message"]
        both = await api.ask("GET", "/api/v1/nodes", accept="application/vnd.kubernetes.protobuf,application/json")
        assert both.status == 200
