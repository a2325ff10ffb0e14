"""What goes wrong with a CEL expression: apart from CEL itself, which is imported when the first one is compiled.

Whoever only has to say what went wrong imports these.
"""

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
