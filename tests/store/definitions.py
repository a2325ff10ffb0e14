"""CustomResourceDefinitions for tests."""

from typing import Any


def definition(
    kind: str = "Widget", group: str = "example.com", scope: str = "Namespaced", **names: Any
) -> dict[str, Any]:
    """Return the definition of a custom resource with a served version v1 and a version v0 that is not served."""
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural, **names},
            "versions": [
                {"name": "v0", "served": False, "storage": False, "schema": schema},
                {"name": "v1", "served": True, "storage": True, "schema": schema},
            ],
        },
    }


def widget(name: str, version: str = "v1", **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": f"example.com/{version}", "kind": "Widget", "metadata": {"name": name, **metadata}}
