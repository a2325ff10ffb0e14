"""NodePrototype: a node that a request has created, of which others that the request creates after it are copies.

The nodes of a trace, or of a generated cluster, are of a few shapes, and the manifests of one shape share its spec and
status. What the API server's rules make of a node depends on its name and on the values of its labels in one way: they
must be valid. So a manifest that differs from that node's in these alone becomes the same node with a name, labels,
uid, creation time and resourceVersion of its own: what holds for the first node after defaulting, admission and
validation holds for this one.

Owns nothing but this; ends with the request. See `pod_prototype` for pods.
"""

from typing import Any, Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Raw
from kschedd.api.selecting.names import is_dns_subdomain, label_value
from kschedd.store.prototypes.pod_strategy import packed

_LONGEST_NAME: Final = 253
_LONGEST_VALUE: Final = 63  # of a label
_MOST: Final = 1024  # of a request


@attrs.frozen(eq=False)
class NodePrototype:
    node: Node
    _raw: Raw  # the manifest that it was made of

    def may_be_larger(self, max_bytes: int) -> bool:
        """Whether an object of at most so many bytes may be a copy with any valid name and labels."""
        own = _LONGEST_NAME + _LONGEST_VALUE * len(self.node.labels)
        return len(packed("Node", self.node.name, self.node.raw)) + own <= max_bytes

    def has_copy(self, raw: Raw) -> bool:
        """Whether this manifest's node is a copy, if the name is free."""
        known = self._raw
        if list(raw) != list(known) or any(raw[part] is not known[part] for part in raw if part != "metadata"):
            return False
        given: Any = raw["metadata"]
        if type(given) is not dict or list(given) != list(known["metadata"]) or not given.keys() <= {"name", "labels"}:
            return False
        name, labels = given.get("name"), given.get("labels")
        if type(name) is not str or not is_dns_subdomain(name):
            return False
        if type(labels) is not dict or not labels or list(labels) != list(self.node.labels):
            return False
        return all(type(value) is str and not label_value(value) for value in labels.values())

    def copy(self, raw: Raw, uid: str, version: int, at: str) -> Node:
        """The node of that manifest, created `at` that time."""
        node, given = self.node, raw["metadata"]
        own = {"uid": uid, "creationTimestamp": at, "resourceVersion": str(version)}
        stored = {**node.raw, "metadata": {**node.raw["metadata"], **given, **own}}
        return Node(
            "Node",
            given["name"],
            "",
            uid,
            version,
            given["labels"],
            stored,
            node.allocatable,
            node.taints,
            node.unschedulable,
            node.images,
        )


@attrs.define(eq=False)
class NodePrototypes:
    """Those of one request, whose manifests stay as they are as long as it goes on."""

    _by_status: dict[int, NodePrototype] = attrs.field(factory=dict)  # by the identity of the manifest's status

    def of(self, raw: Raw) -> NodePrototype | None:
        """The one of which that manifest's node is a copy."""
        found = self._by_status.get(id(raw.get("status")))
        return found if found is not None and found.has_copy(raw) else None

    def add(self, prototype: NodePrototype, raw: Raw, max_bytes: int) -> None:
        """A node was created of that manifest, where an object has at most so many bytes."""
        if len(self._by_status) >= _MOST:
            self._by_status.clear()
        if prototype.may_be_larger(max_bytes):
            self._by_status[id(raw.get("status"))] = prototype

    def clear(self) -> None:
        """The rules are others now."""
        self._by_status.clear()
