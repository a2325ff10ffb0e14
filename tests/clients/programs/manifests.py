"""Manifests that the client programs create, and the name of their kubeconfig."""

import sys
from typing import Any

KUBECONFIG = sys.argv[1]
NAME = "web"
JOB = "report"
GROUP = "example.com"
CRD_NAME = f"gadgets.{GROUP}"


def template(restart: str) -> dict[str, Any]:
    metadata = {"labels": {"app": NAME}, "annotations": {"kschedd.io/logs": "hello\n"}}
    containers = [{"name": "c", "image": "example/app"}]
    return {"metadata": metadata, "spec": {"restartPolicy": restart, "containers": containers}}


def deployment(**labels: str) -> dict[str, Any]:
    return {
        **{"apiVersion": "apps/v1", "kind": "Deployment"},
        "metadata": {"name": NAME, "namespace": "default", "labels": labels},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": NAME}}, "template": template("Always")},
    }


def applied() -> dict[str, Any]:
    """Return a manifest for server-side apply that sets one label."""
    return {
        **{"apiVersion": "apps/v1", "kind": "Deployment"},
        "metadata": {"name": NAME, "namespace": "default", "labels": {"applied": "yes"}},
    }


def job() -> dict[str, Any]:
    return {
        **{"apiVersion": "batch/v1", "kind": "Job"},
        "metadata": {"name": JOB, "namespace": "default"},
        "spec": {"template": template("Never")},
    }


def definition() -> dict[str, Any]:
    properties = {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    return {
        **{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"},
        "metadata": {"name": CRD_NAME},
        "spec": {
            **{"group": GROUP, "scope": "Namespaced"},
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def gadget() -> dict[str, Any]:
    metadata = {"name": "g", "namespace": "default"}
    return {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": metadata, "spec": {"size": 3}}


def report(step: str, value: object) -> None:
    """Print the result of one step; the test compares the printed lines with the expected lines."""
    print(f"{step}: {value}", flush=True)
