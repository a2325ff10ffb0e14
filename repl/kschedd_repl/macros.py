"""Macros: names for one or several commands, with `$1` to `$9` and `$*` for the words typed after the name.

    macro where = get pod $1 -o wide; explain $1

No I/O. Raises MacroError.
"""

import re
from collections.abc import Sequence

import attrs

from kschedd.errors import KscheddError
from kschedd_repl.line import quoted, tokens

_NAME = re.compile(r"[A-Za-z_][\w-]*")
_PLACE = re.compile(r"\$([1-9*])")
_DEEPEST = 10  # macros within macros


@attrs.define(eq=False)
class MacroError(KscheddError):
    """A macro cannot be defined or expanded."""

    why: str

    def __str__(self) -> str:
        return self.why


@attrs.define(eq=False)
class MacroBook:
    """The macros of a session by name. `reserved`: names that already have a meaning and cannot be used for macros."""

    reserved: frozenset[str]
    bodies: dict[str, str] = attrs.field(factory=dict)

    def define(self, text: str) -> str:
        """Add the definition `NAME = BODY`; return the name."""
        name, equals, body = (part.strip() for part in text.partition("="))
        if not equals:
            raise MacroError("a macro is defined as: macro NAME = COMMAND; COMMAND")
        if not _NAME.fullmatch(name):
            raise MacroError(f'"{name}": a name of letters, digits, - and _ is expected')
        if name in self.reserved:
            raise MacroError(f'"{name}" has a meaning already: choose another name')
        if not body:
            raise MacroError(f"what is {name} to do? `macro delete {name}` takes a macro away")
        self.bodies[name] = body
        return name

    def delete(self, name: str) -> None:
        if self.bodies.pop(name, None) is None:
            raise MacroError(f'there is no macro "{name}"')

    def expand(self, words: Sequence[str], depth: int = 0) -> str | None:
        """Return the line by which a macro is replaced; None if the command is not a macro."""
        body = self.bodies.get(words[0]) if words else None
        if body is None:
            return None
        if depth >= _DEEPEST:
            raise MacroError(f"macros call each other more than {_DEEPEST} deep: {words[0]} is one of them")
        given = words[1:]
        wanted = max((int(place) for place in _PLACE.findall(body) if place != "*"), default=0)
        if len(given) < wanted:
            raise MacroError(f"{words[0]} needs {wanted} {'word' if wanted == 1 else 'words'} after it: {body}")
        if len(given) > wanted and "$*" not in body:
            raise MacroError(
                f'{words[0]}: unexpected argument "{given[wanted]}" (the macro does not use ${wanted + 1})'
            )

        def value(place: re.Match[str]) -> str:
            return " ".join(map(quoted, given)) if place[1] == "*" else quoted(given[int(place[1]) - 1])

        return _PLACE.sub(value, body)


def macro_text(line: str) -> str | None:
    """Return the text after `macro` on a line, including any `;` and `|`; None if the line is another command."""
    found = tokens(line)
    if not found or found[0].operator or found[0].text != "macro":
        return None
    return line[found[0].end :].strip()
