"""Tests that the commands on the pages exist, with the flags that the pages give them."""

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import takewhile
from pathlib import Path

import pytest

from kschedd.verbs.command_line.parsing import NotingParser
from kschedd.verbs.table import VERBS
from tests.command_parsers import command_parsers

ROOT = Path(__file__).parents[1]
GENERATED = ROOT / "docs" / "reference"
PAGES = sorted(
    file
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md")
    for file in ROOT.glob(pattern)
    if GENERATED not in file.parents and file.name != "CHANGELOG.md"
)
_COMMAND = re.compile(r"^(?:    |\$ )(?:\w+=\S+ )*(?:\S*/)?kschedd (?P<words>.*)$", re.MULTILINE)
#: verbs that take another command as arguments, with the number of arguments before it
NESTED = {"plan": 0, "watch": 0, "fork run": 1}

ONLY_IN_FORKS = ("rest",)


def commands() -> Iterator[tuple[str, str]]:
    for file in PAGES:
        for command in _COMMAND.finditer(file.read_text(encoding="utf-8").replace("\\\n", " ")):
            yield str(file.relative_to(ROOT)), command["words"]


@pytest.mark.parametrize(("page", "command"), sorted(set(commands())))
def test_the_command_exists_with_its_flags(page: str, command: str) -> None:
    assert unknown(words_of(command)) == [], page


def words_of(command: str) -> list[str]:
    """Return the words of the first command of a line for a shell."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|<>")
    lexer.whitespace_split = True
    return list(takewhile(lambda word: not set(word) <= set(";&|<>"), lexer))


def unknown(words: Sequence[str]) -> list[str]:
    """Return the unknown command, or the unknown flags, of a command line."""
    while words and words[0] == "--socket":
        words = words[2:]
    if not words or words[0] in ("COMMAND", "--help", "--version", "help", *ONLY_IN_FORKS):
        return []
    name, parsers = found(words)
    if not parsers:
        return [words[0]]
    rest = list(words[len(name.split()) :])
    own, nested = rest, list[str]()
    if name in NESTED:
        start = first_of_nested(rest, parsers, NESTED[name])
        own, nested = rest[:start], rest[start:]
    if "--" in own:
        own = own[: own.index("--")]
    known = {flag for parser in parsers for one in parser.noted for flag in one.names} | {"-h", "--help"}
    wrong = [word for word in own if word.startswith("--") and word.partition("=")[0] not in known]
    return wrong + (unknown(nested) if nested else [])


def first_of_nested(words: Sequence[str], parsers: Sequence[NotingParser], before: int) -> int:
    """Return the position of the nested command, after the flags with their values and `before` arguments."""
    valued = {name for parser in parsers for one in parser.noted if one.metavar for name in one.names}
    at = 0
    while at < len(words):
        if words[at].startswith("-"):
            at += 2 if words[at] in valued else 1
        elif before:
            before -= 1
            at += 1
        else:
            return at
    return at


@cache
def parsers() -> dict[str, list[NotingParser]]:
    """Return the parsers of each command; a name may belong to a command and to a verb."""
    known: dict[str, list[NotingParser]] = {}

    for name, parser in command_parsers():
        known[name] = [parser]
    for verb in VERBS:
        for name in {verb.whole or verb.name, verb.name, *verb.aliases}:
            known.setdefault(name, []).append(verb.parser("kschedd "))
    return known


def found(words: Sequence[str]) -> tuple[str, list[NotingParser]]:
    """Return the longest name of a command with which the words begin, and its parsers."""
    for length in (2, 1):
        name = " ".join(words[:length])
        if name in parsers():
            return name, parsers()[name]
    return "", []
