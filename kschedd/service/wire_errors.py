"""The encoding of errors, for the socket and for the page in the browser: `{code, message, data?}`.

Data contains the error's fields, if any.
"""

from __future__ import annotations

import datetime
import enum
import os
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from kschedd.errors import KscheddError
from kschedd.service.errors import RpcError


def wire_error(error: KscheddError) -> tuple[str, str, Any]:
    """Return the code, message and data (or None) for an error of this program."""
    if isinstance(error, RpcError):
        return error.code, error.message, error.data
    data = _fields(error) if attrs.has(type(error)) else None
    return str(getattr(error, "rpc_code", "invalid")), str(error) or type(error).__name__, data


def outcome_of(raised: Exception) -> tuple[str, str]:
    """Return the error code and the message of a failed call."""
    error = only_of_group(raised)
    return wire_error(error)[:2] if isinstance(error, KscheddError) else ("internal", type(error).__name__)


def only_of_group(raised: BaseException) -> BaseException:
    """Return the only exception in a group that a handler's nursery created."""
    while isinstance(raised, BaseExceptionGroup) and len(raised.exceptions) == 1:
        raised = raised.exceptions[0]
    return raised


def _plain(value: Any) -> Any:
    """Return the value of a field in MessagePack types; a value of any other type becomes its text."""
    match value:
        case None | bool() | float() | bytes():
            return value
        case int():
            return value if -(2**63) <= value < 2**64 else str(value)
        case enum.Enum():
            return _plain(value.value)
        case str():
            return value.encode("utf-8", "replace").decode()
        case os.PathLike() | datetime.datetime():
            return str(value)
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case Sequence() | set() | frozenset():
            items = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value
            return [_plain(item) for item in items]
        case _ if attrs.has(type(value)):
            return _fields(value)
        case _:
            return str(value)


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: _plain(getattr(value, field.name)) for field in attrs.fields(type(value))}
