"""Tests that OpenAPI v2 is sent with a valid media type, whatever media type the client requests."""

import pytest

from tests.apiserver.asking import asking

TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        pytest.param("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", TYPE, id="as-older-clients-ask"),
        pytest.param(TYPE, TYPE, id="as-newer-clients-ask"),
        pytest.param("application/json", "application/json", id="json"),
    ],
)
async def test_openapi_v2(accept: str, content_type: str) -> None:
    async with asking() as api:
        answered = await api.ask("GET", "/openapi/v2", accept=accept)
    assert answered.status == 200
    assert answered.headers["content-type"] == content_type
