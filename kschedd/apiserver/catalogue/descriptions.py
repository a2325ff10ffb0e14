"""Descriptions of types and fields, from an OpenAPI v2 document of Kubernetes that the user has.

Kubernetes publishes this document as api/openapi-spec/swagger.json, and every cluster serves it: `kubectl get --raw
/openapi/v2`. Its descriptions are 1 MB of text by the Kubernetes authors, so they are not part of kschedd. Types are
found by their names, such as io.k8s.api.core.v1.PodSpec; a type that the document lacks has no descriptions.

Raises: DescriptionsError.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from kschedd.errors import KscheddError


@attrs.define(eq=False)
class DescriptionsError(KscheddError):
    """A file that is not an OpenAPI v2 document."""

    file: str
    why: str

    def __str__(self) -> str:
        return f"--openapi-descriptions {self.file}: {self.why}"


@attrs.frozen(eq=False)
class TypeDescription:
    text: str
    fields: Mapping[str, str]
    required: tuple[str, ...]


Descriptions = Mapping[str, TypeDescription]
"""The descriptions by the names of the types."""


def read_descriptions(file: Path) -> Descriptions:
    try:
        document = json.loads(file.read_bytes())
    except OSError as wrong:
        raise DescriptionsError(str(file), f"cannot be read: {wrong.strerror}") from wrong
    except ValueError as wrong:
        raise DescriptionsError(str(file), f"is not JSON: {wrong}") from wrong
    definitions = document.get("definitions") if isinstance(document, dict) else None
    if not isinstance(definitions, dict):
        raise DescriptionsError(str(file), "is not an OpenAPI v2 document: it has no definitions")
    return {name: _type(made) for name, made in definitions.items() if isinstance(made, dict)}


def _type(made: Mapping[str, Any]) -> TypeDescription:
    properties = made.get("properties")
    given = properties.items() if isinstance(properties, dict) else ()
    fields = {field: _text(shown) for field, shown in given if _text(shown)}
    required = made.get("required")
    return TypeDescription(_text(made), fields, tuple(map(str, required)) if isinstance(required, list) else ())


def _text(made: Any) -> str:
    text = made.get("description") if isinstance(made, dict) else None
    return text if isinstance(text, str) else ""


def described(schemas: Mapping[str, Any], descriptions: Descriptions) -> dict[str, Any]:
    """Return these schemas of types with their descriptions and required fields."""
    return {name: _described(made, descriptions.get(name)) for name, made in schemas.items()}


def _described(made: Mapping[str, Any], known: TypeDescription | None) -> dict[str, Any]:
    if known is None:
        return dict(made)
    found = {"description": known.text, **made} if known.text else dict(made)
    properties = made.get("properties")
    if properties:
        found["properties"] = {
            field: {"description": known.fields[field], **shown} if field in known.fields else shown
            for field, shown in properties.items()
        }
        required = [field for field in known.required if field in properties]
        if required:
            found["required"] = required
    return found
