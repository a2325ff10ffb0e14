"""Definitions of built-in kinds that exist only in some Kubernetes versions; they are served like custom resources.

Versions without the kind's feature do not serve the kind. In other versions, objects of the kind are checked, stored,
printed and served like custom resources. The schema defines the types of the fields; its violations are reported with
the messages for custom resources. The kind's module validates values, with kube-apiserver's messages.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kschedd.api.objects import Object

Schema = Mapping[str, Any]

TEXT: Final = {"type": "string"}
CONDITIONS: Final = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "type": TEXT,
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "reason": TEXT,
            "message": TEXT,
        },
        "required": ["type", "status"],
    },
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}


def fields(properties: Schema, *required: str, **more: Any) -> dict[str, Any]:
    """Return the schema of an object with these fields."""
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {}), **more}


def definition(
    kind: str,
    plural: str,
    api_version: str,
    schema: Schema,
    *,
    status: bool,
    namespaced: bool = True,
    also: Sequence[str] = (),
) -> Object:
    """Return the definition of a kind in one version of its group.

    `also` lists additional versions with the same schema.
    """
    group, _, name = api_version.partition("/")
    version = {
        "served": True,
        "schema": {"openAPIV3Schema": {"type": "object", **schema}},
        **({"subresources": {"status": {}}} if status else {}),
    }
    versions = [{"name": each, "storage": each == name, **version} for each in (name, *also)]
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    scope = "Namespaced" if namespaced else "Cluster"
    return Object.from_raw(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": scope, "names": names, "versions": versions},
        }
    )
