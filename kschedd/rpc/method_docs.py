"""Generation of METHODS.md: the protocol, and every method of the table.

The page is generated from the daemon's method table, and a test compares it with the committed page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kschedd.answers import meanings
from kschedd.service.errors import CODES
from kschedd.service.params import Param
from kschedd.service.table import Method

_INTRODUCTION = """\
# The socket, method by method

<!-- Generated from the daemon's method table. Change the table, not this page. -->

The daemon speaks [MessagePack-RPC](https://github.com/msgpack-rpc/msgpack-rpc/blob/master/spec.md) over a
Unix socket: `$KSCHEDD_SOCKET`, else `$XDG_RUNTIME_DIR/kschedd/kschedd.sock`, else
`kschedd-UID/kschedd.sock` in the directory for temporary files. Any MessagePack-RPC client works; in
Python:

```python
from kschedd.rpc.blocking import BlockingClient

with BlockingClient() as daemon:
    print(daemon.call("rpc.ping"))
```

`kschedd.rpc.client.Client` offers the same methods to Trio programs. `daemon.ask(CLASS, METHOD)` returns the result as
an instance of its class, for example `kschedd.service.daemon.answers.InfoAnswer` for `daemon.info`. The tables of keys
below are generated from these classes.

With `kschedd run --listen tcp://HOST:PORT` the daemon serves the same protocol on TCP: with TLS, or in plaintext on
loopback only. On TCP the first message must be the request `[0, 1, "rpc.authenticate", [{"token": TOKEN}]]`, unless the
client presents a certificate signed by `--client-ca`. The response contains the authenticated user; a client may send
further requests before it arrives. The clients above accept `tcp://HOST:PORT` in place of a path, and so do `--socket`
and `$KSCHEDD_SOCKET`. They read the token from `$KSCHEDD_TOKEN_FILE` or `$KSCHEDD_TOKEN`, and the CA from
`$KSCHEDD_CA_FILE`. Users in the group `kschedd:read-only` may call only methods that do not write.

## Messages

| message | MessagePack encoding of |
|---|---|
| request | `[0, msgid, method, params]` |
| response | `[1, msgid, error, result]`, where `error` or `result` is nil |
| notification | `[2, method, params]`, which gets no response |

Messages follow each other without a separator. Requests run concurrently, and each response is sent when its request
ends, not in the order of the requests. Before you send a request that depends on another one, wait for the response to
that one. Count msgids from 1: an error that belongs to no request has msgid 0.

`params` is an array, which contains either the parameters by position, or a single map with the parameters by name. If
the first parameter of a method may be a map, a single map counts as named parameters if every key is the name of a
parameter. Nil for an optional parameter means that the parameter is not given. Map keys are strings; extension types
are rejected.

A client's pending requests are cancelled when it closes its socket. A client that closes only its sending side
(`nc -N`, `shutdown(SHUT_WR)`) still gets its responses.

## Limits

Limits keep the requests of one client from delaying other clients. A request that exceeds a limit fails with the
code in the last column; if that column is empty, the request waits.

| limited | limit | code |
|---|---|---|
| bytes of one request | 3145728, as kube-apiserver; `kschedd run --max-request-body-bytes` | `too_large`, then closed |
| bytes of one object as it is stored | 1572864, as etcd; `kschedd run --max-object-bytes` | `too_large` |
| arrays and maps in one request | 262144, 64 deep | `protocol_error` |
| concurrent requests of one client | 64; until one finishes, no more are read from it | |
| concurrent list requests | 4, and one per client; HTTP clients are included | |
| concurrent reads of manifests, dry runs of large objects | 2, one per client in turn, including HTTP clients | |
| unsent bytes of one client | 8 MiB plus one response; until they are sent, no further response is computed | |
| unsent bytes of all clients | 256 MiB; the client with most of them is disconnected | `too_slow` |
| bytes of incomplete requests of all clients | 128 MiB; the client with most of them is disconnected | `too_slow` |
| time in which a client reads none of the bytes sent to it | 30 s, then it is disconnected | |
| streams of one client | 64 | `too_many` |
| events that a stream can lag behind | 200000 | `too_slow` |
| clients | 1024, and 16 more for short connections without streams | `too_many` |
| clients of one process | 256 | `too_many` |
| clients on TCP | 512, so that the Unix socket always accepts clients | `too_many` |
| unauthenticated TCP connections | 64; beyond that, the oldest connection of the address with the most is closed | |
| time to authenticate, including the TLS handshake | 10 s, then the connection is closed | |
| bytes of the `rpc.authenticate` request | 16384 | `unauthenticated` |
| errors reported for one text of manifests | 1000; the rest of the text is not read | |

If 1024 clients are connected and another one connects, the client that has been idle longest gets the error `idle` and
is disconnected. A client is idle if it has no stream and no pending request and has sent nothing for one second.

`daemon.limits` lists most of these limits with their present values and their present usage.
`kschedd run --limit NAME=N` sets a limit.
`kschedd apply` splits a longer text into several requests, except with `--atomic`, which requires a single request.

## Errors

An error is a map `{code, message, data?}`. Programs should compare the code; the wording of the message may change.
"""

_STREAMS = """
If a client sends bytes that are not MessagePack-RPC, the daemon responds with one `protocol_error` and closes the
connection.

## Streams

A method that opens a stream returns a map that contains the id of the stream as `stream`. The daemon then sends the
items as notifications `["stream.item", [id, seq, item]]`, with `seq` counting from 0, and at the end one
`["stream.end", [id, {code, message, data?}]]`, where the code is `done`, `cancelled`, or that of an error. A client
ends a stream with `stream.cancel`. Streams end with the connection; to resume a stream, call the method again with the
token in the last item.
"""


def methods_page(table: Mapping[str, Method]) -> str:
    """Return the whole page as Markdown."""
    codes = "| code | meaning |\n|---|---|\n" + "".join(f"| `{code}` | {text} |\n" for code, text in CODES.items())
    index = "".join(f"- [`{name}`](#{_anchor(name)})\n" for name in table)
    known: dict[str, str] = {}
    methods = "".join(_section(method, known) for method in table.values())
    return f"{_INTRODUCTION}{codes}{_STREAMS}\n## Methods\n\n{index}{methods}"


def _section(method: Method, known: dict[str, str]) -> str:
    """Return the method's section.

    `known` contains tables of keys, each with the method whose section contains it.
    """
    parts = [f"\n### `{method.name}`\n\n{method.doc}\n"]
    if not method.reads:
        only = ", except in forks that they created" if method.own_forks else ""
        elsewhere = ", not even in their own forks" if method.outside else ""
        parts.append(f"\nThis method writes: read-only users may not call it{only}{elsewhere}.\n")
    if method.params:
        rows = "".join(_row(param) for param in method.params)
        parts.append(f"\n| parameter | type | default | meaning |\n|---|---|---|---|\n{rows}")
    else:
        parts.append("\nNo parameters.\n")
    if method.returns:
        parts.append(f"\nReturns: {method.returns}\n")
    parts.append(_meanings(method.answer, method.name, known))
    if method.items:
        parts.append(f"\nStream items: {method.items}\n")
    parts.append(_meanings(method.item, method.name, known))
    return "".join(parts)


def _meanings(answer: Any, method: str, known: dict[str, str]) -> str:
    """Return the documented keys of an answer as a table, or ""."""
    rows = "" if answer is None else "".join(f"| `{path}` | {_cell(text)} |\n" for path, text in meanings(answer))
    if not rows:
        return ""
    elsewhere = known.setdefault(rows, method)
    if elsewhere != method:
        return f"\nThe keys are the same as those of [`{elsewhere}`](#{_anchor(elsewhere)}).\n"
    return f"\n| key | meaning |\n|---|---|\n{rows}"


def _row(param: Param) -> str:
    default = "required" if param.required else f"`{_cell(json.dumps(param.default, ensure_ascii=False))}`"
    meaning = param.doc
    if param.choices:
        choices = ", ".join(f"`{choice}`" for choice in param.choices)
        meaning = f"{meaning} (one of {choices})" if meaning else f"one of {choices}"
    return f"| `{param.name}` | {_cell(param.type + param.range)} | {default} | {_cell(meaning)} |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _anchor(name: str) -> str:
    # as GitHub's anchors for headings, without punctuation
    return "".join(letter for letter in name.lower() if letter.isalnum() or letter in "-_")
