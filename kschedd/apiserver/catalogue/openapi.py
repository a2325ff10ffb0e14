"""OpenAPI documents, v3 for each group version and v2 for all, generated from `kschedd.api.schemas.schema`.

kubectl reads two parts of v3: whether PATCH of a kind accepts `fieldValidation`, and the fields for `explain`. For an
unknown kind kubectl requests v2 in protobuf. The v2 document in protobuf names no types, which kubectl treats as "not
described". Descriptions come from a file (`descriptions`).

Source: Kubernetes v1.34, the documents under /openapi; gnostic's openapi_v2 messages.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.schemas import schema
from kschedd.apiserver.catalogue.descriptions import described
from kschedd.apiserver.catalogue.resources import Catalogue, GroupVersion, Resource
from kschedd.apiserver.catalogue.version import ServedVersion

V2_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
V2_PROTOBUF_ASKED: Final = frozenset((V2_PROTOBUF, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"))
"""The media types of v2 in requests. Older clients use an invalid one, which is never the answer's."""

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_TIME: Final = f"{_META}Time"
_MICRO_TIME: Final = f"{_META}MicroTime"
_CRD: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."

_NAMED_LEAVES: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    schema.QUANTITY: (_QUANTITY, {"type": "string"}),
    schema.INT_OR_STR: (
        _INT_OR_STRING,
        {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    ),
    schema.TIME: (_TIME, {"type": "string", "format": "date-time"}),
    schema.MICRO_TIME: (_MICRO_TIME, {"type": "string", "format": "date-time"}),
}
_LEAVES: Final[Mapping[str, dict[str, Any]]] = {
    schema.STR: {"type": "string"},
    schema.BYTES: {"type": "string", "format": "byte"},
    schema.INT: {"type": "integer", "format": "int64"},
    schema.INT32: {"type": "integer", "format": "int32"},
    schema.BOOL: {"type": "boolean"},
    schema.NUMBER: {"type": "number", "format": "double"},
    schema.ANY: {"type": "object"},
}


def component_name(name: str) -> str:
    """Return the name of a type in the documents, such as io.k8s.api.core.v1.PodSpec for PodSpec."""
    package, dot, short = name.rpartition(".")
    if not dot:
        return f"io.k8s.api.core.v1.{short}"
    if package == "meta":
        return f"{_META}{short}"
    if package == "apiextensions":
        return f"{_CRD}{short}"
    return f"io.k8s.api.{package}.{short}"


class _Components:
    """The schemas by name, each created once; references begin with `prefix`.

    `rules` are the active rules of the version; some fields exist only with a rule.
    """

    def __init__(self, prefix: str, rules: frozenset[str]) -> None:
        self._prefix = prefix
        self._rules = rules
        self.schemas: dict[str, Any] = {}

    def ref(self, name: str) -> dict[str, Any]:
        return {"$ref": f"{self._prefix}{name}"}

    def add(self, fields: schema.Fields) -> str:
        name = component_name(fields.name)
        if name not in self.schemas:
            made: dict[str, Any] = {"type": "object"}
            self.schemas[name] = made
            properties = {}
            for field, typed in sorted(fields.items()):
                if not fields.has(field, self._rules) and not fields.drops(field, self._rules):
                    continue
                shown = self._of(typed)
                strategy = fields.strategies.get(field)
                if strategy is not None and strategy.merge:
                    shown = {**shown, "x-kubernetes-patch-strategy": "merge"}
                    if strategy.merge_key:
                        shown["x-kubernetes-patch-merge-key"] = strategy.merge_key
                properties[field] = shown
            if properties:
                made["properties"] = properties
        return name

    def _of(self, typed: schema.Schema) -> dict[str, Any]:
        if isinstance(typed, schema.Fields):
            return {"allOf": [self.ref(self.add(typed))]}
        if isinstance(typed, schema.ListOf):
            return {"type": "array", "items": self._of(typed.item)}
        if isinstance(typed, schema.MapOf):
            return {"type": "object", "additionalProperties": self._of(typed.item)}
        named = _NAMED_LEAVES.get(typed)
        if named is None:
            return dict(_LEAVES[typed])
        name, leaf = named
        self.schemas.setdefault(name, leaf)
        return {"allOf": [self.ref(name)]}


def document(version: GroupVersion, served: ServedVersion) -> dict[str, Any]:
    """Return OpenAPI v3 of one group version."""
    components = _Components("#/components/schemas/", served.rules)
    paths: dict[str, Any] = {}
    for resource in version.resources:
        gvk = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        _describe(components, resource, gvk)
        if "patch" in resource.verbs or "create" in resource.verbs:
            paths |= _paths(resource, gvk)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": served.git_version},
        "paths": paths,
        "components": {"schemas": described(components.schemas, served.descriptions)},
    }


def _describe(components: _Components, resource: Resource, gvk: Mapping[str, str]) -> None:
    if resource.definition is not None:
        components.schemas[_custom_name(resource)] = _custom(resource, gvk, components)
        return
    fields = schema.schema_of(resource.api_version, resource.kind)
    if fields is None:
        return
    name = components.add(fields)
    own = components.schemas[name]
    own["x-kubernetes-group-version-kind"] = [dict(gvk)]
    group = name.rpartition(".")[0]
    components.schemas[f"{group}.{resource.kind}List"] = {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "items": {"type": "array", "items": {"allOf": [components.ref(name)]}},
        },
        "x-kubernetes-group-version-kind": [{**gvk, "kind": f"{resource.kind}List"}],
    }


def _custom_name(resource: Resource) -> str:
    turned = ".".join(reversed(resource.group.split(".")))
    return f"{turned}.{resource.version}.{resource.kind}"


def _custom(resource: Resource, gvk: Mapping[str, str], components: _Components) -> dict[str, Any]:
    """Return the schema of a custom resource from its definition."""
    assert resource.definition is not None, "only custom resources have a definition"
    versions = resource.definition.spec.get("versions") or ()
    own: Mapping[str, Any] = next((each for each in versions if each.get("name") == resource.version), {})
    given = (own.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"}
    made = json.loads(json.dumps(given))
    properties = made.setdefault("properties", {})
    properties.setdefault("apiVersion", {"type": "string"})
    properties.setdefault("kind", {"type": "string"})
    metadata = components.add(schema.type_named("meta.ObjectMeta"))
    properties["metadata"] = {"allOf": [components.ref(metadata)]}
    made["x-kubernetes-group-version-kind"] = [dict(gvk)]
    return dict(made)


_PARAMETERS: Final = ("dryRun", "fieldManager", "fieldValidation", "force", "pretty")


def _paths(resource: Resource, gvk: Mapping[str, str]) -> dict[str, Any]:
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    space = "/namespaces/{namespace}" if resource.namespaced else ""
    collection = f"{root}{space}/{resource.name}"

    def operation(action: str, *, body: bool) -> dict[str, Any]:
        names = [name for name in _PARAMETERS if body and (name != "force" or action == "patch")]
        return {
            "operationId": f"{action}{resource.kind}",
            "parameters": [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names],
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": dict(gvk),
        }

    found: dict[str, Any] = {collection: {}, f"{collection}/{{name}}": {}}
    ways = (
        (collection, "get", "list", False),
        (collection, "post", "create", True),
        (f"{collection}/{{name}}", "get", "get", False),
        (f"{collection}/{{name}}", "put", "update", True),
        (f"{collection}/{{name}}", "patch", "patch", True),
        (f"{collection}/{{name}}", "delete", "delete", False),
    )
    for path, method, verb, body in ways:
        if verb in resource.verbs:
            found[path][method] = operation({"create": "post", "update": "put"}.get(verb, verb), body=body)
    return {path: methods for path, methods in found.items() if methods}


def path_of(version: GroupVersion) -> str:
    return f"apis/{version.name}" if version.group else f"api/{version.version}"


def index(etags: Mapping[str, str]) -> dict[str, Any]:
    """Return `/openapi/v3`, which lists the addresses of the documents.

    An address changes with the document's content.
    """
    return {
        "paths": {
            path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={etag}"} for path, etag in sorted(etags.items())
        }
    }


def document_v2(catalogue: Catalogue, served: ServedVersion) -> dict[str, Any]:
    """Return OpenAPI v2 of all groups."""
    components = _Components("#/definitions/", served.rules)
    paths: dict[str, Any] = {}
    for version in catalogue.versions:
        for resource in version.resources:
            gvk = {"group": resource.group, "version": resource.version, "kind": resource.kind}
            _describe(components, resource, gvk)
            if "patch" in resource.verbs:
                paths |= _paths(resource, gvk)
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": served.git_version},
        "paths": paths,
        "definitions": _without_all_of(described(components.schemas, served.descriptions)),
    }


def _without_all_of(value: Any) -> Any:
    """Return the schema with direct references to types, as v2 requires."""
    if isinstance(value, dict):
        if value.keys() <= {"allOf", "description"} and len(value.get("allOf") or ()) == 1:
            return {**{name: each for name, each in value.items() if name != "allOf"}, **value["allOf"][0]}
        return {name: _without_all_of(each) for name, each in value.items()}
    return [_without_all_of(each) for each in value] if isinstance(value, list) else value


def protobuf_v2(served: ServedVersion) -> bytes:
    """Return a minimal OpenAPI v2 document in protobuf, without any descriptions."""
    info = _field(1, b"Kubernetes") + _field(2, served.git_version.encode())
    return _field(1, b"2.0") + _field(2, info) + _field(8, b"") + _field(9, b"")


def _field(number: int, data: bytes) -> bytes:
    assert len(data) < 128, "a length of one byte"
    return bytes((number << 3 | 2, len(data))) + data


def etag_of(data: bytes) -> str:
    return hashlib.sha512(data).hexdigest().upper()
