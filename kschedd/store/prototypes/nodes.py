"""NodePrototype: a node from which later nodes of the same request are copied.

The nodes of a trace, or of a generated cluster, have few distinct shapes; manifests of one shape share one spec and one
status. Kube-apiserver only requires that a node's name and label values are valid. A
manifest that differs from an earlier manifest only in its name and labels therefore creates a copy of the earlier node,
with its own name, labels, UID, creation time and resourceVersion. Defaulting, admission and validation are not
repeated.

The prototypes are dropped at the end of the request. Prototypes of pods are in `pods`.
"""

from typing import Any, Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Raw
from kschedd.api.selecting.names import is_dns_subdomain, label_value
from kschedd.store.prototypes.pod_strategy import packed

_LONGEST_NAME: Final = 253
_LONGEST_VALUE: Final = 63  # of a label value
_MOST: Final = 1024  # prototypes per request


@attrs.frozen(eq=False)
class NodePrototype:
    node: Node
    _raw: Raw  # manifest from which the node was created

    def may_be_larger(self, max_bytes: int) -> bool:
        """Return whether a copy with any valid name and labels would be within the size limit."""
        own = _LONGEST_NAME + _LONGEST_VALUE * len(self.node.labels)
        return len(packed("Node", self.node.name, self.node.raw)) + own <= max_bytes

    def has_copy(self, raw: Raw) -> bool:
        """Return whether this manifest's node is a copy of this node, provided that its name is not in use."""
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
        """Return the node of that manifest, created at the time `at`."""
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
    """The node prototypes of one request. The request's manifests must not change while it runs."""

    # prototypes by the identity of the manifest's status
    _by_status: dict[int, NodePrototype] = attrs.field(factory=dict)

    def of(self, raw: Raw) -> NodePrototype | None:
        """Return the prototype from which the manifest's node can be copied, or None."""
        found = self._by_status.get(id(raw.get("status")))
        return found if found is not None and found.has_copy(raw) else None

    def add(self, prototype: NodePrototype, raw: Raw, max_bytes: int) -> None:
        """Add the node that was created from this manifest; an object may have at most `max_bytes` bytes."""
        if len(self._by_status) >= _MOST:
            self._by_status.clear()
        if prototype.may_be_larger(max_bytes):
            self._by_status[id(raw.get("status"))] = prototype

    def clear(self) -> None:
        """Drop all prototypes, because the rules have changed."""
        self._by_status.clear()
