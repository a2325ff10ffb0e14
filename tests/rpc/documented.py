"""The check of answers against the classes from which their documentation is made."""

from typing import Any

from kschedd.answers import plain, read


def as_documented(answer: Any, value: Any) -> bool:
    """Whether the value is all that an answer of this class sends. Raises AnswerError where it is none."""
    return bool(plain(read(answer, value)) == value)
