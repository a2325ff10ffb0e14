"""The check of answers against the classes from which their documentation is made."""

from typing import Any

from kschedd.answers import plain, read


def as_documented(answer: Any, value: Any) -> bool:
    """Return whether the value has only fields of this answer class; raise AnswerError if it is not such an answer."""
    return bool(plain(read(answer, value)) == value)
