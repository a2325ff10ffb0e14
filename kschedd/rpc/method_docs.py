"""Generates METHODS.md, the documentation of the socket: the protocol, and every method of the table.

The page is generated from the table that the daemon uses, so it cannot diverge from it; a test compares the file
beside the README with it.
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
`kschedd-UID/kschedd.sock` in the directory for temporary files. Any MessagePack-RPC client will do; in
Python:

```python
from kschedd.rpc.blocking import BlockingClient

with BlockingClient() as daemon:
    print(daemon.call("rpc.ping"))
```

`kschedd.rpc.client.Client` is the same for Trio programs. `daemon.ask(CLASS, METHOD)` returns the answer as an instance
of its class, from which the shape below is made (`kschedd.service.daemon.answers.InfoAnswer` for `daemon.info`, say).

With `kschedd run --listen tcp://HOST:PORT` it speaks the same on TCP: with TLS, or in plaintext on loopback only. There
the first message has to be the request `[0, 1, "rpc.authenticate", [{"token": TOKEN}]]`, unless the client shows a
certificate of `--client-ca`; the answer says who one is, and others may follow before it. The clients above take
`tcp://HOST:PORT` for a path, as do `--socket` and `$KSCHEDD_SOCKET`; the token is in `$KSCHEDD_TOKEN_FILE` or
`$KSCHEDD_TOKEN`, the CA in `$KSCHEDD_CA_FILE`. Users of the group `kschedd:read-only` may call what does not write.

## Messages

| message | bytes are the MessagePack of |
|---|---|
| request | `[0, msgid, method, params]` |
| response | `[1, msgid, error, result]`, one of the two last being nil |
| notification | `[2, method, params]`, which is not answered |

Messages follow each other without anything in between. Requests run concurrently and are answered as they
finish, not in the order they came: wait for an answer before you send what depends on it.
Count msgids from 1: an error that belongs to no request has msgid 0.

`params` is an array. It holds the parameters by position, or one map and nothing else: the parameters by
name. Where the first parameter may itself be a map, a single map means names if every key is the name of a
parameter. Nil for an optional parameter means that it is not given. Map keys are strings; extension types
are refused.

What a client has asked for is cancelled when it closes its socket; one that closes only its sending side
(`nc -N`, `shutdown(SHUT_WR)`) still gets its answers.

## Limits

Nobody is to be held up by what another one asks. Where a limit is reached, the answer has the code in the last
column; where there is none, whoever asks for more waits.

| what | limit | code |
|---|---|---|
| bytes of one request | 3145728, as kube-apiserver; `kschedd run --max-request-body-bytes` | `too_large`, and the end |
| bytes of one object as it is stored | 1572864, as etcd; `kschedd run --max-object-bytes` | `too_large` |
| arrays and maps in one request | 262144, 64 deep | `protocol_error` |
| requests of one client that run at once | 64; it is not read from meanwhile | |
| requests for lists | 4 at once, one of each client, those over HTTP among them | |
| manifests read, and large objects tried out | 2 at once, one of each client, in turns, those over HTTP among them | |
| bytes that wait for one client | 8 MiB and the answer after that; nothing more is worked out for it meanwhile | |
| bytes that wait for all clients | 256 MiB; the client for whom most of it waits is dropped | `too_slow` |
| bytes of incomplete requests of all clients | 128 MiB; the client with most of them is dropped | `too_slow` |
| time in which a client takes nothing of what is sent | 30 s, then it is dropped | |
| streams of one client | 64 | `too_many` |
| events that a stream may be behind | 200000 | `too_slow` |
| clients | 1024, and 16 more for short visits without streams | `too_many` |
| clients of one process | 256 | `too_many` |
| clients on TCP | 512, so that the Unix socket always has places | `too_many` |
| connections by TCP that are not authenticated | 64; then the oldest of the address that has most is closed | |
| time to say so, the TLS handshake included | 10 s, then it is closed | |
| bytes of the message that says so | 16384 | `unauthenticated` |
| faults told of one text of manifests | 1000, then the rest is not read | |

When 1024 are connected, a client that has no stream and no request, and has sent nothing for a second, gives its
place to a new one: the one that has been idle longest is told `idle`, and its connection ends.

`daemon.limits` has most of these as they are in force, with how far each is used, and `kschedd run --limit NAME=N` sets
one. `kschedd apply` sends a longer text in several requests; what is `--atomic`
has to be one.

## Errors

An error is a map `{code, message, data?}`. Programs go by the code; the message may change.

"""

_STREAMS = """
Bytes that are no MessagePack-RPC are answered with one `protocol_error`, and that connection is closed.

## Streams

A method that opens a stream returns a map with its id as `stream`. From then on come the notifications
`["stream.item", [id, seq, item]]`, with `seq` counting from 0, and at the end one
`["stream.end", [id, {code, message, data?}]]`, where the code is `done`, `cancelled`, or an error's.
`stream.cancel` ends it from this side. Streams end with the connection; to go on after that, call the method
again with the token that its items carry.
"""


def methods_page(table: Mapping[str, Method]) -> str:
    """The whole page as Markdown."""
    codes = "| code | meaning |\n|---|---|\n" + "".join(f"| `{code}` | {text} |\n" for code, text in CODES.items())
    index = "".join(f"- [`{name}`](#{_anchor(name)})\n" for name in table)
    known: dict[str, str] = {}
    methods = "".join(_section(method, known) for method in table.values())
    return f"{_INTRODUCTION}{codes}{_STREAMS}\n## Methods\n\n{index}{methods}"


def _section(method: Method, known: dict[str, str]) -> str:
    """Return the method's section. `known`: tables of keys, each with the method whose section has it."""
    parts = [f"\n### `{method.name}`\n\n{method.doc}\n"]
    if not method.reads:
        only = ", but for forks that they have made" if method.own_forks else ""
        elsewhere = ", also in a fork of theirs" if method.outside else ""
        parts.append(f"\nIt writes: read-only users are refused{only}{elsewhere}.\n")
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
    """Return the keys of an answer that have a meaning of their own, as a table; "" if there are none."""
    rows = "" if answer is None else "".join(f"| `{path}` | {_cell(text)} |\n" for path, text in meanings(answer))
    if not rows:
        return ""
    elsewhere = known.setdefault(rows, method)
    if elsewhere != method:
        return f"\nThe keys are those of [`{elsewhere}`](#{_anchor(elsewhere)}).\n"
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
    # The anchor that GitHub generates from a heading: punctuation such as dots is dropped.
    return "".join(letter for letter in name.lower() if letter.isalnum() or letter in "-_")
