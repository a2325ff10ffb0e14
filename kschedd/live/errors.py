"""Errors of a real API server, and the conversion of the underlying libraries' exceptions to them."""

from typing import Any

import attrs
import trio

from kschedd.errors import KscheddError
from kschedd.http.client import ConnectionLost
from kschedd.http.endpoint import ConnectFailed
from kschedd.http.protocol import HttpFault


@attrs.define(eq=False)
class LiveError(KscheddError):
    """The error if the server cannot be reached, rejects a request, or sends an unusable response.

    `code` is the HTTP status of a rejection, or 0; `message` is the message of its Status, or "". `retry_after_s`: the
    pause in seconds that the server requests before the next attempt. `is_refused`: the server accepted no connection,
    so nothing was sent. `is_lost`: the connection ended before the response was complete.
    """

    server: str
    why: str
    code: int = 0
    message: str = ""
    retry_after_s: float | None = None
    is_refused: bool = False
    is_lost: bool = False

    def __str__(self) -> str:
        return f"{self.server}: {self.why}"


class RequestFailed(LiveError):
    """The error if the server was reached but failed or is too busy; the request may succeed later."""


class NotServed(LiveError):
    """The error if the server lacks the resource, or this client may not read it."""


class HistoryLost(LiveError):
    """The server has discarded the history after this version: the resource must be listed again."""


@attrs.frozen
class faults_of:
    """Return a context manager that converts any exception to a LiveError of this server.

    `hint` is the beginning of the error's message.
    """

    server: str
    hint: str = ""

    def __enter__(self) -> None: ...

    def __exit__(self, sort: Any, fault: BaseException | None, trace: Any) -> None:
        if isinstance(fault, Exception) and not isinstance(fault, LiveError):
            raise converted(fault, self.server, self.hint) from None


def converted(fault: Exception, server: str, hint: str) -> LiveError:
    """Return the error of this server for an exception of another library."""
    why = "no answer in time" if isinstance(fault, trio.TooSlowError) else answer(fault)
    refused = isinstance(fault, ConnectFailed) and fault.is_refused
    return LiveError(server, f"{hint}{why}", is_refused=refused, is_lost=isinstance(fault, ConnectionLost))


def answer(fault: Exception) -> str:
    """Return the exception's message in one line; its type if the message is empty."""
    text = fault.why if isinstance(fault, HttpFault) else str(fault)
    return " ".join(text.split()) or type(fault).__name__
