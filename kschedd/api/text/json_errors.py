"""JSON syntax errors with the messages of Go's scanner, which contain the first invalid character.

Python's decoder decides whether a text is JSON; this module only processes texts that it rejects. Source: Go
1.24, encoding/json/scanner.go.
"""

import re
from typing import Final, NoReturn

from kschedd.api.quantity import quoted

_SPACE: Final = " \t\r\n"
_ESCAPES: Final = '"\\/bfnrt'
_LITERALS: Final = {"t": "true", "f": "false", "n": "null"}
_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f]*')
_DIGIT: Final = "0123456789"
_HEX: Final = _DIGIT + "abcdefABCDEF"
_DIGITS: Final = re.compile(r"[0-9]*", re.ASCII)
_ESCAPED: Final = 0xDC00
_END: Final = "unexpected end of JSON input"


class _WrongCharacter(Exception):
    """A syntax error with its message; internal to this module."""


def json_error(text: str) -> str:
    """Return the syntax error, or "" if Go finds none."""
    try:
        _Scanner(text).document()
    except _WrongCharacter as found:
        return str(found)
    return ""


class _Scanner:
    """A scanner of one text, with a stack of the open maps and lists instead of recursion."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def document(self) -> None:
        opened: list[str] = []
        while True:
            if self._value(opened):
                continue
            while opened and self._after_value(opened):
                pass
            if not opened:
                break
        if self._next(end_is_fine=True):
            self._wrong("after top-level value")

    def _value(self, opened: list[str]) -> bool:
        """Read a value, or the beginning of a nonempty map or list.

        Return whether another value follows inside this map or list.
        """
        character = self._next()
        if character == "{":
            self._at += 1
            if self._next() == "}":
                self._at += 1
                return False
            opened.append("{")
            self._key()
            return True
        if character == "[":
            self._at += 1
            if self._next() == "]":
                self._at += 1
                return False
            opened.append("[")
            return True
        if character == '"':
            self._string()
        elif character in _LITERALS:
            self._literal(_LITERALS[character])
        elif character == "-" or character in _DIGIT:
            self._number()
        else:
            self._wrong("looking for beginning of value")
        return False

    def _after_value(self, opened: list[str]) -> bool:
        """Continue after a value. Return whether this ended a map or list, which is itself a value."""
        inside = opened[-1]
        character = self._next()
        if character == ",":
            self._at += 1
            if inside == "{":
                self._next()
                self._key()
            return False
        if character == ("}" if inside == "{" else "]"):
            self._at += 1
            opened.pop()
            return True
        self._wrong("after object key:value pair" if inside == "{" else "after array element")

    def _key(self) -> None:
        if self._text[self._at] != '"':
            self._wrong("looking for beginning of object key string")
        self._string()
        if self._next() != ":":
            self._wrong("after object key")
        self._at += 1

    def _string(self) -> None:
        self._at += 1
        while True:
            found = _PLAIN.match(self._text, self._at)
            assert found is not None, "it matches the empty text"
            self._at = found.end()
            character = self._here()
            if character == '"':
                self._at += 1
                return
            if character != "\\":
                self._wrong("in string literal")
            self._at += 1
            character = self._here()
            if character == "u":
                for _ in range(4):
                    self._at += 1
                    if self._here() not in _HEX:
                        self._wrong("in \\u hexadecimal character escape")
            elif character not in _ESCAPES:
                self._wrong("in string escape code")
            self._at += 1

    def _literal(self, word: str) -> None:
        for letter in word:
            if self._here() != letter:
                self._wrong(f"in literal {word} (expecting {_quoted(letter)})")
            self._at += 1

    def _number(self) -> None:
        if self._text[self._at] == "-":
            self._at += 1
            if self._here() not in _DIGIT:
                self._wrong("in numeric literal")
        if self._text[self._at] == "0":
            self._at += 1
        else:
            self._digits()
        if self._text[self._at : self._at + 1] == ".":
            self._at += 1
            if self._here() not in _DIGIT:
                self._wrong("after decimal point in numeric literal")
            self._digits()
        if self._text[self._at : self._at + 1] in ("e", "E"):
            self._at += 1
            if self._here() in "+-":
                self._at += 1
            if self._here() not in _DIGIT:
                self._wrong("in exponent of numeric literal")
            self._digits()

    def _digits(self) -> None:
        found = _DIGITS.match(self._text, self._at)
        assert found is not None, "it matches the empty text"
        self._at = found.end()

    def _here(self) -> str:
        if self._at >= len(self._text):
            raise _WrongCharacter(_END)
        return self._text[self._at]

    def _next(self, *, end_is_fine: bool = False) -> str:
        """Skip spaces and return the next character without consuming it."""
        while self._at < len(self._text) and self._text[self._at] in _SPACE:
            self._at += 1
        return "" if end_is_fine and self._at >= len(self._text) else self._here()

    def _wrong(self, context: str) -> NoReturn:
        raise _WrongCharacter(f"invalid character {_quoted(self._here())} {context}")


def _quoted(character: str) -> str:
    """Return a character in single quotes. As in Go, a non-ASCII character is represented by its first byte.

    A byte that is not valid UTF-8 is passed as a surrogate (Python's "surrogateescape").
    """
    if character == "'":
        return "'\\''"
    if character == '"':
        return "'\"'"
    code = ord(character) - _ESCAPED
    if code not in range(0x80, 0x100):
        code = character.encode("utf-8", "surrogatepass")[0]
    if code >= 0x80:
        return f"'{chr(code)}'" if chr(code).isprintable() else f"'\\x{code:02x}'"
    return f"'{quoted(character)[1:-1]}'"
