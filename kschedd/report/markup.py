"""HTML and SVG as text; all inserted text is escaped exactly once.

Text becomes part of an element only through `el`, which escapes it.

`Markup` is text that is already markup. Only this module and constants of this package create markup.
"""

from collections.abc import Iterable
from html import escape
from typing import Final

_VOID: Final = frozenset(("br", "hr", "img", "input", "link", "meta"))
# HTML does not allow XML's control characters either, but a name may contain them.
_CONTROL: Final = {code: "\ufffd" for code in (*range(9), 11, 12, *range(14, 32), *range(127, 160))}


class Markup(str):
    """Text that is already markup."""

    __slots__ = ()


Child = str | int | None
Value = str | int | float | bool | None


def text(value: Child) -> Markup:
    """Return the text as markup that displays it; markup is returned unchanged."""
    if isinstance(value, Markup):
        return value
    return Markup("" if value is None else escape(str(value).translate(_CONTROL), quote=False))


def el(name: str, *children: Child | Iterable[Child], **attributes: Value) -> Markup:
    """Return an element.

    Build an element. None and False omit an attribute, True writes it without a value; `cls` becomes `class`, `_`
    becomes `-`.
    """
    given = "".join(
        _attribute(key, value) for key, value in attributes.items() if not (value is None or value is False)
    )
    if name in _VOID:
        return Markup(f"<{name}{given}>")
    return Markup(f"<{name}{given}>{joined(*children)}</{name}>")


def joined(*children: Child | Iterable[Child]) -> Markup:
    parts: list[str] = []
    for child in children:
        if child is None or isinstance(child, str | int):
            parts.append(text(child))
        else:
            parts.extend(map(text, child))
    return Markup("".join(parts))


def _attribute(key: str, value: Value) -> str:
    name = "class" if key == "cls" else key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return f' {name}="{escape(shown.translate(_CONTROL))}"'
