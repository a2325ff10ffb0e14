"""Errors of a real API server, and the conversion of the underlying libraries' exceptions to them."""

from typing import Any

import attrs
import trio

from kschedd.errors import KscheddError


@attrs.define(eq=False)
class LiveError(KscheddError):
    """The error if the server cannot be reached, rejects a request, or sends an unusable response.

    `code` is the HTTP status of a rejection, or 0; `message` is the message of its Status, or "".
    """

    server: str
    why: str
    code: int = 0
    message: str = ""

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
        if isinstance(fault, LiveError) or not isinstance(fault, Exception):
            return
        why = "no answer in time" if isinstance(fault, trio.TooSlowError) else answer(fault)
        raise LiveError(self.server, f"{self.hint}{why}") from None


def answer(fault: Exception) -> str:
    """Return the exception's message in one line; its type if the message is empty."""
    return " ".join(str(fault).split()) or type(fault).__name__
