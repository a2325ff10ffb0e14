"""Minimal objects for the tests of this folder."""

from typing import Any

Raw = dict[str, Any]


def container(**fields: Any) -> Raw:
    return {"name": "c", "image": "nginx", **fields}


def pod(**spec: Any) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "d"},
        "spec": {"containers": [container()], **spec},
    }


def named(kind: str, api_version: str = "v1", **fields: Any) -> Raw:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **fields}


def workload(kind: str, **spec: Any) -> Raw:
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container()]}}
    return named(kind, "apps/v1", spec={"selector": {"matchLabels": labels}, "template": template, **spec})
