"""The page that documents the socket: the protocol as spoken here, and every method of the table.

The page is made from what the daemon runs by, so it cannot say anything else; a test holds the file beside
the README equal to it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from kschedd.rpc.errors import CODES
from kschedd.rpc.params import Param
from kschedd.rpc.table import Method

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

`kschedd.rpc.client.Client` is the same for Trio programs.

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

One socket may have a number of requests running at once (64) and is not read from while it has; a client
that takes nothing of what is sent to it for 30 s is dropped. What a client has asked for is cancelled when
it closes its socket; one that closes only its sending side (`nc -N`, `shutdown(SHUT_WR)`) still gets its
answers.

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
    methods = "".join(_section(method) for method in table.values())
    return f"{_INTRODUCTION}{codes}{_STREAMS}\n## Methods\n\n{index}{methods}"


def _section(method: Method) -> str:
    parts = [f"\n### `{method.name}`\n\n{method.doc}\n"]
    if method.params:
        rows = "".join(_row(param) for param in method.params)
        parts.append(f"\n| parameter | type | default | meaning |\n|---|---|---|---|\n{rows}")
    else:
        parts.append("\nNo parameters.\n")
    if method.returns:
        parts.append(f"\nReturns: {method.returns}\n")
    if method.items:
        parts.append(f"\nStream items: {method.items}\n")
    return "".join(parts)


def _row(param: Param) -> str:
    default = "required" if param.required else f"`{_cell(json.dumps(param.default, ensure_ascii=False))}`"
    meaning = param.doc
    if param.choices:
        choices = ", ".join(f"`{choice}`" for choice in param.choices)
        meaning = f"{meaning} (one of {choices})" if meaning else f"one of {choices}"
    return f"| `{param.name}` | {_cell(param.type)} | {default} | {_cell(meaning)} |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _anchor(name: str) -> str:
    # As forges make them from a heading: dots go, the rest stays.
    return "".join(letter for letter in name.lower() if letter.isalnum() or letter in "-_")
