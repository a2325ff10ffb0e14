"""Clients that send arbitrary bytes: valid and invalid requests, changed at random, truncated, or incomplete.

A seed of `random.Random` determines the whole conversation.
"""

import json
import random
from collections.abc import Sequence
from typing import Any, Final

import attrs

_NAME: Final = ("a", "b", "kube-system", "..", "%2e%2e", "%ff", "A_B", "x" * 300, "", "☃")
_PATHS: Final = (
    "/",
    "/api",
    "/apis",
    "/version",
    "/healthz",
    "/openapi/v3",
    "/openapi/v3/api/v1",
    "/api/v1/pods",
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/pods/{}",
    "/api/v1/namespaces/default/pods/{}/status",
    "/api/v1/namespaces/default/pods/{}/log",
    "/api/v1/namespaces/default/pods/{}/eviction",
    "/api/v1/namespaces/default/pods/{}/binding",
    "/api/v1/namespaces/{}/configmaps",
    "/api/v1/nodes",
    "/api/v1/nodes/{}",
    "/api/v1/watch/pods",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/apps/v1/namespaces/default/deployments/{}/scale",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/metrics.k8s.io/v1beta1/nodes",
    "/apis/no.such.group/v1/things",
    "/nowhere/{}",
    "/api/v1/namespaces/default/pods//{}//",
)
_QUERIES: Final = (
    "",
    "?limit=1",
    "?limit=-1",
    "?limit=x",
    "?watch=true&timeoutSeconds=1",
    "?watch=1&resourceVersion=0&allowWatchBookmarks=true&timeoutSeconds=3",
    "?watch=true&resourceVersion=99999999&timeoutSeconds=1",
    "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=2",
    "?resourceVersion=abc",
    "?labelSelector=a%20in%20(",
    "?fieldSelector=metadata.name%3Da",
    "?fieldSelector=%00",
    "?continue=%21%21",
    "?dryRun=All&fieldValidation=Strict",
    "?dryRun=Some",
    "?pretty=true&" + "a=b&" * 40,
    "?%%%",
)
_ACCEPT: Final = (
    "application/json",
    "*/*",
    "application/yaml",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf",
    "text/html",
    ";;;,,,q=",
)
_TYPES: Final = (
    "application/json",
    "application/yaml",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/vnd.kubernetes.protobuf",
    "application/x-www-form-urlencoded",
    "image/png; charset=nobody",
    "",
)
_INSERTED: Final = (b"\r\n", b"\r\n\r\n", b"0\r\n\r\n", b"\x00", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
_METHODS: Final = ("GET", "GET", "GET", "POST", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")


@attrs.frozen
class Conversation:
    """Pieces that a client sends before it hangs up without reading, or waits for the end."""

    pieces: Sequence[bytes]
    messages: int
    hangs_up: bool
    reads: bool


def _body(chance: random.Random) -> bytes:
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": chance.choice(("Pod", "Node", "Nothing", 5, None)),
        "metadata": {"name": chance.choice(_NAME), "labels": chance.choice(({}, {"a": "b"}, [], "x"))},
        "spec": chance.choice(({}, {"containers": [{"name": "c", "image": "x"}]}, [], {"containers": {"a": 1}}, 7)),
    }
    made = (
        json.dumps(pod).encode(),
        json.dumps([{"op": "add", "path": "/metadata/labels/x", "value": "1"}]).encode(),
        b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\ndata: {a: b}\n",
        b"k8s\x00\n\x09\n\x02v1\x12\x03Pod\x12\x04junk",
        b"{" * chance.randint(1, 3000),
        b"[" * chance.randint(1, 3000),
        b"&a [*a]",
        bytes(chance.randrange(256) for _ in range(chance.randint(0, 200))),
        b"",
        b"null",
        b'{"metadata":{"name":"a","name":"b"},"metadata":null}',
        b"1e999",
    )
    return chance.choice(made)


def _message(chance: random.Random) -> bytes:
    path = chance.choice(_PATHS).format(chance.choice(_NAME))
    if chance.random() < 0.5:
        path += chance.choice(_QUERIES)
    body = _body(chance) if chance.random() < 0.5 else b""
    accept = chance.choice(_ACCEPT) if chance.random() < 0.5 else _ACCEPT[0]
    lines = [f"{chance.choice(_METHODS)} {path} HTTP/1.1", "Host: localhost", f"Accept: {accept}"]
    if body or chance.random() < 0.2:
        lines.append(f"Content-Type: {chance.choice(_TYPES)}")
    extra = (
        "Expect: 100-continue",
        "Connection: close",
        "Connection: Upgrade\r\nUpgrade: SPDY/3.1",
        "Accept-Encoding: gzip",
        "Impersonate-User: somebody",
        "Origin: http://evil.example",
        "If-None-Match: *",
        "Authorization: Bearer x",
        "X: " + "y" * 70_000,
        "Host: again",
        "\r\n".join(f"X-{number}: 1" for number in range(120)),
    )
    lines += [line for line in extra if chance.random() < 0.03]
    head = "\r\n".join(lines).encode("utf-8", "replace")
    match chance.randrange(10):
        case 0 if body:  # in chunks
            at = chance.randint(0, len(body))
            parts = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:at], body[at:]) if part)
            return head + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + parts + b"0\r\n\r\n"
        case 1 if body:  # chunks with wrong lengths
            return head + b"\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body) + 3, body)
        case 2:
            return head + b"\r\nContent-Length: 99999999999\r\n\r\n" + body
        case 3:
            return head + b"\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % len(body) + body
    return head + (b"\r\nContent-Length: %d" % len(body) if body else b"") + b"\r\n\r\n" + body


def _changed(chance: random.Random, data: bytes) -> bytes:
    """Return the data with a few bytes changed, inserted or removed."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(found) + 1)
        match chance.randrange(3):
            case 0:
                found[at : at + 1] = bytes((chance.randrange(256),))
            case 1:
                del found[at : at + chance.randint(1, 30)]
            case _:
                found[at:at] = chance.choice(_INSERTED)
    return bytes(found) or b"\n"


def conversation(chance: random.Random) -> Conversation:
    count = chance.randint(1, 6)
    messages = [_message(chance) for _ in range(count)]
    data = b"".join(_changed(chance, each) if chance.random() < 0.25 else each for each in messages)
    if chance.random() < 0.15:
        data = data[: chance.randint(0, len(data))]  # it stops half-way
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randint(0, 5)))
    pieces = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    return Conversation([each for each in pieces if each], count, chance.random() < 0.2, chance.random() < 0.9)
