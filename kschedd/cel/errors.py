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
    at_instantiation: bool = False  # a literal cannot be converted to the type of its conversion

    @property
    def detail(self) -> str:
        """The reason as kube-apiserver prints it."""
        return f"{'program instantiation' if self.at_instantiation else 'compilation'} failed: {self.why}"


@attrs.define(eq=False)
class CelFailure(KscheddError):
    """Evaluation error: the expression has no value for this input."""

    why: str
