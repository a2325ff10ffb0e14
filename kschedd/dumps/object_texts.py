"""Decoding of pods and nodes in JSON: of several similar objects, only the first is decoded completely.

The likeness of a pod contains all values on which validation depends: its spec without the node's name and the name of
the token volume; its status without times, addresses and IDs; its labels, owners and finalizers; and the keys of its
annotations. The likeness of a node is the whole node without its name, its version, times, addresses and IDs.

Contains the templates and the parts that pods share. An instance exists while one dump or one watch is read.
"""

import re
from collections.abc import Callable, Hashable
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from kschedd.dumps.templates import (
    VALUES_OF_OBJECT,
    VALUES_OF_STATUS,
    Templates,
    TextTemplate,
    count_marks,
    has_marks,
    mark,
    template_of,
    with_mark,
)

_LABEL: Final = rb"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_NODE_NAME: Final = re.compile(rb'"nodeName"\s*:\s*"(' + _LABEL + rb"(?:\." + _LABEL + rb'){0,3})"')
_HOST_NAME: Final = re.compile(rb"(?=[a-z])" + _LABEL)  # the text may be the value of a label, and is not a quantity
_TOKEN: Final = re.compile(rb'"(kube-api-access-[a-z0-9]{5})"')
_NODE, _TOKEN_VOLUME = range(2)  # numbers of the strings in a spec
_MOST_VALUES: Final = 1 << 14
_NONE: Final = Raw(b"")


class _Metadata(Struct, forbid_unknown_fields=True, rename="camel"):
    name: str
    namespace: str
    uid: str
    resource_version: str
    creation_timestamp: str
    generate_name: str | UnsetType = UNSET
    generation: int | UnsetType = UNSET
    labels: Raw = _NONE
    annotations: dict[str, str] | UnsetType = UNSET
    owner_references: Raw = _NONE
    finalizers: Raw = _NONE
    managed_fields: Raw = _NONE  # ignored


class _Pod(Struct, forbid_unknown_fields=True, rename="camel"):
    metadata: _Metadata
    spec: Raw
    status: Raw
    kind: str = ""
    api_version: str = ""


class _Named(Struct):
    name: str


class _Node(Struct, rename="camel"):
    metadata: _Named
    kind: str
    api_version: str


class ObjectTexts:
    """The decoder. `of_pods`: objects without a kind are pods, as in a list of pods from an API server."""

    def __init__(self, of_pods: bool = False) -> None:
        self._of_pods = of_pods
        self._statuses = Templates(VALUES_OF_STATUS)
        self._nodes = Templates(VALUES_OF_OBJECT)
        self._specs: dict[bytes, TextTemplate | None] = {}
        self._values: dict[bytes, Any] = {}
        self._decode_pod: Callable[[memoryview], _Pod] = msgspec.json.Decoder(_Pod).decode
        self._decode_node: Callable[[memoryview], _Node] = msgspec.json.Decoder(_Node).decode

    @property
    def templates(self) -> int:
        """The number of templates of specs, statuses and nodes."""
        return len(self._specs) + len(self._statuses) + len(self._nodes)

    def read(self, text: memoryview) -> tuple[Any, Hashable]:
        """Return the value of a JSON text; for most pods and nodes also its likeness.

        Raises DecodeError and other errors.
        """
        return self._pod(text) or self._node(text) or (msgspec.json.decode(text), None)

    def _node(self, text: memoryview) -> tuple[Any, Hashable] | None:
        try:
            node = self._decode_node(text)
        except msgspec.DecodeError:
            return None
        name = node.metadata.name.encode()
        if (node.kind, node.api_version) != ("Node", "v1") or _HOST_NAME.fullmatch(name) is None:
            return None
        return self._nodes.read(bytes(text), name)

    def _pod(self, text: memoryview) -> tuple[Any, Hashable] | None:
        try:
            pod = self._decode_pod(text)
            if (pod.kind, pod.api_version) != ("Pod", "v1") and not (
                self._of_pods and not pod.kind and not pod.api_version
            ):
                return None
            spec, spec_template = self._spec(bytes(pod.spec))
            status, status_template = self._statuses.read(bytes(pod.status))
            if spec_template is None or status_template is None:
                return None
            meta, own = self._metadata(pod.metadata)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return None
        raw = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}
        return raw, (spec_template, status_template, own)

    def _spec(self, text: bytes) -> tuple[Any, TextTemplate | None]:
        node, token = _NODE_NAME.search(text), _TOKEN.search(text)
        key: bytes | None = text
        if node is not None:
            key = with_mark(text, node[1], _NODE)
        if key is not None and token is not None:
            key = with_mark(key, token[1], _TOKEN_VOLUME)
        if key is None:
            return None, None
        try:
            template = self._specs[key]
        except KeyError:
            template = self._specs[key] = None if has_marks(text) else _spec_template(key)
        if template is None:
            return None, None
        strings = "" if node is None else node[1].decode(), "" if token is None else token[1].decode()
        return template.make(strings), template

    def _metadata(self, given: _Metadata) -> tuple[dict[str, Any], Hashable]:
        meta: dict[str, Any] = {"name": given.name, "namespace": given.namespace, "uid": given.uid}
        meta["resourceVersion"] = given.resource_version
        meta["creationTimestamp"] = given.creation_timestamp
        if given.generate_name is not UNSET:
            meta["generateName"] = given.generate_name
        if given.generation is not UNSET:
            meta["generation"] = given.generation
        labels, owners, finalizers = bytes(given.labels), bytes(given.owner_references), bytes(given.finalizers)
        for field, text in (("labels", labels), ("ownerReferences", owners), ("finalizers", finalizers)):
            if text:
                meta[field] = self._value(text)
        keys = None
        if given.annotations is not UNSET:
            meta["annotations"] = given.annotations
            keys = tuple(given.annotations)
        return meta, (labels, owners, finalizers, keys)

    def _value(self, text: bytes) -> Any:
        """Return the value of a text; equal texts share one value."""
        try:
            return self._values[text]
        except KeyError:
            if len(self._values) >= _MOST_VALUES:
                self._values.clear()
            value = self._values[text] = msgspec.json.decode(text)
            return value


def _spec_template(text: bytes) -> TextTemplate | None:
    """Return the template of a spec; None if the name of the node also occurs elsewhere in the spec."""
    tree = msgspec.json.decode(text)
    if not isinstance(tree, dict):
        return None
    affinity = tree.get("affinity")
    of_node = affinity.get("nodeAffinity") if isinstance(affinity, dict) else None
    known = (tree.get("nodeName") == mark(_NODE)) + count_marks(of_node, _NODE)
    return template_of(tree) if count_marks(tree, _NODE) == known else None
