"""Regular expressions of CEL's `matches`: RE2, which matches any pattern in linear time.

Patterns are untrusted input from claims, so a backtracking engine (Python's `re`) cannot be used. RE2 also limits the
memory of a compiled pattern: the limit is lower than Go's, so that a few patterns are rejected that Kubernetes accepts,
such as `\\pL{1,60}`. RE2 has the syntax of Go's `regexp`, which the real kube-apiserver and kube-scheduler use; error
messages are those of Go.

Errors: PatternError, and AllowanceSpent.
Source: Go 1.24, regexp/syntax (ErrorCode); re2 wiki, Syntax.
"""

from functools import lru_cache
from typing import Any, Final

import attrs
import re2

from kschedd.cel.allowance import charge
from kschedd.errors import KscheddError

_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 1 << 20  # bytes; compiling a pattern, during which no thread runs, then takes 15 ms at most
_COST_OF_PATTERN: Final = 4_000  # of the allowance

_GO_WORDS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
    "pattern too large - compile failed": "expression too large",
}
"""RE2's error messages -> Go's, if they differ."""


@attrs.define(eq=False)
class PatternError(KscheddError):
    pattern: str
    why: str  # Go's message, with the wrong part of the pattern

    def __str__(self) -> str:
        return f"error parsing regexp: {self.why}"


def search(pattern: str, text: str) -> bool:
    """Return whether the pattern matches anywhere in the text. Raises PatternError."""
    return _compiled(pattern).search(_utf8(text)) is not None


def find_all(pattern: str, text: str, limit: int = -1) -> list[str]:
    """Return the matches of the pattern, from left to right without overlap, and at most `limit` unless it is negative.

    As in Go, an empty match directly after another match does not count. Raises PatternError.
    """
    found: list[str] = []
    end = -1
    for match in _compiled(pattern).finditer(_utf8(text)):
        if 0 <= limit <= len(found):
            break
        if match.start() != match.end() or match.start() != end:
            found.append(match.group().decode("utf-8", "replace"))
        end = match.end()
    return found


@lru_cache(256)
def _compiled(pattern: str) -> Any:
    charge(_COST_OF_PATTERN)
    try:
        return re2.compile(_utf8(pattern), _OPTIONS)
    except re2.error as refusal:
        message = refusal.args[0].decode("utf-8", "replace")
        what, separator, part = message.partition(": ")
        raise PatternError(pattern, f"{_GO_WORDS.get(what, what)}: `{part if separator else pattern}`") from refusal


def _utf8(text: str) -> bytes:
    # JSON escapes can contain a lone surrogate, which Go decodes as U+FFFD.
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
