"""Allowance: the cost that expressions may spend in this thread before their evaluation must move to another thread.

Compiling an expression has a cost, too.

As in kube-apiserver, the result of a program depends only on the program's own limit. The allowance is much smaller,
and never changes a result: it ends an evaluation that would take too long in a thread where nothing else can run
meanwhile.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class AllowanceSpent(BaseException):
    """An evaluation has cost more than the allowance. Not an Exception, so that no operator or plugin catches it."""


class Allowance:
    """The remaining cost."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


_thread = threading.local()


def present() -> Allowance | None:
    """Return the allowance of this thread; None if there is none."""
    found: Allowance | None = getattr(_thread, "allowance", None)
    return found


def charge(cost: int) -> None:
    """Spend the cost of work that begins now. Raises AllowanceSpent if the rest of the allowance is smaller."""
    allowed = present()
    if allowed is not None:
        allowed.left -= cost
        if allowed.left < 0:
            raise AllowanceSpent


@contextmanager
def limited_to(allowance: Allowance) -> Iterator[None]:
    """Limit the cost of the evaluations inside the context by the allowance."""
    before = present()
    _thread.allowance = allowance
    try:
        yield
    finally:
        _thread.allowance = before
