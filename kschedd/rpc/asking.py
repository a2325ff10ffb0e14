"""What both clients know of the conventions: how parameters are put, how a stream begins and ends."""

from __future__ import annotations

from typing import Any

from kschedd.rpc.errors import RpcError, read_wire_error


def wire_params(args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    """The params array of a call. Raises TypeError for both forms at once: the wire has none such."""
    if args and named:
        raise TypeError("parameters go all by position or all by name")
    return [named] if named else list(args)


def stream_id(result: Any) -> int | None:
    """The stream that a call opened, from its result."""
    stream = result.get("stream") if isinstance(result, dict) else None
    return stream if type(stream) is int else None


def no_stream() -> RpcError:
    return RpcError("invalid", "that method opens no stream: call it instead")


def ended_by(reason: Any) -> RpcError | None:
    """The error that a `stream.end` stands for; None for an end that was to be expected."""
    error = read_wire_error(reason)
    return None if error.code in ("done", "cancelled") else error
