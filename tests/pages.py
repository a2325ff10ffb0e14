"""Pages of the documentation with commands to follow: blocks of `$ kschedd COMMAND` with the expected output."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("DEBUGGING.md", "POOLS.md", "TUTORIAL.md", "WHATIF.md", "WHY.md")
_BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(
    r"^(?P<line>\$ kschedd (?P<words>[^\n]*?)(?: <<'?EOF'?\n(?P<input>.*?)^EOF)?\n)(?P<shown>.*?)(?=^\$ kschedd |\Z)",
    re.MULTILINE | re.DOTALL,
)


@attrs.frozen
class PageCommand:
    """A command of a page, with its standard input and its output."""

    words: str
    given: str
    shown: str


def commands_of(page: str) -> Iterator[PageCommand]:
    for block in _BLOCK.findall(page):
        yield from map(_command, _COMMAND.finditer(block))


def rewritten(page: str, printed: Callable[[PageCommand], str]) -> str:
    """Return the page with the current output of its commands."""
    return _BLOCK.sub(
        lambda block: _COMMAND.sub(lambda found: found["line"] + printed(_command(found)), block[0]), page
    )


def _command(found: re.Match[str]) -> PageCommand:
    return PageCommand(found["words"], found["input"] or "", found["shown"])
