"""A check of answers against the classes that document them."""

from typing import Any

from kschedd.answers import plain, read


def as_documented(answer: Any, value: Any) -> bool:
    """Return whether the value has only the fields of this answer class; raise AnswerError for any other value."""
    return bool(plain(read(answer, value)) == value)
