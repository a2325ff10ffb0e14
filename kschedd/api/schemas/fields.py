"""Field errors: an error in one field of an object, with the API server's message.

Source: Kubernetes v1.34, apimachinery/pkg/util/validation/field (errors.go, path.go). `why` is the text after the path;
kube-apiserver prints `path: why`.
"""

import re
from collections.abc import Hashable, Iterable, Iterator
from typing import Final, TypeVar

import attrs

from kschedd.api.quantity import shown

T = TypeVar("T", bound=Hashable)
WHOLE: Final = "[]"  # path of an error about the whole object
ENOUGH: Final = 100
"""Number of errors after which no more are collected if each message may be as long as the object."""
_LONGEST_KEY: Final = 2048
_LONGEST_VALUE: Final = 4096
_HTML: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})  # Go's escapes in JSON
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
_STEP: Final = re.compile(r"\[(?:(\d+)|([^\]]*))\]|([^.\[\]]+)")


@attrs.frozen
class FieldError:
    """An error in one field."""

    path: str  # path of the field, for example spec.containers[0].resources.requests.cpu
    value: object
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}" if self.path else self.why


def _value(value: object) -> str:
    """Return the value as kube-apiserver prints it, cut if it is very long."""
    text = shown(value, _LONGEST_VALUE)
    return text.translate(_HTML) if isinstance(value, dict | list) else text


def invalid(path: str, value: object, rule: str) -> FieldError:
    return FieldError(
        path, value, f"Invalid value: {_value(value)}: {rule}" if rule else f"Invalid value: {_value(value)}"
    )


def required(path: str, rule: str = "") -> FieldError:
    return FieldError(path, None, f"Required value: {rule}" if rule else "Required value")


def forbidden(path: str, rule: str) -> FieldError:
    return FieldError(path, None, f"Forbidden: {rule}")


def duplicate(path: str, value: object) -> FieldError:
    return FieldError(path, value, f"Duplicate value: {_value(value)}")


def repeats(values: Iterable[T]) -> Iterator[tuple[int, T]]:
    """Yield each value that equals an earlier value, with its position."""
    seen: set[T] = set()
    for place, value in enumerate(values):
        if value in seen:
            yield place, value
        seen.add(value)


def not_found(path: str, value: object) -> FieldError:
    return FieldError(path, value, f"Not found: {_value(value)}")


def unsupported(path: str, value: object, allowed: Iterable[str]) -> FieldError:
    supported = ", ".join(f'"{word}"' for word in allowed)
    return FieldError(path, value, f"Unsupported value: {_value(value)}: supported values: {supported}")


def too_many(path: str, count: int, most: int) -> FieldError:
    return FieldError(path, count, f"Too many: {count}: must have at most {most} items")


def child(path: str, key: object) -> str:
    """Return the path of a key under `path`.

    Keys that are not identifiers are in brackets, and long keys are truncated.
    """
    text = str(key)
    if len(text) > _LONGEST_KEY:
        text = f"{text[:100]}..."
    if not path:
        return text
    return f"{path}.{text}" if _NAME.fullmatch(text) else f"{path}[{text}]"


def steps(path: str) -> tuple[str | int, ...]:
    """Return the keys and indices of a path, from the root."""
    return tuple(
        int(index) if index else key if key is not None and not index else (name or key or "")
        for index, key, name in ((m.group(1), m.group(2), m.group(3)) for m in _STEP.finditer(path))
    )


def path_text(parts: Iterable[str | int]) -> str:
    """Return the path with these keys and indices, as the inverse of `steps`."""
    path = ""
    for part in parts:
        path = f"{path}[{part}]" if isinstance(part, int) else child(path, part)
    return path
