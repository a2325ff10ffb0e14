"""JSON messages of extenders: conversion of objects to request bodies, and of response bodies to plain values.

Keys are written and read as in kube-scheduler: reading is case-insensitive and ignores unknown keys, and null means
unset. Data after the first JSON value of a body is ignored.

Source: Kubernetes v1.34, k8s.io/kube-scheduler/extender/v1/types.go; Go's encoding/json for the accepted syntax.
Errors: UnreadableAnswer, with Go's text.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.text.json_text import without_lone_surrogates
from kschedd.errors import KscheddError
from kschedd.framework.postfilter import Candidate

_INT64: Final = 1 << 63
_NODES_IN_PART: Final = 64
_OMITTED: Final = ("apiVersion", "kind")  # objects in an informer's cache have neither field


@attrs.define(eq=False)
class UnreadableAnswer(KscheddError):
    """A response body of an extender cannot be parsed."""

    why: str


def encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def object_json(raw: Mapping[str, Any]) -> bytes:
    """Return a pod or a node in the form that kube-scheduler sends."""
    return encoded({key: value for key, value in raw.items() if key not in _OMITTED})


def args_with_names(pod: bytes, names: list[str]) -> bytes:
    """Return the ExtenderArgs for an extender that caches nodes."""
    return b'{"Pod":%b,"Nodes":null,"NodeNames":%b}' % (pod, encoded(names))


def args_with_nodes(pod: bytes, nodes: Sequence[bytes]) -> list[bytes]:
    """Return the ExtenderArgs in parts: copying several megabytes in one step blocks all other threads for 10 ms."""
    parts = [b'{"Pod":%b,"Nodes":{"metadata":{},"items":[' % pod]
    for first in range(0, len(nodes), _NODES_IN_PART):
        parts.append(b"," * (first > 0) + b",".join(nodes[first : first + _NODES_IN_PART]))
    parts.append(b']},"NodeNames":null}')
    return parts


def binding_args(namespace: str, name: str, uid: str, node_name: str) -> bytes:
    return encoded({"PodName": name, "PodNamespace": namespace, "PodUID": uid, "Node": node_name})


def preemption_args(pod: bytes, candidates: tuple[Candidate, ...], by_uid: bool) -> bytes:
    """Return the ExtenderPreemptionArgs; `by_uid`: the extender caches pods."""
    victims = b",".join(
        b'%b:{"Pods":[%b],"NumPDBViolations":%d}'
        % (
            encoded(candidate.node_name),
            b",".join(encoded({"UID": pod.uid}) if by_uid else object_json(pod.raw) for pod in candidate.victims),
            candidate.pdb_violations,
        )
        for candidate in sorted(candidates, key=lambda candidate: candidate.node_name)
    )
    full, meta = (b"null", b"{%b}" % victims) if by_uid else (b"{%b}" % victims, b"null")
    return b'{"Pod":%b,"NodeNameToVictims":%b,"NodeNameToMetaVictims":%b}' % (pod, full, meta)


# -- answers --------------------------------------------------------------------------------------------------------


@attrs.frozen
class FilterResult:
    """The result of a filter call.

    `names` is None if the response contains neither nodes nor names, so that no node is feasible. `whole` is true if
    the response contains Node objects.
    """

    names: tuple[str, ...] | None
    failed: Mapping[str, str]
    unresolvable: Mapping[str, str]
    error: str
    whole: bool = False


@attrs.frozen
class MetaVictims:
    uids: tuple[str, ...]
    pdb_violations: int


def filter_result(body: bytes, *, names: bool) -> FilterResult:
    """Return the filter result; `names`: the extender caches nodes and returns only their names."""
    fields = _Struct(first_value(body), "ExtenderFilterResult")
    given = fields.texts("NodeNames")
    nodes = fields.optional("Nodes", "v1.NodeList")
    whole = nodes is not None and not (names and given is not None)
    if names and given is not None:
        passed: tuple[str, ...] | None = given
    elif nodes is not None:
        items = nodes.items("Items", "v1.Node")
        passed = tuple([_name_of(item) for item in items])
    else:
        passed = None
    failed, unresolvable = fields.text_map("FailedNodes"), fields.text_map("FailedAndUnresolvableNodes")
    return FilterResult(passed, failed, unresolvable, fields.text("Error"), whole)


def _name_of(node: "_Struct") -> str:
    meta = node.optional("metadata", "v1.ObjectMeta")
    return "" if meta is None else meta.text("name")


def priorities(body: bytes) -> list[tuple[str, int]]:
    """Return the pairs (node name, score) in the order of the response."""
    value = first_value(body)
    if value is None:
        return []
    if not isinstance(value, list):
        raise UnreadableAnswer(f"json: cannot unmarshal {_kind(value)} into Go value of type v1.HostPriorityList")
    hosts = [_Struct(item, "HostPriority") for item in value]
    return [(host.text("Host"), host.integer("Score")) for host in hosts]


def binding_error(body: bytes) -> str:
    return _Struct(first_value(body), "ExtenderBindingResult").text("Error")


def preemption_result(body: bytes) -> dict[str, MetaVictims]:
    fields = _Struct(first_value(body), "ExtenderPreemptionResult")
    by_node = fields.get("NodeNameToMetaVictims")
    if by_node is None:
        return {}
    if not isinstance(by_node, dict):
        raise fields.wrong("NodeNameToMetaVictims", by_node, "map[string]*v1.MetaVictims")
    found = {}
    for node_name, value in by_node.items():
        victims = _Struct(value, "MetaVictims")
        pods = victims.items("Pods", "MetaPod")
        found[node_name] = MetaVictims(tuple([pod.text("UID") for pod in pods]), victims.integer("NumPDBViolations"))
    return found


def first_value(body: bytes) -> Any:
    """Return the first JSON value in the body; nodes in a list are reduced to their names."""
    try:
        value, _ = _decoded(without_lone_surrogates(body.decode("utf-8", "replace")), 0, ())
    except (ValueError, RecursionError) as wrong:
        raise UnreadableAnswer(_not_json(body, wrong)) from None
    return value


def _decoded(text: str, at: int, path: tuple[str, ...]) -> tuple[Any, int]:
    """Return the value at the offset `at`, which is below these keys, and the offset of its end. Raises ValueError.

    The outer levels, and long values within them, are parsed here step by step: json's decoder would block all other
    threads until it returns, and a response may contain thousands of nodes. Each decoded node is immediately reduced to
    its name, because several megabytes of live objects would trigger the garbage collector, which stops all threads.
    """
    at = _after_space(text, at)
    opening = text[at : at + 1]
    if opening not in _CLOSING:
        return _DECODER.raw_decode(text, at)
    if len(path) >= _BY_HAND and (short := _short(text, at)) is not None:
        value, at = short
        return _only_name(value) if path == _NODES else value, at
    fields: dict[str, Any] = {}
    items: list[Any] = []
    at = _after_space(text, at + 1)
    while text[at : at + 1] != _CLOSING[opening]:
        if fields or items:
            at = _after_space(text, _past(text, at, ","))
        if opening == "{":
            if text[at : at + 1] != '"':
                raise json.JSONDecodeError("a key is expected", text, at)
            key, at = _DECODER.raw_decode(text, at)
            value, at = _decoded(text, _past(text, _after_space(text, at), ":"), (*path, key.lower()))
            fields[key] = value
        else:
            value, at = _decoded(text, at, (*path, ""))
            items.append(value)
        at = _after_space(text, at)
    value = fields if opening == "{" else items
    return _only_name(value) if path == _NODES else value, at + 1


def _short(text: str, at: int) -> tuple[Any, int] | None:
    """Return the JSON value at `at` and its end; None if the value is invalid or longer than `_SHORT` characters."""
    try:
        value, length = _DECODER.raw_decode(text[at : at + _SHORT])
    except (ValueError, RecursionError):
        return None
    return value, at + length


def _only_name(node: Any) -> Any:
    """Return the part of a node that `filter_result` reads; any other value is returned unchanged."""
    if not isinstance(node, dict):
        return node
    return {
        key: {inner: name for inner, name in value.items() if inner.lower() == "name"}
        if isinstance(value, dict)
        else value
        for key, value in node.items()
        if key.lower() == "metadata"
    }


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None, "it matches nothing, too"
    return found.end()


def _past(text: str, at: int, expected: str) -> int:
    if text[at : at + 1] != expected:
        raise json.JSONDecodeError(f"{expected} is expected", text, at)
    return at + 1


_SPACE: Final = re.compile(r"[ \t\r\n]*")
_CLOSING: Final = {"{": "}", "[": "]"}
_BY_HAND: Final = 3  # number of levels above the items of a list of nodes
_SHORT: Final = 1 << 16  # number of characters; most nodes are shorter
_NODES: Final = "nodes", "items", ""


def _no_constant(name: str) -> Any:
    raise ValueError(name)


_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant)


def _not_json(body: bytes, wrong: Exception) -> str:
    text = body.decode("utf-8", "replace")
    if not text.strip():
        return "EOF"
    at = wrong.pos if isinstance(wrong, json.JSONDecodeError) else 0
    if at >= len(text):
        return "unexpected EOF"
    where = "in what should be JSON" if text[:at].strip() else "looking for beginning of value"
    return f"invalid character {text[at]!r} {where}"


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return f"number {value}" if isinstance(value, float) else "number"
    return "array" if isinstance(value, list) else "object"


class _Struct:
    """A JSON object that is read as Go reads it into a struct."""

    def __init__(self, value: Any, name: str) -> None:
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise UnreadableAnswer(f"json: cannot unmarshal {_kind(value)} into Go value of type {_go(name)}")
        self._name = name
        self._fields = {key.lower(): field for key, field in value.items()}

    def get(self, key: str) -> Any:
        return self._fields.get(key.lower())

    def wrong(self, key: str, value: Any, expected: str) -> UnreadableAnswer:
        where = f"{self._name.removeprefix('v1.')}.{key}"
        return UnreadableAnswer(
            f"json: cannot unmarshal {_kind(value)} into Go struct field {where} of type {expected}"
        )

    def text(self, key: str) -> str:
        value = self.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.wrong(key, value, "string")
        return value.encode("utf-8", "replace").decode()

    def integer(self, key: str) -> int:
        value = self.get(key)
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, int) or not -_INT64 <= value < _INT64:
            raise self.wrong(key, value, "int64")
        return value

    def texts(self, key: str) -> tuple[str, ...] | None:
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, list):
            raise self.wrong(key, value, "[]string")
        for item in value:
            if item is not None and not isinstance(item, str):
                raise self.wrong(key, item, "string")
        return tuple([item or "" for item in value])

    def text_map(self, key: str) -> dict[str, str]:
        value = self.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.wrong(key, value, "v1.FailedNodesMap")
        for item in value.values():
            if item is not None and not isinstance(item, str):
                raise self.wrong(key, item, "string")
        return {name: item or "" for name, item in value.items()}

    def optional(self, key: str, name: str) -> "_Struct | None":
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(key, value, name)
        return _Struct(value, name)

    def items(self, key: str, name: str) -> "list[_Struct]":
        value = self.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.wrong(key, value, f"[]{_go(name)}")
        return [_Struct(item, name) for item in value]


def _go(name: str) -> str:
    return name if name.startswith("v1.") else f"v1.{name}"
