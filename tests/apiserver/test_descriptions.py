"""Descriptions for `kubectl explain`, from an OpenAPI document of the user."""

import json
from pathlib import Path

import pytest

from kschedd.apiserver.catalogue import openapi
from kschedd.apiserver.catalogue.descriptions import DescriptionsError, read_descriptions
from kschedd.apiserver.catalogue.resources import Catalogue, built_in
from kschedd.apiserver.catalogue.version import ServedVersion

POD = "io.k8s.api.core.v1.Pod"
DOCUMENT = {
    "swagger": "2.0",
    "definitions": {
        POD: {
            "description": "A group of containers.",
            "properties": {
                "spec": {"description": "What is wanted.", "$ref": "#/definitions/x"},
                "unknown": {"description": "not here"},
                "status": {},
            },
            "required": ["spec", "unknown"],
        },
        "io.k8s.other": {"description": "unused"},
    },
}


@pytest.fixture
def served(tmp_path: Path) -> ServedVersion:
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(DOCUMENT))
    return ServedVersion(descriptions=read_descriptions(file))


def test_types_and_fields_are_described(served: ServedVersion) -> None:
    core = Catalogue(built_in()).version("v1")
    assert core is not None
    pod = openapi.document(core, served)["components"]["schemas"][POD]
    assert pod["description"] == "A group of containers."
    assert pod["properties"]["spec"] == {
        "description": "What is wanted.",
        "allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}],
    }
    assert "description" not in pod["properties"]["status"]
    assert pod["required"] == ["spec"]


def test_the_second_version_of_the_document_describes_references(served: ServedVersion) -> None:
    pod = openapi.document_v2(Catalogue(built_in()), served)["definitions"][POD]
    assert pod["properties"]["spec"] == {
        "description": "What is wanted.",
        "$ref": "#/definitions/io.k8s.api.core.v1.PodSpec",
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is not JSON: "),
        ("[]", "is not an OpenAPI v2 document: it has no definitions"),
        ('{"openapi": "3.0.0"}', "is not an OpenAPI v2 document: it has no definitions"),
    ],
)
def test_another_file_is_rejected(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "openapi.json"
    file.write_text(text)
    with pytest.raises(DescriptionsError) as raised:
        read_descriptions(file)
    assert str(raised.value).startswith(f"--openapi-descriptions {file}: {why}")


def test_a_missing_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(DescriptionsError, match="cannot be read: No such file"):
        read_descriptions(tmp_path / "missing.json")
