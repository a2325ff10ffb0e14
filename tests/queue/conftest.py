"""Pods, nodes, and a queue with a few plugins, for the queue's tests."""

from typing import Any

import pytest

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod


class Make:
    """A factory of pods and nodes; a pod's uid is derived from its name unless given."""

    def pod(self, name: str = "p", *, priority: int = 0, uid: str = "", version: int = 0, **parts: Any) -> Pod:
        meta: dict[str, Any] = {
            "name": name,
            "namespace": "d",
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
        }
        meta.update(parts.pop("metadata", {}))
        status = parts.pop("status", {})
        spec = {"priority": priority, "containers": [{"name": "c"}], **parts}
        return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": spec, "status": status})

    def node(self, name: str = "n", **labels: str) -> Node:
        return Node.from_raw({"kind": "Node", "metadata": {"name": name, "labels": labels}})


@pytest.fixture
def make() -> Make:
    return Make()
