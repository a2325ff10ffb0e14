"""Functions that both clients use: the encoding of parameters, and the start and end of a stream."""

from __future__ import annotations

from typing import Any, Final

from kschedd.rpc.encoding import encode_request
from kschedd.rpc.errors import read_wire_error
from kschedd.service.errors import RpcError

_DEEPEST: Final = 64  # the daemon rejects deeper nesting


def wire_params(args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    """Return the array of parameters of a call.

    Raises TypeError for positional and named parameters together, which the protocol does not support.
    """
    if args and named:
        raise TypeError("parameters go all by position or all by name")
    return [named] if named else list(args)


def request_bytes(msgid: int, method: str, params: list[Any]) -> bytes:
    """Return a request in its encoded form.

    Raises RpcError for input that the protocol cannot represent (a number beyond 64 bits, text that is not UTF-8), and
    TypeError for a value that is not plain data.
    """
    try:
        return encode_request(msgid, method, params)
    except (TypeError, ValueError, OverflowError) as fault:
        beyond = _beyond_64_bits(params, 0)
        if beyond is None and isinstance(fault, TypeError):
            raise
        why = str(fault) if beyond is None else f"{beyond}: a whole number of at most 64 bits is expected"
        raise RpcError("bad_params", f"{method}: {why}") from None


def _beyond_64_bits(value: Any, level: int) -> int | None:
    if type(value) is int and not -(2**63) <= value < 2**64:
        return value
    if level > _DEEPEST or not isinstance(value, dict | list | tuple):
        return None
    items = value.values() if isinstance(value, dict) else value
    return next((found for item in items if (found := _beyond_64_bits(item, level + 1)) is not None), None)


def stream_id(result: Any) -> int | None:
    """Return the id of the stream that a call opened, from its result, or None."""
    stream = result.get("stream") if isinstance(result, dict) else None
    return stream if type(stream) is int else None


def no_stream() -> RpcError:
    return RpcError("invalid", "that method opens no stream: call it instead")


def ended_by(reason: Any) -> RpcError | None:
    """Return the error in a `stream.end`; None for a normal end."""
    error = read_wire_error(reason)
    return None if error.code in ("done", "cancelled") else error
