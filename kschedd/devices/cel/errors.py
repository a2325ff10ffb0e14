"""Errors of CEL expressions, in a separate module: CEL itself is imported only when an expression is compiled."""

from typing import Final

import attrs

from kschedd.errors import KscheddError

LONGEST_EXPRESSION: Final = 10 * 1024  # characters


@attrs.define(eq=False)
class CelCompileError(KscheddError):
    """An expression that does not compile."""

    expression: str
    why: str


@attrs.define(eq=False)
class CelFailure(KscheddError):
    """Evaluation error: the expression has no value for this input."""

    why: str
